"""Functions for torch's compiler, of derivatives of order 1 to 4: by their names, each with the arrays that it takes."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import nestgrad as ng
from nestgrad import nn, pde
from nestgrad.func import derivative, grad, hessian, hessian_diag, jacfwd, jacrev, jvp, taylor, vjp, vmap

Array = np.ndarray[Any, Any]
_rng = np.random.default_rng(5)


def R(*shape: int) -> Array:
    """Normal numbers."""
    return _rng.normal(size=shape)


def P(*shape: int) -> Array:
    """Positive numbers."""
    return _rng.uniform(0.3, 1.7, shape)


def N(n: int, *shape: int) -> Array:
    """Positions below ``n``."""
    return _rng.integers(0, n, shape)


def net(x: Any, *w: Any) -> Any:
    """A network with tanh between its layers, whose weights have a last row for the bias."""
    for k, layer in enumerate(w):
        x = ng.linear(x, layer[:-1], layer[-1])
        x = x.tanh() if k < len(w) - 1 else x
    return x


def times(f: Callable[..., Any], n: int) -> Callable[..., Any]:
    """The sum of ``f`` by its first argument, differentiated ``n`` times."""
    for _ in range(n):
        f = grad(lambda *xs, f=f: f(*xs).sum())
    return f


def curved(f: Callable[..., Any]) -> Callable[..., Any]:
    """A product of the Hessian by the first argument with a vector, the last."""
    return lambda x, *rest: jvp(grad(lambda z: f(z, *rest[:-1])), (x,), (rest[-1],))[1]


def along(u: Callable[..., Any], order: int) -> Callable[..., Any]:
    """The last of the derivatives along the first coordinate of points."""
    return lambda x, *rest: taylor(lambda z: u(z, *rest), x, ng.ones_like(x) * np.array([1.0, 0.0]), order)[-1]


def residual(x: Any, w0: Any, w1: Any, f: Callable[..., Any]) -> Any:
    """The gradients by weights of the mean square of a residual: of a network ``u`` at points ``x``."""
    return grad(lambda ws: (f(lambda z: net(z, *ws), x) ** 2).mean())((w0, w1))


def kdv(u: Callable[..., Any], x: Any) -> Any:
    c = taylor(u, x, ng.ones_like(x) * np.array([1.0, 0.0]), 3)
    _, t = jvp(u, (x,), (ng.ones_like(x) * np.array([0.0, 1.0]),))
    return t + 6 * c[0] * c[1] + 6 * c[3]


def flames(u: Callable[..., Any], x: Any) -> Any:
    """Kuramoto's and Sivashinsky's equation."""
    c = taylor(u, x, ng.ones_like(x) * np.array([1.0, 0.0]), 4)
    _, t = jvp(u, (x,), (ng.ones_like(x) * np.array([0.0, 1.0]),))
    return t + c[0] * c[1] + 2 * c[2] + 24 * c[4]


def burgers(u: Callable[..., Any], x: Any) -> Any:
    first = times(u, 1)
    return first(x)[:, 1:] + u(x) * first(x)[:, :1] - 0.1 * grad(lambda z: first(z)[:, 0].sum())(x)[:, :1]


def price(spot: Any, sigma: Any, tau: Any) -> Any:
    """Of a European call."""
    d = (ng.log(spot / 1.05) + (0.02 + 0.5 * sigma**2) * tau) / (sigma * ng.sqrt(tau))
    return spot * ng.ndtr(d) - 1.05 * ng.exp(-0.02 * tau) * ng.ndtr(d - sigma * ng.sqrt(tau))


def classifier(w: Any, x: Any, target: Any) -> Any:
    return nn.cross_entropy(x @ w, target)


def attend(q: Any, k: Any, v: Any) -> Any:
    return nn.scaled_dot_product_attention(q, k, v).square().sum()


def image(w: Any, x: Any) -> Any:
    return nn.conv2d(x, w, padding=1).tanh().square().sum()


FLOW = (R(6, 2), R(3, 8) / 2, R(9, 1) / 2)
POINT = (R(3), R(4, 5) / 2, R(6, 1) / 2)

QUICK: dict[str, tuple[Callable[..., Any], tuple[Array, ...]]] = {
    "a product of the Hessian of a network": (curved(lambda x, *w: net(x, *w).sum()), (*POINT, R(3))),
    "the gradients of Burgers' residual": (partial(residual, f=burgers), FLOW),
    "relu, abs and where": (times(lambda x: ng.where(x > 0.2, nn.relu(x) ** 3, x.abs() * x.sin()), 2), (R(7),)),
    "rows by positions, and their transpose": (times(lambda x, i: ng.take(x, i, axis=0).sin() ** 2, 2), (R(5, 3), N(5, 4))),
    "logsumexp, with its third derivative": (times(lambda x: ng.logsumexp(x, 1) ** 2, 3), (R(3, 4),)),
    "a solution of linear equations": (times(lambda a, y: ng.linalg.solve(a @ a.T + 3 * np.eye(3), y), 2), (R(3, 3), R(3, 2))),
}
"""A few that together touch the ways of the compiler: products, fused formulas, choices, positions, reductions, steps of their own."""

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Array, ...]]] = {
    # equations
    "a gradient": (times(net, 1), FLOW),
    "a Laplacian": (vmap(pde.laplacian(lambda z: net(z, FLOW[1], FLOW[2])[0]), in_axes=0), FLOW[:1]),
    "a biharmonic operator": (vmap(pde.biharmonic(lambda z: net(z, FLOW[1], FLOW[2])[0]), in_axes=0), FLOW[:1]),
    "Korteweg's and de Vries' equation": (partial(residual, f=kdv), FLOW),
    "Kuramoto's and Sivashinsky's equation": (partial(residual, f=flames), FLOW),
    "the fourth derivative by nested reverse": (times(lambda x: x.tanh().sum(), 4), (R(3),)),
    "the fourth derivative by a series": (along(net, 4), FLOW),
    "a mixed third derivative": (vmap(lambda z: derivative(lambda v: net(v, FLOW[1], FLOW[2])[0], (0, 1, 1))(z)), FLOW[:1]),
    "a divergence": (vmap(pde.divergence(lambda z: ng.stack([z[0] * z[1].sin(), z.prod()]))), FLOW[:1]),
    "a wave equation": (lambda x, *w: along(net, 2)(x, *w) - times(net, 1)(x, *w)[:, 1:], FLOW),
    "Schroedinger's potential": (times(lambda x: (-0.5 * (x * x).sum(1)).exp() / (1 + x[:, 0] ** 2).sqrt(), 2), (R(5, 2),)),
    # networks
    "the Hessian of a network": (hessian(lambda x, *w: net(x, *w)[0]), POINT),
    "the diagonal of a Hessian": (hessian_diag(lambda x: (x[:-1] * x[1:].sin()).sum()), (R(5),)),
    "a Jacobian by reverse mode": (jacrev(lambda x, w: (x @ w).tanh()), (R(3), R(3, 4))),
    "a Jacobian by forward mode": (jacfwd(lambda x, w: (x @ w).tanh()), (R(3), R(3, 4))),
    "a gradient of a norm of a gradient": (grad(lambda w, x: (times(lambda z: net(z, w, FLOW[2]), 1)(x) ** 2).sum()), (FLOW[1], R(5, 2))),
    "a classifier's products of its Hessian": (curved(classifier), (R(4, 3), R(6, 4), N(3, 6), R(4, 3))),
    "a step of descent inside another": (
        grad(lambda w, x: net(x, w - 0.1 * times(lambda v: net(x, v) ** 2, 1)(w)).sum()), (R(3, 1), R(4, 2)),
    ),
    "layer_norm": (times(lambda x, w: nn.layer_norm(x, 4, w) ** 3, 2), (R(3, 4), R(4))),
    "rms_norm": (times(lambda x: nn.rms_norm(x, 4).sin(), 2), (R(3, 4),)),
    "group_norm": (times(lambda x: nn.group_norm(x, 2) ** 3, 2), (R(2, 4, 3),)),
    "batch_norm": (times(lambda x: nn.batch_norm(x, training=True)[0] ** 3, 2), (R(6, 3),)),
    "attention": (curved(attend), (R(2, 3, 4), R(2, 5, 4), R(2, 5, 4), R(2, 3, 4))),
    "convolution in the plane": (times(image, 2), (R(2, 3, 3, 3) / 3, R(2, 3, 5, 5))),
    "convolution on a line": (times(lambda x, w: nn.conv1d(x, w, stride=2).sin(), 2), (R(2, 2, 7), R(3, 2, 3))),
    "pooling by the greatest": (times(lambda x: nn.max_pool2d(x, 2) ** 3, 2), (R(1, 2, 4, 4),)),
    "pooling by means": (times(lambda x: nn.avg_pool2d(x, 2) ** 3, 2), (R(1, 2, 4, 4),)),
    "an embedding": (times(lambda w, i: nn.embedding(i, w).tanh() ** 2, 2), (R(6, 3), N(6, 4))),
    "gelu, silu and softplus": (times(lambda x: nn.gelu(x) + nn.silu(x) * ng.softplus(x), 3), (R(8),)),
    "a huber loss": (times(lambda x: nn.huber_loss(x * x, x.sin(), reduction="sum"), 2), (R(8),)),
    # numbers
    "greeks": (lambda s, v, t: (times(price, 3)(s, v, t), grad(lambda w: times(price, 2)(s, w, t).sum())(v)), (P(4), P(4), P(4))),
    "erf and its kin": (times(lambda x: ng.erf(x) * ng.erfc(x) + ng.log_ndtr(x), 3), (R(9),)),
    "functions of the gamma function's family": (times(lambda x: ng.lgamma(x) * ng.digamma(x), 3), (P(7),)),
    "the gamma functions left of 0": (times(ng.digamma, 2), (-P(7),)),
    "sinc, near 0 and far": (times(ng.sinc, 3), (np.array([0.0, 1e-3, 0.4, 7.5, -20.0]),)),
    "roots and logarithms": (times(lambda x: x.sqrt() * x.log() + ng.cbrt(x), 3), (P(6),)),
    "powers, of 0 and of negative numbers": (times(lambda x: x**4 + 2.0 * x**3, 2), (np.array([-1.5, 0.0, 0.0, 2.0]),)),
    "angles": (times(lambda x, y: ng.atan2(x, y) * ng.hypot(x, y), 3), (R(6), R(6))),
    "hyperbolic functions": (times(lambda x: x.sinh() * x.cosh() / (1 + x.tanh() ** 2) + ng.asinh(x), 3), (R(6),)),
    "maximum, minimum and clamp": (times(lambda x, y: ng.maximum(x * x, y) * ng.minimum(x, y) + x.clamp(-0.5, 0.5), 2), (R(7), R(7))),
    "a choice that hides what is not finite": (times(lambda x: ng.where(x > 0, ng.safe_where(x > 0, ng.sqrt, ng.sin, x), x), 2), (R(7),)),
    "integers beside floats": (times(lambda x, n: (x * n).sin() + x / (n + 1), 2), (R(6), N(9, 6))),
    "rounding": (times(lambda x: x.floor() * x**2 + x.sign() * x.round(), 2), (3 * R(7),)),
    # arrays
    "a running sum": (times(lambda x: ng.cumsum(x * x, 1).sin(), 2), (R(3, 5),)),
    "a running product": (times(lambda x: ng.cumprod(x, 0).sin(), 2), (R(5),)),
    "a running logsumexp": (times(lambda x: ng.logcumsumexp(x, 0) ** 2, 2), (R(6),)),
    "a running maximum": (times(lambda x: ng.cummax(x, 0)[0] ** 3, 2), (R(6),)),
    "gather and scatter": (times(lambda x, i: ng.scatter_add(x.sin(), 1, i, ng.gather(x, 1, i) ** 2), 2), (R(3, 5), N(5, 3, 5))),
    "a sort": (times(lambda x: ng.sort(x)[..., ::2] ** 3, 2), (R(2, 7),)),
    "the greatest three": (times(lambda x: ng.topk(x, 3)[0] ** 3, 2), (R(2, 7),)),
    "a median": (times(lambda x: ng.median(x * x.sin()), 2), (R(7),)),
    "softmax and log_softmax": (times(lambda x: (ng.softmax(x, 1) * ng.log_softmax(x, 1)).sum(), 3), (R(3, 4),)),
    "one softmax weight of nearly all": (times(lambda x: ng.log_softmax(x, 1) ** 2, 2), (np.array([[60.0, 0.0, -3.0]]),)),
    "variance and norms": (times(lambda x: x.var(0) * ng.norm(x, axis=0) + ng.std(x), 2), (R(5, 3),)),
    "products and extrema along axes": (times(lambda x: x.prod(1) * x.max(1) + x.min(0)[:4] ** 2, 2), (R(4, 5),)),
    "slices that step back, and their transpose": (times(lambda x: x[::-2, 1:].sin() ** 2 * x.T[1:, ::-2].T, 2), (R(5, 3),)),
    "writing into slices": (times(lambda x: x.at[1:3].set(x[:2] ** 2).at[[0, 0, 4]].add(x[1:4].sin()).cos(), 2), (R(5),)),
    "an einsum": (times(lambda x, y: ng.einsum("bij,jk,bk->i", x, y, x.sum(1)[:, :2]) ** 2, 2), (R(2, 3, 4), R(4, 2))),
    "shapes": (times(lambda x: ng.concat([x.T.reshape(2, 6), ng.pad(x, ((0, 0), (1, 2)))[:2, :6]]).roll(1, 0).tril().sin(), 2), (R(4, 3),)),
    "windows of a line": (times(lambda x: ng.sliding_window_view(x, 3).prod(-1).sin(), 2), (R(7),)),
    "a determinant and an inverse": (times(lambda a: ng.linalg.det(a) * ng.linalg.inv(a + 4 * np.eye(3)).sum(), 2), (R(3, 3),)),
    "a pullback": (lambda x, g: vjp(lambda z: (z.sin() * z.sum()).tanh(), x)[1](g), (R(4), R(4))),
    "a batch of Hessians": (vmap(hessian(lambda z: (z.sin() * z[::-1]).prod())), (R(4, 3),)),
}
