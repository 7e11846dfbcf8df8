"""Free functions: they are the methods and operators, on Tensors, numbers and arrays; ``where`` and ``safe_where``."""

import inspect
import math

import numpy as np
import pytest

import nestgrad as ng
from nestgrad.errors import DTypeError, LevelError, ShapeError

UNARY = {
    "sqrt": (np.sqrt, 0.3, 2.0), "rsqrt": (lambda x: 1 / np.sqrt(x), 0.3, 2.0), "reciprocal": (np.reciprocal, 0.3, 2.0),
    "square": (np.square, -2.0, 2.0), "exp": (np.exp, -2.0, 2.0), "expm1": (np.expm1, -2.0, 2.0), "log": (np.log, 0.3, 2.0),
    "log1p": (np.log1p, -0.5, 2.0), "sin": (np.sin, -2.0, 2.0), "cos": (np.cos, -2.0, 2.0), "tan": (np.tan, -1.0, 1.0),
    "asin": (np.arcsin, -0.9, 0.9), "acos": (np.arccos, -0.9, 0.9), "atan": (np.arctan, -2.0, 2.0), "sinh": (np.sinh, -2.0, 2.0),
    "cosh": (np.cosh, -2.0, 2.0), "tanh": (np.tanh, -2.0, 2.0), "asinh": (np.arcsinh, -2.0, 2.0), "acosh": (np.arccosh, 1.2, 3.0),
    "atanh": (np.arctanh, -0.9, 0.9), "abs": (np.abs, -2.0, 2.0), "negative": (np.negative, -2.0, 2.0),
    "erf": (np.vectorize(math.erf, otypes=[float]), -2.0, 2.0), "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -2.0, 2.0),
    "softplus": (lambda x: np.log(1 + np.exp(x)), -2.0, 2.0), "relu": (lambda x: np.maximum(x, 0), -2.0, 2.0),
}  # fmt: skip
CONSTANT = {
    "sign": np.sign, "floor": np.floor, "ceil": np.ceil, "round": np.round, "isnan": np.isnan, "isfinite": np.isfinite,
    "logical_not": np.logical_not,
}  # fmt: skip
COMPARISONS = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or"]


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_the_reals(name, check_derivatives):
    oracle, low, high = UNARY[name]
    points = np.linspace(low, high, 6).reshape(2, 3) + 0.0137
    points = np.clip(points, low, high)
    for point in (points, points[0, 0], np.zeros((0, 2))):
        check_derivatives(getattr(ng, name), oracle, point)
        if hasattr(ng.Tensor, name):
            check_derivatives(lambda x: getattr(x, name)(), oracle, point)


@pytest.mark.parametrize("name", UNARY)
def test_of_numbers_and_arrays(name, native):
    oracle, low, high = UNARY[name]
    x = 0.25 * low + 0.75 * high
    for given in (x, np.float64(x), np.array(x), native(np.array(x))):
        got = getattr(ng, name)(given)
        assert isinstance(got, ng.Tensor) and got.shape == ()
        np.testing.assert_allclose(got.item(), oracle(x), rtol=1e-14)  # a rounding or two of another library
    whole = np.array([1, 2]) if high >= 2 and low < 1.5 else np.array([0, 0])
    np.testing.assert_allclose(getattr(ng, name)(whole).numpy(), oracle(whole.astype(float)), rtol=1e-14)


@pytest.mark.parametrize("name", CONSTANT)
def test_constants(name, stack):
    a = np.array([-1.5, -0.5, 0.0, 0.5, 1.5, 2.5, np.inf, np.nan])
    x = stack.tensor(a, requires_grad=True)
    marked = (x * x * x).wrt(x)
    for got in (getattr(ng, name)(x), getattr(ng, name)(x * 1.0 + 0.0 * marked) if name != "isfinite" else getattr(ng, name)(x)):
        assert got.level == 0 and not got.marks
    np.testing.assert_array_equal(getattr(ng, name)(x).numpy(), CONSTANT[name](a))
    np.testing.assert_array_equal(getattr(ng, name)(a).numpy(), CONSTANT[name](a))


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(name, stack):
    a, c = np.array([[0.0, 1.0, 2.0]]), np.array([[1.0], [0.0]])
    x, y = stack.tensor(a, requires_grad=True), stack.tensor(c)
    for left, right, p, q in ((x, y, a, c), (x, c, a, c), (a, y, a, c), (x, 1.0, a, 1.0), (1, x, 1, a), (a, 1.0, a, 1.0), (2, 1, 2, 1)):
        got = getattr(ng, name)(left, right)
        assert got.level == 0
        np.testing.assert_array_equal(got.numpy(), getattr(np, name)(p, q))


TWO = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "power": np.power, "maximum": np.maximum,
    "minimum": np.minimum,
}  # fmt: skip


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two(name, check_derivatives):
    x, y = np.array([[0.5, 1.5, 2.5]]), np.array([[1.0], [2.0]])
    f, oracle = getattr(ng, name), TWO[name]
    check_derivatives(f, oracle, x, y)
    check_derivatives(lambda x: f(x, y), lambda x: oracle(x, y), x)
    check_derivatives(lambda y: f(x, y), lambda y: oracle(x, y), y)
    check_derivatives(lambda x: f(x, 2), lambda x: oracle(x, 2.0), x)
    check_derivatives(lambda x: f(2, x), lambda x: oracle(2.0, x), x)
    assert f(3.0, 2).item() == oracle(3.0, 2) and isinstance(f(3.0, 2), ng.Tensor)


def test_ties_of_maximum_and_minimum_share(stack):
    x, y = stack.tensor([1.0, 2.0], requires_grad=True), stack.tensor([1.0, 1.0], requires_grad=True)
    grads = ng.maximum(x, y).backward()
    assert grads.wrt(x).tolist() == [0.5, 1.0] and grads.wrt(y).tolist() == [0.5, 0.0]
    grads = x.minimum(y).backward()
    assert grads.wrt(x).tolist() == [0.5, 0.0] and grads.wrt(y).tolist() == [0.5, 1.0]


def test_clamp(stack, check_derivatives):
    a = np.array([-2.0, -0.3, 0.4, 1.7])
    for low, high in ((-1.0, 1.0), (None, 1.0), (-1.0, None), (None, None), (0, 1)):
        check_derivatives(lambda x, lo=low, hi=high: ng.clamp(x, lo, hi), lambda x, lo=low, hi=high: x.clip(lo, hi), a)
    low, high = np.array([-1.0, -1.0, 1.0, 1.0]), np.array(1.5)
    check_derivatives(lambda x, lo, hi: x.clip(lo, hi), lambda x, lo, hi: np.minimum(np.maximum(x, lo), hi), a, low, high)
    x = stack.tensor([-1.0, 1.0], requires_grad=True)
    assert x.clamp(-1.0, 1.0).wrt(x).tolist() == [1.0, 1.0]
    assert ng.clamp(ng.tensor([1, 5]), 0.5, 2.5).tolist() == [1.0, 2.5] and ng.clamp(ng.tensor([1, 5]), 2, 3).dtype == np.int64


def test_where_chooses(check_derivatives, base):
    c = np.array([[True], [False]])
    x, y = np.array([1.0, 2.0, 3.0]), np.array([[4.0], [5.0]])
    for cond in (c, base.tensor(c), base.asarray(c), c.astype(int), base.tensor(c.astype(float))):
        check_derivatives(lambda x, y, cond=cond: ng.where(cond, x, y), lambda x, y: np.where(c, x, y), x, y)
        check_derivatives(lambda x, cond=cond: ng.where(cond, x, 7.0), lambda x: np.where(c, x, 7.0), x)
        check_derivatives(lambda x, cond=cond: ng.where(cond, 7, x), lambda x: np.where(c, 7.0, x), x)
    for cond in (True, False, np.True_, 1, 0.0):
        check_derivatives(lambda x, y, cond=cond: ng.where(cond, x, y), lambda x, y, cond=cond: np.where(cond, x, y), x, y)
    got = ng.where(base.tensor(c), 1.0, 0.0)
    assert got.tolist() == [[1.0], [0.0]] and got.dtype == base.default_dtype
    assert ng.where(c, 1, 0).tolist() == [[1], [0]] and ng.where(True, 1.0, 2.0).item() == 1.0


def test_a_condition_is_a_constant(stack):
    """A number as the condition is compared with 0, and neither its levels nor its marks go on."""
    x = stack.tensor([2.0, 0.0], requires_grad=True)
    marked = (x * x).wrt(x)
    for cond in (x, marked, marked > 0):
        y = ng.where(cond, x * x, x)
        assert not y.marks and y.wrt(x).tolist() == [4.0, 1.0]


def test_where_stops_what_is_infinite_or_nan_at_every_order(stack):
    x = stack.tensor([0.0, 4.0], requires_grad=True)
    for f in (lambda v: v.sqrt(), lambda v: v.log(), lambda v: 1 / v, lambda v: v**0.5):
        y = ng.where(x > 0, f(x), 0.0)
        first = y.wrt(x)
        second = first.wrt(x)
        for order in (y, first, second):
            assert order[0].item() == 0.0 and np.isfinite(order.numpy()).all()


def test_safe_where_never_shows_a_function_the_others_inputs(stack):
    seen = []

    def f(v):
        seen.append(v.numpy())
        return v.sqrt()

    def g(v):
        seen.append(v.numpy())
        return 1 / (v - 4.0)

    x = stack.tensor([4.0, 0.0, 1.0], requires_grad=True)
    y = ng.safe_where(x == 4.0, f, g, x, safe=(9.0, 2.0))
    np.testing.assert_array_equal(seen, [[4.0, 9.0, 9.0], [2.0, 0.0, 1.0]])
    np.testing.assert_array_equal(y.numpy(), [2.0, -0.25, -1 / 3])
    first = y.wrt(x)
    np.testing.assert_allclose(first.numpy(), [0.25, -1 / 16, -1 / 9], rtol=1e-15)
    np.testing.assert_allclose(first.wrt(x).numpy(), [-1 / 32, -2 / 64, -2 / 27], rtol=1e-15)


def test_safe_where_stops_functions_that_where_cannot(stack):
    """``x / x`` has no rule of its own that could know about 0/0."""

    def f(v):
        return v.sin() / v

    x = stack.tensor([0.0, 2.0], requires_grad=True)
    y = ng.safe_where(x != 0, f, lambda v: 1 - v * v / 6, x)
    first = y.wrt(x)
    second = first.wrt(x)
    np.testing.assert_allclose(y.numpy(), [1.0, np.sin(2) / 2], rtol=1e-15)
    np.testing.assert_allclose(first.numpy(), [0.0, np.cos(2) / 2 - np.sin(2) / 4], rtol=1e-14)
    np.testing.assert_allclose(second.numpy(), [-1 / 3, -np.sin(2) / 2 - np.cos(2) / 2 + np.sin(2) / 4], rtol=1e-14)


def test_safe_where_stops_the_norm_at_the_origin(stack):
    """Its second derivative there is NaN, whatever the cotangent: ``norm(x)**2`` must not get a wrong number. So ``where`` lets it pass."""
    x = stack.tensor([[0.0, 0.0], [3.0, 4.0]], requires_grad=True)
    off = (x * x).sum(1, keepdims=True) > 0
    for choose, clean in ((lambda: ng.safe_where(off, lambda v: v.norm(1, keepdims=True), lambda v: 0.0, x), True),
                          (lambda: ng.where(off, x.norm(1, keepdims=True), 0.0), False)):  # fmt: skip
        second = choose().wrt(x).wrt(x).numpy()
        assert np.isfinite(second[1]).all() and np.isfinite(second[0]).all() == clean


def test_safe_where_of_two_inputs(stack):
    x, y = stack.tensor([1.0, 2.0], requires_grad=True), stack.tensor([0.0, 4.0], requires_grad=True)
    z = ng.safe_where(y != 0, lambda a, c: a / c, lambda a, c: a, x, y)
    assert z.tolist() == [1.0, 0.5] and z.wrt(x).tolist() == [1.0, 0.25] and z.wrt(y).tolist() == [0.0, -0.125]


def test_what_does_not_fit_is_named():
    with pytest.raises(ShapeError, match=r"where: .*do not broadcast"):
        ng.where(np.ones(2, bool), np.ones(3), 0.0)
    with pytest.raises(DTypeError, match=r"sin|tensor: got a str"):
        ng.sin("a")
    with pytest.raises(DTypeError, match=r"got a list"):
        ng.maximum(ng.tensor([1.0]), [1.0])
    with pytest.raises(DTypeError, match=r"complex"):
        ng.exp(1j)
    torch = pytest.importorskip("torch")
    with pytest.raises(LevelError, match=r"different base backends"):
        ng.where(True, ng.tensor([1.0]), ng.tensor(torch.ones(1)))


METHODS = ["sum", "mean", "prod", "max", "min", "var", "norm", "logsumexp", "softmax", "log_softmax", "argmax", "argmin",
           "ravel", "transpose", "squeeze"]  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_functions_with_a_method_are_the_method(name, base):
    a = np.linspace(-1.0, 2.0, 6).reshape(2, 3)
    x = base.tensor(a)
    np.testing.assert_array_equal(getattr(ng, name)(x).numpy(), getattr(x, name)().numpy())
    np.testing.assert_allclose(getattr(ng, name)(a).numpy(), getattr(x, name)().numpy(), rtol=1e-14)
    if "axis" in inspect.signature(getattr(ng, name)).parameters and name != "squeeze":
        np.testing.assert_array_equal(getattr(ng, name)(x, axis=1).numpy(), getattr(x, name)(axis=1).numpy())


def test_shapes_by_function(base):
    x = base.tensor(np.arange(6.0).reshape(2, 3))
    assert ng.reshape(x, (3, -1)).shape == (3, 2) and ng.reshape(x, 6).shape == (6,) and ng.permute(x, (1, 0)).shape == (3, 2)
    assert ng.transpose(x, (0, 1)).shape == (2, 3) and ng.swapaxes(x, 0, 1).shape == (3, 2) and ng.expand_dims(x, 0).shape == (1, 2, 3)
    assert ng.broadcast_to(x, (4, 2, 3)).shape == (4, 2, 3) and ng.pad(x, 1).shape == (4, 5)
    assert ng.squeeze(ng.zeros((1, 2)), 0).shape == (2,)


def test_every_function_has_the_parameters_of_its_method():
    for name in ng.__all__:
        function, method = getattr(ng, name), getattr(ng.Tensor, name, None)
        if name in ("inner", "backward"):  # x.inner() takes a level off, and x.backward() runs one pass
            continue
        if inspect.isfunction(function) and inspect.isfunction(method):
            of_function = list(inspect.signature(function).parameters)
            of_function.remove("x" if "x" in of_function else of_function[0])
            of_method = [p for p in list(inspect.signature(method).parameters)[1:] if p not in ("dim", "keepdim")]  # torch's words
            assert len(of_function) == len(of_method), name
            if not any(p.kind is p.VAR_POSITIONAL for p in inspect.signature(method).parameters.values()):
                assert of_function == of_method or of_method == ["other"], name
