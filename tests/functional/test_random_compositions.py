"""Random functions of several inputs, with the six functions side by side with PyTorch's, and with JAX."""

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, strategies as st
from random_functions import MIXED, RandomFunction, functions, of_jax, of_nestgrad, of_torch, runs
from user_functions import ALL, SECOND, leaves, mapped

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


def quick_and_long(law: Any, quick: int, long: int, drawn: dict[str, Any], more: dict[str, Any]) -> tuple[Any, Any]:
    """Two tests of one law for each of the six functions: a quick one, and one of ``make fuzz``, whose programs may be ``more``."""

    def test(run: Any, options: dict[str, Any]) -> Any:
        @pytest.mark.parametrize("name", ALL)
        @run
        @given(data=st.data())
        def law_holds(name: str, data: Any) -> None:
            law(data, name, data.draw(functions(scalar=name in SECOND, **options)))

        return law_holds

    return test(runs(quick), drawn), pytest.mark.fuzz(test(runs(long, long=True), drawn | more))


test_a_random_function_beside_torch, test_more_random_functions_beside_torch = quick_and_long(
    beside_torch, 25, 2000, {"composed": True}, {"most": 12}
)
test_a_random_function_of_inputs_of_two_dtypes, test_more_random_functions_of_inputs_of_two_dtypes = quick_and_long(
    in_two_dtypes, 12, 1000, {"dtypes": MIXED}, {}
)
test_a_random_function_beside_jax, test_more_random_functions_beside_jax = quick_and_long(
    beside_jax, 2, 200, {"empty": True, "most": 3}, {"most": 8}
)
