"""``taylor``: against nested forward mode of PyTorch, against SymPy, and composed with the other transforms."""

import math
from typing import Any

import numpy as np
import pytest
import sympy
import torch
from functions import FUNCTIONS, X, alike, close, tree_map

from nestgrad import Tensor, func
from nestgrad.errors import DTypeError, LevelError, OrderError, ShapeError

ORDER = 4


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")  # torch's own, when its jvp is first used
@pytest.mark.parametrize("name", FUNCTIONS)
def test_coefficients_are_those_of_nested_forward_mode_in_torch(base, name):
    f, primals = FUNCTIONS[name]
    v = alike(primals, 7)
    found = func.taylor(lambda args: f(*args), tree_map(base.tensor, primals), v, ORDER)
    assert len(found) == ORDER + 1
    x, v = tree_map(torch.tensor, primals), tree_map(torch.tensor, v)
    along = lambda t: f(*_moved(x, v, t))
    zero, one = torch.tensor(0.0, dtype=torch.float64), torch.tensor(1.0, dtype=torch.float64)
    for k in range(ORDER + 1):
        # k + 1 roundings multiply with a condition that grows with the order; twelve digits are left of sixteen
        close(found[k], tree_map(lambda y, k=k: y / math.factorial(k), along(zero)), rtol=1e-11, atol=1e-12)
        along = lambda t, g=along: torch.func.jvp(g, (t,), (one,))[1]


def _moved(x: Any, v: Any, t: Any) -> Any:
    if isinstance(x, dict):
        return {key: _moved(x[key], v[key], t) for key in x}
    if isinstance(x, (list, tuple)):
        return type(x)(_moved(a, b, t) for a, b in zip(x, v, strict=True))
    return x + t * v


W = sympy.Symbol("w")
Z = sympy.Symbol("z")
G = sympy.exp(sympy.sin(W * Z)) * W


def _symbolic(expression: Any, w: float, z: float) -> float:
    return float(expression.subs({W: w, Z: z}).evalf(30))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_what_a_function_closes_over_is_differentiated_later(levels, depth):
    """Coefficient 3 of w exp(sin(w z)) in z, and its derivatives by w on all levels."""
    w = levels(depth).tensor(0.8, requires_grad=True)
    g = func.taylor(lambda z: (w * z).sin().exp() * w, 0.3, 1.0, 3)[3]
    want = sympy.diff(G, Z, 3) / 6
    for _ in range(depth + 1):
        assert g.item() == pytest.approx(_symbolic(want, 0.8, 0.3), rel=1e-12)
        want = sympy.diff(want, W)
        g = w.grad(g.backward()) if g.tracked_on() else g


def test_taylor_of_grad_and_grad_of_taylor_agree_with_sympy():
    slope = lambda w: func.grad(lambda v: (v * 0.3).sin().exp() * v)(w)
    want = [_symbolic(sympy.diff(G, W, k + 1), 0.8, 0.3) / math.factorial(k) for k in range(4)]
    assert [c.item() for c in func.taylor(slope, 0.8, 1.0, 3)] == pytest.approx(want, rel=1e-12)
    by_w = lambda k: func.grad(lambda w: func.taylor(lambda z: (w * z).sin().exp() * w, 0.3, 1.0, 3)[k])(0.8).item()
    want = [_symbolic(sympy.diff(G, Z, k, W), 0.8, 0.3) / math.factorial(k) for k in range(4)]
    assert [by_w(k) for k in range(4)] == pytest.approx(want, rel=1e-12)


def test_taylor_of_taylor_is_the_series_of_two_variables():
    """c_jk of exp(x y + x) at (x0 + s, y0 + t)."""
    x, y = sympy.symbols("x y")
    h = sympy.exp(x * y + x)
    inner = lambda a, k: func.taylor(lambda b: (a * b + a).exp(), 0.5, 1.0, 3)[k]
    for k in range(4):
        found = [c.item() for c in func.taylor(lambda a, k=k: inner(a, k), 0.2, 1.0, 3)]
        want = [float(sympy.diff(h, x, j, y, k).subs({x: 0.2, y: 0.5})) / math.factorial(j) / math.factorial(k) for j in range(4)]
        assert found == pytest.approx(want, rel=1e-12)


def test_the_first_coefficient_is_the_tangent(base):
    f = lambda p: {"y": p["w"].sin() @ p["w"], "z": [p["b"] * p["w"].sum()]}
    x, v = {"w": base.tensor([0.1, 0.7]), "b": 2.0}, {"w": np.array([1.0, -1.0]), "b": 0.5}
    coefficients = func.taylor(f, x, v, 2)
    value, tangent = func.jvp(f, x, v)
    close(coefficients[0], value)
    close(coefficients[1], tangent)


def test_the_imperative_style_inside(levels):
    """f(x) = d/dy y^3 at y = x^2 = 3 x^4: the series of 3 (1 + t)^4."""
    s = levels(1)

    def f(x: Tensor) -> Tensor:
        y = s.tensor(x * x, requires_grad=True)
        return y.grad((y**3).backward())

    assert [c.item() for c in func.taylor(f, 1.0, 1.0, 5)] == pytest.approx([3.0, 12.0, 18.0, 12.0, 3.0, 0.0], rel=1e-14)


def test_coefficients_that_are_zero_stay_connected(levels):
    x = levels(1).tensor(2.0, requires_grad=True)
    for c in func.taylor(lambda z: 5.0 * z, x, 1.0, 3)[1:] + func.taylor(lambda z: x * x, 1.0, 1.0, 2)[1:]:
        assert x.grad(c.backward()).item() == 0.0
    v = levels(1).tensor(1.0, requires_grad=True)
    c = func.taylor(lambda z: z**2, v.detach() * 3.0, v, 2)
    assert [v.grad(c[k].backward()).item() for k in (1, 2)] == [6.0, 2.0]


@pytest.mark.parametrize(
    ("run", "error", "match"),
    [
        (lambda x: func.taylor(lambda v: v, x, x, 0), OrderError, r"taylor: got order 0; expected an int from 1 on"),
        (lambda x: func.taylor(lambda v: v, x, x, -2), OrderError, r"taylor: got order -2"),
        (lambda x: func.taylor(lambda v: v, x, x, 1.5), OrderError, r"taylor: got order 1\.5"),
        (lambda x: func.taylor(lambda v: v, x, x, True), OrderError, r"taylor: got order True"),
        (lambda x: func.taylor(lambda v: v, x, np.ones(2), 2), ShapeError,
         r"taylor: got a direction of shape \(2,\) for argument 0, of shape \(3,\); expected the same shape"),
        (lambda x: func.taylor(lambda v: v[0], (x, 1.0), x, 2), ShapeError, r"taylor: got a direction of structure \* for argument 0, of"),
        (lambda x: func.taylor(lambda v: v, x, x.astype("float32"), 2), DTypeError, r"direction of dtype .*float32 .*Try direction\.as"),
        (lambda x: func.taylor(lambda v: v, 3, 1, 2), DTypeError, r"taylor: got an argument of dtype"),
        (lambda x: func.taylor(lambda v: [], x, x, 2), LevelError, r"taylor: the function returned a list; expected a Tensor"),
    ],
)  # fmt: skip
def test_a_mistake_is_a_typed_error(base, run, error, match):
    with pytest.raises(error, match=match):
        run(base.tensor(X))
