"""What thoad's own page calls, with ``nestgrad`` in its place: the names, the arguments, the attributes and the shapes of both programs."""

import pytest

torch = pytest.importorskip("torch", reason="these are graphs that PyTorch recorded")

from torch.nn.functional import scaled_dot_product_attention  # noqa: E402

import nestgrad as thoad  # noqa: E402


@pytest.fixture
def graph():
    """Queries, keys, and attention whose keys are its values; in single precision, as torch draws them."""
    generator = torch.Generator().manual_seed(0)
    query = torch.rand((10, 15), generator=generator).requires_grad_()
    key = torch.rand((15, 20), generator=generator).requires_grad_()
    return query, key, scaled_dot_product_attention(query=query, key=key.T, value=key.T)


def attention(x, y):
    return scaled_dot_product_attention(x, y.T, y.T)


def test_backward_fills_in_every_order(graph):
    query, key, output = graph
    thoad.backward(tensor=output, order=2)
    jacobian = torch.autograd.functional.jacobian(attention, (query, key))
    hessian = torch.autograd.functional.hessian(lambda x, y: attention(x, y).sum(), (query, key), vectorize=True)
    for k, leaf in enumerate((query, key)):
        assert len(leaf.hgrad) == len(leaf.hdata) == 2
        for order in (1, 2):
            assert leaf.hgrad[order - 1].shape == (output.numel(), *(order * tuple(leaf.shape)))
            assert leaf.hgrad[order - 1].dtype == torch.float32
        assert torch.allclose(leaf.hgrad[0].flatten(), jacobian[k].flatten(), atol=1e-6)
        assert torch.allclose(leaf.hgrad[1].sum(0).flatten(), hessian[k][k].flatten(), atol=1e-6)


def test_a_controller_gives_pure_and_mixed_partials(graph):
    query, key, output = graph
    controller = thoad.Controller(tensor=output)
    assert controller.compatible
    assert controller.backward(order=2, crossings=True) is None
    for leaf in (query, key):
        partial, (shapes, _, vperm) = controller.fetch_hgrad(variables=(leaf, leaf))
        assert torch.allclose(partial, leaf.hgrad[1])
        assert shapes == (tuple(leaf.shape),) * 2 and vperm == (0, 1)
    across, _ = controller.fetch_hgrad(variables=(query, key))
    back, _ = controller.fetch_hgrad(variables=(key, query))
    assert across.shape == (150, 10, 15, 15, 20) and back.shape == (150, 15, 20, 10, 15)
    hessian = torch.autograd.functional.hessian(lambda x, y: attention(x, y).sum(), (query, key), vectorize=True)
    assert torch.allclose(across.sum(0), hessian[0][1], atol=1e-6)
    assert torch.equal(across.permute(0, 3, 4, 1, 2), back)


def test_every_argument_has_the_name_that_it_has_there(graph, capsys):
    query, key, output = graph
    controller = thoad.backward(
        tensor=output, order=1, gradient=torch.ones_like(output), crossings=False, groups=((query,), (key,)), keep_batch=True,
        keep_schwarz=True,
    )  # fmt: skip
    assert isinstance(controller, thoad.Controller) and controller.tensor is output
    assert controller.fetch_hgrad(variables=(query,), keep_batch=True, keep_schwarz=True)[0].shape[0] == 1
    controller.display_graph()
    assert "SafeSoftmaxBackward0" in capsys.readouterr().out
    controller.register_backward_hook(variables=(query,), hook=lambda data, context: data)
    controller.require_grad_(variables=(key,))
    controller.index = controller.index
    controller.clear()
    assert not hasattr(query, "hgrad") and not hasattr(query, "hdata")
