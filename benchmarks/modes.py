"""Forward, Taylor and batched levels against torch: high orders, products with second derivatives, per-sample gradients."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import torch

import nestgrad as ng
from benchmarks.timing import interleaved, markdown, median, ratio
from nestgrad import func

ORDERS = 10
TORCH_ORDERS = 6
"""Beyond that, torch's nested backward passes take longer than all the rest."""
POINTS, REPEATS = 1000, 60
SIZES = {(256, 32): 300, (4096, 64): 40}
"""(points, units): how often each function is run."""
Layers = list[tuple[Any, Any]]


def layers(widths: list[int], convert: Callable[[Any], Any]) -> Layers:
    """Weights and biases of a net."""
    rng = np.random.default_rng(0)
    made = []
    for n, m in pairwise(widths):
        weight, bias = rng.normal(size=(n, m)) / np.sqrt(n), rng.normal(size=m) / 10
        made.append((convert(weight.astype("float32")), convert(bias.astype("float32"))))
    return made


def net(x: Any, net: Layers, linear: Callable[[Any, Any, Any], Any], tanh: Callable[[Any], Any]) -> Any:
    """A tanh net."""
    *hidden, last = net
    for weight, bias in hidden:
        x = tanh(linear(x, weight, bias))
    return linear(x, *last)


def ours(x: Any, made: Layers) -> Any:
    """The net here."""
    return net(x, made, ng.linear, lambda h: h.tanh())


def theirs(x: Any, made: Layers) -> Any:
    """The net in torch, in its own fastest spelling."""
    return net(x, made, lambda h, weight, bias: torch.addmm(bias, h, weight), torch.tanh)


def nested(f: Callable[[Any], Any], x: Any, order: int) -> Any:
    """The derivative of an order by torch's autograd, pass after pass."""
    x = x.clone().requires_grad_()
    y = f(x)
    for _ in range(order):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    return y


def agree(found: Any, right: Any, tolerance: float) -> None:
    """Both computed the same."""
    right = right.detach().numpy() if isinstance(right, torch.Tensor) else right
    scale = np.abs(right).max()
    assert np.abs(found.numpy() - right).max() <= tolerance * scale, "the values differ"


def order_rows() -> list[list[str]]:
    """Milliseconds of all derivatives up to an order, for each order; torch's nested passes beside it."""
    points = np.random.default_rng(1).uniform(-1, 1, (POINTS, 1)).astype("float32")
    widths = [1, 64, 64, 64, 1]
    backends = {"NumPy": ng.NumpyBackend(dtype="float32"), "torch": ng.TorchBackend(dtype="float32")}
    made = {name: layers(widths, backend.tensor) for name, backend in backends.items()}
    xs = {name: (backend.tensor(points), backend.tensor(np.ones_like(points))) for name, backend in backends.items()}
    peer, peer_x = layers(widths, torch.tensor), torch.tensor(points)
    rows = []
    for order in range(1, ORDERS + 1):
        runs: dict[str, Callable[[], Any]] = {
            name: lambda name=name, order=order: func.taylor(lambda x: ours(x, made[name]), *xs[name], order) for name in backends
        }
        if order <= TORCH_ORDERS:
            runs["nested"] = lambda order=order: nested(lambda x: theirs(x, peer), peer_x, order)
            agree(runs["NumPy"]()[order] * float(np.prod(range(1, order + 1))), runs["nested"](), 1e-3)  # float32, six passes deep
        times = interleaved(runs, max(3, REPEATS // order if order < 5 else REPEATS // 12))
        cells = [f"{median(times[name]) * 1e3:.2f}" for name in backends]
        if "nested" in times:
            cells += [f"{median(times['nested']) * 1e3:.1f}", *(f"{ratio(times, 'nested', name):.1f}" for name in backends)]
        else:
            cells += ["", "", ""]
        rows.append([str(order), *cells])
    return rows


def chain(x: Any) -> Any:
    """Six operations on a number; methods that torch's tensors have, too."""
    return ((x.sin() * x).exp().tanh() + x).square()


def chain_rows() -> list[list[str]]:
    """Milliseconds of the derivatives of a chain of six operations up to order 6, at one point, in float64."""
    start = torch.tensor(0.7, dtype=torch.float64)
    runs = {
        "ours": lambda: func.taylor(chain, 0.7, 1.0, 6),
        "torch": lambda: nested(chain, start, 6),
    }
    agree(runs["ours"]()[6] * 720.0, runs["torch"](), 1e-9)
    times = interleaved(runs, 20)
    return [[f"{median(times['ours']) * 1e3:.2f}", f"{median(times['torch']) * 1e3:.1f}", f"{ratio(times, 'ours', 'torch'):.3f}"]]


def product_rows() -> list[list[str]]:
    """Ratios of a product to what it is a product with, and to torch's."""
    return [product_row(n, units, repeats) for (n, units), repeats in SIZES.items()]


def product_row(n: int, units: int, repeats: int) -> list[str]:
    """The row of one size."""
    widths, rng = [2, units, units, units, 1], np.random.default_rng(2)
    points, along = rng.uniform(-1, 1, (n, 2)).astype("float32"), rng.normal(size=(n, 2)).astype("float32")
    backend = ng.TorchBackend(dtype="float32")
    x, v, px, pv = backend.tensor(points), backend.tensor(along), torch.tensor(points), torch.tensor(along)
    flat = [p for pair in layers(widths, backend.tensor) for p in pair]
    peer = [p for pair in layers(widths, torch.tensor) for p in pair]
    ones, peer_ones = [p * 0.0 + 1.0 for p in flat], [torch.ones_like(p) for p in peer]

    def f(x: Any, flat: Any = flat) -> Any:
        return ours(x, list(zip(flat[::2], flat[1::2], strict=True)))

    def loss(x: Any, flat: Any = flat) -> Any:
        return (f(x, flat) ** 2).sum() * (1 / n)

    def peer_loss(x: Any, flat: Any = peer) -> Any:
        return (theirs(x, list(zip(flat[::2], flat[1::2], strict=True))) ** 2).sum() * (1 / n)

    def peer_product(f: Callable[[Any], Any], xs: list[Any], vs: list[Any]) -> Any:
        """Reverse over reverse, which is torch's fastest way to a product."""
        xs = [p.detach().requires_grad_() for p in xs]
        first = torch.autograd.grad(f(xs), xs, create_graph=True)
        return torch.autograd.grad(sum((g * t).sum() for g, t in zip(first, vs, strict=True)), xs)

    by_x = func.grad(loss)
    by_all = func.grad(lambda flat: loss(x, flat))
    pushforward = func.linearize(f, x)[1]
    runs = {
        "f": lambda: f(x),
        "jvp": lambda: func.jvp(f, (x,), (v,)),
        "gradient": lambda: by_x(x),
        "product": lambda: func.jvp(by_x, (x,), (v,))[1],
        "all": lambda: by_all(flat),
        "pushforward": lambda: pushforward(v),
        "all product": lambda: func.jvp(by_all, (flat,), (ones,))[1],
        "torch product": lambda: peer_product(lambda xs: peer_loss(xs[0]), [px], [pv])[0],
        "torch all product": lambda: peer_product(lambda flat: peer_loss(px, flat), peer, peer_ones),
    }
    agree(runs["product"](), runs["torch product"](), 1e-3)
    agree(runs["all product"]()[0], runs["torch all product"]()[0], 1e-3)
    times = interleaved(runs, repeats)
    compared = {
        "jvp": ["f"], "pushforward": ["f"], "gradient": ["f"], "all": ["f"],
        "product": ["gradient", "torch product"], "all product": ["all", "torch all product"],
    }  # fmt: skip
    return [f"{n} x {units}", *(f"{ratio(times, name, other):.2f}" for name, others in compared.items() for other in others)]


def sample_rows() -> list[list[str]]:
    """Milliseconds of the gradients of each sample's loss by all parameters."""
    n, units = 256, 32
    widths, rng = [2, units, units, units, 1], np.random.default_rng(3)
    points = rng.uniform(-1, 1, (n, 2)).astype("float32")
    backend = ng.TorchBackend(dtype="float32")
    mine, peer = layers(widths, backend.tensor), layers(widths, torch.tensor)
    x, px = backend.tensor(points), torch.tensor(points)

    def loss(made: Layers, x: Any) -> Any:
        return (ours(x.reshape(1, 2), made) ** 2).sum()

    def peer_loss(made: Layers, x: Any) -> Any:
        return (theirs(x.reshape(1, 2), made) ** 2).sum()

    runs = {
        "ours": lambda: func.vmap(func.grad(loss), in_axes=(None, 0))(mine, x),
        "torch": lambda: torch.func.vmap(torch.func.grad(peer_loss), in_dims=(None, 0))(peer, px),
    }
    agree(runs["ours"]()[1][0], runs["torch"]()[1][0], 1e-4)
    times = interleaved(runs, REPEATS)
    cells = [f"{median(times[name]) * 1e3:.2f}" for name in ("ours", "torch")]
    return [[f"{n} x {units}", *cells, f"{ratio(times, 'ours', 'torch'):.2f}"]]


def report() -> str:
    """The tables."""
    torch.set_num_threads(1)
    orders = (
        f"All derivatives up to order k of a tanh net (1, 64, 64, 64, 1) at {POINTS:,} points by `func.taylor`, milliseconds; float32. "
        "Nested: k backward passes of torch, which give the last one. Times: how often Taylor mode fits into that "
        "(targets: 4 at order 4, 12 at order 6):\n"
    )
    products = (
        "\nForward mode and products with second derivatives, on torch (targets: 2.5; 2.2 and 1; 2.9 and 1, at most). "
        "A product with a Hessian is `jvp` of `grad`; torch's is reverse over reverse:\n"
    )
    once = ["jvp / f", "pushforward of linearize / f", "gradient / f", "gradient by all parameters / f"]
    by_x, by_all = ["product / gradient", "product / torch's"], ["all parameters: product / gradient", "product / torch's"]
    return "\n".join(
        [
            orders,
            markdown(["k", "NumPy", "torch", "nested", "times (NumPy)", "times (torch)"], order_rows()),
            "\nOrders 1 to 6 of a chain of six operations at one point, milliseconds (target: 2):\n",
            markdown(["`func.taylor`", "torch nested", "ratio"], chain_rows()),
            products,
            markdown(["points x units", *once, *by_x, *by_all], product_rows()),
            "\nGradients of each sample by all parameters, `vmap` of `grad`, milliseconds (target: 1.2 at most):\n",
            markdown(["samples x units", "nestgrad on torch", "torch.func", "ratio"], sample_rows()),
        ]
    )
