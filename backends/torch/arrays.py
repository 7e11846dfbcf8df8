"""Operations on whole arrays: sums, extrema, shapes, products."""

from collections.abc import Callable
from typing import Any

import torch

from nestgrad.backends.base import Backend, Index, Value
from nestgrad.backends.contractions import parse
from nestgrad.backends.torch.places import add_at, get_at, native
from nestgrad.errors import ShapeError

_matmul: Any = torch.matmul
_times_transposed: Any = torch.nn.functional.linear  # the transpose is taken in C++


class Arrays(Backend):
    """Functions of torch, with the shapes and dtypes that the contract asks for."""

    reshape: Any = torch.reshape
    permute: Any = torch.permute
    broadcast_to: Any = torch.broadcast_to

    def sum(self, x: Value, axes: tuple[int, ...], keepdims: bool = False) -> Value:
        if axes:
            return torch.sum(x, axes, keepdims)
        return x if x.is_floating_point() else x.to(torch.int64)

    def mean(self, x: Value, axes: tuple[int, ...], keepdims: bool = False) -> Value:
        if len(axes) == x.ndim and not keepdims and x.is_floating_point():
            return torch.mean(x)
        return super().mean(x, axes, keepdims)

    def amax(self, x: Value, axes: tuple[int, ...], keepdims: bool = False) -> Value:
        return torch.amax(x, axes, keepdims) if axes else x

    def amin(self, x: Value, axes: tuple[int, ...], keepdims: bool = False) -> Value:
        return torch.amin(x, axes, keepdims) if axes else x

    def argmax(self, x: Value, axis: int, keepdims: bool = False) -> Value:
        return torch.argmax(x.to(torch.uint8) if x.dtype == torch.bool else x, axis, keepdims)

    def argmin(self, x: Value, axis: int, keepdims: bool = False) -> Value:
        return torch.argmin(x.to(torch.uint8) if x.dtype == torch.bool else x, axis, keepdims)

    def logsumexp(self, x: Value, axes: tuple[int, ...], keepdims: bool = False) -> Value:
        return torch.logsumexp(x, axes, keepdims) if axes else x

    def softmax(self, x: Value, axis: int) -> Value:
        return torch.softmax(x, axis)

    def log_softmax(self, x: Value, axis: int) -> Value:
        out = torch.log_softmax(x, axis)
        if _heavy(out):  # the kernel's answer for the greatest is the logarithm of a number that is rounded to 1
            top = out.argmax(axis, True)
            others = torch.exp(out).scatter_(axis, top, 0).sum(axis, True)
            out.scatter_(axis, top, torch.where(others < 0.5, torch.log1p(-others), out.gather(axis, top)))
        return out

    def softmax_vjp(self, x: Value, y: Value, axis: int) -> Value:
        """The rule of ``softmax``, whose answer is ``y``, for the cotangent ``x``."""
        if x.dtype is y.dtype and x.shape == y.shape:
            return torch._softmax_backward_data(x, y, axis, y.dtype)  # pyright: ignore[reportPrivateImportUsage]
        product = x * y
        return product - y * product.sum(axis, True)

    def log_softmax_vjp(self, x: Value, y: Value, axis: int) -> Value:
        if x.dtype is not y.dtype or x.shape != y.shape:
            return super().log_softmax_vjp(x, y, axis)
        out = torch._log_softmax_backward_data(x, y, axis, y.dtype)  # pyright: ignore[reportPrivateImportUsage]
        if _heavy(y):  # the kernel has 1 - exp(y) as a difference
            top = y.argmax(axis, True)
            g, p = x.gather(axis, top), y.gather(axis, top)
            out.scatter_(axis, top, torch.exp(p) * (g - x.sum(axis, True)) - g * torch.expm1(p))
        return out

    def log_softmax_jvp(self, x: Value, y: Value, axis: int) -> Value:
        if x.dtype is not y.dtype or x.shape != y.shape:
            return super().log_softmax_jvp(x, y, axis)
        share = torch.exp(y).mul_(x)
        total = share.sum(axis, True)
        if _heavy(y):
            top = y.argmax(axis, True)
            t, p = x.gather(axis, top), y.gather(axis, top)
            return torch.sub(x, total, out=share).scatter_(axis, top, torch.exp(p) * t - total - t * torch.expm1(p))
        return torch.sub(x, total, out=share)

    def concat(self, *xs: Value, axis: int = 0) -> Value:
        return torch.cat(xs, axis)

    def pad(self, x: Value, widths: tuple[tuple[int, int], ...]) -> Value:
        return torch.constant_pad_nd(x, [n for pair in reversed(widths) for n in pair])

    def getitem(self, x: Value, index: Index) -> Value:
        index, flipped = native(x, index)
        return get_at(x.flip(flipped) if flipped else x, index)

    def index_set(self, x: Value, v: Value, index: Index) -> Value:
        index, flipped = native(x, index)
        copy = x.flip(flipped) if flipped else x.clone()
        copy[index] = v
        return copy.flip(flipped) if flipped else copy

    def index_add(self, x: Value, v: Value, index: Index) -> Value:
        index, flipped = native(x, index)
        copy = x.flip(flipped) if flipped else x.clone(memory_format=torch.contiguous_format)
        add_at(copy, v, index)
        return copy.flip(flipped) if flipped else copy

    def put(self, x: Value, index: Index, shape: tuple[int, ...]) -> Value:
        full = torch.zeros(shape, dtype=x.dtype, device=x.device)
        index, flipped = native(full, index)
        add_at(full, x, index)
        return full.flip(flipped) if flipped else full

    def norm(self, x: Value, axes: tuple[int, ...], keepdims: bool = False) -> Value:
        return torch.linalg.vector_norm(x, 2, axes, keepdims) if axes else torch.abs(x)

    def halves_dot(self, x: Value, y: Value, axis: int) -> Value:
        if x.dtype is not y.dtype or not x.is_floating_point():
            return super().halves_dot(x, y, axis)
        (x0, x1), (y0, y1) = x.chunk(2, axis), y.chunk(2, axis)
        return torch.mul(x0, y1).addcmul_(x1, y0)

    def halves_spread(self, x: Value, y: Value, axis: int) -> Value:
        if x.dtype is not y.dtype:
            return super().halves_spread(x, y, axis)
        out = torch.empty_like(y)  # written to twice, instead of two arrays that are then joined
        for part, factor in zip(out.chunk(2, axis), reversed(y.chunk(2, axis)), strict=True):
            torch.mul(x, factor, out=part)
        return out

    def matmul(self, x: Value, y: Value) -> Value:
        try:
            return torch.matmul(x, y)
        except RuntimeError:
            if x.dtype == y.dtype:
                raise
            return _promoted(torch.matmul, x, y)

    def product(self, x: Value, y: Value, tx: bool, ty: bool) -> Value:
        try:
            if ty and not tx and y.dim() == 2:
                return _times_transposed(x, y)
            return _matmul(x.mT if tx else x, y.mT if ty else y)
        except RuntimeError:
            if x.dtype == y.dtype:
                raise
            return _promoted(torch.matmul, x.mT if tx else x, y.mT if ty else y)

    def vecmat(self, x: Value, y: Value, ty: bool) -> Value:
        return self.matmul(y, x) if ty else self.matmul(x, y)

    def linear(self, x: Value, w: Value, bias: Value) -> Value:
        if x.ndim == 2 and bias.ndim == 1:
            try:
                return torch.addmm(bias, x, w)
            except RuntimeError:  # of different dtypes, or with a bias that makes the product wider
                pass
        return torch.add(self.matmul(x, w), bias)

    def einsum(self, *xs: Value, subscripts: str) -> Value:
        parse(subscripts)
        try:
            return _promoted(lambda *ys: torch.einsum(subscripts, *ys), *xs)
        except (RuntimeError, ValueError) as error:
            shapes = ", ".join(str(tuple(x.shape)) for x in xs)
            raise ShapeError(f"einsum: {subscripts!r} does not fit the shapes {shapes}: {error}") from error


def _heavy(y: torch.Tensor) -> bool:
    """Whether one entry may have most of the weight, by the logarithms ``y``; on the CPU that is looked up in one cheap pass."""
    return y.numel() > 0 and not (y.is_cpu and y.amax().item() < -0.5)


def _promoted(product: Callable[..., torch.Tensor], *xs: torch.Tensor) -> torch.Tensor:
    dtype = xs[0].dtype
    for x in xs[1:]:
        dtype = torch.promote_types(dtype, x.dtype)
    return product(*(x.to(dtype) for x in xs))
