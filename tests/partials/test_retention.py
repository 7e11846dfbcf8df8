"""Partial derivatives by tensors inside of a graph: kept for ``fetch_hgrad``, by pairs that depend on each other as well.

The meaning: a variable is added to the tensor inside. So the partial derivative by (u, x) is that of dZ/du by x, along all ways.
"""

import itertools

import numpy as np
import pytest
import torch
from kinds_of_leaves import both, drawn, foreign
from nested_oracle import partial

import nestgrad as ng


def chained(x, y):
    """Each of u, v, w depends on those before it; the output on all."""
    u = x.sin() * y
    v = u.exp() + x
    w = (v * u).tanh()
    return (w * v * x).sin() * 0.5 + u, {"x": x, "y": y, "u": u, "v": v, "w": w}


def wanted(arrays, names):
    """By nested passes of torch over a function of leaves and of what is added inside."""
    x, y = foreign(*arrays)
    shifts = {name: torch.zeros(arrays[0].shape, dtype=torch.float64, requires_grad=True) for name in "uvw"}
    u = x.sin() * y + shifts["u"]
    v = u.exp() + x + shifts["v"]
    w = (v * u).tanh() + shifts["w"]
    out = (w * v * x).sin() * 0.5 + u
    return partial(out, [{"x": x, "y": y, **shifts}[name] for name in names])


@both
@pytest.mark.parametrize("names", list(itertools.product("xuvw", repeat=2)), ids="".join)
def test_any_pair_of_tensors_is_kept(leaves, names):
    arrays = drawn((2,), (2,))
    out, tensors = chained(*leaves(*arrays))
    controller = ng.Controller(out)
    controller.require_grad_([tensors[name] for name in names])
    controller.backward(2)
    want = wanted(arrays, names)
    for order in (names, names[::-1]):
        got, (shapes, _, vperm) = controller.fetch_hgrad([tensors[name] for name in order])
        turned = want if order == names else want.permute(0, 2, 1)
        assert np.allclose(got.tolist(), turned.tolist(), rtol=1e-10, atol=1e-12)
        assert shapes == ((2,), (2,)) and vperm == (0, 1)


@pytest.mark.parametrize("names", ["ux", "uy", "vu", "wv", "wu", "vx", "wuv", "uxx"])
def test_they_are_what_nested_passes_over_the_same_graph_give(names):
    """``grad(grad(Z, u), x)``; where the later tensor is differentiated by first, or else torch's rules read its value as a constant."""
    out, tensors = chained(*foreign(*drawn((2,), (2,))))
    controller = ng.Controller(out)
    key = [tensors[name] for name in names]
    controller.require_grad_(key)
    controller.backward(len(names))
    got = controller.fetch_hgrad(key)[0]
    assert torch.allclose(got, partial(out, key).reshape(got.shape), rtol=1e-10, atol=1e-12)


@both
def test_three_of_them_in_all_orders(leaves):
    arrays = drawn((2,), (2,))
    out, tensors = chained(*leaves(*arrays))
    controller = ng.Controller(out)
    names = ("w", "x", "u")
    controller.require_grad_(tensors[name] for name in names)
    controller.backward(3)
    want = wanted(arrays, names)
    for order in itertools.permutations(range(3)):
        got = controller.fetch_hgrad([tensors[names[k]] for k in order])[0]
        assert np.allclose(got.tolist(), want.permute(0, *(1 + k for k in order)).tolist(), rtol=1e-9, atol=1e-11)


@both
def test_parallel_branches_the_output_and_leaves(leaves):
    arrays = drawn((2, 3), (3,))
    x, y = leaves(*arrays)
    p, q = x.sin(), y.exp()
    out = (p * q).tanh()
    controller = ng.Controller(out)
    for key in ((p, q), (p, p), (q,), (out,), (out, out), (x, y), (p, y)):
        controller.require_grad_(key)
    controller.backward(2)
    known = foreign(*arrays)
    inside = known[0].sin(), known[1].exp()
    result = (inside[0] * inside[1]).tanh()
    for key, names in (((p, q), inside), ((q, p), inside[::-1]), ((p, p), (inside[0],) * 2), ((q,), inside[1:])):
        got = controller.fetch_hgrad(key)[0]
        assert np.allclose(got.tolist(), partial(result, names).reshape(got.shape).tolist(), rtol=1e-10, atol=1e-12)
    assert np.allclose(np.asarray(controller.fetch_hgrad((out,))[0].tolist()).reshape(6, 6), np.eye(6))
    assert not np.any(controller.fetch_hgrad((out, out))[0].tolist())
    got = controller.fetch_hgrad((y, x))[0]
    assert np.allclose(got.tolist(), partial(result, known[::-1]).reshape(got.shape).tolist(), rtol=1e-10, atol=1e-12)
    assert tuple(controller.fetch_hgrad((p, p), keep_batch=True)[0].shape) == (6, 2, 3)


@both
def test_what_is_kept_changes_no_other_derivative_and_is_not_set(leaves):
    arrays = drawn((2,), (2,))
    out, tensors = chained(*leaves(*arrays))
    ng.backward(out, 2)
    plain = [t.tolist() for t in tensors["x"].hgrad]
    controller = ng.Controller(out)
    controller.require_grad_((tensors["u"], tensors["x"]))
    controller.require_grad_((tensors["v"],))
    controller.backward(2)
    assert np.allclose(plain[0], tensors["x"].hgrad[0].tolist()) and np.allclose(plain[1], tensors["x"].hgrad[1].tolist())
    for name in "uvw":
        with pytest.raises(AttributeError, match="hgrad"):
            tensors[name].hgrad  # noqa: B018
    controller.backward(1)
    with pytest.raises(KeyError, match="No gradient saved for given key"):
        controller.fetch_hgrad((tensors["u"], tensors["x"]))
    assert tuple(controller.fetch_hgrad((tensors["v"],))[0].shape) == (2, 2)


@both
def test_a_gradient_weighs_them_too(leaves):
    arrays = drawn((2,), (2,), (2,))
    out, tensors = chained(*leaves(*arrays[:2]))
    controller = ng.Controller(out)
    controller.require_grad_((tensors["v"], tensors["x"]))
    controller.backward(2, gradient=arrays[2])
    got = controller.fetch_hgrad((tensors["v"], tensors["x"]))[0]
    want = np.tensordot(arrays[2], wanted(arrays[:2], ("v", "x")).numpy(), 1)[None]
    assert np.allclose(got.tolist(), want, rtol=1e-10, atol=1e-12)


def test_on_two_levels_a_derivative_inside_is_a_tensor_as_any_other():
    stack = ng.Autodiff(ng.Autodiff(ng.NumpyBackend()))
    (array,) = drawn((3,))
    x = stack.tensor(array, requires_grad=True)
    u_x = (x**3).sum().wrt(x)
    out = (u_x * u_x).sum()
    controller = ng.Controller(out)
    controller.require_grad_((u_x, x))
    controller.require_grad_((u_x, u_x))
    controller.backward(2)
    assert np.allclose(controller.fetch_hgrad((u_x, x))[0].numpy()[0], np.diag(12.0 * array))
    assert np.allclose(controller.fetch_hgrad((u_x, u_x))[0].numpy()[0], 2.0 * np.eye(3))


def test_a_result_of_a_node_with_several():
    (array,) = drawn((4,))
    (x,) = foreign(array)
    first, second = (x * x).split(2)
    out = (first * second.exp()).sum()
    controller = ng.Controller(out)
    controller.require_grad_((second, first))
    controller.require_grad_((second, x))
    controller.backward(2)
    for key in ((second, first), (second, x)):
        got = controller.fetch_hgrad(key)[0]
        assert torch.allclose(got, partial(out, key).reshape(got.shape))
