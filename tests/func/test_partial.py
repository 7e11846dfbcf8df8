"""``derivative``: against SymPy, for all coordinates to order 4 and some to order 6, in structures, and composed with other transforms."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import sympy

import nestgrad as ng
from nestgrad import func
from nestgrad.errors import DTypeError, IndexRangeError, LevelError, ShapeError
from nestgrad.levels.autodiff import Autodiff

X, Y, Z, W = SYMBOLS = sympy.symbols("x y z w")
FIELD = sympy.exp(X * Y) * sympy.sin(W * Z + X) + Y**3 * Z**2 * X
POINT = (0.3, -0.7, 1.1)


def field(p: Any, w: Any = 1.3) -> Any:
    return (p[0] * p[1]).exp() * (w * p[2] + p[0]).sin() + p[1] ** 3 * p[2] ** 2 * p[0]


def symbolic(expression: Any, point: Any = POINT, w: float = 1.3) -> float:
    return float(expression.subs(dict(zip(SYMBOLS, (*point, w), strict=True))).evalf(30))


def by(axes: Any) -> Any:
    return sympy.diff(FIELD, *(SYMBOLS[a] for a in axes)) if axes else FIELD


ALL = [axes for k in range(5) for axes in itertools.combinations_with_replacement(range(3), k)]
ALL += [(0, 0, 0, 2, 2, 2), (0, 1, 1, 1, 1, 2)]  # of which some are by series in series


@pytest.mark.parametrize("axes", ALL, ids=str)
def test_each_partial_derivative_is_that_of_sympy(base, axes):
    """The order of the axes does not matter: the reversed one is another nesting of levels."""
    want = symbolic(by(axes))
    for order in (axes, axes[::-1]):
        # hundreds of roundings in sums of terms of a size around 10
        assert func.derivative(field, order)(base.tensor(POINT)).item() == pytest.approx(want, rel=1e-12, abs=1e-13)


def test_a_point_may_be_a_number_several_arguments_or_a_structure(base):
    """The same coordinates, however they are handed over."""
    want = symbolic(by((0, 1, 1)))
    x, y, z = POINT
    three = lambda x, y, z: field((x, y, z))
    several = func.derivative(three, (0, 1, 1), argnums=(0, 1, 2))(base.tensor(x), y, z)
    others = func.derivative(three, (1, 0, 1), argnums=(1, 0))(x, base.tensor(y), z)  # y is coordinate 0 here: u_yxx
    structure = func.derivative(lambda p: field((p["b"], p["a"], p["c"])), (1, 0, 0))({"b": base.tensor(x), "a": y, "c": z})
    assert several.item() == structure.item() == pytest.approx(want, rel=1e-13)
    assert others.item() == pytest.approx(symbolic(by((0, 0, 1))), rel=1e-13)
    assert func.derivative(lambda t: (2.0 * t).sin(), [0, -1, np.int64(0)])(0.4).item() == pytest.approx(-8 * math.cos(0.8), rel=1e-14)
    assert func.derivative(lambda k, p: field(p, k), (-1,), argnums=-1)(1.3, base.tensor(POINT)).item() == pytest.approx(
        symbolic(by((2,))), rel=1e-13
    )
    assert func.derivative(lambda p, *, w: field(p, w), (2, 2))(base.tensor(POINT), w=1.3).item() == pytest.approx(
        symbolic(by((2, 2))), rel=1e-13
    )


def test_outputs_of_any_shape_and_structure(base):
    x = base.tensor([2.0, 5.0])
    found = func.derivative(lambda p: {"v": p**3 * p[1], "m": [ng.stack([p, p * p[0]]), 7.0]}, (0, 1))(x)
    assert found["v"].tolist() == [12.0, 0.0] and found["m"][0].tolist() == [[0.0, 0.0], [0.0, 1.0]] and found["m"][1].item() == 0.0
    assert func.derivative(lambda p: p**2, ())(np.array([1.0, 2.0])).tolist() == [1.0, 4.0]


def test_high_orders_stay_in_range():
    """Of 1/(1 - x): 20!, to the last bit. Of sin in float32: k! is out of its range from order 35 on."""
    assert func.derivative(lambda x: 1.0 / (1.0 - x), (0,) * 20)(0.0).item() == 2432902008176640000
    found = func.derivative(lambda x: x.sin(), (0,) * 61)(np.float32(0.0))
    assert found.dtype == np.float32 and found.item() == pytest.approx(1.0, rel=1e-6)


def test_a_pure_derivative_runs_the_function_once():
    runs: list[int] = []
    f = lambda p: (runs.append(1), field(p))[1]
    func.derivative(f, (0, 0, 0, 0, 0))(np.array(POINT))
    func.derivative(f, (0, 1, 1))(np.array(POINT))
    assert len(runs) == 2


@pytest.mark.parametrize("depth", [1, 2])
def test_what_a_function_closes_over_is_differentiated_later(levels, depth):
    w = levels(depth).tensor(1.3, requires_grad=True)
    g, want = func.derivative(lambda p: field(p, w), (0, 2, 2))(np.array(POINT)), by((0, 2, 2))
    assert not g.marks
    for _ in range(depth + 1):
        assert g.item() == pytest.approx(symbolic(want), rel=1e-12)
        want = sympy.diff(want, W)
        g = w.grad(g.backward()) if g.tracked_on() else g


def test_within_and_around_other_transforms():
    """u_xyy and its derivatives, by every way that leads there; a map stands inside or outside."""
    p = np.array(POINT)
    third = func.derivative(field, (0, 1, 1))
    gradient = [symbolic(sympy.diff(by((0, 1, 1)), s)) for s in (X, Y, Z)]
    near = lambda found, want: np.testing.assert_allclose(found.numpy(), want, rtol=1e-12, atol=1e-13)
    near(func.grad(third)(p), gradient)
    near(func.jacrev(third)(p), gradient)
    near(func.jacfwd(third)(p), gradient)
    near(func.vmap(func.grad(third))(np.stack([p, p]))[1], gradient)
    near(func.derivative(func.grad(field), (0, 1, 1))(p), gradient)
    near(func.derivative(func.derivative(field, (1,)), (1, 0))(p), symbolic(by((0, 1, 1))))
    near(func.taylor(third, p, np.array([1.0, 0.0, 0.0]), 2)[2], symbolic(by((0, 0, 0, 1, 1))) / 2)
    near(func.hessian(third)(p)[0, 2], symbolic(by((0, 0, 1, 1, 2))))
    points = np.stack([p, 2 * p, -p])
    near(func.vmap(third)(points), [symbolic(by((0, 1, 1)), q) for q in points])
    both = func.derivative(lambda q: func.vmap(lambda c: field(q * c))(np.array([1.0, 2.0])), (1, 2))(p)
    near(both, [symbolic(by((1, 2)), p), 4 * symbolic(by((1, 2)), 2 * p)])
    program = func.trace(third)(p)
    near(func.grad(lambda q: func.call(program, q))(p), gradient)


def test_no_derivative_is_the_function_of_the_same_tensors():
    """As with axes, what is the point comes as Tensors, and what stands beside it as it is."""
    seen = []

    def product(p: Any, q: Any, k: Any) -> Any:
        seen.append((type(p["x"]), type(q), type(k)))
        return p["x"] * q * k

    for axes in ((), (0,)):
        func.derivative(product, axes, argnums=(0, 1))({"x": 2.0}, 3.0, 4.0)
    assert seen == [(ng.Tensor, ng.Tensor, float)] * 2
    assert func.derivative(lambda p: p[0].log(), ())(np.array([1.0, 2.0])).item() == 0.0


def test_the_imperative_style_inside_and_outside(base):
    s = Autodiff(Autodiff(base))

    def slope(p: Any) -> Any:
        q = s.tensor(p, requires_grad=True)
        return field(q).wrt(q)[1]

    found = func.derivative(slope, (0, 1))(s.tensor(POINT, requires_grad=True))
    assert found.item() == pytest.approx(symbolic(by((0, 1, 1))), rel=1e-12)
    x = s.tensor(POINT, requires_grad=True)
    np.testing.assert_allclose(
        func.derivative(field, (0, 1, 1))(x).wrt(x).numpy(), [symbolic(by((0, 1, 1, a))) for a in range(3)], rtol=1e-12
    )


def test_a_derivative_that_is_zero_is_connected(levels):
    x = levels(1).tensor([1.0, 2.0], requires_grad=True)
    for axes in ((0, 1), (0, 0), (1, 0, 1)):
        g = func.derivative(lambda p: p[0] * 3.0 + p[1], axes)(x)
        assert g.item() == 0.0 and x.grad(g.backward()).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("run", "error", "match"),
    [
        (lambda x: func.derivative(lambda p: p.sum(), (0, 3))(x), IndexRangeError,
         r"derivative: got axis 3 for a point of 3 coordinates; expected an int from -3 to 2"),
        (lambda x: func.derivative(lambda p: p, (0, 1))(2.0), IndexRangeError, r"axis 1 for a point of 1 coordinate; expected an int from"),
        (lambda x: func.derivative(lambda p: p.sum(), (0,))(x[:0]), IndexRangeError, r"got axis 0 for a point of 0 coordinates"),
        (lambda x: func.derivative(lambda p: p, (0, 1.0)), ShapeError, r"derivative: got axes \(0, 1\.0\); expected a tuple of ints"),
        (lambda x: func.derivative(lambda p: p, (True,)), ShapeError, r"derivative: got axes \(True,\)"),
        (lambda x: func.derivative(lambda p: p, 0), ShapeError, r"derivative: got axes 0; expected a tuple of ints"),
        (lambda x: func.derivative(lambda p: p.sum(), (0, 1))(ng.stack([x, x])), ShapeError,
         r"got argument 0 of shape \(2, 3\); expected a point, of shape \(d,\), or a number\. Try vmap\(derivative\(f, axes\)\)"),
        (lambda x: func.derivative(lambda t, x: t * x, (0, 1), (0, 1))(x, x), ShapeError,
         r"got argument 0 of shape \(3,\); expected a number, since the point is several arguments"),
        (lambda x: func.derivative(lambda p: p, (0,), argnums=1)(x), ShapeError, r"derivative: got argnums 1 for 1 positional"),
        (lambda x: func.derivative(lambda p: p, (0,))(np.array([1, 2])), DTypeError, r"derivative: got an argument of dtype .*int64"),
        (lambda x: func.derivative(lambda p: None, (0,))(x), LevelError, r"derivative: the function returned a NoneType"),
    ],
)  # fmt: skip
def test_a_mistake_is_a_typed_error(base, run, error, match):
    with pytest.raises(error, match=match):
        run(base.tensor(POINT))
