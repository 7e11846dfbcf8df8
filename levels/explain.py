"""Native errors of a base backend, told in the terms of the op: got, expected, because, try."""

from collections.abc import Callable
from typing import Any

from nestgrad.errors import DTypeError, IndexRangeError, NestgradError, ShapeError
from nestgrad.ops.table import Op

NATIVE = (ValueError, RuntimeError, TypeError, IndexError, OverflowError)
"""What array libraries raise when operands do not fit."""


def explained(
    error: Exception, op: Op, args: tuple[Any, ...], params: tuple[Any, ...], shape: Callable[[Any], tuple[int, ...]]
) -> Exception:
    """The typed error that says what a base backend's own error means; the own one where nothing is known to be wrong."""
    if isinstance(error, NestgradError):
        return error
    shapes = [tuple(shape(a)) for a in args]
    called = ", ".join([*(f"shape {s}" for s in shapes), *(f"{k}={v!r}" for k, v in zip(op.params, params, strict=True))])
    if reason := _misfit(op, shapes, dict(zip(op.params, params, strict=True))):
        return ShapeError(f"{op.name}: got {called}; {reason}")
    if isinstance(error, IndexError):
        return IndexRangeError(f"{op.name}: got {called}; {error}")
    if isinstance(error, OverflowError):
        return DTypeError(f"{op.name}: got {called}; expected ints of at most 64 bits: {error}. Try a float")
    if isinstance(error, TypeError):
        return DTypeError(f"{op.name}: got {called}; the backend refuses these dtypes: {error}")
    if isinstance(error, ValueError):
        return ShapeError(f"{op.name}: got {called}; {error}")
    if type(error) in (RuntimeError, NotImplementedError):  # torch's, for nearly everything; subclasses mean other things
        if any(word in str(error) for word in ("dtype", "not supported", "not implemented for", "can't be cast", "must be of type")):
            return DTypeError(f"{op.name}: got {called}; the backend refuses these dtypes: {error}")
        if "out of bounds" in str(error):
            return IndexRangeError(f"{op.name}: got {called}; {error}")
        if any(word in str(error) for word in ("size", "shape", "dimension", "broadcast")):
            return ShapeError(f"{op.name}: got {called}; {error}")
    error.add_note(f"in {op.name} with {called}")
    return error


def _misfit(op: Op, shapes: list[tuple[int, ...]], params: dict[str, Any]) -> str | None:
    """Why the shapes do not fit, or ``None``."""
    if op.name in ("matmul", "linear"):
        x, y = shapes[:2]
        if len(x) < 2 or len(y) < 2:
            return "expected matrices, or stacks of them"
        if x[-1] != y[-2]:
            return f"the last axis of the first ({x[-1]}) must equal the second-to-last of the second ({y[-2]})"
        return None if op.name == "linear" else _unbroadcastable(x[:-2], y[:-2])
    if op.broadcasts or (len(shapes) > 1 and op.name in ("eq", "ne", "lt", "le", "gt", "ge")):
        for later in shapes[1:]:
            if reason := _unbroadcastable(shapes[0], later):
                return reason
    if op.name == "broadcast_to":
        return _unbroadcastable(shapes[0], params["shape"]) or "expected a shape that the array can be repeated to"
    if op.name == "reshape":
        return "expected a shape with as many entries"
    return None


def _unbroadcastable(x: tuple[int, ...], y: tuple[int, ...]) -> str | None:
    for k, (m, n) in enumerate(zip(reversed(x), reversed(y), strict=False), 1):
        if m != n and m != 1 and n != 1:
            return f"sizes {m} and {n} on axis -{k} do not broadcast: they must be equal, or one of them 1"
    return None
