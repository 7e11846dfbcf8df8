"""Functions that have no derivative, or do what no function of mathematics does: an error that says so, or the right number."""

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nestgrad as ng
from nestgrad import func
from nestgrad.errors import ConversionError, DTypeError, ImmutableError, LevelError, MutatedError, ShapeError
from nestgrad.levels.base import running

X, ONE = np.array([1.0, 2.0, 3.0]), np.ones(3)
S = ng.Autodiff(ng.NumpyBackend())

TRANSFORMS: dict[str, Callable[[Callable[..., Any], Any], Any]] = {
    "grad": lambda f, x: func.grad(f)(x),
    "vjp": lambda f, x: func.vjp(f, x)[1]()[0],
    "jvp": lambda f, x: func.jvp(f, (x,), (ONE,))[1],
    "linearize": lambda f, x: func.linearize(f, x)[1](ONE),
    "jacrev": lambda f, x: func.jacrev(f, chunk_size=2)(x),
    "jacfwd": lambda f, x: func.jacfwd(f, chunk_size=2)(x),
    "hessian": lambda f, x: func.hessian(f, chunk_size=2)(x),
    "hessian_diag": lambda f, x: func.hessian_diag(f, chunk_size=2)(x),
    "taylor": lambda f, x: func.taylor(f, x, ONE, 2)[2],
    "derivative": lambda f, x: func.derivative(f, (0, 1))(x),
    "vmap": lambda f, x: func.vmap(f, chunk_size=2)(x),
}
NAMED = {"hessian_diag": "grad"}
"""What messages call those that are made of another one."""

DIFFERENTIATE = sorted({*TRANSFORMS} - {"vmap"})


def _assigns(x: Any) -> Any:
    x[...] = 1.0
    return x.sum()


async def _waits(x: Any) -> Any:
    return x.sum()


def _yields(x: Any) -> Any:
    yield x


class _Thing:
    pass


BAD: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "writes into its argument": (_assigns, ImmutableError, r"^item assignment: a Tensor is immutable, .* Try y = x\.at\[index\]\.set"),
    "returns nothing": (
        lambda x: None,
        LevelError,
        r"^{name}: the function returned a NoneType; expected a Tensor\. Does it end without a r",
    ),
    "returns an empty structure": (lambda x: {}, LevelError, r"^{name}: the function returned a dict; expected a Tensor$"),
    "returns text": (lambda x: "x", LevelError, r"^{name}: the function returned a str; expected a Tensor$"),
    "returns a function": (lambda x: lambda: x, LevelError, r"^{name}: the function returned a function; expected a Tensor$"),
    "returns an object": (lambda x: _Thing(), LevelError, r"^{name}: the function returned a \w*\.?_Thing; expected a Tensor$"),
    "is a generator": (_yields, LevelError, r"^{name}: the function returned a generator; expected a Tensor$"),
    "returns a complex number": (lambda x: 1j, LevelError, r"^{name}: the function returned a complex; expected a Tensor$"),
    "returns complex numbers": (lambda x: np.array([1j]), DTypeError, r"got complex numbers .*expected real ones"),
    "returns objects": (lambda x: np.array([None]), DTypeError, r"whose dtype would be object; expected numbers"),
    "calls NumPy": (lambda x: np.sum(x), ConversionError, r"^np\.sum of a Tensor: NumPy does not know its levels\. Try ng\.sum"),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_function_that_is_none_is_told_so_by_each_transform(name, bad):
    f, error, match = BAD[bad]
    with pytest.raises(error, match=match.format(name=NAMED.get(name, name))):
        TRANSFORMS[name](f, X)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_coroutine_is_no_function(name):
    made: list[Any] = []
    with pytest.raises(LevelError, match=rf"^{NAMED.get(name, name)}: the function returned a coroutine; expected a Tensor$"):
        TRANSFORMS[name](lambda x: (made.append(_waits(x)), made[-1])[1], X)
    for coroutine in made:
        coroutine.close()


@pytest.mark.parametrize("name", TRANSFORMS)
def test_an_array_of_another_library_is_told_from_a_tensor(name):
    torch = pytest.importorskip("torch")
    with pytest.raises(
        LevelError, match=rf"^{NAMED.get(name, name)}: the function returned a torch\.Tensor; expected a Tensor over numpy\. Try"
    ):
        TRANSFORMS[name](lambda x: torch.tensor(1.0), X)


@pytest.mark.parametrize("name", ["grad", "jacrev", "jacfwd", "hessian", "hessian_diag", "derivative"])
def test_whole_numbers_and_booleans_are_not_differentiable(name):
    called = NAMED.get(name, name)
    for f, dtype in ((lambda x: x.argmax(), "int64"), (lambda x: x[0] > 1.0, "bool"), (lambda x: 3, "int64")):
        with pytest.raises(
            DTypeError, match=rf"^{called}: the function returned dtype {dtype} as its output, and whole numbers and booleans"
        ):
            TRANSFORMS[name](f, X)
    if name not in {"grad", "hessian_diag"}:
        with pytest.raises(
            DTypeError, match=rf"^{called}: .* dtype int64 as its output\['k'\]\[1\], .*Try x\.astype\('float64'\) where zeros"
        ):
            TRANSFORMS[name](lambda x: {"y": x.sum(), "k": (1.0, x.astype("int64"))}, X)


def test_whole_numbers_beside_outputs_stand_still():
    """Where an output may be data: the tangent, and the coefficients, are zeros."""
    f = lambda x: (x * x, x.argmax(), x > 1.0)
    for tangent in (func.jvp(f, (X,), (ONE,))[1], func.linearize(f, X)[1](ONE), func.taylor(f, X, ONE, 1)[1]):
        assert [t.tolist() for t in tangent] == [[2.0, 4.0, 6.0], 0.0, [0.0, 0.0, 0.0]]
    assert func.vjp(f, X)[1]((ONE, 5.0, ONE))[0].tolist() == [2.0, 4.0, 6.0]


@pytest.mark.parametrize("name", sorted({*DIFFERENTIATE} - {"derivative"}))
def test_a_value_that_was_taken_out_of_the_level_is_refused(name):
    """Never a zero: x.inner() depends on x, and this level did not see how."""
    with pytest.raises(LevelError, match=r"taken out of the level of this|cannot leave it this way"):
        TRANSFORMS[name](lambda x: (x.inner() ** 2).sum(), X)


SQUARE = {
    "grad": 2 * X, "vjp": 2 * X, "jvp": np.array(12.0), "linearize": np.array(12.0), "jacrev": 2 * X, "jacfwd": 2 * X,
    "hessian": 2 * np.eye(3), "hessian_diag": 2 * ONE, "taylor": np.array(3.0), "derivative": np.array(0.0), "vmap": X**2,
}  # fmt: skip
"""Of the sum of squares."""


@pytest.mark.parametrize("name", TRANSFORMS)
def test_an_argument_is_copied_before_the_function_runs(name):
    """It writes into the array that it was called with, which it has captured: the derivative is that at the old values, in all chunks."""
    a = X.copy()

    def f(x: Any) -> Any:
        a[...] = 99.0
        return (x * x).sum()

    np.testing.assert_allclose(TRANSFORMS[name](f, a).numpy(), SQUARE[name], rtol=1e-14)
    assert a.tolist() == [99.0] * 3


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_captured_array_counts_as_it_was_when_it_was_used(name):
    weights = ONE.copy()

    def f(x: Any) -> Any:
        weights[...] = 1.0
        y = (x * x * weights).sum()
        weights[...] = 50.0
        return y

    want = 3 * X**2 if name == "vmap" else SQUARE[name]  # there each sample meets all weights
    np.testing.assert_allclose(TRANSFORMS[name](f, X).numpy(), want, rtol=1e-14)


def test_shared_memory_that_the_function_writes_into_is_noticed():
    a = X.copy()
    shared = ng.NumpyBackend().from_numpy(a)

    def f(x: Any) -> Any:
        y = (shared * x).sum()
        a.flags.writeable = True
        a[...] = 7.0
        return y

    with pytest.raises(MutatedError, match="from_numpy"):
        func.grad(f)(ONE)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_an_error_of_the_function_comes_out_and_leaves_nothing_behind(name):
    class OwnError(Exception):
        pass

    made: list[Any] = []

    def f(x: Any) -> Any:
        func.grad(lambda z: (z * x).sum())(x)
        y = (x**2).sum()
        made.append(weakref.ref(y))
        raise OwnError(f"after {y.ndim}")

    try:
        TRANSFORMS[name](f, X)
        raise AssertionError("the error was swallowed")
    except OwnError as error:
        assert str(error) == "after 0"
    assert running.get() is None and made[0]() is None
    np.testing.assert_allclose(TRANSFORMS[name](lambda x: (x * x).sum(), X).numpy(), SQUARE[name], rtol=1e-14)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_tensor_that_the_function_keeps_is_a_value_afterwards(name):
    """And a value of many samples is none."""
    kept: list[Any] = []
    TRANSFORMS[name](lambda x: (kept.append(x * 2.0), (x * x).sum())[1], X)
    if name == "vmap":
        with pytest.raises(
            LevelError, match=r"holds 2 samples of vmap level 1, which has ended, is used outside of it; expected what the function r"
        ):
            (kept[0] + 1.0).numpy()
    else:
        assert (kept[0] + 1.0).tolist() == [3.0, 5.0, 7.0] and not kept[0].tracked_on()


@pytest.mark.parametrize("name", DIFFERENTIATE)
def test_a_variable_made_inside_of_a_function_is_not_its_argument(name):
    """A stack made outside tracks a copy of the argument, which keeps its history."""
    f = lambda x: (S.tensor(x, requires_grad=True) ** 2).sum()
    np.testing.assert_allclose(TRANSFORMS[name](f, X).numpy(), SQUARE[name], rtol=1e-14)


def test_what_is_called_must_be_a_function_of_the_arguments():
    with pytest.raises(TypeError, match="positional argument"):
        func.grad(lambda x, y: x)(1.0)
    with pytest.raises(TypeError, match="not callable"):
        func.grad(3)(1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["grad", "value_and_grad", "jacrev", "jacfwd", "hessian", "hessian_diag", "derivative"])
def test_argnums_are_numbers_of_arguments_each_once(name):
    """A second variable for the same argument would take the place of the first, whose derivative would be a zero."""
    f, called = lambda x, y: x * y, {"value_and_grad": "grad"}.get(name, name)
    made = lambda argnums: func.derivative(f, (0,), argnums) if name == "derivative" else getattr(func, name)(f, argnums)
    for argnums in (2, -3, (0, 2), (), [True], 0.0, "0", None):
        with pytest.raises(
            ShapeError, match=rf"^{called}: got argnums .* for 2 positional arguments; expected the numbers of some of them"
        ):
            made(argnums)(1.0, 2.0)
    for argnums in ((0, 0), (1, 0, -1), [0, -2]):
        with pytest.raises(ShapeError, match=rf"^{called}: got argnums .* for 2 positional arguments; expected each of them once at most"):
            made(argnums)(1.0, 2.0)


@pytest.mark.parametrize("axes", [False, [0.0], (True,), "0"])
def test_axes_of_a_map_are_ints(axes):
    with pytest.raises(ShapeError, match=r"^vmap: got .* in in_axes"):
        func.vmap(lambda x: x, axes)(X)
