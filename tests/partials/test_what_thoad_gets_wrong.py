"""What thoad 0.1.0 gets wrong, or stops at: every partial derivative of functions of torch tensors, against nested torch.autograd."""

import gc
import itertools
import math
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="these are graphs that PyTorch recorded")

from nested_oracle import partial  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import nestgrad as ng  # noqa: E402
from nestgrad.errors import NestgradError  # noqa: E402

Tensor = Any


@dataclass(frozen=True)
class Case:
    """A function, its leaves, the highest order. Leaves are shapes, of which normal numbers are drawn, or the numbers themselves.

    ``spelled``: the same function in parts, where torch has no second derivatives of the whole.
    """

    name: str
    f: Callable[..., Tensor]
    leaves: tuple[Any, ...]
    order: int
    spelled: Callable[..., Tensor] | None = None

    def right(self, leaves: list[Tensor], key: tuple[int, ...]) -> Tensor:
        """The partial derivative by the leaves of these numbers."""
        return partial((self.spelled or self.f)(*leaves), [leaves[n] for n in key])

    def drawn(self) -> list[Tensor]:
        """The leaves."""
        generator = torch.Generator().manual_seed(len(self.name))
        made = []
        for leaf in self.leaves:
            if isinstance(leaf, tuple):
                made.append(torch.randn(leaf, generator=generator, dtype=torch.float64).requires_grad_())
            else:
                made.append(torch.tensor(leaf, dtype=torch.float64, requires_grad=True))
        return made


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Softmax of products, times values."""
    return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), -1) @ v


def tanh_net(x: Tensor, *layers: Tensor) -> Tensor:
    """Layers as ``nn.Linear`` has them: weights are transposed."""
    *hidden, last = zip(layers[::2], layers[1::2], strict=True)
    for weight, bias in hidden:
        x = torch.tanh(F.linear(x, weight, bias))
    return F.linear(x, *last)


def by_hand(x: Tensor) -> Tensor:
    """A layer norm."""
    middle = x - x.mean(-1, keepdim=True)
    return middle / ((middle**2).mean(-1, keepdim=True) + 1e-2).sqrt()


POSITIVE = [0.2, 0.5, 0.3]
LABELS = torch.tensor([[0.0, 1.0], [1.0, 1.0]], dtype=torch.float64)
POINTS = torch.linspace(-1, 1, 6, dtype=torch.float64).reshape(2, 3)

TWICE = [
    Case("x * x", lambda x: x * x, ((2, 2),), 3),
    Case("x + x", lambda x: x + x, ((3,),), 2),
    Case("(x + x) ** 2", lambda x: (x + x) ** 2, ((3,),), 3),
    Case("x - x", lambda x: (x - x) + x**2, ((3,),), 2),
    Case("x / x", lambda x: x / x, ((3,),), 2),
    Case("x @ x", lambda x: x @ x, ((2, 2),), 3),
    Case("dot(x, x)", lambda x: torch.dot(x, x), ((3,),), 3),
    Case("u * u", lambda x: (lambda u: u * u)(torch.sin(x)), ((3,),), 4),
    Case("bmm(x, x)", lambda x: torch.bmm(x, x), ((2, 2, 2),), 2),
    Case("kl_div", lambda x, p: F.kl_div(x, p, reduction="sum"), ((3,), POSITIVE), 3),
    Case("kl_div of one", lambda x: F.kl_div(x, x.exp(), reduction="sum"), ((3,),), 3),
]
"""The same tensor twice in one op."""

SQUARE = [
    Case("transposed", lambda x: torch.sin(x.t()) @ x, ((2, 2),), 3),
    Case("linear", lambda x, w: torch.tanh(F.linear(x, w)), ((2, 2), (2, 2)), 2),
    Case("linear with bias", lambda x, w, b: torch.tanh(F.linear(x, w, b)), ((1, 2), (2, 2), (2,)), 2),
    Case("MLP 3-3-3-1", lambda *layers: (tanh_net(POINTS, *layers) ** 2).mean(), ((3, 3), (3,), (3, 3), (3,), (1, 3), (1,)), 2),
    Case("MLP 2-2-1", lambda *layers: (tanh_net(POINTS[:, :2], *layers) ** 2).sum(), ((2, 2), (2,), (1, 2), (1,)), 3),
]
"""Square matrices, which are transposed."""

KEPT = [
    Case("sum, keepdim", lambda x: torch.tanh(x.sum(1, keepdim=True)), ((2, 3),), 4),
    Case("mean, keepdim", lambda x: torch.sin(x.mean(0, keepdim=True)) * x, ((2, 2),), 3),
    Case("centred", lambda x: ((x - x.mean(1, keepdim=True)) ** 3).sum(), ((2, 3),), 3),
    Case("softmax by hand", lambda x: x.exp() / x.exp().sum(1, keepdim=True), ((2, 2),), 3),
    Case("x / x.sum()", lambda x: x / x.sum(), ((3,),), 3),
    Case("x / norm", lambda x: x / (x * x).sum(-1, keepdim=True).sqrt(), ((2, 2),), 3),
    Case("x / linalg.norm", lambda x: x / torch.linalg.vector_norm(x), ((3,),), 3),
    Case("layer norm by hand", by_hand, ((2, 3),), 3),
]
"""Sums that keep their axis, before something that is not linear."""

CROSSED = [
    Case("softmax(x @ y) @ y.T", lambda x, y: torch.softmax(x @ y, -1) @ y.T, ((2, 3), (3, 2)), 2),
    Case("softmax(x @ y) @ y.T, order 3", lambda x, y: torch.softmax(x @ y, -1) @ y.T, ((1, 2), (2, 2)), 3),
    Case("tanh(x @ y.T.T) @ y.T", lambda x, y: torch.tanh(x @ y.T.T) @ y.T, ((2, 3), (3, 2)), 2),
    Case("keys are values", lambda x, y: F.scaled_dot_product_attention(x, y.T, y.T), ((2, 3), (3, 4)), 2),
    Case("three leaves", attention, ((2, 2), (3, 2), (3, 2)), 2),
    Case("three leaves, order 3", attention, ((1, 1), (2, 1), (2, 1)), 3),
    Case("batched attention", F.scaled_dot_product_attention, ((1, 1, 2, 2), (1, 1, 2, 2), (1, 1, 2, 2)), 2, attention),
]
"""Mixed partials; attention."""

SOFTMAX = [
    Case("softmax", lambda x: torch.softmax(x, -1), ((3,),), 4),
    Case("softmax, an axis", lambda x: torch.softmax(x, 0), ((2, 2),), 3),
    Case("log_softmax", lambda x: torch.log_softmax(x, -1), ((3,),), 4),
    Case("softmax far apart", lambda x: torch.softmax(x, -1), ([0.0, -40.0, -3.0],), 3),
    Case("log_softmax far apart", lambda x: torch.log_softmax(x, -1), ([0.0, -40.0, -3.0],), 3),
    Case("cross entropy", lambda x: F.cross_entropy(x, torch.tensor([1, 0])), ((2, 3),), 4),
]
"""Softmax: its third derivatives are cumulants, not central moments, and its probabilities may be small."""

PRODUCTS = [
    Case("prod", lambda x: x.prod(), ((4,),), 3),
    Case("prod with a zero", lambda x: x.prod(), ([2.0, 0.0, 3.0],), 4),
    Case("prod with two zeros", lambda x: x.prod(), ([2.0, 0.0, 0.0],), 4),
    Case("prod of an axis", lambda x: x.prod(1), ((2, 3),), 3),
    Case("repeat", lambda x: torch.sin(x.repeat(2, 1)) * torch.arange(8.0, dtype=torch.float64).reshape(4, 2), ((2, 2),), 2),
    Case("repeat in two axes", lambda x: x.repeat(2, 3) ** 3, ((2, 1),), 3),
    Case("broadcast bmm", lambda x, y: torch.matmul(x, y), ((1, 2, 2), (2, 2, 2)), 2),
    Case("x @ x.t()", lambda x: x @ x.t(), ((2, 2),), 3),
    Case("x @ x.t(), not square", lambda x: torch.sin(x @ x.t()), ((2, 3),), 2),
    Case("einsum", lambda x, y: torch.einsum("ij,jk->ik", x.sin(), y), ((2, 3), (3, 2)), 2),
    Case("vector times matrix", lambda x, y: torch.tanh(x @ y), ((3,), (3, 2)), 2),
    Case("sum times x", lambda x: x.sum() * x, ((3,),), 3),
]
"""Products, and tilings."""

ACTIVATIONS = [
    Case("selu", F.selu, ((6,),), 3),
    Case("gelu", F.gelu, ((4,),), 4),
    Case("gelu, tanh", lambda x: F.gelu(x, approximate="tanh"), ((4,),), 4),
    Case("softplus above its threshold", F.softplus, ([0.5, 19.0, 21.0, 30.0],), 4),
    Case("softplus, beta", lambda x: F.softplus(x, beta=3.0, threshold=2.0), ([0.1, 0.6, 0.7, 5.0],), 3),
    Case("celu", lambda x: F.celu(x, alpha=1.5), ((4,),), 4),
    Case("elu", lambda x: F.elu(x, alpha=0.5), ((4,),), 4),
    Case("bce with weights", lambda x: F.binary_cross_entropy_with_logits(x, LABELS, pos_weight=torch.tensor([2.0, 3.0])), ((2, 2),), 3),
    Case("prelu of one weight", lambda x, w: F.prelu(x, w), ((4,), (1,)), 3),
    Case("smooth_l1", lambda x: F.smooth_l1_loss(x, POINTS[0], reduction="sum"), ([-3.0, 0.2, 0.9],), 3),
]
"""Scales and flags of activations and losses."""

POWERS = [
    Case("square at 0", lambda x: x**2, ([0.0, 1.5, -2.0],), 4),
    Case("cube at 0", lambda x: x**3, ([0.0, 1.5, -2.0],), 4),
    Case("x ** 2.5", lambda x: x**2.5, ([0.5, 1.5],), 4),
    Case("1 / x", lambda x: 1 / x, ((3,),), 3),
    Case("2 - x, 2 ** x", lambda x: (2 - x) * 2**x, ((3,),), 3),
]
"""Powers."""

PICKED = [
    Case("last", lambda x: x[-1] ** 2, ((3,),), 3),
    Case("last column", lambda x: torch.exp(x[:, -1]), ((2, 2),), 2),
    Case("a slice from behind", lambda x: (x[-2:] * x[:2]).sum(), ((3,),), 3),
    Case("cat, split", lambda x, y: (lambda a, b: a * b)(*torch.cat([x, y]).split(2)), ((2,), (2,)), 3),
    Case("chunk, stack", lambda x: torch.stack(x.chunk(2, 1)).prod(0), ((2, 2),), 3),
    Case("unbind, cumsum", lambda x: (lambda a, b: a.cumsum(0) ** 2 * b)(*x.unbind(0)), ((2, 2),), 3),
]
"""Entries, and parts."""

ZERO = [
    Case("dot(x, y): no (x, x, y)", torch.dot, ((2,), (2,)), 3),
    Case("linear net: no (W, V, V)", lambda w, v: (POINTS[:, :2] @ w @ v).sum(), ((2, 2), (2, 1)), 3),
    Case("x * 2 + y", lambda x, y: x * 2 + y, ((2,), (2,)), 3),
]
"""Partial derivatives that are zero everywhere."""

SHAPES = [
    Case("a number", lambda x: x.sin() * x, (0.5,), 4),
    Case("a number and more", lambda x, y: x * y.sin(), (0.5, (2, 2)), 3),
    Case("one entry", lambda x: (x * x).sin(), ((1, 1),), 3),
    Case("no entries", lambda x: x.sin(), ((0,),), 2),
    Case("no entries, summed", lambda x, y: x.sum() + y.sin(), ((2, 0), (2,)), 2),
    Case("of two axes, transposed", lambda x: x.mT.sin() @ x, ((2, 3),), 2),
    Case("a shared part, a diamond", lambda x: (lambda u: u.exp() * u + u.sin())(x * x), ((3,),), 4),
]
"""Leaves and graphs of other shapes."""

CASES = [*TWICE, *SQUARE, *KEPT, *CROSSED, *SOFTMAX, *PRODUCTS, *ACTIVATIONS, *POWERS, *PICKED, *ZERO, *SHAPES]


def close(found: Tensor, right: Tensor) -> None:
    """Roundings of a few hundred operations apart."""
    assert found.shape == right.shape
    assert found.dtype == right.dtype and not found.requires_grad
    torch.testing.assert_close(found, right, rtol=1e-10, atol=1e-11 * max(1.0, float(right.abs().max()) if right.numel() else 0.0))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_partial_derivative_is_that_of_nested_passes(case):
    leaves = case.drawn()
    output = case.f(*leaves)
    controller = ng.backward(output, case.order, crossings=True)
    for k in range(1, case.order + 1):
        for key in itertools.product(range(len(leaves)), repeat=k):
            by = [leaves[n] for n in key]
            right = case.right(leaves, key)
            found, (shapes, indeps, vperm) = controller.fetch_hgrad(by)
            close(found, right)
            assert tuple(shapes) == tuple(tuple(leaf.shape) for leaf in by) and len(indeps) == len(vperm) == k
            if len(set(key)) == 1:
                close(leaves[key[0]].hgrad[k - 1], right)


@pytest.mark.parametrize("case", CROSSED, ids=lambda case: case.name)
def test_pure_partials_need_no_mixed_ones(case):
    leaves = case.drawn()
    ng.backward(case.f(*leaves), 2)
    for k, leaf in enumerate(leaves):
        close(leaf.hgrad[1], case.right(leaves, (k, k)))


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (1, 2, 3)])
def test_a_seed_may_have_any_rank(shape):
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
    seed = torch.randn(shape, generator=generator, dtype=torch.float64)
    f = lambda x: torch.sin(x) * x.sum()
    ng.backward(f(x), 2, gradient=seed)
    for k in (1, 2):
        close(x.hgrad[k - 1], partial((f(x) * seed).sum(), (x,) * k))


def test_complex_numbers_are_right_or_refused():
    x = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
    f = lambda x: (x * (1 + 1j)).abs()
    try:
        ng.backward(f(x), 1)
    except NestgradError:
        return
    close(x.hgrad[0], partial(f(x), (x,)))


# the controller


def controlled() -> tuple[Tensor, Tensor, Tensor, Callable[[], Tensor]]:
    """Two leaves, what is between, and a function of them."""
    generator = torch.Generator().manual_seed(4)
    x, y = (torch.randn(3, generator=generator, dtype=torch.float64).requires_grad_() for _ in range(2))
    u = torch.sin(x) * y
    return x, y, u, lambda: (u * u * x).sum()


def test_another_tensor_can_be_put_into_a_controller():
    x, _, _, f = controlled()
    controller = ng.Controller(f())
    controller.backward(1)
    again = (x**3).sum()
    controller.tensor = again
    controller.backward(2)
    assert controller.tensor is again
    close(x.hgrad[1], partial((x**3).sum(), (x, x)))


def test_order_one_does_not_spoil_order_two():
    x = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64, requires_grad=True)
    controller = ng.Controller(x.sin())
    controller.backward(1, keep_batch=True)
    controller.backward(2, keep_batch=True)
    assert x.hgrad[1].shape == (3, 3)


def test_a_hook_on_a_mixed_key_reaches_both_orderings():
    x, y, _, f = controlled()
    right = partial(f(), (x, y))
    controller = ng.Controller(f())
    calls = []

    def tenfold(data: Any, context: Any) -> Any:
        calls.append(context)
        tensor, *rest = data
        return (tensor * 10, *rest)

    controller.register_backward_hook((x, y), tenfold)
    controller.backward(2, crossings=True)
    assert len(calls) == 1
    close(controller.fetch_hgrad((x, y))[0], 10 * right)
    close(controller.fetch_hgrad((y, x))[0], 10 * right.transpose(1, 2))
    close(controller.fetch_hgrad((x, x))[0], partial(f(), (x, x)))


def test_a_tensor_in_between_can_be_kept_with_a_leaf():
    x = torch.tensor([0.3, 0.4], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    u = torch.sin(x)
    z = (u * y).exp().sum()
    controller = ng.Controller(z)
    controller.require_grad_((u, y))
    controller.backward(2)
    close(controller.fetch_hgrad((u, y))[0], partial(z, (u, y)))


def test_groups_may_be_generators_and_may_not_overlap():
    x, y, _, f = controlled()
    controller = ng.backward(f(), 2, groups=((leaf for leaf in group) for group in [(x, y)]))
    close(controller.fetch_hgrad((x, y))[0], partial(f(), (x, y)))
    with pytest.raises(ValueError, match="group"):
        ng.backward(f(), 2, groups=[(x, y), (y,)])


def test_it_works_without_grad_mode_and_leaves_hold_no_graph():
    x, _, u, f = controlled()
    z = f()
    right = partial(f(), (x, x))
    with torch.no_grad():
        ng.backward(z, 2)
    close(x.hgrad[1], right)
    assert x.grad is None and not x.hgrad[0].requires_grad
    kept = weakref.ref(z)
    del z, u, f
    gc.collect()
    assert kept() is None


def test_the_same_metadata_each_time():
    x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    y = torch.ones(3, 4, dtype=torch.float64, requires_grad=True)
    said = []
    for _ in range(3):
        controller = ng.backward(torch.tanh(x @ y), 2, crossings=True)
        said.append((controller.fetch_hgrad((x, y))[1], controller.fetch_hgrad((y, x), keep_batch=True)[1]))
    assert said[0] == said[1] == said[2]
    assert said[0][0][0] == ((2, 3), (3, 4)) and said[0][1][0] == ((3, 4), (2, 3))


def test_residual_blocks_are_walked_once():
    x = torch.tensor([0.3, 0.7], dtype=torch.float64, requires_grad=True)
    u = x
    for _ in range(60):
        u = torch.sin(u) + u / 2
    controller = ng.Controller(u)
    assert controller.compatible
    controller.backward(2)
    close(x.hgrad[1], partial(u, (x, x)))


def test_a_chain_may_be_longer_than_pythons_stack():
    x = torch.tensor([0.3], dtype=torch.float64, requires_grad=True)
    u = x
    for _ in range(2000):
        u = torch.sin(u)
    ng.backward(u, 1)
    close(x.hgrad[0], partial(u, (x,)))


def test_what_is_not_supported_is_named_when_the_controller_is_made():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return g * 2

    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(NestgradError, match="Twice"):
        ng.Controller(Twice.apply(x).sin()).backward(1)
