"""What ``backward`` and ``Controller`` are given: each wrong argument is told, each right one is taken in all its forms."""

import numpy as np
import pytest
import torch

import nestgrad as ng
from nestgrad import errors
from nestgrad.errors import ArgumentError, DTypeError, LevelError, NestgradError, NoLevelLeft, NotTrackedError, OrderError, ShapeError


def levels():
    stack = ng.Autodiff(ng.NumpyBackend())
    return tuple(stack.tensor(v, requires_grad=True) for v in ([0.5, 1.0], [2.0, 3.0], [1.0, -1.0]))


def foreign():
    return tuple(torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in ([0.5, 1.0], [2.0, 3.0], [1.0, -1.0]))


both = pytest.mark.parametrize("leaves", [levels, foreign])


@both
@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"order": 1.0}, DTypeError, r"backward: got order=1.0; expected an int from 1 on.* Try order=2"),
        ({"order": "2"}, DTypeError, r"backward: got order='2'; expected an int from 1 on"),
        ({"order": True}, DTypeError, r"backward: got order=True; expected an int from 1 on"),
        ({"order": None}, DTypeError, r"backward: got order=None; expected an int from 1 on"),
        ({"order": np.array([1.0, 2.0])}, DTypeError, r"backward: got order=array.*; expected an int from 1 on"),
        ({"order": 0}, OrderError, r"backward: got order=0; expected an int from 1 on"),
        ({"order": -1}, OrderError, r"backward: got order=-1; expected an int from 1 on"),
        ({"order": 1, "crossings": 1}, ArgumentError, r"backward: got crossings=1; expected True or False"),
        ({"order": 1, "keep_batch": None}, ArgumentError, r"backward: got keep_batch=None; expected True or False"),
        ({"order": 1, "keep_schwarz": "yes"}, ArgumentError, r"backward: got keep_schwarz='yes'; expected True or False"),
        ({"order": 1, "create_graph": 0}, ArgumentError, r"backward: got create_graph=0; expected True or False"),
        ({"order": 1, "gradient": 1.0}, DTypeError, r"backward: got a float as gradient; expected a tensor of the output's shape \(2,\)"),
        ({"order": 1, "gradient": [1.0, 1.0]}, DTypeError, r"backward: got a list as gradient; expected a tensor of the output's shape"),
        ({"order": 1, "gradient": np.ones(3)}, ShapeError, r"backward: got a gradient of shape \(3,\); expected that of the output, \(2,"),
        ({"order": 1, "gradient": np.ones((1, 2))}, ShapeError, r"backward: got a gradient of shape \(1, 2\); expected that of the output"),
        ({"order": 1, "groups": 3}, DTypeError, r"got an int as groups; expected an iterable of groups.* Try \[\[x, y\], \[z\]\]"),
        ({"order": 1, "groups": [3]}, DTypeError, r"backward: got an int as group 0; expected an iterable of leaves"),
        ({"order": 1, "groups": [["x"]]}, ArgumentError, r"backward: .*str.*expected a [Tt]ensor of the graph"),
    ],
    ids=lambda case: str(case) if isinstance(case, dict) else "",
)  # fmt: skip
def test_a_wrong_argument_is_told_and_nothing_is_half_done(leaves, arguments, error, text):
    x, y, _ = leaves()
    controller = ng.Controller(x * y)
    with pytest.raises(error, match=text) as caught:
        controller.backward(**arguments)
    assert isinstance(caught.value, (ValueError, TypeError))
    assert not hasattr(x, "hgrad") and not hasattr(x, "hdata")


@both
def test_groups_are_those_of_the_graph_disjoint_and_without_crossings(leaves):
    x, y, z = leaves()
    out = (x * y).sum() + (z * x).sum()
    with pytest.raises(ArgumentError, match=r"got crossings=True and groups; expected one of them.* Try crossings=False"):
        ng.backward(out, 2, crossings=True, groups=[[x, y]])
    with pytest.raises(ValueError, match=r"entry 1 of group 1, a [Tt]ensor of shape \(2,\), in group 0 as well; expected disjoint groups"):
        ng.backward(out, 2, groups=[[x, y], [z, y]])
    with pytest.raises(ValueError, match=r"Cannot find node of entry 0 of group 0, a [Tt]ensor of shape \(2,\); expected a leaf"):
        ng.backward(out, 2, groups=[[x * y]])
    strange = leaves()[0]
    with pytest.raises(ValueError, match=r"Cannot find node of"):
        ng.backward(out, 2, groups=[[x, strange]])


@both
def test_groups_are_read_from_generators_of_generators(leaves):
    x, y, z = leaves()
    out = (x * y * z).sum()
    wanted = ng.backward(out, 2, groups=[[x, y], [z]])
    got = ng.backward(out, 2, groups=((leaf for leaf in group) for group in ((x, y, x), (z,), ())))
    assert np.allclose(got.fetch_hgrad((x, y))[0].tolist(), wanted.fetch_hgrad((x, y))[0].tolist())
    assert got.fetch_hgrad(t for t in (y, x))[0].shape == (1, 2, 2)
    for controller in (wanted, got):
        with pytest.raises(KeyError, match=r"No gradient saved for given key"):
            controller.fetch_hgrad((x, z))
    assert ng.backward(out, 1, groups=()).fetch_hgrad((x,))[0].shape == (1, 2)


@pytest.mark.parametrize("thing", [None, 1.0, True, "x", [1.0], (), {}, np.ones(2), np.float64(1), torch.nn.Linear(1, 1), torch.float32])
def test_what_has_no_graph_is_no_output(thing):
    with pytest.raises(ArgumentError, match=r"backward: got an? \w+.*; expected a Tensor on levels, or a torch.Tensor"):
        ng.Controller(thing)


def test_a_torch_tensor_without_a_graph_is_no_output():
    x = torch.ones(2, requires_grad=True)
    for tensor in (torch.ones(2), x, x.detach(), (x * x).detach()):
        with pytest.raises(ValueError, match=r"got a Tensor of shape \(2,\) that no graph was recorded under.* Try x.requires_grad_\(\)"):
            ng.backward(tensor, 1)
    with pytest.raises(DTypeError, match=r"backward: got complex numbers; expected real ones"):
        ng.Controller(x * 1j)


def test_a_tensor_that_no_level_tracks_is_no_output():
    stack = ng.Autodiff(ng.NumpyBackend())
    x = stack.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(NotTrackedError, match=r"backward: a value of shape .* depends on nothing that requires gradients"):
        ng.Controller(stack.tensor([1.0, 2.0]))
    with pytest.raises(NotTrackedError, match=r"was it detached"):
        ng.Controller((x * x).detach())
    with pytest.raises(NoLevelLeft, match=r"backward: no level is left that recorded a value"):
        ng.Controller((x * x).inner())
    with pytest.raises(LevelError, match=r"which has no backward pass, above all levels that recorded it"):
        ng.func.vmap(lambda v: ng.backward(v * v, 1) and v)(x)


def test_a_trace_is_told_that_graphs_have_numbers():
    x = ng.Autodiff(ng.NumpyBackend()).tensor([1.0, 2.0], requires_grad=True)

    def f(v):
        inside = ng.Autodiff(ng.NumpyBackend()).tensor(v, requires_grad=True)
        ng.backward(inside * inside, 1)
        return v

    with pytest.raises(errors.TraceError, match=r"backward: got a Tensor of shape \(2,\) inside a trace.* Try func.hessian"):
        ng.jit(f)(x.detach())


@both
def test_variables_are_a_tuple_of_tensors_of_the_graph(leaves):
    x, y, z = leaves()
    u = x * y
    controller = ng.Controller(u * u)
    for name in ("fetch_hgrad", "require_grad_"):
        method = getattr(controller, name)
        with pytest.raises(DTypeError, match=rf"{name}: got a [Tt]ensor of shape \(2,\) as variables; expected a tuple of tensors"):
            method(x)
        with pytest.raises(DTypeError, match=rf"{name}: got an int as variables"):
            method(3)
        with pytest.raises(ArgumentError, match=rf"{name}: got no variables; expected one for each order"):
            method(())
    controller.backward(1)
    for name, strange in (("fetch_hgrad", z), ("require_grad_", z), ("require_grad_", z * z)):
        with pytest.raises(ValueError, match=rf"{name}: Cannot find node of a [Tt]ensor of shape \(2,\)"):
            getattr(controller, name)((strange,))
    for strange in (3.0, "x", np.ones(2), None, levels()[0], foreign()[0]):
        with pytest.raises(NestgradError, match=r"fetch_hgrad: .*expected a [Tt]ensor of the graph|Cannot find node") as caught:
            controller.fetch_hgrad((strange,))
        assert isinstance(caught.value, ValueError)


@both
def test_what_was_not_computed_is_told(leaves):
    x, y, _ = leaves()
    u = x * y
    controller = ng.Controller(u * u)
    for early in (controller.clear, lambda: controller.fetch_hgrad((x,))):
        with pytest.raises(RuntimeError, match=r"got a call before backward; expected one after it. Try controller.backward"):
            early()
    controller.backward(2)
    with pytest.raises(KeyError, match=r"No gradient saved for given key, \(a [Tt]ensor of shape \(2,\), a [Tt]ensor.* Try crossings=True"):
        controller.fetch_hgrad((x, y))
    with pytest.raises(KeyError, match=r"an order of 3 or more"):
        controller.fetch_hgrad((x, x, x))
    with pytest.raises(ValueError, match=r"Cannot find node of.*require_grad_"):
        controller.fetch_hgrad((u,))
    for flag in ("keep_batch", "keep_schwarz"):
        with pytest.raises(ValueError, match=rf"fetch_hgrad: got {flag}=1; expected True or False"):
            controller.fetch_hgrad((x,), **{flag: 1})


@both
def test_there_is_no_hgrad_before_backward_nor_of_what_is_no_leaf(leaves):
    x, y, _ = leaves()
    u = x * y
    for tensor in (x, u):
        with pytest.raises(AttributeError, match=r"hgrad"):
            tensor.hgrad  # noqa: B018
        with pytest.raises(AttributeError, match=r"hgrad|hdata"):
            tensor.hdata  # noqa: B018
    ng.backward(u, 1)
    assert hasattr(x, "hgrad") and not hasattr(u, "hgrad")


def test_a_transform_of_torch_is_told_that_graphs_have_numbers():
    x = torch.tensor([0.5, 1.0], requires_grad=True)

    def f(v):
        ng.backward((v**3).sum(), 1)
        return v.sum()

    with pytest.raises(LevelError, match=r"a Tensor of shape \(\) inside a transform of torch.func.* Try it on the whole batch"):
        torch.func.grad(f)(torch.ones(2))
    out = (x**3).sum()
    with pytest.raises(LevelError, match=r"inside a transform of torch.func"):
        torch.func.vmap(lambda v: ng.backward(out, 1, gradient=v) and v)(torch.ones(2))


@both
def test_a_hook_is_a_function(leaves):
    x, y, _ = leaves()
    with pytest.raises(DTypeError, match="register_backward_hook: got an int as hook; expected a function"):
        ng.Controller(x * y).register_backward_hook((x,), 3)


def test_an_order_may_be_any_whole_number() -> None:
    """NumPy's, for one."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    ng.backward(x**3, order=np.int64(2))  # type: ignore[arg-type]
    assert len(x.hgrad) == 2
