"""Small networks, differentiated at every level: with and without checkpointing."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import nestgrad as ng
from nestgrad import Autodiff, Tensor

BLOCKS, ROWS, UNITS = 6, 4, 6
_RNG = np.random.default_rng(0)
POINTS = _RNG.normal(size=(ROWS, UNITS))
WEIGHTS = [_RNG.normal(size=(UNITS, UNITS)) / 2 for _ in range(BLOCKS)]


def block(x: Tensor, w: Tensor) -> Tensor:
    """Linear, layer norm, GELU, and a way around them."""
    h = ng.linear(x, w, w[0])
    far = h - h.mean(axis=1, keepdims=True)
    h = far * (far.square().mean(axis=1, keepdims=True) + 1e-5).rsqrt()
    return 0.5 * x + 0.5 * h * ((0.7 * h).erf() + 1.0)


def blocks(x: Tensor, *ws: Tensor) -> Tensor:
    """One after the other."""
    for w in ws:
        x = block(x, w)
    return x


def stack_of(backend: Any, depth: int, policies: Sequence[Any] = (None,)) -> Any:
    """Levels with the policies in turn, the innermost first."""
    stack = backend
    for k in range(depth):
        stack = Autodiff(stack, checkpointing=policies[k % len(policies)])
    return stack


def derivatives(
    stack: Any, wrap: Callable[[Any], Any] = lambda f: f, size: int = 2, lazy: bool = False, captured: bool = False
) -> list[np.ndarray]:
    """All gradients of a loss, of a function of these, and so on down to the innermost level."""
    x = stack.tensor(POINTS, requires_grad=True)
    ws = [stack.tensor(w, requires_grad=True) for w in WEIGHTS]
    y = x
    for k in range(0, BLOCKS, size):
        here = ws[k : k + size]
        y = wrap(lambda x, here=here: blocks(x, *here))(y) if captured else wrap(blocks)(y, *here)
    loss, found = y.square().sum(), []
    for _ in range(stack.level):
        grads = loss.backward() if lazy else loss.backward(wrt=[x, *ws])
        gs = [t.grad(grads) for t in (x, *ws)]
        found += [g.numpy() for g in gs]
        loss = gs[0].square().sum() + (gs[2] * gs[3]).sum() + gs[-1].sum()
    return found
