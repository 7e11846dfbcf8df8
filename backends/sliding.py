"""Where windows lie on an axis: plain arithmetic of ints, which backends and functions share.

An axis of ``n`` entries has ``padding`` more at both ends; a window takes ``size`` of them, ``dilation`` apart, and the next one begins
``stride`` later. With ``ceil`` the last window may hang over the end, but it begins inside the array or its left padding.
"""

from functools import lru_cache

from nestgrad.errors import ShapeError

Table = tuple[tuple[int, ...], ...]


def count(n: int, size: int, stride: int, padding: int = 0, dilation: int = 1, ceil: bool = False) -> int:
    """How many windows there are; 0 or less where the first does not fit."""
    free = n + 2 * padding - dilation * (size - 1) - 1
    if not ceil:
        return free // stride + 1
    found = -(-free // stride) + 1
    return found - 1 if (found - 1) * stride >= n + padding else found


@lru_cache(256)
def places(n: int, size: int, stride: int, padding: int, dilation: int, ceil: bool) -> Table:
    """For each window the positions of its entries. Those in the padding are replaced by the window's first position in the array.

    Raises:
        ShapeError: If a window lies in the padding altogether.
    """
    rows = []
    for first in range(-padding, -padding + stride * count(n, size, stride, padding, dilation, ceil), stride):
        row = [k if 0 <= k < n else -1 for k in range(first, first + dilation * size, dilation)]
        inside = [k for k in row if k >= 0]
        if not inside:
            raise ShapeError(
                f"got {n} entries, kernel size {size}, padding {padding} and dilation {dilation}, where a window lies in the padding "
                "altogether; expected an entry in each. Try less padding"
            )
        rows.append(tuple(k if k >= 0 else inside[0] for k in row))
    return tuple(rows)


@lru_cache(256)
def divisions(n: int, parts: int) -> tuple[tuple[int, int], ...]:
    """Begin and end of ``parts`` windows that cover ``n`` entries as evenly as can be; they overlap where they must."""
    return tuple((k * n // parts, -(-(k + 1) * n // parts)) for k in range(parts))


@lru_cache(256)
def division_places(n: int, parts: int) -> Table:
    """For each of ``divisions`` its positions, all as many: short ones begin with their first several times."""
    spans = divisions(n, parts)
    longest = max(end - begin for begin, end in spans)
    return tuple((*(begin,) * (longest - (end - begin)), *range(begin, end)) for begin, end in spans)


@lru_cache(256)
def counted(n: int, size: int, stride: int, padding: int, ceil: bool, padded: bool) -> tuple[int, ...]:
    """How many entries each window has in the array, or, if ``padded``, in the array and its padding."""
    firsts = range(-padding, -padding + stride * count(n, size, stride, padding, 1, ceil), stride)
    if padded:
        return tuple(min(first + size, n + padding) - first for first in firsts)
    return tuple(min(first + size, n) - max(first, 0) for first in firsts)


@lru_cache(256)
def overhang(n: int, size: int, stride: int, padding: int, ceil: bool) -> int:
    """How many entries must follow the array, so that all windows are whole. If it needs none, entries at its end may be in no window."""
    return max(0, (count(n, size, stride, padding, 1, ceil) - 1) * stride + size - padding - n)
