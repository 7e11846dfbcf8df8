"""Normalisation and attention, differentiated twice: as a recorded program, with values computed again, and batch by batch."""

import numpy as np
import pytest

import nestgrad as ng
from nestgrad import nn
from nestgrad.func import call, grad, trace, vmap

BACKENDS = [ng.NumpyBackend(), ng.TorchBackend(dtype="float64")]
RNG = np.random.default_rng(0)
X, W, CHANNELS = RNG.normal(size=(2, 4, 3)), RNG.normal(size=3), RNG.normal(size=4)

LAYERS = {
    "layer_norm": lambda x, w, c: nn.layer_norm(x, 3, w, w),
    "rms_norm": lambda x, w, c: nn.rms_norm(x, 3, w),
    "group_norm": lambda x, w, c: nn.group_norm(x, 2, c, c) * w,
    "instance_norm": lambda x, w, c: nn.instance_norm(x, weight=c, bias=c) * w,
    "batch_norm": lambda x, w, c: nn.batch_norm(x, None, None, c, c, True)[0] * w,
    "local_response_norm": lambda x, w, c: nn.local_response_norm(x * w, 2),
    "normalize": lambda x, w, c: nn.normalize(x * w, axis=-1),
    "attention": lambda x, w, c: nn.scaled_dot_product_attention(x * w, x, x, is_causal=True),
}


def energy(layer, c):
    return lambda x, w: (layer(x, w, c) ** 3).sum()


def twice(f):
    """The gradient of the squared gradient."""
    return grad(lambda x, w: sum((g * g).sum() for g in grad(f, argnums=(0, 1))(x, w)), argnums=(0, 1))


def close(found, want):
    for g, right in zip(found, want, strict=True):
        np.testing.assert_allclose(g.numpy(), right.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("base", BACKENDS, ids=repr)
@pytest.mark.parametrize("name", LAYERS)
def test_all_ways_to_second_derivatives_agree(name, base):
    x, w, c = (base.tensor(a) for a in (X, W, CHANNELS))
    f = energy(LAYERS[name], c)
    want = twice(f)(x, w)
    close(call(trace(twice(f))(x, w), x, w), want)
    close(twice(ng.checkpoint(f))(x, w), want)
    stack = ng.Autodiff(ng.Autodiff(base, checkpointing=ng.Balanced()), checkpointing=ng.Balanced())
    v = [stack.tensor(a, requires_grad=True) for a in (x, w)]
    first = f(*v).backward()
    second = sum((first.wrt(a) * first.wrt(a)).sum() for a in v).backward()
    close([second.wrt(a) for a in v], want)
    several = ng.stack([x, 2.0 * x])
    for k, found in enumerate(zip(*vmap(twice(f), in_axes=(0, None))(several, w), strict=True)):
        close(found, twice(f)(several[k], w))
