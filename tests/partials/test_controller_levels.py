"""Tensors as users of levels have them: on several levels, under and over other modes, from programs, regions and shared memory."""

import numpy as np
import pytest
import torch

import nestgrad as ng

POINT = np.array([0.3, 0.5])


def variable(stack, array=POINT):
    return stack.tensor(array, requires_grad=True)


def tracked(count=1):
    stack = ng.NumpyBackend()
    for _ in range(count):
        stack = ng.Autodiff(stack)
    return variable(stack)


def product(x):
    """``x sin(x)``."""
    return x.sin() * x


FIRST, SECOND = np.sin(POINT) + POINT * np.cos(POINT), 2 * np.cos(POINT) - POINT * np.sin(POINT)

OUTPUTS = {
    "plain": lambda: (x := tracked(), product(x)),
    "three levels": lambda: (x := tracked(3), product(x)),
    "jit": lambda: (x := tracked(), ng.jit(product)(x)),
    "checkpoint": lambda: (x := tracked(), ng.checkpoint(product)(x)),
    "balanced": lambda: (x := variable(ng.Autodiff(ng.NumpyBackend(), checkpointing=ng.Balanced())), product(x)),
    "over forward": lambda: (x := variable(ng.Autodiff(ng.Forward(ng.NumpyBackend()))), product(x)),
    "under forward": lambda: (x := variable(ng.Forward(ng.Autodiff(ng.NumpyBackend()))), product(x)),
    "over taylor": lambda: (x := variable(ng.Autodiff(ng.Taylor(ng.NumpyBackend(), 2))), product(x)),
    "shared": lambda: (x := ng.Autodiff(ng.NumpyBackend()).from_numpy(POINT.copy(), requires_grad=True), product(x)),
    "over torch": lambda: (x := variable(ng.Autodiff(ng.backends.get_backend("torch", dtype="float64"))), product(x)),
    "a new variable": lambda: (x := tracked(2).require_grad(), product(x)),
}


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("name", OUTPUTS)
def test_the_same_numbers_wherever_a_tensor_is(name, create_graph):
    x, out = OUTPUTS[name]()
    for _ in range(2):
        controller = ng.Controller(out)
        controller.require_grad_((x,))
        controller.require_grad_((x, x))
        controller.backward(2, create_graph=create_graph)
        found = [controller.fetch_hgrad((x,) * k)[0].detach().numpy() for k in (1, 2)]
        assert np.allclose(found[0], np.diag(FIRST)) and np.allclose([found[1][k, k, k] for k in range(2)], SECOND)


def test_an_output_that_is_a_leaf_is_the_identity():
    x = tracked()
    ng.backward(x, 2)
    assert np.array_equal(x.hgrad[0].numpy(), np.eye(2)) and x.hgrad.blocks[1].is_zero


def test_a_variable_on_several_levels_has_what_was_set_last():
    x = tracked(2)
    u_x = (x**3).sum().wrt(x)
    inner, outer = u_x.sum(), product(x)
    for _ in range(2):
        ng.backward(outer, 1)
        assert np.allclose(x.hgrad.blocks[0].data, FIRST)
        controller = ng.backward(inner, 1)
        assert np.allclose(x.hgrad.blocks[0].data, 6 * POINT)
    controller.clear()
    assert np.allclose(x.hgrad.blocks[0].data, FIRST)


def test_shared_memory_that_was_written_into_is_told():
    array = POINT.copy()
    x = ng.Autodiff(ng.NumpyBackend()).from_numpy(array, requires_grad=True)
    out = product(x)
    array.flags.writeable = True
    array[0] = 3.0
    assert ng.Controller(out).compatible in (False, True)
    with pytest.raises(ng.errors.MutatedError, match="was written into after it was shared"):
        ng.backward(out, 1)


def test_a_transforms_variable_has_its_own():
    """What the function closes over is a constant there, as for ``func.grad`` itself."""
    x, seen = tracked(), []

    def f(v):
        out = (v**3 * x).sum()
        ng.backward(out, 2)
        seen.append([t.numpy() for t in v.hgrad])
        return out

    found = ng.func.grad(f)(ng.tensor(POINT))
    assert np.allclose(seen[0][0][0], found.numpy()) and np.allclose(seen[0][1][0], np.diag(6 * POINT**2))
    assert not hasattr(x, "hgrad")


def test_of_two_stacks_the_younger_one_is_differentiated():
    x, y = tracked(), tracked()
    ng.backward((x * y).sin(), 1, create_graph=True)
    assert not hasattr(x, "hgrad")
    got = y.hgrad.blocks[0]
    want = np.cos(POINT**2) - POINT**2 * np.sin(POINT**2)
    assert np.allclose(y.hgrad[0].sum().wrt(x).numpy(), want) and got.size == 2


def test_what_is_detached_is_a_constant():
    x = tracked()
    ng.backward((x * x.detach()).sum(), 2)
    assert np.array_equal(x.hgrad[0].numpy(), [POINT]) and x.hgrad.blocks[1].is_zero


def test_the_residual_of_an_equation():
    x = tracked(3)
    u_x = (x**3).sum().wrt(x)
    residual = (u_x * x).sum()
    ng.backward(residual, 2)
    assert np.allclose(x.hgrad.blocks[0].data, 9 * POINT**2) and np.allclose(x.hgrad.blocks[1].data, 18 * POINT)
    u_xx = u_x.sum().wrt(x)
    ng.backward((u_xx * u_xx).sum(), 2)
    assert np.allclose(x.hgrad.blocks[0].data, 72 * POINT) and np.allclose(x.hgrad.blocks[1].data, 72.0)


def test_plans_are_shared_by_levels_over_torch_and_graphs_of_torch():
    """A program that was recorded in one of torch's modes serves calls in all others."""
    for first, second in ((torch.inference_mode, torch.enable_grad), (torch.no_grad, torch.inference_mode)):
        x = variable(ng.Autodiff(ng.backends.get_backend("torch", dtype="float64")))
        with first():
            ng.backward(product(x).exp(), 2)
        t = torch.tensor(POINT, requires_grad=True)
        out = (t.sin() * t).exp()
        with second():
            ng.backward(out, 2, create_graph=True)
        (third,) = torch.autograd.grad(t.hgrad[1].sum(), t)
        assert np.allclose(t.hgrad[1].detach(), x.hgrad[1].numpy()) and third.abs().min() > 0.0


def test_who_watches_ops_sees_those_of_backward():
    x = torch.tensor([0.0], requires_grad=True)
    out = x.sqrt().sum()
    with ng.detect_anomaly(), pytest.raises(ng.errors.AnomalyError, match="gave inf"):
        ng.backward(out, 1)
