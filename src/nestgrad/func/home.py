"""Where the numbers and arrays among a function's arguments go: to the backend of the Tensors and stacks that the function holds.

This is a choice of backend and nothing else. Where none is found the default backend is taken, and if that was wrong, Tensors
over different backends meet, which raises.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from nestgrad.backends.factories import Factories
from nestgrad.func.trees import flatten
from nestgrad.tensor.handle import Handle, default_backend, is_scalar

_DEPTH = 4
"""How far to look: a function, the model that it closes over, the model's lists of layers, their weights."""


def home(f: Callable[..., Any], args: Sequence[Any]) -> Any:
    """The dressed backend of the first Tensor among the arguments; or else of a foreign array there; or else of what ``f`` captures."""
    for a in args:
        if isinstance(a, Handle):
            return a.b
    leaves = [x for a in args for x in flatten(a)[0]]
    for x in leaves:
        if isinstance(x, Handle):
            return x.b
    plain = default_backend()
    for x in leaves:
        if not is_scalar(x) and default_backend(x) is not plain:
            return default_backend(x).dressed
    return next(_captured(f, _DEPTH, set()), plain.dressed)


_ELSEWHERE = (FunctionType, BuiltinFunctionType, type, ModuleType)
"""Globals that may lead anywhere."""


def _captured(x: Any, depth: int, seen: set[int]) -> Iterator[Any]:
    """The dressed backends of Tensors and stacks that a function, or an object, holds."""
    for leaf in flatten(x)[0]:
        if isinstance(leaf, Handle):
            yield leaf.b
        elif isinstance(leaf, Factories):
            yield leaf.dressed
        elif depth and id(leaf) not in seen and not isinstance(leaf, (ModuleType, type)):
            seen.add(id(leaf))
            yield from _captured(_held(leaf), depth - 1, seen)


def _held(x: Any) -> list[Any]:
    """What an object holds: a function its closure, defaults and the global data that it names; any other its attributes."""
    if isinstance(x, partial):
        return [x.func, x.args, x.keywords]
    if isinstance(x, MethodType):
        return [x.__self__, x.__func__]
    if isinstance(x, FunctionType):
        data = (x.__globals__.get(name) for name in _names(x.__code__))
        data = (d for d in data if not isinstance(d, _ELSEWHERE))
        cells = (cell.cell_contents for cell in x.__closure__ or () if cell != _EMPTY)
        return [*cells, x.__defaults__, x.__kwdefaults__, *data]
    return list(getattr(x, "__dict__", {}).values())


def _names(code: CodeType) -> Iterator[str]:
    """The globals that a function may read, and those that functions inside it may."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


_EMPTY = CellType()
"""The cell of a variable that has no value yet: equal to all of these, and to no other."""
