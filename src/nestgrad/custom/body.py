"""One call of a function with rules of its own: its arguments taken apart, its body run, and its rules checked."""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from nestgrad.custom.attach import closed_over
from nestgrad.custom.transposition import Linear
from nestgrad.errors import LevelError, RuleError, ShapeError
from nestgrad.func.run import Run, as_leaf, outside
from nestgrad.func.trees import flatten, parted, shown, unflatten
from nestgrad.levels.base import Coat
from nestgrad.levels.batched import Batch
from nestgrad.levels.coats import bare, within
from nestgrad.levels.marks import NONE, Marks
from nestgrad.levels.recipe import Remade
from nestgrad.levels.shared import Shared
from nestgrad.levels.traced.wire import Wire
from nestgrad.tensor import Tensor
from nestgrad.tensor.handle import Handle, is_scalar, make

_PLAIN = (bool, int, float, str, bytes, complex, slice, type(None), type(Ellipsis))
"""What may be saved beside Tensors and arrays: data in which no Tensor can hide."""


class Call:
    """The arguments of a call.

    Attributes:
        leaves: Of all arguments, in order.
        places: Which of them are Tensors.
        likes: Shapes and dtypes of these.
        floating: Which of these can be differentiated by.
    """

    def __init__(self, name: str, args: Sequence[Any]) -> None:
        self.name = name
        self.leaves: list[Any] = []
        self.structures = []
        for a in args:
            leaves, structure = flatten(a)
            self.leaves += leaves
            self.structures.append(structure)
        b = next((leaf.b for leaf in self.leaves if isinstance(leaf, Handle)), None)
        for k, leaf in enumerate(self.leaves):
            if b is not None and not isinstance(leaf, Handle) and not is_scalar(leaf) and b.base.accepts(leaf):
                self.leaves[k] = as_leaf(name, leaf, b)
        self.places = [k for k, leaf in enumerate(self.leaves) if isinstance(leaf, Handle)]

    def begin(self, b: Any, values: Sequence[Any]) -> None:
        """Note what the Tensors are like, and let go of them."""
        self.b = b
        self.likes = [(tuple(b.shape(v)), b.dtype(v)) for v in values]
        self.floating = [bool(b.base.is_floating(bare(v))) for v in values]
        for k in self.places:
            self.leaves[k] = None

    def trees(self, tensors: Sequence[Any], others: Callable[[Any], Any] = lambda leaf: leaf) -> tuple[Any, ...]:
        """The arguments with other Tensors; ``others`` of what is none in its place."""
        leaves = [others(leaf) for leaf in self.leaves]
        for k, x in zip(self.places, tensors, strict=True):
            leaves[k] = x
        return parted(self.structures, leaves)

    def tensors(self, values: Sequence[Any], marks: Marks = NONE) -> list[Tensor]:
        """Values as Tensors."""
        return [make(self.b, v, marks) for v in values]

    def run(self, f: Callable[..., Any], args: Sequence[Any]) -> Any:
        """Run what a user gave. Levels that were made outside slide above this run, so that they can be used in it."""
        with Run(self.name, []):
            return f(*args)

    def cotangents(self, result: Any, known: Sequence[Any]) -> list[Any]:
        """What a cotangent rule returned, as a value for each Tensor among the arguments.

        Args:
            result: A cotangent for each argument.
            known: Values from which the rule made it.

        Raises:
            RuleError: If it does not have the arguments' structure.
            ShapeError: If a cotangent has another shape than its argument.
            LevelError: If it depends on more than ``known``.
        """
        count = len(self.structures)
        given = result if isinstance(result, tuple) and (count > 1 or len(result) == 1) else (result,)
        if len(given) != count:
            raise RuleError(
                f"{self.name}: its cotangent rule returned {len(given)} cotangents for {count} arguments; expected one for each, "
                "None for what has none"
            )
        leaves: list[Any] = []
        for k, (tree, structure) in enumerate(zip(given, self.structures, strict=True)):
            found, have = flatten(tree) if tree is not None else ([None] * structure.num_leaves, structure)
            if have != structure:
                raise RuleError(
                    f"{self.name}: its cotangent rule returned {shown(have)} for argument {k}; expected None, or the argument's structure, "
                    f"{shown(structure)}"
                )
            leaves += found
        chosen = [leaves[k] for k in self.places]
        return [
            None if c is None or not floating else self.checked(f"the cotangent of a Tensor of argument number {i}", c, like, known)
            for i, (c, like, floating) in enumerate(zip(chosen, self.likes, self.floating, strict=True))
        ]

    def checked(self, what: str, x: Any, like: tuple[tuple[int, ...], Any], known: Sequence[Any]) -> Any:
        """What a rule returned for something like that, as a value."""
        x = outside(as_leaf(self.name, x, self.b))
        shape, dtype = like
        if x.b.base != self.b.base:
            raise LevelError(f"{self.name}: {what} is over {x.b.base!r}; expected {self.b.base!r}")
        if tuple(x.shape) != shape:
            raise ShapeError(f"{self.name}: {what} has shape {tuple(x.shape)}; expected {shape}")
        refuse_strangers(self.name, [x], known)
        if x.marks:
            raise LevelError(
                f"{self.name}: {what} depends on a closed-over value that was taken out of {', '.join(map(repr, x.marks))}; "
                "expected values that were saved, or given, alone. Try to pass it as an argument, or detach() it"
            )
        return x.value if x.dtype == dtype else self.b.cast(x.value, dtype)


class Body:
    """What a function returned, and saved for its rules.

    Attributes:
        parts: Which leaves of the output are floating, and so may have derivatives.
        saved: The Tensors that were saved, but for those that are outputs themselves.
        saves_out: Whether there are such.
        found: All Tensors that came out.
        marks: Of all of these.
    """

    def __init__(self, call: Call, function: Callable[..., tuple[Any, Any]], values: Sequence[Any], marks: Marks) -> None:
        self.call, b = call, call.b
        out, saved = call.run(function, call.trees(call.tensors(values, marks)))
        leaves, self.structure = flatten(out)
        kept, self._saved_structure = flatten(saved)
        if strange := [x for x in leaves if not (isinstance(x, Handle) or is_scalar(x) or b.base.accepts(x))]:
            raise RuleError(f"{call.name}: it returned a {type(strange[0]).__name__}; expected Tensors, or a nested structure of them")
        self.leaves: list[Any] = [outside(as_leaf(call.name, x, b)) for x in leaves]
        self.parts = [k for k, x in enumerate(self.leaves) if b.base.is_floating(bare(x.value))]
        self.likes = {k: (tuple(self.leaves[k].shape), self.leaves[k].dtype) for k in self.parts}
        self.saved: list[Tensor] = []
        self._places: list[Callable[[Sequence[Tensor], Mapping[int, Tensor]], Any]] = [self._place(x, leaves) for x in kept]
        self.saves_out = any(x is leaves[k] for x in kept for k in self.parts)
        self.found = [*self.leaves, *self.saved]
        self.marks = [x.marks for x in self.found]

    def _place(self, x: Any, leaves: Sequence[Any]) -> Any:
        """How a saved leaf is found again, from the saved values and from the outputs as the levels further in see them."""
        if isinstance(x, Handle):
            alias = next((k for k in self.parts if leaves[k] is x), None)
            if alias is not None:
                return lambda saved, out: out[alias]
            position = len(self.saved)
            self.saved.append(outside(x))  # type: ignore[arg-type]
            return lambda saved, out: saved[position]
        if not isinstance(x, _PLAIN) and not self.call.b.base.accepts(x) and not hasattr(x, "dtype"):
            raise RuleError(
                f"{self.call.name}: fwd saved a {type(x).__name__}; expected Tensors, arrays and plain data in tuples, lists and dicts: "
                "a Tensor that hides in something else would keep the level that the rule is for. Try to save the Tensors that it holds"
            )
        return lambda saved, out: x

    def release(self) -> None:
        """Let go of the values that came out: from now on they are with the levels, as much of them as these need."""
        self.leaves = [None if k in self.likes else x for k, x in enumerate(self.leaves)]
        self.saved, self.found, self.marks = [], [], []

    def packed(self, b: Any, values: Mapping[int, Any] | None = None) -> Any:
        """The floating outputs as one value: end to end, if there are several."""
        found = [self.leaves[k].value if values is None else values[k] for k in self.parts]
        if len(found) == 1:
            return found[0]
        dtype = self.like(b)[1]
        flat = [b.reshape(v, (prod(self.likes[k][0]),)) for k, v in zip(self.parts, found, strict=True)]
        return b.concat(*(v if b.dtype(v) == dtype else b.cast(v, dtype) for v in flat), axis=0)

    def like(self, b: Any) -> tuple[tuple[int, ...], Any]:
        """Shape and dtype of the packed value."""
        if len(self.parts) == 1:
            return self.likes[self.parts[0]]
        widest = max((self.likes[k][1] for k in self.parts), key=lambda dtype: b.base.nbytes(b.base.full((), 0.0, dtype)))
        return (sum(prod(self.likes[k][0]) for k in self.parts),), widest

    def unpacked(self, b: Any, whole: Any, marks: Marks) -> dict[int, Tensor]:
        """The floating outputs of a packed value."""
        if len(self.parts) == 1:
            return {self.parts[0]: make(b, whole, marks)}
        found, start = {}, 0
        for k in self.parts:
            shape, dtype = self.likes[k]
            stop = start + prod(shape)
            v = b.reshape(b.getitem(whole, (slice(start, stop),)), shape)
            found[k] = make(b, v if b.dtype(v) == dtype else b.cast(v, dtype), marks)
            start = stop
        return found

    def result(self, outs: Mapping[int, Tensor]) -> Any:
        """What was returned, with other floating outputs."""
        return unflatten(self.structure, [outs.get(k, x) for k, x in enumerate(self.leaves)])

    def cotangents(self, outs: Mapping[int, Tensor]) -> Any:
        """The structure of what was returned, with a cotangent for each floating output, and ``None`` for the others."""
        return unflatten(self.structure, [outs.get(k) for k in range(len(self.leaves))])

    def saved_tree(self, saved: Sequence[Any], out: Mapping[int, Tensor]) -> Any:
        """What was saved, with other values."""
        tensors = self.call.tensors(saved)
        return unflatten(self._saved_structure, [place(tensors, out) for place in self._places])

    def tangent(self, b: Any, tree: Any, known: Sequence[Any]) -> Any:
        """What a tangent rule returned, as one value.

        Raises:
            RuleError: If it does not have the output's structure.
            ShapeError: If a part has another shape than the output's.
            LevelError: If it depends on more than ``known``.
        """
        leaves, have = flatten(tree)
        if have != self.structure:
            raise RuleError(
                f"{self.call.name}: its tangent rule returned {shown(have)}; expected the structure of the output, {shown(self.structure)}"
            )
        return self.packed(b, {k: self.call.checked("the tangent", leaves[k], self.likes[k], known) for k in self.parts})


def plain(p: Any) -> Any:
    """The value on no level but those of batches; in a trace, the example."""
    if not isinstance(p, Coat) or isinstance(p, (Shared, Remade)):
        return p
    return p.mapped(plain) if isinstance(p, Batch) else plain(p.value)


def refuse_strangers(name: str, found: Sequence[Tensor], known: Sequence[Any]) -> None:
    """Check that values wear no coat for derivatives that none of what they were made of wears.

    Raises:
        LevelError: If one does.
    """
    tapes = {coat.tape for v in known for coat in within(v)}
    for x in found:
        for coat in within(x.value):
            if coat.tape not in tapes and _counts(coat):
                raise closed_over(name, coat.tape)


def _counts(coat: Coat) -> bool:
    return coat.differentiates or isinstance(coat, (Linear, Wire))
