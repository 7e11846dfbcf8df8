"""PyTorch's graph of a tensor, adopted: the walk, what is refused, and that nothing of torch's is touched."""

import gc
import weakref
from collections import Counter

import pytest
import torch
from adopted import Run, compare, reals

import nestgrad as ng
from nestgrad.backends.torch import graph as room
from nestgrad.errors import DTypeError, GraphFreedError, MutatedError, UnsupportedNode
from nestgrad.partials.graph import Graph

BASE = ng.TorchBackend(dtype="float64")


def adopted(x, wanted=(), attached=False):
    """The graph of ``x`` written down."""
    graph = Graph(BASE, wanted)
    return graph, room.adopt(graph, x, room.index(), attached)


class Own(torch.autograd.Function):
    """A sine, without a rule of ours."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.cos()


# what is known by what


def test_hook_of_backends():
    assert ng.NumpyBackend().graphs is None
    assert BASE.graphs is room


def test_tracked_and_keys():
    x = reals(3)
    y = x * 2.0
    assert room.tracked(x) and room.tracked(y)
    assert not room.tracked(x.detach()) and not room.tracked(3.0) and not room.tracked(torch.ones(2))
    assert room.key(x) is x
    assert room.key(y) == (y.grad_fn, 0) == room.key(y)
    assert len({room.key(part) for part in torch.var_mean(y, 0)}) == 2


def test_values_and_keys_of_an_adopted_graph():
    x = reals(3)
    y = (x * 2.0).tanh()
    graph, root = adopted(y)
    assert [*graph.leaves] == [x]
    assert graph[room.key(y)] is root
    assert root.shape == (3,) and torch.equal(root.known, y.detach())
    assert not root.known.requires_grad and not any(v.requires_grad for v in graph.values)


def test_a_leaf_is_its_own_graph():
    x = reals(3)
    graph, root = adopted(x)
    assert root is graph[x] and torch.equal(root.known, x.detach())


def test_values_keep_their_graphs_if_asked():
    x = reals(3)
    y = (x * x + 1.0).exp()
    graph, root = adopted(y, attached=True)
    assert graph.values[graph.leaves[x]] is x
    assert root.known.grad_fn is y.grad_fn


@pytest.mark.parametrize("saved", [True, False], ids=["known", "unknown"])
def test_derivatives_by_values_inside(saved):
    x = reals(3)
    u = x.exp() if saved else x + 1.0
    y = (u * u * u).sum()
    graph, root = adopted(y, wanted=[room.key(u)])
    values = list(graph.values)
    place = graph.inside[room.key(u)]
    assert values[place].shape == (3,) and values[place].dtype == torch.float64 and not values[place].any()
    run = Run.__new__(Run)
    run.base, run.program, run.values, run.unknown = BASE, graph.program(root), values, graph.unknown
    run.variables, run.places = [u.detach()], [place]
    assert torch.allclose(run.gradient(torch.ones((), dtype=torch.float64))[0], 3 * u.detach() ** 2)


# the rules


def test_rules_are_for_nodes_that_there_are():
    types = vars(torch._C._functions)
    assert [name for name in room.RULES if name not in types and not name.endswith("_copy")] == []
    assert room.index()[type(reals(2).tanh().grad_fn)] is room.RULES["TanhBackward0"]


def test_each_node_has_one_rule():
    parts = [part.RULES for part in room.PARTS]
    assert [name for name, n in Counter(name for rules in parts for name in rules).items() if n > 1] == []


def test_a_rule_of_the_users_own():
    x = reals(3)
    y = Own.apply(x * 2.0)
    index = dict(room.index())
    index[type(y.grad_fn)] = lambda graph, node, inputs: graph.apply("sin", node.behind(0, lambda: node.fn.saved_tensors[0].detach()))
    graph = Graph(BASE)
    root = room.adopt(graph, y, index)
    program = graph.program(root)
    assert torch.allclose(program.run(BASE, graph.values)[0], y.detach())


# what is refused


def test_all_unsupported_nodes_are_named():
    x = reals(3)
    y = Own.apply(Own.apply(x).sin() + torch.heaviside(x, x) + torch.igamma(torch.ones(3), x.abs()))
    assert room.unsupported(y, room.index()) == ["Own (a torch.autograd.Function)", "NotImplemented", "IgammaBackward0"]
    with pytest.raises(UnsupportedNode, match=r"a graph with Own \(a torch.autograd.Function\), NotImplemented, IgammaBackward0; expected"):
        adopted(y)
    assert room.unsupported(x, room.index()) == room.unsupported(x.sin(), room.index()) == []


def test_a_freed_graph():
    x = reals(3)
    y = (x * x).sin()
    y.sum().backward()
    with pytest.raises(GraphFreedError, match=r"freed at \w+Backward0 by an earlier backward\(\).*Try retain_graph=True"):
        adopted(y)


def test_a_freed_graph_of_which_nothing_is_needed():
    x = reals(3)
    y = (x + 1.0).neg()
    y.sum().backward()
    compare(lambda x: y, x, oracle=lambda x: -x - 1.0)


def test_a_saved_value_that_was_written_into():
    x = reals(3)
    u = x * 2.0
    y = u.sin()
    u.add_(1.0)
    with pytest.raises(MutatedError, match=r"'self', which SinBackward0 saved, was written into afterwards.*Try out-of-place"):
        adopted(y)


def test_a_leaf_that_was_written_into():
    x = reals(3)
    y = x * x
    with torch.no_grad():
        x.add_(1.0)
    with pytest.raises(MutatedError, match="MulBackward0 saved"):
        adopted(y)


UNSAVED = {
    "sigmoid": torch.sigmoid, "expm1": torch.expm1, "relu": torch.relu, "tanh": torch.tanh, "exp": torch.exp, "sqrt": torch.sqrt,
    "reciprocal": torch.reciprocal, "scale": lambda x: x * 3.0, "rsqrt": lambda x: torch.rsqrt(x + 2.0), "cumsum": lambda x: x.cumsum(0),
    "max": lambda x: x.max(0)[0], "softmax": lambda x: x.softmax(0), "log_softmax": lambda x: x.log_softmax(0), "tan": torch.tan,
    "exp2": torch.exp2, "sort": lambda x: x.sort()[0], "roll": lambda x: x.roll(1), "mean": torch.mean,
}  # fmt: skip


@pytest.mark.parametrize("f", UNSAVED.values(), ids=UNSAVED)
def test_what_torch_did_not_save_of_a_leaf_is_not_read(f):
    """A leaf may be written into once torch's own derivatives do not read it: they are those at the values that were computed with."""
    x = reals(4, low=0.1, high=0.9)
    before = x.detach().clone()
    y = f(x)
    weights = torch.linspace(0.5, 1.0, y.numel(), dtype=torch.float64).reshape(y.shape)
    along = torch.linspace(1.0, 2.0, 4, dtype=torch.float64)
    truth = torch.autograd.functional.vhp(lambda v: (f(v) * weights).sum(), before, along)[1]
    with torch.no_grad():
        x.copy_(torch.linspace(-3.0, 2.0, 4, dtype=torch.float64))
    got = Run(y, [x]).gradient(weights, [along])[0]
    assert torch.allclose(got, truth, rtol=1e-12, atol=1e-14)


def test_complex_numbers():
    x = reals(3)
    with pytest.raises(DTypeError, match="complex"):
        adopted(torch.complex(x, x))
    with pytest.raises(DTypeError, match="complex"):
        adopted(torch.complex(x.detach(), x.detach()).requires_grad_().abs().sum())


# torch's own is not touched


def test_nothing_of_torch_is_touched():
    x = reals(3)
    y = (x * x).sin().sum()
    with torch.no_grad():
        adopted(y)
        run = Run(y, [x])
        run.gradient(torch.ones((), dtype=torch.float64))
    assert x.grad is None and x.requires_grad
    (g,) = torch.autograd.grad(y, x)
    assert torch.allclose(g, 2 * x * (x * x).cos())


def test_under_no_grad_as_with_it():
    x = reals(3)
    y = ((x * x).tanh() + x.exp()).sum()
    with torch.no_grad():
        inside = Run(y, [x]).gradient(torch.ones((), dtype=torch.float64))[0]
    assert torch.equal(inside, Run(y, [x]).gradient(torch.ones((), dtype=torch.float64))[0])


def test_an_adopted_graph_is_let_go():
    x = reals(3)
    y = (x * x).tanh().sum()
    graph, root = adopted(y)
    node, leaf = weakref.ref(graph), weakref.ref(x)
    del graph, root, y, x
    gc.collect()
    assert node() is None and leaf() is None


# deep and shared graphs


def test_a_chain_of_ten_thousand():
    x = reals()
    y = x
    for _ in range(10_000):
        y = y * 1.0001
    graph, root = adopted(y)
    assert graph[room.key(y)] is root
    assert len(graph.values) == 10_001


def test_shared_values_are_walked_once():
    """Two ways through each of 100 blocks, 2^100 through all of them."""
    x = reals(2)
    u = x
    for _ in range(100):
        u = torch.sin(u) + u / 2
    run = Run(u, [x])
    assert len([step for step in run.program.instructions if step.op.name == "sin"]) == 100
    (truth,) = torch.autograd.grad(u.sum(), x)
    assert torch.allclose(run.gradient(torch.ones_like(u))[0], truth)


SHARED = {
    "square": lambda x: x * x, "twice": lambda x: x + x, "of one inside": lambda x: (u := x.exp()) * u + u,
    "its sum": lambda x: x * x.sum(), "unit": lambda x: x / x.norm(), "where": lambda x: torch.where(x > 0, x, x * x) * x,
    "diamond": lambda x: (x.sum() * x).tanh() * x.sum(),
}  # fmt: skip


@pytest.mark.parametrize("f", SHARED.values(), ids=SHARED)
def test_one_tensor_in_several_places(f):
    compare(f, reals(3))


def test_writes_into_what_nobody_saved():
    x = reals(3)

    def f(x):
        u = x * 2.0
        u += x
        u *= 3.0
        return u.exp_().mul(x)

    compare(f, x)


COPIES = {
    "clone": torch.clone, "product with 1": lambda u: u * 1, "sum with 0": lambda u: u.add(0.0), "running sum": lambda u: u.cumsum(0),
    "expanded": lambda u: u.expand(2, 3).contiguous(),
}  # fmt: skip


@pytest.mark.parametrize("f", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("inside", [False, True], ids=["of a leaf", "inside"])
def test_writes_that_are_not_recorded_count_from_then_on(f, inside):
    """As derivatives of torch do: they are those of what was recorded, at the values that were there when it was."""

    def g(x):
        u = f(x.exp() if inside else x)
        with torch.no_grad():
            u.mul_(2.0)
        return (u * u).sin() * u

    compare(g, reals(3))


def test_leaves_that_are_views_of_one_memory():
    whole = reals(4).detach()
    a, b = whole[:2].requires_grad_(), whole[2:].requires_grad_()
    compare(lambda a, b: a * b * b, a, b)


def test_no_variable_but_one():
    x, y = reals(3), reals(3, seed=1)
    compare(lambda x, y: (x * y.detach()).tanh() * x, x, y)
