"""Every op of the table, adopted from the graph of one level, has the derivatives of the op."""

from typing import Any

import numpy as np
import pytest
from graph_cases import adopted, agree, along, program_along, tensor

import nestgrad as ng
from nestgrad.levels.reverse.node import Tracked
from nestgrad.ops import TABLE, Kind
from nestgrad.ops.splitting import splitting, unstacking
from nestgrad.partials.own import key

BASE = ng.NumpyBackend()
OPS = [op for op in TABLE.values() if op.kind is not Kind.CONSTANT] + [splitting(3), unstacking(2)]


def cases(op: Any) -> Any:
    """Arrays, parameters, and which arguments are tracked: all, and each alone."""
    for sample in op.samples.calls:
        arrays, params = sample.native(BASE)
        free = [k for k, a in enumerate(arrays) if BASE.is_floating(a) and k not in sample.exact]
        rules = op.rules * len(arrays) if op.variadic else op.rules
        free = [k for k in free if op.kind is Kind.COMPOSITE or rules[k] is not None]
        yield arrays, params, free
        if len(free) > 1:
            for k in free:
                yield arrays, params, [k]


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of what is unknown
def test_an_adopted_op_has_the_derivatives_of_the_op(op: Any) -> None:
    rng = np.random.default_rng(7)
    level = ng.Autodiff(BASE)
    b = BASE.dressed
    for arrays, params, free in cases(op):
        before = {k: level.tensor(arrays[k], requires_grad=True) for k in free}
        # a constant that nobody keeps stands between the leaf and the op, so the argument is known only if the op's rules read it
        shift = level.tensor(0.0)
        xs = [(before[k] + shift).value if k in free else a for k, a in enumerate(arrays)]
        moves = [rng.standard_normal(np.shape(a)) if k in free else None for k, a in enumerate(arrays)]
        out = op.of(b)(*xs, **params)
        for number, part in enumerate(out if isinstance(out, tuple) else (out,)):
            if not isinstance(part, Tracked):
                continue
            y = tensor(b, part)
            graph, ref = adopted(y)
            found = program_along(graph, ref, {key(before[k]): moves[k] for k in free})

            def direct(values: list[Any], number: int = number, params: Any = params) -> Any:
                made = op.of(b)(*values, **params)
                return made[number] if isinstance(made, tuple) else made

            agree(found, along(b, direct, arrays, moves), f"{op.name} {params} by {free}", rtol=1e-6)
