"""Derivatives of any order along a direction, and of fourth order in all: ``directional``, ``biharmonic``."""

from collections.abc import Callable
from math import factorial
from operator import index
from typing import Any

from nestgrad.errors import DTypeError, IndexRangeError, ShapeError
from nestgrad.func.forward import jvp
from nestgrad.func.home import of
from nestgrad.func.jacobians import jacrev
from nestgrad.func.run import as_leaf
from nestgrad.func.series import taylor
from nestgrad.functions.create import tensor
from nestgrad.levels.taylor import checked_order
from nestgrad.pde import collapsed
from nestgrad.pde.curvatures import METHODS, laplacian_at
from nestgrad.pde.kinks import warn_of_kinks
from nestgrad.pde.points import FORWARD, REVERSE, TAYLOR, Field, Operator, along, unit
from nestgrad.tensor import Tensor
from nestgrad.tensor.handle import Handle


def directional(
    f: Callable[..., Any], direction: Any, order: int = 1, method: str = "auto", chunk_size: int | None = None
) -> Callable[..., Tensor]:
    """The k-th derivative of a field of any shape along a direction, at each point.

    Args:
        f: A function of one point, of shape ``(d,)``, and of what else it needs. Returns a Tensor of any shape. It may close over
            tracked Tensors.
        direction: An int for a coordinate, counted from the end where it is negative; or a vector of shape ``(d,)``; or one for each
            point, such as the normals of a boundary, of the points' shape ``(n, d)``. It is not normalised.
        order: k, from 1 on.
        method: ``"forward"``: forward mode k times, which costs a factor for each order. ``"taylor"``: one series of order k, at a cost of
            O(k^2). ``"reverse"``: k reverse passes, each times the direction. ``"auto"``: forward for the first order, taylor beyond.
        chunk_size: How many points to take at once; ``None``: all. Bounds memory, and runs ``f`` once for each chunk.

    Returns:
        A function of points, of shape ``(n, d)``, that gives for an output of shape ``s`` shape ``(n, *s)``; of one point, of shape
        ``(d,)``, it gives ``s``. Other arguments are passed on to ``f`` as they are.

    Raises:
        ArgumentError: An unknown method, or no function.
        OrderError: If the order is no positive int.
        IndexRangeError: If there is no such coordinate.
        ShapeError: Points of another rank, or a direction of another shape.
        DTypeError: Points that are not floating, or a direction of another dtype.
        LevelError: If ``f`` returns no Tensor.

    >>> from nestgrad import tensor
    >>> directional(lambda x: x[0] ** 4 * x[1], 0, order=4)(tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [48.0, 96.0]
    """
    order = checked_order("directional", order)
    operator = Operator("directional", f, method, METHODS, FORWARD if order == 1 else TAYLOR, chunk_size)

    def derivative(points: Any, *args: Any, **kwargs: Any) -> Any:
        x = operator.points(points, args, kwargs)
        field = operator.field(args, kwargs)
        v = _vector(direction, x)

        def at_point(p: Tensor, v: Tensor) -> Tensor:
            return _directional(operator.method, field, p, v, order)

        if isinstance(v, int):
            found = operator.mapped(lambda p: at_point(p, unit(p, v)), x)
        elif v.ndim == 1:
            found = operator.mapped(lambda p: at_point(p, v), x)
        else:
            found = operator.mapped(at_point, x, v)
        if order > 1:
            warn_of_kinks("directional", field, x, found)
        return found

    return of(f, derivative)


def biharmonic(f: Callable[..., Any], method: str = "auto", chunk_size: int | None = None) -> Callable[..., Tensor]:
    """The Laplacian of the Laplacian of a field of any shape, at each point.

    Args:
        f: As for ``laplacian``.
        method: ``"taylor"``: in up to 3 dimensions one run in collapsed Taylor mode of order 4, along 1, 3 or 6 directions; beyond, the
            forward Laplacian of the forward Laplacian. ``"forward"``, ``"reverse"``: twice those of ``laplacian``. ``"auto"``: taylor.
        chunk_size: As for ``laplacian``.

    Returns:
        A function of points that gives for an output of shape ``s`` shape ``(n, *s)``; of one point ``s``.

    Raises:
        As ``laplacian``.

    >>> from nestgrad import tensor
    >>> biharmonic(lambda x: x[0] ** 4 + x[0] ** 2 * x[1] ** 2)(tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [32.0, 32.0]
    """
    operator = Operator("biharmonic", f, method, METHODS, TAYLOR, chunk_size)

    def at_point(field: Field, x: Tensor) -> Tensor:
        if operator.method == TAYLOR:
            return collapsed.biharmonic(field, x)
        return laplacian_at(operator.method, lambda x: laplacian_at(operator.method, field, x), x)

    return operator.over(at_point, warn_of_kinks)


def _directional(method: str, field: Field, x: Tensor, v: Tensor, order: int) -> Tensor:
    """The derivative of that order along ``v`` at a point."""
    if method == TAYLOR:
        return factorial(order) * taylor(field, x, v, order)[order]  # type: ignore[no-any-return]
    if order > 1:
        lower = field
        field = lambda x: _directional(method, lower, x, v, order - 1)
    return along(jacrev(field)(x), v) if method == REVERSE else jvp(field, (x,), (v,))[1]


def _vector(direction: Any, x: Tensor) -> Tensor | int:
    """The direction: the number of a coordinate, or a Tensor of the shape of one point, or of all."""
    number, d = _whole(direction), x.shape[-1]
    if number is not None:
        if not -d <= number < d:
            raise IndexRangeError(
                f"directional: got coordinate {number} for points of {d} coordinate{'s' * (d != 1)}; expected an int from {-d} to {d - 1}"
            )
        return number % d
    if isinstance(direction, (list, tuple)):
        direction = tensor(direction, backend=x.b.base, dtype=x.dtype)
    v = as_leaf("directional", direction, x.b)
    if v.shape not in (x.shape, x.shape[-1:]):
        raise ShapeError(
            f"directional: got a direction of shape {v.shape} for points of shape {x.shape}; expected {x.shape[-1:]}, one for all"
            + (f", or {x.shape}, one for each" if x.ndim == 2 else "")
        )
    if v.dtype != x.dtype:
        raise DTypeError(
            f"directional: got a direction of dtype {v.dtype} for points of dtype {x.dtype}; expected the same dtype. Try "
            f"direction.astype({str(x.dtype).removeprefix('torch.')!r})"
        )
    return v


def _whole(direction: Any) -> int | None:
    """A whole number, NumPy's too; ``None`` for anything else."""
    if isinstance(direction, (bool, Handle)) or getattr(direction, "shape", ()) != ():
        return None
    try:
        return index(direction)
    except TypeError:
        return None
