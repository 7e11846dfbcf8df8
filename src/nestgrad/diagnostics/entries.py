"""Entries that are NaN or infinite: in arrays, and in values that wear coats."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from nestgrad.levels.base import Coat, Tape
from nestgrad.levels.recipe import Remade
from nestgrad.levels.reverse.node import Tracked
from nestgrad.ops.shapes import NUMBERS
from nestgrad.ops.table import Kind, Op

NAN, INF = "NaN", "inf"


@dataclass(frozen=True, slots=True)
class Entries:
    """Entries of one kind in an array.

    Attributes:
        kind: ``"NaN"``, or ``"inf"`` for both infinities.
        count: How many there are.
        size: How many entries the array has.
        shape: Its shape.
        dtype: Its dtype, as text.
        index: Where the first is.
    """

    kind: str
    count: int
    size: int
    shape: tuple[int, ...]
    dtype: str
    index: tuple[int, ...]

    def __str__(self) -> str:
        if not self.shape:
            return f"its one number ({self.dtype})"
        return f"{self.count} of {self.size} entries (shape {self.shape}, {self.dtype}), the first at {self.index}"


def parts(p: Any, of: Tape | None = None) -> Iterator[tuple[Tape | None, Any]]:
    """All arrays and numbers of a value, with the level that adds what is no value itself: a tangent, a coefficient.

    What was forgotten, to be made again, is left out.
    """
    if isinstance(p, (tuple, list)):
        for part in p:
            yield from parts(part, of)
    elif isinstance(p, Remade):
        if p.array is not None:
            yield from parts(p.array, of)
    elif isinstance(p, Coat):
        yield from parts(p.value, of)
        for part in p.more:
            yield from parts(part, of or p.tape)
    elif p is not None:
        yield of, p


def forgotten(p: Any) -> bool:
    """Whether a value, in a part, is only noted so far."""
    if isinstance(p, Remade):
        return p.array is None
    if isinstance(p, (tuple, list)):
        return any(map(forgotten, p))
    return isinstance(p, Coat) and (forgotten(p.value) or any(map(forgotten, p.more)))


def flat(base: Any, array: Any) -> Any:
    """The entries of a floating array as a NumPy array of one axis; ``None`` of all else."""
    if array.__class__ in NUMBERS:
        array = base.asarray(array) if array.__class__ is float else None
    return base.to_numpy(array).reshape(-1) if hasattr(array, "shape") and base.is_floating(array) else None


def bad(kind: str, entries: Any) -> Any:
    """Which of some entries are of a kind: a NumPy array of bools."""
    return entries != entries if kind == NAN else abs(entries) == inf


def kinds(base: Any, value: Any, wanted: Sequence[str]) -> set[str]:
    """Which of the wanted kinds there are among the entries of a value, in all its parts."""
    found: set[str] = set()
    for _, array in parts(value):
        entries = flat(base, array)
        if entries is not None and not (abs(entries) < inf).all():
            found.update(kind for kind in wanted if bad(kind, entries).any())
    return found


def first(base: Any, kind: str, value: Any) -> tuple[Tape | None, Entries]:
    """The first part of a value that has entries of a kind: the level that adds it, and which entries these are."""
    for of, array in parts(value):
        entries = flat(base, array)
        if entries is not None and (found := bad(kind, entries)).any():
            return of, _entries(base, kind, array, found)
    raise AssertionError(f"no {kind} in {value!r}")


def new(base: Any, op: Op, args: Sequence[Any], out: Any, kind: str) -> Entries | None:
    """Entries of a kind in an answer on which no level adds anything, at which no operand has one: entry by entry where the op is."""
    shape = tuple(base.shape(out))
    found = bad(kind, flat(base, out)).reshape(shape)
    for a in args:
        had = flat(base, a)
        if had is not None:
            here = bad(kind, had)
            if not here.any():
                continue
            if not (op.broadcasts or op.kind is Kind.ELEMENTWISE):
                return None
            found = found & ~here.reshape(tuple(base.shape(a)) if hasattr(a, "shape") else ())
    return _entries(base, kind, out, found.reshape(-1)) if found.any() else None


def plain(p: Any) -> Any:
    """A value without the coats of ``Autodiff`` levels, under which all is as the outside sees it."""
    while p.__class__ is Tracked:
        p = p.value
    return p


def at(base: Any, array: Any, index: tuple[int, ...]) -> str | None:
    """The entry of an array, or a number, that is broadcast to ``index``; ``None`` where nothing fits."""
    if array.__class__ in NUMBERS:
        return str(array)
    if isinstance(array, Coat) or not hasattr(array, "shape"):
        return None
    shape = tuple(base.shape(array))
    if len(shape) > len(index):
        return None
    position = 0
    for k, n in zip(index[len(index) - len(shape) :], shape, strict=True):
        if n != 1 and k >= n:
            return None
        position = position * n + (0 if n == 1 else k)
    return str(base.to_numpy(array).reshape(-1)[position])


def _entries(base: Any, kind: str, array: Any, found: Any) -> Entries:
    shape = tuple(base.shape(array)) if hasattr(array, "shape") else ()
    index: list[int] = []
    position = int(found.argmax())
    for n in reversed(shape):
        position, k = divmod(position, n)
        index.append(k)
    dtype = str(base.dtype(array)).removeprefix("torch.") if hasattr(array, "shape") else "float"
    return Entries(kind, int(found.sum()), int(found.size), shape, dtype, tuple(index[::-1]))
