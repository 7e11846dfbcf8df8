"""A program and what is right: values, or an error where an error is right.

Right values come from closed forms worked out by hand, in plain floats. A program may ask for more levels than it has, or hand a value
on that it must ``detach()``: then an error that tells the story is as good as the right value, and ``may_raise`` is what it must say.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nestgrad import Tensor
from nestgrad.backends import NumpyBackend
from nestgrad.errors import NestgradError
from nestgrad.levels.autodiff import Autodiff

BASE = NumpyBackend()
NO_LEVEL_LEFT = r"no level is left .* Try detach\(\) .* or one more Autodiff"
"""What an error says that asks for one more level, or for ``detach()``."""


@dataclass(frozen=True)
class Case:
    """A program. It returns what is to be compared with ``right``, or raises one of ``errors`` with a message like ``match``."""

    name: str
    run: Callable[[], Any]
    right: tuple[Any, ...] = ()
    errors: tuple[type[Exception], ...] = ()
    match: str = ""
    may_raise: str | None = None


CASES: list[Case] = []


def right(*values: Any, may_raise: str | None = None) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """The program must return these values; with ``may_raise`` it may also say, in an error, why it cannot."""

    def add(run: Callable[[], Any]) -> Callable[[], Any]:
        CASES.append(Case(run.__name__, run, right=values, may_raise=may_raise))
        return run

    return add


def raises(*errors: type[Exception], match: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """The program must raise one of these."""

    def add(run: Callable[[], Any]) -> Callable[[], Any]:
        CASES.append(Case(run.__name__, run, errors=errors or (NestgradError,), match=match))
        return run

    return add


def stack(levels: int) -> Autodiff:
    """A fresh stack."""
    b: Any = BASE
    for _ in range(levels):
        b = Autodiff(b)
    made: Autodiff = b
    return made


def var(stack: Any, data: Any, levels: Any = None) -> Tensor:
    """A variable."""
    made: Tensor = stack.tensor(data, requires_grad=True, levels=levels)
    return made


def d(y: Tensor, x: Tensor) -> Tensor:
    """The derivative of ``y`` by ``x``, in the imperative style."""
    return x.grad(y.backward())


def numbers(result: Any) -> list[Any]:
    """What a program returned, as arrays."""
    parts = result if isinstance(result, (list, tuple)) else [result]
    return [part.numpy() if isinstance(part, Tensor) else np.asarray(part, float) for part in parts]
