"""Connectionist temporal classification: the loss of a sequence of labels without an alignment."""

from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING, Any

from nestgrad.errors import DTypeError, IndexRangeError, ShapeError
from nestgrad.functions.choose import where
from nestgrad.functions.shaping import concat, stack
from nestgrad.nn.reduction import known, reduced
from nestgrad.tensor.handle import Handle, Operand, as_tensor

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["ctc_loss"]

_IMPOSSIBLE = -1e30
"""The logarithm of a probability of 0: finite, so that no derivative is a difference of infinities."""


def ctc_loss(
    log_probs: Operand,
    targets: Any,
    input_lengths: Sequence[int],
    target_lengths: Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> "Tensor":
    """Minus the logarithm of the probability of the targets, summed over all alignments.

    Graves et al., "Connectionist temporal classification", ICML 2006: the forward recursion, in logarithms.

    Args:
        log_probs: Shape ``(T, N, C)``: logarithms of probabilities of ``C`` classes, for ``N`` sequences of up to ``T`` steps.
        targets: Shape ``(N, S)``: classes, whole numbers that are constants. What is beyond a target's length is not read.
        input_lengths: How many steps each of the ``N`` sequences has, at most ``T``.
        target_lengths: How many labels each of the targets has, at most ``S``.
        blank: The class that stands for no label.
        reduction: ``"none"``: shape ``(N,)``. ``"sum"``. ``"mean"``: each loss over its target's length (at least 1), then the mean.
        zero_infinity: Whether the loss of targets that do not fit into their inputs is 0 rather than infinite. Its derivative is 0.

    Returns:
        The loss, in the dtype of ``log_probs``. Differentiable in it at every order. Cost: ``T`` steps of about 10 ops on arrays of
        shape ``(N, 2 S + 1)``.

    Raises:
        ShapeError: If shapes or lengths do not fit.
        ArgumentError: If ``reduction`` is none of the three.
        IndexRangeError: A label that is no class, or is the blank.
        DTypeError: Labels or lengths that are no whole numbers.
    """
    x = as_tensor(log_probs)
    try:
        labels = [[index(c) for c in row] for row in _listed(targets)]
        lengths, sizes = ([index(n) for n in _listed(given)] for given in (input_lengths, target_lengths))
    except TypeError as error:
        raise DTypeError(
            "ctc_loss: got targets or lengths that are no whole numbers; expected a row of labels for each sequence, and a length for each"
        ) from error
    if x.ndim != 3 or len(labels) != x.shape[1] or len(lengths) != x.shape[1] or len(sizes) != x.shape[1]:
        raise ShapeError(
            f"ctc_loss: got log_probs of shape {x.shape}, {len(labels)} targets, {len(lengths)} and {len(sizes)} lengths; "
            "expected (T, N, C), and N of each"
        )
    steps, count, classes = x.shape
    if not all(0 < n <= steps for n in lengths) or not all(0 <= m <= len(row) for m, row in zip(sizes, labels, strict=True)):
        raise ShapeError(f"ctc_loss: got input lengths {lengths}, target lengths {sizes}; expected 1 to {steps}, and at most the targets'")
    known("ctc_loss", reduction)
    for row, m in zip(labels, sizes, strict=True):
        if wrong := [c for c in row[:m] if not 0 <= c < classes or c == blank]:
            raise IndexRangeError(f"ctc_loss: got label {wrong[0]}; expected classes from 0 to {classes - 1}, and not the blank, {blank}")
    loss = -_total(x, [row[:m] for row, m in zip(labels, sizes, strict=True)], lengths, blank)
    possible = loss < -0.5 * _IMPOSSIBLE
    loss = where(possible, loss, 0.0 if zero_infinity else float("inf"))
    if reduction == "mean" and count:
        loss = loss / x.b.base.tensor([float(max(m, 1)) for m in sizes], dtype=x.dtype)
    return reduced("ctc_loss", loss, reduction)


def _total(x: "Tensor", labels: list[list[int]], lengths: list[int], blank: int) -> "Tensor":
    """Logarithms of the probabilities of all alignments: shape ``(N,)``."""
    base = x.b.base
    width = 2 * max((len(row) for row in labels), default=0) + 1
    # blank, label, blank, label, ..., blank; a path may skip a blank between two labels that differ
    path = [[c for label in row for c in (blank, label)] + [blank] * (width - 2 * len(row)) for row in labels]
    skips = [[j >= 2 and row[j] != blank and row[j] != row[j - 2] for j in range(width)] for row in path]
    if not path:
        return x.sum((0, 2))
    rows = [[n] * width for n in range(len(path))]
    skip = base.tensor(skips)
    below = base.tensor([[_IMPOSSIBLE] * 2] * len(path), dtype=x.dtype)
    start = base.tensor([[j < min(2, 2 * len(row) + 1) for j in range(width)] for row in labels])
    chances = where(start, x[0][rows, path], _IMPOSSIBLE)
    ends = []
    for t in range(max(lengths)):
        if t:
            padded = concat([below, chances], axis=1)
            stay, step, leap = padded[:, 2:], padded[:, 1:-1], where(skip, padded[:, :-2], _IMPOSSIBLE)
            chances = (stack([stay, step, leap]).logsumexp(0) + x[t][rows, path]).maximum(_IMPOSSIBLE)
        ends += [(n, chances) for n, length in enumerate(lengths) if length == t + 1]
    last = [(n, found[n, max(0, 2 * len(labels[n]) - 1) : 2 * len(labels[n]) + 1].logsumexp()) for n, found in ends]
    return stack([end for _, end in sorted(last, key=lambda pair: pair[0])])


def _listed(values: Any) -> list[Any]:
    """Numbers as lists; refused where they are on a level that has many of them."""
    if isinstance(values, Handle) or hasattr(values, "__array_interface__"):
        return list(as_tensor(values).tolist())
    return list(values)
