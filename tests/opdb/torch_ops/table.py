"""One table: how an operation of nestgrad is called with what torch's operation is called with.

An entry's ``call`` gets torch's arguments, with Tensors of ours in place of torch's and names of dtypes in place of dtypes. It returns
what is compared with torch's results, one by one. Where a sample asks for what nestgrad does not have, on purpose, it raises ``LeftOut``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import nestgrad as ng
from nestgrad.ops import TABLE
from torch_ops.derivatives import LeftOut

RENAMED = {"dim": "axis", "dims": "axis", "keepdim": "keepdims", "other": "y"}
"""Torch's words for ours."""

Call = Callable[..., Any]


@dataclass(frozen=True)
class Adapter:
    """How ours is called.

    Attributes:
        ours: The name of the function in ``nestgrad``, such as ``"sum"`` or ``"nn.conv2d"``; of an operator or a method that is no
            function, the name in the op table, such as ``"getitem"``.
        call: Calls it.
        results: Which of torch's results are compared, where ours has fewer.
        parts: Into how many tests the samples are divided.
        absent: Why all samples are left out, where they are.
    """

    ours: str
    call: Call
    results: tuple[int, ...] | None = None
    parts: int = 1
    absent: str | None = None


ADAPTERS: dict[str, Adapter] = {}


def function(name: str) -> Any:
    """The function, class or method of that name in ``nestgrad``."""
    return reduce(getattr, name.split("."), ng)


def entry(torch_name: str, ours: str, call: Call | None = None, results: tuple[int, ...] | None = None, parts: int = 1) -> None:
    """Add an entry. Without ``call`` the arguments are handed on, by our names."""
    assert torch_name not in ADAPTERS, f"{torch_name} is in the table already"
    assert ours in TABLE or callable(function(ours))
    ADAPTERS[torch_name] = Adapter(ours, call or renamed(ours), results, parts)


def entries(*names: str, within: str = "") -> None:
    """Operations that have one name, and arguments in one order. ``within`` is the module of ours, such as ``"nn."``."""
    for name in names:
        entry(name, within + name.rpartition(".")[2])


def absent(torch_name: str, ours: str, reason: str) -> None:
    """A variant of an operation of ours that we do not have, on purpose: its samples are counted as left out."""
    ADAPTERS[torch_name] = Adapter(ours, lambda *args, **kwargs: only(False, reason), absent=reason)


def renamed(ours: str) -> Call:
    """Hand the arguments on."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(ours)(*args, **{RENAMED.get(k, k): v for k, v in kwargs.items()})

    return call


def only(condition: Any, reason: str) -> None:
    """Leave a sample out, unless the condition holds."""
    if not condition:
        raise LeftOut(reason)
