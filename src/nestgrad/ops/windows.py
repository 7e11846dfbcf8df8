"""Windows that slide over the last axes, and their transpose: linear. Axes before these are as many as there may be."""

from nestgrad.ops import lanes
from nestgrad.ops.samples import Sample, calls, filled
from nestgrad.ops.table import LINEAR, define

# entries k * strides + j * dilations of the last axes, where k counts windows and j entries in them: axes of k, then axes of j
define("windows(x, sizes, strides, dilations)", LINEAR,
       lambda b, g, x_shape, sizes, strides, dilations: b.from_windows(g, tuple(x_shape[-len(sizes):]), strides, dilations),
       lanes=lanes.before_spaces, samples=calls(
    Sample((filled((2, 5), -1, 1),), {"sizes": (2,), "strides": (2,), "dilations": (1,)}),
    Sample((filled((3, 4), -1, 1),), {"sizes": (2, 2), "strides": (1, 1), "dilations": (1, 2)})))
# zeros with ``spaces`` entries on the last axes, and each window added where it was
define("from_windows(x, spaces, strides, dilations)", LINEAR,
       lambda b, g, x_shape, spaces, strides, dilations: b.windows(g, tuple(x_shape[-len(spaces):]), strides, dilations),
       lanes=lanes.from_windows, samples=calls(
    Sample((filled((2, 2, 2), -1, 1),), {"spaces": (5,), "strides": (2,), "dilations": (1,)}),
    Sample((filled((2, 2, 2, 2), -1, 1),), {"spaces": (3, 4), "strides": (1, 1), "dilations": (1, 2)})))
