"""Which partial derivatives are asked for."""

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

    ``None`` if it is not there.
    """
    if key in stored:
        return key, tuple(range(len(key)))
    order = sorted(range(len(key)), key=lambda k: (key[k], k))
    base = tuple(key[k] for k in order)
    return (base, tuple(order.index(k) for k in range(len(key)))) if base in stored else None
