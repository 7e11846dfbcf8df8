"""What a row of the table of all operations is: a function of nestgrad, the same in torch, and its inputs.

A million numbers unless another size is the realistic one. The rows are in the modules beside.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

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

WITHOUT = {
    "makes arrays, with nothing to differentiate by": "tensor asarray from_numpy from_torch zeros ones full eye arange linspace zeros_like "
    "ones_like full_like nn.one_hot",
    "is constant": "sign floor ceil round trunc isnan isfinite isinf isposinf isneginf signbit equal not_equal less less_equal greater "
    "greater_equal logical_not logical_and logical_or logical_xor argmax argmin argsort any all nonzero argwhere flatnonzero count_nonzero "
    "searchsorted bucketize digitize heaviside",
    "is another function under a second name, or two of them": "clip concatenate unstack hsplit vsplit dsplit fliplr flipud "
    "extract nn.relu nn.sigmoid nn.log_sigmoid nn.softplus nn.tanh nn.softmax nn.log_softmax floor_divide divmod",
    "is reshape, permute, broadcast_to or indexing": "ravel transpose swapaxes squeeze expand_dims unflatten atleast_1d atleast_2d "
    "atleast_3d broadcast_arrays select compress",
    "is in two dimensions": "nn.adaptive_avg_pool1d nn.adaptive_avg_pool3d nn.adaptive_max_pool1d nn.adaptive_max_pool3d",
    "is random, so that there is nothing to compare": "nn.dropout nn.dropout1d nn.dropout2d nn.dropout3d nn.alpha_dropout",
    "has no second derivative in torch, or another": "nn.hardsigmoid nn.ctc_loss",
    "is no operation": "get_backend checkpoint define custom_vjp custom_jvp jit detect_anomaly profile backward",
}
"""Functions that have no row, by the reason."""


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


def first(f: Callable[..., Any]) -> Callable[..., Any]:
    """The first of several results."""
    return lambda *xs: f(*xs)[0]


def cases(functions: dict[str, tuple[Callable[..., Any], Callable[..., Any]]], *inputs: Draw, square: bool = False) -> None:
    """Rows with the same inputs: by the name, ours and theirs."""
    for name, (ours, theirs) in functions.items():
        case(name, squared(theirs) if square else theirs, *inputs, ours=squared(ours) if square else ours)


REAL, POSITIVE, UNIT, ABOVE = draw(-1.8, 1.8), draw(0.2, 2.5), draw(-0.9, 0.9), draw(1.2, 3.0)
ROWS = draw(-1.8, 1.8, 1000, 1000)
