"""Matrix products in all ranks, linear layers and einsum, as functions of Tensors."""

from typing import TYPE_CHECKING

from nestgrad.errors import ShapeError
from nestgrad.tensor.handle import Operand, apply, as_tensor, make, meet

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
    if bias is None or as_tensor(x).ndim < 2:
        product = matmul(x, weight)
        return product if bias is None else product + bias
    return apply("linear", x, weight, bias)


def einsum(subscripts: str, *operands: Operand) -> "Tensor":
    """Einstein summation, as ``np.einsum``: letters, an ellipsis, repeated letters; with or without ``->``.

    Args:
        subscripts: Such as ``"...ij,jk->...ik"``.
        operands: One array for each group of letters.

    Returns:
        An array with the axes after the arrow. Differentiable in all operands.

    Raises:
        ShapeError: If letters and axes do not match.
    """
    tensors = [as_tensor(x) for x in operands]
    words, output = _letters(subscripts, [t.ndim for t in tensors])
    for k, word in enumerate(words):
        tensors[k], words[k] = _diagonal(tensors[k], word)
    if missing := [c for c in output if not any(c in w for w in words)]:
        raise ShapeError(f"einsum: got {subscripts!r}; the output has {missing}, which no operand has")
    return apply("einsum", *tensors, subscripts=f"{','.join(words)}->{output}")


def _letters(subscripts: str, ranks: list[int]) -> tuple[list[str], str]:
    """Plain letters for each operand and the output: ellipses are written out, and a missing arrow is filled in as NumPy does."""
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    words = inputs.split(",")
    if len(words) != len(ranks):
        raise ShapeError(f"einsum: got {subscripts!r} and {len(ranks)} operands; expected {len(words)}")
    spare = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" if c not in subscripts]
    extra = [n - len(w.replace("...", "")) if "..." in w else 0 for w, n in zip(words, ranks, strict=True)]
    dots = spare[: max(extra, default=0)]
    words = [w.replace("...", "".join(dots[len(dots) - e :])) for w, e in zip(words, extra, strict=True)]
    for w, n in zip(words, ranks, strict=True):
        if len(w) != n:
            raise ShapeError(f"einsum: got {subscripts!r}; the operand of {w!r} has {n} axes, expected {len(w)}")
    if not arrow:
        every = "".join(words)
        output = "".join(dots) + "".join(sorted(c for c in set(every) if every.count(c) == 1 and c not in dots))
    return words, output.replace("...", "".join(dots))


def _diagonal(x: "Tensor", word: str) -> "tuple[Tensor, str]":
    """An operand whose letters repeat, such as ``ii``, as its diagonal."""
    for letter in dict.fromkeys(word):
        places = [k for k, c in enumerate(word) if c == letter]
        if len(places) > 1:
            sizes = {x.shape[k] for k in places}
            if len(sizes) > 1:
                raise ShapeError(f"einsum: got sizes {sorted(sizes)} for the letter {letter!r}; expected one size")
            rest = [k for k in range(x.ndim) if k not in places]
            rows = x.b.base.index(list(range(sizes.pop())))
            moved = x.b.permute(x.value, (*places, *rest))
            x = make(x.b, x.b.getitem(moved, (rows,) * len(places)), x.marks)
            word = letter + "".join(word[k] for k in rest)
    return x, word
