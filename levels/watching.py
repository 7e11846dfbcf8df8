"""Watching what runs: ops, what the base backend does for them, and the steps of backward passes.

Who watches is known by context (a context variable), or by the base backend, which may bring watchers of its own. Where nobody
watches, nothing of this is on the way: the methods that an op is are made without it, and are set aside while somebody watches.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from threading import RLock
from types import new_class
from typing import Any
from weakref import WeakSet

from nestgrad.backends.base import missing
from nestgrad.ops.table import TABLE, Op

Go = Callable[[], Any]
"""The rest of what is watched; it has to be called once, and its answer returned."""


class Watcher:
    """What may be watched. Each method does nothing but what is watched, unless a subclass says more."""

    def op(self, b: Any, op: Op, args: tuple[Any, ...], params: tuple[Any, ...], go: Go) -> Any:
        """An op that somebody has asked of ``b``, the backend over dressed values: also rules, for whose ops it is asked inside."""
        return go()

    def call(self, b: Any, values: Sequence[Any], go: Go) -> Any:
        """A call of a traced program."""
        return go()

    def work(self, base: Any, op: Op, args: tuple[Any, ...], go: Go) -> Any:
        """An op on raw arrays, as the base backend does it; also what a backend's method asks of another."""
        return go()

    def again(self, go: Go) -> Any:
        """Arrays that are computed again, for checkpointing."""
        return go()

    def step(self, passing: Any, node: Any, go: Go) -> Any:
        """A step of a backward pass: the cotangent of a node goes on to its parents."""
        return go()


_watching: ContextVar[tuple[Watcher, ...]] = ContextVar("watching", default=())
_lock = RLock()
_living: "WeakSet[Methods]" = WeakSet()
_count = 0


def here() -> bool:
    """Whether somebody watches in this context, over whatever base backend."""
    return bool(_count and _watching.get())


def watched(base: Any) -> bool:
    """Whether somebody watches in this context what runs over ``base``."""
    return here() or bool(base.watchers)


@contextmanager
def watch(watcher: Watcher) -> Iterator[None]:
    """Have ``watcher`` watch what runs in this context, over all base backends."""
    global _count  # how many contexts there are, of all threads
    with _lock:
        if not _count:
            for methods in [*_living]:
                methods.set_aside()
        _count += 1
    token = _watching.set((*_watching.get(), watcher))
    try:
        yield
    finally:
        _watching.reset(token)
        with _lock:
            _count -= 1
            if not _count:
                for methods in [*_living]:
                    methods.take_back()


def called(b: Any, values: Sequence[Any], go: Go) -> Any:
    """A call of a traced program, as it is watched."""
    return _told(_watchers(b.base), lambda w, go: w.call(b, values, go), go)


def again(go: Go) -> Any:
    """What is computed again, as it is watched in this context."""
    return _told(_watching.get(), lambda w, go: w.again(go), go)


def steps(passing: Any, nodes: Sequence[Any], into: Mapping[Any, Any], free: bool) -> None:
    """Follow nodes of a pass one by one, so that each is a step that can be watched."""
    watchers = _watchers(passing.b.base)
    for node in nodes:
        _told(watchers, lambda w, go: w.step(passing, node, go), lambda: passing.follow([node], into, free))  # noqa: B023


class Methods:
    """Ops as attributes that are made on first use. While somebody watches, they are made anew, to be watched.

    Args:
        base: The base backend.
        table: The ops.
    """

    def __init__(self, base: Any, table: Mapping[str, Op] = TABLE) -> None:
        self.base = base
        self.table = table
        self._own: dict[Op, Any] = {}
        self._aside: dict[str, Any] | None = None
        self._work: Work | None = None
        with _lock:
            _living.add(self)
            if _count or base.watchers:
                self.set_aside()

    def set_aside(self) -> None:
        """Put the methods that there are away."""
        if self._aside is None:
            mine = self.__dict__
            self._aside = {name: mine.pop(name) for name in self.table if name in mine}
            self._aside["_own"], self._own = self._own, {}
            self._work = Work(self.base)

    def take_back(self) -> None:
        """Go on with the methods that were put away, unless the backend itself has watchers."""
        if self._aside is not None and not self.base.watchers:
            mine = self.__dict__
            for name in self.table:
                mine.pop(name, None)
            mine.update(self._aside)
            self._aside = self._work = None

    def kept(self, op: Op, make: Callable[[Op], Callable[..., Any]]) -> Callable[..., Any]:
        """The method that ``make`` makes for an op of the table, as an attribute from now on."""
        with _lock:  # nobody begins to watch, or ends, meanwhile
            method = make(op)
            setattr(self, op.name, method)
        return method

    def raw(self, op: Op) -> Callable[..., Any]:
        """The op as the base backend has it, watched if somebody watches."""
        return op.of(self.base) if self._work is None else self._work.of(op)

    def observed(self, op: Op, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of raw arrays that an op brings, watched if somebody watches."""
        return function if self._work is None else Observed(self.base, op, function)

    def asked(self, op: Op, method: Callable[..., Any]) -> Callable[..., Any]:
        """A method of the backend over dressed values, watched if somebody watches."""
        return method if self._work is None else Asked(self, op, method)


class Asked:
    """An op on values in coats, watched."""

    __slots__ = ("b", "method", "op")

    def __init__(self, b: Any, op: Op, method: Callable[..., Any]) -> None:
        self.b, self.op, self.method = b, op, method

    def __call__(self, *args: Any, **params: Any) -> Any:
        watchers = _watchers(self.b.base)
        if not watchers:
            return self.method(*args, **params)
        b, op = self.b, self.op
        count = len(args) if op.variadic else len(op.arguments)
        try:
            given = op.bound(args[count:], params)
        except KeyError:  # a call that does not fit
            return self.method(*args, **params)
        return _told(watchers, lambda w, go: w.op(b, op, args[:count], given, go), lambda: self.method(*args, **params))


def unasked(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method for calls that nobody asks for: of what runs a second time, only the base backend's work is watched."""
    return method.method if isinstance(method, Asked) else method


class Observed:
    """An op on raw arrays, watched."""

    __slots__ = ("base", "method", "op")

    def __init__(self, base: Any, op: Op, method: Callable[..., Any]) -> None:
        self.base, self.op, self.method = base, op, method

    def __call__(self, *args: Any, **params: Any) -> Any:
        watchers = _watchers(self.base)
        if not watchers:
            return self.method(*args, **params)
        base, op = self.base, self.op
        given = args if op.variadic else args[: len(op.arguments)]
        return _told(watchers, lambda w, go: w.work(base, op, given, go), lambda: self.method(*args, **params))


class Work:
    """The ops of a base backend, watched; also where its methods call each other.

    They run on a shadow of the backend, which is the same object in all but its class: it has the same attributes, and a class made of
    the backend's own.

    Args:
        base: The base backend.
        owner: Whose watchers are asked, if it is not ``base``.
    """

    def __init__(self, base: Any, owner: Any = None) -> None:
        self.owner = base if owner is None else owner
        self.shadow: Any = base
        cls = type(base)
        try:
            shadow: Any = new_class(cls.__name__, (cls,), exec_body=lambda names: names.update(__slots__=(), __module__=cls.__module__))
        except TypeError:  # a class that allows none of its own: what its methods call is not seen
            return
        self.shadow = object.__new__(shadow)
        object.__setattr__(self.shadow, "__dict__", base.__dict__)
        lacks = {*missing(cls)}
        for name, op in TABLE.items():
            if hasattr(cls, name) and name not in lacks and name not in base.__dict__:
                setattr(shadow, name, Observed(self.owner, op, getattr(super(shadow, self.shadow), name)))

    def of(self, op: Op) -> Callable[..., Any]:
        """An op as a function of raw arrays."""
        found = op.of(self.shadow)
        return found if isinstance(found, Observed) else Observed(self.owner, op, found)


def _watchers(base: Any) -> tuple[Watcher, ...]:
    watchers: tuple[Watcher, ...] = (*base.watchers, *_watching.get())
    return watchers


def _told(watchers: tuple[Watcher, ...], tell: Callable[[Watcher, Go], Any], go: Go) -> Any:
    """``go()``, as all watchers see it; the last one is the nearest."""
    if not watchers:
        return go()
    return tell(watchers[0], lambda: _told(watchers[1:], tell, go))
