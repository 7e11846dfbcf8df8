"""``vmap`` is the loop over the samples, whatever the axes and whatever stands inside or outside. The oracle is PyTorch's, or the loop."""

from collections import namedtuple
from typing import Any

import numpy as np
import pytest
import torch
from functions import FUNCTIONS, RNG, alike, close, tree_map

import nestgrad as ng
from nestgrad import Tensor, func
from nestgrad.errors import ConversionError, DTypeError, ImmutableError, LevelError, ShapeError

N = 4
Pair = namedtuple("Pair", "x y")


def many(tree: Any, seed: int = 21) -> Any:
    """``N`` random points like ``tree``, along axis 0."""
    return tree_map(lambda x: np.asarray(x) + 0.3 * np.random.default_rng(seed).normal(size=(N, *np.shape(x))), tree)


def loop(f: Any, args: Any) -> Any:
    """``f`` on each sample in turn, its leaves stacked."""
    return _stacked([f(*tree_map(lambda x, i=i: x[i], args)) for i in range(N)])


def _stacked(outs: list[Any]) -> Any:
    first = outs[0]
    if isinstance(first, dict):
        return {key: _stacked([o[key] for o in outs]) for key in first}
    if isinstance(first, (list, tuple)):
        return type(first)(_stacked(list(parts)) for parts in zip(*outs, strict=True))
    return torch.stack(outs)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("chunk_size", [None, 1, 3, N])
def test_a_mapped_function_is_the_loop_in_torch(base, name, chunk_size):
    f, primals = FUNCTIONS[name]
    args = many(primals)
    close(func.vmap(f, chunk_size=chunk_size)(*tree_map(base.tensor, args)), loop(f, tree_map(torch.tensor, args)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_of_each_sample_are_the_loop_in_torch(base, name):
    """vmap of vjp, of jvp, and of linearize, whose maps are linear: all with a direction for each sample."""
    f, primals = FUNCTIONS[name]
    args = many(primals)
    point = tree_map(torch.tensor, args)
    v, u = many(alike(primals, 1), 1), many(alike(f(*tree_map(torch.tensor, primals)), 2), 2)
    ours, theirs = tree_map(base.tensor, (args, v, u)), tree_map(torch.tensor, (args, v, u))
    pulled = func.vmap(lambda a, u: func.vjp(f, *a)[1](u))(ours[0], ours[2])
    close(pulled, loop(lambda a, u: torch.func.vjp(f, *a)[1](u), (point, theirs[2])))
    for push in (lambda a, v: func.jvp(f, a, v)[1], lambda a, v: func.linearize(f, *a)[1](*v)):
        moved = func.vmap(push)(ours[0], ours[1])
        again = func.vmap(lambda a, v: func.vjp(lambda u: func.vjp(f, *a)[1](u), f(*a))[1](v)[0])(ours[0], ours[1])
        close(moved, again)


AXES = [
    ((0, 0), 0), ((1, -1), 1), ((-1, 0), -1), ((0, None), 0), ((None, 2), -2), ([2, 1], 2), (0, 0), (-1, 1),
]  # fmt: skip


@pytest.mark.parametrize(("in_axes", "out_axes"), AXES)
def test_axes_are_where_torch_has_them(base, in_axes, out_axes):
    x, y = RNG.normal(size=(3, 3, 3)), RNG.normal(size=(3, 3, 3))
    f = lambda x, y: x @ y.sum(0) if y.ndim == 3 else x @ y if x.ndim == 2 else (x @ y).sum(0)
    want = torch.func.vmap(f, in_dims=tuple(in_axes) if isinstance(in_axes, list) else in_axes, out_dims=out_axes)
    close(func.vmap(f, in_axes, out_axes)(base.tensor(x), base.tensor(y)), want(torch.tensor(x), torch.tensor(y)))
    close(func.vmap(f, in_axes, out_axes, chunk_size=2)(base.tensor(x), base.tensor(y)), want(torch.tensor(x), torch.tensor(y)))


def test_structures_have_structures_of_axes(base):
    p = {"w": base.tensor(np.arange(6.0).reshape(2, 3)), "b": [base.tensor([1.0, 2.0]), 7.0], "name": "net", "none": None}
    axes = ({"w": 1, "b": [None, None], "name": None, "none": None}, Pair(0, None), None)
    f = lambda p, q, note: {"a": (p["w"] * p["b"][0]).sum() * p["b"][1] + q.x, "b": (q.y, None, note["n"] * p["w"])}
    found = func.vmap(f, axes, {"a": 0, "b": (0, None, -1)})(p, Pair(np.array([1.0, 2.0, 3.0]), 5.0), {"n": 2.0})
    w = np.arange(6.0).reshape(2, 3)
    assert found["a"].tolist() == (7.0 * (w[0] + 2.0 * w[1]) + [1.0, 2.0, 3.0]).tolist()
    assert found["b"][0].tolist() == [5.0, 5.0, 5.0] and found["b"][1] is None
    assert found["b"][2].tolist() == (2.0 * w).tolist()


def test_keyword_arguments_are_passed_on(base):
    f = func.vmap(lambda x, *, scale, mode: x * scale)
    assert f(np.ones(2), scale=base.tensor([1.0, 2.0]), mode="fast").tolist() == [[1.0, 2.0]] * 2


def test_what_does_not_depend_is_repeated_or_stays(base):
    f = lambda x: (base.tensor([1.0, 2.0]), 3.0, x.shape[0])
    found = func.vmap(f)(base.tensor(np.zeros((2, 5))))
    assert [y.tolist() for y in found] == [[[1.0, 2.0]] * 2, [3.0, 3.0], [5, 5]]
    found = func.vmap(f, out_axes=(1, None, None))(base.tensor(np.zeros((2, 5))))
    assert [y.tolist() for y in found] == [[[1.0, 1.0], [2.0, 2.0]], 3.0, 5]
    found = func.vmap(f, out_axes=(None, 0, None), chunk_size=1)(base.tensor(np.zeros((2, 5))))
    assert [y.tolist() for y in found] == [[1.0, 2.0], [3.0, 3.0], 5]


def test_integers_and_truth_values_are_mapped_too(base):
    x = base.tensor([[3, 1, 2], [0, 5, 4]])
    assert func.vmap(lambda x: x.argmax())(x).tolist() == [0, 1]
    assert func.vmap(lambda x: (x > 2) & (x < 5))(x).tolist() == [[True, False, False], [False, False, True]]


MEETING = {
    "plus": lambda x, y: x + y,
    "over": lambda x, y: x / (y * y + 1),
    "larger": lambda x, y: x > y,
    "where": lambda x, y: ng.where(x > y, x, y),
    "where one": lambda x, y: ng.where(x > 0, y, 2),
    "maximum": ng.maximum,
    "clip": lambda x, y: ng.clip(x, -y, y),
    "angle": ng.atan2,
}


@pytest.mark.parametrize("name", MEETING)
def test_dtypes_meet_as_in_the_loop(base, name):
    """For PyTorch, a number without axes does not count beside an array, and with the axis of the samples it would."""
    f = MEETING[name]
    kinds = [np.full(shape, 1.5).astype(dtype) for shape in ((2,), (2, 3)) for dtype in ("float32", "float64", "int32", "int64", "bool")]
    met = 0
    for x, y in [(base.tensor(a), base.tensor(b)) for a in kinds for b in kinds]:
        try:
            alone = f(x[1], y[1])
        except DTypeError:  # truth values have no difference
            continue
        met += 1
        assert func.vmap(f)(x, y).dtype == alone.dtype
        assert func.vmap(f, (0, None))(x, y[1]).dtype == alone.dtype
        assert func.vmap(f, (None, 0))(x[1], y).dtype == alone.dtype
    assert met >= 64


def test_a_sum_with_a_number_of_more_digits_keeps_them_in_a_map(base):
    """In float32 it would be infinite."""
    c, x = base.tensor(2.0), base.tensor(np.ones((2, 3), "float32"))
    assert (func.vmap(lambda x: (x.sum() + c) * 1e30 * 1e30)(x) * 1e-60).numpy() == pytest.approx(5.0)


def test_no_samples_give_no_results(base):
    f = lambda x: (x.sin() * x).sum()
    for g, shape in ((f, (0,)), (func.grad(f), (0, 3)), (func.hessian(f), (0, 3, 3)), (lambda x: x[:, None] * x, (0, 3, 3))):
        assert func.vmap(g)(base.tensor(np.zeros((0, 3)))).shape == shape
        assert func.vmap(g, chunk_size=2)(base.tensor(np.zeros((0, 3)))).shape == shape


def test_nested_maps_are_the_outer_product_of_loops(base):
    x, y = RNG.normal(size=3), RNG.normal(size=4)
    f = lambda x, y: (x * y).sin() + x
    want = np.sin(np.outer(x, y)) + x[:, None]
    close(func.vmap(func.vmap(f, (None, 0)), (0, None))(base.tensor(x), base.tensor(y)), want)
    close(func.vmap(func.vmap(f, (0, None)), (None, 0), out_axes=-1)(base.tensor(x), base.tensor(y)), want)
    z = base.tensor(RNG.normal(size=(2, 3, 4, 5)))
    g = func.vmap(func.vmap(func.vmap(lambda r: r.softmax(0)[1:], 1), 0), -1, out_axes=2)
    want = np.exp(z.numpy()) / np.exp(z.numpy()).sum(1, keepdims=True)  # the axis that is left is the second
    close(g(z), np.moveaxis(want[:, 1:], (3, 0, 2, 1), (2, 0, 1, 3)))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_tracked_closures_are_differentiated_later(levels, depth):
    """y = sum_i tanh(w . x_i): its derivatives by w, on as many levels as there are."""
    points, w0, v = RNG.normal(size=(5, 2)), np.array([0.4, -0.7]), np.array([1.0, 0.5])
    w = levels(depth).tensor(w0, requires_grad=True)
    y = func.vmap(lambda x: (w @ x).tanh())(points)
    assert not y.marks and y.shape == (5,)
    t, s = np.tanh(points @ w0), points @ v
    wants = [t.sum(), ((1 - t**2) * s).sum(), (-2 * t * (1 - t**2) * s**2).sum(), ((1 - t**2) * (6 * t**2 - 2) * s**3).sum()]
    y = y.sum()
    for want in wants[: depth + 1]:
        assert y.item() == pytest.approx(want, rel=1e-12)
        y = (w.grad(y.backward()) * v).sum() if y.tracked_on() else y


@pytest.mark.parametrize("depth", [1, 2])
def test_gradients_of_each_sample_by_parameters_that_are_tracked_outside(levels, depth):
    """vmap(grad(loss, by w))(w, x_i), as for weights of samples; then by w again."""
    w = levels(depth).tensor([0.4, -0.7], requires_grad=True)
    x = RNG.normal(size=(5, 2))
    loss = lambda w, x: (w @ x).tanh()
    g = func.vmap(func.grad(loss), (None, 0))(w, x)
    t = np.tanh(x @ w.numpy())
    np.testing.assert_allclose(g.numpy(), (1 - t**2)[:, None] * x, rtol=1e-12)
    again = w.grad(g.backward())
    np.testing.assert_allclose(again.numpy(), ((-2 * t * (1 - t**2))[:, None] * x * x.sum(1)[:, None]).sum(0), rtol=1e-12)


def test_the_imperative_style_inside(levels):
    """d/dy and d2/dy2 of w y^3 for each sample, on a stack from outside, which stands above the samples."""
    s = levels(2)
    w = s.tensor(2.0, requires_grad=True)

    def f(x: Tensor) -> Any:
        y = s.tensor(x, requires_grad=True)
        u = w * y**3
        u_y = y.grad(u.backward())
        return u_y, y.grad(u_y.backward())

    first, second = func.vmap(f)(np.array([1.0, 2.0]))
    assert [first.tolist(), second.tolist()] == [[6.0, 24.0], [12.0, 24.0]]
    assert [w.grad(first.backward()).item(), w.grad(second.backward()).item()] == [15.0, 18.0]


@pytest.mark.parametrize("depth", [1, 2])
def test_a_derivative_by_an_outer_tensor_inside_names_the_ways_that_work(levels, depth):
    s = levels(depth)
    w = s.tensor([1.0, 2.0], requires_grad=True)
    x = np.ones((3, 2))
    by_w = lambda x: (w * x).sum().wrt(w)
    for f in (by_w, lambda x: w.grad((w * x).sum().backward()), lambda x: func.grad(lambda y: by_w(y).sum())(x)):
        with pytest.raises(LevelError, match=r"(func\.grad|vmap\(grad\(f\)\))"):
            func.vmap(f)(x)
    assert func.vmap(lambda x: func.grad(lambda w: (w * x).sum())(w))(x).tolist() == x.tolist()


def test_samples_that_were_stashed_are_told_when_they_are_used():
    stash: list[Tensor] = []
    func.vmap(lambda x: (stash.append(x * 2.0), x)[1])(np.ones(3))
    for use in (lambda x: (x + 1.0).item(), lambda x: func.grad(lambda y: y * x)(1.0)):
        with pytest.raises(LevelError, match=r"holds 3 samples of vmap level 1.*"):
            use(stash[0])


def test_numbers_go_to_the_backend_of_the_closure(base):
    w = base.tensor([[1.0, 2.0], [3.0, 4.0]])
    y = func.vmap(lambda x: w @ x)(np.ones((3, 2)))
    assert y.backend.name == base.name and y.tolist() == [[3.0, 7.0]] * 3


@pytest.mark.parametrize(
    ("run", "error", "match"),
    [
        (lambda x: func.vmap(lambda a, b: a)(x, x[:1]), ShapeError,
         r"vmap: got 2 samples in argument 0, of shape \(2, 3\) along axis 0, and 1 in argument 1, of shape \(1, 3\) along axis 0"),
        (lambda x: func.vmap(lambda a, b: a[0], (0, {"k": [1]}))((x, x), {"k": [x]}), ShapeError,
         r"2 samples in argument 0\[0\], .* and 3 in argument 1\['k'\]\[0\], of shape \(2, 3\) along axis 1; .* Try in_axes=None"),
        (lambda x: func.vmap(lambda a: a, 2)(x), ShapeError, r"vmap: got axis 2 for argument 0, of shape \(2, 3\); expected an int from"),
        (lambda x: func.vmap(lambda a: a, (0, 0))(x), ShapeError, r"vmap: got in_axes \(0, 0\) for 1 arguments; expected an entry"),
        (lambda x: func.vmap(lambda a, b: a)(x, 1.0), ShapeError, r"vmap: got argument 1, of shape \(\), to be mapped .*in_axes=None"),
        (lambda x: func.vmap(lambda a: a, None)(x), ShapeError, r"vmap: got in_axes None, which maps no argument"),
        (lambda x: func.vmap(lambda: x)(), ShapeError, r"maps no argument"),
        (lambda x: func.vmap(lambda a: a, 1.0)(x), ShapeError, r"vmap: got 1\.0 in in_axes; expected an int, or None"),
        (lambda x: func.vmap(lambda a: a, ("0",))(x), ShapeError, r"vmap: got '0' in in_axes"),
        (lambda x: func.vmap(lambda a: a, ((0, 0),))(x), ShapeError, r"vmap: got in_axes \(\(0, 0\),\) for the structure .*; expected"),
        (lambda x: func.vmap(lambda a: a, out_axes=3)(x), ShapeError,
         r"vmap: got out_axes 3 for the output, of shape \(3,\) for each sample; expected an int from -2 to 1"),
        (lambda x: func.vmap(lambda a: {"k": a}, out_axes=[0])(x), ShapeError, r"vmap: got out_axes \[0\] for the structure"),
        (lambda x: func.vmap(lambda a: (x, a), out_axes=None)(x), LevelError,
         r"vmap: got out_axes None for the output\[1\], which holds 2 samples; .* Try out_axes=0"),
        (lambda x: func.vmap(lambda a: a, chunk_size=0)(x), ShapeError, r"vmap: got chunk_size 0; expected an int from 1 on, or None"),
        (lambda x: func.vmap(lambda a: a, chunk_size=1.5)(x), ShapeError, r"vmap: got chunk_size 1\.5"),
        (lambda x: func.vmap(lambda a: None)(x), LevelError, r"vmap: the function returned a NoneType; expected a Tensor"),
        (lambda x: func.vmap(lambda a: "a")(x), LevelError, r"vmap: the function returned a str; expected a Tensor"),
        (lambda x: func.vmap(lambda a: a)("text"), DTypeError, r"vmap: got a str; expected a Tensor, a number or an array"),
        (lambda x: func.vmap(lambda a: a if a.sum() > 0 else -a)(x), LevelError, r"holds 2 samples of vmap.*ng\.where"),
        (lambda x: func.vmap(lambda a: a.sum().item())(x), LevelError, r"x\.item\(\)"),
        (lambda x: func.vmap(lambda a: a.numpy())(x), LevelError, r"x\.numpy\(\)"),
        (lambda x: func.vmap(lambda a: float(a.sum()))(x), (LevelError, ConversionError), r"float"),
        (lambda x: func.vmap(_write)(x), ImmutableError, r"x\.at"),
    ],
)  # fmt: skip
def test_a_mistake_is_a_typed_error(base, run, error, match):
    with pytest.raises(error, match=match):
        run(base.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))


def _write(x: Any) -> Any:
    x[0] = 1.0
    return x


def test_a_function_that_returns_something_else_for_each_chunk_is_told():
    runs: list[int] = []

    def f(x: Tensor) -> Any:
        runs.append(0)
        return x if len(runs) == 1 else (x, x)

    with pytest.raises(LevelError, match=r"vmap: the function returned the structure \* for one chunk and \(\*, \*\) for another"):
        func.vmap(f, chunk_size=1)(np.ones(2))


def test_writing_samples_into_an_array_from_outside_is_refused():
    out = np.zeros(3)

    def f(x: Tensor) -> Tensor:
        out[0] = x
        return x

    with pytest.raises(ValueError, match="setting an array element") as caught:  # NumPy's, over ours
        func.vmap(f)(np.ones(2))
    assert isinstance(caught.value.__cause__, LevelError)
    assert ng.tensor(out).tolist() == [0.0, 0.0, 0.0]
