"""Transforms within transforms, to third order, over tracked closures: random compositions against PyTorch, and what must commute."""

import gc
import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from random_compositions import Compositions, N

import nestgrad as ng
from nestgrad import func
from nestgrad.backends import NumpyBackend, TorchBackend
from nestgrad.levels.autodiff import Autodiff
from nestgrad.levels.base import Coat, Tape
from nestgrad.levels.reverse.node import Node

JIT = "ignore:.*torch.jit.script.*:DeprecationWarning"  # torch's own, when its jvp is first used
X, W = np.array([0.3, -0.7, 0.9]), np.array([0.8, -0.4, 0.6])


def compare(seed: int, base: Any, depth: int) -> str:
    """A random composition, and its derivative by what it closes over, against PyTorch's."""
    stack = base
    for _ in range(depth + 1):  # the imperative style may use up one at each depth
        stack = Autodiff(stack)
    drawn = Compositions(seed, stack)
    ours, theirs = drawn.draw(depth)
    story = f"seed {seed}: {' '.join(drawn.words)}"
    w = stack.tensor(W, requires_grad=True)
    found = ours(w)(X if seed % 2 and base.name == "numpy" else base.tensor(X))
    want = theirs(torch.tensor(W))(torch.tensor(X))
    by_w = torch.func.grad(lambda w: theirs(w)(torch.tensor(X)).sum())(torch.tensor(W))
    assert found.shape == want.shape == (N,), story
    # some thousand roundings, and sums that cancel
    np.testing.assert_allclose(found.numpy(), want, rtol=1e-9, atol=1e-11, err_msg=story)
    slope = w.grad(found.backward()) if w in found.backward() else 0.0 * w
    np.testing.assert_allclose(slope.numpy(), by_w, rtol=1e-9, atol=1e-11, err_msg=story)
    return story


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.filterwarnings(JIT)
def test_a_random_composition_is_that_of_torch(seed):
    compare(seed, TorchBackend(dtype="float64") if seed % 3 == 0 else NumpyBackend(), 2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1500))
@pytest.mark.filterwarnings(JIT)
def test_more_random_compositions_are_those_of_torch(seed):
    compare(seed, TorchBackend(dtype="float64") if seed % 3 == 0 else NumpyBackend(), 3 if seed % 5 == 0 else 2)


FIRST = {
    "grad": lambda f: func.grad(f),
    "vjp": lambda f: lambda x: func.vjp(f, x)[1](1.0)[0],
    "jvp": lambda f: lambda x: func.jvp(f, x, 1.0)[1],
    "linearize": lambda f: lambda x: func.linearize(f, x)[1](1.0),
    "jacrev": lambda f: func.jacrev(f),
    "jacfwd": lambda f: func.jacfwd(f),
    "taylor": lambda f: lambda x: func.taylor(f, x, 1.0, 1)[1],
    "derivative": lambda f: func.derivative(f, (0,)),
}
"""Ways to the first derivative of a function of a number."""


PATHS = list(itertools.product(FIRST, repeat=3))
QUICK = [path for path in PATHS if not {"vjp", "jacfwd", "derivative"} & {*path}]  # parts of grad, jvp and taylor


@pytest.mark.parametrize("path", QUICK, ids="-".join)
def test_every_composition_of_three_under_a_map_gives_the_third_derivative(path):
    _third(path, QUICK.index(path) % 4)


@pytest.mark.slow
@pytest.mark.parametrize("place", range(4))
def test_every_composition_of_three_and_a_map_at_every_place_gives_the_third_derivative(place):
    for path in PATHS:
        _third(path, place)


def _third(path: tuple[str, ...], place: int) -> None:
    """f(x) = exp(sin(w x)), by x, and then by w. A map stands at one of four places among the derivatives."""
    w = Autodiff(NumpyBackend()).tensor(1.2, requires_grad=True)
    g: Any = lambda x: (w * x).sin().exp()
    for k, kind in enumerate((*path, None)):
        g = _among_others(g) if k == place else g
        g = FIRST[kind](g) if kind else g
    found = g(0.7)
    s, c = math.sin(0.84), math.cos(0.84)
    assert found.item() == pytest.approx(1.2**3 * math.exp(s) * (c**3 - 3 * s * c - c), rel=1e-11), path
    by_w = math.exp(s) * (3 * 1.44 * (c**3 - 3 * s * c - c) + 1.2**3 * 0.7 * (c**4 - 6 * s * c**2 - 4 * c**2 + 3 * s**2 + s))
    assert found.wrt(w).item() == pytest.approx(by_w, rel=1e-11), path


def _among_others(f: Any) -> Any:
    """``f`` of a sample beside another one."""
    return lambda x: func.vmap(f)(ng.stack([x * 0.4, x * 1.0]))[1]


def test_transforms_within_a_batched_level_are_the_loop():
    """What the function closes over, and its argument, hold samples of a level from outside."""
    base = NumpyBackend()
    level = ng.Batched(base)
    ws, xs = np.array([[1.0, 2.0], [0.5, -1.0], [0.3, 0.7]]), np.array([[0.2, 0.4], [1.0, 0.1], [-0.6, 0.9]])
    w, x = level.batch(ws), level.batch(xs)
    f = lambda w: lambda x: (w * x).sin() * x.sum()
    for transform in (
        lambda f, x: func.grad(lambda z: f(z).sum())(x),
        lambda f, x: func.jvp(f, x, x * 2.0)[1],
        lambda f, x: func.linearize(f, x)[1](x * 2.0),
        lambda f, x: func.jacrev(f)(x),
        lambda f, x: func.jacfwd(f)(x),
        lambda f, x: func.hessian(lambda z: f(z).sum())(x),
        lambda f, x: func.taylor(f, x, x, 3)[3],
        lambda f, x: func.derivative(f, (0, 1))(x),
        lambda f, x: func.derivative(f, (1, 1, 1, 0))(x),
        lambda f, x: func.hessian_diag(lambda z: f(z).sum())(x),
        lambda f, x: func.grad(lambda z: (f(z) * func.stop_gradient(f(z))).sum())(x),
        lambda f, x: func.vmap(lambda a: f(a * x))(np.array([1.0, 2.0, 3.0])),
    ):
        found = level.unbatch(transform(f(w), x)).numpy()
        want = [transform(f(base.tensor(w)), base.tensor(x)).numpy() for w, x in zip(ws, xs, strict=True)]
        np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-14)


def test_transforms_of_values_on_forward_and_taylor_levels_carry_their_tangents():
    """d/dt of g(x + t v, w + t u) at 0, where g is a transform's result; and the second coefficient."""
    base = NumpyBackend()
    x0, v, w0, u = np.array([0.2, 0.4]), np.array([1.0, -1.0]), np.array([1.5, 0.5]), np.array([0.3, 0.2])
    f = lambda w: lambda x: (w * x).sin().sum() * x.prod()
    row = lambda f: lambda x: func.hessian(f)(x)[0]
    rows = lambda f: lambda x: func.vmap(f)(x * x[:, None])
    partial = lambda f: func.derivative(f, (0, 1, 1))
    series = lambda f: func.derivative(f, (0, 0, 0))
    for transform in (func.grad, func.jacrev, func.jacfwd, row, rows, partial, series, func.hessian_diag):
        along = lambda t, g=transform: g(f(w0 + t * u))(x0 + t * v)
        want = func.taylor(along, 0.0, 1.0, 2)
        forward, taylor = ng.Forward(base), ng.Taylor(base, 2)
        y = transform(f(forward.dual(w0, u)))(forward.dual(x0, v))
        np.testing.assert_allclose(forward.tangent(y).numpy(), want[1].numpy(), rtol=1e-12, atol=1e-14)
        y = transform(f(taylor.series(w0, u)))(taylor.series(x0, v))
        np.testing.assert_allclose(taylor.terms(y)[2].numpy(), want[2].numpy(), rtol=1e-12, atol=1e-14)


LEFT = {
    "grad": lambda w, x: func.grad(lambda x: (w * x).sin().sum())(x),
    "vjp": lambda w, x: func.vjp(lambda p: (w * p["x"], p["x"].sum()), {"x": x})[1]((x, 1.0)),
    "jvp": lambda w, x: func.jvp(lambda x: (w * x).sin(), x, x)[1],
    "linearize": lambda w, x: func.linearize(lambda x: (w * x).sin(), x)[1](x),
    "vmap": lambda w, x: func.vmap(func.grad(lambda a: (w * a).sin().sum()))(x),
    "jacrev": lambda w, x: w.grad(func.jacrev(lambda x: (w * x).sin())(x).backward()),
    "jacfwd": lambda w, x: w.grad(func.jacfwd(lambda x: (w * x).sin(), chunk_size=2)(x).backward()),
    "hessian": lambda w, x: func.hessian(lambda x: (w * x).sin().sum())(x),
    "taylor": lambda w, x: func.taylor(lambda x: (w * x).sin(), x, x, 3),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_a_transform_recorded_is_freed_when_its_result_is_dropped(name):
    """By reference counting: no tape or node is left, and no cycle that holds one."""
    w = Autodiff(NumpyBackend()).tensor(W, requires_grad=True)
    LEFT[name](w, X)  # what is made on the first call, such as the ways of ops
    gc.collect()
    gc.disable()
    try:
        before = _recorded()
        LEFT[name](w, X)
        assert _recorded() == before
    finally:
        gc.enable()


def _recorded() -> int:
    return sum(issubclass(type(o), (Tape, Node, Coat)) for o in gc.get_objects())
