"""Hooks: what changes a partial derivative once it is complete, before others are made of it.

The law. Let ``U`` be the hooked variables. The output is a function ``F`` of them, of the variables inside that they were computed from,
and of leaves, each taken for a variable by itself. A hook replaces a derivative of ``F`` by its variables, and all others are made of that
one by Faà di Bruno's formula: they are the derivatives of ``P``, where ``P`` is the polynomial that has the derivatives of ``F``, with the
hooked ones among them, and in place of ``U`` stands how ``U`` was computed.

That is done variable by variable (``expansion``). Of what a hook returns for the same variable twice, what flows on is the symmetric part;
``fetch_hgrad`` gives all of it.

A hook gets what ``Block.batched`` gives: independent axes once, which ``indeps`` tells. What is zero off them stays zero.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from nestgrad.errors import ArgumentError, RuleError, ShapeError
from nestgrad.levels.base import Coat
from nestgrad.ops.shapes import NUMBERS
from nestgrad.partials.blocks import Block
from nestgrad.partials.expansion import Expansion, Find, Hook, Registered
from nestgrad.partials.graph import Graph, Ref
from nestgrad.partials.keys import alike, placed
from nestgrad.partials.source import Source, told
from nestgrad.partials.ways import Key
from nestgrad.tensor.handle import Handle


def refuse_dependent(name: str, graph: Graph, keys: Sequence[Hashable], tensors: Sequence[Any]) -> None:
    """Check that no variable of a hook depends on another one, since neither could wait for the other.

    Args:
        name: Of the function that was called.
        graph: Knows the variables.
        keys: What it knows them by.
        tensors: They themselves.

    Raises:
        ArgumentError: If one does.
    """
    for j, key in enumerate(keys):
        behind = graph.behind(graph[key]) if len(set(keys)) > 1 else set()
        for k, other in enumerate(keys):
            if graph[other].number != graph[key].number and graph[other].number in behind:
                raise ArgumentError(
                    f"{name}: got {told(tensors[j])} (variable {j}), which depends on {told(tensors[k])} (variable {k}): that both are "
                    "complete is unreachable during backpropagation; expected variables of which none depends on another. "
                    "Try a hook on each by itself"
                )


def hooked(
    source: Source, graph: Graph, root: Ref, keys: tuple[Key, ...], symmetric: bool, attached: bool, hooks: Registered, find: Find
) -> dict[Key, Block]:
    """The partial derivatives by keys, with hooks.

    Args:
        source: The kind of graph.
        graph: In which all hooked variables are leaves, or wanted.
        root: The output.
        keys: Numbers of inputs, one for each slot.
        symmetric: Whether a key stands for all its permutations.
        attached: Whether results can be differentiated further.
        hooks: By their keys. Each runs once, and of all variables that are asked for by name, in whatever order, it changes the derivative.
        find: The derivatives without hooks.

    Raises:
        ArgumentError: If one variable of a hook depends on another, or hooks wait for each other.
        RuleError, ShapeError: If a hook returns something else than what it was given.
    """
    names = {number: key for key, number in (graph.leaves | graph.inside).items()}
    for key, (_, tensors) in hooks.items():
        refuse_dependent("backward", graph, [names[number] for number in key], tensors)
    run = _Hooks(source, graph, attached, names)
    inside = set(graph.inside.values())
    open_ = {key: hook for key, hook in hooks.items() if inside.intersection(key)}
    blocks = Expansion(graph, root, run.changed, find).blocks(keys, symmetric, open_) if open_ else find(graph, root, keys, symmetric)
    for key, hook in hooks.items():
        if key not in open_ and (found := placed(key, blocks)) is not None:  # nothing is made of what is by leaves alone
            run.changed(key, hook, blocks[found[0]].permuted(found[1]))
    for key in blocks:
        if (found := alike(key, run.returned)) is not None:
            blocks[key] = run.returned[found[0]].permuted(found[1])
    return blocks


class _Hooks:
    """Hooks of one call, as they run.

    Attributes:
        returned: What they returned, by their keys.
    """

    def __init__(self, source: Source, graph: Graph, attached: bool, names: Mapping[int, Hashable]) -> None:
        self.source, self.graph, self.attached, self.names = source, graph, attached, names
        self.returned: dict[Key, Block] = {}

    def changed(self, key: Key, hook: Hook, block: Block) -> Block:
        """What a hook makes of a block of which the slots are in its order."""
        f, tensors = hook
        context: dict[Any, set[Any]] = {}
        for number, tensor in zip(key, tensors, strict=True):
            name = self.names[number]
            context.setdefault(name[0] if isinstance(name, tuple) else name, set()).add(tensor)
        array, indeps = block.batched()
        _, _, slots = block.metadata(True)
        stamp = None
        if not isinstance(array, Coat):  # a hook may write into what it gets
            array = self.graph.base.scale(array, 1.0)
            stamp = self.graph.base.stamp(array)
        given = self.source.wrap(array), block.shapes, indeps, slots
        answer = f(given, context)
        if not isinstance(answer, (tuple, list)) or len(answer) != 4:
            raise RuleError(
                f"hook: got {_what(answer)} from the hook on {', '.join(map(told, tensors))}; expected the four things that it is given, "
                "(tensor, shapes, indeps, vperm). Try return 2 * tensor, shapes, indeps, vperm"
            )
        if answer[0] is given[0] and tuple(answer[1:]) == given[1:] and not (stamp is not None and self.graph.base.changed(array, stamp)):
            made = block
        else:
            made = self._block(block, answer, given)
        self.returned[key] = made
        return made

    def _block(self, block: Block, answer: Sequence[Any], given: Sequence[Any]) -> Block:
        for word, have, want in zip(("shapes", "indeps", "vperm"), answer[1:], given[1:], strict=True):
            if _tuples(have) != want:
                raise ShapeError(
                    f"hook: got {word} {have} from a hook; expected {want}, as it was given, because that tells how the tensor is read. "
                    "Try to change the tensor alone"
                )
        tensor, base = answer[0], self.graph.base
        value = tensor.value if isinstance(tensor, Handle) and self.attached else tensor if self.attached else self.source.array(tensor)
        if value is None or value.__class__ in NUMBERS:
            raise RuleError(f"hook: got {_what(tensor)} as the tensor that a hook returned; expected one like that which it was given")
        want = tuple(base.dressed.shape(given[0].value if isinstance(given[0], Handle) else given[0]))
        if (got := tuple(base.dressed.shape(value))) != want:
            raise ShapeError(
                f"hook: got a tensor of shape {got} from a hook; expected {want}, as it was given, because entry stands for entry"
            )
        over = base.dressed if isinstance(value, Coat) else base
        return Block.of_batched(over, value, block.out_shape, block.shapes, given[2])


def _tuples(p: Any) -> Any:
    return tuple([_tuples(x) for x in p]) if isinstance(p, (tuple, list)) else p


def _what(p: Any) -> str:
    return f"{len(p)} things" if isinstance(p, (tuple, list)) else f"a {type(p).__name__}"
