"""Where the numbers and arrays among a function's arguments go: to the backend of the Tensors and stacks that the function holds.

This is a choice of backend and nothing else. Where none is found the default backend is taken, and if that was wrong, Tensors
over different backends meet, which raises.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from nestgrad.backends.factories import Factories
from nestgrad.func.trees import flatten
from nestgrad.tensor.handle import Handle, default_backend, is_scalar

_DEPTH = 4
"""How far to look: a function, the model that it closes over, the model's layers, their weights."""

_MANY = 100
"""How many entries of a list, or of the attributes of an object, to look at."""

OF = "__nestgrad_of__"
"""Attribute of a transformed function: the function that it is made of."""

_DATA = frozenset({bool, int, float, complex, str, bytes, type(None)})
_ELSEWHERE = (FunctionType, BuiltinFunctionType, type, ModuleType)
"""Globals that may lead anywhere."""

_EMPTY = CellType()
"""The cell of a variable that has no value yet: equal to all of these, and to no other."""


def home(f: Callable[..., Any], args: Sequence[Any]) -> Any:
    """The dressed backend of the first Tensor among the arguments; or else of a foreign array there; or else of what ``f`` holds."""
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
    found = _within(f, _DEPTH, set())
    return plain.dressed if found is None else found


def of(f: Callable[..., Any], transformed: Callable[..., Any]) -> Callable[..., Any]:
    """``transformed``, which holds nothing but ``f``."""
    transformed.__dict__[OF] = f
    return transformed


def _within(x: Any, depth: int, seen: set[int]) -> Any:
    """The dressed backend of the first Tensor or stack that ``x`` is or holds, or ``None``."""
    while isinstance(x, FunctionType) and OF in x.__dict__:
        x = x.__dict__[OF]
    if isinstance(x, Handle):
        return x.b
    if isinstance(x, Factories):
        return x.dressed
    if x.__class__ in _DATA or not depth or id(x) in seen or isinstance(x, (ModuleType, type)):
        return None
    seen.add(id(x))
    if isinstance(x, (list, tuple, dict)):  # no step further
        return _first(x.values() if isinstance(x, dict) else x, depth, seen)
    return _first(_held(x), depth - 1, seen)


def _first(parts: Iterable[Any], depth: int, seen: set[int]) -> Any:
    for part in islice(parts, _MANY):
        found = _within(part, depth, seen)
        if found is not None:
            return found
    return None


def _held(x: Any) -> Iterator[Any]:
    """What an object holds: a function its closure, defaults and the global data that it names; any other its attributes."""
    if isinstance(x, FunctionType):
        for cell in x.__closure__ or ():
            if cell != _EMPTY:
                yield cell.cell_contents
        yield from x.__defaults__ or ()
        yield from (x.__kwdefaults__ or {}).values()
        for name in _names(x.__code__):
            if not isinstance(held := x.__globals__.get(name), _ELSEWHERE):
                yield held
    elif isinstance(x, partial):
        yield from (x.func, x.args, x.keywords)
    elif isinstance(x, MethodType):
        yield from (x.__self__, x.__func__)
    else:
        yield from getattr(x, "__dict__", {}).values()


def _names(code: CodeType) -> Iterator[str]:
    """The globals that a function may read, and those that functions inside it may."""
    yield from code.co_names
    for constant in code.co_consts:
        if constant.__class__ is CodeType:
            yield from _names(constant)
