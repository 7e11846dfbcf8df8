"""Each kind of level as an operator on scalar functions, so that levels can be nested in all orders and compared with one number.

``R``, ``F`` and ``T`` map a function to its derivative in a fixed direction: by a backward pass, by tangents, as a Taylor coefficient.
``S`` maps it to its second derivative in a direction, from the second coefficient, and ``L`` from a collapsed sum of two. ``B`` maps it to
a weighted sum of its values at multiples of the point, computed as one batch. A derivative in two directions is one number, whatever level
found it; the right one comes from nested reverse mode alone, point by point.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import nestgrad as ng
from nestgrad.levels.marks import NONE
from nestgrad.ops import Kind, Op
from nestgrad.ops.samples import Sample
from nestgrad.tensor.handle import make
from nestgrad.testing.calling import called

Function = Callable[..., Any]

BATCH = ((1.0, 1.5), (0.95, -0.75))
"""Of the batch: by what each sample multiplies the point, and with which weight its value counts."""


class Energy:
    """A scalar function that holds an op: a polynomial of its answer, so that linear ops have derivatives of that order, too."""

    def __init__(self, base: Any, op: Op, sample: Sample, order: int, seed: int = 0) -> None:
        self.base, self.op, self.exact = base, op, sample.exact
        self.rng = np.random.default_rng(seed)
        arrays, self.params = sample.native(base)
        self.args = [make(base.dressed, a, NONE) for a in arrays]
        self.truths = [k for k, a in enumerate(arrays) if k not in self.exact and base.kind(a) == "bool"]
        for k in self.truths:  # which are signs of numbers, so that they have to do with the levels
            self.args[k] = ng.where(self.args[k], 1.0, -1.0)
        self.free = [k for k, x in enumerate(self.args) if self._free(k, x.value)]
        self.point = [self.args[k] for k in self.free]
        self.directions = [[self.random(x) for x in self.point] for _ in range(order)]
        out = self.answer(*self.point)
        self.coefficients = [self.random(out) for _ in range(order)]

    def _free(self, k: int, array: Any) -> bool:
        rules = self.op.rules * len(self.args) if self.op.variadic else self.op.rules
        ruled = self.op.kind in (Kind.COMPOSITE, Kind.CONSTANT) or rules[k] is not None
        return ruled and k not in self.exact and self.base.is_floating(array)

    def random(self, like: Any) -> Any:
        return self.base.tensor(self.rng.uniform(-1.0, 1.0, tuple(like.shape)))

    def answer(self, *xs: Any) -> Any:
        args = list(self.args)
        for k, x in zip(self.free, xs, strict=True):
            args[k] = x > 0 if k in self.truths else x
        return called(self.op, *args, **self.params)

    def __call__(self, *xs: Any) -> Any:
        y = self.answer(*xs)
        if self.op.kind is Kind.CONSTANT:
            y = y.astype("float64")
        total = self.coefficients[0]
        for c in self.coefficients[1:]:
            total = c + total * y
        total = (total * y).sum()
        return total + sum((x * x).sum() for x in xs) if self.op.kind is Kind.CONSTANT else total  # the squares have derivatives


def inner(xs: Sequence[Any], vs: Sequence[Any]) -> Any:
    return sum((x * v).sum() for x, v in zip(xs, vs, strict=True))


def scaled(xs: Sequence[Any]) -> list[Any]:
    """The samples of a batch, along a new axis 0."""
    return [ng.stack([x * scale for scale, _ in BATCH]) for x in xs]


def weighed(ys: Any) -> Any:
    """The weighted sum of the values of a batch."""
    return sum(ys[k] * weight for k, (_, weight) in enumerate(BATCH))


# by level objects and their doors


def reverse(level: Any, f: Function, xs: Sequence[Any], vs: Sequence[Any]) -> Any:
    variables = [level.tensor(x, requires_grad=True, levels=[level]) for x in xs]
    gradients = f(*variables).backward(wrt=variables)
    return inner([gradients.wrt(x) for x in variables], vs)


def forward(level: Any, f: Function, xs: Sequence[Any], vs: Sequence[Any]) -> Any:
    return level.tangent(f(*(level.dual(x, v) for x, v in zip(xs, vs, strict=True))))


def taylor(level: Any, f: Function, xs: Sequence[Any], vs: Sequence[Any]) -> Any:
    return level.terms(f(*(level.series(x, v) for x, v in zip(xs, vs, strict=True))))[1]


def second(level: Any, f: Function, xs: Sequence[Any], vs: Sequence[Any]) -> Any:
    return 2.0 * level.terms(f(*(level.series(x, v) for x, v in zip(xs, vs, strict=True))))[2]


def batched(level: Any, f: Function, xs: Sequence[Any], vs: Sequence[Any]) -> Any:
    return weighed(level.unbatch(f(*(level.batch(x) for x in scaled(xs)))))


KINDS: dict[str, tuple[Callable[[Any], Any], Callable[..., Any]]] = {
    "R": (ng.Autodiff, reverse),
    "F": (ng.Forward, forward),
    "T": (lambda inner: ng.Taylor(inner, 2), taylor),
    "S": (lambda inner: ng.Taylor(inner, 3), second),
    "B": (ng.Batched, batched),
}


def by_levels(word: str, f: Energy) -> float:
    """``word[0](word[1](... f))`` with one level for each letter; the first is the innermost."""
    levels, stack = [], f.base
    for letter in word:
        stack = KINDS[letter][0](stack)
        levels.append(stack)

    def nested(k: int) -> Function:
        return f if k == len(word) else lambda *xs: KINDS[word[k]][1](levels[k], nested(k + 1), xs, f.directions[k])

    return nested(0)(*f.point).item()


# by transforms

TRANSFORMS: dict[str, Callable[..., Any]] = {
    "R": lambda f, xs, vs: inner(ng.func.grad(f, argnums=tuple(range(len(xs))))(*xs), vs),
    "F": lambda f, xs, vs: ng.func.jvp(f, tuple(xs), tuple(vs))[1],
    "T": lambda f, xs, vs: ng.func.taylor(lambda arguments: f(*arguments), tuple(xs), tuple(vs), 2)[1],
    "L": lambda f, xs, vs: collapsed(f, xs, vs),
    "B": lambda f, xs, vs: weighed(ng.func.vmap(f)(*scaled(xs))),
}


def collapsed(f: Function, xs: Sequence[Any], vs: Sequence[Any]) -> Any:
    """The second derivative, from what two directions of different lengths and weights add up to."""
    flat = lambda parts: ng.concat([part.reshape(-1) for part in parts])
    ends = [0, *itertools.accumulate(x.size for x in xs)]

    def whole(z: Any) -> Any:
        return f(*(z[a:b].reshape(x.shape) for x, a, b in zip(xs, ends[:-1], ends[1:], strict=True)))

    v = flat(vs)
    total = ng.func.jets(whole, flat(xs), ng.stack([v, -0.5 * v]), weights=[1.0, 2.0])[2]
    return total / 0.75  # half of 1 + 2 * 0.25


def by_transforms(word: str, f: Energy) -> float:
    """``word[0](word[1](... f))`` by functions of ``ng.func``."""

    def nested(k: int) -> Function:
        return f if k == len(word) else lambda *xs: TRANSFORMS[word[k]](nested(k + 1), xs, f.directions[k])

    return nested(0)(*f.point).item()


# the right number


class Truth:
    """What every word must give for a function, from nested ``Autodiff`` alone."""

    def __init__(self, f: Energy) -> None:
        self.f = f
        self.known: dict[tuple[float, tuple[int, ...]], float] = {}

    def __call__(self, word: str) -> float:
        batches = [k for k, letter in enumerate(word) if letter == "B"]
        derivatives = tuple(k for k, letter in enumerate(word) for _ in range({"B": 0, "S": 2, "L": 2}.get(letter, 1)))
        total = 0.0
        for chosen in itertools.product(BATCH, repeat=len(batches)):
            factor = math.prod(weight for _, weight in chosen)
            for k, (scale, _) in zip(batches, chosen, strict=True):
                factor *= scale ** sum(d < k for d in derivatives)  # the derivative of x |-> f(scale x) is scale f'(scale x)
            total += factor * self.derivative(math.prod(scale for scale, _ in chosen), derivatives)
        return total

    def derivative(self, scale: float, directions: tuple[int, ...]) -> float:
        """The derivative at a multiple of the point, in one direction after the other."""
        key = (scale, directions)
        if key not in self.known:
            f, stack = self.f, self.f.base
            for _ in directions:
                stack = ng.Autodiff(stack)
            xs = [x * scale for x in f.point]
            xs = [stack.tensor(x, requires_grad=True) for x in xs] if directions else xs
            y = f(*xs)
            for d in reversed(directions):
                gradients = y.backward()
                y = inner([gradients.wrt(x) for x in xs], f.directions[d])
            self.known[key] = y.item()
        return self.known[key]
