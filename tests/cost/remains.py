"""What is alive: nodes of a tape, objects of nestgrad in cycles, raw arrays."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from nestgrad import Autodiff
from nestgrad.backends import NumpyBackend
from nestgrad.levels.reverse.node import Node
from nestgrad.ops import TABLE

NUMPY = NumpyBackend()
"""One object: a backend and its dressed methods know each other, so one that is made and dropped waits for the collector."""


def three() -> tuple[Autodiff, Autodiff, Autodiff]:
    """Levels 1, 2 and 3 of one stack."""
    one = Autodiff(NUMPY)
    two = Autodiff(one)
    return one, two, Autodiff(two)


def nodes(*levels: Any) -> list[int]:
    """Live nodes of each level."""
    return [level.tape.stats().nodes for level in levels]


def every_node() -> int:
    """All nodes that are alive, whoever holds them."""
    return sum(type(o) is Node for o in gc.get_objects())


def in_cycles(run: Callable[[], object]) -> list[object]:
    """Objects of nestgrad, and arrays, that only the cyclic collector frees after ``run`` is over."""
    gc.collect()
    gc.disable()
    try:
        run()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        gc.set_debug(0)
        return [o for o in gc.garbage if type(o).__module__.partition(".")[0] in ("nestgrad", "numpy", "torch")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


class WatchingBackend(NumpyBackend):
    """NumPy, with a weak reference to each array that an op has made."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[tuple[str, Any]] = []
        self._depth = 0
        for name in TABLE:
            method = getattr(self, name, None)
            if method is not None:
                setattr(self, name, self._watched(name, method))

    def _watched(self, name: str, method: Any) -> Any:
        def op(*args: Any, **params: Any) -> Any:
            self._depth += 1
            try:
                out = method(*args, **params)
            finally:
                self._depth -= 1
            if self._depth:
                return out
            out = np.asarray(out)  # NumPy's scalars take no weak reference
            if not any(out is a for a in args):
                self.made.append((name, weakref.ref(out)))
            return out

        return op

    @property
    def alive(self) -> list[str]:
        """Names of the ops whose answers are alive still, in the order of their making."""
        return [name for name, array in self.made if array() is not None]
