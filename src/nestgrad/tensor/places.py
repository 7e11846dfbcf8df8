"""Arrays of positions as ops take them: whole numbers from 0 on. They may be on levels themselves."""

from typing import Any

from nestgrad.errors import DTypeError, IndexRangeError, LevelError
from nestgrad.levels.base import Coat
from nestgrad.levels.coats import bare, worn
from nestgrad.levels.marks import opened
from nestgrad.levels.traced.wire import Wire
from nestgrad.tensor.gathering import bounded
from nestgrad.tensor.handle import Handle, Operand


def whole(name: str, b: Any, given: Operand) -> Any:
    """Whole numbers as an int64 value over ``b``, in coats only where they differ by the sample of a batch, or are traced.

    Raises:
        DTypeError: Floats or booleans.
    """
    base = b.base
    if isinstance(given, Handle):
        value, _ = opened(given.value, given.marks)
        kind = given.b.base.kind(bare(value))
        if kind == "int" and not (given.b.base == base and any(coat.hidden or isinstance(coat, Wire) for coat in worn(value))):
            value = given.b.read(value)
            value = value if given.b.base == base else base.asarray(given.b.base.to_numpy(value))
    else:
        if isinstance(given, (list, tuple, range)):
            value = base.asarray(list(given))
            value = base.index(value) if 0 in base.shape(value) else value
        elif isinstance(given, (bool, int, float)) or base.accepts(given):
            value = base.asarray(given)
        else:
            raise DTypeError(f"{name}: got positions of type {type(given).__name__}; expected ints, or an array of them")
        kind = base.kind(value)
    if kind != "int":
        instead = "x[mask], or ng.where(mask, x, 0.0)" if kind == "bool" else "index.astype('int64')"
        raise DTypeError(f"{name}: got positions of {'booleans' if kind == 'bool' else 'floats'}; expected whole numbers. Try {instead}")
    return b.cast(value, base.resolve_dtype(int))


def inside(name: str, b: Any, places: Any, n: int, least: int | None = None) -> Any:
    """``places`` on an axis of size ``n``, negative ones counted from its end, unless they are to be from ``least`` on.

    Where they are of a recorded program, its later runs have other ones: those that are out of range then are made ``n``, which the op
    that reads them finds.

    Raises:
        IndexRangeError: If one is out of range.
    """
    low, high = extremes(b, places)
    if least is not None and low < least:
        raise IndexRangeError(f"{name}: got index {low}; expected from {least} to {n - 1}")
    if low < -n or high >= n:
        raise IndexRangeError(f"{name}: got index {high if high >= n else low} for an axis of size {n}; expected from {-n} to {n - 1}")
    traced = is_traced(places)
    places = b.where(b.lt(places, 0), b.add(places, n), places) if low < 0 or traced else places
    return bounded(b, places, n) if traced else places


def is_traced(places: Any) -> bool:
    """Whether they are of a recorded program, which may be run on other ones."""
    return any(isinstance(coat, Wire) for coat in worn(places))


def extremes(b: Any, places: Any) -> tuple[int, int]:
    """The smallest and the greatest, of all samples; 0 and -1 if there are none."""
    raw, base = bare(places), b.base
    if 0 in base.shape(raw):
        return 0, -1
    axes = tuple(range(len(base.shape(raw))))
    return int(base.to_numpy(base.amin(raw, axes))), int(base.to_numpy(base.amax(raw, axes)))


def integers(name: str, b: Any, given: Operand) -> list[int]:
    """Whole numbers that make shapes, as a flat list: they must be the same for all samples, and known in a trace.

    Raises:
        DTypeError: Floats or booleans.
        LevelError: If they differ by the sample.
        TraceError: If they are traced.
    """
    if given.__class__ is int:
        return [given]
    value = whole(name, b, given)
    return [int(n) for n in b.base.to_numpy(known(name, b, value)).reshape(-1).tolist()]


def known(name: str, b: Any, value: Any) -> Any:
    """The raw array of a value on which shapes depend.

    Raises:
        LevelError: If it differs by the sample of a batch.
        TraceError: If it is traced.
    """
    for coat in worn(value):
        if coat.hidden:
            raise LevelError(
                f"{name}: got an array of shape {tuple(b.shape(value))} that differs by the sample of a batch, and the shape of the result "
                "depends on its entries; expected the same for all samples. Try ng.where(mask, x, 0.0), which keeps the shape"
            )
    return b.read(value) if isinstance(value, Coat) else value
