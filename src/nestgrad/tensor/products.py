"""Matrix products in all ranks, linear layers and einsum, as functions of Tensors."""

from typing import TYPE_CHECKING, Any

from nestgrad.errors import ShapeError
from nestgrad.levels.reverse.node import Tracked
from nestgrad.tensor.handle import Handle, Operand, apply, arrays, is_scalar, make, meet

if TYPE_CHECKING:
    from nestgrad.tensor.tensor import Tensor


def matmul(x: Operand, y: Operand) -> "Tensor":
    """Product of matrices, vectors, or stacks of matrices, as ``np.matmul``.

    Args:
        x: Shape ``(..., m, k)`` or ``(k,)``.
        y: Shape ``(..., k, n)`` or ``(k,)``; leading axes broadcast.

    Returns:
        Shape ``(..., m, n)``, without the axis that a vector lacks.

    Raises:
        ShapeError: If the shapes do not fit, or one is 0-dimensional.
    """
    b, (p, q), marks = meet("matmul", x, y)
    left, right = tuple(b.shape(p)), tuple(b.shape(q))
    if len(left) > 1 and len(right) > 1:
        return make(b, b.matmul(p, q), marks)
    if not left or not right:
        raise ShapeError(f"matmul: got shapes {left} and {right}; expected at least one axis each. Try x * y for a product with a number")
    row, column = len(left) == 1, len(right) == 1
    if len(left) + len(right) == 3 and left[-1] == right[0]:
        x, y, across = (p, q, False) if row else (q, p, True)
        return make(b, b.vecmat(x, y, across), marks)
    p = b.reshape(p, (1, *left)) if row else p
    q = b.reshape(q, (*right, 1)) if column else q
    out = b.matmul(p, q)
    shape = tuple(b.shape(out))
    if column:
        shape = shape[:-1]
    if row:
        shape = (*shape[: -1 if column else -2], *(() if column else shape[-1:]))
    return make(b, b.reshape(out, shape), marks)


def linear(x: Operand, weight: Operand, bias: Operand | None = None) -> "Tensor":
    """``x @ weight + bias`` as one op.

    Args:
        x: Shape ``(..., n_in)``, at least 2 axes.
        weight: Shape ``(n_in, n_out)``, the transpose of ``torch.nn.functional.linear``'s.
        bias: Shape ``(n_out,)``, or ``None``.

    Returns:
        Shape ``(..., n_out)``.

    Raises:
        ShapeError: If the shapes do not fit.
    """
    if isinstance(x, Handle) and isinstance(weight, Handle) and isinstance(bias, Handle):
        b, marks, p, q = x.b, x.marks, x.value, weight.value
        if weight.marks is bias.marks is marks and weight.b is bias.b is b and p.__class__ is q.__class__ is Tracked:
            if len(p.node.shape) > 1 and len(q.node.shape) == 2:
                return make(b, b.linear(p, q, bias.value), marks)
    if bias is None or is_scalar(bias) or len(getattr(x, "shape", ())) < 2 or len(getattr(weight, "shape", ())) != 2:
        product = matmul(x, weight)
        return product if bias is None else product + bias
    return apply("linear", x, weight, bias)


def einsum(subscripts: str, *operands: Operand) -> "Tensor":
    """Einstein summation, as ``np.einsum``: letters, an ellipsis, repeated letters; with or without ``->``.

    Args:
        subscripts: Such as ``"...ij,jk->...ik"``.
        operands: One array for each group of letters. An axis of size 1 is repeated where its letter has another size elsewhere.

    Returns:
        An array with the axes after the arrow. Differentiable in all operands.

    Raises:
        ShapeError: If letters and axes do not match.

    >>> from nestgrad import tensor
    >>> einsum("i,i", tensor([1.0, 2.0]), tensor([3.0, 4.0])).item()
    11.0
    """
    if not isinstance(subscripts, str):
        raise ShapeError(f"einsum: got a {type(subscripts).__name__} first; expected subscripts, such as 'ij,jk->ik'")
    if not operands:
        raise ShapeError(f"einsum: got {subscripts!r} and no operands; expected at least one")
    b, values, marks = arrays("einsum", *operands)
    words, output = _letters(subscripts, [len(b.shape(v)) for v in values])
    for k, word in enumerate(words):
        values[k], words[k] = _diagonal(b, values[k], word)
    _repeat(b, values, words, subscripts)
    return make(b, b.einsum(*values, subscripts=f"{','.join(words)}->{output}"), marks)


def _letters(subscripts: str, ranks: list[int]) -> tuple[list[str], str]:
    """Plain letters for each operand and the output: ellipses are written out, and a missing arrow is filled in as NumPy does."""
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    words = inputs.split(",")
    if len(words) != len(ranks):
        raise ShapeError(f"einsum: got {subscripts!r} and {len(ranks)} operands; expected {len(words)}")
    for w in (*words, output):
        if w.count("...") > 1 or not all(c.isascii() and c.isalpha() for c in w.replace("...", "")):
            raise ShapeError(f"einsum: got {subscripts!r}; expected letters, commas, one arrow, and at most one ellipsis in each group")
    spare = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" if c not in subscripts]
    extra = [n - len(w.replace("...", "")) if "..." in w else 0 for w, n in zip(words, ranks, strict=True)]
    dots = "".join(spare[: max(extra)])
    words = [w.replace("...", dots[len(dots) - max(e, 0) :]) for w, e in zip(words, extra, strict=True)]
    for w, n in zip(words, ranks, strict=True):
        if len(w) != n:
            raise ShapeError(f"einsum: got {subscripts!r}; the operand of {w!r} has {n} axes, expected {len(w)}")
    every = "".join(words)
    if not arrow:
        return words, dots + "".join(sorted(c for c in set(every) if every.count(c) == 1 and c not in dots))
    if dots and "..." not in output:
        raise ShapeError(f"einsum: got {subscripts!r}; the output lacks the ellipsis, which stands for {len(dots)} axes of an operand")
    output = output.replace("...", dots)
    if strange := [c for c in dict.fromkeys(output) if c not in every or output.count(c) > 1]:
        raise ShapeError(f"einsum: got {subscripts!r}; expected letters of the output once, and in some operand, not {strange}")
    return words, output


def _diagonal(b: Any, x: Any, word: str) -> tuple[Any, str]:
    """An operand whose letters repeat, such as ``ii``, as its diagonal."""
    for letter in dict.fromkeys(word):
        places = [k for k, c in enumerate(word) if c == letter]
        if len(places) > 1:
            sizes = {b.shape(x)[k] for k in places}
            if len(sizes) > 1:
                raise ShapeError(f"einsum: got sizes {sorted(sizes)} for the letter {letter!r}; expected one size")
            rest = [k for k in range(len(word)) if k not in places]
            rows = b.base.index(list(range(sizes.pop())))
            x = b.getitem(b.permute(x, (*places, *rest)), (rows,) * len(places))
            word = letter + "".join(word[k] for k in rest)
    return x, word


def _repeat(b: Any, values: list[Any], words: list[str], subscripts: str) -> None:
    """Repeat, in place of the list, axes of size 1 whose letter has another size elsewhere."""
    shapes = [tuple(b.shape(v)) for v in values]
    sizes: dict[str, int] = {}
    for word, shape in zip(words, shapes, strict=True):
        for letter, n in zip(word, shape, strict=True):
            if sizes.setdefault(letter, n) == 1:
                sizes[letter] = n
            elif n not in (1, sizes[letter]):
                raise ShapeError(f"einsum: got {subscripts!r} for shapes {shapes}; {letter!r} is {sizes[letter]} in one and {n} in another")
    for k, (word, shape) in enumerate(zip(words, shapes, strict=True)):
        wanted = tuple(sizes[c] for c in word)
        if wanted != shape:
            values[k] = b.broadcast_to(values[k], wanted)
