"""Ops that turn, shift and mask arrays, and their diagonals: linear. The triangles are those of the last two axes."""

from nestgrad.ops import lanes
from nestgrad.ops.samples import Sample, calls, filled, shaped
from nestgrad.ops.table import LINEAR, define

_CORNERS = ({"k": 0}, {"k": 1}, {"k": -1})

define("flip(x, axes)", LINEAR, lambda b, g, axes: b.flip(g, axes), samples=shaped((2, 3), {"axes": (1,)}, {"axes": (0, 1)}, {"axes": ()}))
define("roll(x, shifts, axes)", LINEAR, lambda b, g, shifts, axes: b.roll(g, tuple(-n for n in shifts), axes),
       samples=shaped((2, 3), {"shifts": (1,), "axes": (1,)}, {"shifts": (-1, 5), "axes": (0, 1)}))
define("triu(x, k)", LINEAR, lambda b, g, k: b.triu(g, k), lanes=lanes.matrices, samples=shaped((2, 3), *_CORNERS))
define("tril(x, k)", LINEAR, lambda b, g, k: b.tril(g, k), lanes=lanes.matrices, samples=shaped((2, 3), *_CORNERS))
# x[..., i, i + offset] of two axes, along a last one; and the transpose, which has zeros beside the diagonal
define("diagonal(x, offset, axes)", LINEAR, lambda b, g, x_shape, offset, axes: b.from_diagonal(g, offset, axes, x_shape),
       lanes=lanes.diagonal,
       samples=shaped((2, 3, 2), {"offset": 0, "axes": (0, 1)}, {"offset": 1, "axes": (2, 1)}, {"offset": 3, "axes": (0, 2)}))
define("from_diagonal(x, offset, axes, shape)", LINEAR, lambda b, g, offset, axes: b.diagonal(g, offset, axes),
       lanes=lanes.from_diagonal, samples=calls(
    Sample((filled((2, 2), -1, 1),), {"offset": 0, "axes": (0, 1), "shape": (2, 3, 2)}),
    Sample((filled((2, 1), -1, 1),), {"offset": -1, "axes": (1, 2), "shape": (2, 2, 3)})))
