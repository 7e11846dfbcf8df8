"""Coats as a wardrobe: what a value wears, taking coats off, putting variables on. Recursion is as deep as there are coats."""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from math import inf
from typing import Any

from nestgrad.errors import LevelError
from nestgrad.levels.base import Coat, Tape, tracing
from nestgrad.levels.recipe import Remade
from nestgrad.levels.reverse.node import Tracked, connection, identity, leaves


def worn(p: Any) -> Iterator[Coat]:
    """The coats of a value, outermost first; not those of tangents and the like."""
    while isinstance(p, Coat):
        yield p
        p = p.value


def within(p: Any) -> Iterator[Coat]:
    """All coats of a value, those of its tangents and coefficients too."""
    while isinstance(p, Coat):
        yield p
        for part in p.more:
            yield from within(part)
        p = p.value


def on(p: Any, tape: Tape) -> Any:
    """The coat that a value wears for a tape, or ``None``."""
    while isinstance(p, Coat):
        if p.tape is tape:
            return p
        p = p.value
    return None


def oldest(p: Any, tape: Tape) -> float:
    """Age of the oldest variable of ``tape`` that any part of ``p`` depends on; infinite if none does."""
    age = inf
    while isinstance(p, Coat):
        if p.tape is tape:
            return min(age, p.oldest)
        for part in p.more:
            age = min(age, oldest(part, tape))
        p = p.value
    return age


def bare(p: Any) -> Any:
    """The raw value under all coats."""
    while isinstance(p, Coat):
        p = p.value
    return p


def without(p: Any, tapes: Collection[Tape]) -> Any:
    """``p`` as a constant on ``tapes``, in all its parts.

    Raises:
        LevelError: If a coat that is to come off hides something that the outside must not see.
    """
    if not isinstance(p, Coat):
        return p
    if p.tape in tapes:
        inner = p.off()
        return inner if len(tapes) == 1 else without(inner, tapes)
    return p.mapped(lambda part: without(part, tapes))


def constant(p: Any) -> Any:
    """``p`` as a constant on every level that differentiates. Other coats stay on."""
    if not isinstance(p, Coat):
        return p
    inner = constant(p.value)
    return inner if p.differentiates else p.detached(inner)


def put_on(p: Any, tape: Tape, dress: Callable[[Any], Any]) -> Any:
    """``p`` in one more coat, under those of younger tapes: ``dress`` makes it of an inner value. Nothing wears a coat twice."""
    if isinstance(p, Coat) and p.tape.birth > tape.birth:
        return p.mapped(lambda part: put_on(part, tape, dress))
    return p if isinstance(p, Coat) and p.tape is tape else dress(p)


def alike(p: Any, like: Any) -> Any:
    """A raw value in those coats of ``like`` that all values wear."""
    for coat in reversed([*worn(like)]):
        p = coat.over(p) if coat.worn_by_all else p
    return p


def transparent(p: Any) -> Any:
    """``p`` without outer coats that have nothing to do with derivatives, and under which the value is what the outside sees."""
    while isinstance(p, Coat) and p.worn_by_all:
        p = p.value
    return p


def variable(p: Any, tapes: Sequence[Tape], shape: tuple[int, ...]) -> Any:
    """``p`` as a new variable: on ``tapes`` (oldest first) a leaf where it is a constant, an identity node after it where it is tracked.

    The latter on other tapes as well: a look-up goes down to the youngest tape that it finds, and there it must not find ``p`` itself.
    """
    if not isinstance(p, Coat):
        return leaves(tapes, p, shape)
    here = tapes[-1] if tapes else None
    if here is not None and p.tape.birth < here.birth:
        return leaves((here,), variable(p, tapes[:-1], shape), shape)
    inner = variable(p.value, tapes[:-1] if p.tape is here else tapes, p.under(shape))
    if isinstance(p, Tracked):
        return identity(p.tape, inner, p)
    if p.tape is here:
        raise LevelError(f"requires_grad: got a value on {p.tape}, which records nothing; expected Autodiff levels")
    return p if inner is p.value else p.over(inner)


def tied(g: Any, root: Any, shape: tuple[int, ...]) -> Any:
    """``g`` of that shape, a derivative of ``root``: on every level connected to whatever the root was, by an edge with zero derivative.

    So a linear function has zero curvature, and a variable made anew by mistake still shows.
    """
    if not isinstance(root, Coat) or root.__class__ is Remade:
        return g
    trace = tracing.get()
    if trace is not None and (trace.holds(g) or trace.holds(root)):
        g, root = trace.bring(g), trace.bring(root)
    if isinstance(g, Coat) and g.tape.birth > root.tape.birth:
        return g.mapped(lambda part: tied(part, root, g.under(shape)))
    if isinstance(root, Tracked):
        own = g if isinstance(g, Tracked) and g.tape is root.tape else None
        return connection(tied(g if own is None else own.value, root.value, shape), own, root, shape)
    g = root.linked(g)
    for part in (root.value, *root.more):
        if isinstance(g, Coat) and g.tape is root.tape:
            g = g.mapped(partial(tied, root=part, shape=g.under(shape)))
        else:
            g = tied(g, part, shape)
    return g
