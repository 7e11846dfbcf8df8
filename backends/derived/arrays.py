"""Operations on whole arrays in terms of the required ones."""

import math

from nestgrad.backends.contractions import contract
from nestgrad.backends.derived.elementary import Elementary
from nestgrad.backends.primitives import Index, Value


class Arrays(Elementary):
    """Operations on whole arrays."""

    def amin(self, x: Value, axes: tuple[int, ...], keepdims: bool = False) -> Value:
        """The smallest element over ``axes``, NaN if there is one; over no axes it is ``x``."""
        return self.neg(self.amax(self.neg(x), axes, keepdims))

    def argmin(self, x: Value, axis: int, keepdims: bool = False) -> Value:
        """Where the smallest element along ``axis`` stands, the first of equals, as int64."""
        return self.argmax(self.neg(x), axis, keepdims)

    def put(self, x: Value, index: Index, shape: tuple[int, ...]) -> Value:
        """Zeros of ``shape`` with ``x`` added at ``index``: the transpose of ``getitem``."""
        return self.index_add(self._zeros(x, shape), x, index)

    def rows(self, x: Value, y: Value) -> Value:
        """``x[y]`` for an array of positions from 0 on along the first axis."""
        return self.getitem(x, (y,))

    def to_rows(self, x: Value, y: Value, count: int) -> Value:
        """``count`` rows of zeros, with ``x`` added at positions ``y``: the transpose of ``rows``."""
        return self.put(x, (y,), (count, *self.shape(x)[len(self.shape(y)) :]))

    def pad(self, x: Value, widths: tuple[tuple[int, int], ...]) -> Value:
        """``x`` among zeros; ``widths`` holds, for each axis, how many come before and after."""
        shape = self.shape(x)
        inner = tuple(slice(before, before + n) for n, (before, _) in zip(shape, widths, strict=True))
        outer = tuple(before + n + after for n, (before, after) in zip(shape, widths, strict=True))
        return self.index_set(self._zeros(x, outer), x, inner)

    def _zeros(self, x: Value, shape: tuple[int, ...]) -> Value:
        return self.broadcast_to(self.asarray(0, self.dtype(x)), shape)

    def _upto(self, n: int) -> Value:
        """0, 1, ... up to but without ``n``, as int64."""
        return self.cast(self.asarray(list(range(n))), self.dtype(self.asarray(0)))  # an empty list would be floating

    def halves(self, x: Value, axis: int) -> Value:
        """The first half of ``x`` along an axis times the second; an even number of entries."""
        return self.mul(*self._halves(x, axis))

    def halves_dot(self, x: Value, y: Value, axis: int) -> Value:
        """The first half of each times the second of the other, added."""
        (x0, x1), (y0, y1) = self._halves(x, axis), self._halves(y, axis)
        return self.mul_add(x0, y1, self.mul(x1, y0))

    def halves_spread(self, x: Value, y: Value, axis: int) -> Value:
        """``x`` times the second half of ``y``, followed along the axis by ``x`` times the first."""
        first, second = self._halves(y, axis)
        return self.concat(self.mul(x, second), self.mul(x, first), axis=axis)

    def _halves(self, x: Value, axis: int) -> tuple[Value, Value]:
        n, before = self.shape(x)[axis] // 2, (slice(None),) * axis
        return self.getitem(x, (*before, slice(0, n))), self.getitem(x, (*before, slice(n, 2 * n)))

    def product(self, x: Value, y: Value, tx: bool, ty: bool) -> Value:
        """``matmul`` with ``x`` (if ``tx``) and ``y`` (if ``ty``) transposed in their last two axes."""
        return self.matmul(self._transposed(x) if tx else x, self._transposed(y) if ty else y)

    def vecmat(self, x: Value, y: Value, ty: bool) -> Value:
        """A vector times a matrix, or (if ``ty``) times its transpose."""
        out = self.product(self.reshape(x, (1, self.shape(x)[0])), y, False, ty)
        return self.reshape(out, (self.shape(out)[1],))

    def _transposed(self, x: Value) -> Value:
        n = len(self.shape(x))
        return self.permute(x, (*range(n - 2), n - 1, n - 2))

    def linear(self, x: Value, w: Value, bias: Value) -> Value:
        """``x @ w + bias``: ``x`` of shape (..., n), ``w`` of shape (n, m), ``bias`` broadcasts to (..., m)."""
        return self.add(self.matmul(x, w), bias)

    def einsum(self, *xs: Value, subscripts: str) -> Value:
        """The sum of products that ``subscripts`` spells out, ``"ij,jk->ik"``.

        The form is explicit: the answer is named, there is no ellipsis, and no letter stands twice in one operand.

        Raises:
            ShapeError: If operands and subscripts do not fit.
        """
        return contract(self, xs, subscripts)

    def logsumexp(self, x: Value, axes: tuple[int, ...], keepdims: bool = False) -> Value:
        """``log(sum(exp(x)))`` over ``axes`` without overflow; -inf over no elements."""
        if 0 in (self.shape(x)[k] for k in axes):
            return self.log(self.sum(self.exp(x), axes, keepdims))
        top = self.amax(x, axes, True)
        top = self.where(self.isfinite(top), top, 0)  # inf - inf would be NaN
        total = self.log(self.sum(self.exp(self.sub(x, top)), axes, True))
        full = self.add(total, top)
        return full if keepdims else self.reshape(full, _without(self.shape(full), axes))

    def mean(self, x: Value, axes: tuple[int, ...], keepdims: bool = False) -> Value:
        """The mean over ``axes``; NaN over no elements."""
        count = math.prod(self.shape(x)[k] for k in axes)
        total = self.sum(x, axes, keepdims)
        return self.per(total, count) if count else self.mul(total, math.nan)

    def norm(self, x: Value, axes: tuple[int, ...], keepdims: bool = False) -> Value:
        """The square root of the sum of squares over ``axes``."""
        return self.sqrt(self.sum(self.square(x), axes, keepdims))

    def unit(self, x: Value, y: Value) -> Value:
        """``x / y``, but 0 where ``y`` is 0: an entry of a vector over its norm."""
        return self.div(x, self.where(self.eq(y, 0), math.inf, y))

    def softmax(self, x: Value, axis: int) -> Value:
        """``exp(x)`` scaled to sum 1 along ``axis``."""
        e = self.exp(self._below_top(x, axis))
        return self.div(e, self.sum(e, (axis,), True))

    def log_softmax(self, x: Value, axis: int) -> Value:
        """``log(softmax(x))`` without the loss of small terms: where one entry has nearly all the weight, its answer has its digits too."""
        n = self.shape(x)[axis]
        if not n:
            return x
        z = self._below_top(x, axis)
        line = self.reshape(self._upto(n), (n, *(1,) * (len(self.shape(x)) - axis - 1)))
        others = self.where(self.eq(line, self.argmax(x, axis, True)), 0, self.exp(z))  # the greatest is 1
        return self.sub(z, self.log1p(self.sum(others, (axis,), True)))

    def log_softmax_vjp(self, x: Value, y: Value, axis: int) -> Value:
        """``x - p sum(x)`` with ``p = exp(y)``, the cotangent of ``log_softmax`` whose answer is ``y``."""
        # 1 - p, which cancels where one entry has nearly all the weight, is -expm1(y)
        others = self.sub(x, self.sum(x, (axis,), True))
        return self.sub(self.mul(self.exp(y), others), self.mul(x, self.expm1(y)))

    def log_softmax_jvp(self, x: Value, y: Value, axis: int) -> Value:
        """``x - sum(p x)`` with ``p = exp(y)``, the tangent of ``log_softmax`` whose answer is ``y``."""
        share = self.mul(self.exp(y), x)
        return self.sub(self.sub(share, self.sum(share, (axis,), True)), self.mul(x, self.expm1(y)))

    def _below_top(self, x: Value, axis: int) -> Value:
        return self.sub(x, self.amax(x, (axis,), True)) if self.shape(x)[axis] else x


def _without(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for k, n in enumerate(shape) if k not in axes)
