"""One op after another, for random pairs of ops, under random nestings of levels: what each op has to itself adds up."""

import math
import random
from typing import Any

import pytest
from operators import Energy, Truth, by_levels, by_transforms

import nestgrad as ng
from nestgrad.ops import TABLE, Kind

BACKENDS = [ng.NumpyBackend(), ng.TorchBackend(dtype="float64")]
SMOOTH = [op for op in TABLE.values() if op.kind is not Kind.CONSTANT]


class Composition(Energy):
    """``second(its point + a small smooth function of first(x))``: inside of the second op's domain, and every entry depends on all."""

    def __init__(self, base: Any, first: Energy, second: Energy, order: int) -> None:
        self.base, self.rng, self.first, self.second = base, first.rng, first, second
        self.point = first.point
        self.directions = first.directions
        self.op = second.op
        sizes = [math.prod(x.shape) for x in (first.answer(*first.point), second.point[0])]
        self.weights = base.tensor(self.rng.uniform(-1.0, 1.0, sizes))
        self.coefficients = [self.random(self.answer(*self.point)) for _ in range(order)]

    def answer(self, *xs: Any) -> Any:
        middle = self.first.answer(*xs).reshape(1, -1) @ self.weights
        inner = self.second.point[0] * (1.0 + 0.02 * middle.tanh().reshape(self.second.point[0].shape))
        return self.second.answer(inner, *self.second.point[1:])


def drawn(rng: random.Random, base: Any) -> Energy:
    """An op at one of its samples, where there is something to differentiate."""
    while True:
        op = rng.choice(SMOOTH)
        f = Energy(base, op, rng.choice(op.samples.calls), order=3, seed=rng.randrange(1000))
        if f.point and all(math.prod(x.shape) for x in f.point) and math.prod(f.answer(*f.point).shape):
            return f


def agrees(seed: int) -> None:
    """Compare one composition under one nesting with nested reverse mode."""
    rng = random.Random(seed)
    base = rng.choice(BACKENDS)
    first, second = drawn(rng, base), drawn(rng, base)
    word = "".join(rng.choice("RFBTS") for _ in range(rng.choice((2, 3))))
    word = word[: word.index("S") + 1].replace("B", "R") if "S" in word else word  # coefficients of order two are two derivatives
    f = Composition(base, first, second, order=4)
    f.directions = [[f.random(x) for x in f.point] for _ in range(4)]
    way = by_levels if "S" in word or rng.random() < 0.5 else by_transforms
    told = f"seed {seed}: {word} of {second.op.signature} after {first.op.signature} on {base!r}, {way.__name__}"
    want = Truth(f)(word)
    # sums of up to some hundred products of numbers of size 1, whose derivatives of the third order may be larger
    assert way(word, f) == pytest.approx(want, rel=1e-8, abs=1e-9), told


@pytest.mark.parametrize("block", range(8))
def test_random_compositions_are_right_under_random_levels(block):
    for seed in range(50 * block, 50 * block + 50):
        agrees(seed)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(100))
def test_many_more(block):
    for seed in range(1000 + 100 * block, 1100 + 100 * block):
        agrees(seed)
