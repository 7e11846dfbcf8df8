"""Nodes of elementwise operations: the adopted graph has the derivatives that torch's nested backward passes find, up to third order."""

import pytest
import torch
import torch.nn.functional as F
from adopted import compare, reals

UNARY = {
    # name: (function, least, greatest argument)
    "abs": (torch.abs, 0.1, 1.0), "neg": (torch.neg, -1, 1), "reciprocal": (torch.reciprocal, 0.5, 2.0), "square": (torch.square, -1, 1),
    "sqrt": (torch.sqrt, 0.5, 2.0), "rsqrt": (torch.rsqrt, 0.5, 2.0), "exp": (torch.exp, -1, 1), "exp2": (torch.exp2, -1, 1),
    "expm1": (torch.expm1, -1, 1), "log": (torch.log, 0.5, 2.0), "log2": (torch.log2, 0.5, 2.0), "log10": (torch.log10, 0.5, 2.0),
    "log1p": (torch.log1p, -0.5, 1.0), "sin": (torch.sin, -1, 1), "cos": (torch.cos, -1, 1), "tan": (torch.tan, -1, 1),
    "asin": (torch.asin, -0.8, 0.8), "acos": (torch.acos, -0.8, 0.8), "atan": (torch.atan, -1, 1), "sinh": (torch.sinh, -1, 1),
    "cosh": (torch.cosh, -1, 1), "tanh": (torch.tanh, -1, 1), "asinh": (torch.asinh, -1, 1), "acosh": (torch.acosh, 1.2, 2.0),
    "atanh": (torch.atanh, -0.8, 0.8), "erf": (torch.erf, -1, 1), "erfc": (torch.erfc, -1, 1), "erfinv": (torch.erfinv, -0.8, 0.8),
    "erfcx": (torch.special.erfcx, -1, 1), "log_ndtr": (torch.special.log_ndtr, -1, 1), "ndtr": (torch.special.ndtr, -1, 1),
    "sinc": (torch.sinc, 0.2, 1.0), "lgamma": (torch.lgamma, 0.5, 2.0), "digamma": (torch.digamma, 0.5, 2.0),
    "polygamma": (lambda x: torch.polygamma(1, x), 0.5, 2.0), "mvlgamma": (lambda x: torch.mvlgamma(x, 3), 1.5, 3.0),
    "ndtri": (torch.special.ndtri, 0.001, 0.999), "frexp": (lambda x: torch.frexp(x)[0], 1.1, 1.9), "angle": (torch.angle, 0.1, 1.0),
    "deg2rad": (torch.deg2rad, -1, 1), "rad2deg": (torch.rad2deg, -1, 1), "logit": (torch.logit, 0.1, 0.9),
    "logit within": (lambda x: torch.logit(x, 0.3), 0.05, 0.95), "entropy": (torch.special.entr, 0.3, 1.5),
    "frac": (torch.frac, 0.1, 0.9), "fmod number": (lambda x: torch.fmod(x, 0.3), 0.05, 0.28),
    "remainder number": (lambda x: torch.remainder(x, -0.3), 0.05, 0.28), "floor": (torch.floor, 0.1, 0.9),
    "ceil": (torch.ceil, 0.1, 0.9), "trunc": (torch.trunc, 0.1, 0.9), "round": (torch.round, 0.1, 0.4),
    "round to decimals": (lambda x: x.round(decimals=1), 0.11, 0.14), "sign": (torch.sign, -1, 1), "sgn": (torch.sgn, -1, 1),
    "positive": (torch.positive, -1, 1),
    # numbers
    "x + 1": (lambda x: x + 1, -1, 1), "1 + x": (lambda x: 1 + x, -1, 1), "x - 0.5": (lambda x: x - 0.5, -1, 1),
    "1 - x": (lambda x: 1 - x, -1, 1), "rsub": (lambda x: torch.rsub(x, 2.0, alpha=3), -1, 1), "2 x": (lambda x: 2 * x, -1, 1),
    "x / 3": (lambda x: x / 3, -1, 1), "2 / x": (lambda x: 2 / x, 0.5, 2),
    "x // 0.3": (lambda x: torch.div(x, 0.3, rounding_mode="floor"), 0.4, 0.5),
    **{f"x ** {n}": (lambda x, n=n: x**n, 0.3, 1.5) for n in (0, 1, 2, 3, -1, -2, 0.5, 2.5, -1.5, 3.0)},
    "float_power": (lambda x: torch.float_power(x, 3), -1, 1), "2 ** x": (lambda x: 2**x, -1, 1), "0.3 ** x": (lambda x: 0.3**x, -1, 1),
    "xlogy(x, 2)": (lambda x: torch.xlogy(x, 2.0), -1, 1), "xlogy(2, x)": (lambda x: torch.xlogy(2.0, x), 0.5, 1.5),
    "xlog1py(x, 2)": (lambda x: torch.special.xlog1py(x, 2.0), -1, 1),
    "xlog1py(2, x)": (lambda x: torch.special.xlog1py(2.0, x), 0.5, 1.5),
    # activations
    "relu": (F.relu, -1, 1), "relu6": (lambda x: F.relu6(10 * x), -1, 1), "sigmoid": (torch.sigmoid, -2, 2), "silu": (F.silu, -2, 2),
    "mish": (F.mish, -2, 2), "log_sigmoid": (F.logsigmoid, -2, 2), "hardswish": (lambda x: F.hardswish(4 * x), -1, 1),
    "hardtanh": (lambda x: F.hardtanh(x, -0.3, 0.4), -1, 1), "hardshrink": (lambda x: F.hardshrink(x, 0.4), -1, 1),
    "softshrink": (lambda x: F.softshrink(x, 0.4), -1, 1), "tanhshrink": (F.tanhshrink, -1, 1),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.2), -1, 1), "elu": (lambda x: F.elu(x, 1.3), -1, 1), "selu": (F.selu, -1, 1),
    "celu": (lambda x: F.celu(x, 2.0), -1, 1), "gelu": (F.gelu, -2, 2), "gelu by tanh": (lambda x: F.gelu(x, approximate="tanh"), -2, 2),
    "softplus": (F.softplus, -2, 2), "softplus with beta": (lambda x: F.softplus(x, 3.0, 2.0), -2, 2), "softsign": (F.softsign, -1, 1),
    "threshold": (lambda x: F.threshold(x, 0.2, -3.0), -1, 1), "rrelu": (lambda x: F.rrelu(x, 0.1, 0.3), -1, 1),
    # choosing
    "clamp": (lambda x: x.clamp(-0.3, 0.4), -1, 1), "clamp below": (lambda x: x.clamp(min=0.1), -1, 1),
    "clamp above": (lambda x: x.clamp(max=0.1), -1, 1), "clamp_min": (lambda x: x.clamp_min(0.1), -1, 1),
    "clamp_max": (lambda x: x.clamp_max(0.1), -1, 1), "where": (lambda x: torch.where(x > 0, x * x, 0.5), -1, 1),
    "masked_fill": (lambda x: (x * x).masked_fill(x > 0, 2.0), -1, 1), "nan_to_num": (lambda x: torch.nan_to_num(x, 1.0), -1, 1),
    # copies
    "clone": (torch.clone, -1, 1), "alias": (lambda x: x.detach() * 0 + x, -1, 1),
}  # fmt: skip

IN_PLACE = {
    "relu_": F.relu_, "elu_": lambda x: F.elu_(x, 1.3), "selu_": F.selu_, "celu_": lambda x: F.celu_(x, 2.0),
    "leaky_relu_": lambda x: F.leaky_relu_(x, 0.2), "rrelu_": lambda x: F.rrelu_(x, 0.1, 0.3),
    "hardtanh_": lambda x: F.hardtanh_(x, -0.3, 0.4), "threshold_": lambda x: F.threshold_(x, 0.2, -3.0), "tanh_": torch.tanh_,
    "sigmoid_": torch.sigmoid_, "exp_": torch.exp_, "mul_": lambda x: x.mul_(2.0), "add_": lambda x: x.add_(1.0),
    "sqrt_": lambda x: x.abs_().sqrt_(), "clamp_": lambda x: x.clamp_(-0.3, 0.4), "sin_": torch.sin_, "neg_": torch.neg_,
    "pow_": lambda x: x.pow_(3), "masked_fill_": lambda x: x.masked_fill_(x > 0, 1.0),
}  # fmt: skip

BINARY = {
    # name: (function, least, greatest argument)
    "add": (torch.add, -1, 1), "add with a factor": (lambda x, y: torch.add(x, y, alpha=2.5), -1, 1), "sub": (torch.sub, -1, 1),
    "sub with a factor": (lambda x, y: torch.sub(x, y, alpha=-1), -1, 1), "rsub": (lambda x, y: torch.rsub(x, y, alpha=2), -1, 1),
    "mul": (torch.mul, -1, 1), "div": (torch.div, 0.5, 2.0),
    "rounded quotient": (lambda x, y: torch.div(x, y, rounding_mode="trunc") * x, 0.5, 2.0), "pow": (torch.pow, 0.5, 2.0),
    "xlogy": (torch.xlogy, 0.5, 2.0), "xlog1py": (torch.special.xlog1py, 0.5, 2.0), "logaddexp": (torch.logaddexp, -1, 1),
    "logaddexp2": (torch.logaddexp2, -1, 1), "atan2": (torch.atan2, 0.3, 1.0), "hypot": (torch.hypot, 0.3, 1.0),
    "maximum": (torch.maximum, -1, 1), "minimum": (torch.minimum, -1, 1), "fmax": (torch.fmax, -1, 1), "fmin": (torch.fmin, -1, 1),
    "fmod": (torch.fmod, 0.3, 2.0), "remainder": (torch.remainder, 0.3, 2.0), "copysign": (torch.copysign, -1, 1),
    "lerp": (lambda x, y: torch.lerp(x, y + 0 * x, 0.3), -1, 1), "where": (lambda x, y: torch.where(x > y, x * x, y * x), -1, 1),
    "ldexp": (torch.ldexp, -1, 1), "clamp_min": (torch.clamp_min, -1, 1), "clamp_max": (torch.clamp_max, -1, 1),
    "clamp above": (lambda x, y: x.clamp(max=y), -1, 1), "clamp below": (lambda x, y: x.clamp(min=y), -1, 1),
}  # fmt: skip

TERNARY = {
    "addcmul": lambda x, y, z: torch.addcmul(x, y, z, value=0.7), "addcdiv": lambda x, y, z: torch.addcdiv(x, y, z, value=0.7),
    "lerp by a tensor": torch.lerp, "clamp": lambda x, y, z: x.clamp(y, z), "clamp with crossed bounds": lambda x, y, z: x.clamp(z, y),
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("inside", [False, True], ids=["of a leaf", "inside"])
def test_nodes_of_one_argument(name, inside):
    f, low, high = UNARY[name]
    middle = (low + high) / 2
    torch.manual_seed(0)
    if inside:  # of a value that its own node did not save, and read again
        compare(lambda x: f((x - middle) * 0.9 + middle).mul(x).tanh(), reals(2, 3, low=low, high=high))
    else:
        compare(f, reals(2, 3, low=low, high=high))


@pytest.mark.parametrize("shape", [(), (0, 2), (2, 1)], ids=str)
@pytest.mark.parametrize("name", ["tanh", "sigmoid", "x ** 2", "relu", "abs", "expm1", "softplus", "x + 1", "logit", "floor"])
def test_odd_shapes(name, shape):
    f, low, high = UNARY[name]
    compare(lambda x: f(x * 1.0) * x, reals(*shape, low=low, high=high))


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place(name):
    torch.manual_seed(0)
    compare(lambda x: IN_PLACE[name](x * 1.5).mul(x), reals(2, 3))


def test_rrelu_in_training():
    for f in (F.rrelu, F.rrelu_):
        x = reals(2, 3)

        def g(x, f=f):
            torch.manual_seed(3)
            return f(x * 1.5, 0.1, 0.3, training=True).sin()

        compare(g, x)


@pytest.mark.parametrize("shapes", [((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 2)), ((2,), ())], ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_nodes_of_two_arguments(name, shapes):
    f, low, high = BINARY[name]
    x, y = (reals(*shape, seed=k, low=low, high=high) for k, shape in enumerate(shapes))
    compare(lambda x, y: f(x * 1.0, y + 0.0).sin(), x, y)
    if shapes[0] == (2, 3):
        compare(f, x, y.detach(), orders=2)
        compare(f, x.detach(), y, orders=2)


@pytest.mark.parametrize("name", [name for name in BINARY if name not in ("fmod", "remainder", "rounded quotient")])
def test_the_same_tensor_twice(name):
    f, low, high = BINARY[name]
    x = reals(2, 3, low=low, high=high)
    compare(lambda x: f(x, x), x)
    compare(lambda x: f(u := x.exp(), u).cos(), x)
    compare(lambda x: f(x.t(), x.reshape(3, 2)), x)


@pytest.mark.parametrize("shapes", [((2, 3), (1, 3)), ((3, 2), (1, 1)), ((2,), (2,))], ids=str)
def test_prelu(shapes):
    x, y = (reals(*shape, seed=k) for k, shape in enumerate(shapes))
    compare(torch._prelu_kernel, x, y)
    compare(torch._prelu_kernel, x, y.detach())
    compare(torch._prelu_kernel, x.detach(), y)
    compare(lambda x: torch._prelu_kernel(x, x), x)
    compare(lambda x: F.prelu(x * 1.0, x.mean().reshape(1)).exp(), x)


@pytest.mark.parametrize("name", TERNARY)
def test_nodes_of_three_arguments(name):
    f = TERNARY[name]
    x, y, z = reals(2, 3, low=0.4, high=1.0), reals(3, seed=1, low=0.4, high=0.6), reals(2, 1, seed=2, low=0.7, high=0.9)
    for tracked in range(1, 8):
        compare(f, *(v if tracked >> k & 1 else v.detach() for k, v in enumerate((x, y, z))))


def test_one_bound_of_two_is_missing():
    x, y = reals(2, 3), reals(3, seed=1)
    compare(lambda x, y: x.clamp(min=y).clamp(max=-y), x, y)


def test_masked_fill_by_a_tensor():
    x, y = reals(2, 3), reals(seed=1)
    compare(lambda x, y: x.masked_fill(x > 0, y).sin(), x, y)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_casts(dtype):
    x = reals(2, 3)
    compare(lambda x: x.to(dtype).to(torch.float64) * x, x, orders=2, tolerance=0.05)


def test_integers_are_constants():
    x, n, scale = reals(2, 3, low=0.5), torch.tensor([1, 2, 3]), torch.tensor(3)
    compare(lambda x: x * n + x**n + n / x + x * scale + x / scale, x)


def test_numbers_do_not_change_a_dtype():
    x = reals(2, 3).detach().float().requires_grad_()
    y = reals().detach().float().requires_grad_()
    compare(lambda x: x * 2.5 + x / 3.0 + 0.1**x + torch.xlogy(x, 1.5), x, tolerance=1e-3)
    compare(lambda y: y * 2.5 + y / 3.0 + 0.1**y + torch.xlogy(y, 1.5), y, tolerance=1e-3)


def test_ldexp_by_whole_numbers():
    """torch's own gradient is 0 where they are negative."""
    n = torch.tensor([1, -2, 3])
    compare(lambda x: torch.ldexp(x, n).sin(), reals(2, 3), oracle=lambda x: (x * torch.tensor([2.0, 0.25, 8.0])).sin())


def test_drawn_numbers_are_constants():
    x = reals(2, 3, low=0.1, high=0.9)
    torch.manual_seed(0)
    drawn = torch.bernoulli(x) + torch.normal(x, 1.0) + (x * 1.0).uniform_() + F.dropout(x) + F.gumbel_softmax(x)
    compare(lambda x: drawn * x, x)


def test_quantised_numbers_pass_derivatives_on():
    x = reals(2, 3).detach().float().requires_grad_()
    compare(lambda x: torch.fake_quantize_per_tensor_affine(x * 1.5, 0.1, 0, -8, 8) * x, x, tolerance=1e-5)


# recorded backward passes

TWICE = [
    "tanh", "sigmoid", "softplus", "softplus with beta", "gelu", "gelu by tanh", "silu", "mish", "elu", "selu", "celu", "leaky_relu",
    "relu", "threshold", "hardtanh", "hardswish", "log_sigmoid", "hardshrink", "softshrink", "rrelu", "abs", "sqrt", "rsqrt",
    "reciprocal", "exp", "expm1", "log", "sin", "asin", "acosh", "atanh", "erf", "erfc", "sinc", "lgamma", "x ** 2.5", "2 ** x", "logit",
    "clamp", "tan",
]  # fmt: skip


@pytest.mark.parametrize("name", TWICE)
def test_recorded_backward_passes(name):
    f, low, high = UNARY[name]

    def slope(x, v):
        torch.manual_seed(0)
        (g,) = torch.autograd.grad(f(x * 1.0), x, v * v, create_graph=True)
        return g

    x, v = reals(2, 3, low=low, high=high), reals(2, 3, seed=1)
    compare(slope, x, v, orders=2 if "gelu" not in name else 1)  # torch has no further derivatives of some
    compare(lambda x: slope(x, torch.ones_like(x)) * x, x, orders=2 if "gelu" not in name else 1)


@pytest.mark.parametrize("name", ["elu_", "selu_", "celu_", "leaky_relu_", "relu_", "tanh_", "sigmoid_"])
def test_recorded_backward_passes_in_place(name):
    def slope(x, v):
        (g,) = torch.autograd.grad(IN_PLACE[name](x * 1.5), x, v * v, create_graph=True)
        return g

    compare(slope, reals(2, 3), reals(2, 3, seed=1), orders=2)


def test_recorded_backward_pass_of_prelu():
    def slopes(x, w, v):
        return torch.autograd.grad(torch._prelu_kernel(x * 1.0, w), (x, w), v * v, create_graph=True)

    compare(slopes, reals(2, 3), reals(2, 3, seed=2), reals(2, 3, seed=1), orders=2)
    compare(lambda x, w: slopes(x, w, torch.ones_like(x)), reals(2, 3), reals(1, 3, seed=2), orders=2)


# special points

POINTS = {
    "abs": (torch.abs, [0.0, -0.0]), "relu": (F.relu, [0.0]), "x ** 2": (lambda x: x**2, [0.0]), "x ** 3": (lambda x: x**3, [0.0]),
    "x ** 1": (lambda x: x**1, [0.0]), "x ** 2.5": (lambda x: x**2.5, [0.0]), "clamp": (lambda x: x.clamp(-1, 1), [-1.0, 1.0]),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.2), [0.0]), "hardtanh": (F.hardtanh, [-1.0, 1.0]),
    "threshold": (lambda x: F.threshold(x, 0.5, 1.0), [0.5]), "hardshrink": (F.hardshrink, [-0.5, 0.5]),
    "softshrink": (F.softshrink, [-0.5, 0.5]), "tanh far out": (torch.tanh, [-400.0, 400.0]),
    "sigmoid far out": (torch.sigmoid, [-800.0, -40.0, 40.0, 800.0]), "softplus far out": (F.softplus, [-800.0, 30.0, 800.0]),
    "gelu far out": (F.gelu, [-30.0, 30.0]), "expm1 far out": (torch.expm1, [-800.0, 0.0]),
    "log_sigmoid far out": (F.logsigmoid, [-800.0, 800.0]), "x ** 0": (lambda x: x**0, [0.0]), "sign": (torch.sign, [0.0]),
    "prelu": (lambda x: F.prelu(x, torch.full((1,), 0.3, dtype=x.dtype)), [0.0]),
}  # fmt: skip


@pytest.mark.parametrize("name", POINTS)
def test_kinks_and_tails(name):
    f, points = POINTS[name]
    x = torch.tensor(points, dtype=torch.float64, requires_grad=True)
    compare(f, x)
    compare(lambda x: f(x * 1.0), x)


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin", "hypot"])
def test_ties(name):
    x = torch.tensor([0.5, 1.0], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    compare(BINARY[name][0], x, y)


@pytest.mark.parametrize("f", [torch.sqrt, torch.log, torch.reciprocal, torch.rsqrt, lambda x: x**0.5, lambda x: x**-1],
                         ids=["sqrt", "log", "reciprocal", "rsqrt", "power 0.5", "power -1"])
def test_what_where_did_not_take_stays_out(f):
    """The infinite derivative of the branch that was not taken."""
    x = torch.tensor([0.0, 2.0], dtype=torch.float64, requires_grad=True)

    def safe(x):
        return torch.where(x > 1, f(x.clamp(min=1.0)), x)

    compare(lambda x: torch.where(x > 1, f(x), x), x, oracle=safe)


def test_powers_at_zero():
    """torch's second derivatives are NaN where those of the power are finite."""
    x, y = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in ([0.0, 0.0, 2.0], [2.0, 3.0, 0.0]))
    compare(torch.pow, x, y.detach(), oracle=lambda x, y: torch.stack([x[0] ** 2, x[1] ** 3, 1 + 0 * x[2]]))
    compare(torch.pow, x.detach(), y, oracle=lambda x, y: torch.stack([0 * y[0], 0 * y[1], (y[2] * x[2].log()).exp()]))
    compare(lambda y: 0.0**y, torch.tensor([2.0, 1.0], dtype=torch.float64, requires_grad=True), oracle=lambda y: 0 * y)


def test_elu_at_its_kink():
    """The exponential, at every order; torch says so of the first alone."""
    x = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    compare(lambda x: F.elu(x, 1.3), x, oracle=lambda x: 1.3 * x.expm1())
    compare(lambda x: F.celu(x, 2.0), x, oracle=lambda x: 2.0 * (x / 2.0).expm1())


def test_hardsigmoid():
    """torch has no second derivative of it, which is 0, and a sixth to seven digits."""
    edges = torch.tensor([-4.0, -3.0, -1.0, 2.0, 3.0, 5.0], dtype=torch.float64, requires_grad=True)
    compare(F.hardsigmoid, edges, orders=1, tolerance=1e-7)
    x = reals(2, 3)
    compare(lambda x: F.hardsigmoid(x * 4.0) * x, x, oracle=lambda x: ((x * 4.0 + 3.0) / 6.0).clamp(0.0, 1.0) * x, tolerance=1e-7)
