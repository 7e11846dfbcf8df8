"""How ops act on values with one more axis in front, where the names of their parameters do not tell.

A rule is ``f(b, n, xs, on, *params)``: of the values ``xs`` those that are ``on`` have an axis 0 of size ``n`` that the op must not see. So
does the answer. At least one value is on.
"""

import math
from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import Any

from nestgrad.ops.shapes import NUMBERS, Shape, swap_last

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def widened(b: Any, x: Any, rank: int) -> Any:
    """``x``, which is on, with axes of size 1 after its first, so that there are ``rank`` more."""
    shape = tuple(b.shape(x))
    lacking = rank + 1 - len(shape)
    return b.reshape(x, (shape[0], *(1,) * lacking, *shape[1:])) if lacking > 0 else x


def repeated(b: Any, x: Any, n: int) -> Any:
    """``x``, which is not on, ``n`` times."""
    return b.broadcast_to(x, (n, *b.shape(x)))


def both(b: Any, n: int, xs: Sequence[Any], on: Sequence[bool]) -> list[Any]:
    """All values with the axis: what is not on is repeated. Python numbers stay as they are."""
    return [x if here or x.__class__ in NUMBERS else repeated(b, x, n) for x, here in zip(xs, on, strict=True)]


def rank_of(b: Any, x: Any, on: bool) -> int:
    """How many axes the op sees."""
    return len(b.shape(x)) - on


def pair(b: Any, x: Any, y: Any, on_x: bool, on_y: bool) -> tuple[Any, Any]:
    """``aligned`` for two values, which is what most ops of a batch are about."""
    if x.__class__ in NUMBERS or y.__class__ in NUMBERS:
        return x, y
    shape = b.shape
    rank_x, rank_y = len(shape(x)) - on_x, len(shape(y)) - on_y
    if rank_x < rank_y and on_x:
        x = widened(b, x, rank_y)
    elif rank_x > rank_y and on_y:
        y = widened(b, y, rank_x)
    if not (rank_x and rank_y):
        x, y = promoted(b, (x, y), (rank_x, rank_y))
    return x, y


def aligned(b: Any, xs: Sequence[Any], on: Sequence[bool]) -> list[Any]:
    """Values that broadcast as they do without the axis. Values that are not on, and Python numbers, stay as they are."""
    ranks = [rank_of(b, x, here) for x, here in zip(xs, on, strict=True)]
    widest = max(ranks)
    wide = [widened(b, x, widest) if here and rank < widest else x for x, here, rank in zip(xs, on, ranks, strict=True)]
    return wide if all(ranks) else promoted(b, wide, ranks)


def promoted(b: Any, xs: Sequence[Any], ranks: Sequence[int]) -> list[Any]:
    """Values of the dtype in which those of one sample would meet: for PyTorch, one without axes does not count beside one with some."""
    places = [k for k, x in enumerate(xs) if x.__class__ not in NUMBERS]
    dtypes = [b.dtype(xs[k]) for k in places]
    if all(dtype == dtypes[0] for dtype in dtypes[1:]):
        return [*xs]
    wanted = _meeting(b.base, tuple(dtypes), tuple(ranks[k] > 0 for k in places))
    found = [*xs]
    for k, dtype, other in zip(places, dtypes, wanted, strict=True):
        found[k] = xs[k] if other is None or other == dtype else b.cast(xs[k], other)
    return found


@lru_cache(maxsize=256)
def _meeting(base: Any, dtypes: tuple[Any, ...], axes: tuple[bool, ...]) -> list[Any]:
    """The dtype for those that are floating, or if none is, for whole numbers; ``None`` for others."""
    arrays = [base.full((1,) * some, 0, dtype) for dtype, some in zip(dtypes, axes, strict=True)]
    count = [base.is_floating(a) for a in arrays]
    if not any(count):
        count = [dtype != base.dtype(base.eq(a, a)) for a, dtype in zip(arrays, dtypes, strict=True)]
    parts = [a for a, counts in zip(arrays, count, strict=True) if counts]
    dtype = base.dtype(reduce(base.add, parts)) if len(parts) > 1 else None
    return [dtype if counts else None for counts in count]


# shapes


def permute(b: Any, n: int, xs: Sequence[Any], on: Sequence[bool], axes: Shape) -> Any:
    """The first axis stays the first."""
    return b.permute(xs[0], (0, *(k + 1 for k in axes)))


def broadcast_to(b: Any, n: int, xs: Sequence[Any], on: Sequence[bool], shape: Shape) -> Any:
    """New axes come after the first."""
    return b.broadcast_to(widened(b, xs[0], len(shape)), (n, *shape))


def concat(b: Any, n: int, xs: Sequence[Any], on: Sequence[bool], axis: int) -> Any:
    """What is not on is repeated."""
    return b.concat(*both(b, n, xs, on), axis=axis + 1)


# products


def matmul(b: Any, n: int, xs: Sequence[Any], on: Sequence[bool]) -> Any:
    """See ``product``."""
    return product(b, n, xs, on, False, False)


def product(b: Any, n: int, xs: Sequence[Any], on: Sequence[bool], tx: bool, ty: bool) -> Any:
    """Leading axes are aligned. Many matrices times one matrix are one big product, and so is one times many, if vectors or transposed.

    A column times a row for each sample, as for the gradient of a weight, is no sum: a product entry by entry is several times faster.
    """
    x, y = xs
    sx, sy = tuple(b.shape(x)), tuple(b.shape(y))
    if on[0] and not on[1] and len(sy) == 2:
        if tx:
            x = b.permute(x, swap_last(len(sx)))
            sx = (*sx[:-2], sx[-1], sx[-2])
        rows = math.prod(sx[:-1])
        out = _times(b, b.reshape(x, (rows, sx[-1])), y, False, ty)
        return b.reshape(out, (*sx[:-1], b.shape(out)[1]))
    if on[1] and not on[0] and len(sx) == 2 and (ty or sy[-1] == 1):  # by the product of the transposes, which moves no entry
        sy = sy if ty else (*sy[:-2], 1, sy[-2])
        out = _times(b, b.reshape(y, (math.prod(sy[:-1]), sy[-1])), x, False, not tx)
        lead, width = sy[:-2], b.shape(out)[1]
        if sy[-2] == 1:
            return b.reshape(out, (*lead, width, 1))
        return b.permute(b.reshape(out, (*sy[:-1], width)), swap_last(len(sy)))
    x, y = aligned(b, xs, on)
    if sx[-2 if tx else -1] == 1 == sy[-1 if ty else -2]:
        if tx:
            x = b.reshape(x, (*b.shape(x)[:-2], sx[-1], 1))
        if ty:
            y = b.reshape(y, (*b.shape(y)[:-2], 1, sy[-2]))
        return b.mul(x, y)
    return _times(b, x, y, tx, ty)


def vecmat(b: Any, n: int, xs: Sequence[Any], on: Sequence[bool], ty: bool) -> Any:
    """Many vectors times one matrix are a product of matrices. Of many matrices, see ``product``."""
    x, y = xs
    if not on[1]:
        return _times(b, x, y, False, ty)
    shape = tuple(b.shape(x))
    out = product(b, n, (b.reshape(x, (*shape[:-1], 1, shape[-1])), y), on, False, ty)
    return b.reshape(out, (n, b.shape(y)[1 if ty else 2]))


def _times(b: Any, x: Any, y: Any, tx: bool, ty: bool) -> Any:
    return b.product(x, y, tx, ty) if tx or ty else b.matmul(x, y)


def linear(b: Any, n: int, xs: Sequence[Any], on: Sequence[bool]) -> Any:
    """One kernel where only ``x`` is on."""
    x, y, z = xs
    if on[0] and not on[1] and not on[2]:
        return b.linear(x, y, z)
    if on[0] or on[1]:
        return b.add(*aligned(b, (matmul(b, n, (x, y), on[:2]), z), (True, on[2])))
    return b.add(*aligned(b, (b.matmul(x, y), z), (False, True)))


def einsum(b: Any, n: int, xs: Sequence[Any], on: Sequence[bool], subscripts: str) -> Any:
    """One more letter, which is never summed."""
    letter = next(c for c in LETTERS if c not in subscripts)
    inputs, _, output = subscripts.partition("->")
    words = [letter + word.strip() if here else word for word, here in zip(inputs.split(","), on, strict=True)]
    return b.einsum(*xs, subscripts=f"{','.join(words)}->{letter}{output.strip()}")


# indices


def getitem(b: Any, n: int, xs: Sequence[Any], on: Sequence[bool], index: tuple[Any, ...]) -> Any:
    """All of the first axis."""
    out = b.getitem(xs[0], (slice(None), *index))
    lead = _lead(b, index)
    return b.permute(out, _moved(lead, 0, len(b.shape(out)))) if lead else out


def put(b: Any, n: int, xs: Sequence[Any], on: Sequence[bool], index: tuple[Any, ...], shape: Shape) -> Any:
    """The transpose of ``getitem``."""
    x, lead = xs[0], _lead(b, index)
    x = b.permute(x, _moved(0, lead, len(b.shape(x)))) if lead else x
    return b.put(x, (slice(None), *index), (n, *shape))


def index_set(b: Any, n: int, xs: Sequence[Any], on: Sequence[bool], index: tuple[Any, ...]) -> Any:
    """See ``_change``."""
    return _change(b, b.index_set, n, xs, on, index)


def index_add(b: Any, n: int, xs: Sequence[Any], on: Sequence[bool], index: tuple[Any, ...]) -> Any:
    """See ``_change``."""
    return _change(b, b.index_add, n, xs, on, index)


def _change(b: Any, change: Any, n: int, xs: Sequence[Any], on: Sequence[bool], index: tuple[Any, ...]) -> Any:
    """The entries are those of each sample; what is put there is given the rank that they have, and the first axis in its place."""
    x, y = xs
    x = x if on[0] else repeated(b, x, n)
    lead = _lead(b, index)
    if on[1]:
        arrays = [len(b.shape(item)) for item in index if _is_array(item)]
        slices = sum(isinstance(item, slice) for item in index)
        y = widened(b, y, max(arrays, default=0) + slices + len(b.shape(x)) - 1 - len(index))
        y = b.permute(y, _moved(0, lead, len(b.shape(y)))) if lead else y
    elif lead and not isinstance(y, (int, float)):
        rank = len(b.shape(y))  # an axis of size 1 for the samples, where y has axes before and after it
        total = lead + sum(isinstance(item, slice) for item in index) + len(b.shape(x)) - 1 - len(index)
        after = total - lead
        if rank > after:
            shape = tuple(b.shape(y))
            y = b.reshape(y, (*shape[: rank - after], 1, *shape[rank - after :]))
    return change(x, y, (slice(None), *index))


def rows(b: Any, n: int, xs: Sequence[Any], on: Sequence[bool]) -> Any:
    """Where positions differ by the sample, the samples' rows are laid one after the other."""
    x, y = xs
    if not on[0]:
        return b.rows(x, y)
    shape = tuple(b.shape(x))
    if on[1]:
        return b.rows(b.reshape(x, (n * shape[1], *shape[2:])), _laid(b, y, n, shape[1]))
    out = b.rows(b.permute(x, _moved(0, 1, len(shape))), y)
    return b.permute(out, _moved(len(b.shape(y)), 0, len(b.shape(out))))


def to_rows(b: Any, n: int, xs: Sequence[Any], on: Sequence[bool], count: int) -> Any:
    """The transpose of ``rows``."""
    x, y = xs
    if on[1]:
        out = b.to_rows(x if on[0] else repeated(b, x, n), _laid(b, y, n, count), n * count)
        return b.reshape(out, (n, count, *b.shape(out)[1:]))
    out = b.to_rows(b.permute(x, _moved(0, len(b.shape(y)), len(b.shape(x)))), y, count)
    return b.permute(out, _moved(1, 0, len(b.shape(out))))


def _laid(b: Any, y: Any, n: int, count: int) -> Any:
    """Positions among ``count`` rows of each sample as positions among the rows of all samples.

    One that is out of range stays out of range: it must not be a row of another sample.
    """
    first = b.reshape(b.base.mul(b.base.arange(0, n), count), (n, *(1,) * (len(b.shape(y)) - 1)))
    return b.where(b.logical_and(b.ge(y, 0), b.lt(y, count)), b.add(y, first), n * count)


def _is_array(item: Any) -> bool:
    return not isinstance(item, (int, slice))


def _lead(b: Any, index: tuple[Any, ...]) -> int:
    """How many axes come before the samples' in an entry of many: those of index arrays, where a slice keeps arrays apart; else none."""
    ranks = [len(b.shape(item)) for item in index if _is_array(item)]
    places = [k for k, item in enumerate(index) if not isinstance(item, slice)]
    return max(ranks) if ranks and places[-1] - places[0] >= len(places) else 0


def _moved(source: int, target: int, rank: int) -> Shape:
    """The permutation that moves one axis."""
    rest = [k for k in range(rank) if k != source]
    return (*rest[:target], source, *rest[target:])
