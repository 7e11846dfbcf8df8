"""Random functions of several inputs, with the six functions side by side with PyTorch's, and with JAX."""

import os
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, assume, given, seed, settings, strategies as st
from random_functions import RandomFunction, functions, of_jax, of_nestgrad, of_torch
from user_functions import ALL, SECOND, mapped

import nestgrad as ng
from nestgrad import functional

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")  # torch's own, when its jvp is first used

STRATEGIES = ("reverse-mode", "forward-mode")
LARGE = 1e8
"""Beyond this, what is left of the numbers is not worth a comparison."""


@cache
def backend(name: str) -> Any:
    return ng.NumpyBackend() if name == "numpy" else ng.TorchBackend(dtype="float64")


def options(draw: Any, name: str) -> dict[str, Any]:
    """Any of those that change the cost alone."""
    found = {"create_graph": draw(st.booleans())}
    if name in ("jacobian", "hessian"):
        found["strategy" if name == "jacobian" else "outer_jacobian_strategy"] = draw(st.sampled_from(STRATEGIES))
        found["vectorize"] = draw(st.booleans())
    if name == "jvp":
        found["mode"] = draw(st.sampled_from(("forward", "reversed")))
    return found


def vector(name: str, f: RandomFunction, dtype: str = "float64") -> list[Any]:
    """For ``vjp`` of the shapes of the outputs, for others of the inputs."""
    if name in ("jacobian", "hessian"):
        return []
    base = backend("numpy")
    like = f.over(of_nestgrad(base))(*map(base.tensor, f.inputs)) if name == "vjp" else f.inputs
    rng = np.random.default_rng(len(f.steps))
    return [mapped(lambda x: rng.uniform(-1, 1, x.shape).astype(dtype), like)]


def leaves(tree: Any) -> list[Any]:
    return [x for part in tree for x in leaves(part)] if isinstance(tree, tuple) else [tree]


def same(found: Any, expected: Any, story: Any, rtol: float = 1e-9) -> None:
    """Assert that nestings and shapes agree, and numbers, by the largest number of each block."""
    if isinstance(expected, tuple):
        assert isinstance(found, tuple) and len(found) == len(expected), story
        for x, y in zip(found, expected, strict=True):
            same(x, y, story, rtol)
        return
    assert not isinstance(found, tuple), story
    a, b = (np.asarray(x.numpy() if hasattr(x, "numpy") else x) for x in (found, expected))
    assert a.shape == b.shape, (story, a.shape, b.shape)
    if b.size:
        assert np.abs(a - b).max() <= rtol * max(1.0, np.abs(b).max()), (story, a, b)


def ours(data: Any, name: str, f: RandomFunction, args: list[Any]) -> tuple[Any, dict[str, Any]]:
    """What our function gives with options that are drawn, on levels that are."""
    base, levels = backend(data.draw(st.sampled_from(("numpy", "torch")))), data.draw(st.integers(0, 2))
    S = base
    for _ in range(levels):
        S = ng.Autodiff(S)
    xs = tuple(S.tensor(x, requires_grad=data.draw(st.booleans())) if levels else base.tensor(x) for x in f.inputs)
    chosen = options(data.draw, name)
    found = getattr(functional, name)(f.over(of_nestgrad(base)), xs, *(mapped(base.tensor, v) for v in args), **chosen)
    chosen |= {"base": base.name, "levels": [x.level for x in xs]}
    return mapped(lambda x: x.detach(), found), chosen


def of_torchs(name: str, f: RandomFunction, args: list[Any]) -> Any:
    """What PyTorch gives, in float64. It has no Jacobians without entries."""
    g, xs = f.over(of_torch()), tuple(torch.tensor(x, dtype=torch.float64) for x in f.inputs)
    assume(all(y.numel() for y in leaves(g(*xs))))
    double = lambda v: torch.tensor(v, dtype=torch.float64)
    expected = getattr(torch.autograd.functional, name)(g, xs, *(mapped(double, v) for v in args))
    assume(all(torch.isfinite(y).all() and y.abs().max() < LARGE for y in leaves(expected)))
    return expected


def beside_torch(data: Any, name: str, f: RandomFunction) -> None:
    args = vector(name, f)
    expected = of_torchs(name, f, args)
    found, chosen = ours(data, name, f, args)
    same(found, expected, (name, f, chosen))
    assert {x.dtype for x in leaves(found)} == {x.backend.asarray([1.0]).dtype for x in leaves(found)}


def beside_jax(data: Any, name: str, f: RandomFunction) -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    args = vector(name, f)
    with jax.enable_x64(True):
        expected = _of_jax(jax, name, f, args)
        assume(all(np.isfinite(y).all() and (not y.size or abs(y).max() < LARGE) for y in leaves(expected)))
    found, chosen = ours(data, name, f, args)
    same(found, expected, (name, f, chosen))


def _of_jax(jax: Any, name: str, f: RandomFunction, args: list[Any]) -> Any:
    g, xs = f.over(of_jax()), tuple(map(jax.numpy.asarray, f.inputs))
    vs = [mapped(jax.numpy.asarray, v) for v in args]
    number = lambda *xs: g(*xs).reshape(())
    every = tuple(range(len(xs)))
    if name == "jacobian":
        found = jax.jacrev(g, every)(*xs)
    elif name == "hessian":
        found = jax.hessian(number, every)(*xs)
    elif name == "jvp":
        found = jax.jvp(g, xs, vs[0])
    elif name == "vjp":
        value, pullback = jax.vjp(g, *xs)
        found = (value, pullback(vs[0]))
    else:
        found = (g(*xs), jax.jvp(jax.grad(number, every), xs, vs[0])[1])
    return mapped(np.asarray, found)


def in_two_dtypes(data: Any, name: str, f: RandomFunction) -> None:
    """To the digits of the shorter one, which vectors have; each block in the dtype that is documented."""
    args = vector(name, f, "float32")
    expected = of_torchs(name, f, args)
    found, chosen = ours(data, name, f, args)
    story = (name, f, chosen)
    same(found, expected, story, rtol=2e-4)
    short = lambda tree: [str(x.dtype).removeprefix("torch.") for x in leaves(tree)]
    by = short(f.inputs)
    if name == "jacobian":
        rows = found if f.several else (found,)
        assert [short(row) for row in rows] == [by] * len(rows), story
    elif name == "hessian":
        assert [short(row) for row in found] == [[dtype] * len(by) for dtype in by], story
    else:
        assert short(found[1]) == (short(found[0]) if name == "jvp" else by), story


def runs(examples: int, long: bool = False) -> Any:
    """Settings. A long run takes as many programs as ``make fuzz`` is asked for, up to a limit, from the number that it is asked for."""
    if not long:
        return settings(max_examples=examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    number = min(examples, int(os.environ.get("NESTGRAD_FUZZ_PROGRAMS", "2000")))
    made = settings(max_examples=number, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    return lambda test: seed(int(os.environ.get("NESTGRAD_FUZZ_SEED", "0")))(made(test))


MIXED = ("float32", "float64")


@pytest.mark.parametrize("name", ALL)
@runs(25)
@given(data=st.data())
def test_a_random_function_beside_torch(name, data):
    beside_torch(data, name, data.draw(functions(scalar=name in SECOND, composed=True)))


@pytest.mark.parametrize("name", ALL)
@runs(12)
@given(data=st.data())
def test_a_random_function_of_inputs_of_two_dtypes(name, data):
    in_two_dtypes(data, name, data.draw(functions(scalar=name in SECOND, dtypes=MIXED)))


@runs(3)
@given(data=st.data())
def test_a_random_function_beside_jax(data):
    name = data.draw(st.sampled_from(ALL))
    beside_jax(data, name, data.draw(functions(scalar=name in SECOND, empty=True, most=4)))


@pytest.mark.fuzz
@pytest.mark.parametrize("name", ALL)
@runs(2000, long=True)
@given(data=st.data())
def test_more_random_functions_beside_torch(name, data):
    beside_torch(data, name, data.draw(functions(scalar=name in SECOND, composed=True, most=12)))


@pytest.mark.fuzz
@pytest.mark.parametrize("name", ALL)
@runs(1000, long=True)
@given(data=st.data())
def test_more_random_functions_of_inputs_of_two_dtypes(name, data):
    in_two_dtypes(data, name, data.draw(functions(scalar=name in SECOND, dtypes=MIXED)))


@pytest.mark.fuzz
@pytest.mark.parametrize("name", ALL)
@runs(200, long=True)
@given(data=st.data())
def test_more_random_functions_beside_jax(name, data):
    beside_jax(data, name, data.draw(functions(scalar=name in SECOND, empty=True)))
