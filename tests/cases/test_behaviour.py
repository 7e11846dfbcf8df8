"""Behaviour of graphs, as Burn's own tests ask for it, in nestgrad's terms.

Differences on purpose: a backward pass here consumes nothing unless it is told to (``retain_graph=False`` stands for Burn's
consumption), a look-up of a tensor that is not tracked is an error of its own, and ``detach`` gives a constant, never a new leaf.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from orders import check

import nestgrad as ng
from nestgrad.errors import DTypeError, GraphFreedError, NotConnectedError, NotTrackedError

CASES = {case["name"] for case in json.loads((Path(__file__).parent / "op_cases.json").read_text())["behaviour_cases"]}


def test_every_behaviour_case_has_a_test():
    tests = {name.removeprefix("test_").partition("__")[0] for name in globals() if "__" in name}
    assert (len(CASES), CASES - tests) == (17, set())


def _leaves(stack: Any, *values: float) -> list[Any]:
    S = stack(1)
    return [S.tensor([v], requires_grad=True) for v in values]


def test_independent_trees__a_graph_does_not_care_about_another(stack):
    a, b, c, d, e, f, g, h = _leaves(stack, 2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0)
    first, second = (a * b) * (c * d), (e * f) * (g * h)
    first.backward(retain_graph=False)
    grads = second.backward(retain_graph=False)
    check([x.grad(grads).item() for x in (e, f, g, h)], [13 * 17 * 19, 11 * 17 * 19, 11 * 13 * 19, 11 * 13 * 17])


def _crossover(stack: Any) -> tuple[Any, ...]:
    a, b, c, d, e, f = _leaves(stack, 2.0, 3.0, 5.0, 7.0, 11.0, 13.0)
    m, s = a * b, e * f
    return m * (c * d), m * s, s, e


def test_crossover_root_unavailable__a_consumed_part_is_an_error_not_a_shorter_gradient(stack):
    first, second, _, e = _crossover(stack)
    first.backward(retain_graph=False)
    with pytest.raises(GraphFreedError, match=r"freed at 'mul' \(shape \(1,\)\) .* Try retain_graph=True"):
        second.backward(retain_graph=False)
    with pytest.raises(GraphFreedError, match="freed at 'mul'"):
        e.grad(second.backward())
    with pytest.raises(GraphFreedError, match="freed at 'mul'"):
        second.backward(wrt=[e])


def test_crossover_root_unavailable__nothing_is_consumed_by_default(stack):
    first, second, _, e = _crossover(stack)
    first.backward()
    check(e.grad(second.backward()), [2.0 * 3.0 * 13.0])


def test_crossover_root_unavailable__what_was_begun_before_does_not_go_on_after(stack):
    """A lazy pass that has answered one look-up meets the freed part at the next: an error, not the half that it had."""
    a, b = _leaves(stack, 2.0, 3.0)
    root = (a * b).sin() * b
    grads = root.backward()
    first = a.grad(grads).item()
    root.backward(retain_graph=False)
    assert a.grad(grads).item() == first
    with pytest.raises(GraphFreedError, match="freed at"):
        b.grad(grads)


def test_crossover_referred_subtree__a_part_that_was_not_consumed_still_works(stack):
    first, _, s, e = _crossover(stack)
    first.backward(retain_graph=False)
    check(e.grad(s.backward()), [13.0])


def _three_trees(stack: Any) -> tuple[Any, ...]:
    a, b, c, d, g, h, i, j = _leaves(stack, 2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0)
    p, q = c * d, i * j
    return (a * b) * p, p * q, (g * h) * q, a, g


def test_three_trees_last_usable__disjoint_trees_both_work(stack):
    first, _, third, a, g = _three_trees(stack)
    check(a.grad(first.backward(retain_graph=False)), [3.0 * 35.0])
    check(g.grad(third.backward(retain_graph=False)), [13.0 * 17.0 * 19.0])


def test_three_trees_middle_unavailable__the_tree_between_lost_its_part(stack):
    first, second, _, _, _ = _three_trees(stack)
    first.backward(retain_graph=False)
    with pytest.raises(GraphFreedError, match="freed at 'mul'"):
        second.backward(retain_graph=False)


def test_self_referencing__a_node_with_two_paths_is_run_once(stack):
    a, b, c = _leaves(stack, 2.0, 3.0, 5.0)
    m = a * b
    grads = (m * (c * m)).backward(retain_graph=False)
    check([x.grad(grads).item() for x in (a, b, c)], [2 * 5 * 2 * 9, 2 * 5 * 4 * 3, 36])


def test_detach_non_impacting__what_stands_beside_a_detached_value_has_its_gradient(stack):
    a, b, c = _leaves(stack, 2.0, 3.0, 5.0)
    check(c.grad(((a * b).detach() * c).backward()), [6.0])


def test_missing_require_grad_after_cleanup__untracked_inputs_have_no_gradient(stack):
    """Burn gives None for them; here the look-up says what to do."""
    S = stack(1)
    a, b, c = S.tensor([2.0], requires_grad=True), S.tensor([3.0]), S.tensor([5.0])
    root = (a * b) * c
    other = _leaves(stack, 1.0)[0]
    (other * other).backward(retain_graph=False)
    grads = root.backward(retain_graph=False)
    check(a.grad(grads), [15.0])
    for x in (b, c):
        assert x not in grads
        with pytest.raises(NotTrackedError, match=r"shape \(1,\) is tracked on no level\. Try stack\.tensor\(data, requires_grad=True\)"):
            x.grad(grads)


def test_detach_of_leaf_after_cleanup__a_detached_leaf_is_a_constant(stack):
    """In Burn detach makes a new leaf that keeps require_grad; here it is a constant on all levels, and the old leaf is not reached."""
    a, b, c = _leaves(stack, 2.0, 3.0, 5.0)
    other = _leaves(stack, 1.0)[0]
    root = (a * b) * c.detach()
    (other * other).backward(retain_graph=False)
    grads = root.backward()
    check([a.grad(grads).item(), b.grad(grads).item()], [15.0, 10.0])
    assert grads.get(c) is None
    with pytest.raises(NotConnectedError):
        c.grad(grads)
    with pytest.raises(NotTrackedError):
        c.detach().grad(grads)


def test_deletables_propagate__everything_after_a_consumed_node_is_gone(stack):
    a, b = _leaves(stack, 2.0, 3.0)
    m = a * b
    del a, b
    e = m.exp()
    last = e.log()
    m.backward(retain_graph=False)
    for root in (e, last):
        with pytest.raises(GraphFreedError, match="freed at 'mul'"):
            root.backward(retain_graph=False)


def test_node_seen_twice__found_again_deeper_it_is_still_there(stack):
    a, b = _leaves(stack, 0.02, 0.03)
    e0, e1 = a.exp(), b.exp()
    x = e0 * e1
    root = e1.exp().exp().exp().log().exp().log().exp().log().log()  # of modest size, and as deep
    e0.backward(retain_graph=False)
    check(b.grad(root.backward(retain_graph=False)), np.exp(0.03 + np.exp([0.03])))
    with pytest.raises(GraphFreedError):
        x.backward(retain_graph=False)


def test_grad_replace__a_replaced_gradient_is_given_as_it_is(stack):
    a, b = _leaves(stack, 2.0, 3.0)
    grads = (a * b).backward()
    check(a.grad(grads), [3.0])
    a.grad_replace(grads, a.backend.tensor([42.0]))
    check(a.grad(grads), [42.0])
    check(b.grad(grads), [2.0])


@pytest.mark.parametrize("levels", [1, 2])
def test_grad_off_level__a_gradient_lives_one_level_further_in(stack, levels):
    """Burn's one_hot on an autodiff device reports that device; here integers and booleans are constants, and cannot be otherwise."""
    S = stack(levels)
    logits = S.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    onehot = S.tensor([[0, 1], [1, 0]])
    g = logits.grad((logits * onehot).sum().backward())
    check(g, [[0.0, 1.0], [1.0, 0.0]])
    assert (logits.level, g.level, onehot.level, (logits > 2.0).level) == (levels, levels - 1, 0, 0)
    for data in ([0, 1], [True, False]):
        with pytest.raises(DTypeError, match="expected a floating one, since integers and booleans have no derivative"):
            S.tensor(data, requires_grad=True)


BINARY = {
    "mul": lambda w, x: w * x,
    "div": lambda w, x: w / x,
    "sub": lambda w, x: w - x,
    "add": lambda w, x: w + x,
    "matmul": lambda w, x: w @ x,
    "mask_where": lambda w, x: ng.where(x.detach() > 0.0, w, x),
}


@pytest.mark.parametrize("op", BINARY.values(), ids=BINARY)
def test_broadcast_shapes__a_gradient_has_the_shape_of_its_tensor(stack, op):
    S = stack(2)
    w, x = S.tensor(np.zeros((16, 5, 5)), requires_grad=True), S.tensor(np.zeros((4, 5, 5)), requires_grad=True)
    y = op(w[0:1], x)
    assert y.shape == (4, 5, 5)
    grads = y.backward()
    for v in (w, x):
        g = v.grad(grads)
        assert g.shape == v.shape and v.grad(g.backward()).shape == v.shape


def test_conv1d_dropped_tail__entries_that_no_window_covers_have_gradient_zero(stack):
    """Windows of 4 with stride 4 over 11 entries, written with reshape; the convolution itself is below."""
    S = stack(1)
    x, w = S.tensor(np.arange(11.0).reshape(1, 1, 11), requires_grad=True), S.tensor([[[1.0, 2.0, 3.0, 4.0]]], requires_grad=True)
    windows = x[:, :, :8].reshape(1, 1, 2, 4)
    grads = (windows * w[:, :, None, :]).sum().backward()
    check(x.grad(grads), [[[1.0, 2.0, 3.0, 4.0] * 2 + [0.0] * 3]])
    check(w.grad(grads), [[[4.0, 6.0, 8.0, 10.0]]])


def test_conv1d_dropped_tail__of_a_convolution(stack):
    S = stack(1)
    x, w = S.tensor(np.arange(11.0).reshape(1, 1, 11), requires_grad=True), S.tensor([[[1.0, 2.0, 3.0, 4.0]]], requires_grad=True)
    grads = ng.nn.conv1d(x, w, stride=4).sum().backward()
    check(x.grad(grads), [[[1.0, 2.0, 3.0, 4.0] * 2 + [0.0] * 3]])
    check(w.grad(grads), [[[4.0, 6.0, 8.0, 10.0]]])


def test_mask_select_empty__nothing_chosen_has_gradient_zero(stack):
    x = stack(2).tensor([1.0, 2.0, 3.0], requires_grad=True)
    chosen = x[np.array([False, False, False])]
    assert chosen.shape == (0,)
    g = chosen.sum().wrt(x)
    assert np.array_equal(g.numpy(), np.zeros(3)) and np.array_equal(g.wrt(x).numpy(), np.zeros(3))


def test_embedding_shared_multithread__threads_build_and_look_up_as_one_would(stack):
    def build(pool: Any) -> list[Any]:
        S = stack(2)
        a, b = (S.tensor(v, requires_grad=True) for v in ([[0.1, 0.7], [0.2, 0.3]], [[0.4, 0.7], [0.2, 0.3]]))
        t5 = ((a @ b) @ b) @ (a @ b)
        both = (lambda: (t5 @ b) @ a, lambda: (t5 @ a) @ b)
        left, right = pool.map(lambda f: f(), both) if pool else (f() for f in both)
        grads = (left @ right).backward()
        looked = list(pool.map(lambda x: x.grad(grads), [a, b] * 8)) if pool else [x.grad(grads) for x in (a, b)] * 8
        return [g.numpy() for g in (*looked, looked[0].wrt(a), looked[1].wrt(b))]

    alone = build(None)
    with ThreadPoolExecutor(4) as pool:
        for _ in range(10):
            for got, right in zip(build(pool), alone, strict=True):
                check(got, right, rtol=1e-12)
