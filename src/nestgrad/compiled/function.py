"""``jit``: a function that is traced once for each signature of its arguments, and then run as a program."""

import inspect
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, update_wrapper
from typing import Any

from nestgrad.compiled.call import Call, Held
from nestgrad.compiled.choice import chosen, compiler, known
from nestgrad.compiled.entry import Entry
from nestgrad.compiled.guards import Guards
from nestgrad.compiled.passes import optimized
from nestgrad.compiled.signature import FLAT, pattern
from nestgrad.compiled.telling import difference
from nestgrad.compiled.tracing import traced
from nestgrad.errors import NestgradError, TraceError
from nestgrad.func.home import OF, home
from nestgrad.func.run import as_leaf
from nestgrad.func.trees import flatten
from nestgrad.levels.coats import bare
from nestgrad.levels.marks import NONE
from nestgrad.levels.traced.recording import recording_now
from nestgrad.tensor.handle import Handle, default_backend

MOST = 64
"""How many traces a jitted function keeps; the oldest goes first."""


@dataclass(frozen=True, slots=True)
class Stats:
    """What a jitted function has done.

    Attributes:
        calls: How often it was called, outside of traces.
        traces: How often it was traced.
        entries: How many traces it keeps.
        reasons: Why, for each trace.
        executor: What runs the programs.
    """

    calls: int
    traces: int
    entries: int
    reasons: tuple[str, ...]
    executor: str | None

    def __str__(self) -> str:
        told = [f"  {count} x {reason}" for reason, count in Counter(self.reasons).items()]
        return "\n".join([f"{self.calls} calls, {self.traces} traces, {self.entries} kept, executor {self.executor}", *told])


class Jitted:
    """A function that runs as a program. Made by ``nestgrad.jit``."""

    def __init__(self, f: Callable[..., Any], executor: str, static: Sequence[str]) -> None:
        self._f = f
        self._wanted = known(executor)
        self._static = _positions(f, static)
        self._entries: dict[Any, list[Entry]] = {}
        self._baked: set[Any] = set()
        self._homes: dict[Any, Any] = {}
        self._backends: dict[Any, Any] = {}
        self._calls = 0
        self._reasons: list[str] = []
        self._executor: str | None = None
        self._captured: tuple[Any, ...] = ()
        self._lock = threading.RLock()
        update_wrapper(self, f)
        self.__dict__[OF] = f

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the function returns, by its program; traced first if there is none for such arguments."""
        if recording_now():
            return self._f(*args, **kwargs)  # a part of the trace that is running
        self._calls += 1
        call, entry = self._entry(args, kwargs)
        return entry.run(call)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """A jitted function in a class is a method."""
        return self if instance is None else partial(self, instance)

    def __copy__(self) -> "Jitted":
        """Itself, as a function's copy is."""
        return self

    def __deepcopy__(self, memo: Any) -> "Jitted":
        """Itself, as a function's copy is."""
        return self

    def __reduce__(self) -> str:
        """By its name, as functions are pickled."""
        name: str = self._f.__qualname__
        return name

    def __repr__(self) -> str:
        return f"<jit of {getattr(self._f, '__qualname__', self._f)}>"

    def stats(self) -> Stats:
        """How often it was called and traced, and why.

        >>> import nestgrad as ng
        >>> f = ng.jit(lambda x: (x * x).sum())
        >>> _ = f(ng.ones(3)), f(ng.ones(3)), f(ng.ones(4))
        >>> print(f.stats())
        3 calls, 2 traces, 2 kept, executor numpy
          1 x the first call
          1 x argument 0: float64[3] became float64[4]
        """
        with self._lock:
            kept = sum(map(len, self._entries.values()))
            return Stats(self._calls, len(self._reasons), kept, tuple(self._reasons), self._executor)

    @property
    def captured(self) -> tuple[Any, ...]:
        """The Tensors on levels outside that the last trace found the function to close over: hidden inputs of its program."""
        return self._captured

    @property
    def executor(self) -> str | None:
        """What runs the programs: ``"replay"``, ``"numpy"`` or ``"torch.compile"``. ``None`` before the first call with ``"auto"``."""
        return self._executor if self._executor is not None or self._wanted == "auto" else self._wanted

    def program(self, *args: Any, **kwargs: Any) -> Any:
        """The program that a call with these arguments runs, before and after the optimiser: ``(traced, optimised)``."""
        program = self._entry(args, kwargs)[1].program
        return program, optimized(program)

    def _entry(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Call, Entry]:
        """A call taken apart, and the trace for it: a new one if there is none."""
        call = self._taken_apart(args, kwargs)
        key = self._key(call)
        entry = self._known(call, key)
        if entry is None:
            with self._lock:
                entry = self._known(call, key) or self._traced(call, key)  # another thread may have been here
            if entry.mixed:
                return self._entry(args, kwargs)  # once more, with Python numbers as they are
        return call, entry

    def _known(self, call: Call, key: Any) -> Entry | None:
        """The trace for a call, if there is one. What it closes over is compared with what it was."""
        for entry in tuple(self._entries.get(key, ())):  # another thread may be adding one
            if entry.guards.hold() and entry.fits(call):
                return entry
        return None

    # the signature

    def _taken_apart(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        plain = not kwargs and not self._static
        for x in args if plain else ():
            plain = plain and isinstance(x, Handle)
        if plain and args:  # the common case, without a walk
            call = Call(args[0].b, len(args), len(args))
            for x in args:
                call.array(x)
            if not call.flat:
                call.pattern = pattern(call.values, call.marks)
            return call
        leaves, structure = flatten(self._held(args, kwargs) if self._static else (args, kwargs))
        b = next((x.b for x in leaves if isinstance(x, Handle)), None)
        call = Call(self._home(leaves) if b is None else b, structure, len(leaves))
        floats = []
        for k, x in enumerate(leaves):
            if isinstance(x, float):
                floats.append(k)
                call.add(float, None, NONE)
            elif isinstance(x, Handle) or (not isinstance(x, (int, Held)) and call.b.base.accepts(x)):
                call.array(_as_tensor(x, call.b))
            elif isinstance(x, Held):
                call.fix(k, x.value, f" {x.name!r}")
            else:
                call.fix(k, x)
        if floats:
            self._weak(call, floats, leaves)
        if not call.flat:
            call.pattern = pattern(call.values, call.marks)
        return call

    def _held(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The arguments, with those that are static as single leaves."""
        static = self._static
        return (
            tuple(Held(x, static[k]) if k in static else x for k, x in enumerate(args)),
            {name: Held(x, name) if name in static.values() else x for name, x in kwargs.items()},
        )

    def _home(self, leaves: Sequence[Any]) -> Any:
        """The dressed backend for arguments without a Tensor among them."""
        arrays = [x for x in leaves if not isinstance(x, (int, float))]
        if arrays:
            return home(self._f, arrays)
        plain = default_backend()
        if plain not in self._homes:
            self._homes[plain] = home(self._f, [])
        return self._homes[plain]

    def _weak(self, call: Call, floats: list[int], leaves: Sequence[Any]) -> None:
        """Python floats as inputs of the floating dtype that the others have; where there are several dtypes, as part of the signature."""
        base = call.b.base
        kinds = {base.dtype(bare(p)) for p in call.values if p is not None and base.is_floating(bare(p))}
        if len(kinds) > 1 or self._key(call) in self._baked:
            call.unweak(floats, leaves)
            return
        call.scalar = kinds.pop() if kinds else base.default_dtype
        inputs = iter([k for k, p in enumerate(call.values) if p is None])
        for k in floats:
            call.values[next(inputs)] = base.asarray(float(leaves[k]), call.scalar)

    def _key(self, call: Call) -> Any:
        b = self._backends.get(call.b)
        if b is None:
            with self._lock:
                b = self._backends[call.b] = next((known for known in self._backends if known.base == call.b.base), call.b)
        return b, call.structure, tuple(call.key), call.pattern.key

    # tracing

    def _traced(self, call: Call, key: Any) -> Entry:
        """A new trace.

        One with mixed dtypes is not kept: Python numbers are part of the signature from then on. Nor is one while which was made
        something that the function closes over has changed, by the function or by another thread: which value it saw is not known.
        """
        name = chosen(self._wanted, call.b.base)
        self._executor = name
        self._homes.clear()
        static = [x for x in call.static.values() if not isinstance(x, (int, float, str, type(None)))]
        entry = traced(
            self._f, call.b, (call.values, call.marks), call.arguments, compiler(name), partial(Guards, self._f, *static), call.scalar
        )
        if entry.mixed:
            self._baked.add((*key[:3], FLAT.key))
            return entry
        self._reasons.append(self._reason(key, call))
        self._captured = entry.program.captured
        kept = self._entries.setdefault(key, [])
        kept[:] = [known for known in (entry, *kept) if known.guards.hold()]
        while sum(map(len, self._entries.values())) > MOST:
            oldest = next(iter(self._entries))
            self._entries[oldest].pop()
            if not self._entries[oldest]:
                del self._entries[oldest]
        return entry

    def _reason(self, key: Any, call: Call) -> str:
        """Why there is no program for a call yet."""
        if key in self._entries and (entries := self._entries[key]):
            changed = next((reason for entry in entries if (reason := entry.guards.changed())), None)
            return changed or "the levels of arguments and of what is closed over, or the order in which they were made"
        return difference(next(reversed(self._entries)), key) if self._entries else "the first call"


def _as_tensor(x: Any, b: Any) -> Any:
    """An argument as a Tensor; what a backend says against it is told in the name of the function."""
    try:
        return as_leaf("jit", x, b)
    except NestgradError as error:
        if not str(error).startswith("jit"):
            error.args = (f"jit: an argument cannot be taken: {error}", *error.args[1:])
        raise


def _positions(f: Callable[..., Any], names: Sequence[str]) -> dict[int, str]:
    """Where the static arguments are: names by positions.

    Raises:
        TraceError: If the function has no such argument.
    """
    if not names:
        return {}
    listed = [names] if isinstance(names, str) else list(names)
    parameters = list(inspect.signature(f).parameters)
    if strange := [name for name in listed if name not in parameters]:
        raise TraceError(f"jit: got static_argnames={listed!r}; expected names of the function's arguments, {parameters}, not {strange}")
    return {parameters.index(name): name for name in listed}
