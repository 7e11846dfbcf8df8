"""Checkpointing changes what is stored, and nothing else: every derivative is equal to the last bit, at every order."""

from functools import cache, partial

import numpy as np
import pytest
from nets import derivatives, stack_of

import nestgrad as ng
from nestgrad import Balanced
from nestgrad.backends import NumpyBackend, TorchBackend

BACKENDS = {"numpy": NumpyBackend, "torch": TorchBackend}
WAYS = {
    "regions": (ng.checkpoint, (None,)),
    "regions that store what waits": (partial(ng.checkpoint, store_waiting=True), (None,)),
    "nested regions": (lambda f: ng.checkpoint(lambda *xs: ng.checkpoint(f)(*xs)), (None,)),
    "balanced": (lambda f: f, (Balanced(),)),
    "barely balanced": (lambda f: f, (Balanced(limit=1),)),
    "balanced inside": (lambda f: f, (Balanced(), None)),
    "balanced outside": (lambda f: f, (None, Balanced(limit=3))),
    "balanced, with regions": (ng.checkpoint, (Balanced(limit=4),)),
}


@cache
def plain(backend: str, depth: int, lazy: bool = False) -> list[np.ndarray]:
    return derivatives(stack_of(BACKENDS[backend](), depth), lazy=lazy)


@pytest.mark.parametrize("lazy", [False, True], ids=["at once", "one by one"])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_derivatives_are_equal(backend, way, depth, lazy):
    wrap, policies = WAYS[way]
    for size in (1, 2, 3) if depth < 3 else (2,):
        found = derivatives(stack_of(BACKENDS[backend](), depth, policies), wrap, size, lazy)
        for ours, theirs in zip(found, plain(backend, depth, lazy), strict=True):
            np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_captured_tensors_are_inputs(depth):
    found = derivatives(stack_of(NumpyBackend(), depth), ng.checkpoint, captured=True)
    for ours, theirs in zip(found, plain("numpy", depth), strict=True):
        np.testing.assert_array_equal(ours, theirs, strict=True)
