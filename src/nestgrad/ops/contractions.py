"""Products that sum: matmul, linear, einsum."""

import math
from typing import Any

from nestgrad.ops import batching, lanes
from nestgrad.ops.samples import Sample, calls, filled
from nestgrad.ops.shapes import Shape, sum_to
from nestgrad.ops.table import BILINEAR, SPECIAL, define


def _product_x(b: Any, g: Any, y: Any, x_shape: Shape, y_shape: Shape, tx: bool, ty: bool) -> Any:
    """``g y'`` where the product is ``x y``. Transposes are flags of one op, so no transposed array is recorded."""
    out = b.product(y, g, ty, True) if tx else b.product(g, y, False, not ty)
    return out if len(x_shape) == 2 == len(y_shape) else sum_to(b, out, x_shape)


def _product_y(b: Any, g: Any, x: Any, x_shape: Shape, y_shape: Shape, tx: bool, ty: bool) -> Any:
    """``x' g`` where the product is ``x y``."""
    if len(y_shape) == 2 < len(x_shape) and not tx:  # one big product instead of a batch of products that are then summed
        rows = math.prod(x_shape[:-1])  # not -1, which would be anything where there are no columns
        x, g = b.reshape(x, (rows, x_shape[-1])), b.reshape(g, (rows, y_shape[0 if ty else 1]))
        return b.product(g, x, True, False) if ty else b.product(x, g, True, False)
    out = b.product(g, x, True, tx) if ty else b.product(x, g, not tx, False)
    return out if len(x_shape) == 2 == len(y_shape) else sum_to(b, out, y_shape)


def _matmul_x(b: Any, g: Any, y: Any, x_shape: Shape, y_shape: Shape) -> Any:
    out = b.product(g, y, False, True)
    return out if len(x_shape) == 2 == len(y_shape) else sum_to(b, out, x_shape)


def _matmul_y(b: Any, g: Any, x: Any, x_shape: Shape, y_shape: Shape) -> Any:
    if len(x_shape) == 2 == len(y_shape):
        return b.product(x, g, True, False)
    return _product_y(b, g, x, x_shape, y_shape, False, False)


def _outer(b: Any, x: Any, y: Any) -> Any:
    """Each entry of ``x`` times each of ``y``: a row for one of ``x``."""
    return b.mul(b.reshape(x, (*b.shape(x), 1)), y)


_PAIRS = (((2, 3), (3, 2)), ((2, 2, 3), (3, 2)), ((2, 3), (2, 3, 1)), ((2, 1, 2, 3), (3, 3, 2)), ((0, 3), (3, 2)),
          ((2, 2, 0), (0, 3)))
define("matmul(x, y)", BILINEAR, _matmul_x, _matmul_y, batched=batching.matmul, lanes=lanes.product, samples=calls(
    *(Sample((filled(s, -1, 1), filled(t, -1, 1, 1))) for s, t in _PAIRS)))

# matmul with x, y or both transposed in their last two axes
define("product(x, y, tx, ty)", BILINEAR, _product_x, _product_y, batched=batching.product, lanes=lanes.product, samples=calls(
    Sample((filled((3, 2), -1, 1), filled((3, 4), -1, 1, 1)), {"tx": True, "ty": False}),
    Sample((filled((2, 3), -1, 1), filled((4, 3), -1, 1, 1)), {"tx": False, "ty": True}),
    Sample((filled((3, 2), -1, 1), filled((4, 3), -1, 1, 1)), {"tx": True, "ty": True}),
    Sample((filled((2, 2, 3), -1, 1), filled((4, 3), -1, 1, 1)), {"tx": False, "ty": True}),
    Sample((filled((2, 3, 2), -1, 1), filled((3, 4), -1, 1, 1)), {"tx": True, "ty": False})))


# a vector times a matrix, or times its transpose
define("vecmat(x, y, ty)", BILINEAR, lambda b, g, y, ty: b.vecmat(g, y, not ty),
       lambda b, g, x, ty: _outer(b, g, x) if ty else _outer(b, x, g), batched=batching.vecmat, lanes=lanes.vecmat, samples=calls(
    Sample((filled((3,), -1, 1), filled((3, 2), -1, 1, 1)), {"ty": False}),
    Sample((filled((3,), -1, 1), filled((2, 3), -1, 1, 1)), {"ty": True}),
    Sample((filled((0,), -1, 1), filled((0, 2), -1, 1, 1)), {"ty": False})))


def _linear_series(b: Any, k: int, x: Any, y: Any, z: Any, out: Any) -> Any:
    """Cauchy's product, and the coefficient of ``z``."""
    total = None if z[k] is None else b.broadcast_to(z[k], tuple(b.shape(out)))
    for j in range(k + 1):
        if x[j] is not None and y[k - j] is not None:
            share = b.matmul(x[j], y[k - j])
            total = share if total is None else b.add(total, share)
    return total


# x @ y + z with y of shape (in, out), in one kernel where the backend has one
define("linear(x, y, z)", SPECIAL, _matmul_x, _matmul_y, lambda b, g, z_shape: sum_to(b, g, z_shape),
       forward=(lambda b, t, y: b.matmul(t, y), lambda b, t, x: b.matmul(x, t), lambda b, t: t), series=_linear_series,
       batched=batching.linear, lanes=lanes.linear, samples=calls(
    Sample((filled((4, 3), -1, 1), filled((3, 2), -1, 1, 1), filled((2,), -1, 1, 2))),
    Sample((filled((2, 2, 3), -1, 1), filled((3, 2), -1, 1, 1), filled((), -1, 1, 2)))))


def _einsum(b: Any, g: Any, others: tuple[Any, ...], shapes: tuple[tuple[int, ...], ...], i: int, subscripts: str) -> Any:
    """Contract the cotangent with the other operands; letters that only operand ``i`` has are spread out again."""
    inputs, _, output = subscripts.partition("->")
    words = inputs.split(",")
    mine, rest = words[i], [w for k, w in enumerate(words) if k != i]
    found = [c for c in mine if c in output or any(c in w for w in rest)]
    g = b.einsum(g, *(x for k, x in enumerate(others) if k != i), subscripts=f"{','.join([output, *rest])}->{''.join(found)}")
    sizes = dict(zip(found, b.shape(g), strict=True))
    g = b.reshape(g, tuple(sizes.get(c, 1) for c in mine))
    target = tuple(max(n, sizes.get(c, 1)) for c, n in zip(mine, shapes[i], strict=True))
    return sum_to(b, b.broadcast_to(g, target), shapes[i])


define("einsum(*xs, subscripts)", BILINEAR, _einsum, batched=batching.einsum, lanes=lanes.einsum, samples=calls(
    Sample((filled((2, 3), -1, 1), filled((3, 4), -1, 1, 1)), {"subscripts": "ij,jk->ik"}),
    Sample((filled((2, 3), -1, 1),), {"subscripts": "ij->j"}),
    Sample((filled((2, 3), -1, 1), filled((3,), -1, 1, 1), filled((2,), -1, 1, 2)), {"subscripts": "ij,j,i->ij"}),
    Sample((filled((3,), -1, 1), filled((2,), -1, 1, 1)), {"subscripts": "i,j->ji"}),
    Sample((filled((2, 2, 3), -1, 1), filled((2, 3, 2), -1, 1, 1)), {"subscripts": "bij,bjk->bik"})))
