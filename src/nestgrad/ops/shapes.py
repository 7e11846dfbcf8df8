"""What rules need to know about shapes: undoing a broadcast and undoing a reduction."""

from typing import Any

Shape = tuple[int, ...]

NUMBERS = frozenset({bool, int, float})
"""Classes of Python numbers. Not of what derives from them: NumPy's numbers of double precision do, and are arrays here."""


def sum_to(b: Any, g: Any, shape: Shape) -> Any:
    """The transpose of broadcasting: ``g`` summed down to ``shape``."""
    have = tuple(b.shape(g))
    if have == shape:
        return g
    extra = len(have) - len(shape)
    if have[extra:] == shape:
        return b.sum(g, tuple(range(extra)))
    axes = tuple(k for k, n in enumerate(have) if k < extra or (shape[k - extra] == 1 and n != 1))
    return b.reshape(b.sum(g, axes), shape) if axes else b.reshape(g, shape)


def kept(shape: Shape, axes: Shape) -> Shape:
    """The shape that a reduction over ``axes`` has with ``keepdims``."""
    return tuple(1 if k in axes else n for k, n in enumerate(shape))


def spread(b: Any, g: Any, shape: Shape, axes: Shape, keepdims: bool) -> Any:
    """The transpose of a sum over ``axes``: ``g`` repeated along them."""
    if not axes:
        return g
    return b.broadcast_to(g if keepdims else b.reshape(g, kept(shape, axes)), shape)


def swap_last(rank: int) -> Shape:
    """The permutation that transposes matrices in a stack."""
    return (*range(rank - 2), rank - 1, rank - 2)

