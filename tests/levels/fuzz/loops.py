"""``vmap`` against a loop: random functions of one number, with derivatives inside in both styles, run on samples at once and one by one.

The truth is the same function on each sample alone, whose derivatives other programs judge. Gradients by what the function closes over,
and by the samples, are compared as well.
"""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from fuzz.pool import EXPECTED
from nestgrad import Autodiff, Forward, NumpyBackend, Tensor, func, jit, stack
from nestgrad.func import call, trace

Function = Callable[[Any], Any]

SAMPLES = 3


class Loop:
    """A random function, its closure and its samples.

    Args:
        seed: Number of the program.
        counts: Where to count what happens.
    """

    def __init__(self, seed: int, counts: Counter[str]) -> None:
        self.random = random.Random(f"loop {seed}")
        self.counts = counts
        base = NumpyBackend()
        self.stack: Any = Autodiff(Forward(base) if self.random.random() < 0.2 else base)
        if self.random.random() < 0.5:
            self.stack = Autodiff(self.stack)
        self.forward = Forward(self.stack)
        self.w = self.stack.tensor(self.random.uniform(0.3, 1.0), requires_grad=True)
        numbers = [self.random.uniform(-1.0, 1.0) for _ in range(SAMPLES)]
        self.tracked = self.random.random() < 0.5
        self.samples = self.stack.tensor(numbers, requires_grad=True) if self.tracked else base.tensor(numbers)
        self.code, self.f = self.function(self.random.randint(2, 4))

    def function(self, depth: int) -> tuple[str, Function]:
        """A random function, and what it is."""
        kind = self.random.choice(list(KINDS) if depth else ["z", "z", "w", "c"])
        if kind == "z":
            return "z", lambda z: z
        if kind == "w":
            return "w", lambda z: self.w
        if kind == "c":
            c = round(self.random.uniform(-1.0, 1.0), 2)
            return str(c), lambda z: c
        (a, f), (b, g) = self.function(depth - 1), self.function(depth - 1)
        return f"{kind}({a}, {b})", KINDS[kind](self, f, g)

    def fault(self) -> str:
        """What is wrong: nothing (``""``), or where the two ways differ."""

        def f(z: Any) -> Any:
            return self.f(z) * 1.0 + z * 0.0

        self.counts["loops"] += 1
        at_once = tried(lambda: func.vmap(f)(self.samples))
        one_by_one = tried(lambda: [f(self.samples[i]) for i in range(SAMPLES)])
        if at_once is None or one_by_one is None:
            self.counts["loops that raised"] += 1
            self.counts["loops that raised at once only"] += one_by_one is not None
            return ""
        if not close(at_once, one_by_one):
            return f"wrong: vmap of {self.code} is {at_once.numpy()}, and one by one {[x.item() for x in one_by_one]}"
        total = one_by_one[0] + one_by_one[1] + one_by_one[2]
        for name, x in (("w", self.w), ("z", self.samples)) if self.tracked else (("w", self.w),):
            d = tried(lambda x=x: x.grad(at_once.sum().backward()))
            right = tried(lambda x=x: x.grad(total.backward()))
            if d is not None and right is not None:
                self.counts["gradients of loops"] += 1
                if not np.allclose(d.numpy(), right.numpy(), rtol=1e-8, atol=1e-10):
                    return f"wrong: of vmap of {self.code}, by {name}: {d.numpy()}, and one by one {right.numpy()}"
            self.counts["gradients of loops that raised at once only"] += d is None and right is not None
        return ""


def tried(f: Callable[[], Any]) -> Any:
    """What a function gives, or ``None`` for an error that nestgrad may raise."""
    try:
        return f()
    except EXPECTED:
        return None


def close(at_once: Tensor, one_by_one: list[Tensor]) -> bool:
    """Whether the numbers are the same, up to rounding."""
    return np.allclose(at_once.numpy(), [x.item() for x in one_by_one], rtol=1e-8, atol=1e-10)


def _imperative(p: Loop, a: Function, b: Function) -> Function:
    def f(z: Any) -> Any:
        t = p.stack.tensor(z, requires_grad=True)
        return t.grad(((a(t) * t + b(z)) * t).backward())

    return f


def _door(p: Loop, a: Function, b: Function) -> Function:
    def f(z: Any) -> Any:
        t = p.forward.dual(z, b(z) * z)
        return p.forward.tangent(a(t) * t)

    return f


def _compiled(p: Loop, a: Function, b: Function) -> Function:
    """Traced at the first sample, or for all at once."""
    f = jit(lambda z: a(z) * z + b(z))
    return lambda z: f(z)


def _again(p: Loop, a: Function, b: Function) -> Function:
    return lambda z: p.stack.tensor(a(z) * z, requires_grad=True) * b(z)


KINDS: dict[str, Callable[[Loop, Function, Function], Function]] = {
    "+": lambda p, a, b: lambda z: a(z) + b(z),
    "*": lambda p, a, b: lambda z: a(z) * b(z) * z,
    "sin": lambda p, a, b: lambda z: (a(z) + z).sin() + b(z),
    "imperative": _imperative,
    "door": _door,
    "again": _again,
    "grad": lambda p, a, b: lambda z: func.grad(lambda t: a(t) * t * b(z))(z),
    "jvp": lambda p, a, b: lambda z: func.jvp(lambda t: a(t) * t + b(t), (z,), (b(z) + z * 0.0,))[1],
    "taylor": lambda p, a, b: lambda z: func.taylor(lambda t: (a(t) * t).sin() * b(z), z, z * 0.5, order=2)[2],
    "hessian": lambda p, a, b: lambda z: func.hessian(lambda t: (a(t) * t).sin() + b(z) * t)(z),
    "vmap": lambda p, a, b: lambda z: func.vmap(lambda t: a(t) * z + t * b(z))(z * stack([p.w.detach() * 0.5, p.w.detach()])).sum(),
    "call": lambda p, a, b: lambda z: call(trace(lambda t: a(t) * t)(z), z) * b(z),
    "jit": _compiled,
    "detach": lambda p, a, b: lambda z: (a(z) * z).detach() * b(z),
    "z": lambda p, a, b: a,
    "w": lambda p, a, b: a,
    "c": lambda p, a, b: a,
}
"""What functions are made of."""
