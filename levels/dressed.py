"""The backend over dressed values: the same methods as a base backend, and any operand may wear coats."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from nestgrad.errors import LevelError
from nestgrad.levels.base import Coat
from nestgrad.levels.explain import NATIVE, explained
from nestgrad.levels.recipe import Remade
from nestgrad.levels.reverse.node import Tracked
from nestgrad.levels.reverse.record import recorder
from nestgrad.levels.watching import Methods
from nestgrad.ops import TABLE, Kind, Op
from nestgrad.ops.shapes import NUMBERS


class Dressed(Methods):
    """Ops over one base backend, at any depth: the ``b`` of every rule.

    A method is made when it is first asked for and kept as an attribute, so a call finds it without any look-up of ours. What is not an
    op (``full``, ``arange``, ``to_numpy``, ...) is the base's.

    Args:
        base: The base backend.
        table: The ops. Another table than the common one is for trying an entry without adding it.
    """

    def __init__(self, base: Any, table: Mapping[str, Op] = TABLE) -> None:
        super().__init__(base, table)
        self.shape = _shape_of(base)
        self.dtype = _dtype_of(base)

    def __getattr__(self, name: str) -> Any:
        op = self.table.get(name)
        if op is None:
            return getattr(self.base, name)
        return self.kept(op, self._made)

    @cached_property
    def bare(self) -> "Bare":
        """The same ops for values of which it is known that they wear no coats."""
        return Bare(self.base, self.table)

    def _made(self, op: Op) -> Callable[..., Any]:
        return self.asked(op, self._composite(op) if op.kind is Kind.COMPOSITE else self._recorded(op))

    def _recorded(self, op: Op) -> Callable[..., Any]:
        base = self.raw(op)
        if op.variadic:
            return partial(self._variadic, op, base)
        if op.results:
            return partial(self._several, op, base)
        return recorder(op)(base, self.mixed, self.shape, self.dtype)

    def _variadic(self, op: Op, base: Any, *xs: Any, **params: Any) -> Any:
        coats = [x for x in xs if isinstance(x, Coat)]
        return self.mixed(op, xs, tuple(params[p] for p in op.params)) if coats else base(*xs, **params)

    def _several(self, op: Op, base: Callable[..., Any], *given: Any, **named: Any) -> Any:
        count = len(op.arguments)
        xs, params = given[:count], op.bound(given[count:], named)
        if any(isinstance(x, Coat) for x in xs):
            return self.mixed(op, xs, params)
        try:
            return base(*xs, *params)
        except NATIVE as error:
            raise explained(error, op, xs, params, self.shape) from error

    def _composite(self, op: Op) -> Callable[..., Any]:
        function = op.function
        assert function is not None
        fast = self.raw(op) if op.native is not None or getattr(self.base, op.name, None) is not None else None
        if fast is None:
            return partial(function, self)

        def composite(*args: Any, **params: Any) -> Any:
            coats = [a for a in args if isinstance(a, Coat)]
            if not coats:
                try:
                    return fast(*args, **params)
                except NATIVE as error:
                    count = len(args) if op.variadic else len(op.arguments)
                    raise explained(error, op, args[:count], op.bound(args[count:], params), self.shape) from error
            first = coats[0]
            if isinstance(first, Remade) and all(isinstance(a, Remade) for a in coats):
                return first.noted(op, fast, args, params)  # constants: what is noted must be what would run without a note
            return function(self, *args, **params)

        return composite

    def mixed(self, op: Op, args: tuple[Any, ...], params: tuple[Any, ...]) -> Any:
        """Run an op by the youngest coat that an argument wears: the way for all kinds of coats."""
        youngest = None
        for a in args:
            if isinstance(a, Coat) and (youngest is None or a.tape.birth > youngest.tape.birth):
                youngest = a
        assert youngest is not None
        trace = youngest.tape.trace
        if trace is not None:
            inside = [trace.bring(a) for a in args]
            if any(x is not a for x, a in zip(inside, args, strict=True)):
                return self.run(op, inside, params)
        if op.on is not None:
            for kind, rule in op.on.items():
                if isinstance(youngest, kind):
                    return rule(self, youngest, op, args, params)
            if youngest.differentiates:
                raise LevelError(f"{op.name}: got a value of {youngest.tape}; this op does not know its derivative on that kind of level")
        return youngest.apply(self, op, args, params)

    def run(self, op: Op, args: Sequence[Any], params: tuple[Any, ...]) -> Any:
        """An op on values that a coat's ``apply`` has made of its arguments."""
        return op.of(self)(*args, **dict(zip(op.params, params, strict=True))) if op.variadic else op.of(self)(*args, *params)

    def own(self, op: Op) -> Callable[..., Any]:
        """An op that is in no table, as a method. Those of any number of arguments may be made by the thousand, so they are not kept."""
        if op.variadic:
            return self._made(op)
        method: Callable[..., Any] | None = self._own.get(op)
        if method is None:
            method = self._own[op] = self._made(op)
        return method

    def read(self, p: Any) -> Any:
        """The raw value of ``p``, after the check that nobody has written into it."""
        while isinstance(p, Coat):
            p = p.read()
        return p

    def __repr__(self) -> str:
        return f"dressed {self.base!r}"


class Bare(Methods):
    """Ops over one base backend on raw values: the ``b`` of the rules where nothing wears a coat. They are the base's own functions."""

    def __init__(self, base: Any, table: Mapping[str, Op]) -> None:
        super().__init__(base, table)
        self.shape = _shape_of(base)  # which knows Python numbers, too
        self.bare = self

    def run(self, op: Op, args: Sequence[Any], params: tuple[Any, ...]) -> Any:
        """An op on raw arrays."""
        return op.of(self)(*args, **dict(zip(op.params, params, strict=True))) if op.variadic else op.of(self)(*args, *params)

    def own(self, op: Op) -> Callable[..., Any]:
        """The function that an op which is in no table brings for raw arrays."""
        assert op.native is not None
        method: Callable[..., Any] | None = self._own.get(op)
        if method is None:
            method = self.observed(op, op.native(self))
            if not op.variadic:
                self._own[op] = method
        return method

    def __getattr__(self, name: str) -> Any:
        op = self.table.get(name)
        if op is not None:
            return self.kept(op, self._made)
        method: Any = getattr(self.base, name)
        setattr(self, name, method)
        return method

    def _made(self, op: Op) -> Callable[..., Any]:
        if op.kind is Kind.COMPOSITE and getattr(self.base, op.name, None) is None:
            assert op.function is not None
            return partial(op.function, self)
        return self.raw(op)


def _shape_of(base: Any) -> Callable[[Any], tuple[int, ...]]:
    """The function that gives the shape of a value over ``base``; ``()`` of a Python scalar. ``raw`` of it is for raw arrays alone."""
    raw = base.shape

    def shape(p: Any) -> tuple[int, ...]:
        hidden = 0
        while isinstance(p, Coat):
            if isinstance(p, Tracked):
                return p.node.shape[hidden:] if hidden else p.node.shape
            hidden += p.hidden
            p = p.value
        if p.__class__ in NUMBERS:
            return ()
        found: tuple[int, ...] = raw(p)
        return found[hidden:] if hidden else found

    shape.raw = raw  # type: ignore[attr-defined]
    return shape


def _dtype_of(base: Any) -> Callable[[Any], Any]:
    """The function that gives the dtype of a value over ``base``."""
    raw = base.dtype

    def dtype(p: Any) -> Any:
        while isinstance(p, Coat):
            p = p.value
        return raw(p)

    return dtype
