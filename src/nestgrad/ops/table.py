"""The op table: what an op is, and its rules, stated once.

``define("tanh(x)", ELEMENTWISE, lambda b, g, out: b.tanh_vjp(g, out))`` adds an entry. The names of a rule's parameters tell what the
rule reads, so that is all a node keeps (see ``docs/adr/0001-coats-by-age.md`` for the list of names). Rules are written in ops of
``b``, which works at any depth, so one entry serves on every level.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any

from nestgrad.errors import RuleError
from nestgrad.ops.samples import Samples


class Kind(Enum):
    """How an op depends on its arguments; each level has one method per kind."""

    ELEMENTWISE = "elementwise"
    LINEAR = "linear"  # jointly linear in its differentiable arguments
    BILINEAR = "bilinear"  # linear in each argument separately
    CONSTANT = "constant"  # locally constant or not differentiable by nature: comparisons, argmax, sign
    COMPOSITE = "composite"  # a function of other ops
    SPECIAL = "special"  # none of these: its rules are given as cotangents


ELEMENTWISE, LINEAR, BILINEAR = Kind.ELEMENTWISE, Kind.LINEAR, Kind.BILINEAR
CONSTANT, COMPOSITE, SPECIAL = Kind.CONSTANT, Kind.COMPOSITE, Kind.SPECIAL

ARGUMENTS = ("x", "y", "z")
"""Names of the array arguments, in their order. An op with any number of them has ``*xs``."""

RESERVED = frozenset({"b", "g", "t", "out", "others", "shapes", "i", "xs"})
"""What rules read under a name of its own; so are names that begin with an underscore, or end in ``_shape`` or ``_dtype``."""


Reader = Callable[[Any, int, Sequence[Any], Any, tuple[Any, ...]], Any]


class Operands(list[Any]):
    """The arguments of one call of an op with any number of them. Their shapes are found once for all rules."""

    __slots__ = ("_shapes",)
    _shapes: tuple[tuple[int, ...], ...]

    def shapes(self, b: Any) -> tuple[tuple[int, ...], ...]:
        """The shapes of all."""
        try:
            return self._shapes
        except AttributeError:
            self._shapes = tuple([tuple(b.shape(v)) for v in self])
            return self._shapes


@cache
def _reader(arguments: tuple[str, ...], params: tuple[str, ...], results: tuple[str, ...], word: str) -> Reader:
    """What ``word`` stands for: a function of ``b``, the argument's position, the arguments, the answer and the parameters."""
    if word in results:
        number = results.index(word)
        return lambda b, i, args, out, values: out[number]
    if word in params:
        place = params.index(word)
        return lambda b, i, args, out, values: values[place]
    if word == "out":
        return lambda b, i, args, out, values: out
    if word == "i":
        return lambda b, i, args, out, values: i
    if word == "shapes":
        return lambda b, i, args, out, values: (args if isinstance(args, Operands) else Operands(args)).shapes(b)
    if word == "others":
        return lambda b, i, args, out, values: tuple(None if k == i else v for k, v in enumerate(args))
    argument, _, what = word.partition("_")
    place = arguments.index(argument)
    if not what:
        return lambda b, i, args, out, values: args[place]
    if what == "shape":
        return lambda b, i, args, out, values: b.shape(args[place])
    return lambda b, i, args, out, values: b.dtype(args[place])


@dataclass(frozen=True, slots=True)
class Rule:
    """What one argument's cotangent becomes, or its tangent: ``call(b, g, *saved)`` with ``saved`` in the order of ``reads``."""

    call: Callable[..., Any]
    reads: tuple[str, ...]
    partial: Callable[..., Any] | None = None  # of an elementwise rule without g: the derivative itself


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """An entry of the table.

    Attributes:
        arguments: Names of the array arguments; ``("xs",)`` when there may be any number.
        params: Names of the parameters, after the arguments.
        defaults: Default values of the last parameters.
        rules: One per argument, ``None`` where the op has no derivative. Of an op with ``*xs`` there is one for all.
        function: Of a composite, the function ``(b, *arguments, *params)`` that it is.
        broadcasts: Whether arguments are broadcast against each other, so that cotangents are summed back.
        forward: Of a special op, one rule per argument: its share of the answer's tangent.
        series: ``(b, k, *arguments, out, *params)``: the ``k``-th Taylor coefficient of the answer, from series that are indexed by their
            coefficients (``out`` up to ``k - 1``). Where there is none, the tangent's rule is run on series.
        plus: Of a bilinear op, the name of the one that adds its answer to a last argument.
        by_parts: Whether a level that knows no better may run the backend's default of the op, in terms of other ops, instead of its rules.
        batched: ``(b, n, xs, on, *params)``: the op on values ``xs`` of which those that are ``on`` have an axis 0 of size ``n`` that it
            must not see; the answer has it, too. Where there is none, the parameters named ``axis``, ``axes``, ``shape`` and ``widths``
            tell what to do, and an op of one argument without any of them must act on each entry by itself.
        native: Of an op that is no method of backends: ``native(b)`` is its function of raw arrays, for the ops ``b`` of raw arrays.
        on: Of an op that rules for each argument cannot tell: by the kind of coat, what it is there, ``(b, coat, op, args, params)``.
        results: Of an op with several results, their names. It gives a tuple of them; its rules read them by name, take a tuple ``g`` of
            cotangents, in which ``None`` is a zero, and its forward rules give such a tuple of tangents.
        fixed: Which of the results have no derivative, as positions have none.
        lanes: Along which axes it goes entry by entry; a way of ``nestgrad.ops.lanes``, where its kind and its parameters do not tell.
    """

    name: str
    kind: Kind
    arguments: tuple[str, ...]
    params: tuple[str, ...]
    defaults: tuple[Any, ...]
    rules: tuple[Rule | None, ...]
    function: Callable[..., Any] | None
    broadcasts: bool
    samples: Samples
    forward: tuple[Rule | None, ...] = ()
    series: Callable[..., Any] | None = None
    by_parts: bool = False
    batched: Callable[..., Any] | None = None
    native: Callable[[Any], Callable[..., Any]] | None = None
    plus: str | None = None
    on: Mapping[type, Callable[..., Any]] | None = None
    results: tuple[str, ...] = ()
    fixed: frozenset[str] = frozenset()
    lanes: Callable[..., Any] | None = None

    def of(self, b: Any) -> Callable[..., Any]:
        """The op as a function of values over ``b``: a base backend, or the ops over one. Arrays are positional, parameters come after."""
        found: Callable[..., Any]
        if self.native is None:
            found = getattr(b, self.name)
        else:
            own = getattr(b, "own", None)
            found = self.native(b.dressed.bare) if own is None else own(self)
        return found

    def saved(self, b: Any, rule: Rule, i: int, args: Sequence[Any], out: Any, params: tuple[Any, ...]) -> tuple[Any, ...]:
        """What the rule of argument ``i`` reads, in its order."""
        return tuple([read(b, i, args, out, params) for read in self.readers(rule)])

    def readers(self, rule: Rule) -> tuple[Reader, ...]:
        """For each word that a rule reads a function that finds it. They stay good for every call, so a level may make them once."""
        return tuple([_reader(self.arguments, self.params, self.results, word) for word in rule.reads])

    def bound(self, given: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """The parameters of a call, in their order: those ``given`` by position, those ``named``, and defaults."""
        if len(given) == len(self.params):
            return tuple(given)
        values = dict(zip(self.params[len(self.params) - len(self.defaults) :], self.defaults, strict=True))
        values |= dict(zip(self.params, given, strict=False))
        values |= named
        return tuple([values[p] for p in self.params])

    def each(self, f: Callable[[Any], Any], out: Any) -> Any:
        """``f`` of the answer; of an op with several results a tuple of ``f`` of each."""
        return tuple([f(v) for v in out]) if self.results else f(out)

    @property
    def variadic(self) -> bool:
        """Whether the op takes any number of arrays."""
        return self.arguments == ("xs",)

    @property
    def signature(self) -> str:
        """The entry's own first words: ``"sum(x, axes, keepdims=False)"``."""
        first = len(self.params) - len(self.defaults)
        params = [p if k < first else f"{p}={self.defaults[k - first]!r}" for k, p in enumerate(self.params)]
        arrays = ["*xs"] if self.variadic else list(self.arguments)
        several = f" -> {', '.join(self.results)}" if self.results else ""
        return f"{self.name}({', '.join(arrays + params)}){several}"

    def __repr__(self) -> str:
        return f"<op {self.signature}, {self.kind.value}>"


TABLE: dict[str, Op] = {}


def define(
    signature: str,
    kind: Kind,
    *rules: Any,
    samples: Samples,
    broadcasts: bool | None = None,
    defaults: Sequence[Any] = (),
    forward: Sequence[Any] = (),
    series: Callable[..., Any] | None = None,
    by_parts: bool = False,
    batched: Callable[..., Any] | None = None,
    plus: str | None = None,
    results: Sequence[str] = (),
    fixed: Sequence[str] = (),
    lanes: Callable[..., Any] | None = None,
    listed: bool = True,
) -> Op:
    """Make an op, and add it to the table.

    Args:
        signature: ``"name(x, y, param)"``; array arguments are named ``x``, ``y``, ``z`` or ``*xs``.
        kind: What the op is.
        rules: A rule per argument (``None``: no derivative; ``...``: there is one, and no rule for it, so that whoever asks for it gets a
            ``RuleError``); of a composite, the one function that it is.
        samples: Inputs on which the op is tested, with its special points.
        broadcasts: Whether arguments are broadcast; elementwise ops always do.
        defaults: Default values of the last parameters.
        forward: Of a special op, for each argument what its tangent ``t`` adds to the answer's: ``lambda b, t, x, out: ...``.
        series: The ``k``-th Taylor coefficient of the answer; see ``Op``.
        by_parts: Whether Taylor mode runs the backend's default of the op (``nestgrad.backends.derived``), made of other ops.
        batched: The op on values with one more axis in front; see ``Op``.
        plus: Of a bilinear op, the name of the op that is this one plus one more argument, in one kernel.
        results: Of a special op with several results, their names; see ``Op``.
        fixed: The names of those results that have no derivative.
        lanes: Along which axes the op goes entry by entry; see ``Op``.
        listed: Whether it goes into the table.

    Raises:
        RuleError: If the name is taken, a parameter has a name that means something else, there are not as many rules as arguments, or a
            rule reads what is not an argument, a parameter or one of the known names.
    """
    name, _, inside = signature.partition("(")
    names = [word.strip() for word in inside.rstrip(")").split(",") if word.strip()]
    arguments = ("xs",) if "*xs" in names else tuple(n for n in names if n in ARGUMENTS)
    params = tuple(n for n in names if n not in ARGUMENTS and n != "*xs")
    if taken := [p for p in params if p.startswith("_") or p in RESERVED or p.endswith(("_shape", "_dtype"))]:
        raise RuleError(f"define: {signature} has parameters {taken}; these names mean something else in rules. Try others")
    if kind is COMPOSITE and len(rules) != 1:
        raise RuleError(f"define: {signature} is a composite and has {len(rules)} rules; expected the one function that it is")
    if kind is CONSTANT and rules:
        raise RuleError(f"define: {signature} is a constant op and has {len(rules)} rules; expected none")
    function = rules[0] if kind is COMPOSITE else None
    if results and (kind is not SPECIAL or not {*fixed} < {*results} or RESERVED.intersection(results)):
        raise RuleError(
            f"define: {signature} has results {tuple(results)}, of which {tuple(fixed)} are fixed; "
            "expected a special op, names that mean nothing else in rules, and one result that is not fixed"
        )
    words = (*params, *results)
    read = () if kind in (COMPOSITE, CONSTANT) else tuple(_rule(name, kind, r, arguments, words, position=k) for k, r in enumerate(rules))
    if kind not in (COMPOSITE, CONSTANT) and len(read) != len(arguments):
        raise RuleError(f"define: {signature} has {len(arguments)} arguments and {len(read)} rules")
    pushed = tuple(_rule(name, kind, r, arguments, words, "t", k) for k, r in enumerate(forward))
    if len(pushed) != (len(arguments) if kind is SPECIAL else 0):
        raise RuleError(
            f"define: {signature} is {kind.value}, has {len(arguments)} arguments and {len(pushed)} forward rules; "
            "expected one per argument of a special op, and none of others, whose kind tells"
        )
    spreads = kind is ELEMENTWISE and len(arguments) > 1 if broadcasts is None else broadcasts
    op = Op(
        name, kind, arguments, params, tuple(defaults), read, function, spreads, samples, pushed, series, by_parts, batched, plus=plus,
        results=tuple(results), fixed=frozenset(fixed), lanes=lanes,
    )  # fmt: skip
    if listed:
        if name in TABLE:
            raise RuleError(f"define: there is already an op named {name!r}")
        TABLE[name] = op
    return op


def _unstated(name: str, argument: str) -> Callable[..., Any]:
    """A rule that is asked for in vain."""

    def rule(b: Any, g: Any) -> Any:
        raise RuleError(
            f"{name}: got a derivative by its argument {argument} to compute; expected none, since the op has no rule for it. "
            f"Try detach() if {argument} is meant as a constant, or an op with that rule by nestgrad.define"
        )

    return rule


def _rule(
    name: str, kind: Kind, rule: Any, arguments: tuple[str, ...], params: tuple[str, ...], first: str = "g", position: int = 0
) -> Rule | None:
    if rule is None:
        return None
    if rule is ...:
        return Rule(_unstated(name, arguments[position]), ())
    reads = list(inspect.signature(rule).parameters)[1:]
    whole = bool(reads) and reads[0] == first
    reads = reads[1:] if whole else reads
    known = {*arguments, *params, "out", *(f"{a}_shape" for a in arguments), *(f"{a}_dtype" for a in arguments)}
    if arguments == ("xs",):
        known |= {"others", "shapes", "i"}
    if strange := [r for r in reads if r not in known]:
        raise RuleError(f"define: a rule of {name} reads {strange}; it may read {sorted(known)}")
    if whole:
        return Rule(rule, tuple(reads))
    if kind is not ELEMENTWISE:
        raise RuleError(f"define: a rule of {name} must take {first}, since only an elementwise op has partial derivatives")
    return Rule(lambda b, g, *saved: b.mul(g, rule(b, *saved)), tuple(reads), rule)
