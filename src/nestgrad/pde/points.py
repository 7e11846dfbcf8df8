"""From one point to many: how an operator takes its points, and what it asks of the function and of its own arguments."""

from collections.abc import Callable, Sequence
from typing import Any

from nestgrad.errors import ArgumentError, DTypeError, LevelError, ShapeError
from nestgrad.func.home import home, of
from nestgrad.func.mapping import checked_chunk, vmap
from nestgrad.func.run import as_leaf
from nestgrad.functions.create import arange, full
from nestgrad.tensor import Tensor
from nestgrad.tensor.handle import Handle, apply, is_floating, is_scalar

Field = Callable[[Tensor], Tensor]
"""A function of one point, of shape ``(d,)``."""

Look = Callable[[str, Field, Tensor, Any], None]
"""What looks at the result of an operator of that name: at these points."""

AUTO, REVERSE, FORWARD, TAYLOR = "auto", "reverse", "forward", "taylor"

AT_ONCE = 64
"""How many directions at a point to take at once: of many coordinates, the batch of directions is what memory goes to."""


class Operator:
    """What an operator was asked for: its name, function and method, and how many points to take at once.

    Attributes:
        method: The one asked for, or what ``"auto"`` stands for.
    """

    __slots__ = ("chunk_size", "f", "method", "name")

    def __init__(self, name: str, f: Any, method: Any, methods: Sequence[str], auto: str, chunk_size: Any) -> None:
        if not callable(f):
            raise ArgumentError(
                f"{name}: got a {type(f).__name__}; expected a function of one point, since what it is to be differentiated by is its "
                f"argument. Try {name}(f)(points)"
            )
        if not isinstance(method, str) or method not in (AUTO, *methods):
            got, hint = (repr(method), "") if isinstance(method, str) else (f"a {type(method).__name__}", f". Try {name}(f)(points)")
            raise ArgumentError(f"{name}: got method {got}; expected one of {', '.join(map(repr, (AUTO, *methods)))}{hint}")
        self.name, self.f = name, f
        self.method = auto if method == AUTO else method
        self.chunk_size = checked_chunk(name, chunk_size)

    def over(self, at_point: Callable[[Field, Tensor], Any], look: Look | None = None) -> Callable[..., Any]:
        """The function of points, and of what the field takes beside one. ``look`` at the result, unless there is no need to."""

        def operator(points: Any, *args: Any, **kwargs: Any) -> Any:
            x = self.points(points, args, kwargs)
            field = self.field(args, kwargs)
            found = self.mapped(lambda p: at_point(field, p), x)
            if look is not None:
                look(self.name, field, x, found)
            return found

        return of(self.f, operator)

    def points(self, points: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Tensor:
        """The points as a Tensor, over the backend of the Tensors beside them, or else of those that the field closes over.

        Raises:
            ShapeError: If they are neither one point nor a batch of them.
            DTypeError: If they are not floating.
        """
        x = as_leaf(self.name, points, home(self.f, [points, *args, *kwargs.values()]))
        if x.ndim not in (1, 2):
            raise ShapeError(
                f"{self.name}: got points of shape {x.shape}; expected (n, d), n points of d coordinates, or (d,), one point. "
                + ("Try points.reshape(-1, d)" if x.ndim else "Try x.reshape(1, 1) for one point of one coordinate")
            )
        if not is_floating(x):
            raise DTypeError(f"{self.name}: got points of dtype {x.dtype}; expected a floating one. Try points.astype('float64')")
        return x

    def mapped(self, at_point: Callable[..., Any], x: Tensor, *beside: Tensor) -> Any:
        """``at_point`` at each of the points, with what stands beside each of them."""
        return at_point(x, *beside) if x.ndim == 1 else vmap(at_point, chunk_size=self.chunk_size)(x, *beside)

    def field(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Field:
        """The user's function of one point, which must return a Tensor."""

        def field(x: Tensor) -> Tensor:
            return self._tensor(self.f(x, *args, **kwargs), x)

        return of(self.f, field)

    def _tensor(self, out: Any, x: Tensor) -> Tensor:
        if is_scalar(out):
            return full((), float(out), dtype=x.dtype, backend=x.b.base)
        if not (isinstance(out, Handle) or x.b.base.accepts(out)):
            raise LevelError(
                f"{self.name}: the function returned a {type(out).__name__}; expected a Tensor"
                + (". Try ng.stack([...]) for a field of several components" if isinstance(out, (list, tuple)) else "")
            )
        found = as_leaf(self.name, out, x.b)
        if not is_floating(found):
            raise DTypeError(
                f"{self.name}: the function returned dtype {found.dtype}; expected a floating one, since whole numbers and booleans have "
                "no derivatives. Try .astype('float64') where zeros are meant"
            )
        return found


def unit(x: Tensor, i: Any) -> Tensor:
    """The unit vector along coordinate ``i`` of the point ``x``."""
    direction: Tensor = (_coordinates(x) == i).astype(x.dtype)
    return direction


def along(slopes: Tensor, direction: Tensor) -> Tensor:
    """Derivatives by all coordinates, in the last axis, times a direction: an infinite one by a coordinate that rests counts as zero."""
    return apply("mul0", direction, slopes).sum(-1)


def along_each(f: Callable[[Tensor], Any], x: Tensor) -> Any:
    """``f`` of the unit vector along each coordinate of a point, in an axis at the end."""
    if x.shape[0] == 1:
        return f(unit(x, 0)).expand_dims(-1)
    return vmap(lambda i: f(unit(x, i)), out_axes=-1, chunk_size=AT_ONCE)(_coordinates(x))


def _coordinates(x: Tensor) -> Tensor:
    """The numbers of the coordinates of a point."""
    return arange(x.shape[0], backend=x.b.base)
