"""What an index means: NumPy's forms, brought to ints, slices and native integer arrays, one for each of the first axes.

An integer array that differs by the sample of a batch, or is traced, stays in its coats.
"""

from operator import index as as_int
from typing import Any

from nestgrad.errors import IndexRangeError, LevelError, ShapeError
from nestgrad.levels.base import Coat
from nestgrad.levels.coats import bare, worn
from nestgrad.levels.marks import opened
from nestgrad.levels.traced.wire import Wire
from nestgrad.tensor.handle import Handle


class Positions:
    """An index as backends take it.

    Attributes:
        items: Ints, slices and native integer arrays, or such arrays in coats.
        before: The shape to bring the array to first, which has the axes that ``None`` adds; or ``None`` if it is as it is.
        drop: An axis of size 1 that the result has too much, or ``None``.
    """

    __slots__ = ("before", "drop", "items")

    def __init__(self, items: tuple[Any, ...], before: tuple[int, ...] | None, drop: int | None) -> None:
        self.items, self.before, self.drop = items, before, drop

    @property
    def dressed(self) -> bool:
        """Whether an array wears coats, so that ``getitem`` of a backend cannot take it."""
        return any(isinstance(item, Coat) for item in self.items)


def positions(b: Any, shape: tuple[int, ...], index: Any) -> Positions:
    """The positions that ``index`` names in an array of ``shape`` over ``b``.

    Raises:
        IndexRangeError: An index outside its axis, too many of them, or something that is no index.
        LevelError: A mask that differs by the sample of a batch.
    """
    given = index if isinstance(index, tuple) else (index,)
    if _plain(given, shape):
        return Positions(given, None, None)
    items = [_native(b, item) for item in given]
    used = sum(_axes(b, item) for item in items)
    dots = [k for k, item in enumerate(items) if item is Ellipsis]
    if used > len(shape) or len(dots) > 1:
        raise IndexRangeError(f"getitem: got {len(items)} indices for shape {shape}; expected at most one per axis, and one ellipsis")
    gap = None
    if dots:
        k = dots[0]
        items[k : k + 1] = [slice(None)] * (len(shape) - used)
        # In NumPy an ellipsis keeps index arrays apart even if it stands for no axis. An axis of size 1 does so too, and is dropped later.
        apart = [any(not isinstance(item, slice) and item is not None for item in part) for part in (items[:k], items[k:])]
        if used == len(shape) and all(apart) and any(_is_array(item) for item in items):
            gap = k
            items.insert(k, None)
    plain, sizes = _placed(b, items, shape)
    drop = None
    if gap is not None:
        rank = max(len(b.shape(item)) for item in plain if _is_array(item))
        drop = rank + sum(isinstance(item, slice) for item in plain[: _expanded(b, items[:gap])])
    return Positions(plain, None if sizes == shape else sizes, drop)


def _plain(items: tuple[Any, ...], shape: tuple[int, ...]) -> bool:
    """Whether an index holds nothing but Python ints and slices of such, all in range: the commonest case."""
    if len(items) > len(shape):
        return False
    for item, n in zip(items, shape, strict=False):
        if item.__class__ is int:
            if not -n <= item < n:
                return False
        elif item.__class__ is slice:
            for bound in (item.start, item.stop, item.step):
                if bound is not None and bound.__class__ is not int:
                    return False
            if item.step == 0:
                return False
        else:
            return False
    return True


def _native(b: Any, item: Any) -> Any:
    """One item of an index: None, an ellipsis, a slice of ints, an int, or an array of integers or booleans."""
    if item is None or item is Ellipsis or item.__class__ is int:
        return item
    if isinstance(item, slice):
        try:
            start, stop, step = (None if v is None else as_int(v) for v in (item.start, item.stop, item.step))
        except LevelError:  # a bound that differs by the sample
            raise
        except TypeError as error:
            raise IndexRangeError(f"getitem: got {item}; expected a slice of ints") from error
        if step == 0:
            raise IndexRangeError(f"getitem: got {item}; expected a step other than 0")
        return slice(start, stop, step)
    if isinstance(item, bool):
        raise IndexRangeError(f"getitem: got {item}; expected an int, a slice, an integer array or a mask with axes")
    if hasattr(item, "__index__") and not hasattr(item, "shape"):
        return as_int(item)
    base = b.base
    if isinstance(item, Handle):
        value, _ = opened(item.value, item.marks)
        if item.b.base == base and any(coat.hidden or (isinstance(coat, Wire) and coat.whole) for coat in worn(value)):
            return _differing(b, value)
        value = item.b.read(value)
        item = value if item.b.base == base else base.asarray(item.b.base.to_numpy(value))
    elif isinstance(item, (list, range)):
        item = base.asarray(list(item))
        if 0 in base.shape(item):
            item = base.index(item)
    elif base.accepts(item):
        item = base.asarray(item)
    else:
        raise IndexRangeError(f"getitem: got an index of type {type(item).__name__}; expected an int, slice, array or mask")
    kind, axes = base.kind(item), len(base.shape(item))
    if kind == "float" or (kind == "bool" and not axes):
        raise IndexRangeError(f"getitem: got {axes} axes of dtype {base.dtype(item)} as an index; expected integers, or booleans with axes")
    if kind == "bool":
        return item
    return base.index(item) if axes else int(item)


def _differing(b: Any, p: Any) -> Any:
    """An index that differs by the sample, or is traced."""
    kind, shape = b.base.kind(bare(p)), tuple(b.shape(p))
    if kind == "bool":
        raise LevelError(
            f"getitem: got a mask of shape {shape} that differs by the sample of a batch, so the result would have no one shape; "
            "expected integers. Try ng.where(mask, x, 0.0), or multiply by the mask"
        )
    if kind == "float":
        raise IndexRangeError(f"getitem: got {len(shape)} axes of dtype {b.dtype(p)} as an index; expected integers")
    return b.cast(p, b.base.resolve_dtype(int))


def _is_array(item: Any) -> bool:
    return item is not None and item is not Ellipsis and not isinstance(item, (int, slice))


def _is_mask(b: Any, item: Any) -> bool:
    return _is_array(item) and not isinstance(item, Coat) and b.base.kind(item) == "bool"


def _axes(b: Any, item: Any) -> int:
    """How many axes of the array an item takes."""
    if item is None or item is Ellipsis:
        return 0
    return len(b.shape(item)) if _is_mask(b, item) else 1


def _expanded(b: Any, items: list[Any]) -> int:
    """How many items there are when masks are integer arrays."""
    return sum(1 if item is None else _axes(b, item) for item in items)


def _placed(b: Any, items: list[Any], shape: tuple[int, ...]) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """The items checked against their axes, masks as integer arrays; and the shape with the axes that ``None`` adds."""
    plain: list[Any] = []
    sizes: list[int] = []
    rest = list(shape)
    for item in items:
        if item is None:
            plain.append(slice(None))
            sizes.append(1)
            continue
        taken = [rest.pop(0) for _ in range(_axes(b, item))]
        sizes += taken
        if isinstance(item, slice):
            plain.append(item)
        elif not _is_array(item):
            plain.append(_inside(item, taken[0], shape))
        elif _is_mask(b, item):
            if list(b.shape(item)) != taken:
                mask = tuple(b.shape(item))
                raise IndexRangeError(f"getitem: got a mask of shape {mask} for axes of shape {tuple(taken)} (shape {shape})")
            plain += b.base.nonzero(item)
        else:
            plain.append(_reachable(b.base, item, taken[0], shape))
    return tuple(plain), (*sizes, *rest)


def _inside(k: int, n: int, shape: tuple[int, ...]) -> int:
    if not -n <= k < n:
        raise IndexRangeError(f"getitem: got index {k} for an axis of size {n} (shape {shape})")
    return k


def _reachable(base: Any, rows: Any, n: int, shape: tuple[int, ...]) -> Any:
    """Index arrays are checked here if no backend does: on a device a wrong one takes the whole process with it; those in coats, too."""
    raw = bare(rows)
    if (raw is not rows or base.device(raw) != "cpu") and 0 not in base.shape(raw):
        flat = base.reshape(raw, (-1,))
        for k in (base.amin(flat, (0,)), base.amax(flat, (0,))):
            _inside(int(base.to_numpy(k)), n, shape)
    return rows


def unique(base: Any, found: Positions, shape: tuple[int, ...]) -> None:
    """Check that no entry is named twice.

    Raises:
        ShapeError: If one is: which value stays would be undefined.
    """
    if not any(_is_array(item) for item in found.items):
        return
    sizes = shape if found.before is None else found.before
    if 0 in sizes or any(isinstance(item, slice) and not range(n)[item] for item, n in zip(found.items, sizes, strict=False)):
        return
    pairs = [(item, n) for item, n in zip(found.items, sizes, strict=False) if not isinstance(item, slice)]
    total = 1
    for _, n in pairs:
        total *= n
    entries = base.reshape(base.arange(0, total), tuple(n for _, n in pairs))
    named = base.to_numpy(base.getitem(entries, tuple(item for item, _ in pairs))).reshape(-1).tolist()
    if len(set(named)) < len(named):
        raise ShapeError("at[...].set: got an index that names an entry twice; expected each once. Try at[...].add, or unique indices")
