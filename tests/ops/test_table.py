"""The op table: what ``define`` refuses, and what nodes keep."""

import weakref
from typing import Any

import numpy as np
import pytest

from nestgrad.backends import Backend, NumpyBackend
from nestgrad.levels.autodiff import Autodiff
from nestgrad.levels.coats import bare
from nestgrad.levels.dressed import Dressed
from nestgrad.levels.reverse.node import Tracked
from nestgrad.levels.shared import Shared
from nestgrad.ops import TABLE, Kind, table
from nestgrad.ops.samples import unary
from nestgrad.ops.table import BILINEAR, COMPOSITE, CONSTANT, ELEMENTWISE, LINEAR, define
from nestgrad.tensor.handle import apply
from nestgrad.testing.calling import called

SAMPLES = unary(0.0, 1.0)
RULED = [op for op in TABLE.values() if op.kind not in (Kind.COMPOSITE, Kind.CONSTANT)]


@pytest.fixture
def private(monkeypatch):
    """A copy of the table, so that nothing that is defined stays."""
    copy = dict(TABLE)
    monkeypatch.setattr(table, "TABLE", copy)
    return copy


# define


def test_define_adds_an_entry(private):
    op = define("cube(x, n)", ELEMENTWISE, lambda b, g, x, n: b.mul(g, x), samples=SAMPLES, defaults=(3,))
    assert private["cube"] is op and "cube" not in TABLE
    assert (op.arguments, op.params, op.defaults, op.broadcasts) == (("x",), ("n",), (3,), False)
    assert op.signature == "cube(x, n=3)" and repr(op) == "<op cube(x, n=3), elementwise>"
    assert op.rules[0].reads == ("x", "n")


def test_an_elementwise_rule_without_g_is_a_partial(private):
    op = define("cube(x)", ELEMENTWISE, lambda b, x: b.powi(x, 2), samples=SAMPLES)
    b = NumpyBackend().dressed
    assert op.rules[0].partial is not None and op.rules[0].call(b, 2.0, np.array(3.0)) == 18.0


def test_elementwise_ops_of_several_arguments_broadcast(private):
    rule = lambda b, g: g
    assert define("first(x, y)", ELEMENTWISE, rule, rule, samples=SAMPLES).broadcasts
    assert not define("second(x, y)", LINEAR, rule, rule, samples=SAMPLES).broadcasts
    assert define("third(*xs)", LINEAR, rule, samples=SAMPLES).variadic


@pytest.mark.parametrize(
    "signature, kind, rules, message",
    [
        ("sin(x)", ELEMENTWISE, [lambda b, x: x], "there is already an op named 'sin'"),
        ("op(x, y)", ELEMENTWISE, [lambda b, x: x], r"op\(x, y\) has 2 arguments and 1 rules"),
        ("op(x)", LINEAR, [lambda b, g: g, lambda b, g: g], r"op\(x\) has 1 arguments and 2 rules"),
        ("op(x)", ELEMENTWISE, [lambda b, g, y: y], r"a rule of op reads \['y'\]; it may read"),
        ("op(x)", ELEMENTWISE, [lambda b, g, answer: g], r"reads \['answer'\]; it may read \['out', 'x', 'x_dtype', 'x_shape'\]"),
        ("op(x)", ELEMENTWISE, [lambda b, g, x, n: g], r"reads \['n'\]"),
        ("op(x)", LINEAR, [lambda b, g, others: g], r"reads \['others'\]"),
        ("op(x, y)", BILINEAR, [lambda b, y: y, lambda b, x: x], "must take g, since only an elementwise op has partial derivatives"),
        ("op(x, out)", ELEMENTWISE, [lambda b, x: x], r"parameters \['out'\]; these names mean something else in rules"),
        ("op(x, g)", ELEMENTWISE, [lambda b, x: x], r"parameters \['g'\]"),
        ("op(x, _lo)", ELEMENTWISE, [lambda b, x: x], r"parameters \['_lo'\]"),
        ("op(x, x_shape)", ELEMENTWISE, [lambda b, x: x], r"parameters \['x_shape'\]"),
        ("op(x)", COMPOSITE, [], "is a composite and has 0 rules; expected the one function"),
        ("op(x)", CONSTANT, [lambda b, g: g], "is a constant op and has 1 rules; expected none"),
    ],
)
def test_define_refuses(private, signature, kind, rules, message):
    before = dict(private)
    with pytest.raises(ValueError, match=f"define: .*{message}"):
        define(signature, kind, *rules, samples=SAMPLES)
    assert private == before


NAMES = "lo tape node coat edges base mixed n0 v0 now OP error errors explained rule0 default0 Tracked Coat Node shape_of".split()


@pytest.mark.parametrize("name", NAMES)
def test_parameters_may_have_any_other_name(private, name):
    """Parameter names are those of the generated recorder's variables or not: it makes no difference."""

    class Scaling(NumpyBackend):
        def scaled(self, x, factor):
            return x * factor

    op = define(f"scaled(x, {name})", LINEAR, eval(f"lambda b, g, {name}: b.scaled(g, {name})"), samples=SAMPLES)
    backend = Scaling()
    backend._dressed = Dressed(backend, private)
    stack = Autodiff(Autodiff(backend))
    x = stack.tensor([1.0, 2.0], requires_grad=True)
    y = apply("scaled", x, **{name: 3.0})
    assert y.tolist() == [3.0, 6.0] and y.wrt(x).tolist() == [3.0, 3.0]
    assert y.value.node.lo == x.value.node.age and y.value.node.op is op


@pytest.mark.parametrize("op", TABLE.values(), ids=lambda op: op.name)
def test_every_op_is_a_method_of_the_contract(op):
    assert callable(getattr(Backend, op.name, op.function))


# what nodes keep


def kept(y: Any) -> list[list[Any]]:
    """For each edge of a Tensor's node, what its rule will read."""
    return [list(saved) for _, _, saved in y.value.node.edges]


def variable(*shape: int) -> Any:
    return Autodiff(NumpyBackend()).tensor(np.linspace(0.2, 0.8, int(np.prod(shape))).reshape(shape), requires_grad=True)


def test_a_product_with_a_constant_keeps_only_the_constant():
    x, c = variable(3), NumpyBackend().tensor([1.0, 2.0, 3.0])
    ((constant,),) = kept(x * c)
    assert constant is c.value
    ((constant,),) = kept(c * x)
    assert constant is c.value
    assert kept(x * 2.0) == [[2.0]]


def test_a_product_keeps_each_factor_for_the_other():
    x = variable(3)
    y = x.sin()
    assert [[saved is v.value.value for saved in edge for v in (x, y)] for edge in kept(x * y)] == [[False, True], [True, False]]


def test_sums_keep_nothing_and_shapes_cost_no_memory():
    x = variable(2, 3)
    assert kept(x + x.sin()) == [[], []] and kept(x - 1.0) == [[]] and kept(-x) == [[]]
    assert kept(x.sum(axis=1)) == [[(2, 3), (1,), False]]
    assert kept(x.reshape(6)) == [[(2, 3)]] and kept(x.permute(1, 0)) == [[(1, 0)]]


def test_functions_keep_the_answer_or_the_argument():
    x = variable(3)
    for name in ("tanh", "exp", "sqrt", "rsqrt", "tan", "reciprocal"):
        y = apply(name, x)
        assert [[saved is y.value.value for saved in edge] for edge in kept(y)] == [[True]], name
    for name in ("sin", "cos", "log", "square", "asin", "abs"):
        y = apply(name, x)
        assert [[saved is x.value.value for saved in edge] for edge in kept(y)] == [[True]], name


def test_outer_levels_keep_the_inner_coats():
    stack = Autodiff(Autodiff(NumpyBackend()))
    x = stack.tensor([0.5], requires_grad=True)
    y = x.tanh()
    ((saved,),) = kept(y)
    assert saved is y.value.value and isinstance(saved, Tracked) and saved.node.edges[0][2] == (saved.value,)


@pytest.mark.parametrize("op", RULED, ids=lambda op: op.name)
def test_arrays_that_no_rule_reads_are_freed(op):
    """After ``y = op(x)``, an argument's array lives on only if a rule reads it, or if the answer views it. No collector is needed."""
    stack = Autodiff(NumpyBackend())
    for sample in op.samples.calls:
        arrays, params = sample.native(stack.base)
        free = [k for k, a in enumerate(arrays) if stack.base.is_floating(a) and k not in sample.exact]
        # what was computed, so that nothing but the op holds its array; and the same array as a constant where it is none
        xs = [stack.tensor(a, requires_grad=True) * 1.0 if k in free else stack.tensor(a) for k, a in enumerate(arrays)]
        raw = [bare(x.value) for x in xs]
        if not all(isinstance(a, np.ndarray) for a in raw):
            continue  # NumPy's 0-d results are scalars, which cannot be watched
        y = called(op, *xs, **params)
        if not y.tracked_on():
            continue
        read = {word for rule in op.rules if rule is not None for word in rule.reads}
        held = [a in read if not op.variadic else len(arrays) > 1 and "others" in read for a in (op.arguments * len(raw))[: len(raw)]]
        viewed = [_views(bare(y.value), a) for a in raw]
        refs = [weakref.ref(a) for a in raw]
        del xs, arrays
        raw.clear()
        for k, ref in enumerate(refs):
            if not held[k] and not viewed[k]:
                assert ref() is None, f"{op.name} keeps argument {k}, which no rule reads"
            if held[k] and k in free and (op.variadic or op.rules[k] is not None or len(op.arguments) > 1):
                assert ref() is not None or viewed[k] or not _needed(op, k, free), f"{op.name} lost argument {k}"
        assert y.shape is not None


def _views(out: Any, a: Any) -> bool:
    """Whether ``out`` holds on to the memory of ``a``, if only to none of its entries."""
    while out is not None:  # between arrays, NumPy may put objects of its own
        if out is a:
            return True
        out = getattr(out, "base", None)
    return False


def _needed(op: Any, k: int, free: list[int]) -> bool:
    """Whether the rule of a tracked argument reads argument ``k``."""
    if op.variadic:
        return len(free) > 1
    return any(op.rules[j] is not None and op.arguments[k] in op.rules[j].reads for j in free)


def test_shared_memory_stays_watched_in_what_is_kept():
    array = np.array([1.0, 2.0])
    stack = Autodiff(NumpyBackend())
    c, x = stack.from_numpy(array), stack.tensor([3.0, 4.0], requires_grad=True)
    ((saved,),) = kept(x * c)
    assert isinstance(saved, Shared)
