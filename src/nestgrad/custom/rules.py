"""``custom_vjp`` and ``custom_jvp``: functions of Tensors with derivative rules of one's own.

When such a function runs on tracked values, its body sees them without the outermost level, and with those further in. What it returns
is attached to the arguments by the rule (``attach.py``), on every level. What a rule reads was computed where the levels further in
record, so what they do with the rule's result is a derivative of the next order.
"""

import functools
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from nestgrad.custom.attach import Rules, attach, lowered
from nestgrad.custom.body import Body, Call, plain, refuse_strangers
from nestgrad.custom.transposition import Linear, transposed
from nestgrad.errors import LevelError, RuleError
from nestgrad.func.trees import flatten
from nestgrad.levels.base import Coat
from nestgrad.levels.coats import within
from nestgrad.levels.marks import NONE, Marks, join, opened
from nestgrad.levels.mixing import fitted
from nestgrad.levels.reverse.node import Tracked
from nestgrad.levels.traced.wire import Wire
from nestgrad.tensor.handle import Handle, meet

_unlowered: ContextVar[frozenset["Custom"]] = ContextVar("unlowered", default=frozenset())
"""Functions of which a body runs on the very values that it was called with: in a trace, and to see whether it is linear."""


class Custom:
    """A function of Tensors with rules of its own; made by ``custom_vjp`` and ``custom_jvp``."""

    __name__: str

    def __init__(self, f: Callable[..., Any]) -> None:
        functools.update_wrapper(self, f)
        self.__name__ = getattr(f, "__name__", type(f).__name__)
        self.f = f
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.rule: Callable[..., Any] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> "Custom":
        """Give the rule for cotangents.

        Args:
            fwd: ``fwd(*args) -> (out, saved)``: the function's own value, and what the rule reads: Tensors and plain data in nested tuples,
                lists and dicts.
            bwd: ``bwd(saved, g)``: for each argument its cotangent, of its structure, or ``None`` for zero; of a single argument the
                cotangent itself. ``g`` has the structure of ``out``.

        Returns:
            This function.
        """
        self.fwd, self.bwd = fwd, bwd
        return self

    def defjvp(self, rule: Callable[..., Any]) -> "Custom":
        """Give the rule for tangents.

        Args:
            rule: ``rule(primals, tangents) -> (out, tangent)``, with tuples of the arguments and of their tangents; these are zeros for an
                argument that does not move, and ``None`` for what has no derivative. The function's value is its own, not this ``out``.

        Returns:
            This function.
        """
        self.rule = rule
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function. Rules count where an argument is tracked; else its body runs as it is.

        Raises:
            RuleError: No rule was given; or one does not return what it has to.
            ShapeError: A cotangent or a tangent has another shape than what it belongs to.
            LevelError: Body or rule depend on a tracked tensor that is no argument; or a tracked tensor is a keyword argument.
        """
        call = Call(self.__name__, args)
        if not call.places:
            return self.f(*args, **kwargs)
        b, values, marks = meet(self.__name__, *(call.leaves[k] for k in call.places))
        opened_ones = [opened(v, marks) for v in values]
        values, marks = [v for v, _ in opened_ones], opened_ones[0][1]
        call.begin(b, values)
        tapes = {coat.tape for v in values for coat in within(v) if coat.differentiates or isinstance(coat, Linear)}
        if not tapes and not any(isinstance(coat, Wire) for v in values for coat in within(v)):
            return self.f(*args, **kwargs)
        if self in _unlowered.get():
            return self.f(*args, **kwargs)
        self._check(kwargs)
        top = max(tapes, key=lambda tape: tape.birth, default=None)
        inner = values if top is None else [lowered(v, top) for v in values]
        body = self._run(call, inner, marks, kwargs, lower=top is not None)
        self._closed(call, body, inner, values, kwargs)
        if not body.parts:
            return body.result({})
        whole = attach(b, _Given(self, call, body), body.packed(b), [x.value for x in body.saved], values)
        whole, marks = fitted(whole, functools.reduce(join, body.marks, marks))
        body.release()
        return body.result(body.unpacked(b, whole, marks))

    def _check(self, kwargs: dict[str, Any]) -> None:
        if self.bwd is None and self.rule is None:
            raise RuleError(
                f"{self.__name__}: no rule was given; expected one before it is differentiated. "
                f"Try {self.__name__}.defvjp(fwd, bwd), or {self.__name__}.defjvp(rule)"
            )
        for name, value in kwargs.items():
            if any(isinstance(x, Handle) and any(c.differentiates for c in within(x.value)) for x in flatten(value)[0]):
                raise LevelError(
                    f"{self.__name__}: got a tracked tensor as keyword argument {name}, for which rules give no derivative; "
                    "expected it by position"
                )

    def _run(self, call: Call, values: Sequence[Any], marks: Marks, kwargs: dict[str, Any], lower: bool = True) -> Body:
        """Run the body. Where its values are not those of a level further in, it may not ask for this function again without end."""
        token = None if lower else _unlowered.set(_unlowered.get() | {self})
        try:
            return Body(call, self._body(kwargs), values, marks)
        finally:
            if token is not None:
                _unlowered.reset(token)

    def _body(self, kwargs: dict[str, Any]) -> Callable[..., tuple[Any, Any]]:
        """The function that returns ``(out, saved)``."""
        fwd, f, name = self.fwd, self.f, self.__name__
        if fwd is None:
            return lambda *args: (f(*args, **kwargs), ())

        def run(*args: Any) -> tuple[Any, Any]:
            pair = fwd(*args, **kwargs)
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise RuleError(f"{name}: fwd returned a {type(pair).__name__}; expected a tuple (out, saved)")
            return pair

        return run

    def _closed(self, call: Call, body: Body, inner: Sequence[Any], values: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Check that the body depends on nothing that is tracked but its arguments.

        Values of the outermost level are seen by their coats. Of reverse levels further in, ``attach`` looks at the graph. Other levels
        further in keep no record that could be looked at, so there the body runs once more, on constants.
        """
        refuse_strangers(call.name, body.found, inner)
        if any(_unrecorded(coat) for v in inner for coat in within(v)):
            again = self._run(call, [plain(v) for v in inner], NONE, kwargs)
            refuse_strangers(call.name, again.found, [])
        if any(isinstance(coat, Linear) for v in values for coat in within(v)):
            self._run(call, values, NONE, kwargs, lower=False)  # which raises if it is not linear

    def __repr__(self) -> str:
        return f"<{self.__name__}, with rules of its own>"


def custom_vjp(f: Callable[..., Any]) -> Custom:
    """A function whose cotangent rule you give: a decorator.

    The rule may be any: exact, and better conditioned than a derivative of the body, or deliberately another, as of a straight-through
    estimator. It counts at every order and on every level. In forward and Taylor mode the tangent is derived from it, by transposition.

    Args:
        f: A function of Tensors, or of nested structures of them; it returns a Tensor, or a nested structure of Tensors.

    Returns:
        The function, with a method ``defvjp(fwd, bwd)``, and ``defjvp(rule)`` for a tangent rule beside it. Cost: on tracked values one run
        of ``fwd``, and in a backward pass one of ``bwd``.

    >>> from nestgrad import func
    >>> @custom_vjp
    ... def square(x):
    ...     return x * x
    >>> _ = square.defvjp(lambda x: (x * x, x), lambda x, g: 2.0 * g * x)
    >>> func.grad(func.grad(square))(3.0).item()
    2.0
    """
    return Custom(f)


def custom_jvp(f: Callable[..., Any]) -> Custom:
    """A function whose tangent rule you give: a decorator.

    It counts at every order and on every level. In reverse mode the cotangents are derived from it, by transposition.

    Args:
        f: A function of Tensors, or of nested structures of them; it returns a Tensor, or a nested structure of Tensors.

    Returns:
        The function, with a method ``defjvp(rule)``, and ``defvjp(fwd, bwd)`` for a cotangent rule beside it. Cost: on tracked values one
        run of ``f``, and one of the rule in forward mode, or in a backward pass.

    >>> from nestgrad import func
    >>> @custom_jvp
    ... def square(x):
    ...     return x * x
    >>> _ = square.defjvp(lambda primals, tangents: (primals[0] ** 2, 2.0 * primals[0] * tangents[0]))
    >>> func.grad(func.grad(square))(3.0).item()
    2.0
    """
    return Custom(f)


class _Given(Rules):
    """What was given for one call of a function."""

    def __init__(self, custom: Custom, call: Call, body: Body) -> None:
        self.custom, self.call, self.body = custom, call, body
        self.name, self.count = call.name, len(body.saved)
        self.reads_xs = custom.bwd is None
        self.reads_out = custom.bwd is not None and body.saves_out

    def pull(self, b: Any, g: Any, out: Any, saved: Sequence[Any], xs: Sequence[Any], wanted: Sequence[int]) -> list[Any]:
        """By ``bwd``; or by the transpose of the rule for tangents."""
        if self.custom.bwd is None:
            found: list[Any] = [None] * len(self.call.likes)
            user = (f"the tangent rule of {self.name}", f"{self.name}.defvjp(fwd, bwd)")

            def tangent(ts: list[Any]) -> list[Any]:
                given = dict(zip(wanted, ts, strict=True))
                return [self.push(b, [given.get(i) for i in range(len(found))], out, saved, xs)]

            pulled = transposed(user, b, tangent, [self.call.likes[i] for i in wanted], [g])
            for i, c in zip(wanted, pulled, strict=True):
                found[i] = c
            return found
        whole = {} if out is None else self.body.unpacked(b, out, NONE)
        seeds = self.body.cotangents(self.body.unpacked(b, g, NONE))
        result = self.call.run(self.custom.bwd, (self.body.saved_tree(saved, whole), seeds))
        return self.call.cotangents(result, [g, out, *saved])

    def push(self, b: Any, ts: Sequence[Any], out: Any, saved: Sequence[Any], xs: Sequence[Any]) -> Any:
        """By the rule for tangents; or by the transpose of ``bwd``."""
        if self.custom.rule is None:
            moving = [i for i, t in enumerate(ts) if t is not None]
            user = (f"the cotangent rule of {self.name}", f"{self.name}.defjvp(rule)")

            def cotangents(gs: list[Any]) -> list[Any]:
                found = self.pull(b, gs[0], out, saved, xs, moving)
                return [found[i] for i in moving]

            return transposed(user, b, cotangents, [self.body.like(b)], [ts[i] for i in moving])[0]
        call = self.call
        primals = call.trees(call.tensors(xs))
        moves = [self._zeros(b, *like) if t is None else t for t, like in zip(ts, call.likes, strict=True)]
        tangents = [x if floating else None for x, floating in zip(call.tensors(moves), call.floating, strict=True)]
        pair = call.run(self.custom.rule, (primals, call.trees(tangents, _still)))
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise RuleError(f"{self.name}: the tangent rule returned a {type(pair).__name__}; expected a tuple (out, tangent)")
        return self.body.tangent(b, pair[1], [*xs, *ts])

    def _zeros(self, b: Any, shape: tuple[int, ...], dtype: Any) -> Any:
        return b.base.full(shape, 0, dtype)


def _still(leaf: Any) -> Any:
    """The tangent of what is no Tensor: zero of a number."""
    return 0.0 if isinstance(leaf, (int, float)) and not isinstance(leaf, bool) else None


def _unrecorded(coat: Coat) -> bool:
    """Whether a level keeps no graph by which one could tell where a value comes from."""
    return isinstance(coat, Wire) or (coat.differentiates and not isinstance(coat, Tracked))
