"""Which partial derivatives are asked for, and which slots of one key are which of another's."""

from collections.abc import Iterable, Sequence
from itertools import combinations_with_replacement, permutations, product

from nestgrad.partials.ways import Key


def wanted(
    leaves: Sequence[int], order: int, groups: Iterable[Sequence[int]], both: bool = False, more: Iterable[Key] = ()
) -> tuple[Key, ...]:
    """The keys of one call, each once.

    Args:
        leaves: Numbers of inputs; by each of them alone there is a derivative of every order.
        order: The highest order.
        groups: Leaves by which there are mixed derivatives, too.
        both: Whether keys that differ in their order only are different ones.
        more: Keys beside these.

    Returns:
        Keys by order. A key of which the order does not count is sorted.
    """
    found: dict[Key, None] = {}
    for k in range(1, order + 1):
        found.update(dict.fromkeys((leaf,) * k for leaf in leaves))
        for group in groups:
            members = sorted(group)
            found.update(dict.fromkeys(product(members, repeat=k) if both else combinations_with_replacement(members, k)))
    for key in more:
        if len(key) <= order:
            found.update(dict.fromkeys(permutations(key)) if both else {tuple(sorted(key)): None})
    return tuple(sorted(found, key=lambda key: (len(key), key)))


def placed(key: Key, stored: Iterable[Key]) -> tuple[Key, tuple[int, ...]] | None:
    """Under which key the partial derivative by ``key`` is stored, and at which of that key's slots each slot of ``key`` is.

    That is ``key`` itself, or the sorted one. ``None`` if neither is there.
    """
    base = key if key in stored else tuple(sorted(key))
    return (base, matched(key, base)) if base in stored else None


def alike(key: Key, stored: Iterable[Key]) -> tuple[Key, tuple[int, ...]] | None:
    """The same of whatever key has the same variables."""
    return next(((other, matched(key, other)) for other in stored if sorted(other) == sorted(key)), None)


def matched(key: Key, other: Key) -> tuple[int, ...]:
    """At which slot of ``other``, which has all of its variables, each slot of ``key`` is; equal ones in their order."""
    free = list(range(len(other)))
    found = []
    for number in key:
        found.append(next(k for k in free if other[k] == number))
        free.remove(found[-1])
    return tuple(found)
