"""Order: NumPy's and torch's values, one convention for equal entries and NaN, exact derivatives, samples in their own order."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

import nestgrad as ng
from nestgrad.errors import ShapeError

RUN = settings(max_examples=40, deadline=None, derandomize=True)
NAN, INF = float("nan"), float("inf")
BASES = [ng.NumpyBackend(), ng.TorchBackend(dtype="float64")]
FEW = st.lists(st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0, INF, -INF, NAN]), min_size=1, max_size=9)


def ordered(data, descending=False):
    """Positions in order by Python's own stable sort, NaN as the greatest."""
    key = lambda k: (data[k] != data[k], 0.0 if data[k] != data[k] else data[k])
    if not descending:
        return sorted(range(len(data)), key=key)
    return sorted(range(len(data)), key=lambda k: tuple(-v for v in key(k)))


@RUN
@given(FEW, st.booleans())
def test_sort_is_stable_with_nan_as_the_greatest(data, descending):
    right = ordered(data, descending)
    for base in BASES:
        x = base.tensor(data)
        assert ng.argsort(x, descending=descending).tolist() == right == x.argsort(descending=descending).tolist()
        np.testing.assert_array_equal(ng.sort(x, descending=descending).numpy(), [data[k] for k in right])


@RUN
@given(FEW, st.booleans(), st.data())
def test_topk_and_kthvalue_are_of_the_sorted(data, largest, draw):
    k = draw.draw(st.integers(0, len(data)))
    right = ordered(data, largest)[:k]
    for base in BASES:
        values, positions = ng.topk(base.tensor(data), k, largest=largest)
        assert positions.tolist() == right
        np.testing.assert_array_equal(values.numpy(), [data[k] for k in right])
        if k:
            value, position = ng.kthvalue(base.tensor(data), k)
            assert position.item() == ordered(data)[k - 1]
            np.testing.assert_array_equal(value.numpy(), data[position.item()])


@RUN
@given(st.lists(st.floats(-5, 5), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_a_permutation_sorts_to_the_same(data, random):
    shuffled = list(data)
    random.shuffle(shuffled)
    for base in BASES:
        one, other = ng.sort(base.tensor(data)), ng.sort(base.tensor(shuffled))
        assert one.tolist() == other.tolist() == sorted(data)
        assert one.sum().item() == pytest.approx(base.tensor(data).sum().item(), abs=1e-12)


@pytest.mark.parametrize("case", ["plain", "equal entries", "nan", "infinite", "whole numbers"])
def test_long_lines_are_as_short_ones(case, double):
    """Where entries are selected without sorting, and where some lines need it."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(4, 1501))
    if case == "equal entries":
        x[1] = np.round(x[1], 1)
        x[2, 7] = x[2, 1300] = np.sort(x[2])[750]
    elif case == "nan":
        x[0, 3], x[2, :1400] = NAN, NAN
    elif case == "infinite":
        x[3, ::2], x[1, 5] = INF, -INF
    elif case == "whole numbers":
        x = rng.integers(-9, 9, x.shape)
    for axis, data in ((1, x), (0, x.T)):
        t = double.tensor(data)
        right = np.argsort(data, axis, "stable")
        for k in (1, 750, 751, 1501):
            values, positions = ng.kthvalue(t, k, axis)
            np.testing.assert_array_equal(positions.numpy(), np.take(right, k - 1, axis))
            np.testing.assert_array_equal(values.numpy(), np.take_along_axis(data, np.take(right, [k - 1], axis), axis).squeeze(axis))
        for k in (1, 10):
            np.testing.assert_array_equal(ng.topk(t, k, axis, largest=False)[1].numpy(), np.take(right, range(k), axis))
            want = [[ordered(line.tolist(), True)[:k] for line in (data if axis else data.T)]]
            np.testing.assert_array_equal(ng.topk(t, k, axis)[1].numpy(), np.array(want[0]) if axis else np.array(want[0]).T)


def test_a_function_of_sorted_entries(backend):
    """The Hessian of ``sum(sort(x)**2 * [1, 10, 100, 1000])`` at [3, 1, 2, 5]."""
    weights = backend.tensor([1.0, 10.0, 100.0, 1000.0])
    stack = ng.Autodiff(ng.Autodiff(ng.Autodiff(backend)))
    x = stack.tensor([3.0, 1.0, 2.0, 5.0], requires_grad=True)
    g = ((ng.sort(x) ** 2) * weights).sum().wrt(x)
    rows = [g[k].wrt(x) for k in range(4)]
    np.testing.assert_array_equal([row.numpy().astype(float) for row in rows], np.diag([200.0, 2.0, 20.0, 2000.0]))
    assert rows[0].wrt(x).numpy().astype(float).tolist() == [0.0] * 4


@pytest.mark.parametrize("f, slopes", [
    (lambda x: ng.topk(x, 3)[0], [1.0, 0.0, 10.0, 0.0, 100.0]),  # 5, 4, and the first 3
    (lambda x: ng.topk(x, 2, largest=False)[0], [0.0, 1.0, 0.0, 10.0, 0.0]),
    (lambda x: ng.kthvalue(x, 2, keepdims=True)[0], [0.0, 0.0, 0.0, 1.0, 0.0]),
])  # fmt: skip
def test_the_first_of_equals_gets_the_derivative(f, slopes, backend):
    data = [5.0, 2.0, 4.0, 2.0, 3.0]
    stack = ng.Autodiff(ng.Autodiff(ng.Autodiff(backend)))
    x = stack.tensor(data, requires_grad=True)
    y = f(x)
    weights = backend.tensor([1.0, 10.0, 100.0][: y.size])
    for order, factor in ((1, 3.0), (2, 6.0), (3, 6.0)):
        z = (y**3 * weights).sum()
        for _ in range(order):
            z = z.wrt(x)
        powers = [factor * s * v ** (3 - order) for s, v in zip(slopes, data, strict=True)]
        np.testing.assert_allclose(z.numpy().astype(float), powers, rtol=1e-14)


def test_positions_are_constants(double):
    x = ng.Autodiff(double).tensor([2.0, 1.0], requires_grad=True)
    for positions in (ng.argsort(x), ng.topk(x, 1)[1], ng.kthvalue(x, 1)[1]):
        assert positions.level == 0 and not positions.marks and "int64" in str(positions.dtype)


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 2), (1,), (2, 1)])
def test_of_nothing_and_of_one(shape, backend):
    x = ng.Autodiff(backend).tensor(np.full(shape, 0.75), requires_grad=True)
    for axis, n in enumerate(shape):
        assert ng.sort(x, axis).shape == shape and ng.sort(x, axis).wrt(x).shape == shape
        values, positions = ng.topk(x, n, axis)
        assert values.shape == positions.shape == shape and values.wrt(x).tolist() == np.ones(shape).tolist()
        assert ng.topk(x, 0, axis)[0].shape == shape[:axis] + (0,) + shape[axis + 1 :]
        if n:
            assert ng.kthvalue(x, 1, axis)[0].shape == shape[:axis] + shape[axis + 1 :]


@pytest.mark.parametrize("f", [
    lambda x: ng.sort(x, 0), lambda x: ng.sort(x, 0, descending=True), lambda x: ng.topk(x, 2, 0)[0], lambda x: ng.kthvalue(x, 3, 0)[0],
    lambda x: ng.median(x, 0), lambda x: ng.quantile(x, [0.2, 0.6], 0),
])  # fmt: skip
def test_samples_are_sorted_each_by_itself(f, double):
    """Each in its own order; derivatives to second order."""
    many = np.random.default_rng(3).normal(size=(6, 4, 2))
    energy = lambda x: (f(x) ** 3).sum()
    for g in (f, ng.func.grad(energy), lambda x: ng.func.grad(lambda v: (ng.func.grad(energy)(v) ** 2).sum())(x)):
        together = ng.func.vmap(g)(double.tensor(many)).numpy()
        np.testing.assert_allclose(together, [g(double.tensor(x)).numpy() for x in many], rtol=1e-12)


def test_integers_and_booleans_are_sorted_as_such(double):
    assert ng.sort(double.tensor([3, 1, 2])).tolist() == [1, 2, 3]
    assert ng.topk(double.tensor([3, 1, 2, 3]), 2)[1].tolist() == [0, 3]
    assert ng.kthvalue(double.tensor([3, 1, 1]), 2)[1].item() == 2
    assert ng.topk(double.tensor([False, True, True]), 2)[1].tolist() == [1, 2]


def test_values_and_gradients_are_torchs(double):
    rng = np.random.default_rng(11)
    data = rng.normal(size=(3, 40, 2))
    for ours, torchs in (
        (lambda x: ng.sort(x, 1), lambda t: torch.sort(t, 1).values),
        (lambda x: ng.topk(x, 7, 1)[0], lambda t: torch.topk(t, 7, 1).values),
        (lambda x: ng.kthvalue(x, 7, 1)[0], lambda t: torch.kthvalue(t, 7, 1).values),
    ):
        t = torch.tensor(data, requires_grad=True)
        weights = torch.tensor(rng.normal(size=torchs(t).shape))
        x = ng.Autodiff(double).tensor(data, requires_grad=True)
        y = ours(x)
        np.testing.assert_array_equal(y.numpy(), torchs(t).detach().numpy())
        right = torch.autograd.grad((torchs(t) * weights).sum(), t)[0]
        np.testing.assert_array_equal(y.backward(double.tensor(weights.numpy())).wrt(x).numpy(), right.numpy())


@pytest.mark.parametrize("k", [-1, 4])
def test_as_many_as_there_are(k):
    with pytest.raises(ShapeError, match=r"topk: got k=.* for 3 entries along axis 0; expected an int from 0 to 3"):
        ng.topk(ng.tensor([1.0, 2.0, 3.0]), k)


@pytest.mark.parametrize("k", [0, 4])
def test_ranks_are_counted_from_1(k):
    with pytest.raises(ShapeError, match=r"kthvalue: got k=.* for 3 entries along axis 0; expected an int from 1 to 3"):
        ng.kthvalue(ng.tensor([1.0, 2.0, 3.0]), k)


@pytest.mark.parametrize("f", [ng.sort, ng.argsort, lambda x, axis: ng.topk(x, 1, axis), lambda x, axis: ng.kthvalue(x, 1, axis)])
def test_an_axis_that_is_not_there(f):
    with pytest.raises(ShapeError, match="got axis 1 of an array with 1 axes; expected an int from -1 to 0"):
        f(ng.tensor([1.0]), axis=1)
    with pytest.raises(ShapeError, match="got axis -1 of an array with 0 axes"):
        f(ng.tensor(1.0), axis=-1)
