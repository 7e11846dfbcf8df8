"""Second derivatives of fields: ``laplacian``, ``value_gradient_laplacian``, ``hessian_diag``."""

from collections.abc import Callable
from typing import Any

from nestgrad.func.forward import jvp
from nestgrad.func.jacobians import jacfwd, jacrev
from nestgrad.func.series import taylor
from nestgrad.functions.diagonals import diagonal
from nestgrad.pde.collapsed import up_to_laplacian
from nestgrad.pde.kinks import warn_of_kinks
from nestgrad.pde.points import FORWARD, REVERSE, TAYLOR, Field, Operator, along_each
from nestgrad.tensor import Tensor

METHODS = (REVERSE, FORWARD, TAYLOR)


def laplacian(f: Callable[..., Any], method: str = "auto", chunk_size: int | None = None) -> Callable[..., Tensor]:
    """The Laplacian of a scalar field, or of each component of a field of any shape, at each point.

    Args:
        f: A function of one point, of shape ``(d,)``, and of what else it needs. Returns a Tensor of any shape. It may close over
            tracked Tensors.
        method: ``"taylor"``: one run in collapsed Taylor mode, which carries value, gradient and Laplacian (the forward Laplacian).
            ``"forward"``: forward mode twice along each coordinate. ``"reverse"``: the trace of two reverse passes, with arrays of d^2
            entries. ``"auto"``: taylor.
        chunk_size: How many points to take at once; ``None``: all. Bounds memory, and runs ``f`` once for each chunk.

    Returns:
        A function of points, of shape ``(n, d)``, that gives for an output of shape ``s`` shape ``(n, *s)``; of one point, of shape
        ``(d,)``, it gives ``s``. Other arguments are passed on to ``f`` as they are. Neither points nor components are summed over.

    Raises:
        ArgumentError: An unknown method, or no function.
        ShapeError: Points of another rank.
        DTypeError: Points that are not floating.
        LevelError: If ``f`` returns no Tensor.

    >>> from nestgrad import stack, tensor
    >>> laplacian(lambda x: stack([(x**2).sum(), x[0] ** 2 - x[1] ** 2]))(tensor([[0.2, 3.1], [0.9, 3.7]])).tolist()
    [[4.0, 0.0], [4.0, 0.0]]
    """
    operator = Operator("laplacian", f, method, METHODS, TAYLOR, chunk_size)
    return operator.over(lambda field, x: laplacian_at(operator.method, field, x), warn_of_kinks)


def hessian_diag(f: Callable[..., Any], method: str = "auto", chunk_size: int | None = None) -> Callable[..., Tensor]:
    """The pure second derivatives ``d^2 out / d x_j^2``, at each point: the Laplacian before it is summed.

    Args:
        f: As for ``laplacian``.
        method: ``"taylor"``: a series of order 2 along each coordinate. ``"forward"``, ``"reverse"``: as for ``laplacian``. ``"auto"``:
            taylor.
        chunk_size: As for ``laplacian``.

    Returns:
        A function of points that gives for an output of shape ``s`` shape ``(n, *s, d)``; of one point ``(*s, d)``. With ``"taylor"`` and
        ``"forward"`` no array has d^2 entries.

    Raises:
        As ``laplacian``.

    >>> from nestgrad import tensor
    >>> hessian_diag(lambda x: x[0] ** 3 + x[0] * x[1] ** 2)(tensor([[1.0, 2.0]])).tolist()
    [[6.0, 2.0]]
    """
    operator = Operator("hessian_diag", f, method, METHODS, TAYLOR, chunk_size)
    return operator.over(lambda field, x: pure_seconds(operator.method, field, x), warn_of_kinks)


def value_gradient_laplacian(
    f: Callable[..., Any], method: str = "auto", chunk_size: int | None = None
) -> Callable[..., tuple[Tensor, Tensor, Tensor]]:
    """Value, first derivatives and Laplacian of a field, at each point, from one run.

    Args:
        f: As for ``laplacian``.
        method: As for ``laplacian``.
        chunk_size: As for ``laplacian``.

    Returns:
        A function of points that gives three Tensors, for an output of shape ``s`` of the shapes ``(n, *s)``, ``(n, *s, d)`` and
        ``(n, *s)``; of one point without ``n``.

    Raises:
        As ``laplacian``.

    >>> from nestgrad import tensor
    >>> u, u_x, lap = value_gradient_laplacian(lambda x: x[0] ** 3 * x[1])(tensor([[1.0, 2.0]]))
    >>> u.tolist(), u_x.tolist(), lap.tolist()
    ([2.0], [[6.0, 1.0]], [12.0])
    """
    operator = Operator("value_gradient_laplacian", f, method, METHODS, TAYLOR, chunk_size)

    def at_point(field: Field, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if operator.method == TAYLOR:
            return up_to_laplacian(field, x)
        slopes = jacrev if operator.method == REVERSE else jacfwd
        return field(x), slopes(field)(x), laplacian_at(operator.method, field, x)

    return operator.over(at_point, warn_of_kinks)


def laplacian_at(method: str, field: Field, x: Tensor) -> Tensor:
    """The Laplacian at a point."""
    return up_to_laplacian(field, x)[2] if method == TAYLOR else pure_seconds(method, field, x).sum(-1)


def pure_seconds(method: str, field: Field, x: Tensor) -> Tensor:
    """The second derivatives along the coordinates at a point, in the last axis."""
    if method == REVERSE:
        return diagonal(jacrev(jacrev(field))(x), 0, -2, -1)

    def second(e: Tensor) -> Tensor:
        if method == FORWARD:
            return jvp(lambda x: jvp(field, (x,), (e,))[1], (x,), (e,))[1]  # type: ignore[no-any-return]
        return 2.0 * taylor(field, x, e, 2)[2]  # type: ignore[no-any-return]

    seconds: Tensor = along_each(second, x)
    return seconds
