"""Where nestgrad and torch differ, and are to: at most ``LIMIT`` operations, each with a point at which both are seen.

At that point ``ours`` and ``torchs`` are what the two libraries give, and ``right`` is what mpmath says, by a computation of its own. A
test finds all three again, so that an exception cannot outlive its reason.
"""

from collections.abc import Callable
from dataclasses import dataclass

import mpmath
import torch

import nestgrad as ng

LIMIT = 20


@dataclass(frozen=True)
class Different:
    """An operation.

    Attributes:
        reason: Why they differ.
        where: In which of ``"value"``, ``"first"`` and ``"second"`` samples may differ.
        point: What is computed, by library.
        ours, torchs, right: What comes out.
    """

    reason: str
    where: tuple[str, ...]
    point: dict[str, Callable[[], float]]
    ours: float
    torchs: float
    right: float


def _ours(f: Callable[[ng.Tensor], ng.Tensor], x: list[float], k: int = 0, order: int = 1) -> float:
    stack = ng.NumpyBackend()
    for _ in range(order):
        stack = ng.Autodiff(stack)
    v = stack.tensor(x, requires_grad=True)
    g = f(v)
    for _ in range(order):
        g = g.sum().wrt(v)
    return float(g.numpy()[k])


def _torchs(f: Callable[[torch.Tensor], torch.Tensor], x: list[float], k: int = 0, order: int = 1) -> float:
    v = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    g = f(v)
    for _ in range(order):
        (g,) = torch.autograd.grad(g.sum(), v, create_graph=True)
    return float(g[k].detach())


_STEPS = [-1.0, -2.0, -0.5, -3.0]
"""Logarithms of a blank and a letter, at two steps. They are not normalized."""


def _letter(a: mpmath.mpf) -> mpmath.mpf:
    """The loss of one letter in two steps, by its three paths: letter letter, blank letter, letter blank."""
    e = mpmath.exp
    _, b, c, d = _STEPS
    return -mpmath.log(e(b + d) + e(a + d) + e(b + c))


EXCEPTIONS: dict[str, Different] = {
    "nn.functional.hardsigmoid": Different(
        "torch multiplies double precision by a sixth in single precision",
        ("first",),
        {
            "nestgrad": lambda: _ours(ng.nn.hardsigmoid, [0.5]),
            "torch": lambda: _torchs(torch.nn.functional.hardsigmoid, [0.5]),
            "mpmath": lambda: float(mpmath.diff(lambda x: (x + 3) / 6, 0.5)),
        },
        1 / 6, 0.1666666716337204, 1 / 6,
    ),
    "nn.functional.ctc_loss": Different(
        "torch's derivative is that by what log_softmax was applied to, whatever the input is",
        ("first", "second"),
        {
            "nestgrad": lambda: _ours(lambda x: ng.nn.ctc_loss(x.reshape(2, 1, 2), ng.tensor([[1]]), [2], [1], reduction="sum"), _STEPS),
            "torch": lambda: _torchs(lambda x: torch.nn.functional.ctc_loss(
                x.reshape(2, 1, 2), torch.tensor([[1]]), torch.tensor([2]), torch.tensor([1]), reduction="sum"), _STEPS),
            "mpmath": lambda: float(mpmath.diff(_letter, _STEPS[0])),
        },
        -0.17095278019779028, 0.19692666097365202, -0.17095278019779028,
    ),
}  # fmt: skip
