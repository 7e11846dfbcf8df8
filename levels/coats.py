"""Coats as a wardrobe: what a value wears, taking coats off, putting variables on. Recursion is as deep as there are coats."""

from collections.abc import Collection, Iterator, Sequence
from math import inf
from typing import Any

from nestgrad.errors import LevelError
from nestgrad.levels.base import Coat, Tape
from nestgrad.levels.reverse.node import Tracked, connection, identity, leaves


def worn(p: Any) -> Iterator[Coat]:
    """The coats of a value, outermost first."""
    while isinstance(p, Coat):
        yield p
        p = p.value


def on(p: Any, tape: Tape) -> Any:
    """The coat that a value wears for a tape, or ``None``."""
    while isinstance(p, Coat):
        if p.tape is tape:
            return p
        p = p.value
    return None


def oldest(p: Any, tape: Tape) -> float:
    """Age of the oldest variable of ``tape`` that ``p`` depends on; infinite if it depends on none."""
    coat = on(p, tape)
    return inf if coat is None else coat.oldest


def bare(p: Any) -> Any:
    """The raw value under all coats."""
    while isinstance(p, Coat):
        p = p.value
    return p


def without(p: Any, tapes: Collection[Tape]) -> Any:
    """``p`` as a constant on ``tapes``."""
    if not isinstance(p, Coat):
        return p
    if len(tapes) == 1 and p.tape in tapes:
        return p.value
    inner = without(p.value, tapes)
    if p.tape in tapes:
        return inner
    return p if inner is p.value else p.over(inner)


def variable(p: Any, tapes: Sequence[Tape], shape: tuple[int, ...]) -> Any:
    """``p`` as a new variable: on ``tapes`` (oldest first) a leaf where it is a constant, an identity node after it where it is tracked.

    The latter on other tapes as well: a look-up goes down to the youngest tape that it finds, and there it must not find ``p`` itself.
    """
    if not isinstance(p, Coat):
        return leaves(tapes, p, shape)
    here = tapes[-1] if tapes else None
    if here is not None and p.tape.birth < here.birth:
        return leaves((here,), variable(p, tapes[:-1], shape), shape)
    inner = variable(p.value, tapes[:-1] if p.tape is here else tapes, shape)
    if isinstance(p, Tracked):
        return identity(p.tape, inner, p)
    if p.tape is here:
        raise LevelError(f"requires_grad: got a value on {p.tape}, which records nothing; expected Autodiff levels")
    return p if inner is p.value else p.over(inner)


def tied(g: Any, root: Any, shape: tuple[int, ...]) -> Any:
    """``g`` of that shape, a derivative of ``root``: on every level connected to whatever the root was, by an edge with zero derivative.

    So a linear function has zero curvature, and a variable made anew by mistake still shows.
    """
    if not isinstance(root, Tracked):
        return g
    if isinstance(g, Coat) and g.tape.birth > root.tape.birth:
        return g.over(tied(g.value, root, shape))
    own = g if isinstance(g, Tracked) and g.tape is root.tape else None
    return connection(tied(g if own is None else own.value, root.value, shape), own, root, shape)
