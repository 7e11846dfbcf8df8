"""Choosing between two values entry by entry, without the NaN of the one not taken."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nestgrad.levels.coats import bare
from nestgrad.levels.marks import NONE
from nestgrad.tensor.handle import Handle, Operand, is_scalar, make, meet, test, weak

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = [
    "where", "safe_where",
]  # fmt: skip


def where(cond: Operand, x: Operand, y: Operand) -> "Tensor":
    """``x`` where ``cond`` holds, ``y`` elsewhere: an exact choice, in value and in every derivative.

    Args:
        cond: Booleans, or numbers, of which 0 is False. A constant: nothing is differentiated by it.
        x, y: What to choose from; all three broadcast.

    Returns:
        The broadcast shape, in the common dtype of ``x`` and ``y``. The derivative by the value not taken is exactly 0, even where the
        value is infinite or NaN. If *its* derivative is infinite or NaN there, the rules of the library still give 0 (``mul0``), at every
        order. What they cannot see is a product of singular functions, such as ``x.log() * x.sqrt()``, and ``norm`` at the origin: from
        order two on, or where a factor is infinite, that is NaN. Use ``safe_where`` there.

    >>> from nestgrad import tensor
    >>> x = tensor([-1.0, 2.0])
    >>> where(x > 0, x, 0.0).tolist()
    [0.0, 2.0]
    """
    if isinstance(cond, Handle):
        cond = make(cond.b, cond.value, NONE) if cond.b.base.kind(bare(cond.value)) == "bool" else test("ne", cond, 0)
    b, (c, p, q), marks = meet("where", cond, x, y)
    if is_scalar(c):
        c = b.base.asarray(bool(c))
    elif b.base.kind(bare(c)) != "bool":
        c = b.ne(c, 0)
    p, q = weak(b, [p, q], (x, y))
    return make(b, b.where(c, p, q), marks)


def safe_where(cond: Operand, f: Callable[..., Any], g: Callable[..., Any], *xs: Operand, safe: Any = 1.0) -> "Tensor":
    """``where(cond, f(x), g(x))``, where neither function ever sees an input of the other.

    ``f`` is evaluated at ``where(cond, x, safe)`` and ``g`` at ``where(cond, safe, x)``, so no infinity or NaN of the branch that is not
    taken can arise, in the value or in a derivative of any order and any mode.

    Args:
        cond: Booleans; broadcasts with the inputs.
        f: Taken where ``cond`` holds; acts on each entry by itself.
        g: Taken elsewhere.
        xs: The inputs of both, one or more.
        safe: A point at which both functions are smooth, a number; or a pair of numbers, one for ``f`` and one for ``g``.

    Returns:
        The broadcast shape. Costs both functions, on all entries.

    >>> from nestgrad import tensor
    >>> x = tensor([-4.0, 4.0])
    >>> safe_where(x > 0, lambda v: v.sqrt(), lambda v: -v, x).tolist()
    [4.0, 2.0]
    """
    for_f, for_g = safe if isinstance(safe, tuple) else (safe, safe)
    taken = f(*(where(cond, x, for_f) for x in xs))
    other = g(*(where(cond, for_g, x) for x in xs))
    return where(cond, taken, other)
