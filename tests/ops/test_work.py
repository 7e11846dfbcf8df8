"""What is not tracked costs nothing: a counting backend sees no work for the cotangents of constants."""

from collections import Counter
from typing import Any

import numpy as np

from nestgrad.backends import NumpyBackend
from nestgrad.levels.autodiff import Autodiff
from nestgrad.ops import TABLE
from nestgrad.tensor.handle import apply


class Counting(NumpyBackend):
    """Counts calls of ops from outside, not what a method of its own calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()
        self.inside = False

    def __getattribute__(self, name: str) -> Any:
        member = super().__getattribute__(name)
        if name not in TABLE or not callable(member):
            return member

        def counted(*args: Any, **kwargs: Any) -> Any:
            outer, self.inside = self.inside, True
            self.calls[name] += not outer
            try:
                return member(*args, **kwargs)
            finally:
                self.inside = outer

        return counted


def work(f: Any, *shapes: tuple[int, ...], tracked: tuple[int, ...], levels: int = 1) -> Counter[str]:
    """Which ops the backward pass of ``f`` runs when the arguments ``tracked`` are looked up."""
    base = Counting()
    stack: Any = base
    for _ in range(levels):
        stack = Autodiff(stack)
    xs = [stack.tensor(np.ones(s), requires_grad=True) if k in tracked else stack.tensor(np.ones(s)) for k, s in enumerate(shapes)]
    y = f(*xs)
    base.calls.clear()
    gradients = y.backward()
    for k in tracked:
        gradients.wrt(xs[k])
    return base.calls


PRODUCTS = ("matmul", "product", "einsum", "linear")


def products(calls: Counter[str]) -> int:
    return sum(calls[name] for name in PRODUCTS)


def test_constants_get_no_cotangents():
    """One product per tracked factor, none for a constant one; a bias costs no product."""
    square = ((4, 4), (4, 4))
    matmul = lambda x, y: x @ y
    assert products(work(matmul, *square, tracked=(0,))) == products(work(matmul, *square, tracked=(1,))) == 1
    assert products(work(matmul, *square, tracked=(0, 1))) == 2
    layer = lambda x, w, z: apply("linear", x, w, z)
    shapes = ((5, 4), (4, 4), (4,))
    assert [products(work(layer, *shapes, tracked=t)) for t in ((0,), (1,), (2,), (1, 2), (0, 1, 2))] == [1, 1, 0, 1, 2]
    einsum = lambda x, y, z: apply("einsum", x, y, z, subscripts="ij,jk,kl->il")
    assert [work(einsum, *(square * 2)[:3], tracked=t)["einsum"] for t in ((0,), (1, 2), (0, 1, 2))] == [1, 2, 3]
    for f in (lambda x, y: x * y, lambda x, y: x / y):
        every, some = (sum(work(f, (3,), (3,), tracked=t).values()) for t in ((0, 1), (0,)))
        assert some < every
    assert not work(lambda x, y: x + y, (3,), (3,), tracked=(0,))


def test_untracked_operations_record_nothing_and_cost_nothing():
    base = Counting()
    stack = Autodiff(Autodiff(base))
    c = stack.tensor(np.ones((3, 3)))
    y = (c @ c).sin() * c
    assert not y.tracked_on() and isinstance(y.value, np.ndarray)
    assert base.calls == Counter({"matmul": 1, "sin": 1, "mul": 1})


def test_a_chain_after_a_constant_costs_only_its_own_part():
    """The backward pass goes along what is tracked, not into the branch that is not."""
    f = lambda x, w: ((x.sin() @ x.cos()).exp() @ w).tanh()
    calls = work(f, (4, 4), (4, 4), tracked=(1,))
    assert calls["cos"] == calls["sin"] == calls["exp"] == 0 and products(calls) == 1


def test_a_look_up_of_one_costs_no_cotangent_of_the_other():
    base = Counting()
    stack = Autodiff(base)
    x, w = (stack.tensor(np.ones((4, 4)), requires_grad=True) for _ in range(2))
    gradients = (x @ w).backward()
    base.calls.clear()
    gradients.wrt(w)
    assert products(base.calls) == 1
    gradients.wrt(x)
    assert products(base.calls) == 2


def test_the_second_level_does_no_work_for_the_constants_of_the_first():
    """The inner level records the outer pass only where it is tracked there."""
    base = Counting()
    stack = Autodiff(Autodiff(base))
    x, w = stack.tensor(np.ones((4, 4)), requires_grad=True, levels=[2]), stack.tensor(np.ones((4, 4)), requires_grad=True, levels=[1])
    g = (x @ w).tanh().wrt(x)
    base.calls.clear()
    g.wrt(w)
    # g = t w' with t = tanh'(x w): cotangents of w in g, of t in g, and of w in x w; none of x, which is a constant here
    assert products(base.calls) == 3
