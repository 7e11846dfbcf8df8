"""``Controller.index``: rules of one's own, for nodes that have none and in the place of built-in ones; and what has no rule."""

import numpy as np
import pytest
import torch
from kinds_of_leaves import foreign, levels

import nestgrad as ng
from nestgrad.errors import DTypeError, GraphFreedError, RuleError, UnsupportedNode

SKEWED = ng.define("skewed(x, y)", "elementwise", lambda b, y: b.scale(y, 2.0), lambda b, x: x, value=lambda b, x, y: b.mul(x, y))
"""A product of which the derivative by x is told wrong: so the two orders of mixed derivatives differ."""

DOUBLED = ng.define("doubled(x)", "elementwise", lambda b, x: b.scale(b.cos(x), 2.0), value=lambda b, x: b.sin(x))
"""A sine with twice its derivative."""

CUBED = ng.define("cubed(x)", "elementwise", lambda b, x: b.scale(b.mul(x, x), 3.0), value=lambda b, x: b.powi(x, 3))


class Cube(torch.autograd.Function):
    """A function of a user, of which torch knows the first derivative alone."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3.0 * x * x * g


def cube(graph, node, inputs):
    """A rule for it: what it saved is the value of its operand."""
    (x,) = node.fn.saved_tensors
    return graph.apply("powi", graph.settle(node.key(0), x.detach()), n=3)


POINT = np.array([0.5, 1.0, -2.0])


# nodes without a rule


def test_a_node_of_a_user_has_no_rule_until_one_is_given():
    (x,) = foreign(POINT)
    out = Cube.apply(x.sin()).sum()
    controller = ng.Controller(out)
    assert controller.compatible is False
    with pytest.raises(UnsupportedNode, match=r"got a graph with Cube \(a torch.autograd.Function\); expected nodes.* Try ") as caught:
        controller.backward(2)
    assert isinstance(caught.value, NotImplementedError) and not hasattr(x, "hgrad")
    kind = type(out.grad_fn.next_functions[0][0])
    controller.index[kind] = cube
    assert controller.compatible is True
    for _ in range(2):
        controller.backward(3)
        ng_x = x.detach().clone().requires_grad_()
        ng.backward((ng_x.sin() ** 3).sum(), 3)
        for got, want in zip(x.hgrad, ng_x.hgrad, strict=True):
            assert torch.allclose(got, want, rtol=1e-12)
    controller.index = None
    assert controller.compatible is False and kind not in controller.index


def test_an_op_may_stand_for_a_rule():
    (x,) = foreign(POINT)
    out = Cube.apply(x).sum()
    controller = ng.Controller(out)
    controller.index = {**controller.index, type(out.grad_fn.next_functions[0][0]): CUBED}
    controller.backward(3)
    assert torch.allclose(x.hgrad.blocks[1].data, 6.0 * x.detach()) and np.allclose(x.hgrad.blocks[2].data, 6.0)


def test_all_nodes_without_a_rule_are_named_once():
    (x,) = foreign(POINT)

    class Other(Cube):
        """Another one."""

    out = Cube.apply(x) + Other.apply(Cube.apply(x))
    with pytest.raises(UnsupportedNode, match=r"Cube \(a torch.autograd.Function\), .*Other \(a torch.autograd.Function\); expected"):
        ng.backward(out, 1)


# shown, and asked for, without being computed


def test_what_has_no_rule_is_shown_and_not_refused(capsys):
    (x,) = foreign(POINT)
    controller = ng.Controller(Cube.apply(x.sin()).sum())
    controller.display_graph()
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.endswith(" (not supported)") for line in lines) == 1 and "Cube" in next(s for s in lines if s.endswith("supported)"))
    assert all("not supported" in picture for picture in (controller.to_dot(), controller.to_mermaid(), controller._repr_html_()))


def test_of_levels_the_graph_shows_what_backward_refuses(capsys):
    (x,) = levels(POINT)

    twice = ng.custom_vjp(lambda v: v * 2.0)
    twice.defvjp(lambda v: (v * 2.0, None), lambda saved, g: (g * 2.0,))
    fine = ng.Controller(SKEWED(x, x).sum())
    assert fine.compatible is True
    fine.display_graph()
    assert "not supported" not in capsys.readouterr().out
    controller = ng.Controller(twice(x.sin()).sum())
    controller.display_graph()
    shown = capsys.readouterr().out
    assert controller.compatible is not ("(not supported)" in shown)
    if not controller.compatible:
        with pytest.raises(UnsupportedNode, match=r"got a graph with .*; expected nodes that can be computed again.* Try"):
            controller.backward(1)


def test_a_freed_graph_is_told():
    (x,) = levels(POINT)
    out = (x * x).sin()
    controller = ng.Controller(out)
    out.backward(retain_graph=False)
    with pytest.raises(GraphFreedError, match="freed at 'sin'"):
        controller.backward(1)
    assert controller.compatible is False
    controller.display_graph()
    (t,) = foreign(POINT)
    out = (t * t).sin().sum()
    controller = ng.Controller(out)
    out.backward()
    with pytest.raises(GraphFreedError, match="Try retain_graph=True there"):
        controller.backward(1)
    controller.display_graph()


# built-in rules, replaced


def test_a_built_in_rule_is_replaced_and_comes_back_by_assigning_it_or_none():
    for leaves, key, rule in ((levels, "sin", DOUBLED), (foreign, type(torch.ones(1, requires_grad=True).sin().grad_fn), DOUBLED)):
        (x,) = leaves(POINT)
        controller = ng.Controller(x.sin())
        default = controller.index[key]
        for undo in (lambda c, k=key, d=default: c.index.__setitem__(k, d), lambda c: setattr(c, "index", None)):
            controller.index[key] = rule
            controller.backward(2)
            assert np.allclose(x.hgrad.blocks[0].data, 2.0 * np.cos(POINT)) and np.allclose(x.hgrad.blocks[1].data, -2.0 * np.sin(POINT))
            undo(controller)
            controller.backward(2)
            assert np.allclose(x.hgrad.blocks[0].data, np.cos(POINT)) and np.allclose(x.hgrad.blocks[1].data, -np.sin(POINT))
        ng.backward(x.sin(), 1)
        assert np.allclose(x.hgrad.blocks[0].data, np.cos(POINT))  # each controller has its own


def test_a_rule_that_is_taken_away_is_missing():
    for leaves, key in ((levels, "sin"), (foreign, type(torch.ones(1, requires_grad=True).sin().grad_fn))):
        (x,) = leaves(POINT)
        controller = ng.Controller(x.sin().exp())
        del controller.index[key]
        assert controller.compatible is False
        with pytest.raises(UnsupportedNode, match=r"got a graph with [sS]in"):
            controller.backward(1)


def test_an_op_of_the_same_name_that_is_not_in_the_table_is_itself():
    mine = ng.define("sin(x)", "elementwise", lambda b, x: b.scale(x, 2.0), value=lambda b, x: b.mul(x, x))
    (x,) = levels(POINT)
    ng.backward(mine(x), 2)
    assert np.allclose(x.hgrad.blocks[0].data, 2.0 * np.array(POINT)) and np.allclose(x.hgrad.blocks[1].data, 2.0)


def test_it_stays_for_another_tensor_of_the_same_kind():
    (x,), (t,) = levels(POINT), foreign(POINT)
    controller = ng.Controller(x.sin())
    controller.index["sin"] = DOUBLED
    controller.tensor = x.sin() * 3.0
    controller.backward(1)
    assert np.allclose(x.hgrad.blocks[0].data, 6.0 * np.cos(POINT))
    controller.tensor = t.sin()
    assert "sin" not in controller.index
    controller.backward(1)
    assert np.allclose(t.hgrad.blocks[0].data, np.cos(POINT))


# what is no rule


def test_what_is_no_rule_is_told_when_it_is_set_or_used():
    (x,), (t,) = levels(POINT), foreign(POINT)
    out = t.sin()
    own, other = ng.Controller(x.sin()), ng.Controller(out)
    with pytest.raises(DTypeError, match="index: got a list; expected a mapping of rules"):
        own.index = [1]
    for rules in ({"sin": 3}, {3: DOUBLED}, {"sin": lambda: None}):
        with pytest.raises(RuleError, match=r"index: got .*; expected ops by their names, as nestgrad.define gives them"):
            own.index = rules
    with pytest.raises(RuleError, match=r"index: got skewed\(x, y\) for 'sin'; expected sin\(x\), because it is called as that is"):
        own.index = {**own.index, "sin": SKEWED}
    own.index["sin"] = 3
    with pytest.raises(RuleError, match="index: got 'sin': 3; expected ops"):
        own.backward(1)
    own.index = None
    own.backward(1)
    for rules in ({"sin": DOUBLED}, {type(out.grad_fn): 3}):
        with pytest.raises(RuleError, match=r"index: got .*; expected a rule for a type of grad_fn.* Try c.index"):
            other.index = rules
    for wrong, text in (
        (lambda graph, node, inputs: 3.0, "SinBackward0 gave 3.0; expected what graph.apply gives.* Try return graph.apply"),
        (lambda graph, node, inputs: None, "SinBackward0 gave None; expected what graph.apply gives"),
        (lambda graph, node, inputs: graph.apply("sine", *inputs), "apply: got 'sine'; expected the name of an op of the table.* Try sin"),
        (SKEWED, "SinBackward0, which has 1 operands"),
    ):
        other.index[type(out.grad_fn)] = wrong
        with pytest.raises(RuleError, match=text):
            other.backward(1)


@pytest.mark.parametrize("f", [
    torch.fft.rfft,
    torch.linalg.eigvals,
    torch.linalg.eigvalsh,
    torch.linalg.svdvals,
    torch.linalg.cholesky,
    lambda x: torch.linalg.qr(x)[0],
    torch.linalg.pinv,
    torch.linalg.matrix_exp,
    torch.special.i0,
    lambda x: torch.nn.functional.grid_sample(x[None, None], torch.zeros(1, 2, 2, 2, dtype=x.dtype), align_corners=False),
    lambda x: torch.nn.functional.embedding_bag(torch.tensor([[0, 1]]), x),
    lambda x: torch.sparse.mm(torch.eye(3, dtype=x.dtype).to_sparse(), x),
    lambda x: torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=True),
    torch.compile(torch.sin, backend="aot_eager"),
])  # fmt: skip
def test_what_the_guide_lists_as_unsupported_is_refused_by_name(f):
    x = (torch.eye(3, dtype=torch.float64) + 0.1).requires_grad_()
    out = f(x).abs().sum()
    assert not ng.Controller(out).compatible
    with pytest.raises(UnsupportedNode, match=r"got a graph with \w+.*; expected nodes.* Try controller.index.* torch.autograd.grad"):
        ng.backward(out, 2)
    assert not hasattr(x, "hgrad")


@pytest.mark.parametrize("f", [
    lambda x: torch.linalg.solve(x, x + 1.0),
    torch.linalg.inv,
    torch.linalg.det,
    lambda x: torch.linalg.slogdet(x)[1],
    lambda x: torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=False),
])  # fmt: skip
def test_what_the_guide_lists_as_supported_is(f):
    x = (torch.eye(3, dtype=torch.float64) + 0.1).requires_grad_()
    out = f(x).exp().sum()
    assert ng.Controller(out).compatible
    ng.backward(out, 2)
    (want,) = torch.autograd.grad(out, x, create_graph=True)
    (row,) = torch.autograd.grad(want.sum(), x, retain_graph=True)
    assert torch.allclose(x.hgrad[0][0], want, rtol=1e-12) and torch.allclose(x.hgrad[1].sum((0, 1, 2)), row, rtol=1e-10)
    assert x.grad is None
    out.backward()  # the graph is there as before
    assert torch.allclose(x.grad, want, rtol=1e-12)


def test_a_rule_may_read_what_the_node_has_kept():
    """The sum before it keeps neither itself nor the constant, so the value of the operand is known to the node alone."""
    (x,) = foreign(POINT)
    controller = ng.Controller(Cube.apply(x + torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)))
    kind = type(controller.tensor.grad_fn)
    controller.index[kind] = lambda graph, node, inputs: graph.apply("powi", *inputs, n=3)
    with pytest.raises(UnsupportedNode, match=r"did not keep a value .* operand of \w+; .* Try, in a rule of one's own, graph.settle"):
        controller.backward(1)
    controller.index[kind] = cube
    controller.backward(2)
    moved = np.array(POINT) + [1.0, 2.0, 3.0]
    assert np.allclose(x.hgrad.blocks[0].data, 3.0 * moved**2) and np.allclose(x.hgrad.blocks[1].data, 6.0 * moved)


# both orders


def test_both_orders_are_computed_when_the_rules_are_not_symmetric():
    """Of a pair the later variable is differentiated by first: (x, y) is the derivative by x of that by y, which has the right rule."""
    x, y = levels([0.5, 1.0], [2.0, 3.0])
    out = SKEWED(x, y)
    controller = ng.backward(out, 2, crossings=True, keep_schwarz=True)
    assert np.allclose(controller.fetch_hgrad((x, y))[0].numpy(), _diagonal([1.0, 1.0]))
    assert np.allclose(controller.fetch_hgrad((y, x))[0].numpy(), _diagonal([2.0, 2.0]))
    controller.backward(2, crossings=True)  # one of the two stands for both
    one, other = (controller.fetch_hgrad(key)[0].numpy() for key in ((x, y), (y, x)))
    assert np.array_equal(one, other.transpose(0, 2, 1))


def test_both_orders_of_a_torch_graph_with_a_rule_that_is_not_symmetric():
    x, y = foreign([0.5, 1.0], [2.0, 3.0])
    out = x * y
    controller = ng.Controller(out)
    controller.index[type(out.grad_fn)] = SKEWED
    controller.backward(2, crossings=True, keep_schwarz=True)
    assert np.allclose(controller.fetch_hgrad((x, y))[0], _diagonal([1.0, 1.0]))
    assert np.allclose(controller.fetch_hgrad((y, x))[0], _diagonal([2.0, 2.0]))
    controller.require_grad_((x, y))
    controller.backward(2, keep_schwarz=True)
    assert np.allclose(controller.fetch_hgrad((y, x))[0], _diagonal([2.0, 2.0]))


@pytest.mark.parametrize("leaves", [levels, foreign])
def test_with_symmetric_rules_both_orders_agree(leaves):
    x, y = leaves([0.5, 1.0], [2.0, 3.0])
    out = (x * y).sin() + (x.exp() * y).sum()
    controller = ng.backward(out, 3, crossings=True, keep_schwarz=True)
    for key, turn in (((x, y), (0, 2, 1)), ((x, x, y), (0, 1, 3, 2)), ((y, x, y), (0, 2, 1, 3))):
        swapped = [key[k - 1] for k in turn[1:]]
        got, want = (np.asarray(controller.fetch_hgrad(k)[0].tolist()) for k in (key, swapped))
        assert np.allclose(got, want.transpose(turn), rtol=1e-12)


def _diagonal(values):
    """Of an output of two entries: each depends on entries at its own place."""
    dense = np.zeros((2, 2, 2))
    for k, value in enumerate(values):
        dense[k, k, k] = value
    return dense
