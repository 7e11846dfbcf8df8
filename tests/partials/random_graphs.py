"""Random programs in words that nestgrad and PyTorch have in common; some go through a derivative of what was computed before.

A program is a list of steps. Each takes values by their number among all that there are before it, so a value is used never, once, or
several times; the leaves come first.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from hypothesis import strategies as st

import nestgrad as ng

Shape = tuple[int, ...]


class Words(NamedTuple):
    """What is spelled in other ways elsewhere: each is a function of a value and parameters, or of several values."""

    unary: dict[str, Callable[[Any], Any]]
    binary: dict[str, Callable[[Any, Any], Any]]
    reduced: dict[str, Callable[[Any, Shape, bool], Any]]
    along: dict[str, Callable[[Any, int], Any]]
    shaped: dict[str, Callable[[Any, Shape], Any]]
    concat: Callable[[list[Any], int], Any]
    gathered: Callable[[Any, list[int]], Any]
    slope: Callable[[Any, Any], Any]


def _each(reduce: Callable[[Any, int, bool], Any]) -> Callable[[Any, Shape, bool], Any]:
    """A reduction of one axis, for several."""

    def call(x: Any, axes: Shape, keep: bool) -> Any:
        for axis in sorted(axes, reverse=True):
            x = reduce(x, axis, keep)
        return x

    return call


def _slope(y: Any, x: Any) -> Any:
    """The derivative of the sum of squares."""
    if not y.requires_grad:
        return torch.zeros_like(x)
    return torch.autograd.grad((y * y).sum(), x, create_graph=True, materialize_grads=True)[0]


def _our_slope(y: Any, x: Any) -> Any:
    try:
        return (y * y).sum().wrt(x)
    except (ng.errors.NotConnectedError, ng.errors.NotTrackedError):
        return ng.tensor(np.zeros(x.shape))


SHARED = {"square": lambda x: x * x, "cube": lambda x: x**3, "neg": lambda x: -x, "quotient": lambda x: x / (x * x + 1.0)}
PAIRS = {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "div": lambda x, y: x / (y * y + 1.0)}
SHAPED = {name: lambda x, to, name=name: getattr(x, name)(to) for name in ("reshape", "permute", "broadcast_to")}
REDUCED = ("sum", "mean", "prod", "max", "logsumexp")
METHODS = ("sin", "cos", "tanh", "sigmoid", "relu", "abs")

OURS = Words(
    SHARED
    | {name: lambda x, name=name: getattr(x, name)() for name in METHODS}
    | {"exp": lambda x: x.tanh().exp(), "softplus": ng.nn.softplus},
    PAIRS | {"maximum": ng.maximum, "where": lambda x, y: ng.where(x > 0.17, x * y, y)},
    {name: lambda x, axes, keep, name=name: getattr(x, name)(axis=axes, keepdims=keep) for name in REDUCED},
    {name: lambda x, axis, name=name: getattr(x, name)(axis) for name in ("softmax", "log_softmax", "cumsum")},
    SHAPED,
    lambda xs, axis: ng.concat(xs, axis=axis),
    lambda x, rows: x[np.array(rows)],
    _our_slope,
)
THEIRS = Words(
    SHARED
    | {name: lambda x, name=name: getattr(x, name)() for name in METHODS}
    | {"exp": lambda x: x.tanh().exp(), "softplus": torch.nn.functional.softplus},
    PAIRS | {"maximum": torch.maximum, "where": lambda x, y: torch.where(x > 0.17, x * y, y)},
    {
        "sum": lambda x, axes, keep: x.sum(axes, keep),
        "mean": lambda x, axes, keep: x.mean(axes, keep),
        "prod": _each(lambda x, axis, keep: x.prod(axis, keep)),
        "max": lambda x, axes, keep: x.amax(axes, keep),
        "logsumexp": lambda x, axes, keep: x.logsumexp(axes, keep),
    },
    {name: lambda x, axis, name=name: getattr(x, name)(axis) for name in ("softmax", "log_softmax", "cumsum")},
    SHAPED,
    lambda xs, axis: torch.cat(xs, axis),
    lambda x, rows: x[torch.tensor(rows)],
    _slope,
)

Step = tuple[str, Callable[[Words, list[Any]], Any]]


@dataclass
class Drawn:
    """A program.

    Attributes:
        leaves: Their shapes.
        steps: What is appended to the values, one after the other; with words that tell it.
    """

    leaves: list[Shape]
    steps: list[Step]

    def run(self, words: Words, leaves: list[Any]) -> Any:
        """The last value."""
        values = list(leaves)
        for _, step in self.steps:
            values.append(step(words, values))
        return values[-1]

    def __repr__(self) -> str:
        return f"leaves {self.leaves}: " + "; ".join(name for name, _ in self.steps)


LEAVES = ((), (2,), (3,), (1, 2), (2, 1), (2, 2))
MOST = 9
"""How many entries a value has at most."""


def _shape_of(steps: list[Step], leaves: list[Shape]) -> Shape:
    """The shape of the last value."""
    return tuple(Drawn(leaves, steps).run(THEIRS, [torch.full(shape, 0.3, requires_grad=True) for shape in leaves]).shape)


@st.composite
def programs(draw: Any, slopes: int = 0) -> Drawn:
    """Programs of 3 to 8 steps, of which up to ``slopes`` are derivatives by a leaf."""
    leaves = draw(st.lists(st.sampled_from(LEAVES), min_size=1, max_size=2))
    steps: list[Step] = []
    shapes = list(leaves)
    for left in range(draw(st.integers(3, 8)), 0, -1):
        kinds = ["unary", "unary", "binary", "binary", "reduced", "along", "shaped", "concat", "slice", "gathered", "matmul"]
        kind = "slope" if slopes and left <= 3 + slopes else draw(st.sampled_from(kinds))
        slopes -= kind == "slope"
        step = _drawn(draw, kind, shapes, len(leaves))
        shape = _shape_of([*steps, step], leaves)
        if prod(shape) <= MOST:
            steps.append(step)
            shapes.append(shape)
    return Drawn(leaves, steps or [("sin 0", lambda words, values: words.unary["sin"](values[0]))])


def _broadcast(shape: Shape, other: Shape) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(shape[::-1], other[::-1], strict=False))


def _without(shape: Shape, axis: int) -> Shape:
    return shape[:axis] + shape[axis + 1 :]


def _drawn(draw: Any, kind: str, shapes: list[Shape], leaves: int) -> Step:
    i = max(draw(st.integers(0, len(shapes) - 1)), draw(st.integers(0, len(shapes) - 1)))  # later ones are taken more often
    shape = shapes[i]
    rank = len(shape)
    if kind == "slope":
        leaf = draw(st.integers(0, leaves - 1))
        return f"slope {i} by {leaf}", lambda words, values: words.slope(values[i], values[leaf])
    if kind == "binary":
        fitting = [k for k, other in enumerate(shapes) if _broadcast(shape, other)]
        j, name = draw(st.sampled_from(fitting)), draw(st.sampled_from(sorted(OURS.binary)))
        return f"{name} {i} {j}", lambda words, values: words.binary[name](values[i], values[j])
    if kind == "matmul":
        fitting = [k for k, other in enumerate(shapes) if rank and other and shape[-1] == other[-2 if len(other) > 1 else 0]]
        if fitting:
            j = draw(st.sampled_from(fitting))
            return f"matmul {i} {j}", lambda words, values: values[i] @ values[j]
    if rank and kind in ("reduced", "along", "concat", "slice", "gathered"):
        axis = draw(st.integers(0, rank - 1))
        if kind == "reduced":
            name, keep = draw(st.sampled_from(sorted(OURS.reduced))), draw(st.booleans())
            axes = draw(st.sampled_from([(axis,), tuple(range(rank))]))
            return f"{name} {i} {axes} {keep}", lambda words, values: words.reduced[name](values[i], axes, keep)
        if kind == "along":
            name = draw(st.sampled_from(sorted(OURS.along)))
            return f"{name} {i} {axis}", lambda words, values: words.along[name](values[i], axis)
        if kind == "concat":
            fitting = [k for k, other in enumerate(shapes) if len(other) == rank and _without(other, axis) == _without(shape, axis)]
            j = draw(st.sampled_from(fitting))
            return f"concat {i} {j} {axis}", lambda words, values: words.concat([values[i], values[j]], axis)
        if kind == "slice":
            index = (*(slice(None),) * axis, draw(st.sampled_from([slice(1, None), slice(0, 1), 0])))
            if shape[axis] > 1:
                return f"{i}{index}", lambda words, values: values[i][index]
        if kind == "gathered":
            rows = draw(st.lists(st.integers(0, shape[0] - 1), min_size=1, max_size=3))
            return f"{i}{rows}", lambda words, values: words.gathered(values[i], rows)
    if kind == "shaped":
        name = draw(st.sampled_from(sorted(OURS.shaped)))
        new: dict[str, list[Shape]] = {
            "reshape": [(prod(shape),), (*shape, 1), shape[::-1]],
            "permute": [tuple(draw(st.permutations(range(rank))))],
            "broadcast_to": [(2, *shape), (1, *shape), tuple(2 if n == 1 else n for n in shape)],
        }
        to = draw(st.sampled_from(new[name]))
        return f"{name} {i} {to}", lambda words, values: words.shaped[name](values[i], to)
    name = draw(st.sampled_from(sorted(OURS.unary)))
    return f"{name} {i}", lambda words, values: words.unary[name](values[i])


def numbers(shapes: list[Shape], seed: int) -> list[Any]:
    """Distinct numbers, none near zero."""
    rng = np.random.default_rng(seed)
    return [rng.uniform(0.25, 1.25, shape) * rng.choice([-1.0, 1.0], shape) for shape in shapes]
