"""The transpose of a linear function that is given as a program: run it once on a variable, and pull back.

This makes a rule for tangents of a rule for cotangents, and the other way round. What runs must be linear in the variable, and its coat
sees to that: it refuses every op that is not.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from nestgrad.errors import RuleError
from nestgrad.levels.base import Tape, now
from nestgrad.levels.coats import bare
from nestgrad.levels.reverse.backward import Pass
from nestgrad.levels.reverse.node import Node, Tracked, make
from nestgrad.ops.samples import Samples
from nestgrad.ops.table import SPECIAL, Kind, Op

Like = tuple[tuple[int, ...], Any]
"""Shape and dtype."""


class Linear(Tracked):
    """A value that must go on linearly.

    Attributes:
        user: Whose rule it is, and what may be said instead, for messages.
    """

    __slots__ = ("user",)
    differentiates: ClassVar[bool] = False  # detach() must not take it off
    user: tuple[str, str]

    def over(self, inner: Any) -> "Linear":
        """The same node over another inner value."""
        return linear(self.tape, inner, self.node, self.user)

    def apply(self, b: Any, op: Op, args: tuple[Any, ...], params: tuple[Any, ...]) -> Any:
        """Record an op that is linear in what wears this coat.

        Raises:
            RuleError: If it is not.
        """
        mine = [i for i, a in enumerate(args) if isinstance(a, Linear) and a.tape is self.tape]
        if not _is_linear(op, mine):
            raise self.refused(f"{op.name} of it")
        return op.each(self._mine, super().apply(b, op, args, params))

    def _mine(self, out: Any) -> Any:
        """What the level has recorded in this coat, too."""
        return linear(self.tape, out.value, out.node, self.user) if isinstance(out, Tracked) and out.tape is self.tape else out

    def refused(self, what: str) -> RuleError:
        """The error for what is not linear."""
        rule, instead = self.user
        return RuleError(
            f"{rule} is transposed, to serve another mode, so it must be linear in what it is given; it takes {what}, which is not linear. "
            f"Try {instead}, the rule for that mode itself"
        )

    def detached(self, inner: Any) -> Any:
        """Refused: the rest of the rule would not be linear."""
        raise self.refused("detach()")

    def read(self) -> Any:
        """Refused: the numbers are zeros, and what is done with them would be lost."""
        raise self.refused("the numbers")


def linear(tape: Tape, value: Any, node: Node, user: tuple[str, str]) -> Linear:
    """A coat."""
    coat = Linear()
    coat.tape, coat.value, coat.node, coat.user = tape, value, node, user
    return coat


def _is_linear(op: Op, mine: Sequence[int]) -> bool:
    """Whether an op is linear in the arguments ``mine`` together, by what its rules read."""
    if op.kind is Kind.CONSTANT:
        return False
    rules = [op.rules[0 if op.variadic else i] for i in mine]
    if any(rule is None for rule in rules):
        return False
    if op.kind is Kind.LINEAR:
        return True
    if len(mine) == 1 and op.kind is Kind.BILINEAR:
        return True
    if op.variadic:
        return False
    taboo = {"out", *op.results, *(op.arguments[i] for i in mine)}
    return not any(taboo.intersection(rule.reads) for rule in rules if rule is not None)


def transposed(
    user: tuple[str, str], b: Any, f: Callable[[list[Any]], Sequence[Any]], likes: Sequence[Like], seeds: Sequence[Any]
) -> list[Any]:
    """For each variable of the linear function ``f`` the sum of ``seeds`` times its derivative, or ``None`` for zero.

    Args:
        user: Whose rule ``f`` is, and what may be said instead.
        b: The backend over dressed values.
        f: From values to values; ``None`` for zero.
        likes: What its variables are like.
        seeds: A value for each of f's answers, or ``None`` for zero.

    Raises:
        RuleError: If ``f`` is not linear.

    Cost: one run of ``f``, and one backward pass.
    """
    tape = Tape("transpose", 0)
    variables = [_variable(tape, b.base.full(shape, 0.0, dtype), shape, user) for shape, dtype in likes]
    edges = []
    for out, seed in zip(f([*variables]), seeds, strict=True):
        if out is None:
            continue
        _vanishes(b, out, user)
        if seed is not None and isinstance(out, Tracked) and out.tape is tape:
            edges.append((out.node, _given, (seed,)))
    found: list[Any] = [None] * len(likes)
    if edges:
        passing = Pass(b, make(_JOINED, (), tuple(edges), raw=False), 1.0, tape)
        nodes = [(i, v.node) for i, v in enumerate(variables) if passing.reaches(v.node)]
        passing.run([node for _, node in nodes])
        for i, node in nodes:
            found[i] = passing.cotangents.get(node)
    tape.close()
    return found


def _variable(tape: Tape, value: Any, shape: tuple[int, ...], user: tuple[str, str]) -> Linear:
    node = Node()
    node.age = node.lo = now()
    node.op, node.shape, node.raw, node.edges, node.params = "variable", tuple(shape), True, (), ()
    return linear(tape, value, node, user)


def _vanishes(b: Any, out: Any, user: tuple[str, str]) -> None:
    """Check that a linear function gives zero for zero; NaN may come from saved infinities, and tells nothing."""
    value = bare(out)
    if isinstance(value, (bool, int, float)):
        wrong = value != 0 and value == value
    else:
        base = b.base
        wrong = bool(base.to_numpy(base.logical_and(base.ne(value, 0.0), base.eq(value, value))).any())
    if wrong:
        rule, instead = user
        raise RuleError(
            f"{rule} is transposed, to serve another mode, so it must be linear in what it is given; for zeros it gives what is not zero. "
            f"Try {instead}, the rule for that mode itself"
        )


def _given(b: Any, g: Any, seed: Any) -> Any:
    return seed


_JOINED = Op("joined", SPECIAL, ("xs",), (), (), (None,), None, False, Samples(()))
"""What joins the answers under one root."""
