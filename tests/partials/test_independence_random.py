"""Labels of random programs: derivatives keep what they promise, to second order."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from label_oracle import assert_labels_hold

import nestgrad as ng
from nestgrad import func

SHAPES = ((2, 3), (3, 2), (3,), (2,), (2, 3, 2), (1, 3), (6,))
MOST = 24
"""How many entries an array may have."""


class Draws:
    """A random function of several arrays: a list of steps, each of which takes what some steps before have made."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        rng = np.random.default_rng(seed)
        self.args = [rng.uniform(0.3, 1.6, size=self.random.choice(SHAPES)) for _ in range(self.random.randrange(1, 4))]
        self.steps = self.random.randrange(1, 10)
        self.seed = self.random.randrange(1 << 30)
        self.words: list[str] = []

    def __call__(self, *xs: Any) -> Any:
        """The last value, or a sum of it; each time in the same way."""
        self.random.seed(self.seed)
        self.words = []
        found = [*xs]
        for _ in range(self.steps):
            word = self.random.choice(sorted(STEPS))
            a, c = (found[-1 - min(len(found) - 1, self.random.randrange(4))] for _ in range(2))
            made = STEPS[word](self.random, a, c)
            if made is not None and 0 < made.size <= MOST:
                self.words.append(word)
                found.append(made)
        out = found[-1]
        last = self.random.choice(("as it is", "sum", "mean of an axis", "sums of all"))
        self.words.append(last)
        if last == "sums of all":
            return sum(x.sum() for x in found[len(xs) - 1 :])
        if last == "sum" or not out.ndim:
            return out.sum()
        return out.mean(self.random.randrange(out.ndim)) if last == "mean of an axis" else out


def _fits(a: Any, c: Any) -> bool:
    try:
        np.broadcast_shapes(a.shape, c.shape)
    except ValueError:
        return False
    return True


def _axis(r: random.Random, a: Any) -> int:
    return r.randrange(a.ndim)


def _both(f: Callable[[Any, Any], Any]) -> Callable[[random.Random, Any, Any], Any]:
    return lambda r, a, c: f(a, c) if _fits(a, c) else None


def _lines(f: Callable[[Any, int], Any]) -> Callable[[random.Random, Any, Any], Any]:
    return lambda r, a, c: f(a, _axis(r, a)) if a.ndim else None


def _product(r: random.Random, a: Any, c: Any) -> Any:
    if c.ndim == 1:
        return a @ c if a.ndim and a.shape[-1] == c.shape[0] else None
    if a.ndim < 2 or c.ndim < 2 or not _fits(a[..., 0, 0], c[..., 0, 0]):
        return None
    return a @ c if a.shape[-1] == c.shape[-2] else a @ c.mT if a.shape[-1] == c.shape[-1] else None


def _reshaped(r: random.Random, a: Any, c: Any) -> Any:
    choices = [(-1,), *(s for s in ((2, 3), (3, 2), (6,), (2, 6), (6, 2), (2, 3, 2), (1, 6), (4, 3)) if np.prod(s) == a.size)]
    return a.reshape(*r.choice(choices))


def _part(r: random.Random, a: Any, c: Any) -> Any:
    if not a.ndim:
        return None
    index: list[Any] = [slice(None)] * a.ndim
    n = a.shape[axis := _axis(r, a)]
    index[axis] = r.choice((0, slice(0, n), slice(1, None), slice(None, None, -1), np.array([0, n - 1, 0]), slice(0, 1)))
    return a[tuple(index)]


def _einsum(r: random.Random, a: Any, c: Any) -> Any:
    if a.ndim == 2 and c.ndim == 2:
        words = {("ij,jk->ik", a.shape[1] == c.shape[0]), ("ij,ij->j", a.shape == c.shape), ("ij,kj->kji", a.shape[1] == c.shape[1]),
                 ("ij,ik->jk", a.shape[0] == c.shape[0])}  # fmt: skip
        fitting = sorted(word for word, fits in words if fits)
        return ng.einsum(r.choice(fitting), a, c) if fitting else None
    return None


STEPS: dict[str, Callable[[random.Random, Any, Any], Any]] = {
    "sin": lambda r, a, c: a.sin(),
    "exp": lambda r, a, c: (0.3 * a).exp(),
    "scaled": lambda r, a, c: a * 0.7,
    "by data": lambda r, a, c: a * np.linspace(0.5, 1.5, a.size).reshape(a.shape),
    "detach": lambda r, a, c: a * a.detach(),
    "add": _both(lambda a, c: a + c),
    "mul": _both(lambda a, c: a * c),
    "div": _both(lambda a, c: a / (c * c + 1.0)),
    "where": _both(lambda a, c: ng.where(a > c, a, 0.5 * c)),
    "product": _product,
    "product with data": lambda r, a, c: a @ np.linspace(-1.0, 1.0, a.shape[-1] * 2).reshape(a.shape[-1], 2) if a.ndim else None,
    "einsum": _einsum,
    "sum": _lines(lambda a, k: a.sum(k)),
    "sum that keeps": _lines(lambda a, k: a.sum(k, keepdims=True)),
    "mean": _lines(lambda a, k: a.mean(k)),
    "mean of all": lambda r, a, c: a.mean(),
    "softmax": _lines(lambda a, k: ng.softmax(a, axis=k)),
    "greatest": _lines(lambda a, k: ng.max(a, axis=k)),
    "cumsum": _lines(lambda a, k: a.cumsum(k)),
    "sort": _lines(lambda a, k: ng.sort(a, axis=k)),
    "var": _lines(lambda a, k: ng.var(a, axis=k)),
    "turned": lambda r, a, c: a.transpose(*r.sample(range(a.ndim), a.ndim)) if a.ndim else None,
    "reshaped": _reshaped,
    "new axis": lambda r, a, c: a.reshape(*a.shape[: (k := r.randrange(a.ndim + 1))], 1, *a.shape[k:]) if a.ndim < 4 else None,
    "repeated": lambda r, a, c: ng.broadcast_to(a, (2, *a.shape)) if a.ndim < 4 else None,
    "part": _part,
    "concat": lambda r, a, c: ng.concat([a, c * 2.0], axis=_axis(r, a)) if a.ndim and a.shape == c.shape else None,
    "stack": lambda r, a, c: ng.stack([a, c], axis=r.randrange(a.ndim + 1)) if a.ndim < 3 and a.shape == c.shape else None,
}


def holds(seed: int) -> tuple[int, int]:
    """Check one program; how many labels it has, and how many are summed."""
    f = Draws(seed)
    program = func.trace(f)(*f.args)
    numbers = sorted(f.random.sample(range(len(f.args)), f.random.randint(1, len(f.args))))  # the others are data
    keys = [(i,) for i in numbers] + [tuple(sorted((k, f.random.choice(numbers)))) for k in numbers][:2]
    try:
        found = assert_labels_hold(program, f.args, keys, seed)
    except AssertionError as error:
        raise AssertionError(f"{f.words}\n{program}\n{error}") from error
    return len(found), sum(label.out is None for label in found)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.integers(0, 1 << 20))
def test_labels_of_random_programs(seed):
    holds(seed)


@pytest.mark.fuzz
def test_labels_of_many_random_programs():
    found = [holds(seed) for seed in range(2000)]
    assert sum(n - summed for n, summed in found) > 300, "few outputs carry labels"
    assert sum(summed for _, summed in found) > 1500, "few labels are summed"
