"""What a compiled function is compared with: the function itself, its result or its error."""

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

import nestgrad as ng
from nestgrad.errors import NestgradError

DOUBLE = {"numpy": ng.NumpyBackend(), "torch": ng.TorchBackend(dtype="float64")}
EXECUTORS = ("replay", "numpy")
"""Those that run anywhere and at once."""


def stacked(backend: Any, n: int) -> Any:
    """``n`` levels of reverse mode."""
    for _ in range(n):
        backend = ng.Autodiff(backend)
    return backend


def var(stack: Any, data: Any, levels: Any = None) -> Any:
    """A variable."""
    return stack.tensor(data, requires_grad=True, levels=levels)


def outcome(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a function gives, or its error."""
    try:
        return f(*args, **kwargs)
    except NestgradError as error:
        return error


def alike(got: Any, want: Any, rtol: float = 1e-12, where: str = "result", since: float = inf) -> None:
    """Two results are the same: in structure, dtypes and shapes, on the same levels, and in numbers up to rounding; or the same error.

    Marks of levels that were born at ``since`` or later are not compared: each run of a function makes its own; nor of what has ended.
    """
    if isinstance(want, ng.Tensor):
        assert isinstance(got, ng.Tensor), f"{where}: {got!r} for {want!r}"
        assert (tuple(got.shape), got.dtype) == (tuple(want.shape), want.dtype), f"{where}: {got!r} for {want!r}"
        assert got.tracked_on() == want.tracked_on(), f"{where}: {got!r} for {want!r}"
        assert got.level == want.level, f"{where}: {got!r} for {want!r}"
        marks, known = ({tape for tape in x.marks if tape.birth < since and not tape.closed} for x in (got, want))
        assert marks == known, f"{where}: {got!r} for {want!r}"
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=rtol, atol=rtol, err_msg=where)
    elif isinstance(want, Exception):
        assert type(got) is type(want), f"{where}: {got!r} for {want!r}"
    elif isinstance(want, dict):
        assert type(got) is type(want) and list(got) == list(want), where
        for key, part in want.items():
            alike(got[key], part, rtol, f"{where}[{key!r}]", since)
    elif isinstance(want, (list, tuple)):
        assert type(got) is type(want) and len(got) == len(want), f"{where}: {got!r} for {want!r}"
        for k, part in enumerate(want):
            alike(got[k], part, rtol, f"{where}[{k}]", since)
    else:
        assert type(got) is type(want), f"{where}: {got!r} for {want!r}"
        np.testing.assert_array_equal(got, want, err_msg=where)
