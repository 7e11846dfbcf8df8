"""Random functions of a vector and captured parameters, in which transforms stand within transforms: for nestgrad and for PyTorch."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import nestgrad as ng
from nestgrad import func

N = 3
M = np.random.default_rng(2).normal(size=(N, N)) / 2

Vector = Callable[[Any], Any]
Pair = tuple[Callable[[Any], Vector], Callable[[Any], Vector]]
"""Given the parameters, a function of a vector to a vector: ours and PyTorch's."""


class Compositions:
    """Draws functions. ``stack``: where the imperative style makes its variables."""

    def __init__(self, seed: int, stack: Any) -> None:
        self.random = random.Random(seed)
        self.stack = stack
        self.words: list[str] = []

    def draw(self, depth: int) -> Pair:
        """A function in which transforms are nested up to ``depth``."""
        if depth == 0:
            return self.plain()
        kind = self.random.choice(sorted(k for k in dir(self) if k.startswith("of_")))
        self.words.append(kind.removeprefix("of_"))
        g, h = self.draw(depth - 1), self.draw(self.random.choice((0, 0, depth - 1)))
        made: Pair = getattr(self, kind)(g, h)
        return made

    def plain(self) -> Pair:
        """A function without transforms."""
        k = self.random.randrange(6)
        self.words.append(str(k))
        return (
            lambda w: lambda x: _plain(k, x, w, ng, M),
            lambda w: lambda x: _plain(k, x, w, torch, torch.tensor(M)),
        )

    def of_grad(self, g: Pair, h: Pair) -> Pair:
        ours = lambda w: func.grad(lambda z: (g[0](w)(z) * h[0](w)(z)).sum())
        return ours, lambda w: torch.func.grad(lambda z: (g[1](w)(z) * h[1](w)(z)).sum())

    def of_vjp(self, g: Pair, h: Pair) -> Pair:
        ours = lambda w: lambda x: func.vjp(g[0](w), x)[1](h[0](w)(x))[0]
        return ours, lambda w: lambda x: torch.func.vjp(g[1](w), x)[1](h[1](w)(x))[0]

    def of_jvp(self, g: Pair, h: Pair) -> Pair:
        ours = lambda w: lambda x: func.jvp(g[0](w), (x,), (h[0](w)(x),))[1]
        return ours, lambda w: lambda x: torch.func.jvp(g[1](w), (x,), (h[1](w)(x),))[1]

    def of_linearize(self, g: Pair, h: Pair) -> Pair:
        ours = lambda w: lambda x: func.linearize(g[0](w), x)[1](h[0](w)(x))
        return ours, lambda w: lambda x: torch.func.jvp(g[1](w), (x,), (h[1](w)(x),))[1]

    def of_jacrev(self, g: Pair, h: Pair) -> Pair:
        step = self.random.choice((None, 1, 2))
        ours = lambda w: lambda x: func.jacrev(g[0](w), chunk_size=step)(x) @ h[0](w)(x)
        return ours, lambda w: lambda x: torch.func.jacrev(g[1](w))(x) @ h[1](w)(x)

    def of_jacfwd(self, g: Pair, h: Pair) -> Pair:
        step = self.random.choice((None, 1, 2))
        ours = lambda w: lambda x: h[0](w)(x) @ func.jacfwd(g[0](w), chunk_size=step)(x)
        return ours, lambda w: lambda x: h[1](w)(x) @ torch.func.jacfwd(g[1](w))(x)

    def of_hessian(self, g: Pair, h: Pair) -> Pair:
        ours = lambda w: lambda x: func.hessian(lambda z: (g[0](w)(z).sin()).sum())(x) @ h[0](w)(x)
        return ours, lambda w: lambda x: torch.func.hessian(lambda z: torch.sin(g[1](w)(z)).sum())(x) @ h[1](w)(x)

    def of_taylor(self, g: Pair, h: Pair) -> Pair:
        """Half the second derivative along a line."""
        ours = lambda w: lambda x: func.taylor(g[0](w), x, h[0](w)(x), 2)[2]

        def theirs(w: Any) -> Vector:
            def second(x: Any) -> Any:
                v = h[1](w)(x)
                zero, one = torch.zeros((), dtype=x.dtype), torch.ones((), dtype=x.dtype)
                first = lambda t: torch.func.jvp(lambda s: g[1](w)(x + s * v), (t,), (one,))[1]
                return torch.func.jvp(first, (zero,), (one,))[1] / 2

            return second

        return ours, theirs

    def of_derivative(self, g: Pair, h: Pair) -> Pair:
        """A mixed or a pure second derivative, by two entries of the vector."""
        i, j = self.random.randrange(N), self.random.randrange(N)
        ours = lambda w: lambda x: func.derivative(g[0](w), (i, j))(x) * h[0](w)(x)

        def theirs(w: Any) -> Vector:
            def second(x: Any) -> Any:
                unit = torch.eye(N, dtype=x.dtype)
                first = lambda x: torch.func.jvp(g[1](w), (x,), (unit[i],))[1]
                return torch.func.jvp(first, (x,), (unit[j],))[1] * h[1](w)(x)

            return second

        return ours, theirs

    def of_hessian_diag(self, g: Pair, h: Pair) -> Pair:
        step = self.random.choice((None, 1, 2))
        ours = lambda w: lambda x: func.hessian_diag(lambda z: g[0](w)(z).sin().sum(), chunk_size=step)(x) * h[0](w)(x)
        return ours, lambda w: lambda x: torch.func.hessian(lambda z: torch.sin(g[1](w)(z)).sum())(x).diagonal() * h[1](w)(x)

    def of_stop(self, g: Pair, h: Pair) -> Pair:
        ours = lambda w: lambda x: g[0](w)(x) * func.stop_gradient(h[0](w)(x)) + g[0](func.stop_gradient(w))(x)
        return ours, lambda w: lambda x: g[1](w)(x) * h[1](w)(x).detach() + g[1](w.detach())(x)

    def of_vmap(self, g: Pair, h: Pair) -> Pair:
        """Over the entries of ``x``, which the mapped function closes over, too."""
        step = self.random.choice((None, 1, 2))
        ours = lambda w: lambda x: func.vmap(lambda a, b: (g[0](w)(x * a) * b).sum(), (0, None), chunk_size=step)(x, h[0](w)(x))
        return ours, lambda w: lambda x: torch.func.vmap(lambda a, b: (g[1](w)(x * a) * b).sum(), (0, None))(x, h[1](w)(x))

    def of_vmap_rows(self, g: Pair, h: Pair) -> Pair:
        """Over rows, back to rows, by other axes."""
        ours = lambda w: lambda x: func.vmap(g[0](w), 1, 1)(x[:, None] * h[0](w)(x)[None, :]).sum(0)
        return ours, lambda w: lambda x: torch.func.vmap(g[1](w), 1, 1)(x[:, None] * h[1](w)(x)[None, :]).sum(0)

    def of_variables(self, g: Pair, h: Pair) -> Pair:
        """The imperative style: a derivative by a variable of the stack."""

        def ours(w: Any) -> Vector:
            def slope(x: Any) -> Any:
                y = self.stack.tensor(x, requires_grad=True)
                return y.grad((g[0](w)(y) * h[0](w)(y)).sum().backward())

            return slope

        return ours, self.of_grad(g, h)[1]


def _plain(k: int, x: Any, w: Any, lib: Any, m: Any) -> Any:
    if k == 0:
        return lib.sin(w * x)
    if k == 1:
        return lib.tanh(m @ x + w)
    if k == 2:
        return lib.exp(0.3 * x) * w
    if k == 3:
        return lib.where(x > 0.1, x * x * w, x * 0.5)
    if k == 4:
        return x.sum() * w[[2, 1, 0]] * x
    return x[1] * w + x / (1.0 + x * x)
