"""Graphs of our levels as programs: what depends on what, which values they hold, and what is refused."""

import time
from typing import Any

import numpy as np
import pytest
from graph_cases import adopted, agree, along, program_along, tensor

import nestgrad as ng
from nestgrad import func
from nestgrad.errors import GraphFreedError, LevelError, MutatedError, NoLevelLeft, NotTrackedError, UnsupportedNode
from nestgrad.levels.coats import worn
from nestgrad.partials.graph import Graph
from nestgrad.partials.own import adopt, key, unsupported

BASE = ng.NumpyBackend()
RNG = np.random.default_rng(3)
POINT, MOVE = RNG.uniform(0.2, 0.9, 3), RNG.standard_normal(3)


def stack(depth: int, base: Any = BASE) -> Any:
    """``depth`` levels."""
    for _ in range(depth):
        base = ng.Autodiff(base)
    return base


def check(f: Any, depth: int = 1, point: Any = POINT, move: Any = MOVE, oracle: Any = None) -> Graph:
    """The adopted graph of ``f`` of a variable has the derivatives of ``oracle``, or of ``f`` itself, along a line."""
    x = stack(depth).tensor(point, requires_grad=True)
    y = f(x)
    graph, ref = adopted(y)
    found = program_along(graph, ref, {key(x, y.tracked_on()[0]): move})
    want = oracle or f
    derivatives = [want, lambda p: func.jvp(want, (p,), (move,))[1]]
    derivatives.append(lambda p: func.jvp(derivatives[1], (p,), (move,))[1])
    derivatives.append(lambda p: func.jvp(derivatives[2], (p,), (move,))[1])
    agree(found, [d(ng.tensor(point)).numpy() for d in derivatives])
    return graph


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * x,
        lambda x: x + x,
        lambda x: (x @ x) * x,
        lambda x: (x * 2.0 + 1.0).tanh() * x.exp(),
        lambda x: ng.where(x > 0.5, x.sin(), x * x),
        lambda x: ng.concat([x, x.sin(), ng.tensor([1.0, 2.0])]) ** 2,
        lambda x: ng.stack([ng.ones(3), x, x * x], axis=1).sum(axis=1).exp(),
        lambda x: ng.einsum("i,j,k->ijk", x, ng.tensor([1.0, 2.0]), x.exp()).sum(axis=1),
        lambda x: x.reshape(3, 1) @ x.reshape(1, 3) @ x,
        lambda x: ng.linalg.solve(ng.eye(3) * 2.0 + x.reshape(3, 1) * x, x),
        lambda x: ng.linalg.inv(ng.eye(3) * 2.0 + x.reshape(3, 1) * x + 1.0),
        lambda x: (x * 3.0 + 1.0).softmax(axis=0) * (x - 1.0).log_softmax(axis=0),
        lambda x: ng.concat([part * k for k, part in enumerate(ng.split(x + 1.0, 3), 1)]) ** 3,
        lambda x: ng.sort(x * x.cos() + ng.tensor([0.0, 5.0, 2.0])) * x,
    ],
)
def test_derivatives_are_those_of_the_function(f: Any) -> None:
    check(f)


def test_a_diamond_is_walked_once_and_counted_twice() -> None:
    def f(x: Any) -> Any:
        for _ in range(40):  # 2 ** 40 paths
            x = x.sin() + x / 2.0
        return x

    graph = check(f)
    assert len(graph.leaves) == 1


@pytest.mark.parametrize("depth", [2, 3])
def test_a_derivative_of_a_derivative_is_a_graph_like_any_other(depth: int) -> None:
    def f(x: Any) -> Any:
        return x.tanh() * x + (x + 1.0).exp()

    def derived(x: Any) -> Any:
        y = f(x)
        for _ in range(depth - 1):
            y = y.wrt(x)
        return y * x

    def oracle(x: Any) -> Any:
        g = f
        for _ in range(depth - 1):
            g = (lambda h: lambda p: func.grad(lambda q: h(q).sum())(p))(g)
        return g(x) * x

    check(derived, depth, oracle=oracle)


def test_a_linear_function_is_connected_to_its_variable_with_zero_derivative() -> None:
    x = stack(2).tensor(POINT, requires_grad=True)
    slope = (x * 3.0).wrt(x)
    graph, ref = adopted(slope)
    found = program_along(graph, ref, {key(x, slope.tracked_on()[0]): MOVE})
    assert len(graph.leaves) == 1 and found[1:] == [None, None, None]
    product = slope * x
    graph, ref = adopted(product)
    agree(program_along(graph, ref, {key(x, product.tracked_on()[0]): MOVE}), [None, 3.0 * MOVE, 0.0, 0.0])


def test_a_variable_made_of_a_tracked_value_is_that_value() -> None:
    x = stack(1).tensor(POINT, requires_grad=True)
    u = x.sin().require_grad()
    y = u * x
    b = BASE.dressed
    agree(program_along(*adopted(y), {key(x): MOVE}), along(b, lambda v: b.mul(b.sin(v[0]), v[0]), [POINT], [MOVE]))


def test_values_inside_can_be_wanted() -> None:
    x = stack(1).tensor(POINT, requires_grad=True)
    u = (x + 1.0).tanh()
    y = u.exp() * x
    graph = Graph(BASE, [key(u)])
    ref = adopt(graph, y)
    assert set(graph.leaves) == {key(x)} and set(graph.inside) == {key(u)}
    agree(program_along(graph, ref, {key(u): MOVE}), [None, *(np.exp(u.numpy()) * POINT * MOVE**k for k in (1, 2, 3))])


def test_programs_are_adopted_op_by_op() -> None:
    @ng.jit
    def f(x: Any, c: Any) -> Any:
        a, b = ng.split(x.sin() * c, [1])
        return ng.concat([b.detach() * b, a]) * x, x.exp()

    c = ng.tensor([1.0, 2.0, 3.0])

    def g(x: Any) -> Any:
        u, v = f(x * 2.0, c)
        return u * v + x

    check(g)


def test_ops_by_define_are_adopted() -> None:
    lifted = ng.define("lifted(x, y, c)", "bilinear", lambda b, g, y, c: b.scale(b.mul(g, y), c),
                       lambda b, g, x, c: b.scale(b.mul(g, x), c), value=lambda b, x, y, c: b.scale(b.mul(x, y), c))  # fmt: skip
    total = ng.define("total(*xs)", "linear", lambda b, g: g, value=lambda b, *xs: b.add(xs[0], xs[1]))
    cube = ng.define("cube(x)", "elementwise", lambda b, x: b.scale(b.square(x), 3.0), value=lambda b, x: b.mul(x, b.square(x)))
    check(lambda x: lifted(x, x, 2.0) * total(x, x.sin()) + cube(x), oracle=lambda x: 2.0 * x * x * (x + x.sin()) + x * x * x)


def test_rules_given_for_a_function_are_not_enough_to_compute_it_again() -> None:
    @ng.custom_vjp
    def mine(x: Any) -> Any:
        return x * x

    mine.defvjp(lambda x: (x * x, x), lambda x, g: 2.0 * g * x)
    x = stack(1).tensor(POINT, requires_grad=True)
    y = mine(x) * x
    assert unsupported(y) == ["mine"] and unsupported(x * x) == []
    with pytest.raises(UnsupportedNode, match=r"backward: got a graph with mine; expected nodes that can be computed again"):
        adopted(y)


def test_values_that_are_made_again_are_the_same() -> None:
    def f(x: Any) -> Any:
        return (x.sin() * x).exp() * (x + 1.0).tanh()

    x = ng.Autodiff(BASE, checkpointing=ng.Balanced()).tensor(POINT, requires_grad=True)
    again = ng.checkpoint(f)
    plain = stack(1).tensor(POINT, requires_grad=True)
    want = program_along(*adopted(f(plain)), {key(plain): MOVE})
    agree(program_along(*adopted(f(x)), {key(x): MOVE}), want)
    agree(program_along(*adopted(again(plain)), {key(plain): MOVE}), want)


def test_memory_that_was_written_into_is_refused() -> None:
    memory = POINT.copy()
    shared = ng.from_numpy(memory)
    x = stack(1).tensor(POINT, requires_grad=True)
    y = x * shared
    adopted(y)
    memory.flags.writeable = True
    memory[0] = 7.0
    with pytest.raises(MutatedError, match="written into after it was shared"):
        adopted(y)


def test_a_freed_graph_is_refused() -> None:
    x = stack(1).tensor(POINT, requires_grad=True)
    y = (x.sin() * x).sum()
    y.backward(retain_graph=False)
    with pytest.raises(GraphFreedError, match="the graph was freed at 'sum'"):
        adopted(y)


def test_constants_have_no_graph_and_what_was_taken_out_tells_so() -> None:
    x = stack(1).tensor(POINT, requires_grad=True)
    with pytest.raises(NotTrackedError, match="depends on nothing that requires gradients"):
        adopted(x.detach())
    with pytest.raises(NoLevelLeft, match="no level is left that recorded"):
        adopted((x * x).wrt(x) * 2.0)
    with pytest.raises(NoLevelLeft, match="no level is left that recorded"):
        key(x.inner())
    with pytest.raises(LevelError, match="that is not tracked on"):
        key(x, stack(1).tape)


def test_one_of_many_samples_is_refused() -> None:
    def f(p: Any) -> Any:
        x = stack(1).tensor(p, requires_grad=True)
        with pytest.raises(LevelError, match=r"many samples of .*expected one"):
            adopted(x * x)
        return p

    func.vmap(f)(np.ones((2, 3)))


def test_attached_values_are_on_the_older_levels() -> None:
    x = stack(2).tensor(POINT, requires_grad=True)
    w = stack(1).tensor(POINT, requires_grad=True)
    y = (x * x + 1.0).sin() * w + x
    with_levels, alone = Graph(BASE), Graph(BASE)
    ref = adopt(with_levels, y, attached=True)
    assert with_levels.signature(ref) == alone.signature(adopt(alone, y))
    assert not any([*worn(v)] for v in alone.values)
    product = (x * x).sin() * w.inner()
    graph = Graph(BASE)
    program = graph.program(ref := adopt(graph, product, attached=True))
    out = tensor(BASE.dressed, program.run(BASE.dressed, graph.values)[0])
    np.testing.assert_allclose(out.wrt(x).numpy(), 2.0 * POINT**2 * np.cos(POINT**2))


def test_one_program_serves_graphs_that_differ_in_numbers() -> None:
    level = stack(1)

    def signature(f: Any, p: Any) -> Any:
        graph, ref = adopted(f(level.tensor(p, requires_grad=True)))
        return graph.signature(ref)

    f, g = (lambda x: (x.sin() * x)[1:].sum()), (lambda x: (x.sin() * x)[:2].sum())
    assert signature(f, POINT) == signature(f, MOVE) != signature(g, POINT)
    assert signature(f, POINT) != signature(f, np.ones(4))


def test_parameters_cost_no_memory_beside_what_rules_read() -> None:
    level = stack(1)
    x = level.tensor(np.ones((4, 1000)), requires_grad=True)
    index = np.array([0, 2, 3])
    y = x[index]
    assert y.value.node.params and level.tape.stats().bytes == index.nbytes
    z = x.reshape(2, 2000).sum(axis=1)
    assert z.value.node.params == ((1,), False) and level.tape.stats().bytes == index.nbytes
    (z * z).sum().backward(retain_graph=False)
    assert z.value.node.params == ()


def test_single_precision_stays() -> None:
    x = ng.Autodiff(ng.NumpyBackend("float32")).tensor([0.1, 0.2], requires_grad=True)
    y = ((x + 1.0).tanh() * 2.0 + np.float32(1.0)).sum()
    graph, ref = adopted(y)
    assert {str(np.asarray(v).dtype) for v in graph.values} == {"float32"}
    assert program_along(graph, ref, {key(x): np.ones(2, "float32")})[1].dtype == np.float32


def test_long_chains_take_linear_time() -> None:
    x = stack(1).tensor(POINT, requires_grad=True)

    def seconds(n: int) -> float:
        y = x
        for _ in range(n // 2):
            y = (y + 0.1).sin()
        best = float("inf")
        for _ in range(3):
            began = time.process_time()
            adopted(y)
            best = min(best, time.process_time() - began)
        return best

    short, long = seconds(400), seconds(4_000)
    assert long < 30 * short and long < 1.0
