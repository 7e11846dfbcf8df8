"""Convolution, by which libraries mean correlation, and its two transposes. All three are bilinear, and closed under differentiation.

``x`` has shape (samples, channels, *spaces), ``y`` (channels out, channels in a group, *kernel), the answer (samples, channels out,
*windows). Padding is as much before as after. ``conv_input`` gives the first from the other two, ``conv_weight`` the second: the three are
one trilinear form, ``sum(z * conv(x, y))``, which each of them differentiates.
"""

from collections.abc import Sequence
from typing import Any

from nestgrad.ops import lanes
from nestgrad.ops.samples import Sample, calls, filled
from nestgrad.ops.table import BILINEAR, define

Ints = tuple[int, ...]

# Samples of a batch go where the library has room for them: into its own samples where only ``x`` is on, into channels where only a weight
# is, into groups where both are. Channels are ordered by group, so others than a group's own must come after the group.


def _folded(b: Any, x: Any) -> Any:
    """Samples of a batch beside the library's own."""
    shape = tuple(b.shape(x))
    return b.reshape(x, (shape[0] * shape[1], *shape[2:]))


def _unfolded(b: Any, x: Any, n: int) -> Any:
    shape = tuple(b.shape(x))
    return b.reshape(x, (n, shape[0] // n, *shape[1:]))


def _second(b: Any, x: Any) -> Any:
    """The first axis as the second."""
    return b.permute(x, (1, 0, *range(2, len(b.shape(x)))))


def _into_channels(b: Any, x: Any, groups: int) -> Any:
    """(n, samples, channels, ...) as (samples, groups * n * channels of a group, ...)."""
    n, samples, channels, *rest = b.shape(x)
    x = b.reshape(x, (n, samples, groups, channels // groups, *rest))
    x = b.permute(x, (1, 2, 0, *range(3, len(rest) + 4)))
    return b.reshape(x, (samples, n * channels, *rest))


def _out_of_channels(b: Any, x: Any, groups: int, n: int) -> Any:
    """The inverse of ``_into_channels``."""
    samples, channels, *rest = b.shape(x)
    x = b.reshape(x, (samples, groups, n, channels // (groups * n), *rest))
    x = b.permute(x, (2, 0, 1, *range(3, len(rest) + 4)))
    return b.reshape(x, (n, samples, channels // n, *rest))


def _conv(b: Any, n: int, xs: Sequence[Any], on: Sequence[bool], strides: Ints, padding: Ints, dilations: Ints, groups: int) -> Any:
    x, y = xs
    if not on[1]:
        return _unfolded(b, b.conv(_folded(b, x), y, strides, padding, dilations, groups), n)
    if not on[0]:
        wide = _into_channels(b, b.reshape(y, (n, 1, *b.shape(y)[1:])), groups)
        y = b.reshape(wide, tuple(b.shape(wide)[1:]))
        return _out_of_channels(b, b.conv(x, y, strides, padding, dilations, groups), groups, n)
    out = b.conv(_into_channels(b, x, 1), _folded(b, y), strides, padding, dilations, n * groups)
    return _out_of_channels(b, out, 1, n)


def _input(
    b: Any, n: int, xs: Sequence[Any], on: Sequence[bool], spaces: Ints, strides: Ints, padding: Ints, dilations: Ints, groups: int
) -> Any:
    x, y = xs
    if not on[1]:
        return _unfolded(b, b.conv_input(_folded(b, x), y, spaces, strides, padding, dilations, groups), n)
    if not on[0]:
        out = b.conv_input(x, _into_channels(b, y, 1), spaces, strides, padding, dilations, groups)
        return _out_of_channels(b, out, groups, n)
    out = b.conv_input(_into_channels(b, x, 1), _folded(b, y), spaces, strides, padding, dilations, n * groups)
    return _out_of_channels(b, out, 1, n)


def _weight(
    b: Any, n: int, xs: Sequence[Any], on: Sequence[bool], kernel: Ints, strides: Ints, padding: Ints, dilations: Ints, groups: int
) -> Any:
    x, y = xs
    if not on[1]:
        out = b.conv_weight(_into_channels(b, x, groups), y, kernel, strides, padding, dilations, groups)
        return _out_of_channels(b, out, 1, n)
    if not on[0]:
        out = b.conv_weight(x, _into_channels(b, y, groups), kernel, strides, padding, dilations, groups)
        shape = tuple(b.shape(out))
        out = _out_of_channels(b, b.reshape(out, (1, *shape)), groups, n)
        return b.reshape(out, (n, shape[0] // n, *shape[1:]))
    out = b.conv_weight(_into_channels(b, x, 1), _into_channels(b, y, 1), kernel, strides, padding, dilations, n * groups)
    return _unfolded(b, out, n)


def _some(rule: Any) -> Any:
    """The rule, which needs a sample at least: of none, that of one that is taken away again."""

    def batched(b: Any, n: int, xs: Sequence[Any], on: Sequence[bool], *params: Any) -> Any:
        if n:
            return rule(b, n, xs, on, *params)
        one = [b.pad(x, ((0, 1), *((0, 0),) * (len(b.shape(x)) - 1))) if here else x for x, here in zip(xs, on, strict=True)]
        return b.getitem(rule(b, 1, one, on, *params), (slice(0, 0),))

    return batched


_LINE = {"strides": (2,), "padding": (1,), "dilations": (1,), "groups": 2}
_PLANE = {"strides": (1, 2), "padding": (1, 0), "dilations": (1, 2), "groups": 1}
_X, _Y, _Z = filled((1, 2, 4), -1, 1), filled((2, 1, 2), -1, 1, 1), filled((1, 2, 3), -1, 1, 2)
_X2, _Y2, _Z2 = filled((2, 1, 2, 4), -1, 1), filled((2, 1, 2, 2), -1, 1, 1), filled((2, 2, 3, 1), -1, 1, 2)

define("conv(x, y, strides, padding, dilations, groups)", BILINEAR,
       lambda b, g, y, x_shape, strides, padding, dilations, groups: b.conv_input(
           g, y, tuple(x_shape[2:]), strides, padding, dilations, groups),
       lambda b, g, x, y_shape, strides, padding, dilations, groups: b.conv_weight(
           x, g, tuple(y_shape[2:]), strides, padding, dilations, groups),
       batched=_some(_conv), lanes=lanes.conv, samples=calls(Sample((_X, _Y), _LINE), Sample((_X2, _Y2), _PLANE)))
# the transpose by x: ``x`` is a cotangent here, ``spaces`` the spatial shape of what it is one of
define("conv_input(x, y, spaces, strides, padding, dilations, groups)", BILINEAR,
       lambda b, g, y, spaces, strides, padding, dilations, groups: b.conv(g, y, strides, padding, dilations, groups),
       lambda b, g, x, y_shape, spaces, strides, padding, dilations, groups: b.conv_weight(
           g, x, tuple(y_shape[2:]), strides, padding, dilations, groups),
       batched=_some(_input), lanes=lanes.conv_input,
       samples=calls(Sample((_Z, _Y), {"spaces": (4,), **_LINE}), Sample((_Z2, _Y2), {"spaces": (2, 4), **_PLANE})))
# the transpose by the weight: ``y`` is a cotangent here, ``kernel`` the spatial shape of the weight
define("conv_weight(x, y, kernel, strides, padding, dilations, groups)", BILINEAR,
       lambda b, g, y, x_shape, kernel, strides, padding, dilations, groups: b.conv_input(
           y, g, tuple(x_shape[2:]), strides, padding, dilations, groups),
       lambda b, g, x, kernel, strides, padding, dilations, groups: b.conv(x, g, strides, padding, dilations, groups),
       batched=_some(_weight), lanes=lanes.conv_weight,
       samples=calls(Sample((_X, _Z), {"kernel": (2,), **_LINE}), Sample((_X2, _Z2), {"kernel": (2, 2), **_PLANE})))
