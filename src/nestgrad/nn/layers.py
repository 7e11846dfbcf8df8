"""Layers without state: linear maps, embeddings, pixels moved between channels and space."""

from typing import TYPE_CHECKING

from nestgrad.errors import ArgumentError, IndexRangeError, ShapeError
from nestgrad.functions.choose import where
from nestgrad.levels.marks import NONE
from nestgrad.tensor import products
from nestgrad.tensor.handle import Handle, Operand, as_tensor, default_backend, is_scalar, make
from nestgrad.tensor.places import extremes, inside, known, whole

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["linear", "bilinear", "embedding", "one_hot", "pixel_shuffle", "pixel_unshuffle"]


def linear(x: Operand, weight: Operand, bias: Operand | None = None) -> "Tensor":
    """``x @ weight.mT + bias``: **the weight has torch's shape**, the transpose of what ``ng.linear`` takes.

    Args:
        x: Shape ``(..., n_in)``.
        weight: Shape ``(n_out, n_in)``, or ``(n_in,)`` for one output without an axis.
        bias: Shape ``(n_out,)``, or ``()`` if there is no axis for it; ``None`` is 0.

    Returns:
        Shape ``(..., n_out)``, or ``(...)``.

    Raises:
        ShapeError: If the shapes do not fit.

    >>> from nestgrad import tensor
    >>> linear(tensor([1.0, 2.0]), tensor([[1.0, 1.0], [0.0, 3.0], [2.0, 0.0]]), 1.0).tolist()
    [4.0, 7.0, 3.0]
    """
    x, weight = as_tensor(x), as_tensor(weight)
    if not x.ndim or weight.ndim not in (1, 2) or x.shape[-1] != weight.shape[-1]:
        raise ShapeError(
            f"nn.linear: got x of shape {x.shape} and weight of shape {weight.shape}; expected (..., n_in) and (n_out, n_in). "
            "Try ng.linear for a weight of shape (n_in, n_out)"
        )
    if bias is not None and not is_scalar(bias):
        bias = as_tensor(bias, x.b)
        if bias.ndim > 1 or bias.size not in (1, *weight.shape[:-1]):
            raise ShapeError(f"nn.linear: got bias of shape {bias.shape} for weight of shape {weight.shape}; expected (n_out,), or ()")
    return products.linear(x, weight.mT if weight.ndim == 2 else weight, bias)


def bilinear(x: Operand, y: Operand, weight: Operand, bias: Operand | None = None) -> "Tensor":
    """``sum_ij x_i weight_oij y_j + bias_o``; torch calls ``x`` and ``y`` input1 and input2.

    Args:
        x: Shape ``(..., n)``.
        y: Shape ``(..., m)``, with the leading axes of ``x``.
        weight: Shape ``(n_out, n, m)``.
        bias: Shape ``(n_out,)``; ``None`` is 0.

    Returns:
        Shape ``(..., n_out)``.

    Raises:
        ShapeError: If the shapes do not fit.
    """
    x, y, weight = as_tensor(x), as_tensor(y), as_tensor(weight)
    fits = x.ndim and y.ndim and weight.ndim == 3 and (*x.shape[:-1], *weight.shape[1:]) == (*y.shape[:-1], x.shape[-1], y.shape[-1])
    if not fits or x.ndim != y.ndim:
        raise ShapeError(
            f"bilinear: got x {x.shape}, y {y.shape} and weight {weight.shape}; expected (..., n), (..., m) and (n_out, n, m)"
        )
    out = products.einsum("...i,oij,...j->...o", x, weight, y)
    return out if bias is None else out + bias


def embedding(indices: Operand, weight: Operand, padding_idx: int | None = None) -> "Tensor":
    """Rows of ``weight``.

    Args:
        indices: Whole numbers of any shape, from 0 on; they may differ by the sample of a batch.
        weight: Shape ``(n, ...)``.
        padding_idx: A row that no derivative goes to, as in torch: there ``weight`` is taken for a constant. Negative ones count from the
            end.

    Returns:
        The shape of ``indices``, then that of a row.

    Raises:
        IndexRangeError: If an index is out of range.
        DTypeError: If they are no whole numbers.
        ShapeError: If ``weight`` has no rows.

    >>> from nestgrad import tensor
    >>> embedding([1, 1, 0], tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[3.0, 4.0], [3.0, 4.0], [1.0, 2.0]]
    """
    weight = as_tensor(weight)
    if not weight.ndim:
        raise ShapeError("embedding: got a weight without axes; expected (n, ...)")
    b, n = weight.b, weight.shape[0]
    places = inside("embedding", b, whole("embedding", b, indices), n, 0)
    out = make(b, b.rows(weight.value, places), weight.marks)
    if padding_idx is None:
        return out
    if not isinstance(padding_idx, int) or not -n <= padding_idx < n:
        raise IndexRangeError(f"embedding: got padding_idx {padding_idx!r}; expected an int from {-n} to {n - 1}")
    padding = make(b, b.eq(places, padding_idx % n), NONE)
    return where(padding.reshape(*padding.shape, *(1,) * (weight.ndim - 1)), weight.detach()[padding_idx], out)


def one_hot(indices: Operand, num_classes: int = -1) -> "Tensor":
    """1 at the place that an index names, 0 elsewhere, along a new last axis; a constant, int64.

    Args:
        indices: Whole numbers of any shape, from 0 on.
        num_classes: Size of the new axis. -1: one more than the greatest index, which must be the same for all samples of a batch.

    Raises:
        IndexRangeError: If an index is out of range.
        DTypeError: If they are no whole numbers.
        ArgumentError: If ``num_classes`` is no positive int, nor -1 with some indices.

    >>> one_hot([2, 0], 3).tolist()
    [[0, 0, 1], [1, 0, 0]]
    """
    b = indices.b if isinstance(indices, Handle) else default_backend(indices).dressed
    places = whole("one_hot", b, indices)
    if num_classes == -1:
        places = known("one_hot", b, places)
    count = extremes(b, places)[1] + 1 if num_classes == -1 else num_classes
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise ArgumentError(f"one_hot: got num_classes={num_classes!r}; expected a positive int, or -1 with some indices")
    places = inside("one_hot", b, places, count, 0)
    line = b.base.arange(0, count)
    places = b.rows(line, places)  # themselves: later runs of a recorded program are checked here
    found = b.eq(b.reshape(places, (*b.shape(places), 1)), line)
    return make(b, b.cast(found, b.base.resolve_dtype(int)), NONE)


def pixel_shuffle(x: Operand, upscale_factor: int) -> "Tensor":
    """Channels become pixels: ``(..., C r^2, H, W)`` to ``(..., C, H r, W r)``.

    Shi et al., "Real-time single image and video super-resolution", CVPR 2016.

    Raises:
        ShapeError: If ``x`` has fewer than 3 axes, or the channels are no multiple of ``r^2``.
        ArgumentError: If ``r`` is no positive int.
    """
    x, r = as_tensor(x), _factor("pixel_shuffle", upscale_factor)
    if x.ndim < 3 or x.shape[-3] % (r * r):
        raise ShapeError(f"pixel_shuffle: got x of shape {x.shape}; expected (..., C, H, W) with C a multiple of {r * r}")
    *lead, c, h, w = x.shape
    k, c = len(lead), c // (r * r)
    x = x.reshape(*lead, c, r, r, h, w).permute((*range(k), k, k + 3, k + 1, k + 4, k + 2))
    shuffled: Tensor = x.reshape(*lead, c, h * r, w * r)
    return shuffled


def pixel_unshuffle(x: Operand, downscale_factor: int) -> "Tensor":
    """The inverse of ``pixel_shuffle``: ``(..., C, H r, W r)`` to ``(..., C r^2, H, W)``.

    Raises:
        ShapeError: If ``x`` has fewer than 3 axes, or its height or width is no multiple of ``r``.
        ArgumentError: If ``r`` is no positive int.
    """
    x, r = as_tensor(x), _factor("pixel_unshuffle", downscale_factor)
    if x.ndim < 3 or x.shape[-2] % r or x.shape[-1] % r:
        raise ShapeError(f"pixel_unshuffle: got x of shape {x.shape}; expected (..., C, H, W) with H and W multiples of {r}")
    *lead, c, h, w = x.shape
    k = len(lead)
    x = x.reshape(*lead, c, h // r, r, w // r, r).permute((*range(k), k, k + 2, k + 4, k + 1, k + 3))
    unshuffled: Tensor = x.reshape(*lead, c * r * r, h // r, w // r)
    return unshuffled


def _factor(name: str, r: object) -> int:
    if not isinstance(r, int) or isinstance(r, bool) or r < 1:
        raise ArgumentError(f"{name}: got factor {r!r}; expected a positive int")
    return r
