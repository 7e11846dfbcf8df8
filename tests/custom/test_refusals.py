"""What a call of a function with rules keeps and runs, and what it refuses: nothing is lost silently."""

import gc
import math
import weakref

import numpy as np
import pytest
from derivatives import nested

import nestgrad as ng
from nestgrad import func
from nestgrad.errors import GraphFreedError, LevelError, RuleError, ShapeError

S = ng.Autodiff(ng.Autodiff(ng.NumpyBackend()))


def test_one_run_of_the_rule_for_all_arguments_and_none_where_nothing_is_asked():
    runs = []
    f = ng.custom_vjp(lambda x, y, z: x * y * z)

    def bwd(saved, g):
        runs.append(1)
        x, y, z = saved
        return g * y * z, g * x * z, g * x * y

    f.defvjp(lambda x, y, z: (x * y * z, (x, y, z)), bwd)
    xs = [S.tensor(v, requires_grad=True) for v in (2.0, 3.0, 5.0)]
    grads = f(*xs).backward()
    assert not runs
    assert [grads.wrt(x).item() for x in xs] == [15.0, 10.0, 6.0] and runs == [1]


def test_a_node_keeps_what_was_saved_and_nothing_else():
    f = ng.custom_vjp(lambda x: x.exp())
    x = ng.Autodiff(ng.NumpyBackend()).tensor(np.ones(3), requires_grad=True)
    f.defvjp(lambda x: (x.exp(), x.sin()), lambda sine, g: g * sine)
    y = f(x)
    array = weakref.ref(y.value.value)
    total = y.sum()
    del y
    assert array() is None and total.wrt(x).tolist() == pytest.approx([math.sin(1.0)] * 3)


def test_graphs_go_by_reference_counting():
    f = ng.custom_jvp(lambda x: x.exp())
    f.defjvp(lambda primals, tangents: (None, f(*primals) * tangents[0]))
    stack = ng.Autodiff(ng.Autodiff(ng.NumpyBackend()))
    gc.collect()
    gc.disable()
    try:
        for k in range(30):
            x = stack.tensor(np.ones(3), requires_grad=True)
            f(x).wrt(x).wrt(x)
            func.jvp(func.grad(lambda t: f(t)), (1.0,), (1.0,))
            del x
            if k == 9:
                before = len(gc.get_objects())
        assert len(gc.get_objects()) - before < 200
    finally:
        gc.enable()


def test_freed_graphs_are_told():
    f = ng.custom_vjp(lambda x: x.exp())
    f.defvjp(lambda x: (x.exp(), x), lambda x, g: g * x.exp())
    x = S.tensor(0.3, requires_grad=True)
    y = f(x)
    y.backward(wrt=[x], retain_graph=False)
    with pytest.raises(GraphFreedError):
        y.wrt(x)


def test_plain_calls_run_the_body_alone():
    f = ng.custom_vjp(lambda x: x * 2)
    assert f(3.0) == 6.0 and f(ng.tensor(3.0)).item() == 6.0  # without any rule
    with pytest.raises(RuleError, match=r"<lambda>: no rule was given.*Try <lambda>.defvjp\(fwd, bwd\)"):
        nested(f, 3.0, "r")


def test_it_keeps_name_and_words_of_the_function():
    @ng.custom_vjp
    def cube(x):
        """The third power."""
        return x**3

    assert cube.__name__ == "cube" and cube.__doc__ == "The third power." and repr(cube) == "<cube, with rules of its own>"


def closing(w):
    @ng.custom_vjp
    def f(x):
        return x * w

    return f.defvjp(lambda x: (x * w, None), lambda _, g: g * 3.0)


CLOSED = "f: it closes over a tensor that is tracked on .*Try to pass it as an argument"


def test_a_tracked_tensor_that_is_closed_over_is_refused():
    w = S.tensor(3.0, requires_grad=True)
    for x in (w, S.tensor(2.0, requires_grad=True), S.inner.tensor(2.0, requires_grad=True)):  # also where only one level is common
        with pytest.raises(LevelError, match=CLOSED):
            closing(w)(x)
    with pytest.raises(LevelError, match=CLOSED):
        func.grad(lambda v: func.grad(lambda t: closing(v)(t))(2.0))(3.0)
    inner = S.inner.tensor(3.0, requires_grad=True)
    with pytest.raises(LevelError, match=CLOSED):  # on the inner level alone, where x has a history, too
        closing(inner)(S.tensor(2.0, requires_grad=True))
    assert closing(w)(ng.tensor(2.0)).wrt(w).item() == 2.0  # no rule is needed, and nothing is lost
    assert closing(w.detach())(w).wrt(w).item() == 3.0


def test_a_moving_tensor_that_is_closed_over_is_refused():
    for way in (lambda f: func.jvp(f, (3.0,), (1.0,)), lambda f: func.taylor(f, 3.0, 1.0, 3)):
        with pytest.raises(LevelError, match=CLOSED):
            way(lambda v: closing(v)(v * 2.0))
        with pytest.raises(LevelError, match=CLOSED):  # the argument is on another level as well, above
            way(lambda v: func.grad(lambda t: closing(v)(t * v))(2.0))


def test_a_traced_tensor_that_is_closed_over_is_refused():
    with pytest.raises(LevelError, match=CLOSED):
        ng.func.trace(lambda x, w: closing(w)(x))(1.0, 2.0)
    w = S.tensor(3.0, requires_grad=True)
    with pytest.raises(LevelError, match=CLOSED):
        ng.func.trace(lambda x: closing(w)(x))(1.0)


def test_a_batched_constant_may_be_closed_over():
    ws = ng.tensor([1.0, 2.0, 3.0])
    assert func.vmap(lambda w: func.grad(closing(w))(2.0))(ws).tolist() == [3.0] * 3


def test_a_rule_that_closes_over_a_tracked_tensor_is_refused():
    w = S.tensor(3.0, requires_grad=True)
    f = ng.custom_vjp(lambda x: x * 3.0)
    f.defvjp(lambda x: (x * 3.0, None), lambda _, g: g * w)
    x = S.tensor(2.0, requires_grad=True)
    with pytest.raises(LevelError, match="<lambda>: it closes over a tensor that is tracked on Autodiff level 2"):
        f(x).wrt(x)
    taken = w.wrt(w) * w.inner()  # a value on level 1, taken out of level 2
    f.defvjp(lambda x: (x * 3.0, None), lambda _, g: g * taken)
    with pytest.raises(LevelError, match=r"<lambda>: it closes over|taken out of"):
        f(x).wrt(x)
    f.defvjp(lambda x: (x * 3.0, None), lambda _, g: g * taken.inner())
    with pytest.raises(LevelError, match="depends on a closed-over value that was taken out of"):
        f(x).wrt(x)


def test_keyword_arguments_are_constants():
    f = ng.custom_vjp(lambda x, scale=1.0: x * scale)
    f.defvjp(lambda x, scale=1.0: (x * scale, scale), lambda scale, g: g * scale)
    x = S.tensor(2.0, requires_grad=True)
    assert f(x, scale=3.0).wrt(x).item() == 3.0
    with pytest.raises(LevelError, match=r"got a tracked tensor as keyword argument scale.*expected it by position"):
        f(x, scale=x)


@pytest.mark.parametrize(
    "fwd, bwd, error, message",
    [
        (lambda x, y: x * y, lambda s, g: (g, g), RuleError, r"f: fwd returned a Tensor; expected a tuple \(out, saved\)"),
        (lambda x, y: (x * y, None), lambda s, g: g, RuleError, "f: its cotangent rule returned 1 cotangents for 2 arguments"),
        (lambda x, y: (x * y, None), lambda s, g: (g, g, g), RuleError, "f: its cotangent rule returned 3 cotangents for 2 arguments"),
        (lambda x, y: (x * y, None), lambda s, g: (g.sum(), g), ShapeError, r"f: the cotangent .* has shape \(\); expected \(2,\)"),
        (lambda x, y: (x * y, None), lambda s, g: ((g, g), g), RuleError, r"f: its cotangent rule returned \(\*, \*\) for argument 0"),
        (lambda x, y: (x * y, lambda: x), lambda s, g: (g, g), RuleError, "f: fwd saved a function; expected Tensors, arrays and plain"),
        (lambda x, y: ("no", None), lambda s, g: (g, g), RuleError, "f: it returned a str; expected Tensors"),
    ],
)
def test_a_wrong_cotangent_rule_is_told_by_name(fwd, bwd, error, message):
    @ng.custom_vjp
    def f(x, y):
        return x * y

    f.defvjp(fwd, bwd)
    x = S.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(error, match=message):
        f(x, x).wrt(x)


@pytest.mark.parametrize(
    "rule, error, message",
    [
        (lambda p, t: p[0], RuleError, r"f: the tangent rule returned a Tensor; expected a tuple \(out, tangent\)"),
        (lambda p, t: (p[0], t[0].sum()), ShapeError, r"f: the tangent has shape \(\); expected \(2,\)"),
        (lambda p, t: (p[0], (t[0], t[0])), RuleError, r"f: its tangent rule returned \(\*, \*\); expected the structure of"),
    ],
)
@pytest.mark.parametrize("mode", ["r", "f"])
def test_a_wrong_tangent_rule_is_told_by_name(rule, error, message, mode):
    @ng.custom_jvp
    def f(x):
        return x * 2.0

    f.defjvp(rule)
    with pytest.raises(error, match=message):
        nested(lambda t: f(ng.stack([t, t])).sum(), 0.3, mode)


def test_a_zero_cotangent_is_none():
    f = ng.custom_vjp(lambda x, y: x * y)
    f.defvjp(lambda x, y: (x * y, y), lambda y, g: (g * y, None))
    x, y = S.tensor(2.0, requires_grad=True), S.tensor(3.0, requires_grad=True)
    grads = f(x, y).backward()
    assert grads.wrt(x).item() == 3.0 and grads.wrt(y).item() == 0.0


def test_arguments_that_are_no_floats_are_handed_on():
    f = ng.custom_vjp(lambda x, n, name, rows: (x**n)[rows])
    f.defvjp(lambda x, n, name, rows: ((x**n)[rows], (x, n, name, rows)),
             lambda saved, g: (ng.zeros(3).at[saved[3]].add(g) * saved[1] * saved[0] ** (saved[1] - 1), None, None, None))  # fmt: skip
    rows = ng.tensor([0, 2])
    x = S.tensor([1.0, 2.0, 3.0], requires_grad=True)
    assert f(x, 3, "cube", rows).wrt(x).tolist() == [3.0, 0.0, 27.0]
    assert f(x, 3, "cube", rows).sum().wrt(x).wrt(x).tolist() == [6.0, 0.0, 18.0]
