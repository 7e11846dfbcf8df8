"""Products that sum: matmul, linear, einsum."""

from typing import Any

from nestgrad.ops.samples import Sample, calls, filled
from nestgrad.ops.shapes import sum_to, transposed
from nestgrad.ops.table import BILINEAR, SPECIAL, define


def _matmul_x(b: Any, g: Any, y: Any, x_shape: tuple[int, ...]) -> Any:
    return sum_to(b, b.matmul(g, transposed(b, y)), x_shape)


def _matmul_y(b: Any, g: Any, x: Any, y_shape: tuple[int, ...]) -> Any:
    shape = tuple(b.shape(x))
    if len(y_shape) == 2 and len(shape) > 2:  # one big product instead of a batch of products that are then summed
        x = b.reshape(x, (-1, shape[-1]))
        g = b.reshape(g, (-1, y_shape[-1]))
    return sum_to(b, b.matmul(transposed(b, x), g), y_shape)


_PAIRS = (((2, 3), (3, 2)), ((2, 2, 3), (3, 2)), ((2, 3), (2, 3, 1)), ((2, 1, 2, 3), (3, 3, 2)), ((0, 3), (3, 2)))
define("matmul(x, y)", BILINEAR, _matmul_x, _matmul_y, samples=calls(
    *(Sample((filled(s, -1, 1), filled(t, -1, 1, 1))) for s, t in _PAIRS)))

# x @ y + z with y of shape (in, out), in one kernel where the backend has one
define("linear(x, y, z)", SPECIAL, _matmul_x, _matmul_y, lambda b, g, z_shape: sum_to(b, g, z_shape), samples=calls(
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


define("einsum(*xs, subscripts)", BILINEAR, _einsum, samples=calls(
    Sample((filled((2, 3), -1, 1), filled((3, 4), -1, 1, 1)), {"subscripts": "ij,jk->ik"}),
    Sample((filled((2, 3), -1, 1),), {"subscripts": "ij->j"}),
    Sample((filled((2, 3), -1, 1), filled((3,), -1, 1, 1), filled((2,), -1, 1, 2)), {"subscripts": "ij,j,i->ij"}),
    Sample((filled((3,), -1, 1), filled((2,), -1, 1, 1)), {"subscripts": "i,j->ji"}),
    Sample((filled((2, 2, 3), -1, 1), filled((2, 3, 2), -1, 1, 1)), {"subscripts": "bij,bjk->bik"})))
