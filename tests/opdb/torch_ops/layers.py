"""Convolutions, pooling, resizing, padding, normalization, attention."""

from typing import Any

import nestgrad as ng
from torch_ops.table import entries, entry, only

_F = "nn.functional."

for _n in (1, 2, 3):
    entries(f"{_F}conv{_n}d", f"{_F}conv_transpose{_n}d", f"{_F}adaptive_avg_pool{_n}d", within="nn.")
    entry(f"{_F}avg_pool{_n}d", f"nn.avg_pool{_n}d", lambda x, size, stride=None, *args, n=_n, **options: (
        getattr(ng.nn, f"avg_pool{n}d")(x, size, stride or None, *args, **options)))  # fmt: skip
    entry(f"{_F}max_pool{_n}d", f"nn.max_pool{_n}d", parts=8)
    entry(f"{_F}adaptive_max_pool{_n}d", f"nn.adaptive_max_pool{_n}d")
entry(_F + "unfold", "nn.unfold")
for _name in ("constant", "reflect", "replicate", "replicate_negative", "circular"):
    entry(f"{_F}pad|{_name}", "nn.pad", lambda x, pad, mode="constant", value=None: ng.nn.pad(x, pad, mode, *([value] if value else [])))


def _interpolated(x: Any, size: Any = None, scale_factor: Any = None, recompute_scale_factor: Any = None, **options: Any) -> Any:
    """With a scale that is computed again, the size is all that counts."""
    if recompute_scale_factor:
        size, scale_factor = [int(n * scale_factor) for n in x.shape[2:]], None
    return ng.nn.interpolate(x, size, scale_factor, **options)


for _name in ("nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area"):
    entry(f"{_F}interpolate|{_name}", "nn.interpolate", _interpolated)
entry(_F + "upsample_nearest", "nn.interpolate", _interpolated)
entry(_F + "upsample_bilinear", "nn.interpolate", lambda x, **sizes: _interpolated(x, **sizes, mode="bilinear", align_corners=True))

entries(*(_F + name for name in ("layer_norm", "rms_norm", "group_norm", "normalize", "local_response_norm")), within="nn.")


def _instance_norm(
    x: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None, use_input_stats: bool = True,
    momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """Running statistics do not enter where those of the input are used, as in all samples."""
    assert use_input_stats
    return ng.nn.instance_norm(x, weight=weight, bias=bias, eps=eps)


entry(_F + "instance_norm", "nn.instance_norm", _instance_norm)
entry(_F + "batch_norm", "nn.batch_norm", lambda *args, **options: ng.nn.batch_norm(*args, **options)[0])



def _attention(q: Any, k: Any, v: Any, dropout_p: float = 0.0, **options: Any) -> Any:
    only(dropout_p == 0.0, "random numbers")
    return ng.nn.scaled_dot_product_attention(q, k, v, **options)


entry(_F + "scaled_dot_product_attention", "nn.scaled_dot_product_attention", _attention)
entry(_F + "linear", "nn.linear")
entry(_F + "bilinear", "nn.bilinear")
entry(_F + "pairwise_distance", "nn.pairwise_distance", lambda x, y, p=2.0, eps=1e-6, keepdim=False: (
    ng.nn.pairwise_distance(x, y, p, eps, keepdim)))  # fmt: skip
entry("cdist", "nn.cdist", lambda x, y, p, mode: ng.nn.cdist(x, y, p), parts=2)
entries(_F + "pixel_shuffle", _F + "pixel_unshuffle", within="nn.")


entry(_F + "embedding", "nn.embedding", lambda weight, index: ng.nn.embedding(index, weight))


def _dropped(name: str) -> Any:
    def call(x: Any, p: float = 0.5, training: bool = True) -> Any:
        only(not training or p == 0.0, "random numbers")
        return getattr(ng.nn, name)(x, p, training)

    return call


for _name in ("dropout", "dropout2d", "dropout3d", "alpha_dropout"):
    entry(_F + _name, f"nn.{_name}", _dropped(_name))
