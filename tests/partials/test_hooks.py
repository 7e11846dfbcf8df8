"""Hooks: with those that return what they get, nothing changes; else it is Faà di Bruno's formula with the changed derivative."""

from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sp
import torch
from chain_rule_oracle import changed, composed, derivatives

import nestgrad as ng
from nestgrad.errors import ArgumentError, DTypeError, RuleError, ShapeError

ORDER = 3
X, Z = np.array([0.3, 0.7]), np.array([0.4, -0.2])


BEHIND = {"w": "ux", "q": "z", "u": "x"}


@cache
def steps(order: str) -> tuple[Any, ...]:
    """The derivatives of ``out``, and of what the variables are made of that are expanded in an order; with where each variable is."""
    v = {name: sp.symbols(f"{name}0 {name}1") for name in "wuqxz"}
    (w, u, q, x, z) = v.values()
    made = {"u": [sp.sin(s) * (x[0] + x[1]) for s in x], "w": [sp.exp(s) * x[0] for s in u], "q": [s * s for s in z]}
    at = dict(zip((*x, *z), (*X, *Z), strict=True))
    for name in "uwq":
        at |= dict(zip(v[name], [float(e.subs(at)) for e in made[name]], strict=True))
    out = [(w[0] * u[0] + w[1] * u[1]) * q[k] + w[k] ** 2 * x[k] + q[k] ** 2 * w[0] for k in range(2)]
    names = "wuqxz"
    places = [{name: 2 * k for k, name in enumerate(names)}]
    found = [derivatives(out, [s for name in names for s in v[name]], at, ORDER)]
    for name in order:
        answers = [s for other in names for s in (made[name] if other == name else v[other])]
        names = names.replace(name, "")
        places.append({other: 2 * k for k, other in enumerate(names)})
        found.append(derivatives(answers, [s for other in names for s in v[other]], at, ORDER))
    return tuple(found), tuple(places)


class Chain:
    """``out(w, u, x, z)`` with ``w(u, x)`` and ``u(x)``, all of two numbers, by nestgrad and by sympy.

    ``q`` stands beside ``w``, made of ``z`` alone.
    """

    def __init__(self, torchs: bool = False) -> None:
        if torchs:
            self.x, self.z = (torch.tensor(p, requires_grad=True) for p in (X, Z))
        else:
            level = ng.Autodiff(ng.NumpyBackend())
            self.x, self.z = (level.tensor(p, requires_grad=True) for p in (X, Z))
        x, z = self.x, self.z
        self.u = x.sin() * x.sum()
        self.w = self.u.exp() * x[0]
        self.q = z * z
        self.out = (self.w * self.u).sum() * self.q + self.w * self.w * x + self.q * self.q * self.w[0]

    @property
    def tensors(self) -> dict[str, Any]:
        return {"x": self.x, "z": self.z, "u": self.u, "w": self.w, "q": self.q}

    def oracle(self, hooks: dict[str, Any]) -> dict[int, np.ndarray]:
        """Derivatives by ``(x, z)`` with hooks, whose names tell the variables, a letter for each slot."""
        order = "qwu" if any({"w", "z"} <= set(key) for key in hooks) else "wqu"
        (found, *inner), places = steps(order)
        open_ = sorted(hooks, key=len)
        for k, place in enumerate(places):
            for key in [key for key in open_ if not any(name in BEHIND[other] for name in key for other in order[k:])]:
                found = changed(found, [(place[name], place[name] + 1) for name in key], hooks[key])
                open_.remove(key)
            found = composed(found, inner[k]) if k < len(inner) else found
        assert not open_
        return found

    def check(self, hooks: dict[str, Any], keep_schwarz: bool = False, order: int = ORDER) -> None:
        """All derivatives by leaves are the oracle's."""
        controller = ng.Controller(self.out)
        for key, f in hooks.items():
            controller.register_backward_hook([self.tensors[name] for name in key], on_tensor(f))
        controller.backward(order, crossings=True, keep_schwarz=keep_schwarz)
        want = self.oracle(hooks)
        at = {"x": (0, 1), "z": (2, 3)}
        for key in ("x", "z", "xx", "xz", "zx", "zz", "xxx", "xxz", "xzx", "zxz", "zzz"):
            if len(key) > order:
                continue
            found = controller.fetch_hgrad([self.tensors[name] for name in key])[0]
            part = want[len(key)][np.ix_(range(2), *(at[name] for name in key))]
            np.testing.assert_allclose(array(found), part, rtol=1e-10, atol=1e-12, err_msg=key)


def array(p: Any) -> np.ndarray:
    return p.detach().numpy()


def on_tensor(f: Any) -> Any:
    """A hook that changes the tensor alone."""

    def hook(data: Any, context: Any) -> Any:
        tensor, shapes, indeps, vperm = data
        return f(tensor), shapes, indeps, vperm

    return hook


def scaled(c: float) -> Any:
    return lambda t: t * c


@pytest.mark.parametrize(
    "hooks",
    [
        {"w": scaled(1.0), "uu": scaled(1.0), "qw": scaled(1.0), "xxz": scaled(1.0)},
        {"w": scaled(3.0)},
        {"www": scaled(-2.0)},
        {"u": scaled(0.0)},
        {"uu": scaled(2.0), "w": scaled(0.5)},
        {"uuu": scaled(2.0), "u": scaled(0.5), "ww": scaled(0.0)},
        {"uz": scaled(2.0)},
        {"wq": scaled(2.0), "u": scaled(0.5), "wwq": scaled(3.0)},
        {"uq": scaled(-1.0), "q": scaled(2.0)},
        {"zx": scaled(2.0), "xx": scaled(3.0), "x": scaled(0.5)},
    ],
    ids=lambda hooks: " ".join(hooks),
)
def test_derivatives_flow_on_as_hooks_change_them(hooks: dict[str, Any]) -> None:
    Chain().check(hooks)


@pytest.mark.parametrize("hooks", [{"ww": scaled(3.0), "uz": scaled(0.5)}, {"xz": scaled(2.0)}], ids=lambda hooks: " ".join(hooks))
def test_hooks_are_the_same_on_graphs_of_torch(hooks: dict[str, Any]) -> None:
    Chain(torchs=True).check(hooks, order=2)


def test_an_order_of_slots_changes_nothing() -> None:
    Chain().check({"qw": scaled(2.0), "zu": scaled(3.0), "zxx": scaled(2.0)}, keep_schwarz=True)


def test_hooks_see_which_entry_is_which() -> None:
    weights = np.array([[1.0, 2.0], [3.0, 4.0]])
    for key in ("wz", "zw"):
        turned = weights if key == "wz" else weights.T
        Chain().check({key: lambda t, turned=turned: t * turned})


def test_a_hook_runs_once_for_each_call_and_is_told_its_variables() -> None:
    chain = Chain()
    seen: Counter[str] = Counter()

    def note(name: str, tensors: Any) -> Any:
        def hook(data: Any, context: Any) -> Any:
            seen[name] += 1
            tensor, shapes, indeps, vperm = data
            rest = [n for slot, axes in zip(shapes, indeps, strict=True) for axis, n in enumerate(slot) if axis not in axes]
            assert tuple(tensor.shape) == (2, *(tensor.shape[k + 1] for k in range(len(indeps[0]))), *rest)
            assert shapes == ((2,),) * len(tensors) and vperm == tuple(range(len(tensors)))
            assert {id(t) for found in context.values() for t in found} == {id(t) for t in tensors}
            return data

        return hook

    controller = ng.Controller(chain.out)
    for key in ("w", "uu", "wq", "xz"):
        tensors = [chain.tensors[name] for name in key]
        controller.register_backward_hook(tensors, note(key, tensors))
    for k in (1, 2):
        controller.backward(ORDER, crossings=True)
        assert seen == Counter({"w": k, "uu": k, "wq": k, "xz": k})
    controller.backward(1)
    assert seen == Counter({"w": 3, "uu": 2, "wq": 2, "xz": 2})


def test_a_second_hook_on_the_same_variables_replaces_the_first() -> None:
    for torchs in (False, True):
        chain = Chain(torchs)
        controller = ng.Controller(chain.out)
        controller.register_backward_hook((chain.w, chain.q), on_tensor(scaled(7.0)))
        controller.register_backward_hook((chain.q, chain.w), on_tensor(scaled(2.0)))
        controller.backward(2, crossings=True)
        want = chain.oracle({"wq": scaled(2.0)})[2][:, :2, 2:]
        np.testing.assert_allclose(array(controller.fetch_hgrad((chain.x, chain.z))[0]), want, rtol=1e-10)


def test_retained_derivatives_are_those_that_hooks_returned() -> None:
    chain = Chain()
    controller = ng.Controller(chain.out)
    answers = {}

    def hook(data: Any, context: Any) -> Any:
        answers["tensor"] = data[0] * 2.0 + ng.arange(2.0)  # not symmetric, if it is by w twice
        return (answers["tensor"], *data[1:])

    controller.register_backward_hook((chain.w, chain.q), hook)
    controller.require_grad_((chain.q, chain.w))
    controller.require_grad_((chain.w, chain.x))
    controller.backward(2)
    found = array(controller.fetch_hgrad((chain.w, chain.q))[0])
    np.testing.assert_array_equal(found, answers["tensor"].numpy()[:, 0])
    np.testing.assert_array_equal(array(controller.fetch_hgrad((chain.q, chain.w))[0]), found.transpose(0, 2, 1))
    plain = ng.Controller(chain.out)
    plain.require_grad_((chain.w, chain.x))
    plain.backward(2)
    pair = (chain.w, chain.x)
    np.testing.assert_allclose(array(controller.fetch_hgrad(pair)[0]), array(plain.fetch_hgrad(pair)[0]), rtol=1e-12)


def test_structure_is_kept_through_hooks() -> None:
    n = 400
    x = ng.Autodiff(ng.NumpyBackend()).tensor(np.linspace(0.1, 1.0, n), requires_grad=True)
    u = x.sin()
    y = u.exp().sum()
    controller = ng.Controller(y)
    controller.register_backward_hook((u, u), on_tensor(scaled(2.0)))
    controller.backward(3)
    s, c, e = np.sin(x.numpy()), np.cos(x.numpy()), np.exp(np.sin(x.numpy()))
    block = x.hgrad.blocks[2]
    assert block.size == n
    np.testing.assert_allclose(np.asarray(block.data), e * c**3 - 2.0 * 3.0 * e * c * s - e * c, rtol=1e-12)


def test_weights_of_the_output_and_what_is_not_finite() -> None:
    x = ng.Autodiff(ng.NumpyBackend()).tensor([0.0, 1.0], requires_grad=True)
    u = x + x
    y = u**1.5
    controller = ng.Controller(y)
    controller.register_backward_hook((u,), on_tensor(scaled(3.0)))
    with np.errstate(all="ignore"):
        controller.backward(3, gradient=ng.tensor([1.0, 2.0]))
    np.testing.assert_allclose(array(x.hgrad[0]), [[0.0, 2.0 * 3.0 * 1.5 * 2.0**0.5 * 2.0]])
    assert not np.isfinite(array(x.hgrad[1])[0, 0, 0])


def test_results_can_be_differentiated_further() -> None:
    level = ng.Autodiff(ng.Autodiff(ng.NumpyBackend()))
    x = level.tensor(X, requires_grad=True)
    u = x.sin()
    y = (u * u * u).sum()
    controller = ng.Controller(y)
    controller.register_backward_hook((u,), on_tensor(lambda t: t * t))
    controller.backward(1, create_graph=True)
    first = x.hgrad[0]
    np.testing.assert_allclose(first.numpy(), [9.0 * np.sin(X) ** 4 * np.cos(X)])
    want = 36.0 * np.sin(X) ** 3 * np.cos(X) ** 2 - 9.0 * np.sin(X) ** 5
    np.testing.assert_allclose(first.sum().wrt(x).numpy(), want)
    t = torch.tensor(X, requires_grad=True)
    v = t.sin()
    again = ng.Controller((v * v * v).sum())
    again.register_backward_hook((v,), on_tensor(lambda g: g * g))
    again.backward(1, create_graph=True)
    np.testing.assert_allclose(torch.autograd.grad(t.hgrad[0].sum(), t)[0].numpy(), want)


def test_the_output_itself_numbers_and_nothing_can_be_hooked() -> None:
    level = ng.Autodiff(ng.NumpyBackend())
    x = level.tensor(0.3, requires_grad=True)
    y = x.exp() * x
    controller = ng.Controller(y)
    controller.register_backward_hook((y,), on_tensor(scaled(2.0)))
    controller.backward(3)
    np.testing.assert_allclose([float(array(x.hgrad[k]).sum()) for k in range(3)], [2.0 * np.exp(0.3) * (k + 1.3) for k in range(3)])
    empty = level.tensor(np.ones((0, 3)), requires_grad=True)
    u = empty.exp()
    controller = ng.Controller(u * u)
    controller.register_backward_hook((u, u), on_tensor(scaled(2.0)))
    controller.backward(2)
    assert empty.hgrad[1].shape == (0, 0, 3, 0, 3)


def test_a_derivative_that_is_zero_can_become_another() -> None:
    x = ng.Autodiff(ng.NumpyBackend()).tensor(X, requires_grad=True)
    u = x.exp()
    controller = ng.Controller(u.sum())
    controller.register_backward_hook((u, u), on_tensor(lambda t: t + 1.0))
    controller.backward(2)
    e = np.exp(X)
    np.testing.assert_allclose(array(x.hgrad[1])[0], np.diag(e + e * e))  # off the diagonal there is nothing for the hook to see


def test_a_hook_may_write_into_what_it_gets() -> None:
    def hook(data: Any, context: Any) -> Any:
        data[0].mul_(2.0)
        return data

    x = torch.tensor(X, requires_grad=True)
    u = x.exp()
    controller = ng.Controller((u * u).sum())
    controller.register_backward_hook((u,), hook)
    controller.register_backward_hook((x,), hook)
    controller.backward(2)
    e = np.exp(2.0 * X)
    np.testing.assert_allclose(array(x.hgrad[0])[0], 2.0 * 2.0 * 2.0 * e)
    np.testing.assert_allclose(array(x.hgrad[1])[0], np.diag(2.0 * e + 2.0 * 2.0 * e))


def test_variables_of_a_hook_are_independent() -> None:
    chain = Chain()
    controller = ng.Controller(chain.out)
    for pair in ((chain.u, chain.w), (chain.w, chain.u), (chain.w, chain.x)):
        with pytest.raises(ArgumentError, match=r"register_backward_hook: got .*variable \d\), which depends on .*unreachable during back"):
            controller.register_backward_hook(pair, lambda data, context: data)
    with pytest.raises(ArgumentError, match="Cannot find node of"):
        controller.register_backward_hook((chain.out * 2.0,), lambda data, context: data)
    with pytest.raises(DTypeError, match="got an int as hook; expected a function"):
        controller.register_backward_hook((chain.w,), 3)


def test_hooks_that_wait_for_each_other_are_refused() -> None:
    level = ng.Autodiff(ng.NumpyBackend())
    x, z = level.tensor(X, requires_grad=True), level.tensor(Z, requires_grad=True)
    u, v = x.sin(), z.sin()
    p, q = u.exp(), v.exp()
    controller = ng.Controller((p * q).sum())
    controller.register_backward_hook((p, v), lambda data, context: data)
    controller.register_backward_hook((q, u), lambda data, context: data)
    with pytest.raises(ArgumentError, match="backward: got hooks that wait for each other"):
        controller.backward(2)


@pytest.mark.parametrize(
    ("hook", "error", "words"),
    [
        (lambda data, context: data[0], RuleError, "expected the four things that it is given"),
        (lambda data, context: data[:3], RuleError, "got 3 things from the hook"),
        (lambda data, context: None, RuleError, "got a NoneType from the hook"),
        (lambda data, context: (data[0].sum(), *data[1:]), ShapeError, r"got a tensor of shape \(\) from a hook; expected \(2, 1, 2\)"),
        (lambda data, context: (data[0] * 2.0, (), *data[2:]), ShapeError, "got shapes .* from a hook; expected"),
        (lambda data, context: (data[0] * 2.0, *data[1:3], (1,)), ShapeError, "got vperm .* from a hook; expected"),
        (lambda data, context: ("no", *data[1:]), RuleError, "got a str as the tensor that a hook returned"),
    ],
)
def test_what_a_hook_returns_is_checked(hook: Any, error: type[Exception], words: str) -> None:
    chain = Chain()
    controller = ng.Controller(chain.out)
    controller.register_backward_hook((chain.w,), hook)
    with pytest.raises(error, match=words):
        controller.backward(1)
