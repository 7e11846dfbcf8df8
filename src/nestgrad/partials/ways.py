"""How a partial derivative is computed: in which mode, and what is seeded with what.

A key is a tuple of leaves, one for each time that one differentiates. For each of its slots but one, or for all, tangents are pushed
forward, a batch of directions; by the last, cotangents are pulled back, a batch of rows. Along a label (``independence``) that the leaf of
a slot carries, all entries are seeded at once. By leaves that do not carry it, each entry's part is told apart by *cutting* the program
along the label: it is run for each entry by itself, all in one batch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from nestgrad.levels.traced.program import Program
from nestgrad.partials.independence import Label

Key = tuple[int, ...]
"""Numbers of inputs of a program, one for each slot."""


@dataclass(frozen=True, slots=True)
class Way:
    """How the partial derivatives by some keys are computed, together.

    Attributes:
        forward: The inputs by which tangents are pushed forward, in the order of their slots.
        targets: The inputs by which cotangents are pulled back, each the last slot of a key; none: forward mode only.
        cut: The labels along which the program is cut.
        rest: The axes of the output along which there is a row for each entry.
    """

    forward: Key
    targets: tuple[int, ...]
    cut: tuple[Label, ...]
    rest: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Terms:
    """A program and what is known of its axes.

    Attributes:
        program: With one output.
        labels: Its labels.
        carried: By input, the labels that it carries, by axis.
    """

    program: Program
    labels: tuple[Label, ...]
    carried: dict[int, dict[Label, int]]

    @classmethod
    def of(cls, program: Program, labels: Sequence[Label]) -> "Terms":
        """The terms of a program with these labels."""
        carried = {v.number: {label: label.axes[v] for label in labels if v in label.axes} for v in program.inputs}
        return cls(program, tuple(labels), carried)

    @property
    def shape(self) -> tuple[int, ...]:
        """The output's."""
        return tuple(self.program.outputs[0].shape)

    def shape_of(self, leaf: int) -> tuple[int, ...]:
        """An input's."""
        return tuple(self.program.inputs[leaf].shape)

    def legs(self, key: Key) -> tuple[Label, ...]:
        """The labels that a slot of the key carries."""
        return tuple(label for label in self.labels if any(label in self.carried[leaf] for leaf in key))

    def directions(self, leaf: int, legs: Sequence[Label]) -> int:
        """How many directions there are by a leaf, if entries along ``legs`` move together."""
        along = {axis for label, axis in self.carried[leaf].items() if label in legs}
        return prod(n for axis, n in enumerate(self.shape_of(leaf)) if axis not in along)

    def forward(self, key: Key) -> tuple[Way, float]:
        """Forward mode, and its cost: how often the program's numbers are computed, about."""
        legs = self.legs(key)
        cut = tuple(label for label in legs if label.out is None)
        cost = prod(self.directions(leaf, legs) for leaf in key) * (len(key) + 1.0)
        return Way(key, (), cut, ()), cost

    def reverse(self, key: Key) -> tuple[Way, float]:
        """The last slot in reverse mode, the others forward; and the cost."""
        legs, carried = self.legs(key), self.carried[key[-1]]
        cut = tuple(label for label in self.labels if (label.out is not None or label in legs) and label not in carried)
        covered = {label.out for label in self.labels if label in cut or label in carried}
        rest = tuple(axis for axis in range(len(self.shape)) if axis not in covered)
        rows = prod(self.shape[axis] for axis in rest)
        cost = rows * prod(self.directions(leaf, legs) for leaf in key[:-1]) * 2.0 * len(key)
        return Way(key[:-1], (key[-1],), cut, rest), cost

    def best(self, key: Key, symmetric: bool = True) -> Way:
        """The cheapest way; of a key of which the order counts, in that order: the last slot is differentiated by first."""
        if not symmetric:
            return self.reverse(key)[0]
        choices = [self.reverse((*key[:k], *key[k + 1 :], key[k])) for k in range(len(key)) if key[k] not in key[k + 1 :]]
        choices.reverse()  # of equal ones, that by the last slot, which others share
        return min([*choices, self.forward(key)], key=lambda choice: choice[1])[0]

    def ways(self, keys: Iterable[Key], symmetric: bool = True) -> dict[Way, list[tuple[Key, int]]]:
        """The ways for many keys: what differs in the last slot only is computed together.

        Returns:
            For each way, the keys that it serves, and which of its targets.
        """
        together: dict[Any, list[tuple[Key, Way]]] = {}
        for key in sorted(keys, key=len, reverse=True):
            along = (key[0], self.forward(key)[0].cut)
            if along in together and len(set(key)) == 1:  # lower orders are on the way to higher ones
                together[along].append((key, self.forward(key)[0]))
                continue
            way = self.best(key, symmetric)
            if len(key) > 1 and self.curve(way):
                together[along] = [(key, way)]
                continue
            together.setdefault((way.forward, way.cut, way.rest, bool(way.targets) or key, self._moving(key, way)), []).append((key, way))
        found: dict[Way, list[tuple[Key, int]]] = {}
        for served in together.values():
            targets = tuple(dict.fromkeys(target for _, way in served for target in way.targets))
            way = Way(served[0][1].forward, targets, served[0][1].cut, served[0][1].rest)
            found[way] = [(key, targets.index(one.targets[0]) if one.targets else 0) for key, one in served]
        return found

    def curve(self, way: Way) -> bool:
        """Whether all slots are one leaf, in one direction: then the derivatives of all orders are those along one curve."""
        return not way.targets and len(set(way.forward)) == 1 and self.directions(way.forward[0], self.legs(way.forward)) == 1

    def _moving(self, key: Key, way: Way) -> tuple[tuple[Label, ...], ...]:
        """Along which labels the leaf of each forward slot is seeded at once."""
        legs = self.legs(key)
        return tuple(tuple(label for label in self.carried[leaf] if label in legs) for leaf in way.forward)
