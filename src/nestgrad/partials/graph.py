"""``Graph``: a recorded graph on its way to a program, written down op by op.

Who adopts a graph names the ops that its nodes stand for. What the graph did not keep is *unknown*: an input of the program that holds
NaN. What it did keep is *given*: a value that stands in for what the ops would compute, so that derivatives are those at the very
numbers that the graph saw.
"""

from collections.abc import Hashable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from nestgrad.errors import RuleError
from nestgrad.levels.coats import bare
from nestgrad.levels.traced.program import Program
from nestgrad.levels.traced.recording import recorded
from nestgrad.ops.table import TABLE, Kind, Op
from nestgrad.partials import parts
from nestgrad.partials.known import GIVEN, MOVED, answered


class Ref:
    """A value of a graph.

    Attributes:
        number: Its position.
        known: Its array, if there is one.
        shape: Sizes of its axes, if somebody has told.
    """

    __slots__ = ("known", "number", "shape")

    def __init__(self, number: int, known: Any = None, shape: tuple[int, ...] | None = None) -> None:
        self.number, self.known, self.shape = number, known, shape

    def __repr__(self) -> str:
        return f"<value {self.number} of shape {self.shape}, {'unknown' if self.known is None else 'known'}>"


class Graph:
    """Ops, in an order in which everything is defined before it is read.

    Attributes:
        base: The base backend of its arrays.
        values: The values of the inputs: arrays, which may wear coats of levels that look on.
        wanted: Keys of nodes that one wants derivatives by.
        leaves: By the keys of leaves, the numbers of their inputs.
        inside: By the keys of values inside that one wants derivatives by, the numbers of inputs that are added to them, and zero.
        unknown: The numbers of inputs that hold NaN for what is not known.
    """

    def __init__(self, base: Any, wanted: Iterable[Hashable] = ()) -> None:
        self.base = base
        self._b = base.dressed  # values may wear coats
        self.values: list[Any] = []
        self.leaves: dict[Hashable, int] = {}
        self.inside: dict[Hashable, int] = {}
        self.unknown: set[int] = set()
        self.wanted = frozenset(wanted)
        self._inputs: list[int] = []  # positions of inputs among all values
        self._steps: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []
        self._told: list[tuple[Any, ...]] = []  # the same as parts of a signature
        self._refs: dict[Hashable, Ref] = {}
        self._data: dict[int, Ref] = {}
        self._count = 0

    # values

    def leaf(self, key: Hashable, value: Any = None, shape: tuple[int, ...] | None = None, dtype: Any = None) -> Ref:
        """A variable. Without a value it is unknown, and has the shape and dtype that are told."""
        found = self._refs.get(key)
        if found is None:
            self.leaves[key] = len(self.values)
            ref = self.unknown_value(shape or (), dtype) if value is None else self._input(value)
            found = self._refs[key] = ref
        return found

    def data(self, array: Any) -> Ref:
        """A constant of the graph; the same for the same array."""
        found = self._data.get(id(array))
        if found is None:
            found = self._data[id(array)] = self._input(array)
        return found

    def unknown_value(self, shape: Sequence[int], dtype: Any = None) -> Ref:
        """A value that the graph did not keep, since no derivative reads it."""
        self.unknown.add(len(self.values))
        nan = self.base.full((), float("nan"), dtype)
        ref = self._input(self.base.broadcast_to(nan, tuple(shape)) if shape else nan)
        ref.known = None
        return ref

    def apply(self, op: str | Op, *operands: Any, told: tuple[int, ...] | None = None, **params: Any) -> Any:
        """An op of the table, by name, or one that is not in it.

        Args:
            op: The op.
            operands: Refs, and Python numbers.
            told: The shape of the result, if it is known. A parameter named ``shape`` tells it, too.
            params: By name, all of them.

        Returns:
            A Ref; of an op with several results a tuple of them.

        Raises:
            RuleError: There is no op of that name.
        """
        try:
            entry = TABLE[op] if isinstance(op, str) else op
        except KeyError:
            near = get_close_matches(str(op), TABLE, 3)
            raise RuleError(
                f"graph.apply: got {op!r}; expected the name of an op of the table, because rules are made of these. Try "
                + (f"{', '.join(near)}, or " if near else "")
                + "an op of nestgrad.define"
            ) from None
        numbers = tuple([x.number if x.__class__ is Ref else _Number(x) for x in operands])
        first = self._count
        if params:
            self._steps.append((op, numbers, params))
            self._told.append((op, numbers, *[(name, _plain(self._b, p)) for name, p in params.items()]))
            told = params.get("shape") if told is None else told
        else:
            self._steps.append((op, numbers, params))
            self._told.append((op, numbers))
        if entry.results:
            self._count += len(entry.results)
            return tuple([Ref(first + k, None, told) for k in range(len(entry.results))])
        self._count += 1
        return Ref(first, None, told)

    def split(self, x: Ref, sizes: tuple[int, ...], axis: int) -> tuple[Ref, ...]:
        """``x`` in parts of these sizes along an axis. It knows its shape."""
        return parts.split(self, x, sizes, axis)

    def unstack(self, x: Ref, axis: int) -> tuple[Ref, ...]:
        """The slices of ``x`` along an axis, without it. It knows its shape."""
        return parts.unstack(self, x, axis)

    def answered(self, op: str | Op, *operands: Any, value: Any, **params: Any) -> Ref:
        """An elementwise op of which the graph kept the answer."""
        ref: Ref = self.apply(answered(TABLE[op] if isinstance(op, str) else op), *operands, self.data(value), **params)
        ref.known, ref.shape = value, tuple(self._b.shape(value))
        return ref

    def settled(self, ref: Ref, value: Any) -> Ref:
        """``ref``, of which the graph kept the value; for all who read it from now on."""
        return ref if ref.known is not None else self.seen_as(ref, value)

    def seen_as(self, ref: Ref, value: Any) -> Ref:
        """``ref``, which one op takes to have this value, whatever others know of it."""
        made: Ref = self.apply(GIVEN, ref, self.data(value))
        made.known, made.shape = value, tuple(self._b.shape(value))
        return made

    # nodes

    def define(self, key: Hashable, ref: Ref, dtype: Any = None) -> None:
        """The value that a node of the graph makes. Where it is not known, a variable has the dtype that is told."""
        if key in self.wanted:
            self.inside[key] = len(self.values)
            shape = self._b.shape(ref.known) if ref.known is not None else ref.shape
            assert shape is not None, f"{ref} must tell its shape, to be a variable"
            dtype = self._b.dtype(ref.known) if ref.known is not None else dtype
            moved: Ref = self.apply("add", ref, self._input(self.base.full(tuple(shape), 0.0, dtype)), told=tuple(shape))
            moved.known = ref.known
            ref = moved
        self._refs[key] = ref

    def settle(self, key: Hashable, value: Any) -> Ref:
        """The value of a node that somebody has kept."""
        ref = self._refs[key] = self.settled(self._refs[key], value)
        return ref

    def __getitem__(self, key: Hashable) -> Ref:
        return self._refs[key]

    def __contains__(self, key: Hashable) -> bool:
        return key in self._refs

    def _input(self, value: Any) -> Ref:
        self.values.append(value)
        self._inputs.append(self._count)
        self._count += 1
        return Ref(self._count - 1, value, tuple(self._b.shape(value)))

    # what depends on what

    def input(self, number: int) -> Ref:
        """The value of an input, by its number among them."""
        value = self.values[number]
        return Ref(self._inputs[number], None if number in self.unknown else value, tuple(self._b.shape(value)))

    def behind(self, ref: Ref) -> set[int]:
        """Positions of the values that ``ref`` depends on, if only with zero derivative; its own, too."""
        inputs, made, position = set(self._inputs), {}, 0
        for op, operands, _ in self._steps:
            while position in inputs:
                position += 1
            entry = TABLE[op] if isinstance(op, str) else op
            rules = entry.rules * len(operands) if entry.variadic else entry.rules
            rules = rules if entry.kind is not Kind.COMPOSITE else (True,) * len(operands)
            followed = [x for x, rule in zip(operands, rules, strict=False) if rule is not None]
            for _ in range(max(1, len(entry.results))):
                made[position] = followed
                position += 1
        found, ahead = {ref.number}, [ref.number]
        while ahead:
            for x in made.get(ahead.pop(), ()):
                if x.__class__ is not _Number and x not in found:
                    found.add(x)
                    ahead.append(x)
        return found

    def cut(self, keys: Iterable[Hashable]) -> "Graph":
        """A copy in which some of the values inside that one wants derivatives by depend on nothing but what is added to them."""
        made = Graph(self.base, self.wanted)
        made.values, made._inputs, made._count = [*self.values], [*self._inputs], self._count
        made.leaves, made.inside, made.unknown = dict(self.leaves), dict(self.inside), set(self.unknown)
        made._steps, made._told, made._refs, made._data = [*self._steps], [*self._told], dict(self._refs), dict(self._data)
        added = {self._inputs[self.inside[key]] for key in keys}
        for k, (_, operands, params) in enumerate(self._steps):
            if len(operands) == 2 and operands[1] in added:
                made._steps[k], made._told[k] = (MOVED, operands, params), (MOVED, operands)
        return made

    # the program

    def signature(self, root: Ref) -> Hashable:
        """What two graphs have in common that are one program."""
        b, of = self._b, self.base.device
        return (
            tuple(self._inputs),
            tuple([(tuple(b.shape(v)), b.dtype(v), of(bare(v))) for v in self.values]),
            tuple(self._told),
            frozenset(self.unknown),
            (*self.leaves.values(), *self.inside.values()),
            root.number,
        )

    def program(self, root: Ref) -> Program:
        """The ops as a program of ``values``, with one output. They are run once, to find shapes."""
        return recorded(self.base, "backward", self.values, lambda wires: [self._run(wires, root.number)])

    def _run(self, values: Sequence[Any], root: int) -> Any:
        b = self.base.dressed
        found: list[Any] = []
        inputs = iter(values)
        places = set(self._inputs)
        steps = iter(self._steps)
        while len(found) < self._count:
            if len(found) in places:
                found.append(next(inputs))
                continue
            op, operands, params = next(steps)
            args = [x.value if x.__class__ is _Number else found[x] for x in operands]
            method = getattr(b, op) if isinstance(op, str) else op.of(b)
            out = method(*args, **params)
            found += out if isinstance(out, tuple) else [out]
        return found[root]


class _Number:
    """A Python number as an operand. Only the same number of the same type is equal to it."""

    __slots__ = ("_key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self._key = value.__class__, repr(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Number) and other._key == self._key

    def __hash__(self) -> int:
        return hash(self._key)


def _plain(b: Any, param: Any) -> Hashable:
    """A parameter as part of a signature: arrays by their numbers."""
    if param.__class__ is int or param.__class__ is bool:
        return param.__class__, param
    if isinstance(param, (tuple, list)):
        return tuple([_plain(b, p) for p in param])
    if isinstance(param, slice):
        return slice, param.start, param.stop, param.step
    if b.accepts(param) and not isinstance(param, (bool, int, float)):
        return str(b.dtype(param)), tuple(b.shape(param)), b.to_numpy(param).tobytes()
    return (param.__class__, repr(param)) if isinstance(param, float) else (param.__class__, param)
