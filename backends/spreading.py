"""Spreading: an array written into zeros, to where axes that go together have equal positions."""

from typing import Any

from nestgrad.backends.primitives import Value


def spread(b: Any, x: Value, along: tuple[int, ...]) -> Value:
    """``Backend.spread`` in the operations of ``b``, which may be the ops over levels: one axis more at a time."""
    held = [*range(len(b.shape(x)))]  # which axis of what was given each axis of what there is now runs along
    for axis in held[:]:
        for _ in range(along.count(axis) - 1):
            k, rank = held.index(axis), len(held)
            x = b.permute(x, (*range(k), *range(k + 1, rank), k))
            held = [*held[:k], *held[k + 1 :], axis, axis]
            shape = b.shape(x)
            x = b.from_diagonal(x, 0, (rank - 1, rank), (*shape, shape[-1]))
    order = []
    for axis in along:
        k = held.index(axis)
        held[k] = -1  # each is taken once
        order.append(k)
    return x if order == [*range(len(order))] else b.permute(x, tuple(order))


def steps(along: tuple[int, ...], strides: tuple[int, ...], rank: int) -> list[int]:
    """The strides by which the entries that an array of ``rank`` axes is spread to lie in the answer, whose strides are given."""
    found = [0] * rank
    for axis, stride in zip(along, strides, strict=True):
        found[axis] += stride
    return found
