"""Dtypes: what stays, what is promoted, in which dtype gradients come, and that integers and booleans lose no derivative."""

import numpy as np
import pytest

import nestgrad as ng
from nestgrad.errors import DTypeError

NUMBERS = [2, 2.5, -1, True, 0.1, np.float64(0.1)]


def name(x):
    return str(x.dtype).removeprefix("torch.")


@pytest.fixture
def stacks(single, base):
    """A stack whose default is float32, one whose default is float64."""
    return ng.Autodiff(ng.Autodiff(single)), ng.Autodiff(ng.Autodiff(base))


ARITHMETIC = {
    "add": lambda x, c: x + c, "radd": lambda x, c: c + x, "sub": lambda x, c: x - c, "rsub": lambda x, c: c - x, "mul": lambda x, c: x * c,
    "rmul": lambda x, c: c * x, "div": lambda x, c: x / c, "rdiv": lambda x, c: c / x, "pow": lambda x, c: x**c, "rpow": lambda x,
    c: abs(c) ** x,
    "maximum": lambda x, c: x.maximum(c), "minimum": lambda x, c: ng.minimum(c, x), "where": lambda x, c: ng.where(x > 1, x, c),
    "clamp": lambda x, c: x.clamp(-9.0, c), "set": lambda x, c: x.at[0].set(c), "add at": lambda x, c: x.at[0].add(c),
    "stack": lambda x, c: ng.stack([x.flatten()[0], c]),
    "pad": lambda x, c: x.pad(1, c),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("op", ARITHMETIC.values(), ids=ARITHMETIC)
def test_a_python_number_changes_no_floating_dtype(op, dtype, stacks):
    for S in stacks:
        for data in ([1.5, 0.5], [[1.5]]):
            for number in NUMBERS:
                x = S.tensor(data, requires_grad=True, dtype=dtype)
                y = op(x, number)
                assert name(y) == dtype, number
                assert name(y.wrt(x)) == dtype and name(y.wrt(x).wrt(x)) == dtype


METHODS = ["sqrt", "exp", "log", "sin", "tan", "tanh", "sigmoid", "softplus", "erf", "relu", "abs", "square", "sum", "mean", "prod", "max",
           "var", "norm", "logsumexp", "softmax", "log_softmax", "flatten", "asin", "rsqrt", "reciprocal", "log1p"]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("method", METHODS)
def test_methods_and_their_derivatives_stay_in_the_dtype(method, dtype, stacks):
    for S in stacks:
        for data in ([0.25, 0.5], 0.5):
            if method.endswith("softmax") and data == 0.5:
                continue
            x = S.tensor(data, requires_grad=True, dtype=dtype)
            y = getattr(x, method)()
            assert name(y) == name(y.wrt(x)) == name(y.wrt(x).wrt(x)) == dtype


INTEGERS = {"int64": [1, 2], "int32": [1, 2], "uint8": [1, 2], "bool": [True, False]}


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_meet_python_floats_in_the_backends_dtype(dtype, stacks):
    """At its full precision: over torch this would be torch's own default, single precision, whatever the backend's is."""
    for S in stacks:
        default, a = S.base.default_dtype, np.array(INTEGERS[dtype], float)
        i = S.tensor(INTEGERS[dtype], dtype=dtype)
        cases = [
            (i * 0.1, a * 0.1), (0.1 * i, a * 0.1), (i + 0.1, a + 0.1), (0.1 - i, 0.1 - a), (i / 3, a / 3), (1 / (i + 1), 1 / (a + 1)),
            (i / 3.0, a / 3), (i / (i + 2), a / (a + 2)), (i**0.5, a**0.5), (i**2.0, a**2), (0.3**i, 0.3**a),
            (i * np.float64(0.1), a * 0.1),
            (np.float64(3) / (i + 1), 3 / (a + 1)), (ng.divide(i, 3), a / 3), (i.sin(), np.sin(a)), (i.exp(), np.exp(a)),
            (ng.cos(i), np.cos(a)),
            (i.mean(), a.mean()), (i.var(), a.var()), (i.softmax(), np.exp(a) / np.exp(a).sum()), (i.clamp(0.1, 1.1), a.clip(0.1, 1.1)),
            (i.maximum(0.1), np.maximum(a, 0.1)), (ng.minimum(0.1, i), np.minimum(a, 0.1)),
            (ng.where(i > 1, i, 0.1), np.where(a > 1, a, 0.1)),
            (ng.stack([i[0], 0.1]), [a[0], 0.1]),
        ]  # fmt: skip
        for got, want in cases:
            assert got.dtype == default
            eps = 2e-16 if "64" in str(default) else 1e-7
            np.testing.assert_allclose(got.numpy(), want, rtol=4 * eps)  # a few roundings


def test_comparing_integers_with_floats_is_exact(base):
    """In single precision both would be 2**24."""
    i = base.tensor([2**24, 2**24 + 1])
    assert (i > 2.0**24).tolist() == [False, True] and (2.0**24 == i).tolist() == [True, False]


def test_integers_stay_integers_beside_integers(base):
    i, mask = base.tensor([3, 4]), base.tensor([True, False])
    made = [
        i + 1, 2 * i, i - i, i**2, -i, abs(i), i.sum(), i.max(), i.square(), i.maximum(2), i.clamp(1, 3), i.T, i[0], i.at[0].set(1),
        i.pad(1),
        i.sign(), i.floor(), i.round(), mask * 2, mask + 1, 1 - mask, mask.sum(), i * mask, ng.where(mask, i, 0), ng.stack([i, i]),
    ]  # fmt: skip
    for y in made:
        assert name(y) == "int64"
    np.testing.assert_array_equal((1 - mask).numpy(), [0, 1])
    np.testing.assert_array_equal((i - mask).numpy(), [2, 4])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_beside_variables_lose_no_derivative(dtype, stacks):
    """A mask or an index as a factor, a shift, a base or an exponent is a constant; the gradient has the variable's dtype."""
    for S in stacks:
        for own in ("float32", "float64"):
            c = S.tensor(INTEGERS[dtype], dtype=dtype)
            a = np.array(INTEGERS[dtype], float)
            x = S.tensor([1.5, 2.5], requires_grad=True, dtype=own)
            p = np.array([1.5, 2.5])
            cases = [
                (c * x, a), (x * c, a), (x + c, a * 0 + 1), (c - x, a * 0 - 1), (x - c, a * 0 + 1), (c / x, -a / p**2),
                (x / (c + 1), 1 / (a + 1)),
                (x**c, np.where(a == 0, 0, a * p ** (a - 1))), ((c + 1) ** x, np.log(a + 1) * (a + 1) ** p), (x.maximum(c), (p > a) + 0.0),
                (ng.where(c > 1, x * x, c), np.where(a > 1, 2 * p, 0)), (x @ c, a), (ng.einsum("i,i", c, x), a),
                (ng.concat([c, x]), a * 0 + 1),
                (ng.stack([x, c]), a * 0 + 1), (x.at[0].add(c[0]), a * 0 + 1), (x.at[0].set(c[0]), np.array([0.0, 1.0])),
            ]  # fmt: skip
            for y, want in cases:
                first = y.wrt(x)
                assert name(first) == own
                np.testing.assert_allclose(first.numpy(), want, rtol=1e-6)  # single precision on some
            second = ((c * x) * x).wrt(x).wrt(x)
            assert name(second) == own
            np.testing.assert_array_equal(second.numpy(), 2 * a)


@pytest.mark.parametrize("method", ["sin", "tanh", "exp", "sqrt", "sigmoid", "softplus", "log", "tan", "reciprocal", "erf"])
def test_gradients_have_the_dtype_of_the_input(method, stacks):
    """Beside a tensor of another precision, at both orders."""
    for S in stacks:
        w = S.tensor([3.0, 4.0], dtype="float64")
        x = S.tensor([0.25, 0.5], requires_grad=True, dtype="float32")
        y = getattr(x, method)() * w
        assert name(y) == "float64"
        first = y.wrt(x)
        assert name(first) == "float32" and name((first * w).wrt(x)) == "float32"


def test_a_cast_is_cast_back(stack):
    x = stack.tensor([1.5, 2.5], requires_grad=True, dtype="float32")
    y = x.astype("float64")
    assert name(y) == "float64" and name((y * y).wrt(x)) == "float32" and name((y * y).wrt(y)) == "float64"
    assert (y**3).wrt(x).wrt(x).tolist() == [9.0, 15.0]
    assert x.astype("float32") is x and x.astype(np.float32) is x


def test_a_cast_to_integers_is_a_constant(stack):
    """It is constant between its steps; a straight-through gradient would be a wrong one."""
    a = np.array([-2.7, -0.5, 0.5, 2.7, 0.0])
    x = stack.tensor(a, requires_grad=True)
    marked = (x * x * x).wrt(x) * 1.0
    for dtype in ("int64", "int32", "bool", int, bool):
        got = x.astype(dtype)
        assert got.level == 0 and not got.marks and not marked.astype(dtype).marks
        np.testing.assert_array_equal(got.numpy(), a.astype(got.numpy().dtype))
        np.testing.assert_array_equal((x * got).wrt(x).numpy(), got.numpy().astype(float))
    assert stack.tensor([1, 0]).astype(bool).tolist() == [True, False] and stack.tensor([True]).astype(float).tolist() == [1.0]


def test_integers_cannot_require_gradients(stack):
    for data in (1, [1, 2], True, np.arange(3)):
        with pytest.raises(DTypeError, match=r"expected a floating one.*dtype='float64'"):
            stack.tensor(data, requires_grad=True)
        with pytest.raises(DTypeError, match=r"astype"):
            stack.tensor(data).require_grad(levels=[stack])
    assert stack.tensor(1, requires_grad=True, dtype="float32").level == 2


def test_arrays_promote_as_their_library_does(base):
    single, double = (base.tensor([1.0], dtype=d) for d in ("float32", "float64"))
    assert name(single * double) == name(double + single) == "float64"
    assert name(single * np.ones(1)) == name(np.ones(1) * single) == "float64"
    assert name(single * np.ones(1, np.float32)) == "float32"


def test_results_without_axes_keep_their_dtype(stacks):
    """NumPy gives scalars for them, and its float64 is a Python float."""
    for S in stacks:
        for dtype in ("float32", "float64"):
            x = S.tensor(2.0, requires_grad=True, dtype=dtype)
            other = "float64" if dtype == "float32" else "float32"
            one = S.tensor([2.0], dtype=dtype)
            for y in (x + x, x * 2.5, x.sin(), (x * x).wrt(x), x.sum(), one[0], one.sum()):
                assert name(y) == name(y + 1.5) == name(y + y) == dtype
                assert y.shape == ()
                assert name(y * S.tensor([1.0], dtype=other)) in ("float32", "float64")
            z = x.detach() * 1.0
            assert name(ng.stack([S.tensor(1.0, dtype=dtype), z])) == dtype


def test_unknown_dtypes_are_named(base):
    for call in (lambda d: base.tensor([1.0], dtype=d), lambda d: base.tensor([1.0]).astype(d), lambda d: ng.zeros(2, d, base)):
        with pytest.raises(DTypeError, match=r"unknown dtype|cannot compute"):
            call("float7")
        with pytest.raises(DTypeError, match=r"complex"):
            call("complex64")
