"""``jvp`` and ``linearize``: against PyTorch's, against the transpose, and against closed forms where they nest."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from functions import FUNCTIONS, X, alike, close, leaves, tree_map

import nestgrad as ng
from nestgrad import Tensor, func
from nestgrad.backends import NumpyBackend, TorchBackend
from nestgrad.errors import ConversionError, DTypeError, ImmutableError, LevelError, NotConnectedError, ShapeError


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")  # torch's own, when its jvp is first used
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("linearized", [False, True], ids=["jvp", "linearize"])
def test_a_tangent_is_that_of_torch(base, name, linearized):
    f, primals = FUNCTIONS[name]
    tangents = alike(primals, 3)
    ours = tree_map(base.tensor, primals)
    if linearized:
        value, push = func.linearize(f, *ours)
        tangent = push(*tangents)
    else:
        value, tangent = func.jvp(f, ours, tangents)
    want, moved = torch.func.jvp(f, tree_map(torch.tensor, primals), tree_map(torch.tensor, tangents))
    close(value, want)
    close(tangent, moved)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_forward_is_the_transpose_of_reverse(base, name):
    f, primals = FUNCTIONS[name]
    primals = tree_map(base.tensor, primals)
    v = alike(primals, 4)
    value, moved = func.jvp(f, primals, v)
    u = alike(value, 5)
    back = func.vjp(f, *primals)[1](u)
    assert _dot(u, moved) == pytest.approx(_dot(back, v), rel=1e-11)


def _dot(a: Any, b: Any) -> float:
    return sum(float((x * y).sum()) for x, y in zip(leaves(a), leaves(b), strict=True))


FIRST = {
    "grad": lambda f: func.grad(f),
    "jvp": lambda f: lambda x: func.jvp(f, (x,), (1.0,))[1],
    "vjp": lambda f: lambda x: func.vjp(f, x)[1](1.0)[0],
    "linearize": lambda f: lambda x: func.linearize(f, x)[1](1.0),
}


@pytest.mark.parametrize("path", list(itertools.product(FIRST, repeat=3)), ids="-".join)
def test_every_composition_of_three_gives_the_third_derivative(path):
    """f = exp(sin x): f''' = f (c^3 - 3 s c - c)."""
    f = lambda x: x.sin().exp()
    for kind in path:
        f = FIRST[kind](f)
    s, c = math.sin(0.7), math.cos(0.7)
    assert f(0.7).item() == pytest.approx(math.exp(s) * (c**3 - 3 * s * c - c), rel=1e-13)


@pytest.mark.parametrize("kind", FIRST)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_what_a_function_closes_over_is_differentiated_later(levels, kind, depth):
    """g(w) = d/dx sin(w x) = w cos(w x), by w on as many levels as there are; x is a number, and the result carries no marks."""
    w = levels(depth).tensor(1.3, requires_grad=True)
    g = FIRST[kind](lambda x: (w * x).sin())(0.4)
    assert not g.marks
    c, s = math.cos(0.52), math.sin(0.52)
    for want in (1.3 * c, c - 0.52 * s, -0.8 * s - 0.208 * c, -0.32 * c - 0.16 * c + 0.4**3 * 1.3 * s)[: depth + 1]:
        assert g.item() == pytest.approx(want, rel=1e-13)
        g = w.grad(g.backward()) if g.tracked_on() else g


@pytest.mark.parametrize("kind", FIRST)
def test_arguments_tracked_outside_are_differentiated_later(levels, kind):
    s = levels(2)
    x, y = s.tensor(0.4, requires_grad=True), s.tensor(0.9, requires_grad=True)
    g = FIRST[kind](lambda z: z**3 * y)(x)
    assert x.grad(g.backward()).item() == pytest.approx(6 * 0.4 * 0.9, rel=1e-14)
    assert y.grad(x.grad(g.backward()).backward()).item() == pytest.approx(2.4, rel=1e-14)


@pytest.mark.parametrize("kind", FIRST)
def test_a_linear_function_has_zero_curvature_and_stays_connected(levels, kind):
    x = levels(1).tensor(2.0, requires_grad=True)
    g = FIRST[kind](lambda z: 5.0 * z)(x)
    assert [g.item(), x.grad(g.backward()).item()] == [5.0, 0.0]
    curvature = func.jvp(lambda u: FIRST[kind](lambda z: 5.0 * z * x)(u), 1.0, 1.0)[1]
    assert [curvature.item(), x.grad(curvature.backward()).item()] == [0.0, 0.0]
    with pytest.raises(NotConnectedError):
        levels(1).tensor(1.0, requires_grad=True).grad(g.backward())


def test_directions_are_differentiated_too(levels):
    """A tangent is linear in the direction; where the output does not move, with derivative zero."""
    v = levels(1).tensor([1.0, -2.0], requires_grad=True)
    x = np.array([0.3, 0.8])
    _, push = func.linearize(lambda x: x.sin() * x.sum(), v.detach() * 0.0 + x)
    for t in (func.jvp(lambda x: x.sin() * x.sum(), x, v)[1], push(v)):
        want = np.diag(np.cos(x) * 1.1) + np.sin(x)[:, None]
        np.testing.assert_allclose(t.numpy(), want @ [1.0, -2.0], rtol=1e-14)
        np.testing.assert_allclose(v.grad(t.backward(gradient=[1.0, 3.0])).numpy(), [1.0, 3.0] @ want, rtol=1e-14)
    for t in (func.jvp(lambda x: 3.0, x, v)[1], func.linearize(lambda x: 3.0, v.detach())[1](v)):
        assert [t.item(), *v.grad(t.backward()).tolist()] == [0.0, 0.0, 0.0]


def test_a_linearized_function_runs_once():
    runs = []
    _, push = func.linearize(lambda x: (runs.append(x), x**3)[1], 2.0)
    assert [push(t).item() for t in (1.0, -2.0, 0.0)] == [12.0, -24.0, 0.0] and len(runs) == 1


PROMOTING = {
    "plus": lambda x, c: x + c,
    "less": lambda x, c: c - x,
    "times": lambda x, c: x * c,
    "where": lambda x, c: ng.where(c > 0.0, x, c),
    "maximum": lambda x, c: ng.maximum(x, c),
    "clip": lambda x, c: ng.clip(x, -c * c, c * c),
    "angle": lambda x, c: ng.atan2(x, c),
    "joined": lambda x, c: ng.concat([x, c]),
    "written": lambda x, c: c.at[0].set(x[0]),
    "product": lambda x, c: ng.outer(x, c),
    "cast": lambda x, c: x.astype("float64"),
    "numbers": lambda x, c: x.sum() + c.sum(),
}


@pytest.mark.parametrize("name", PROMOTING)
def test_a_tangent_has_the_dtype_of_what_it_is_the_tangent_of(base, name):
    """Where something that stands still has made the value of a longer dtype. In the shorter one the second line would overflow."""
    c = base.tensor([1.5, -2.0])
    x = base.tensor([0.5, 1.0]).astype("float32")
    f = lambda x: (PROMOTING[name](x, c) * 1e30) * 1e30
    value = f(x)
    assert str(value.dtype).endswith("float64")
    forward, taylor = ng.Forward(base), ng.Taylor(base, 2)
    expected = func.jvp(f, (x.astype("float64"),), (x.astype("float64"),))[1]
    for tangent in (
        func.jvp(f, (x,), (x,))[1],
        func.linearize(f, x)[1](x),
        func.taylor(f, x, x, 2)[1],
        forward.tangent(f(forward.dual(x, x))),
        taylor.terms(f(taylor.series(x, x)))[1],
        func.jacfwd(f)(x) @ x.astype("float64"),
    ):
        assert tangent.dtype == value.dtype
        np.testing.assert_allclose(tangent.numpy(), expected.numpy(), rtol=1e-6)


def test_a_linearized_function_may_make_a_stack_of_its_own(base):
    """Its derivative carries marks of that stack, of which nothing may be left when several arguments' cotangents are put together."""

    def slope(x: Tensor, y: Tensor) -> Tensor:
        z = ng.Autodiff(base).tensor(x, requires_grad=True)
        return (z**3).sum().wrt(z)

    x, y = base.tensor([0.5, -2.0]), base.tensor([1.0, 2.0, 3.0])
    _, push = func.linearize(slope, x, y)
    assert push(x, y).tolist() == (6.0 * x * x).tolist()


def test_the_imperative_style_inside(levels):
    """f(x) = d/dy (y^3 w) at y = x^2: 3 x^4 w."""
    s = levels(2)
    w = s.tensor(0.5, requires_grad=True)

    def f(x: Tensor) -> Tensor:
        y = s.tensor(x * x, requires_grad=True)
        u = y**3 * w
        return y.grad(u.backward())

    for kind in FIRST.values():
        g = kind(f)(1.1)
        assert g.item() == pytest.approx(12 * 1.1**3 * 0.5, rel=1e-13)
        assert w.grad(g.backward()).item() == pytest.approx(12 * 1.1**3, rel=1e-13)


def test_where_a_derivative_is_infinite_both_ways_agree():
    """A direction that is zero gives zero, not 0 * inf; of a branch that is not taken nothing comes through, at second order too."""
    sqrt = lambda x: x.sqrt()
    for v, want in ((0.0, 0.0), (1.0, math.inf)):
        assert func.jvp(sqrt, 0.0, v)[1].item() == func.linearize(sqrt, 0.0)[1](v).item() == want
    branch = lambda x: ng.where(x < 1.0, x * x, x.sqrt())
    for outer, inner in itertools.product(FIRST.values(), repeat=2):
        assert outer(inner(branch))(0.0).item() == 2.0


def test_has_aux_and_single_arguments():
    value, tangent, aux = func.jvp(lambda x: (x * x, {"twice": 2.0 * x, "note": "text"}), 3.0, 1.0, has_aux=True)
    assert [value.item(), tangent.item(), aux["twice"].item(), aux["note"]] == [9.0, 6.0, 6.0, "text"]
    assert aux["twice"].tracked_on() == ()
    assert func.jvp(lambda p: p[0] * p[1], [2.0, 3.0], [1.0, 1.0])[1].item() == 5.0


def test_what_was_stashed_counts_as_its_value(levels):
    w = levels(1).tensor(2.0, requires_grad=True)
    stash: list[Tensor] = []
    func.jvp(lambda x: (stash.append(x * w), x)[1], 3.0, 1.0)
    assert stash[0].item() == 6.0
    assert w.grad((stash[0] ** 2).backward()).item() == 36.0


def test_outputs_that_are_no_reals_stand_still(base):
    value, tangent = func.jvp(lambda x: (x.argmax(), x > 0, 2), base.tensor([1.0, 3.0]), np.ones(2))
    assert [v.tolist() for v in value] == [1, [True, True], 2]
    assert [t.tolist() for t in tangent] == [0.0, [0.0, 0.0], 0.0]


@pytest.mark.parametrize(
    ("run", "error", "match"),
    [
        (lambda x: func.jvp(lambda v: v, (x,), (np.ones(2),)), ShapeError,
         r"jvp: got a tangent of shape \(2,\) for argument 0, of shape \(3,\); expected the same shape"),
        (lambda x: func.jvp(lambda v: v, (x,), (1.0,)), ShapeError, r"tangent of shape \(\) for argument 0"),
        (lambda x: func.jvp(lambda v: v["a"][1], ({"a": (1.0, x)},), ({"a": (1.0, np.ones(2))},)), ShapeError,
         r"tangent of shape \(2,\) for argument 0\['a'\]\[1\]"),
        (lambda x: func.jvp(lambda v: v, (x,), (x.astype("float32"),)), DTypeError,
         r"jvp: got a tangent of dtype .*float32 for argument 0, of dtype .*float64; .* Try tangent\.astype\('float64'\)"),
        (lambda x: func.jvp(lambda v: v, (x,), (np.array([1, 0, 0]),)), DTypeError, r"tangent of dtype .*int64"),
        (lambda x: func.jvp(lambda v: v, (x,), ((1.0, x),)), ShapeError,
         r"got a tangent of structure \(\*, \*\) for argument 0, of structure \*; expected the same nesting"),
        (lambda x: func.jvp(lambda v: v, (x,), (None,)), ShapeError, r"got a tangent of structure None for argument 0"),
        (lambda x: func.jvp(lambda v: v, (x, x), (x,)), ShapeError, r"got 1 tangents for 2 primals; expected one for each"),
        (lambda x: func.jvp(lambda v: v, (), ()), ShapeError, r"jvp: got argnums \(\) for 0 positional"),
        (lambda x: func.jvp(lambda v: v, (3,), (1,)), DTypeError, r"jvp: got an argument of dtype .*int64; expected a floating one"),
        (lambda x: func.jvp(lambda v: None, x, x), LevelError, r"jvp: the function returned a NoneType; expected a Tensor"),
        (lambda x: func.jvp(lambda v: "v", x, x), LevelError, r"jvp: the function returned a str; expected a Tensor"),
        (lambda x: func.jvp(lambda v: v, x, x, has_aux=True), LevelError, r"jvp: with has_aux the function must return \(output, aux\)"),
        (lambda x: func.jvp(lambda v: v, x, x.numpy().tolist()), ShapeError, r"structure \[\*, \*, \*\]"),
        (lambda x: func.linearize(lambda v: v, x)[1](np.ones(2)), ShapeError, r"linearize: got a tangent of shape \(2,\)"),
        (lambda x: func.linearize(lambda v: v, x)[1](x, x), ShapeError, r"linearize: got 2 tangents for 1 primals"),
        (lambda x: func.linearize(lambda v: v, 1), DTypeError, r"linearize: got an argument of dtype"),
        (lambda x: func.jvp(lambda v: np.sin(v), x, x), ConversionError, r"np|numpy"),
        (lambda x: func.jvp(lambda v: float(v[0]), x, x), ConversionError, r"float\(x\)"),
        (lambda x: func.jvp(lambda v: _write(v), x, x), ImmutableError, r"x\.at"),
        (lambda x: func.jvp(lambda v: v, x, _other(x)), LevelError, r"jvp: got a tangent over .* for argument 0 over .*; expected one"),
    ],
)  # fmt: skip
def test_a_mistake_is_a_typed_error(base, run, error, match):
    with pytest.raises(error, match=match):
        run(base.tensor(X))


def _write(x: Any) -> Any:
    x[0] = 1.0
    return x


def _other(x: Tensor) -> Tensor:
    return (TorchBackend(dtype="float64") if x.backend.name == "numpy" else NumpyBackend()).tensor(X)


@pytest.mark.parametrize("depth", [1, 2])
def test_a_derivative_by_an_outer_variable_inside_says_that_the_level_is_lost(levels, depth):
    """x moves on a level that is younger than w's, so a look-up of w goes below it, and what depends on x is lost."""
    w = levels(depth).tensor(2.0, requires_grad=True)
    with pytest.raises(LevelError, match=r"lives on jvp level .*, which has no backward pass"):
        func.jvp(lambda x: (x * w).wrt(w), 1.5, 1.0)
    s = levels(1)

    def f(x: Tensor) -> Tensor:
        y = s.tensor(x, requires_grad=True)
        return w.grad((y * w).backward()) * x

    with pytest.raises(LevelError, match=r"taken out of the level of this jvp .*Make a variable inside"):
        func.jvp(f, 1.5, 1.0)


def test_a_failing_function_leaves_nothing_running(levels):
    s = levels(1)
    with pytest.raises(ZeroDivisionError):
        func.jvp(lambda x: 1 / 0, 1.0, 1.0)
    assert s.tensor(1.0, requires_grad=True).tracked_on() == (s.tape,)
