"""Guards: what a function reads beside its arguments, as it was when the function was traced.

A program holds the arrays and numbers that the function closed over. Before it is used again it is checked that these are the same:
variables of closures, globals, defaults, attributes, items of containers by identity, arrays that can be written into by their bytes.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from sys import stdlib_module_names
from types import CellType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

from nestgrad.backends.factories import Factories
from nestgrad.func.home import OF
from nestgrad.levels.coats import worn
from nestgrad.levels.shared import Shared
from nestgrad.tensor.handle import Handle, default_backend

_DEPTH = 8
"""How far to look from a function: its model, that model's layers, their settings, ..."""

_MANY = 10_000
"""How many places to watch."""

_ABSENT = object()
_NUMBERS = frozenset({int, float, bool, complex, str, bytes, type(None)})
_LIBRARY = stdlib_module_names | {"nestgrad", "numpy", "torch", "jax", "scipy", "optree"}


_RECORDS = frozenset({"argparse", "collections", "types"})
"""Modules of the library whose objects hold what users put there: ``Namespace``, ``UserDict``, ``SimpleNamespace``."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value was found.

    Attributes:
        name: For people.
        read: Reads it again.
        value: What was there.
    """

    name: str
    read: Callable[[], Any]
    value: Any

    def same(self) -> bool:
        """Whether the value is there still: that object, or an equal number or text."""
        try:
            found = self.read()
        except (AttributeError, LookupError, ValueError):
            return False
        value = self.value
        if found is value:
            return True
        return found.__class__ is value.__class__ and found.__class__ in _NUMBERS and (found == value or repr(found) == repr(value))


@dataclass(frozen=True, slots=True)
class Written:
    """An array that others may write into."""

    name: str
    array: Any
    content: bytes

    def same(self) -> bool:
        """Whether it holds the same numbers."""
        return _content(self.array) == self.content


@dataclass(frozen=True, slots=True)
class Lent:
    """Memory that a Tensor shares with its owner."""

    name: str
    coat: Shared

    def same(self) -> bool:
        """Whether the owner has not written into it."""
        return not self.coat.backend.changed(self.coat.value, self.coat.token)


@dataclass(slots=True)
class Length:
    """How much a container holds."""

    name: str
    container: Any
    length: int

    def same(self) -> bool:
        """Whether it holds as much."""
        return len(self.container) == self.length


Check = Place | Written | Lent | Length


class Guards:
    """What ``roots`` hold: functions, their closures and globals, objects, containers, arrays."""

    def __init__(self, *roots: Any) -> None:
        self._checks: list[Check] = []
        self._seen: set[int] = set()
        self._kept: list[Any] = []
        for root in roots:
            self._walk(type(root).__name__, root, _DEPTH)
        self._fast = tuple(check.same for check in self._checks)

    def hold(self) -> bool:
        """Whether everything is as it was."""
        for same in self._fast:  # not all(...): a generator costs more than most of these
            if not same():
                return False
        return True

    def written(self) -> str | None:
        """The first array that has been written into, if one has."""
        return next((check.name for check in self._checks if isinstance(check, Written) and not check.same()), None)

    def settle(self) -> None:
        """Take lists as long as they are now, if what the function has put at their end is plain data, as a count of its traces is."""
        for check in self._checks:
            if isinstance(check, Length) and isinstance(check.container, (list, deque)) and not check.same():
                new = list(check.container)[check.length :]
                check.length = len(check.container) if new and all(x.__class__ in _NUMBERS for x in new) else check.length

    def changed(self) -> str | None:
        """What has changed first, in words; ``None`` if nothing has."""
        for check in self._checks:
            if not check.same():
                return _told(check)
        return None

    def _place(self, name: str, read: Callable[[], Any], depth: int) -> None:
        try:
            value = read()
        except (AttributeError, LookupError, ValueError):
            return
        if len(self._checks) < _MANY:
            self._checks.append(Place(name, read, value))
            self._walk(name, value, depth)

    def _walk(self, name: str, x: Any, depth: int) -> None:
        while isinstance(x, FunctionType) and OF in x.__dict__:
            x = x.__dict__[OF]
        if isinstance(x, Handle):
            self._checks += [Lent(name, coat) for coat in worn(x.value) if isinstance(coat, Shared)]
        if x.__class__ in _NUMBERS or isinstance(x, (Handle, Factories)) or id(x) in self._seen or not depth:
            return
        self._seen.add(id(x))
        self._kept.append(x)
        if isinstance(x, (list, dict, MappingProxyType, set, deque)):
            self._checks.append(Length(name, x, len(x)))
        if _users(x) and isinstance(own := getattr(x, "__dict__", None), dict):  # a new attribute may hide one of the class
            self._checks.append(Length(f"{name}.__dict__", own, len(own)))
        for inner, read in _held(name, x):
            self._place(inner, read, depth - 1)
        kind = type(x)  # not the object, which may answer to any name
        if hasattr(kind, "__array_interface__") or (hasattr(kind, "data_ptr") and hasattr(kind, "dtype")):
            self._checks.append(Written(name or "an array", x, _content(x)))


def _content(array: Any) -> bytes:
    found: bytes = default_backend(array).to_numpy(array).tobytes()
    return found


def _held(name: str, x: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The places inside an object: their names, and how they are read."""
    if isinstance(x, FunctionType):
        yield from _of_function(x)
    elif isinstance(x, MethodType):
        yield f"{name}.__self__", partial(getattr, x, "__self__")
        yield f"{name}.__func__", partial(getattr, x, "__func__")
    elif isinstance(x, partial):
        for part in ("func", "args", "keywords"):
            yield f"{name}.{part}", partial(getattr, x, part)
    elif isinstance(x, (list, tuple, deque)):
        for k in range(min(len(x), _MANY)):
            yield f"{name}[{k}]", partial(x.__getitem__, k)
    elif isinstance(x, (dict, MappingProxyType)):
        for key in islice(tuple(x), _MANY):
            yield f"{name}[{key!r}]", partial(x.__getitem__, key)
    elif isinstance(x, (set, frozenset)):
        for item in islice(tuple(x), _MANY):
            yield f"an item of {name}", partial(_member, x, item)
    elif isinstance(x, type):
        if not _library(x.__module__):
            for attribute, held in tuple(x.__dict__.items()):
                if not attribute.startswith("__"):
                    yield f"{x.__qualname__}.{attribute}", partial(getattr, x, attribute) if held.__class__ in _NUMBERS else partial(
                        x.__dict__.__getitem__, attribute
                    )
    elif isinstance(x, ModuleType):
        if not _library(x.__name__):
            for attribute, held in tuple(x.__dict__.items()):
                if not attribute.startswith("__") and not isinstance(held, ModuleType):
                    yield f"{x.__name__}.{attribute}", partial(x.__dict__.__getitem__, attribute)
    if _users(x):
        own: Any = getattr(x, "__dict__", ())
        for attribute in tuple(own):
            yield f"{name}.{attribute}", partial(getattr, x, attribute)
        kind: type = type(x)
        for cls in kind.__mro__:
            if not _library(cls.__module__):
                yield f"{name}.__class__", partial(_itself, cls)
            slots = cls.__dict__.get("__slots__", ())
            for attribute in (slots,) if isinstance(slots, str) else slots:
                yield f"{name}.{attribute}", partial(getattr, x, attribute)


def _users(x: Any) -> bool:
    """Whether an object holds what users put there, in attributes: also a container of a user's own class."""
    if isinstance(x, (FunctionType, MethodType, partial, type, ModuleType)):
        return False
    return type(x).__module__ in _RECORDS or not _library(type(x).__module__)


def _of_function(f: FunctionType) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What a function may read: its closure, its defaults, and the globals that it names, with the attributes of modules among them."""
    for variable, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
        yield variable, partial(_cell, cell)
    yield f"the defaults of {f.__qualname__}", partial(getattr, f, "__defaults__")
    yield f"the defaults of {f.__qualname__}", partial(getattr, f, "__kwdefaults__")
    if _library(f.__module__):
        return
    for name in dict.fromkeys(_names(f.__code__)):
        if name in f.__globals__:
            held = f.__globals__[name]
            if not isinstance(held, ModuleType):
                yield name, partial(f.__globals__.__getitem__, name)
            elif not _library(held.__name__):
                for attribute in dict.fromkeys(_names(f.__code__)):
                    if attribute in held.__dict__ and not isinstance(held.__dict__[attribute], ModuleType):
                        yield f"{name}.{attribute}", partial(held.__dict__.__getitem__, attribute)


def _itself(x: Any) -> Any:
    return x


def _member(x: Any, item: Any) -> Any:
    if item not in x:
        raise KeyError(item)
    return item


def _cell(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _ABSENT


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _library(module: str | None) -> bool:
    return (module or "").partition(".")[0] in _LIBRARY


def _told(check: Check) -> str:
    if isinstance(check, Length):
        return f"{check.name} had {check.length} items and has {len(check.container)}"
    if not isinstance(check, Place):
        return f"{check.name} was written into"
    try:
        found = check.read()
    except (AttributeError, LookupError, ValueError):
        return f"{check.name} is gone"
    if found.__class__ in _NUMBERS and check.value.__class__ in _NUMBERS:
        return f"{check.name} was {check.value!r} and is {found!r}"
    return f"{check.name} is another object"
