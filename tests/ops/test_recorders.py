"""The generated recorders do what the general way, ``Tracked.apply``, does."""

import random
from typing import Any

import numpy as np
import pytest

from nestgrad.backends import NumpyBackend, TorchBackend
from nestgrad.levels.autodiff import Autodiff
from nestgrad.levels.base import Coat
from nestgrad.levels.dressed import Dressed
from nestgrad.levels.reverse.node import Node, Tracked
from nestgrad.ops import TABLE, Kind

RECORDED = [op for op in TABLE.values() if op.kind is not Kind.COMPOSITE and not op.results]  # those go the general way
RULED = [op for op in RECORDED if op.kind is not Kind.CONSTANT]


class General(Dressed):
    """The backend over dressed values without generated code: everything goes by ``Tracked.apply``."""

    def _recorded(self, op: Any) -> Any:
        base = getattr(self.base, op.name)

        def run(*given: Any, **named: Any) -> Any:
            count = len(given) if op.variadic else len(op.arguments)
            args, rest = given[:count], given[count:]
            defaults = dict(zip(op.params[len(op.params) - len(op.defaults) :], op.defaults, strict=True))
            params = {**defaults, **dict(zip(op.params, rest, strict=False)), **named}
            values = tuple(params[p] for p in op.params)
            if any(isinstance(a, Coat) for a in args):
                if op.kind is Kind.CONSTANT and any(isinstance(a, Tracked) for a in args):
                    return run(*(a.value if isinstance(a, Tracked) else a for a in args), **params)
                return self.mixed(op, args, values)
            return base(*args, **params) if op.variadic else base(*args, *values)

        return run


def same(p: Any, q: Any, where: str) -> None:
    """Two values are alike: coats of the same tapes, nodes of the same ops with the same parents, rules and kept values, equal arrays."""
    assert isinstance(p, Coat) == isinstance(q, Coat), where
    if not isinstance(p, Coat):
        if isinstance(p, (tuple, list)):
            assert len(p) == len(q), where
            for k, (v, w) in enumerate(zip(p, q, strict=True)):
                same(v, w, f"{where}[{k}]")
        elif hasattr(p, "shape"):
            np.testing.assert_array_equal(np.asarray(p), np.asarray(q), err_msg=where)
        else:
            assert p == q or p is q, where
        return
    assert type(p) is type(q) and p.tape is q.tape, where
    if isinstance(p, Tracked):
        alike(p.node, q.node, f"{where}.node")
    same(p.value, q.value, f"{where}.value")


def alike(m: Node, n: Node, where: str) -> None:
    if m is n:
        return
    assert (m.op, tuple(m.shape), m.lo) == (n.op, tuple(n.shape), n.lo), where
    assert m.edges is not None and n.edges is not None and len(m.edges) == len(n.edges), where
    for k, ((parent, rule, saved), (other, another, kept_there)) in enumerate(zip(m.edges, n.edges, strict=True)):
        assert parent is other, f"{where}: parent {k}"
        assert rule is another, f"{where}: rule {k}"
        same(tuple(saved), tuple(kept_there), f"{where}: what edge {k} keeps")


@pytest.mark.parametrize("backend", [NumpyBackend(), TorchBackend(dtype="float64")], ids=repr)
@pytest.mark.parametrize("op", RECORDED, ids=lambda op: op.name)
def test_generated_recorders_do_what_the_general_way_does(op, backend):
    """On random mixtures: each argument a constant, shared memory, or tracked on any subset of three levels, directly or not."""
    rng = random.Random(op.name)
    general = General(backend)
    stack = Autodiff(Autodiff(Autodiff(backend)))
    for _ in range(24):
        sample = rng.choice(op.samples.calls)
        arrays, params = sample.native(backend)
        args = []
        for k, a in enumerate(arrays):
            free = backend.is_floating(a) and k not in sample.exact
            how = rng.choice(["constant", "shared", *(["tracked"] * 4 if free else [])])
            x = stack.tensor(a)
            if how == "shared":
                x = getattr(stack, f"from_{backend.name}")(x.b.base.cast(a, backend.dtype(a)))
            elif how == "tracked":
                x = stack.tensor(a, requires_grad=True, levels=rng.sample([1, 2, 3], rng.randint(1, 3)))
                if rng.random() < 0.5:
                    x = x * 1.0
            args.append(x.value)
        if op.name == "mul" and rng.random() < 0.3:
            args[1] = args[0]  # one value as both
        same(getattr(stack.dressed, op.name)(*args, **params), getattr(general, op.name)(*args, **params), op.name)


@pytest.mark.parametrize("op", [op for op in RULED if op.broadcasts and op.name != "unit"], ids=lambda op: op.name)
def test_python_numbers_stand_beside_coats(op):
    general = General(NumpyBackend())
    b = general.base.dressed
    x = Autodiff(Autodiff(general.base)).tensor([0.3, 0.6], requires_grad=True).value
    params = op.samples.calls[0].params
    for args in ((x, 0.5), (0.5, x)):
        args = (np.array([True, False]), *args) if op.name == "where" else args
        if len(args) == len(op.arguments):
            same(getattr(b, op.name)(*args, **params), getattr(general, op.name)(*args, **params), op.name)
