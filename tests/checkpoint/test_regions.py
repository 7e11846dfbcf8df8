"""A region is the function that it was made of: what it returns, how often it runs, what its derivatives are connected to."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from counting import CountingBackend

import nestgrad as ng
from nestgrad import Autodiff, Balanced, Tensor, checkpoint
from nestgrad.backends import NumpyBackend
from nestgrad.errors import GraphFreedError, LevelError, MutatedError, NoLevelLeft, NotConnectedError
from nestgrad.levels.recipe import Remade, current

NUMPY = NumpyBackend()
X = np.array([[0.3, -0.7, 1.1], [0.2, 0.5, -0.4]])
W = np.array([[0.5, -0.3, 0.8], [0.2, 0.9, -0.6], [-0.1, 0.4, 0.7]])


def three() -> Autodiff:
    return Autodiff(Autodiff(Autodiff(NUMPY)))


def same(run: Callable[[Callable[[Any], Any]], Any]) -> None:
    """``run(wrap)`` gives the same numbers to the last bit, levels and marks, whether ``wrap`` makes regions or not."""
    for ours, plain in zip(run(checkpoint), run(lambda f: f), strict=True):
        np.testing.assert_array_equal(ours.numpy(), plain.numpy(), strict=True)
        assert [tape.number for tape in ours.tracked_on()] == [tape.number for tape in plain.tracked_on()]
        assert sorted(tape.number for tape in ours.marks) == sorted(tape.number for tape in plain.marks)


def orders(y: Tensor, *xs: Tensor) -> list[Tensor]:
    """The derivatives by ``xs``, those of a function of these, and so on down to the innermost level."""
    found = [y]
    while y.level:
        grads = y.sum().backward()
        gs = [x.grad(grads) for x in xs]
        found += gs
        y = gs[0].square().sum()
        for g in gs[1:]:
            y = y + (g * g.sin()).sum()
    return found


# what runs


def test_the_function_runs_once():
    """So what it does besides happens once, whatever passes make again."""
    calls: list[Tensor] = []

    def f(x: Tensor) -> Tensor:
        calls.append(x)
        return (x.sin() * x).tanh() if len(calls) == 1 else x

    x = three().tensor(X, requires_grad=True)
    orders(checkpoint(f)(x), x)
    assert len(calls) == 1


def test_random_numbers_are_drawn_once():
    def run(wrap: Any) -> list[Tensor]:
        g = ng.random.generator(0)

        def dropout(x: Tensor) -> Tensor:
            return (x.sin() * ng.where(ng.random.uniform(X.shape, g) > 0.5, 2.0, 0.0)).tanh() * ng.random.normal(X.shape, g)

        x = three().tensor(X, requires_grad=True)
        return [*orders(wrap(dropout)(x), x), ng.random.normal(3, g)]

    same(run)


def test_all_inputs_cost_one_recomputation():
    """However they are looked up."""
    backend = CountingBackend()
    stack = Autodiff(backend)
    x, w, v = (stack.tensor(a, requires_grad=True) for a in (X, W, W))
    y = checkpoint(lambda x, w, v: ((x @ w).tanh() @ v).sin())(x, w, v).sum()
    assert backend.counts["tanh"] == 1
    grads = y.backward()
    for t in (v, x, w, x, v):
        t.grad(grads)
    assert (backend.counts["tanh"], backend.counts["sin"], backend.counts["matmul"]) == (2, 1, 4)  # the answer of sin is read by nobody


def test_a_look_up_of_named_inputs_computes_no_other():
    backend = CountingBackend()
    stack = Autodiff(backend)
    x, w = stack.tensor(X, requires_grad=True), stack.tensor(W, requires_grad=True)
    checkpoint(lambda x, w: (x @ w).tanh())(x, w).sum().backward(wrt=[x])
    assert backend.counts["product"] == 1


def test_a_pass_that_does_not_come_by_makes_nothing_again():
    backend = CountingBackend()
    stack = Autodiff(backend)
    x = stack.tensor(X, requires_grad=True)
    y = checkpoint(lambda x: x.tanh().tanh())(x)
    y.sum().backward(wrt=[y])
    assert backend.counts["tanh"] == 2


def test_what_the_function_captures_may_change_afterwards():
    """What it read is what counts, as without a region."""

    def run(wrap: Any) -> list[Tensor]:
        array, scale = X.copy(), [2.0]
        x = three().tensor(X, requires_grad=True)
        y = wrap(lambda x: (x.sin() * array).tanh() * scale[0])(x)
        array += 1.0
        scale[0] = 3.0
        return orders(y, x)

    same(run)


def test_ops_that_a_policy_stores_run_once():
    backend = CountingBackend()
    for store, count in ((), 2), (("erf",), 1):
        x = Autodiff(backend, checkpointing=Balanced(store=store)).tensor(X, requires_grad=True)
        y = (x.erf() * x.sin()).sum()
        for _ in range(40):
            x.cos().cos()  # so that the answer does not happen to be warm
        backend.restart()
        y.wrt(x)
        assert backend.counts["erf"] == count - 1


# what goes in and out


def test_structures():
    def run(wrap: Any) -> list[Tensor]:
        def f(pair: Any, *, scale: Any, k: int) -> Any:
            x, w = pair
            return {"a": (x @ w).tanh(), "b": [x * scale["c"] * k, (w, None)]}

        stack = three()
        x, w, c = (stack.tensor(a, requires_grad=True) for a in (X, W, 0.3))
        out = wrap(f)((x, w), scale={"c": c}, k=2)
        assert out["b"][1][1] is None
        return orders((out["a"] * out["b"][0]).sum() + out["b"][1][0].square().sum(), x, w, c)

    same(run)


def test_outputs_that_are_inputs():
    def run(wrap: Any) -> list[Tensor]:
        stack = three()
        x, w = stack.tensor(X, requires_grad=True), stack.tensor(X, requires_grad=True)
        a, b, c = wrap(lambda x: (x, w, x * 2.0))(x)
        return orders((a * b * c).sum(), x, w)

    same(run)


def test_an_input_used_twice_and_given_twice():
    def run(wrap: Any) -> list[Tensor]:
        x = three().tensor(X, requires_grad=True)
        y = wrap(lambda a, b: (a.sin() * b + a * x).tanh() * a)(x, x)
        return orders((y * x.sin()).sum(), x)

    same(run)


def test_constants_in_and_out():
    def run(wrap: Any) -> list[Tensor]:
        x, c = three().tensor(X, requires_grad=True), ng.tensor(X)
        y, z, mask = wrap(lambda x, c: (x * c.var(axis=0).sin(), c.exp(), x > 0))(x, c)
        assert z.level == 0
        return [*orders(ng.where(mask, y * z, y).sum(), x), z, mask]

    same(run)


def test_a_fast_kernel_for_constants_stays_the_one_that_runs():
    class Fast(NumpyBackend):
        def var(self, x: Any, axes: Any, correction: int, keepdims: bool = False) -> Any:
            return np.asarray(np.var(x, axis=axes, ddof=correction, keepdims=keepdims) + 1.0)  # recognizable

    x, c = Autodiff(Fast()).tensor(X, requires_grad=True), Fast().tensor(X)
    g = checkpoint(lambda x: (x * c.var(axis=0) * (x > 0).astype("float64").var(axis=0)).sin())(x).sum().wrt(x)
    plain = (x * c.var(axis=0) * (x > 0).astype("float64").var(axis=0)).sin().sum().wrt(x)
    np.testing.assert_array_equal(g.numpy(), plain.numpy())


def test_what_leaves_by_another_door_is_right():
    """A value that the function gives to somebody else: made again when it is read."""
    kept: list[Tensor] = []

    def f(x: Tensor) -> Tensor:
        kept.append(x.sin().exp())
        return kept[0] * x

    stack = Autodiff(Autodiff(NUMPY))
    x = stack.tensor(X, requires_grad=True)
    y = checkpoint(f)(x)
    (u,) = kept
    np.testing.assert_array_equal(u.numpy(), np.exp(np.sin(X)))
    np.testing.assert_array_equal((u * y).sum().wrt(x).numpy(), (lambda v: (v * (v * x)).sum().wrt(x))(x.sin().exp()).numpy())


def test_what_is_detached_keeps_nothing():
    kept: list[Tensor] = []
    x = Autodiff(NUMPY, checkpointing=Balanced()).tensor(X, requires_grad=True)
    checkpoint(lambda x: kept.append(x.sin().detach()) or x * 1.0)(x)
    kept.append(x.cos().detach())
    assert not any(isinstance(t.value, Remade) for t in kept)


# what derivatives are connected to


def test_an_output_that_does_not_depend_on_an_input():
    x, w = three().tensor(X, requires_grad=True), three().tensor(W, requires_grad=True)
    y, z = checkpoint(lambda x, w: (x.sin() * 2.0, w.cos()))(x, w)
    grads = y.sum().backward()
    assert w not in grads and x in grads and grads.get(w) is None
    with pytest.raises(NotConnectedError, match="does not depend on this tensor"):
        w.grad(grads)
    assert z.sum().wrt(w).shape == (3, 3)


def test_zero_curvature_is_zero():
    def run(wrap: Any) -> list[Tensor]:
        x = three().tensor(X, requires_grad=True)
        return orders(wrap(lambda x: x * 3.0 + 1.0)(x), x)

    same(run)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_captured_tensors_on_some_levels(number):
    def run(wrap: Any) -> list[Tensor]:
        stack = three()
        x = stack.tensor(X, requires_grad=True)
        w = stack.tensor(W, requires_grad=True, levels=[number])
        y = wrap(lambda x: (x @ w).tanh() @ w)(x)
        found = [y]
        for _ in range(3):
            grads = y.sum().backward()
            found += [g for t in (x, w) if (g := grads.get(t) if t.tracked_on()[0] in y.tracked_on() else None) is not None]
            y = x.grad(grads).square().sum()
        return found

    same(run)


def test_captured_derivatives_keep_their_marks():
    """A region over what was taken out of a level: the residual of a differential equation."""

    def run(wrap: Any) -> list[Tensor]:
        stack = three()
        x, w = stack.tensor(X, requires_grad=True), stack.tensor(W, requires_grad=True)
        u = wrap(lambda x: (x @ w).tanh())(x)
        u_x = u.wrt(x)
        r = wrap(lambda u: (u * u_x).sin() + u_x * u_x)(u)
        return [*orders(r, x, w), u_x]

    same(run)


def test_look_ups_inside():
    def run(wrap: Any) -> list[Tensor]:
        stack = three()
        x, w = stack.tensor(X, requires_grad=True), stack.tensor(W, requires_grad=True)

        def residual(x: Tensor, w: Tensor) -> Tensor:
            u = (x @ w).tanh()
            u_x = x.grad(u.backward())
            return u * u_x + wrap(lambda v: v.sin())(u_x)

        return orders(wrap(residual)(x, w), x, w)

    same(run)


def test_a_derivative_of_the_outside_taken_inside():
    def run(wrap: Any) -> list[Tensor]:
        x = three().tensor(X, requires_grad=True)
        u = wrap(lambda x: x.sin().exp())(x)
        return orders(wrap(lambda x: x.cos() * u.wrt(x).tanh())(x), x)

    same(run)


def test_transforms_around_and_inside():
    def run(wrap: Any) -> list[Tensor]:
        stack = three()
        w = stack.tensor(W, requires_grad=True)
        f = wrap(lambda x: (x @ w).tanh().square())
        inside = wrap(lambda x: ng.func.grad(lambda z: f(z).sum())(x) * x)
        grad = ng.func.grad(lambda x: inside(x).sin().sum())(ng.tensor(X))
        value, pullback = ng.func.vjp(f, ng.tensor(X))
        (back,) = pullback(value)
        return [*orders((grad * back).sum(), w), ng.func.grad(ng.func.grad(wrap(lambda t: t.sin() * t)))(0.3)]

    same(run)


def test_other_kinds_of_levels():
    def run(wrap: Any) -> list[Tensor]:
        w = three().tensor(W, requires_grad=True)
        f = wrap(lambda x: (x @ w).tanh() * x)
        forward, batched, taylor = ng.Forward(NUMPY), ng.Batched(NUMPY), ng.Taylor(NUMPY, 3)
        tangent = forward.tangent(f(forward.dual(X, 2.0 * X)))
        rows = batched.unbatch(f(batched.batch(ng.tensor(np.stack([X, 2.0 * X])))))
        terms = taylor.terms(f(taylor.series(X, 2.0 * X)))
        return [*orders(tangent, w), rows, *orders(rows, w), *terms]

    same(run)


def test_tracing():
    f = checkpoint(lambda x: (x.sin() * x).tanh())
    program = ng.func.trace(f)(ng.tensor(X))
    assert str(program) == str(ng.func.trace(lambda x: (x.sin() * x).tanh())(ng.tensor(X)))
    x = three().tensor(X, requires_grad=True)
    g = checkpoint(lambda x: ng.func.call(program, x).cos())
    for ours, plain in zip(orders(g(x), x), orders(ng.func.call(program, x).cos(), x), strict=True):
        np.testing.assert_array_equal(ours.numpy(), plain.numpy())


def test_what_waits_may_be_stored():
    def run(wrap: Any) -> list[Tensor]:
        x, w = (s := three()).tensor(X, requires_grad=True), s.tensor(W, requires_grad=True)
        f = (lambda x: (x @ w).tanh() @ w) if wrap is not checkpoint else checkpoint(lambda x: (x @ w).tanh() @ w, store_waiting=True)
        return orders(f(f(x)), x, w)

    same(run)


# graphs


def test_freed_graphs_say_so():
    x = Autodiff(NUMPY).tensor(X, requires_grad=True)
    y = checkpoint(lambda x: (x.sin() * x).tanh())(x).sum()
    plain = (x.sin() * x).tanh().sum().wrt(x)
    np.testing.assert_array_equal(x.grad(y.backward(retain_graph=False)).numpy(), plain.numpy())
    with pytest.raises(GraphFreedError, match="freed at"):
        y.wrt(x)


def test_shared_memory_is_watched():
    array = X.copy()
    x = Autodiff(NUMPY).from_numpy(array, requires_grad=True)
    y = checkpoint(lambda x: (x.sin() * x).tanh())(x).sum()
    array.flags.writeable = True
    array[0, 0] = 5.0
    with pytest.raises(MutatedError, match="written into"):
        y.wrt(x)


def test_no_level_left_is_told():
    x = Autodiff(NUMPY).tensor(X, requires_grad=True)
    g = checkpoint(lambda x: x.sin())(x).sum().wrt(x)
    with pytest.raises(NoLevelLeft, match="no level is left"):
        checkpoint(lambda g: g * 2.0)(g).backward()


def test_threads_share_a_region():
    x = Autodiff(Autodiff(NUMPY)).tensor(X, requires_grad=True)
    f = checkpoint(lambda x: (x.sin() * x).tanh() * x.cos())
    y = f(f(f(x))).sum()
    plain = y.wrt(x).square().sum().wrt(x).numpy()
    found: list[Any] = [None] * 4

    def run(k: int) -> None:
        found[k] = [y.wrt(x).square().sum().wrt(x).numpy() for _ in range(20)]

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(g, plain) for one in found for g in one)


# errors


def test_a_region_that_fails_is_left():
    x = Autodiff(NUMPY).tensor(X, requires_grad=True)
    with pytest.raises(ng.errors.ShapeError, match="matmul"):
        checkpoint(lambda x: x.sin() @ x)(x)
    assert current.get() is None


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (3.0, r"returned a float; expected Tensors.*Try ng.tensor"),
        (np.zeros(3), r"returned a ndarray; expected Tensors"),
        ({"a": [ng.zeros(2), "x"]}, r"returned a str at \['a'\]\[1\]; expected Tensors"),
    ],
)
def test_outputs_must_be_tensors(out, message):
    def blocks(x: Tensor) -> Any:
        return out

    with pytest.raises(LevelError, match=rf"checkpoint: .*blocks {message}"):
        checkpoint(blocks)(ng.zeros(3))


def test_only_functions_can_be_regions():
    with pytest.raises(LevelError, match=r"checkpoint: got a Tensor; expected a function. Try checkpoint\(f\)\(x\)"):
        checkpoint(ng.zeros(3))  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("policy", "message"),
    [(3, r"got checkpointing=3; expected a policy or None. Try checkpointing=Balanced\(\)"), (Balanced, r"Try checkpointing=Balanced\(\)")],
)
def test_only_policies_are_policies(policy, message):
    with pytest.raises(LevelError, match=message):
        Autodiff(NUMPY, checkpointing=policy)


def test_bad_policies():
    with pytest.raises(LevelError, match=r"Balanced: got limit=0; expected an int from 1 on"):
        Balanced(limit=0)
    with pytest.raises(LevelError, match=r"Balanced: got store=\['sine'\]; expected names of ops"):
        Balanced(store=("sine",))
