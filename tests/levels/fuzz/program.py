"""One random program: steps on a pool of values, each known to nestgrad as a Tensor and to the truth as an expression.

A program is made by a number. Each step draws from a source of its own, so that a step can be left out and the others stay, more or less:
that is how a failing program is made small. What happens is written down as lines of Python.
"""

import random
from collections.abc import Callable
from typing import Any

from fuzz.compiled import Compiled
from fuzz.pool import EXPECTED, Value, Wrong, first_line
from nestgrad.errors import GraphFreedError
from nestgrad.levels.base import running

__all__ = ["Program", "Value", "Wrong"]


class Program(Compiled):
    """A random program."""

    def run(self, steps: int = 25) -> None:
        """Run all steps.

        Raises:
            Wrong: If a number is not the truth.
        """
        for k in range(steps):
            if k not in self.skip:
                self.random, self.other = random.Random(f"{self.seed}/{k}"), random.Random(f"{self.seed}/{k} compiled")
                self.log.append(f"# step {k}")
                self.step(self.leaf if k < 2 else None)
            assert running.get() is None

    def step(self, action: Callable[[], Any] | None = None) -> Value | None:
        """One step; errors that nestgrad may raise end it."""
        try:
            result: Value | None = (action or self.action())()
            return result
        except EXPECTED as error:
            self.log.append(f"{'    ' * self.depth}# {type(error).__name__}: {first_line(error)}")
            self.counts[type(error).__name__] += 1
        except GraphFreedError:
            if not self.freed:
                raise
            self.counts["GraphFreedError"] += 1
        return None

    def action(self) -> Callable[[], Any]:
        """What to do next."""
        deep = self.depth < 2
        if deep and self.other.random() < 0.04:  # drawn from another source, so that the programs of all numbers stay what they were
            return self.compiled
        weights = {
            self.operation: 40, self.differentiate: 24, self.reverse: 8 if deep else 0, self.push: 4 if deep else 0,
            self.second: 2 if deep else 0, self.mapped: 2 if deep else 0, self.jacobian: 2 if deep else 0,
            self.called: 2 if deep else 0, self.checkpointed: 1 if deep else 0, self.door: 20 if self.doors else 0, self.remade: 6,
            self.leaf: 4, self.detach: 4, self.constant: 3, self.inner: 3, self.late: 3, self.pull: 2 if self.pullbacks else 0,
            self.lift: 1, self.new_stack: 1,
        }  # fmt: skip
        return self.random.choices(list(weights), list(weights.values()))[0]
