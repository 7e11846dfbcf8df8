"""What the table of all operations measures: for each function of nestgrad, the same in torch, and its inputs.

A million numbers unless another size is the realistic one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import nestgrad as ng

SIZE = 1_000_000
Draw = Callable[[np.random.Generator], Any]
"""An array from a generator."""


@dataclass(frozen=True)
class Case:
    """A row of the table.

    Attributes:
        name: What it is called: the function's name in ``nestgrad``, perhaps with a word more.
        ours: The function of Tensors.
        theirs: The same of torch's tensors.
        inputs: What makes the inputs; all are differentiated by.
        tolerance: By how much results may differ, relative to the largest entry.
    """

    name: str
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    inputs: tuple[Draw, ...]
    tolerance: float = 1e-3


CASES: list[Case] = []


def draw(low: float, high: float, *shape: int) -> Draw:
    """Uniform numbers."""
    return lambda rng: rng.uniform(low, high, shape or SIZE)


def case(name: str, theirs: Callable[..., Any], *inputs: Draw, ours: Callable[..., Any] | None = None, tolerance: float = 1e-3) -> None:
    """Add a row. Without ``ours`` it is the function of that name."""
    if ours is None:
        ours = ng
        for word in name.split("."):
            ours = getattr(ours, word)
    CASES.append(Case(name, ours, theirs, inputs, tolerance))


def by_rows(f: Callable[..., Any]) -> Callable[..., Any]:
    """Along the last axis, which both libraries take by position."""
    return lambda x: f(x, 1)


def squared(f: Callable[..., Any]) -> Callable[..., Any]:
    """With a square after it, so that there is a second derivative."""
    return lambda *xs: f(*xs) ** 2


REAL, POSITIVE, UNIT, ABOVE = draw(-1.8, 1.8), draw(0.2, 2.5), draw(-0.9, 0.9), draw(1.2, 3.0)
ROWS = draw(-1.8, 1.8, 1000, 1000)

for _name in ("negative", "square", "exp", "expm1", "sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "asinh", "erf", "sigmoid", "abs"):
    case(_name, getattr(torch, _name), draw(-1.2, 1.2) if _name == "tan" else REAL)
for _name in ("reciprocal", "sqrt", "rsqrt", "log", "log1p"):
    case(_name, getattr(torch, _name), POSITIVE)
for _name in ("asin", "acos", "atanh"):
    case(_name, getattr(torch, _name), UNIT)
case("acosh", torch.acosh, ABOVE)
for _name in ("relu", "softplus"):
    case(_name, getattr(torch.nn.functional, _name), REAL)
for _name in ("add", "subtract", "multiply", "maximum", "minimum"):
    case(_name, getattr(torch, _name), REAL, draw(-1.8, 1.8))
case("divide", torch.divide, REAL, POSITIVE)
case("power", torch.pow, POSITIVE, REAL)
case("power 3", lambda x: x**3, REAL, ours=lambda x: x**3)
case("power 2.5", lambda x: x**2.5, POSITIVE, ours=lambda x: x**2.5)
case("multiply by a number", lambda x: x * 1.7, REAL, ours=lambda x: x * 1.7)
case("clamp", lambda x: torch.clamp(x, -1.0, 0.5), REAL, ours=lambda x: ng.clamp(x, -1.0, 0.5))
case("where", lambda x, y: torch.where(x > y, x, y), REAL, REAL, ours=lambda x, y: ng.where(x > y, x, y))

# reductions
for _name in ("sum", "mean", "logsumexp"):
    case(_name, by_rows(getattr(torch, _name)), ROWS, ours=by_rows(getattr(ng, _name)))
case("prod", lambda x: torch.prod(x, dim=1), draw(0.99, 1.01, 1000, 1000), ours=lambda x: ng.prod(x, axis=1))
case("max", lambda x: torch.amax(x, dim=1), ROWS, ours=lambda x: ng.max(x, axis=1))
case("min", lambda x: torch.amin(x, dim=1), ROWS, ours=lambda x: ng.min(x, axis=1))
case("var", lambda x: torch.var(x, dim=1, correction=1), ROWS, ours=lambda x: ng.var(x, axis=1, correction=1))
case("norm", lambda x: torch.linalg.vector_norm(x, dim=1), ROWS, ours=lambda x: ng.norm(x, axis=1))
for _name in ("softmax", "log_softmax"):
    # squared, since the sum of all of softmax is constant
    case(_name, squared(by_rows(getattr(torch, _name))), ROWS, ours=squared(by_rows(getattr(ng, _name))))

# shapes: with a square after them, so that there is a second derivative
_SHAPES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "reshape": (lambda x: ng.reshape(x, (-1, 10)), lambda x: x.reshape(-1, 10)),
    "permute": (lambda x: ng.permute(x, (1, 0)), lambda x: x.permute(1, 0)),
    "pad": (lambda x: ng.pad(x, ((1, 1), (2, 2))), lambda x: torch.nn.functional.pad(x, (2, 2, 1, 1))),
    "getitem": (lambda x: x[2:, ::2], lambda x: x[2:, ::2]),
    "concat": (lambda x: ng.concat([x, x], axis=1), lambda x: torch.cat([x, x], dim=1)),
    "stack": (lambda x: ng.stack([x, x]), lambda x: torch.stack([x, x])),
}
for _name, (_ours, _theirs) in _SHAPES.items():
    case(_name, squared(_theirs), ROWS, ours=squared(_ours))
case("broadcast_to", lambda x: torch.square(x.expand(1000, 1000)), draw(-1, 1, 1000),
     ours=lambda x: ng.square(ng.broadcast_to(x, (1000, 1000))), tolerance=2e-3)  # fmt: skip

# products
_SQUARE = draw(-1, 1, 512, 512)
case("matmul", torch.matmul, _SQUARE, draw(-1, 1, 512, 512))
case("linear", lambda x, w, z: torch.addmm(z, x, w), draw(-1, 1, 4096, 256), draw(-1, 1, 256, 256), draw(-1, 1, 256))
case("einsum", lambda x, y: torch.einsum("bij,bjk->bik", x, y), draw(-1, 1, 64, 100, 100), draw(-1, 1, 64, 100, 100),
     ours=lambda x, y: ng.einsum("bij,bjk->bik", x, y))  # fmt: skip
