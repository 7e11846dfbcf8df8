"""First derivatives of fields: ``gradient``, ``jacobian``, ``divergence``, ``curl``."""

from collections.abc import Callable
from typing import Any

from nestgrad.errors import ShapeError
from nestgrad.func.forward import jvp
from nestgrad.func.jacobians import jacfwd, jacrev
from nestgrad.func.mapping import vmap
from nestgrad.func.reverse import vjp
from nestgrad.functions.create import eye
from nestgrad.functions.diagonals import diagonal
from nestgrad.functions.shaping import stack
from nestgrad.pde.points import AUTO, FORWARD, REVERSE, Field, Operator, along, along_each
from nestgrad.tensor import Tensor

_METHODS = (REVERSE, FORWARD)

_FEW = 4
"""Up to so many coordinates, forward mode is at worst as dear as reverse mode, whatever the shape of the field."""


def gradient(f: Callable[..., Any], method: str = "auto", chunk_size: int | None = None) -> Callable[..., Tensor]:
    """The gradient of a scalar field, at each point.

    Args:
        f: A function of one point, of shape ``(d,)``, and of what else it needs. Returns a Tensor of shape ``()``. It may close over
            tracked Tensors.
        method: ``"reverse"``: one backward pass. ``"forward"``: one run on a batch of d directions. ``"auto"``: reverse.
        chunk_size: How many points to take at once; ``None``: all. Bounds memory, and runs ``f`` once for each chunk.

    Returns:
        A function of points, of shape ``(n, d)``, that gives shape ``(n, d)``; of one point, of shape ``(d,)``, it gives ``(d,)``. Other
        arguments are passed on to ``f`` as they are. Points are never summed over.

    Raises:
        ArgumentError: An unknown method, or no function.
        ShapeError: Points of another rank, or a field of another shape.
        DTypeError: Points that are not floating.
        LevelError: If ``f`` returns no Tensor.

    >>> from nestgrad import tensor
    >>> gradient(lambda x: x[0] ** 2 * x[1])(tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[4.0, 1.0], [24.0, 9.0]]
    """
    operator = Operator("gradient", f, method, _METHODS, REVERSE, chunk_size)

    def at_point(field: Field, x: Tensor) -> Tensor:
        def scalar(x: Tensor) -> Tensor:
            return _scalar(field(x))

        return jacfwd(scalar)(x) if operator.method == FORWARD else jacrev(scalar)(x)  # type: ignore[no-any-return]

    return operator.over(at_point)


def jacobian(f: Callable[..., Any], method: str = "auto", chunk_size: int | None = None) -> Callable[..., Tensor]:
    """All first derivatives of a field of any shape, at each point.

    Args:
        f: A function of one point, of shape ``(d,)``, as for ``gradient``, but its output may have any shape.
        method: ``"reverse"``: one backward pass for each entry of the output. ``"forward"``: one run on a batch of d directions.
            ``"auto"``: forward for up to 4 coordinates; beyond, reverse where the output has up to twice as many entries as the point,
            which one run of ``f`` shows.
        chunk_size: As for ``gradient``.

    Returns:
        A function of points that gives ``d out / d x_j`` in the last axis: of an output of shape ``s`` shape ``(n, *s, d)``; of one point
        ``(*s, d)``.

    Raises:
        As ``gradient``.

    >>> from nestgrad import stack, tensor
    >>> jacobian(lambda x: stack([x[0] * x[1], x[0]]))(tensor([[2.0, 3.0]])).tolist()
    [[[3.0, 2.0], [1.0, 0.0]]]
    """
    operator = Operator("jacobian", f, method, _METHODS, AUTO, chunk_size)
    return operator.over(lambda field, x: _first_derivatives(operator.method, field, x))


def divergence(f: Callable[..., Any], method: str = "auto", chunk_size: int | None = None) -> Callable[..., Tensor]:
    """The divergence of a vector field, or of each row of a tensor field, at each point.

    Args:
        f: A function of one point, of shape ``(d,)``, as for ``gradient``, that returns shape ``(d,)``; or ``(..., d)``, such as a stress
            tensor, of which the derivatives ``d out[..., j] / d x_j`` are summed.
        method: ``"forward"``: one run on a batch of d directions, each of which keeps the component along it. ``"reverse"``: one backward
            pass for each entry of the output. ``"auto"``: forward.
        chunk_size: As for ``gradient``.

    Returns:
        A function of points that gives shape ``(n,)``, or ``(n, ...)``; of one point ``()``, or ``(...)``.

    Raises:
        As ``gradient``.

    >>> from nestgrad import tensor
    >>> u, k = lambda x: (x**3).sum(), lambda x: x[0]
    >>> divergence(lambda x: k(x) * gradient(u)(x))(tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [21.0, 153.0]
    """
    operator = Operator("divergence", f, method, _METHODS, FORWARD, chunk_size)

    def at_point(field: Field, x: Tensor) -> Tensor:
        d = x.shape[0]

        def vector(x: Tensor) -> Tensor:
            return _vector("divergence", field(x), d, f"({d},), or (..., {d})")

        if operator.method == REVERSE:
            return diagonal(jacrev(vector)(x), 0, -2, -1).sum(-1)
        return along_each(lambda e: along(jvp(vector, (x,), (e,))[1], e), x).sum(-1)  # type: ignore[no-any-return]

    return operator.over(at_point)


def curl(f: Callable[..., Any], method: str = "auto", chunk_size: int | None = None) -> Callable[..., Tensor]:
    """The curl of a vector field in three or two dimensions, at each point.

    Args:
        f: A function of one point, of shape ``(3,)`` or ``(2,)``, as for ``gradient``, that returns the same shape.
        method: As for ``jacobian``; ``"auto"``: forward.
        chunk_size: As for ``gradient``.

    Returns:
        A function of points that gives the vectors, of shape ``(n, 3)``; in two dimensions the numbers ``d f_1 / d x_0 - d f_0 / d x_1``,
        of shape ``(n,)``. Of one point ``(3,)``, or ``()``.

    Raises:
        As ``gradient``.

    >>> from nestgrad import stack, tensor
    >>> curl(lambda x: stack([x[2], x[0], x[1] ** 2]))(tensor([[1.0, 2.0, 3.0]])).tolist()
    [[4.0, 1.0, 1.0]]
    """
    operator = Operator("curl", f, method, _METHODS, FORWARD, chunk_size)

    def at_point(field: Field, x: Tensor) -> Tensor:
        d = x.shape[0]
        if d not in (2, 3):
            raise ShapeError(f"curl: got points of {d} coordinate{'s' * (d != 1)}; expected 3, or 2. Try jacobian for other numbers")

        def vector(x: Tensor) -> Tensor:
            out = _vector("curl", field(x), d, f"({d},)")
            if out.ndim > 1:
                raise ShapeError(f"curl: the function returned shape {out.shape} at a point; expected ({d},)")
            return out

        j = (jacrev if operator.method == REVERSE else jacfwd)(vector)(x)
        if d == 2:
            return j[1, 0] - j[0, 1]  # type: ignore[no-any-return]
        return stack([j[k, i] - j[i, k] for i, k in ((1, 2), (2, 0), (0, 1))])

    return operator.over(at_point)


def _first_derivatives(method: str, field: Field, x: Tensor) -> Tensor:
    """The Jacobian at a point."""
    if method == FORWARD or (method == AUTO and x.shape[0] <= _FEW):
        return jacfwd(field)(x)  # type: ignore[no-any-return]
    if method == REVERSE:
        return jacrev(field)(x)  # type: ignore[no-any-return]
    value, pullback = vjp(field, x)
    if value.size > 2 * x.shape[0]:  # less, and the passes back cost no more than another run, with a batch of directions
        return jacfwd(field)(x)  # type: ignore[no-any-return]
    units = eye(value.size, dtype=value.dtype, backend=x.b.base).reshape((value.size, *value.shape))
    rows: Tensor = vmap(lambda e: pullback(e)[0])(units)
    return rows.reshape((*value.shape, *x.shape))


def _scalar(out: Tensor) -> Tensor:
    if out.shape != ():
        raise ShapeError(
            f"gradient: the function returned shape {out.shape} at a point; expected (), one number. Try jacobian, for a field of any "
            "shape" + (", or f(x)[0]" if out.shape == (1,) else "")
        )
    return out


def _vector(name: str, out: Tensor, d: int, expected: str) -> Tensor:
    if not out.ndim or out.shape[-1] != d:
        raise ShapeError(
            f"{name}: the function returned shape {out.shape} at a point of {d} coordinate{'s' * (d != 1)}; expected {expected}, a "
            "component for each coordinate. Try jacobian for other fields"
        )
    return out
