"""How functions of networks read numbers that are given once or for each axis, and arrays with or without an axis of samples."""

from collections.abc import Sequence
from operator import index
from typing import Any

from nestgrad.backends.sliding import count
from nestgrad.errors import ArgumentError, ShapeError
from nestgrad.tensor.arguments import MOST
from nestgrad.tensor.handle import Handle

Sizes = int | Sequence[int]
Ints = tuple[int, ...]


def for_each(name: str, what: str, given: Any, n: int, least: int) -> Ints:
    """``given`` as ``n`` ints, not smaller than ``least``; one int stands for all.

    Raises:
        ArgumentError: If it is something else.
    """
    try:
        found = tuple(index(k) for k in given) if _several(given) else (index(given),) * n
    except TypeError:
        found = ()
    found = found * n if len(found) == 1 else found
    if len(found) != n or any(not least <= k <= MOST for k in found):
        many = "" if n == 1 else f", or {n} of them"
        raise ArgumentError(f"{name}: got {what} {given!r:.60}; expected an int from {least} on{many}")
    return found


def _several(given: Any) -> bool:
    return hasattr(given, "__iter__") and getattr(given, "shape", None) != ()


def with_samples(name: str, x: Handle, n: int, what: str = "channels") -> tuple[Any, Ints, bool]:
    """The value of ``x`` and its shape with samples, channels and ``n`` spatial axes; and whether the samples were there.

    Raises:
        ShapeError: If ``x`` has neither ``n + 1`` nor ``n + 2`` axes.
    """
    shape = tuple(x.b.shape(x.value))
    if len(shape) not in (n + 1, n + 2):
        spaces = ", ".join(("depth", "height", "width")[3 - n :] if n > 1 else ("length",))
        raise ShapeError(
            f"{name}: got an input of shape {shape}; expected (samples, {what}, {spaces}), or ({what}, {spaces}). "
            "Try x.reshape(...), or x[None] for an axis of size 1"
        )
    if len(shape) == n + 2:
        return x.value, shape, True
    return x.b.reshape(x.value, (1, *shape)), (1, *shape), False


def sliding(name: str, n: int, shape: Ints, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil: bool) -> tuple[Ints, ...]:
    """Sizes, strides, padding and dilations of windows that are pooled.

    Raises:
        ShapeError: If they do not fit.
    """
    sizes, dilations = for_each(name, "kernel_size", kernel_size, n, 1), for_each(name, "dilation", dilation, n, 1)
    strides = sizes if stride is None else for_each(name, "stride", stride, n, 1)
    pads = for_each(name, "padding", padding, n, 0)
    if any(p > (d * (k - 1) + 1) // 2 for p, k, d in zip(pads, sizes, dilations, strict=True)):
        raise ShapeError(
            f"{name}: got padding {pads}, kernel size {sizes} and dilation {dilations}; expected padding of at most half of what a window "
            "spans. Try nn.pad first"
        )
    rows = list(zip(shape[2:], sizes, strides, pads, dilations, strict=True))
    if min(shape[2:]) < 1 or any(count(*row, ceil) < 1 for row in rows):
        raise ShapeError(
            f"{name}: got spatial sizes {shape[2:]}, kernel size {sizes}, padding {pads} and dilation {dilations}; expected a window that "
            "is not larger than the padded input. Try a smaller kernel_size, or ceil_mode=True"
        )
    return sizes, strides, pads, dilations


def parts(name: str, n: int, shape: Ints, output_size: Any) -> Ints:
    """How many windows divide each spatial axis; ``None`` stands for as many as entries.

    Raises:
        ShapeError: If there are none, or no entries.
    """
    given = tuple(output_size) if _several(output_size) else (output_size,) * n
    given = tuple(size if m is None else m for m, size in zip(given, shape[2:], strict=False)) if len(given) == n else given
    if 0 in shape[2:]:
        raise ShapeError(f"{name}: got spatial sizes {shape[2:]}; expected at least one entry on each axis")
    return for_each(name, "output_size", given, n, 1)
