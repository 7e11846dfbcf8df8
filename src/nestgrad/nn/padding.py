"""Padding as networks count it: from the last axis on."""

from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING

from nestgrad.errors import ArgumentError, ShapeError
from nestgrad.functions.shaping import pad as add_around
from nestgrad.tensor.handle import Operand, as_tensor, make

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["pad"]

_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def pad(x: Operand, pad: Sequence[int], mode: str = "constant", value: float = 0.0) -> "Tensor":
    """With entries added around, as ``torch.nn.functional.pad``; ``ng.pad`` counts axes from the first, as NumPy.

    Args:
        x: Any shape.
        pad: How many entries come before and after along the last axis, then along the one before it, and so on. A negative number
            takes entries away, but not in mode ``"circular"``.
        mode: ``"constant"``; ``"reflect"``, without the entry at the edge, fewer than there are; ``"replicate"``, the entry at the edge;
            ``"circular"``, from the other end, as many as there are at most.
        value: In mode ``"constant"``: the number that is added.

    Raises:
        ShapeError: Not a pair for each of the last axes; more entries than the mode has; a result without room.
        ArgumentError: Another mode.

    >>> from nestgrad import tensor
    >>> pad(tensor([1.0, 2.0, 3.0]), (2, -1)).tolist(), pad(tensor([1.0, 2.0, 3.0]), (2, 0), "reflect").tolist()
    ([0.0, 0.0, 1.0, 2.0], [3.0, 2.0, 1.0, 2.0, 3.0])
    """
    x = as_tensor(x)
    shape = tuple(x.b.shape(x.value))
    try:
        flat = tuple(index(k) for k in pad)
    except TypeError:
        flat = (0,)
    if len(flat) % 2 or len(flat) > 2 * len(shape):
        raise ShapeError(f"nn.pad: got pad {pad!r:.60} for shape {shape}; expected pairs of ints, the last axis first, each axis once")
    if mode not in _MODES:
        raise ArgumentError(f"nn.pad: got mode {mode!r}; expected one of {', '.join(_MODES)}")
    pairs = [(0, 0)] * (len(shape) - len(flat) // 2) + [(flat[k], flat[k + 1]) for k in range(len(flat) - 2, -1, -2)]
    if mode == "constant":
        if any(n + before + after < 0 or max(-before, -after) > n for n, (before, after) in zip(shape, pairs, strict=True)):
            raise ShapeError(f"nn.pad: got pad {flat} for shape {shape}; expected not to take away more entries than there are")
        if any(min(pair) < 0 for pair in pairs):
            kept = tuple(slice(max(-before, 0), n - max(-after, 0)) for n, (before, after) in zip(shape, pairs, strict=True))
            x = make(x.b, x.b.getitem(x.value, kept), x.marks)
        return add_around(x, [(max(before, 0), max(after, 0)) for before, after in pairs], value)
    most = {"reflect": -1, "circular": 0}.get(mode)
    for n, (before, after) in zip(shape, pairs, strict=True):
        if before == after == 0:
            continue
        least = 0 if mode == "circular" else -n  # of an axis that is cut, there are two ways to go round
        if not n or n + before + after < 1 or min(before, after) < least or (most is not None and max(before, after) > n + most):
            limit = "" if most is None else f"numbers from {least} to {n + most}, and "
            raise ShapeError(
                f"nn.pad: got pad {before, after} in mode {mode!r} for an axis of {n} entries; expected {limit}a result with entries"
            )
    out = x.b.extend(x.value, tuple((max(before, 0), max(after, 0)) for before, after in pairs), _MODES[mode])
    if any(min(pair) < 0 for pair in pairs):
        sizes = x.b.shape(out)
        out = x.b.getitem(out, tuple(slice(max(-before, 0), n - max(-after, 0)) for n, (before, after) in zip(sizes, pairs, strict=True)))
    return make(x.b, out, x.marks)
