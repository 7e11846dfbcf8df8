"""``check_op`` on ops that ``define`` made: what is right passes, and each kind of wrong rule is found and named."""

import numpy as np
import pytest

import nestgrad as ng
from nestgrad.errors import BackendError, RuleError, ShapeError, WrongDerivativeError
from nestgrad.ops.samples import Sample
from nestgrad.testing import check_op

NUMPY = ng.NumpyBackend()
CALLS = [([0.3, 1.2, 2.1], [0.5, 1.5, 0.7]), ([[0.4], [1.1]], 0.8)]


def product(x_rule=lambda b, g, y: b.mul(g, y), y_rule=lambda b, g, x: b.mul(g, x), **options):
    return ng.define("twice(x, y)", "elementwise", x_rule, y_rule, value=lambda b, x, y: b.mul(x, y), samples=CALLS, **options)


def scaled(reverse=lambda b, g, c: b.scale(g, c), forward=lambda b, t, c: b.scale(t, c), **options):
    """A special op of a vector: ``c x``, with rules of its own for both modes."""
    return ng.define("scaled(x, c)", "special", reverse, forward=[forward], value=lambda b, x, c: b.scale(x, c),
                     samples=[([0.3, 1.2, 2.1], 1.5)], **options)  # fmt: skip


def told(op, error=WrongDerivativeError, backend=NUMPY, **options):
    with pytest.raises(error) as caught:
        check_op(op, backend, **options)
    return str(caught.value)


def test_what_is_right_passes():
    check_op(product(), NUMPY)
    check_op(scaled(), NUMPY)
    check_op(product().op, NUMPY)
    check_op(product(), ng.NumpyBackend("float32"))
    check_op(product(), NUMPY, reference=np.multiply)


def test_a_wrong_partial_is_found_and_named():
    message = told(product(y_rule=lambda b, g, x: b.scale(b.mul(g, x), 1.01)))
    assert message.startswith("twice(shape (3,), shape (3,)) on numpy: derivative of order 1")
    assert "by argument 1" in message and message.endswith("Look at the rule of y in twice(x, y)")


def test_a_partial_that_is_right_at_the_first_order_only_is_found_and_named():
    def leaving(b, g, x):  # x is taken out of the levels further in
        while hasattr(x, "tape"):
            x = x.value
        return b.mul(g, x)

    message = told(product(y_rule=leaving))
    assert "order 2" in message and "Look at the rule of" in message


def test_a_wrong_reverse_rule_of_a_special_op_is_found_and_named():
    message = told(scaled(reverse=lambda b, g, c: b.scale(g, 2 * c)))
    assert "derivative of order 1" in message and message.endswith("Look at the rule of x in scaled(x, c=...)".replace("=...", ""))


def test_a_forward_rule_that_disagrees_with_the_reverse_rule_is_found_and_named():
    message = told(scaled(forward=lambda b, t, c: b.scale(t, 1.01 * c)))
    assert "forward mode by argument 0: got <u, J t> =" in message and "expected <J' u, t> =" in message
    assert message.endswith("Look at the forward rule of argument x of scaled")


def test_a_wrong_transpose_is_found_and_named():
    op = ng.define("first(x)", "linear", lambda b, g: b.put(g, (slice(1, 3),), (3,)), value=lambda b, x: b.getitem(x, (slice(0, 2),)),
                   samples=[([0.3, 1.2, 2.1],)])  # fmt: skip
    message = told(op)
    assert "the backward pass is not the transpose" in message and message.endswith("Look at the rule of x in first(x)")


def test_a_wrong_series_is_found_and_named():
    message = told(product(series=lambda b, k, x, y, out: b.mul(x[k], y[0]) if x[k] is not None else None))
    assert "Taylor mode by argument 1: got derivative 0.0 of order 1" in message and message.endswith("Look at series= of twice")


def test_a_wrong_batched_rule_is_found_and_named():
    op = ng.define("flip(x)", "linear", lambda b, g: flipped(b, g), value=lambda b, x: flipped(b, x), samples=[([0.3, 1.2, 2.1],)],
                   batched=lambda b, n, xs, on: flipped(b, xs[0]))  # fmt: skip
    message = told(op)
    assert "batched mode, arguments [0] in a batch of 2, sample 0: got" in message and message.endswith("Look at batched= of flip")
    good = ng.define("flip(x)", "linear", lambda b, g: flipped(b, g), value=lambda b, x: flipped(b, x), samples=[([0.3, 1.2, 2.1],)],
                     batched=lambda b, n, xs, on: b.getitem(xs[0], (slice(None), slice(None, None, -1))))  # fmt: skip
    check_op(good, NUMPY)


def flipped(b, x):
    return b.getitem(x, (slice(None, None, -1),))


def test_wrong_shapes_are_found_and_named():
    assert "scaled: the rule of argument x gave shape ()" in told(scaled(reverse=lambda b, g, c: b.sum(g, (0,))), ShapeError)
    assert "scaled: the forward rule of argument x gave shape ()" in told(scaled(forward=lambda b, t, c: b.sum(t, (0,))), ShapeError)
    assert "twice: the rule of argument y gave shape" in told(product(y_rule=lambda b, g, x: b.reshape(b.mul(g, x), (1, 3))), ShapeError)


def test_wrong_values_are_found():
    assert "wrong value at entry" in told(product(), BackendError, reference=np.add)
    torch = pytest.importorskip("torch")
    op = ng.define("f(x)", "elementwise", lambda b, x: b.cos(x), value=lambda b, x: b.sin(x), kernels={"torch": torch.cos},
                   samples=[([0.3, 1.2],)])  # fmt: skip
    assert "wrong value at entry" in told(op, BackendError, backend=ng.TorchBackend(dtype="float64"))
    check_op(op, NUMPY)


def test_a_value_that_changes_its_argument_is_found():
    op = ng.define("f(x)", "elementwise", lambda b, x: b.cos(x), kernels={"numpy": lambda x: np.sin(x, out=x)}, samples=[([0.3, 1.2],)])
    assert "changed argument 0" in told(op, BackendError)


def test_without_samples_nothing_is_checked_silently():
    op = ng.define("f(x)", "elementwise", lambda b, x: b.cos(x), value=lambda b, x: b.sin(x))
    assert told(op, RuleError).startswith("op f(x) has no samples")


def test_samples_are_calls():
    op = ng.define("f(*xs, k)", "linear", lambda b, g, k: b.scale(g, k), value=lambda b, *xs, k: b.scale(b.add(*xs), k),
                   samples=[Sample(([0.1, 0.2], [0.3, 0.4]), {"k": 2.0})])  # fmt: skip
    check_op(op, NUMPY)
    where = ng.define("pick(x, y, k)", "linear", None, lambda b, g, x, k: b.mul(g, x), value=lambda b, x, y, k: b.mul(x, y),
                      samples=[Sample(([1, 0], [0.3, 0.4]), {"k": 2.0}, exact=(0,))])  # fmt: skip
    check_op(where, NUMPY)
