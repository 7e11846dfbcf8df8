"""Arguments and outputs of transforms as nested structures, and where plain numbers go. The oracle is PyTorch's, or worked out by hand."""

from collections import OrderedDict, namedtuple
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

import nestgrad as ng
from nestgrad import func
from nestgrad.backends import TorchBackend
from nestgrad.errors import DTypeError, LevelError, NotConnectedError, ShapeError
from nestgrad.levels.autodiff import Autodiff

Layer = namedtuple("Layer", "w b")
RNG = np.random.default_rng(5)
W, B = RNG.normal(size=(3, 2)), RNG.normal(size=3)


def test_a_gradient_has_the_structure_of_the_argument(base):
    layers = {"first": Layer(base.tensor(W), base.tensor(B)), "others": [base.tensor(B), (2.0,)], "none": None}
    found = func.grad(lambda p: ((p["first"].w.sum(1) * p["first"].b).sum() * p["others"][1][0]).sin())(layers)
    w, b = torch.tensor(W, requires_grad=True), torch.tensor(B, requires_grad=True)
    s = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    ((w.sum(1) * b).sum() * s).sin().backward()
    assert list(found) == ["first", "others", "none"] and isinstance(found["first"], Layer) and found["none"] is None
    np.testing.assert_allclose(found["first"].w.numpy(), w.grad.numpy(), rtol=1e-14)
    np.testing.assert_allclose(found["first"].b.numpy(), b.grad.numpy(), rtol=1e-14)
    np.testing.assert_allclose(found["others"][1][0].item(), s.grad.item(), rtol=1e-14)
    assert found["others"][0].tolist() == [0.0, 0.0, 0.0]


def test_several_arguments_of_which_some_are_structures(base):
    f = lambda p, s, q: p[0] * p[1] * s * q["z"]
    (by_p, by_s), value = func.grad(lambda *a: (f(*a), "data"), argnums=(0, -2), has_aux=True)((base.tensor(2.0), 3.0), 5.0, {"z": 7.0})
    assert [by_p[0].item(), by_p[1].item(), by_s.item(), value] == [105.0, 70.0, 42.0, "data"]


def test_a_pullback_of_structures_is_the_transpose_of_the_whole_jacobian(base):
    """One pass for all outputs: by a seed for each, as torch.func has it."""
    x, y = RNG.normal(size=3), RNG.normal(size=(2, 2))

    def f(x: Any, y: Any, lib: Any) -> Any:
        return {"a": (lib.sin(x) * y[0, 0], y.sum() * x), "b": [lib.exp(y)], "n": 3.0 * x.sum()}

    def torch_f(x: Any, y: Any) -> Any:
        return f(x, y, torch)

    value, pull = func.vjp(lambda x, y: f(x, y, ng), base.tensor(x), base.tensor(y))
    want, torch_pull = torch.func.vjp(torch_f, torch.tensor(x), torch.tensor(y))
    seeds = {"a": (RNG.normal(size=3), RNG.normal(size=3)), "b": [RNG.normal(size=(2, 2))], "n": RNG.normal(size=())}
    by_x, by_y = pull(seeds)
    torch_seeds = {"a": tuple(map(torch.tensor, seeds["a"])), "b": [torch.tensor(seeds["b"][0])], "n": torch.tensor(seeds["n"])}
    want_x, want_y = torch_pull(torch_seeds)
    np.testing.assert_allclose(by_x.numpy(), want_x.numpy(), rtol=1e-13)
    np.testing.assert_allclose(by_y.numpy(), want_y.numpy(), rtol=1e-13)
    np.testing.assert_allclose(value["a"][1].numpy(), want["a"][1].numpy(), rtol=1e-14)


def test_outputs_that_do_not_depend_take_no_part(base):
    """Whole numbers among the outputs, too."""
    value, pull = func.vjp(lambda x: (x * x, base.tensor([4, 5]), x.argmax(), 7.0), base.tensor([1.0, 3.0]))
    assert [v.tolist() for v in value] == [[1.0, 9.0], [4, 5], 1, 7.0]
    assert pull((np.array([1.0, 10.0]), np.zeros(2), 0.0, 0.0))[0].tolist() == [2.0, 60.0]
    _, pull = func.vjp(lambda x: (base.tensor(1.0), base.tensor(2.0)), base.tensor([1.0, 3.0]))
    assert pull((1.0, 1.0))[0].tolist() == [0.0, 0.0]


def test_ordered_dicts_keep_their_order(base):
    p = OrderedDict(z=base.tensor(2.0), a=base.tensor(3.0))
    found = func.grad(lambda p: p["z"] ** 2 * p["a"])(p)
    assert isinstance(found, OrderedDict) and [(k, v.item()) for k, v in found.items()] == [("z", 12.0), ("a", 4.0)]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_structures_of_a_tracked_closure_are_differentiated_outside(levels, depth):
    """f = sum(c * w^2 * x) / ...: d/dw of the gradient by the argument is 2 c w, of a function with two outputs as well."""
    s = levels(depth)
    w = s.tensor([0.5, -1.5], requires_grad=True)
    g = func.grad(lambda p: (w**2 * p["x"]).sum() * p["c"])({"x": np.array([2.0, 3.0]), "c": 4.0})
    assert g["x"].tolist() == [1.0, 9.0]
    assert w.grad(g["x"].backward()).tolist() == [4.0, -12.0]
    assert w.grad(g["c"].backward()).tolist() == [2.0, -9.0]
    _, pull = func.vjp(lambda x: (w**2 * x, w * x.sin()), np.array([2.0, 3.0]))
    g = pull((np.ones(2), np.ones(2)))[0]
    np.testing.assert_allclose(g.numpy(), np.array([0.25, 2.25]) + np.array([0.5, -1.5]) * np.cos([2.0, 3.0]), rtol=1e-14)
    np.testing.assert_allclose(w.grad(g.backward()).numpy(), np.array([1.0, -3.0]) + np.cos([2.0, 3.0]), rtol=1e-14)


class Model:
    """Parameters in attributes, as people write it."""

    def __init__(self, weights: Any) -> None:
        self.layers = [{"w": weights}]

    def loss(self, x: Any) -> Any:
        return (self.layers[0]["w"] * x).sum()

    def __call__(self, x: Any) -> Any:
        return self.loss(x)


held = TorchBackend(dtype="float64").tensor([2.0, 3.0])


def test_plain_arguments_go_to_the_backend_of_what_the_function_captures():
    """To that of a closure, a bound object, a stack, a default, a partial application or a global; else to NumPy."""
    s = Autodiff(TorchBackend(dtype="float64"))
    w = s.tensor([2.0, 3.0], requires_grad=True)
    model = Model(w)
    stored = [w]
    six = lambda x: (w * x**6).sum() / 720.0  # its sixth derivative is 5
    for k in range(5):
        six = func.grad(six) if k % 2 else func.jacfwd(six)
    functions = (
        lambda x: (w * x).sum(), lambda x: stored[0].sum() * x, model.loss, model, lambda x: model(x),
        partial(lambda v, x: (v * x).sum(), w),
        lambda x, v=w: (v * x).sum(), func.grad(lambda x: 0.5 * (w * x).sum() * x), six, lambda x: (held * x).sum(),
        lambda x: func.grad(lambda y: (held * y).sum() * y)(x / 2.0), lambda x: s.tensor(x, requires_grad=True) * 5.0,
    )  # fmt: skip
    for f in functions:
        assert func.grad(f)(1.0).item() == 5.0
        assert repr(func.grad(f)(1.0).backend) == repr(s.base)
    assert func.grad(lambda x: x * x)(1.0).backend.name == "numpy"
    assert func.grad(lambda p: (p[0] * p[1]).sum())((w, 1.0))[1].item() == 5.0
    assert func.grad(lambda p, q: (p * q).sum(), 1)(torch.tensor([1.0, 2.0]), 1.0).backend.name == "torch"


def test_a_variable_without_a_value_yet_is_passed_over():
    def outer() -> float:
        g = func.grad(lambda x: x * later if x < 0 else x)
        first = g(2.0).item()
        later = 3.0
        return first + later

    assert outer() == 4.0


@pytest.mark.parametrize(
    ("run", "error", "match"),
    [
        (lambda x: func.grad(lambda v: {"a": v})(x), LevelError, r"grad: the function returned a dict; expected a Tensor\. Try vjp"),
        (lambda x: func.vjp(lambda v: (), x), LevelError, r"vjp: the function returned a tuple; expected a Tensor"),
        (lambda x: func.vjp(lambda v: (v, "text"), x), LevelError, r"vjp: the function returned a str; expected a Tensor"),
        (lambda x: func.vjp(lambda v: v[0], {0: x, 1: 3}), DTypeError, r"vjp: got an argument of dtype .*int64; expected a floating one"),
        (lambda x: func.vjp(lambda v: v, {"a": {}}), ShapeError, r"vjp: got argument 0 without any Tensor, array or number"),
        (lambda x: func.vjp(lambda v: (v, v), x)[1]([1.0, 1.0]), ShapeError,
         r"vjp: got a cotangent of structure \[\*, \*\] for a value of structure \(\*, \*\); expected the same nesting"),
        (lambda x: func.vjp(lambda v: (v, v), x)[1]((1.0, np.ones(3))), ShapeError, r"gradient of shape \(3,\) for a root of shape \(\)"),
        (lambda x: func.grad(lambda p: p["a"], strict=True)({"a": x, "b": [x]}), NotConnectedError,
         r"grad: the output does not depend on argument 0\['b'\]\[0\], of shape \(\), and strict=True forbids zeros"),
        (lambda x: func.grad(lambda p, q: p * 1.0, (0, 1), strict=True)(x, x), NotConnectedError, r"not depend on argument 1, of shape"),
    ],
)  # fmt: skip
def test_a_structure_that_does_not_fit_is_a_typed_error(base, run, error, match):
    with pytest.raises(error, match=match):
        run(base.tensor(2.0))


def test_a_function_that_changes_the_structure_it_is_given_changes_its_own_copy(base):
    def f(p):
        p["extra"] = p.pop("x") * 2.0
        return p["extra"] ** 2

    p = {"x": base.tensor(3.0)}
    for run in (
        lambda: func.grad(f)(p)["x"], lambda: func.vjp(f, p)[1](1.0)[0]["x"], lambda: func.jvp(f, p, {"x": 1.0})[1],
        lambda: func.linearize(f, p)[1]({"x": 1.0}), lambda: func.jacrev(f)(p)["x"], lambda: func.jacfwd(f)(p)["x"],
        lambda: func.taylor(f, p, {"x": 1.0}, 1)[1], lambda: func.vmap(func.grad(f))({"x": p["x"].reshape(1)})["x"][0],
    ):  # fmt: skip
        assert run().item() == 24.0
        assert [*p] == ["x"]
