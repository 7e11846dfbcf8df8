"""Workloads of ``benchmarks.partials``: functions of torch tensors in float64, none of them constant, and points."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch

Tensor = torch.Tensor


@dataclass(frozen=True)
class Case:
    """One row.

    Attributes:
        name: Of the row.
        f: Of all leaves.
        leaves: Tracked tensors.
        order: Of the derivatives.
        crossings: Mixed partials as well.
        samples: Not None: what is stored is compared, not what is dense; which axis of each leaf ``vmap`` runs along, None for no axis.
        alone: The graph is there before the clock starts.
        nested: Nested passes of torch.autograd are run as well.
        slow: thoad is not waited for.
        target: (at most that share of the time of torch's best, None; milliseconds at most, None).
    """

    name: str
    f: Callable[..., Tensor]
    leaves: tuple[Tensor, ...]
    order: int
    crossings: bool = False
    samples: tuple[int | None, ...] | None = None
    alone: bool = False
    nested: bool = False
    slow: bool = False
    target: tuple[float | None, float | None] = (None, None)

    @property
    def flag(self) -> str:
        """The target as the table has it."""
        share, milliseconds = self.target
        return "" if self.target == (None, None) else f"{share}" if milliseconds is None else f"{milliseconds:g} ms"


def drawn(seed: int, *shapes: tuple[int, ...], scale: float = 1.0) -> list[Tensor]:
    """Normal numbers."""
    rng = np.random.default_rng(seed)
    return [torch.tensor(rng.normal(size=shape) * scale) for shape in shapes]


def tracked(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Leaves."""
    return tuple(tensor.clone().requires_grad_() for tensor in tensors)


def tanh_net(n: int, order: int) -> Case:
    """A dense tanh net of one point, from R^n to R^n; as a row, since thoad has no product of a vector and a matrix."""
    first, second = drawn(0, (n, n), (n, n), scale=1 / math.sqrt(n))
    f = lambda x: torch.tanh(torch.tanh(x @ first) @ second)
    return Case(f"tanh net R{n} to R{n}", f, tracked(*drawn(1, (1, n))), order, nested=order < 3)


def sine_times_exp(n: int, order: int, target: float | None = None) -> Case:
    """Two leaves of n numbers each in one sum: only the diagonals are not zero, which neither torch nor thoad makes use of."""
    f = lambda x, y: (x.sin() * y.exp()).sum()
    return Case(f"sum(sin x * exp y), {n} + {n}", f, tracked(*drawn(2, (n,), (n,))), order, True, nested=order == 2, target=(target, None))


def attention(queries: int, width: int, keys: int, order: int, crossings: bool, target: float | None = None) -> Case:
    """Attention whose keys are its values, with a softmax that is spelled out, which thoad can read."""

    def f(x: Tensor, y: Tensor) -> Tensor:
        return torch.softmax(x @ y / math.sqrt(width), -1) @ y.T

    leaves = tracked(*drawn(3, (queries, width), (width, keys)))
    name = f"attention ({queries}, {width}), ({width}, {keys}){', crossings' if crossings else ''}"
    return Case(name, f, leaves, order, crossings, nested=order == 1, target=(target, None))


def mlp(widths: tuple[int, ...], batch: int, order: int, target: float | None = None, alone: bool = False) -> Case:
    """Mean squared error of a tanh net, by all its weights and biases."""
    x, goal = drawn(4, (batch, widths[0]), (batch, widths[-1]))
    sizes = list(pairwise(widths))
    weights = [w / math.sqrt(n) for (n, _), w in zip(sizes, drawn(5, *sizes), strict=True)]
    biases = drawn(6, *((m,) for _, m in sizes), scale=0.1)
    depth = len(sizes)

    def f(*flat: Tensor) -> Tensor:
        h = x
        for k in range(depth):
            h = h @ flat[k] + flat[depth + k]
            h = torch.tanh(h) if k < depth - 1 else h
        return ((h - goal) ** 2).mean()

    name = f"MLP {'-'.join(map(str, widths))}, batch {batch}, all parameters"
    limited = order < 3
    return Case(name, f, tracked(*weights, *biases), order, order > 1, alone=alone, nested=limited, target=(target, None))


def deep(layers: int, order: int, target: float | None = None, alone: bool = False) -> Case:
    """A narrow deep tanh net, by its input."""
    weights = drawn(7, *[(8, 8)] * layers, scale=1 / math.sqrt(8))

    def f(x: Tensor) -> Tensor:
        for weight in weights:
            x = torch.tanh(x @ weight)
        return (x * x.cos()).sum()

    leaves = tracked(*drawn(8, (8, 8)))
    return Case(f"MLP of {layers} layers 8 x 8, by X (8, 8)", f, leaves, order, alone=alone, nested=True, target=(target, None))


def softmax_net(batch: int, p: int, order: int, loss: bool, parameters: bool = False, **more: Any) -> Case:
    """Two layers with relu and one with softmax, as in thoad's own measurements, but weighed before it is summed."""
    x, weights, *matrices = drawn(9, (batch, p), (batch, p), *[(p, p)] * 3, scale=1 / math.sqrt(p))

    def f(x: Tensor, *given: Tensor) -> Tensor:
        first, second, last = given or matrices
        y = torch.softmax(torch.relu(torch.relu(x @ first) @ second) @ last, -1)
        return (y * weights).sum() if loss else y

    leaves = tracked(x, *(matrices if parameters else ()))
    what = ("loss" if loss else "all outputs") + (", X and all parameters" if parameters else ", by X")
    return Case(f"softmax net, batch {batch}, p = {p}, {what}", f, leaves, order, parameters, **more)


def per_sample(batch: int, p: int, target: float) -> Case:
    """The Hessian of each sample's loss by that sample."""
    first, second = drawn(10, (p, p), (p, p), scale=1 / math.sqrt(p))
    f = lambda x: (torch.tanh(torch.tanh(x @ first) @ second) ** 2).sum(-1)
    leaves = tracked(*drawn(11, (batch, p)))
    return Case(f"Hessian of each sample, batch {batch}, p = {p}", f, leaves, 2, samples=(0,), target=(target, None))


def elementwise(n: int, order: int) -> Case:
    """No entry meets another."""
    f = lambda x: x.sin() * x.exp()
    return Case(f"sin x * exp x, n = {n:,}", f, tracked(*drawn(12, (n,))), order, samples=(0,), target=(None, 3.0))


def chain(order: int, target: float | None = None) -> Case:
    """Six operations on a number."""
    f = lambda x: ((x.sin() * x).exp().tanh() + x).square()
    point = tracked(torch.tensor(0.7, dtype=torch.float64))
    return Case("chain of 6 ops on a number", f, point, order, nested=True, slow=order > 6, target=(None, target))


def passes() -> list[Case]:
    """Order 1, the graph being there."""
    return [
        mlp((8, 8, 8, 1), 8, 1, 3.0, alone=True),
        mlp((64, 256, 256, 1), 64, 1, 3.0, alone=True),
        deep(16, 1, 3.0, alone=True),
    ]


def dense() -> list[Case]:
    """Derivatives that are read as dense tensors."""
    return [
        *(tanh_net(32, order) for order in (1, 2, 3)), tanh_net(16, 4),
        sine_times_exp(64, 2), sine_times_exp(64, 3, 1.0), sine_times_exp(12, 4),
        attention(10, 15, 20, 1, False), attention(10, 15, 20, 2, False, 0.8), attention(10, 15, 20, 2, True, 0.8),
        attention(4, 3, 4, 3, True),
        mlp((8, 8, 8, 1), 8, 2, 1.5), mlp((3, 3, 3, 1), 4, 3), mlp((3, 3, 3, 1), 4, 4), deep(16, 2),
        softmax_net(80, 10, 2, True), softmax_net(10, 80, 2, True),
        softmax_net(10, 10, 2, True, True), softmax_net(10, 30, 2, True, True),
        softmax_net(45, 5, 2, False, target=(0.5, None)), softmax_net(15, 5, 3, False),
        chain(2), chain(4), chain(7, 5.0),
    ]  # fmt: skip


def stored() -> list[Case]:
    """Derivatives that are read as they are stored."""
    return [
        softmax_net(45, 5, 2, False, samples=(0,)), softmax_net(80, 10, 2, False, samples=(0,)), softmax_net(15, 5, 3, False, samples=(0,)),
        per_sample(80, 10, 1.2), elementwise(4096, 3),
    ]  # fmt: skip
