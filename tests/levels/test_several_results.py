"""An op with several results: one node, whichever of them are used, on every kind of level."""

from typing import Any

import numpy as np
import pytest

import nestgrad as ng
from nestgrad.errors import RuleError
from nestgrad.levels.reverse.node import Tracked
from nestgrad.ops.samples import unary
from nestgrad.ops.table import ELEMENTWISE, SPECIAL, define
from nestgrad.tensor.handle import results

BACKENDS = [ng.NumpyBackend(), ng.TorchBackend(dtype="float64")]


@pytest.fixture(params=BACKENDS, ids=repr)
def base(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def halves(monkeypatch: pytest.MonkeyPatch) -> Any:
    """``(sin x, x^2, count)``: two results that have derivatives, and one that has none. The rules of both share their run."""
    op = define(
        "halves(x)", SPECIAL,
        lambda b, g, x: b.add(
            0.0 if g[0] is None else b.mul(g[0], b.cos(x)), b.mul(0.0, x) if g[1] is None else b.mul(g[1], b.scale(x, 2.0))),
        forward=(lambda b, t, x: (b.mul(t, b.cos(x)), b.mul(t, b.scale(x, 2.0)), None),),
        batched=lambda b, n, xs, on: b.halves(xs[0]),
        results=("sine", "square", "whole"), fixed=("whole",), samples=unary(-1.0, 1.0), listed=False)  # fmt: skip
    for backend in BACKENDS:
        cls = type(backend)
        monkeypatch.setattr(cls, "halves", lambda self, x: (self.sin(x), self.square(x), self.floor(x)), raising=False)
        monkeypatch.setitem(backend.dressed.table, "halves", op)
        backend.dressed.__dict__.pop("halves", None)
    yield lambda x: results("halves", x)
    for backend in BACKENDS:
        backend.dressed.__dict__.pop("halves", None)


def test_results_share_one_node(base, halves):
    S = ng.Autodiff(base)
    sine, square, whole = halves(S.tensor([0.3, 1.2], requires_grad=True))
    ((first, _, _),), ((second, _, _),) = sine.value.node.edges, square.value.node.edges
    assert first is second and len(first.edges) == 1
    assert not isinstance(whole.value, Tracked) and not whole.marks


def test_any_of_the_results_may_be_used(base, halves):
    S = ng.Autodiff(ng.Autodiff(ng.Autodiff(base)))
    at = np.array([0.3, 1.2])
    cases = [
        (lambda s, q, w: s, [np.cos(at), -np.sin(at), -np.cos(at)]),
        (lambda s, q, w: q, [2 * at, 2 + 0 * at, 0 * at]),
        (lambda s, q, w: s * q, [np.cos(at) * at**2 + 2 * at * np.sin(at),
                                 -np.sin(at) * at**2 + 4 * at * np.cos(at) + 2 * np.sin(at),
                                 -np.cos(at) * at**2 - 6 * at * np.sin(at) + 6 * np.cos(at)]),
        (lambda s, q, w: s * w, [np.cos(at) * np.floor(at), -np.sin(at) * np.floor(at), -np.cos(at) * np.floor(at)]),
    ]  # fmt: skip
    for f, wanted in cases:
        x = S.tensor(at, requires_grad=True)
        y = f(*halves(x))
        for want in wanted:
            y = y.wrt(x)
            np.testing.assert_allclose(y.numpy(), want, rtol=1e-13, atol=1e-14)


def test_forward_taylor_and_batches_agree(base, halves):
    f = lambda x: (lambda s, q, w: s * q + w)(*halves(x))
    x = base.tensor([0.3, 1.2])
    one = base.tensor([1.0, 1.0])
    S = ng.Autodiff(ng.Autodiff(ng.Autodiff(base)))
    v = S.tensor(x, requires_grad=True)
    y, wanted = f(v), []
    for _ in range(3):
        y = y.wrt(v)
        wanted.append(y.numpy())
    F = ng.Forward(base)
    np.testing.assert_allclose(F.tangent(f(F.dual(x, one))).numpy(), wanted[0], rtol=1e-13)
    T = ng.Taylor(base, 3)
    for term, want, factor in zip(T.terms(f(T.series(x, one)))[1:], wanted, (1, 2, 6), strict=True):
        np.testing.assert_allclose(term.numpy() * factor, want, rtol=1e-12)
    np.testing.assert_allclose(ng.func.vmap(ng.func.grad(f))(x).numpy(), wanted[0], rtol=1e-13)


def test_a_program_takes_the_results_apart(base):
    program = ng.func.trace(lambda x: ng.sort(x) * 2.0)(base.tensor([2.0, 1.0]))
    assert [step.op.name for step in program.instructions] == ["sort", "item", "scale"]
    assert "sort(v0, axis=0, descending=False)" in program.pretty() and "item(v1, k=0)" in program.pretty()
    out = ng.func.call(program, base.tensor([5.0, 4.0]))
    assert out.tolist() == [8.0, 10.0]


def test_they_are_computed_again_like_anything(base):
    S = ng.Autodiff(ng.Autodiff(base, checkpointing=ng.Balanced()), checkpointing=ng.Balanced())
    x = S.tensor([0.3, -0.2, 1.0], requires_grad=True)
    weights = base.tensor([1.0, 2.0, 3.0])
    f = lambda x: ((ng.sort(x.sin()) * weights) ** 2).sum()
    g = f(x).wrt(x)
    plain = ng.Autodiff(ng.Autodiff(base))
    y = plain.tensor([0.3, -0.2, 1.0], requires_grad=True)
    h = f(y).wrt(y)
    assert g.tolist() == h.tolist() and (g * g).wrt(x).tolist() == (h * h).wrt(y).tolist()
    z = plain.tensor([0.3, -0.2, 1.0], requires_grad=True)
    k = ng.checkpoint(f)(z).wrt(z)
    assert k.tolist() == h.tolist() and (k * k).wrt(z).tolist() == (h * h).wrt(y).tolist()


def test_an_array_that_is_shared_is_sorted_as_one_that_is_copied():
    base = ng.NumpyBackend()
    x = ng.Autodiff(base).tensor(base.from_numpy(np.array([2.0, 1.0])), requires_grad=True)
    y = ng.sort(x) * base.tensor([3.0, 4.0])
    assert y.tolist() == [3.0, 8.0] and y.wrt(x).tolist() == [4.0, 3.0]


def test_what_define_refuses():
    rule = lambda b, g: g[0]
    forward = lambda b, t: (t, None)
    for kind, names, fixed in ((ELEMENTWISE, ("p", "q"), ()), (SPECIAL, ("p", "q"), ("p", "q")), (SPECIAL, ("p", "out"), ())):
        with pytest.raises(RuleError, match="expected a special op, names that mean nothing else in rules, and one result that is not"):
            define("pair(x)", kind, rule, forward=(forward,) if kind is SPECIAL else (), results=names, fixed=fixed,
                   samples=unary(0.0, 1.0), listed=False)  # fmt: skip
