"""Expressions of several ops against sympy, to order 4, mixed partials in every order of differentiation.

Each expression is written once, in operators and in the functions of a namespace: sympy's, or ours as methods of Tensors. The right
values are exact derivatives evaluated with 30 digits.
"""

from itertools import combinations_with_replacement

import pytest
import sympy

from nestgrad.tensor import Tensor

ORDER = 4
POINT = {"x": 0.7, "y": -0.4, "z": 1.3}


class Ours:
    """Functions of sympy's names, on Tensors."""

    def __getattr__(self, name):
        return lambda v: getattr(v, {"Abs": "abs", "ln": "log"}.get(name, name))()

    def Pow(self, base, exponent):
        return base**exponent

    def Max(self, a, b):
        return a.maximum(b)

    def Min(self, a, b):
        return a.minimum(b)


EXPRESSIONS = {
    "polynomial": lambda f, x, y, z: 3 * x**4 * y - 2 * x * y**3 * z + 0.5 * z**2 * x**2 - y + 7,
    "quotient": lambda f, x, y, z: (x * y + z) / (1 + x**2 + y**2),
    "quotient of quotients": lambda f, x, y, z: (x / z) / (z / (y + 2)),
    "wave": lambda f, x, y, z: f.sin(2 * x + y) * f.cos(z * x),
    "gaussian": lambda f, x, y, z: f.exp(-(x**2) - y * z),
    "chirp": lambda f, x, y, z: f.sin(x**2 * z) * f.exp(-y),
    "tower of sines": lambda f, x, y, z: f.sin(f.cos(f.sin(x * y) + z)),
    "exp of exp": lambda f, x, y, z: f.exp(f.exp(x * y) / z),
    "logarithms": lambda f, x, y, z: f.log(x + z) * f.log(1 + x**2 + y**2),
    "log of log": lambda f, x, y, z: f.log(2 + f.log(z + x) + y**2),
    "roots": lambda f, x, y, z: f.sqrt(x * z + 1) / f.sqrt(1 + y**2),
    "distance": lambda f, x, y, z: f.sqrt(x**2 + y**2 + z**2),
    "softened potential": lambda f, x, y, z: 1 / f.sqrt(0.01 + x**2 + (y - z) ** 2),
    "tangents": lambda f, x, y, z: f.tan(x * y) + f.atan(x / z),
    "inverse sine": lambda f, x, y, z: f.asin(x * y / z) * f.acos(x / 2),
    "hyperbolic": lambda f, x, y, z: f.sinh(x * y) / f.cosh(z - x),
    "net": lambda f, x, y, z: f.tanh(1.5 * x - 0.8 * y + 0.1) * f.tanh(0.6 * z * x),
    "inverse hyperbolic": lambda f, x, y, z: f.asinh(x + y * z) + f.atanh(x * y),
    "area cosine": lambda f, x, y, z: f.acosh(z + x**2 + y**2),
    "error function": lambda f, x, y, z: f.erf(x * z - y) * x,
    "powers with functions": lambda f, x, y, z: f.Pow(x, y) + f.Pow(z, x * y),
    "tower": lambda f, x, y, z: f.Pow(x, f.Pow(z, y)),
    "fractional powers": lambda f, x, y, z: x**2.5 * z**-0.3 + (1 + y**2) ** 1.5,
    "negative powers": lambda f, x, y, z: x**-3 * z + (x - y) ** -2,
    "number to a power": lambda f, x, y, z: 2.0 ** (x * y) * z,
    "absolute": lambda f, x, y, z: f.Abs(x * y) ** 3 + f.Abs(y) * z,
    "larger": lambda f, x, y, z: f.Max(x * z, y) ** 2 * f.sin(y),
    "smaller": lambda f, x, y, z: f.Min(x, y * z) ** 3 + x * y * z,
    "shared parts": lambda f, x, y, z: (lambda s: s * f.sin(s) + s**2 * z)(f.exp(x) * y),
    "reused many times": lambda f, x, y, z: (lambda s: (lambda t: t * t + s * t)(s * s + x))(x * y * z),
    "linear": lambda f, x, y, z: 2 * x - 3 * y + 0.5 * z,
    "constant in two": lambda f, x, y, z: f.exp(x) * 2 - 1,
    "product of all": lambda f, x, y, z: x * y * z * f.sin(x) * f.cos(y) * f.exp(z / 3),
    "burgers kernel": lambda f, x, y, z: -2 * z * f.sinh(x) / (f.cosh(x) - f.exp(-y)),
    "black and scholes": lambda f, x, y, z: x * (1 + f.erf((f.log(x / z) + 0.1) / 1.4142135623730951)) / 2 - z * f.exp(y * 0.3),
}


@pytest.fixture(scope="module")
def right():
    """Exact partial derivatives by their multi-index, evaluated with 30 digits; each is computed once."""
    symbols = sympy.symbols("x y z", real=True)
    known = {}

    def value(name, variables):
        key = (name, variables)
        if key not in known:
            expression = EXPRESSIONS[name](sympy, *symbols) if not variables else value(name, variables[:-1])[0]
            derivative = expression if not variables else sympy.diff(expression, symbols["xyz".index(variables[-1])])
            exact = {s: sympy.Float(POINT[s.name], 30) for s in symbols}
            known[key] = derivative, float(sympy.N(derivative.subs(exact), 30))
        return known[key]

    return lambda name, variables: value(name, variables)[1]


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_all_partial_derivatives_to_order_4(double, nest, right, name):
    stack = nest(double, ORDER)
    variables = {s: stack.tensor(v, requires_grad=True) for s, v in POINT.items()}
    root = EXPRESSIONS[name](Ours(), *variables.values())
    assert root.item() == pytest.approx(right(name, ""), rel=1e-14)
    scale = {k: max(abs(right(name, "".join(w))) for w in combinations_with_replacement("xyz", k)) for k in range(1, ORDER + 1)}

    def follow(derivative, path):
        """All derivatives further on; a mixed one is reached in every order that its variables have."""
        if len(path) == ORDER:
            return
        gradients = derivative.backward()
        for s, variable in variables.items():
            further = gradients.get(variable)
            want = right(name, "".join(sorted(path + s)))
            if further is None:
                assert want == 0.0, f"d{path + s}: not connected, expected {want}"
                continue
            assert isinstance(further, Tensor)
            # float64 through some hundred operations; cancelling terms are as large as the derivatives of that order
            assert further.item() == pytest.approx(want, rel=1e-11, abs=1e-12 * scale[len(path) + 1]), f"d{path + s}"
            follow(further, path + s)

    follow(root, "")


def test_there_are_a_few_dozen():
    assert len(EXPRESSIONS) >= 35
