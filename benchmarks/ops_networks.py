"""Rows of the table of all operations: layers of networks, at the sizes of a small network."""

from typing import Any

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import nestgrad as ng
from benchmarks.ops_cases import case, cases, draw

_F = torch.nn.functional
_RNG = np.random.default_rng(2)

# convolutions: (samples, channels, ...), 64 channels in two dimensions

_SIZES = {1: (16, 64, 1024), 2: (4, 64, 32, 32), 3: (2, 16, 16, 16, 16)}
for _n, _shape in _SIZES.items():
    _weight = draw(-0.1, 0.1, _shape[1], _shape[1], *(3,) * _n)
    for _name in (f"conv{_n}d", f"conv_transpose{_n}d"):
        case(f"nn.{_name}", getattr(_F, _name), draw(-1, 1, *_shape), _weight, draw(-1, 1, _shape[1]))
case("nn.conv2d, stride 2, groups 4", lambda x, w: _F.conv2d(x, w, stride=2, padding=1, groups=4), draw(-1, 1, 4, 64, 32, 32),
     draw(-0.1, 0.1, 64, 16, 3, 3), ours=lambda x, w: ng.nn.conv2d(x, w, stride=2, padding=1, groups=4))  # fmt: skip

_IMAGES = draw(-1, 1, 8, 32, 64, 64)
cases({
    "nn.avg_pool2d": (lambda x: ng.nn.avg_pool2d(x, 2), lambda x: _F.avg_pool2d(x, 2)),
    "nn.max_pool2d": (lambda x: ng.nn.max_pool2d(x, 2), lambda x: _F.max_pool2d(x, 2)),
    "nn.adaptive_avg_pool2d": (lambda x: ng.nn.adaptive_avg_pool2d(x, 16), lambda x: _F.adaptive_avg_pool2d(x, 16)),
    "nn.adaptive_max_pool2d": (lambda x: ng.nn.adaptive_max_pool2d(x, 16), lambda x: _F.adaptive_max_pool2d(x, 16)),
    "nn.interpolate": (lambda x: ng.nn.interpolate(x, scale_factor=2), lambda x: _F.interpolate(x, scale_factor=2)),
    "nn.interpolate, bilinear": (lambda x: ng.nn.interpolate(x, scale_factor=2, mode="bilinear"),
                                 lambda x: _F.interpolate(x, scale_factor=2, mode="bilinear")),
    "nn.pad": (lambda x: ng.nn.pad(x, (1, 1, 1, 1)), lambda x: _F.pad(x, (1, 1, 1, 1))),
    "nn.pad, reflect": (lambda x: ng.nn.pad(x, (1, 1, 1, 1), "reflect"), lambda x: _F.pad(x, (1, 1, 1, 1), "reflect")),
    "nn.pixel_shuffle": (lambda x: ng.nn.pixel_shuffle(x, 2), lambda x: _F.pixel_shuffle(x, 2)),
    "nn.pixel_unshuffle": (lambda x: ng.nn.pixel_unshuffle(x, 2), lambda x: _F.pixel_unshuffle(x, 2)),
}, _IMAGES, square=True)  # fmt: skip
cases({
    "nn.unfold": (lambda x: ng.nn.unfold(x, 3), lambda x: _F.unfold(x, 3)),
}, draw(-1, 1, 4, 16, 64, 64), square=True)  # fmt: skip
case("nn.fold", lambda x: _F.fold(x, (32, 32), 3) ** 2, draw(-1, 1, 4, 32 * 9, 900), ours=lambda x: ng.nn.fold(x, (32, 32), 3) ** 2)
for _n, _shape in ((1, (8, 64, 2048)), (3, (2, 32, 32, 16, 16))):
    for _name in ("avg_pool", "max_pool"):
        case(f"nn.{_name}{_n}d", lambda x, f=f"{_name}{_n}d": getattr(_F, f)(x, 2) ** 2, draw(-1, 1, *_shape),
             ours=lambda x, f=f"{_name}{_n}d": getattr(ng.nn, f)(x, 2) ** 2)  # fmt: skip

# normalization, each squared or cubed, since the sum of what is normalized is constant, and that of its squares nearly

_ROWS, _GAIN = draw(-1, 1, 4096, 256), draw(0.5, 1.5, 256)
_CHANNELS = draw(0.5, 1.5, 32)
case("nn.layer_norm", lambda x, w, c: _F.layer_norm(x, (256,), w, c) ** 2, _ROWS, _GAIN, draw(-1, 1, 256),
     ours=lambda x, w, c: ng.nn.layer_norm(x, (256,), w, c) ** 2)  # fmt: skip
case("nn.rms_norm", lambda x, w: _F.rms_norm(x, (256,), w) ** 2, _ROWS, _GAIN, ours=lambda x, w: ng.nn.rms_norm(x, (256,), w) ** 2)
case("nn.group_norm", lambda x, w, c: _F.group_norm(x, 4, w, c) ** 2, _IMAGES, _CHANNELS, draw(-1, 1, 32),
     ours=lambda x, w, c: ng.nn.group_norm(x, 4, w, c) ** 2)  # fmt: skip
case("nn.instance_norm", lambda x, w, c: _F.instance_norm(x, weight=w, bias=c) ** 3, _IMAGES, _CHANNELS, draw(-1, 1, 32),
     ours=lambda x, w, c: ng.nn.instance_norm(x, weight=w, bias=c) ** 3)  # fmt: skip
case("nn.batch_norm", lambda x, w, c: _F.batch_norm(x, None, None, w, c, training=True) ** 3, _IMAGES, _CHANNELS, draw(-1, 1, 32),
     ours=lambda x, w, c: ng.nn.batch_norm(x, None, None, w, c, training=True)[0] ** 3)  # fmt: skip
cases({
    "nn.normalize": (ng.nn.normalize, _F.normalize),
    "nn.local_response_norm": (lambda x: ng.nn.local_response_norm(x, 5), lambda x: _F.local_response_norm(x, 5)),
}, draw(-1, 1, 8, 32, 32, 32))  # fmt: skip

# attention, tables, distances, classes

_HEADS = [draw(-1, 1, 4, 8, 256, 64)] * 3


def _attention(**options: Any) -> Any:
    """By torch's kernels that have a second derivative."""

    def theirs(q: Any, k: Any, v: Any) -> Any:
        with sdpa_kernel(SDPBackend.MATH):
            return _F.scaled_dot_product_attention(q, k, v, **options)

    return theirs


case("nn.scaled_dot_product_attention", _attention(), *_HEADS)
case("nn.scaled_dot_product_attention, causal", _attention(is_causal=True), *_HEADS,
     ours=lambda q, k, v: ng.nn.scaled_dot_product_attention(q, k, v, is_causal=True))  # fmt: skip
case("nn.linear", _F.linear, draw(-1, 1, 4096, 256), draw(-1, 1, 256, 256), draw(-1, 1, 256))
case("nn.bilinear", _F.bilinear, draw(-1, 1, 512, 64), draw(-1, 1, 512, 64), draw(-1, 1, 32, 64, 64))
_WORDS = _RNG.integers(0, 5000, (64, 64))
_CLASSES = _RNG.integers(0, 1000, 1000)
_OURS = {k: ng.tensor(v, backend="torch") for k, v in (("words", _WORDS), ("classes", _CLASSES))}
_THEIRS = {"words": torch.from_numpy(_WORDS), "classes": torch.from_numpy(_CLASSES)}
case("nn.embedding", lambda w: _F.embedding(_THEIRS["words"], w) ** 2, draw(-1, 1, 5000, 256),
     ours=lambda w: ng.nn.embedding(_OURS["words"], w) ** 2)  # fmt: skip
cases({
    "nn.cross_entropy": (lambda x: ng.nn.cross_entropy(x, _OURS["classes"]), lambda x: _F.cross_entropy(x, _THEIRS["classes"])),
    "nn.nll_loss": (lambda x: ng.nn.nll_loss(x, _OURS["classes"]) ** 2, lambda x: _F.nll_loss(x, _THEIRS["classes"]) ** 2),
}, draw(-1, 1, 1000, 1000))  # fmt: skip
_PAIR = [draw(-1, 1, 1000, 1000)] * 2
case("nn.cosine_similarity", _F.cosine_similarity, *_PAIR)
case("nn.pairwise_distance", _F.pairwise_distance, *_PAIR)
# torch.cdist has no second derivative
case("nn.cdist", lambda x, y: (x[:, None] - y).square().sum(2).sqrt(), draw(-1, 1, 300, 16), draw(-1, 1, 200, 16))
