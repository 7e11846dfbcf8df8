"""Products of vectors and tensors: dot, vecdot, inner, outer, tensordot, kron, cross."""

from collections.abc import Sequence
from math import prod
from operator import index
from typing import TYPE_CHECKING, Any

from nestgrad.errors import ShapeError
from nestgrad.tensor.axes import axes_of, axis_of, broadcast
from nestgrad.tensor.handle import Operand, apply, arrays, make
from nestgrad.tensor.products import matmul

if TYPE_CHECKING:
    from nestgrad.tensor.tensor import Tensor

__all__ = ["dot", "vdot", "vecdot", "inner", "outer", "tensordot", "kron", "cross"]


def dot(x: Operand, y: Operand) -> "Tensor":
    """Product that sums over the last axis of ``x`` and the second-to-last of ``y``, or its only one, as ``np.dot``.

    Args:
        x: Any shape. Of a number, the result is ``x * y``.
        y: Any shape.

    Returns:
        The other axes of ``x``, then those of ``y``.

    Raises:
        ShapeError: If the sizes differ.

    >>> from nestgrad import tensor
    >>> dot(tensor([1.0, 2.0]), tensor([3.0, 4.0])).item()
    11.0
    """
    v, w = _two("dot", x, y)
    if not v.ndim or not w.ndim:
        return v * w
    if v.ndim == w.ndim == 1:
        return vdot(_fitting("dot", v, w, -1, -1), w)
    if w.ndim <= 2:
        return matmul(_fitting("dot", v, w, -1, max(-2, -w.ndim)), w)
    return _contracted("dot", v, w, (v.ndim - 1,), (w.ndim - 2,))


def vdot(x: Operand, y: Operand) -> "Tensor":
    """Sum of the products of all entries; ``x`` and ``y`` are flattened first.

    Raises:
        ShapeError: If one has more entries.
    """
    v, w = _two("vdot", x, y)
    if v.size != w.size:
        raise ShapeError(f"vdot: got shapes {v.shape} and {w.shape}; expected as many entries in both")
    return (v.ravel() * w.ravel()).sum()  # faster than a product of a row and a column, whose derivatives are such, too


def vecdot(x: Operand, y: Operand, axis: int = -1) -> "Tensor":
    """Sums of products along an axis, as ``np.vecdot``. ``vecdot(x, x)`` are the squares of the lengths.

    Args:
        x: Vectors along an axis.
        y: The same; other axes broadcast.
        axis: Which axis of the arrays that have been given as many axes, by new ones in front.

    Raises:
        ShapeError: Other sizes along that axis, or shapes that do not broadcast.

    >>> from nestgrad import tensor
    >>> vecdot(tensor([[1.0, 2.0], [3.0, 4.0]]), tensor([1.0, 10.0])).tolist()
    [21.0, 43.0]
    """
    v, w = _two("vecdot", x, y)
    rank = max(v.ndim, w.ndim)
    p, q = _aligned(v, rank), _aligned(w, rank)
    k = axis_of(rank, axis, "vecdot")
    if p.shape[k] != q.shape[k]:
        raise ShapeError(f"vecdot: got shapes {v.shape} and {w.shape}; expected as many entries along axis {axis} of both")
    shape = broadcast([p.shape, q.shape])
    if shape is None:
        raise ShapeError(f"vecdot: got shapes {v.shape} and {w.shape}; expected shapes that broadcast")
    return apply("vecdot", *(u if u.shape == shape else u.broadcast_to(shape) for u in (p, q)), axis=k)


def inner(x: Operand, y: Operand) -> "Tensor":
    """Product that sums over the last axes of both, as ``np.inner``; of a number ``x * y``.

    Raises:
        ShapeError: If the sizes differ.
    """
    v, w = _two("inner", x, y)
    if not v.ndim or not w.ndim:
        return v * w
    if v.ndim == w.ndim == 1:
        return vdot(_fitting("inner", v, w, -1, -1), w)
    return _contracted("inner", v, w, (v.ndim - 1,), (w.ndim - 1,))


def outer(x: Operand, y: Operand) -> "Tensor":
    """Each entry of ``x`` times each of ``y``; both are flattened first. Shape ``(x.size, y.size)``.

    >>> from nestgrad import tensor
    >>> outer(tensor([1.0, 2.0]), tensor([3.0, 4.0])).tolist()
    [[3.0, 4.0], [6.0, 8.0]]
    """
    v, w = _two("outer", x, y)
    return matmul(v.reshape(v.size, 1), w.reshape(1, w.size))


def tensordot(x: Operand, y: Operand, axes: int | Sequence[Any] = 2) -> "Tensor":
    """Product that sums over several axes of both, as ``np.tensordot``: one product of matrices.

    Args:
        x: Any shape.
        y: Any shape.
        axes: How many: the last of ``x`` with the first of ``y``. Or two axes, or two sequences of as many axes.

    Returns:
        The other axes of ``x``, then those of ``y``.

    Raises:
        ShapeError: If the sizes differ, or axes do not fit.

    >>> from nestgrad import ones
    >>> tensordot(ones((2, 3, 4)), ones((4, 3)), axes=((1, 2), (1, 0))).tolist()
    [12.0, 12.0]
    """
    v, w = _two("tensordot", x, y)
    if isinstance(axes, Sequence):
        if len(axes) != 2:
            raise ShapeError(f"tensordot: got axes {axes!r}; expected a number of axes, or two axes, or two sequences of axes")
        first, second = axes_of(v.ndim, axes[0], "tensordot"), axes_of(w.ndim, axes[1], "tensordot")
    else:
        n = index(axes)
        if not 0 <= n <= min(v.ndim, w.ndim):
            raise ShapeError(f"tensordot: got {n} axes for shapes {v.shape} and {w.shape}; expected no more than both have")
        first, second = tuple(range(v.ndim - n, v.ndim)), tuple(range(n))
    return _contracted("tensordot", v, w, first, second)


def kron(x: Operand, y: Operand) -> "Tensor":
    """Kronecker product: ``x`` with each entry replaced by its product with ``y``. Axes that one lacks are put in front, with size 1.

    >>> from nestgrad import tensor
    >>> kron(tensor([1.0, 10.0]), tensor([1.0, 2.0])).tolist()
    [1.0, 2.0, 10.0, 20.0]
    """
    v, w = _two("kron", x, y)
    rank = max(v.ndim, w.ndim)
    left, right = (1,) * (rank - v.ndim) + v.shape, (1,) * (rank - w.ndim) + w.shape
    product = v.reshape([n for m in left for n in (m, 1)]) * w.reshape([n for m in right for n in (1, m)])
    return product.reshape([n * m for n, m in zip(left, right, strict=True)])


def cross(x: Operand, y: Operand, axis: int = -1) -> "Tensor":
    """Vector product in space.

    Args:
        x: Vectors with three entries along an axis.
        y: The same; other axes broadcast.
        axis: Which axis of the arrays that have been given as many axes, by new ones in front.

    Raises:
        ShapeError: Other sizes than 3.

    >>> from nestgrad import tensor
    >>> cross(tensor([1.0, 0.0, 0.0]), tensor([0.0, 1.0, 0.0])).tolist()
    [0.0, 0.0, 1.0]
    """
    v, w = _two("cross", x, y)
    rank = max(v.ndim, w.ndim)
    p, q = _aligned(v, rank), _aligned(w, rank)
    k = axis_of(rank, axis, "cross")
    if p.shape[k] != 3 or q.shape[k] != 3:
        raise ShapeError(f"cross: got shapes {v.shape} and {w.shape}; expected three entries along axis {axis} of both")
    return apply("cross", p, q, axis=k)


def _two(name: str, x: Operand, y: Operand) -> "tuple[Tensor, Tensor]":
    """Both as Tensors over one backend, with the marks of both."""
    b, (p, q), marks = arrays(name, x, y)
    return make(b, p, marks), make(b, q, marks)


def _aligned(x: "Tensor", rank: int) -> "Tensor":
    """``x`` with new axes in front, up to ``rank``."""
    return x.reshape((1,) * (rank - x.ndim) + x.shape) if x.ndim < rank else x


def _fitting(name: str, x: "Tensor", y: "Tensor", i: int, j: int) -> "Tensor":
    if x.shape[i] != y.shape[j]:
        raise ShapeError(
            f"{name}: got shapes {x.shape} and {y.shape}; expected axis {i} of the first to have the size of axis {j} of the second"
        )
    return x


def _contracted(name: str, x: "Tensor", y: "Tensor", first: tuple[int, ...], second: tuple[int, ...]) -> "Tensor":
    """The sum over pairs of axes as a product of matrices."""
    summed = tuple(x.shape[k] for k in first)
    if summed != tuple(y.shape[k] for k in second):
        raise ShapeError(
            f"{name}: got shapes {x.shape} and {y.shape} with axes {first} of the first and {second} of the second; expected equal sizes"
        )
    left, right = ([k for k in range(v.ndim) if k not in used] for v, used in ((x, first), (y, second)))
    rows, columns = tuple(x.shape[k] for k in left), tuple(y.shape[k] for k in right)
    p = x.permute(*left, *first) if (*left, *first) != tuple(range(x.ndim)) else x
    q = y.permute(*second, *right) if (*second, *right) != tuple(range(y.ndim)) else y
    out = matmul(p.reshape(prod(rows), prod(summed)), q.reshape(prod(summed), prod(columns)))
    return out.reshape(*rows, *columns)
