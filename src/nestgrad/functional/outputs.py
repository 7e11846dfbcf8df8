"""The user's function: what it returns is looked at in every call."""

from collections.abc import Callable
from typing import Any

from nestgrad.errors import DTypeError, FunctionalError, ImmutableError, LevelError
from nestgrad.func import value_and_grad
from nestgrad.functional.inputs import listed
from nestgrad.functional.strictness import independent
from nestgrad.tensor import Tensor
from nestgrad.tensor.foreign import spelled
from nestgrad.tensor.handle import Handle, is_floating


class Function:
    """The function that was given, as one that returns a tuple.

    Attributes:
        several: Whether it returns a tuple. Known when it has run.
        shapes: Of its outputs, likewise.
    """

    __slots__ = ("__dict__", "dtypes", "func", "name", "several", "shapes", "strict")

    def __init__(self, name: str, func: Callable[..., Any], strict: bool) -> None:
        self.name, self.func, self.strict = name, func, strict
        self.several: bool | None = None
        self.shapes: list[tuple[int, ...]] = []
        self.dtypes: list[Any] = []

    def __call__(self, *xs: Tensor) -> tuple[Tensor, ...]:
        """The outputs.

        Raises:
            FunctionalTypeError: If they are neither a Tensor nor a tuple of them.
            DTypeError: If one is not floating.
            LevelError: If one is over another base backend than the inputs.
            FunctionalError: If another call has returned something else.
        """
        several, outs = listed("outputs of the user-provided function", self.name, self._run(xs), arrays=False)
        for i, y in enumerate(outs):
            if y.b is not xs[0].b and y.b.base != xs[0].b.base:
                raise LevelError(
                    f"{self.name}: output {i} of the user-provided function is over {y.b.base!r} and the inputs over {xs[0].b.base!r}, "
                    "so it cannot depend on them; expected one base backend. Try a Tensor that is made of the inputs"
                )
            if not is_floating(y):
                if self.strict:
                    raise FunctionalError(f"{independent(i)}, and y.astype('float64'): its dtype is {y.dtype}")
                raise DTypeError(
                    f"Output {i} of the user-provided function given to {self.name} has dtype {y.dtype}, and only a floating one has "
                    "derivatives. Try y.astype('float64') if it is meant as a constant, whose derivative is zero"
                )
        self._same(several, outs)
        return outs

    def _run(self, xs: tuple[Tensor, ...]) -> Any:
        try:
            return self.func(*xs)
        except (ImmutableError, AttributeError) as error:
            in_place = isinstance(error, ImmutableError) or (isinstance(error.obj, Handle) and str(error.name).endswith("_"))
            if not in_place:
                if isinstance(error, AttributeError) and isinstance(error.obj, Handle) and (way := spelled(str(error.name), "torch")):
                    raise AttributeError(f"{error}. Try {way}", name=error.name, obj=error.obj) from error
                raise
            raise FunctionalError(
                f"a leaf Variable that requires grad is being used in an in-place operation. The function given to {self.name} would write "
                f"into a Tensor, and they are immutable ({error}). Try an operation that returns a new one, such as x + 1 for x.add_(1)"
            ) from error

    def _same(self, several: bool, outs: tuple[Tensor, ...]) -> None:
        shapes, dtypes = [y.shape for y in outs], [y.dtype for y in outs]
        if self.several is None:
            self.several, self.shapes, self.dtypes = several, shapes, dtypes
        elif (self.several, self.shapes, self.dtypes) != (several, shapes, dtypes):
            raise FunctionalError(
                f"The function given to {self.name} returned {_shown(self.several, self.shapes, self.dtypes)} in one call and "
                f"{_shown(several, shapes, dtypes)} in another; expected the same, because it is called once for some of the derivatives. "
                "Try vectorize=True where there is that, or a function that depends on its inputs alone"
            )


class Scalar(Function):
    """The same, of a function that returns one number; as one that returns a Tensor without axes."""

    __slots__ = ()

    def __call__(self, *xs: Tensor) -> Any:
        """The number.

        Raises:
            FunctionalError: If there are several Tensors, or several numbers.
        """
        outs = super().__call__(*xs)
        if self.several:
            raise FunctionalError(
                f"The function given to {self.name} should return a single Tensor. It returned a tuple of {len(outs)}. "
                "Try jacobian, jvp or vjp for functions with several outputs"
            )
        if outs[0].size != 1:
            raise FunctionalError(
                f"The Tensor returned by the function given to {self.name} should contain a single element. It has shape "
                f"{outs[0].shape}. Try .sum() if entries do not mix, one call for each entry, or nestgrad.func.hessian for all of them"
            )
        return outs[0].reshape(())

    def with_gradient(self, numbers: tuple[int, ...]) -> Callable[..., list[Tensor]]:
        """A function that gives the number, and its derivative by each input."""
        both = value_and_grad(self, numbers)

        def value_and_gradient(*xs: Tensor) -> list[Tensor]:
            value, gradient = both(*xs)
            return [value, *gradient]

        return value_and_gradient


def _shown(several: bool, shapes: list[tuple[int, ...]], dtypes: list[Any]) -> str:
    each = [f"shape {s} in {str(d).removeprefix('torch.')}" for s, d in zip(shapes, dtypes, strict=True)]
    return f"a tuple of {len(each)} ({', '.join(each)})" if several else f"a Tensor of {each[0]}"
