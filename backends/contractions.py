"""Einstein sums by matrix products: two operands at a time, from left to right.

The letters of a pair fall into four kinds: *batch* (in both, needed later), *inner* (in both, needed no more, so summed
by the product), *left* and *right* (in one). Letters of one operand that nobody needs are summed first.
"""

from functools import lru_cache
from math import prod

from nestgrad.backends.primitives import Primitives, Value
from nestgrad.errors import ShapeError


def contract(b: Primitives, xs: tuple[Value, ...], subscripts: str) -> Value:
    """``einsum`` of ``xs`` in the operations of ``b``.

    Raises:
        ShapeError: If operands and subscripts do not fit.
    """
    terms, answer = parse(subscripts)
    sizes = _sizes(terms, [b.shape(x) for x in xs], subscripts)
    x, letters = xs[0], terms[0]
    for k in range(1, len(xs)):
        needed = set(answer).union(*terms[k + 1 :])
        x, letters = _product(b, *_reduced(b, x, letters, needed | set(terms[k])),
                              *_reduced(b, xs[k], terms[k], needed | set(letters)), needed, sizes)  # fmt: skip
    x, letters = _reduced(b, x, letters, set(answer))
    return x if letters == answer else b.permute(x, tuple(letters.index(c) for c in answer))


@lru_cache(maxsize=1024)
def parse(subscripts: str) -> tuple[tuple[str, ...], str]:
    """``"ij,jk->ik"`` as ``(("ij", "jk"), "ik")``.

    Raises:
        ShapeError: If the form is not the explicit one.
    """
    left, arrow, answer = subscripts.replace(" ", "").partition("->")
    terms = tuple(left.split(","))
    if not arrow:
        raise ShapeError(f"einsum: {subscripts!r} does not name the answer; write it after '->'")
    for term in (*terms, answer):
        if not all(c.isalpha() for c in term):
            raise ShapeError(f"einsum: {term!r} in {subscripts!r} holds something other than letters")
        if len(set(term)) != len(term):
            raise ShapeError(f"einsum: {term!r} in {subscripts!r} repeats a letter; take the diagonal first")
    unknown = set(answer) - set(left)
    if unknown:
        raise ShapeError(f"einsum: the answer of {subscripts!r} has {sorted(unknown)}, which no operand has")
    return terms, answer


def _sizes(terms: tuple[str, ...], shapes: list[tuple[int, ...]], subscripts: str) -> dict[str, int]:
    if len(terms) != len(shapes):
        raise ShapeError(f"einsum: {subscripts!r} has {len(terms)} operands, got {len(shapes)}")
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        if len(term) != len(shape):
            raise ShapeError(
                f"einsum: {term!r} in {subscripts!r} names {len(term)} axes, the operand has shape {tuple(shape)}"
            )
        for letter, n in zip(term, shape, strict=True):
            if sizes.setdefault(letter, n) != n:
                raise ShapeError(
                    f"einsum: axis {letter!r} in {subscripts!r} is {sizes[letter]} long in one operand, {n} in another"
                )
    return sizes


def _reduced(b: Primitives, x: Value, letters: str, needed: set[str]) -> tuple[Value, str]:
    axes = tuple(k for k, c in enumerate(letters) if c not in needed)
    return (b.sum(x, axes), "".join(c for c in letters if c in needed)) if axes else (x, letters)


def _product(
    b: Primitives, x: Value, xl: str, y: Value, yl: str, needed: set[str], sizes: dict[str, int]
) -> tuple[Value, str]:
    batch = [c for c in xl if c in yl and c in needed]
    inner = [c for c in xl if c in yl and c not in needed]
    left, right = [c for c in xl if c not in yl], [c for c in yl if c not in xl]
    n_batch, n_inner, n_left, n_right = (prod(sizes[c] for c in group) for group in (batch, inner, left, right))
    lead = (n_batch,) if batch else ()
    x = _arranged(b, x, xl, [*batch, *left, *inner], (*lead, n_left, n_inner))
    y = _arranged(b, y, yl, [*batch, *inner, *right], (*lead, n_inner, n_right))
    letters = [*batch, *left, *right]
    return b.reshape(b.matmul(x, y), tuple(sizes[c] for c in letters)), "".join(letters)


def _arranged(b: Primitives, x: Value, letters: str, order: list[str], shape: tuple[int, ...]) -> Value:
    axes = tuple(letters.index(c) for c in order)
    return b.reshape(x if axes == tuple(range(len(axes))) else b.permute(x, axes), shape)
