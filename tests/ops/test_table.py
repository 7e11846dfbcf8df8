"""The op table: what ``define`` refuses, what nodes keep, and that the generated recorders do what the general way does."""

import random
import weakref
from collections import Counter
from typing import Any

import numpy as np
import pytest

from nestgrad.backends import Backend, NumpyBackend, TorchBackend
from nestgrad.levels.autodiff import Autodiff
from nestgrad.levels.base import Coat
from nestgrad.levels.coats import bare
from nestgrad.levels.dressed import Dressed
from nestgrad.levels.reverse.node import Node, Tracked
from nestgrad.levels.shared import Shared
from nestgrad.ops import TABLE, Kind, table
from nestgrad.ops.samples import unary
from nestgrad.ops.table import BILINEAR, COMPOSITE, CONSTANT, ELEMENTWISE, LINEAR, define
from nestgrad.tensor.handle import apply

SAMPLES = unary(0.0, 1.0)
RECORDED = [op for op in TABLE.values() if op.kind is not Kind.COMPOSITE]
RULED = [op for op in RECORDED if op.kind is not Kind.CONSTANT]


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
        y = apply(op.name, *xs, **params)
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
    while isinstance(out, np.ndarray):
        if out is a:
            return True
        out = out.base
    return False


def _needed(op: Any, k: int, free: list[int]) -> bool:
    """Whether the rule of a tracked argument reads argument ``k``."""
    if op.variadic:
        return len(free) > 1
    return any(op.rules[j] is not None and op.arguments[k] in op.rules[j].reads for j in free)


# generated recorders against the general way


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


def test_shared_memory_stays_watched_in_what_is_kept():
    array = np.array([1.0, 2.0])
    stack = Autodiff(NumpyBackend())
    c, x = stack.from_numpy(array), stack.tensor([3.0, 4.0], requires_grad=True)
    ((saved,),) = kept(x * c)
    assert isinstance(saved, Shared)


# work


class Counting(NumpyBackend):
    """Counts calls of ops from outside, not what a method of its own calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()
        self.inside = False

    def __getattribute__(self, name: str) -> Any:
        member = super().__getattribute__(name)
        if name not in TABLE or not callable(member):
            return member

        def counted(*args: Any, **kwargs: Any) -> Any:
            outer, self.inside = self.inside, True
            self.calls[name] += not outer
            try:
                return member(*args, **kwargs)
            finally:
                self.inside = outer

        return counted


def work(f: Any, *shapes: tuple[int, ...], tracked: tuple[int, ...], levels: int = 1) -> Counter[str]:
    """Which ops the backward pass of ``f`` runs when the arguments ``tracked`` are looked up."""
    base = Counting()
    stack: Any = base
    for _ in range(levels):
        stack = Autodiff(stack)
    xs = [stack.tensor(np.ones(s), requires_grad=True) if k in tracked else stack.tensor(np.ones(s)) for k, s in enumerate(shapes)]
    y = f(*xs)
    base.calls.clear()
    gradients = y.backward()
    for k in tracked:
        gradients.wrt(xs[k])
    return base.calls


PRODUCTS = ("matmul", "product", "einsum", "linear")


def products(calls: Counter[str]) -> int:
    return sum(calls[name] for name in PRODUCTS)


def test_constants_get_no_cotangents():
    """One product per tracked factor, none for a constant one; a bias costs no product."""
    square = ((4, 4), (4, 4))
    matmul = lambda x, y: x @ y
    assert products(work(matmul, *square, tracked=(0,))) == products(work(matmul, *square, tracked=(1,))) == 1
    assert products(work(matmul, *square, tracked=(0, 1))) == 2
    layer = lambda x, w, z: apply("linear", x, w, z)
    shapes = ((5, 4), (4, 4), (4,))
    assert [products(work(layer, *shapes, tracked=t)) for t in ((0,), (1,), (2,), (1, 2), (0, 1, 2))] == [1, 1, 0, 1, 2]
    einsum = lambda x, y, z: apply("einsum", x, y, z, subscripts="ij,jk,kl->il")
    assert [work(einsum, *(square * 2)[:3], tracked=t)["einsum"] for t in ((0,), (1, 2), (0, 1, 2))] == [1, 2, 3]
    for f in (lambda x, y: x * y, lambda x, y: x / y):
        every, some = (sum(work(f, (3,), (3,), tracked=t).values()) for t in ((0, 1), (0,)))
        assert some < every
    assert not work(lambda x, y: x + y, (3,), (3,), tracked=(0,))


def test_untracked_operations_record_nothing_and_cost_nothing():
    base = Counting()
    stack = Autodiff(Autodiff(base))
    c = stack.tensor(np.ones((3, 3)))
    y = (c @ c).sin() * c
    assert not y.tracked_on() and isinstance(y.value, np.ndarray)
    assert base.calls == Counter({"matmul": 1, "sin": 1, "mul": 1})


def test_a_chain_after_a_constant_costs_only_its_own_part():
    """The backward pass goes along what is tracked, not into the branch that is not."""
    f = lambda x, w: ((x.sin() @ x.cos()).exp() @ w).tanh()
    calls = work(f, (4, 4), (4, 4), tracked=(1,))
    assert calls["cos"] == calls["sin"] == calls["exp"] == 0 and products(calls) == 1


def test_a_look_up_of_one_costs_no_cotangent_of_the_other():
    base = Counting()
    stack = Autodiff(base)
    x, w = (stack.tensor(np.ones((4, 4)), requires_grad=True) for _ in range(2))
    gradients = (x @ w).backward()
    base.calls.clear()
    gradients.wrt(w)
    assert products(base.calls) == 1
    gradients.wrt(x)
    assert products(base.calls) == 2


def test_the_second_level_does_no_work_for_the_constants_of_the_first():
    """The inner level records the outer pass only where it is tracked there."""
    base = Counting()
    stack = Autodiff(Autodiff(base))
    x, w = stack.tensor(np.ones((4, 4)), requires_grad=True, levels=[2]), stack.tensor(np.ones((4, 4)), requires_grad=True, levels=[1])
    g = (x @ w).tanh().wrt(x)
    base.calls.clear()
    g.wrt(w)
    # g = t w' with t = tanh'(x w): cotangents of w in g, of t in g, and of w in x w; none of x, which is a constant here
    assert products(base.calls) == 3
