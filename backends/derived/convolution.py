"""Convolution as products of matrices, in terms of the required operations.

The entries of each window are one column of a matrix (Chellapilla, Puri & Simard, "High performance convolutional neural networks for
document processing", 2006), of which the weight is another. The transpose by the input adds columns back where they were.
"""

from math import prod

from nestgrad.backends.derived.windows import Ints, Windows
from nestgrad.backends.primitives import Value
from nestgrad.backends.sliding import count


class Convolution(Windows):
    """Convolution and its transposes."""

    def conv(self, x: Value, y: Value, strides: Ints, padding: Ints, dilations: Ints, groups: int) -> Value:
        """The sum of products of each window of ``x`` and the weight ``y``.

        ``x`` has shape (samples, channels, *spaces), ``y`` (channels out, channels in a group, *kernel), the answer (samples,
        channels out, *windows). Padding is as much before as after.
        """
        out, *_ = self.shape(y)
        samples = self.shape(x)[0]
        places = self._steps(self.shape(x)[2:], self.shape(y)[2:], strides, padding, dilations)
        columns = self._columns(x, self.shape(y)[2:], strides, padding, dilations, groups)
        answer = self.matmul(self._matrices(y, groups), columns)
        return self.reshape(answer, (samples, out, *places))

    def conv_input(self, x: Value, y: Value, spaces: Ints, strides: Ints, padding: Ints, dilations: Ints, groups: int) -> Value:
        """The transpose of ``conv`` by its ``x``, whose spaces are given: the cotangent ``x`` times the weight ``y``."""
        samples, out, *places = self.shape(x)
        kernel = self.shape(y)[2:]
        channels = groups * self.shape(y)[1]
        g = self.reshape(x, (samples, groups, out // groups, prod(places)))
        columns = self.product(self._matrices(y, groups), g, True, False)
        columns = self.reshape(columns, (samples, channels, *kernel, *places))
        n = len(places)
        columns = self.permute(columns, (0, 1, *range(n + 2, 2 * n + 2), *range(2, n + 2)))
        wide = tuple(m + 2 * p for m, p in zip(spaces, padding, strict=True))
        full = self.from_windows(columns, wide, strides, dilations)
        if not any(padding):
            return full
        return self.getitem(full, (slice(None), slice(None), *(slice(p, p + m) for m, p in zip(spaces, padding, strict=True))))

    def conv_weight(self, x: Value, y: Value, kernel: Ints, strides: Ints, padding: Ints, dilations: Ints, groups: int) -> Value:
        """The transpose of ``conv`` by its ``y``, whose kernel is given: ``x`` times the cotangent ``y``."""
        samples, out, *places = self.shape(y)
        width = self.shape(x)[1] // groups * prod(kernel)
        columns = self.permute(self._columns(x, kernel, strides, padding, dilations, groups), (1, 2, 0, 3))
        columns = self.reshape(columns, (groups, width, samples * prod(places)))
        g = self.permute(self.reshape(y, (samples, groups, out // groups, prod(places))), (1, 2, 0, 3))
        g = self.reshape(g, (groups, out // groups, samples * prod(places)))
        return self.reshape(self.product(g, columns, False, True), (out, self.shape(x)[1] // groups, *kernel))

    def _columns(self, x: Value, kernel: Ints, strides: Ints, padding: Ints, dilations: Ints, groups: int) -> Value:
        """The windows of ``x`` as (samples, groups, entries of a window, windows)."""
        samples, channels, *spaces = self.shape(x)
        n = len(spaces)
        if any(padding):
            x = self.pad(x, ((0, 0), (0, 0), *((p, p) for p in padding)))
        places = self._steps(tuple(spaces), kernel, strides, padding, dilations)
        views = self.permute(self.windows(x, kernel, strides, dilations), (0, 1, *range(n + 2, 2 * n + 2), *range(2, n + 2)))
        return self.reshape(views, (samples, groups, channels // groups * prod(kernel), prod(places)))

    def _matrices(self, y: Value, groups: int) -> Value:
        """The weight as (groups, channels out of a group, entries of a window)."""
        out, *inner = self.shape(y)
        return self.reshape(y, (groups, out // groups, prod(inner)))

    def _steps(self, spaces: Ints, kernel: Ints, strides: Ints, padding: Ints, dilations: Ints) -> Ints:
        """How many windows there are on each axis."""
        return tuple(count(*numbers) for numbers in zip(spaces, kernel, strides, padding, dilations, strict=True))
