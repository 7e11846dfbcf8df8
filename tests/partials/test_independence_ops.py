"""Labels of every op of the table, at its samples: what is found is true, and most ops have some."""

from dataclasses import replace
from typing import Any

import pytest
from label_oracle import BASE, assert_labels_hold

from nestgrad.func.trees import LEAF
from nestgrad.levels.traced.program import Program
from nestgrad.levels.traced.recording import recorded
from nestgrad.ops import lanes
from nestgrad.ops.samples import Empty, Sample
from nestgrad.ops.splitting import splitting, unstacking
from nestgrad.ops.table import TABLE, Op
from nestgrad.partials.independence import labels

OPS = [*TABLE.values(), splitting(3), unstacking(3)]
SAMPLES = [
    pytest.param(op, sample, id=f"{op.name}-{k}")
    for op in OPS
    for k, sample in enumerate(op.samples.calls)
    if not any(isinstance(a, Empty) for a in sample.arrays)
]


def programs(op: Op, sample: Sample) -> tuple[list[Program], list[Any], list[int]]:
    """A program for each result of a call; the arrays, and which of them one differentiates by."""
    arrays, params = sample.native(BASE)

    def f(xs: list[Any], result: int) -> list[Any]:
        call, given = op.of(BASE.dressed), op.bound((), params)
        out = call(*xs, **dict(zip(op.params, given, strict=True))) if op.variadic else call(*xs, *given)
        return [out[result] if op.results else out]

    made = [recorded(BASE, op.name, arrays, lambda xs, k=k: f(xs, k)) for k in range(max(1, len(op.results)))]
    made = [replace(program, arguments=(LEAF,) * len(arrays), structure=LEAF) for program in made]
    return made, arrays, [k for k, a in enumerate(arrays) if k not in sample.exact and BASE.is_floating(a)]


@pytest.mark.parametrize(("op", "sample"), SAMPLES)
def test_labels_of_an_op_are_true(op, sample):
    made, arrays, wanted = programs(op, sample)
    keys = [(i,) for i in wanted] + ([(wanted[0], wanted[-1])] if wanted and lanes.of(op) is not lanes.each else [])
    for program in made:
        assert_labels_hold(program, arrays, keys)


def test_most_ops_have_labels():
    """What has none acts on all entries together, or is made of other ops before it comes into a program."""
    without = set()
    for op in OPS:
        found = 0
        for sample in op.samples.calls:
            made, _, wanted = programs(op, sample)
            found += sum(len(labels(program, wanted)) for program in made)
        if not found:
            without.add(op.name)
    assert len(without) <= 10, sorted(without)
