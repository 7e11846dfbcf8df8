"""``Plan``: what is to be computed for one kind of graph, as one flat program; made once, and kept for graphs that are the same program.

A graph is made anew at each step of a loop, but it comes to the same ops, with other numbers. The first time, the derivatives are computed
while they are recorded; from the second time on the recorded program runs, optimised if it is not too long.
"""

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from nestgrad.compiled.choice import chosen, compiler
from nestgrad.errors import UnsupportedNode
from nestgrad.levels.base import Coat
from nestgrad.levels.coats import bare
from nestgrad.levels.traced.call import invoke, pulled_back
from nestgrad.levels.traced.program import Program, Variable
from nestgrad.levels.traced.recording import recorded
from nestgrad.partials.graph import Graph, Ref
from nestgrad.partials.independence import labels
from nestgrad.partials.known import unpinned
from nestgrad.partials.runs import numbers
from nestgrad.partials.structure import Leg, Structure, structure
from nestgrad.partials.ways import Key, Terms, Way

MOST = 64
"""How many plans are kept; the one that was not used for the longest time goes first."""

LARGE = 1 << 28
"""How many bytes of constants kept plans may hold together, unless there are no more than ``FEW``: unit vectors of every direction, say."""

FEW = 8
"""How many plans are kept whatever they hold, so that the steps of a loop find theirs."""

SHORT = 4_000
"""Programs of up to this many ops are optimised. It takes a tenth of a millisecond for each."""

_PLANS: "OrderedDict[Hashable, Plan]" = OrderedDict()
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be computed.

    Attributes:
        keys: Numbers of the graph's inputs, one for each slot; each key once.
        symmetric: Whether a key stands for all its permutations.
    """

    keys: tuple[Key, ...]
    symmetric: bool = True


class Plan:
    """How the partial derivatives of one kind of graph are computed.

    Attributes:
        structures: For each key how its numbers are stored.
        flat: The program that computes them, of the values of the graph's inputs; ``None`` before the first time.
        owners: What owns the memory of the program's constants (``Backend.owner``), with how many bytes it holds.
    """

    def __init__(self, graph: Graph, root: Ref, asked: Asked) -> None:
        program = graph.program(root)
        wanted = sorted({leaf for key in asked.keys for leaf in key})
        self.terms = Terms.of(program, labels(program, wanted))
        self.asked = asked
        self.unknown = frozenset(graph.unknown)
        self.ways: dict[Way, list[tuple[Key, int]]] = {}
        if 0 not in self.terms.shape:
            full = [key for key in asked.keys if all(0 not in self.terms.shape_of(leaf) for leaf in key)]
            self.ways = self.terms.ways(full, asked.symmetric)
        self.structures = {key: self._structure(key) for key in asked.keys}
        self.flat: Program | None = None
        self.owners: dict[Any, int] = {}
        self._served: list[Key] = []

    @property
    def nbytes(self) -> int:
        """How many bytes of constants it holds."""
        return sum(self.owners.copy().values())

    def numbers(self, values: Sequence[Any], attached: bool = False) -> dict[Key, Any]:
        """For each key its numbers; ``None`` where they are zero, whatever the values are.

        Args:
            values: Of the graph's inputs. If some wear coats, so do the numbers.
            attached: Whether the array library is to record what is done.
        """
        if self.flat is None:
            return self._first(values, attached)
        b = self.flat.base.dressed
        if any(isinstance(p, Coat) for p in values):
            return self._keyed(invoke(b, self.flat, values))
        graphs = self.flat.base.graphs
        return self._keyed(graphs.called(self.flat, pulled_back, values) if attached and graphs else self.flat.evaluate(b, values))

    def _first(self, values: Sequence[Any], attached: bool) -> dict[Key, Any]:
        base = self.terms.program.base
        served: list[Key] = []
        made: list[Any] = []

        def f(wires: list[Any]) -> list[Any]:
            for way, keys in self.ways.items():
                for (key, _), p in zip(keys, numbers(self.terms, way, keys, wires), strict=True):
                    if p is not None:
                        served.append(key)
                        made.append(p)
            return made

        with base.graphs.recording(False) if base.graphs else nullcontext():  # of the trace itself nothing is differentiated
            flat = recorded(base, "backward", [bare(p) for p in values], f)
        flat = unpinned(flat)
        self._check(flat)
        self._note(flat)
        if len(flat.instructions) <= SHORT:
            flat = self._compiled(flat)
        self._served, self.flat = served, flat  # in this order, since other threads may run it as soon as it is there
        return self.numbers(values, attached) if attached else self._keyed([bare(p) for p in made])

    def _keyed(self, found: Sequence[Any]) -> dict[Key, Any]:
        return dict.fromkeys(self.asked.keys) | dict(zip(self._served, found, strict=True))

    def _structure(self, key: Key) -> Structure:
        terms = self.terms
        legs = tuple(Leg(label.size, label.out, tuple(terms.carried[leaf].get(label) for leaf in key)) for label in terms.legs(key))
        return structure(terms.shape, tuple(terms.shape_of(leaf) for leaf in key), legs)

    def _compiled(self, program: Program) -> Program:
        """The same program, with an executor."""
        return replace(program, compiler=compiler(chosen("auto", program.base), self._note), derived={})

    def _note(self, program: Program) -> None:
        base = program.base
        self.owners.update({base.owner(array): base.nbytes(array) for _, array in program.constants})  # in one go: threads may be at it

    def _check(self, flat: Program) -> None:
        """Nothing may depend on what the graph did not keep.

        Raises:
            UnsupportedNode: If something does.
        """
        read = {v for step in flat.instructions for v in step.operands if isinstance(v, Variable)} | set(flat.outputs)
        if lost := {v for v in flat.inputs if v.number in self.unknown and v in read}:
            step = next(step for step in flat.instructions if lost.intersection(step.operands))
            raise UnsupportedNode(
                f"backward: got a graph that did not keep a value which the derivative reads, as an operand of {step.op.name}; expected "
                "all that derivatives read to be kept. Try, in a rule of one's own, graph.settle(node.key(i), value) of what the node "
                "saved; or the op that made it in another spelling"
            )


def planned(graph: Graph, root: Ref, asked: Asked) -> Plan:
    """The plan for a graph: one that is kept, if there has been a graph that is the same program."""
    key = (graph.base, graph.signature(root), asked)
    with _LOCK:
        plan = _PLANS.get(key)
        if plan is not None:
            _PLANS.move_to_end(key)
            return plan
    plan = Plan(graph, root, asked)
    with _LOCK:
        _PLANS[key] = plan
        held = sum([kept.nbytes for kept in _PLANS.values()])
        while len(_PLANS) > MOST or (held > LARGE and len(_PLANS) > FEW):
            _, oldest = _PLANS.popitem(last=False)
            held -= oldest.nbytes
    return plan
