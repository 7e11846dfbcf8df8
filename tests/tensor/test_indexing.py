"""Indexing and ``at``: whatever NumPy does with an index, in value; the transpose of it, in derivatives."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import nestgrad as ng
from nestgrad.errors import DTypeError, ImmutableError, IndexRangeError, ShapeError

X = np.arange(24.0).reshape(2, 3, 4)

EACH_FORM = {
    "int": 1, "negative int": -1, "NumPy int": np.int64(1), "ints": (1, -2, 3), "slice": slice(1), "empty": slice(1, 1),
    "beyond": slice(-7, 9), "reversed": (slice(None), slice(None, None, -1)), "steps": (Ellipsis, slice(3, 0, -2)),
    "ellipsis": Ellipsis, "nothing": (),
    "new axes": (None, 1, None, Ellipsis, None), "list": [1, 0, 1], "list of lists": [[0, 1], [1, 1]], "empty list": [],
    "range": range(2), "array": (slice(None), np.array([2, 0])), "negative array": (slice(None), np.array([-1, -3])),
    "uint8": np.array([1, 0], np.uint8),
    "arrays": ([0, 1], [2, 0]), "broadcast arrays": ([[0], [1]], [2, 0, 1]), "array, int": (slice(None), [0, 2], 1),
    "int, array": (0, [0, 2]),
    "int, slice, array": (1, slice(None), [0, 3]), "array, slice, array": ([0, 1], slice(None), [3, 0]),
    "array, None, array": ([0, 1], None, [2, 0]), "array, ellipsis of nothing, array": (slice(None), [0, 2], Ellipsis, [1, 3]),
    "int, ellipsis of nothing, array": (slice(None), 1, Ellipsis, [1, 3]),
    "None, array, ellipsis of nothing, array": (None, slice(None), [0, 2], Ellipsis, [1, 3]),
    "mask of all": X % 3 == 0, "mask of rows": np.array([True, False]), "mask of columns": (slice(None), np.array([True, False, True])),
    "mask of two axes": X[:, :, 0] > 3, "mask, array": (np.array([True, True]), [0, 2]), "list of bools": [True, False],
    "mask, slice, array": (np.array([True, False]), slice(None), [1]), "mask of nothing": np.zeros((2, 3), bool),
    "mask, ellipsis of nothing, array": (np.array([[True, False, True], [False, True, False]]), Ellipsis, [1, 3, 0]),
}  # fmt: skip


@pytest.mark.parametrize("index", EACH_FORM.values(), ids=EACH_FORM)
def test_each_form_is_numpys(index, check_derivatives):
    check_derivatives(lambda x: x[index], lambda x: x[index], X)


@pytest.mark.parametrize("index", EACH_FORM.values(), ids=EACH_FORM)
def test_each_form_adds_as_numpy_does(index, check_derivatives):
    def oracle(x, v):
        y = x.copy()
        np.add.at(y, index, v)
        return y

    v = np.linspace(0.5, 1.5, np.size(X[index])).reshape(np.shape(X[index]))
    check_derivatives(lambda x, v: x.at[index].add(v), oracle, X, v)
    check_derivatives(lambda x, v: x.at[index].add(v), oracle, X, 2.5)


def test_an_index_may_be_a_tensor(base):
    x = base.tensor(X)
    rows, mask, one = base.tensor([1, 0]), base.tensor([True, False]), base.tensor(1)
    np.testing.assert_array_equal(x[rows].numpy(), X[[1, 0]])
    np.testing.assert_array_equal(x[mask, one].numpy(), X[[True, False], 1])
    np.testing.assert_array_equal(x[one:].numpy(), X[1:])
    np.testing.assert_array_equal(x[x > 5].numpy(), X[X > 5])
    np.testing.assert_array_equal(x[x.argmax(2) == 3].numpy(), X[X.argmax(2) == 3])


@st.composite
def indices(draw, shape):
    """An index for an array of ``shape``: any mixture of forms, each axis at most once."""
    items, arrays = [], draw(st.sampled_from([(1,), (2,), (3,), (0,), (2, 2), (1, 3)]))
    k, dotted = 0, False
    while k < len(shape):
        form = draw(st.sampled_from(["stop", "int", "slice", "array", "mask", "none", "dots"]))
        if form == "stop":
            if dotted:  # what comes after an ellipsis is counted from the last axis
                items += [slice(None)] * (len(shape) - k)
            break
        if form == "none":
            items.append(None)
        elif form == "dots" and not dotted:
            dotted = True
            items.append(Ellipsis)
            k += draw(st.integers(0, len(shape) - k))
        elif form == "slice":
            items.append(draw(st.slices(shape[k])))
            k += 1
        elif form == "int" and shape[k]:
            items.append(draw(st.integers(-shape[k], shape[k] - 1)))
            k += 1
        elif form == "array" and (shape[k] or 0 in arrays):
            bound = max(shape[k], 1)
            items.append(draw(hnp.arrays(np.int64, draw(st.sampled_from([arrays, (1,)])), elements=st.integers(-bound, bound - 1))))
            k += 1
        elif form == "mask":
            axes = draw(st.integers(1, len(shape) - k))
            items.append(draw(hnp.arrays(bool, shape[k : k + axes])))
            k += axes
    return tuple(items)


@st.composite
def cases(draw):
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4))
    return shape, draw(indices(shape))


@pytest.mark.parametrize("name", ["numpy", "torch"])
@settings(max_examples=250, deadline=None, derandomize=True)
@given(case=cases())
def test_any_index_is_numpys(name, case):
    """Random shapes and mixtures of forms; where NumPy refuses one, so do we, as an error of our own."""
    if name == "torch":
        pytest.importorskip("torch")
    shape, index = case
    a = np.arange(float(np.prod(shape))).reshape(shape)
    S = ng.Autodiff(ng.get_backend(name, dtype="float64"))
    x = S.tensor(a, requires_grad=True)
    try:
        want = a[index]
    except IndexError:
        with pytest.raises((IndexRangeError, ShapeError)):
            x[index]
        return
    y = x[index]
    np.testing.assert_array_equal(y.numpy(), want)
    assert y.shape == want.shape
    cotangent = np.arange(1.0, 1.0 + want.size).reshape(want.shape)
    expected = np.zeros(shape)
    np.add.at(expected, index, cotangent)
    np.testing.assert_array_equal(y.backward(S.tensor(cotangent)).wrt(x).numpy(), expected)


@pytest.mark.parametrize("name", ["numpy", "torch"])
@settings(max_examples=250, deadline=None, derandomize=True)
@given(case=cases(), whole=st.booleans())
def test_any_place_is_set_and_added_to_as_in_numpy(name, case, whole):
    if name == "torch":
        pytest.importorskip("torch")
    shape, index = case
    a = np.arange(float(np.prod(shape))).reshape(shape)
    try:
        place = a[index]
    except IndexError:
        return
    v = -np.arange(1.0, 1.0 + place.size).reshape(place.shape) if whole else np.float64(-7.0)
    S = ng.Autodiff(ng.get_backend(name, dtype="float64"))
    x, w = S.tensor(a, requires_grad=True), S.tensor(v, requires_grad=True)
    cotangent = np.arange(1.0, 1.0 + a.size).reshape(shape)

    added = a.copy()
    np.add.at(added, index, v)
    y = x.at[index].add(w)
    np.testing.assert_array_equal(y.numpy(), added)
    grads = y.backward(S.tensor(cotangent))
    np.testing.assert_array_equal(grads.wrt(x).numpy(), cotangent)
    np.testing.assert_array_equal(grads.wrt(w).numpy(), cotangent[index] if whole else cotangent[index].sum())

    numbers = np.arange(a.size).reshape(shape)[index]
    if np.unique(numbers).size < numbers.size:
        with pytest.raises(ShapeError, match="twice"):
            x.at[index].set(w)
        return
    replaced = a.copy()
    replaced[index] = v
    y = x.at[index].set(w)
    np.testing.assert_array_equal(y.numpy(), replaced)
    grads = y.backward(S.tensor(cotangent))
    kept = cotangent.copy()
    kept[index] = 0.0
    np.testing.assert_array_equal(grads.wrt(x).numpy(), kept)
    np.testing.assert_array_equal(grads.wrt(w).numpy(), cotangent[index] if whole else cotangent[index].sum())


def test_an_entry_named_twice_is_added_to_twice_and_not_set(stack):
    x = stack.tensor(np.zeros(5))
    assert x.at[[1, 1, -4]].add(1.0).tolist() == [0.0, 3.0, 0.0, 0.0, 0.0]
    for twice in ([1, 1], [1, -4], ([[0], [0]],)):
        with pytest.raises(ShapeError, match="names an entry twice"):
            x.at[twice].set(1.0)
    assert x.at[[[0], [1]]].set(np.array([[1.0], [2.0]])).tolist() == [1.0, 2.0, 0.0, 0.0, 0.0]


def test_values_broadcast_and_must_fit(base):
    x = base.tensor(np.zeros((2, 3)))
    assert x.at[0].set(1.0).tolist() == [[1.0] * 3, [0.0] * 3]
    assert x.at[:, 1:].set(np.array([1.0, 2.0])).tolist() == [[0.0, 1.0, 2.0]] * 2
    assert x.at[:].add(base.tensor([[1.0], [2.0]])).tolist() == [[1.0] * 3, [2.0] * 3]
    for method in ("set", "add"):
        with pytest.raises(ShapeError, match=f"index_{method}"):
            getattr(x.at[0], method)(np.zeros(2))
        with pytest.raises(ShapeError, match=f"index_{method}"):
            getattr(x.at[[0, 1]], method)(np.zeros((5, 3)))


def test_floats_are_not_cut_to_fit_into_integers(base):
    """NumPy would store 2 for 2.5; a derivative by the value would then be that of another function."""
    x, mask = base.tensor([1, 2]), base.tensor([True, False])
    for method in ("set", "add"):
        with pytest.raises(DTypeError, match=r"at\[\.\.\.\]\.(set|add).*int64.*astype"):
            getattr(x.at[0], method)(2.5)
        with pytest.raises(DTypeError, match=r"int64.*bool"):
            getattr(mask.at[0], method)(2)
    assert x.at[0].set(5).tolist() == [5, 2]
    assert mask.at[0].set(False).tolist() == [False, False]
    assert base.tensor([1.0, 2.0]).at[0].set(True).tolist() == [1.0, 2.0]


def test_setting_does_not_touch_the_original(stack):
    x = stack.tensor(X, requires_grad=True)
    x.at[0].set(1.0).at[:, 1].add(2.0)
    np.testing.assert_array_equal(x.numpy(), X)
    with pytest.raises(ImmutableError, match="immutable"):
        x[0] = 1.0
    with pytest.raises(ImmutableError, match="immutable"):
        x[0] += 1.0


def test_second_derivatives_go_through_an_index(stack):
    x = stack.tensor([1.0, 2.0, 3.0], requires_grad=True)
    first = (x[[0, 0, 2]] ** 3).wrt(x)
    np.testing.assert_array_equal(first.numpy(), [6.0, 0.0, 27.0])
    np.testing.assert_array_equal(first.wrt(x).numpy(), [12.0, 0.0, 18.0])


WRONG = {
    "beyond": 2, "far below": -3, "too many": (0, 0, 0, 0), "two ellipses": (Ellipsis, Ellipsis), "float": 1.0, "complex": 1j, "text": "a",
    "list of floats": [0.5], "array of floats": np.array([0.5]), "bool": True, "NumPy bool": np.True_, "ragged": [[0], [0, 1]],
    "step 0": slice(None, None, 0), "slice of floats": slice(0.5), "array beyond": [0, 2], "no broadcast": ([0, 1], [0, 1, 2]),
    "short mask": (slice(None), np.array([True, False])), "long mask": np.array([True, False, True]),
    "mask of too many axes": np.ones((2, 3, 4, 1), bool), "mask across": np.ones((3, 2), bool),
}  # fmt: skip


@pytest.mark.parametrize("index", WRONG.values(), ids=WRONG)
def test_wrong_indices_raise(index, base):
    x = base.tensor(X)
    with pytest.raises((IndexRangeError, ShapeError, DTypeError), match=r"getitem|asarray"):
        x[index]
    with pytest.raises((IndexRangeError, ShapeError, DTypeError), match=r"getitem|asarray|index_"):
        x.at[index].add(1.0)


def test_index_errors_are_index_errors(base):
    x = base.tensor(X)
    with pytest.raises(IndexError, match=r"index 2 for an axis of size 2 \(shape \(2, 3, 4\)\)"):
        x[2]
    with pytest.raises(IndexError, match=r"mask of shape \(2,\) for axes of shape \(3,\)"):
        x[:, np.array([True, False])]
    with pytest.raises(IndexError):
        base.tensor(1.0)[0]


def test_iteration_and_length(stack):
    x = stack.tensor(X, requires_grad=True)
    assert len(x) == 2
    rows = list(x)
    np.testing.assert_array_equal(rows[1].numpy(), X[1])
    np.testing.assert_array_equal((rows[1] ** 2).wrt(x).numpy(), np.stack([0 * X[0], 2 * X[1]]))
    first, second = x
    assert first.shape == second.shape == (3, 4)
    for call in (len, iter, list):
        with pytest.raises(ShapeError, match="0-dimensional"):
            call(x.sum())
