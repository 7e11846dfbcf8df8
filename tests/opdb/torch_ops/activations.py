"""Activations and losses of networks."""

from typing import Any

import nestgrad as ng
from torch_ops.table import entries, entry, only

_F = "nn.functional."

entries(*(_F + name for name in (
    "leaky_relu", "relu6", "hardtanh", "hardsigmoid", "hardswish", "hardshrink", "softshrink", "threshold", "elu", "celu", "selu",
    "logsigmoid", "silu", "mish", "gelu", "glu", "tanhshrink", "softsign",
)), within="nn.")  # fmt: skip
entry(_F + "prelu", "nn.prelu", lambda x, weight: ng.nn.prelu(x, weight))
for _name in ("softmin", "softmin|with_dtype"):
    entry(_F + _name, "nn.softmin", lambda x, dim, dtype=None: ng.nn.softmin(x if dtype is None else x.astype(dtype), dim))
entry(_F + "softplus", "nn.softplus", lambda x, beta=1.0, threshold=20.0: ng.where(x * beta > threshold, x, ng.nn.softplus(x, beta)))
entry(_F + "rrelu", "nn.leaky_relu", lambda x, lower=1 / 8, upper=1 / 3, training=False: _rrelu(x, lower, upper, training))


def _rrelu(x: Any, lower: float, upper: float, training: bool) -> Any:
    only(not training, "random numbers")
    return ng.nn.leaky_relu(x, (lower + upper) / 2)


entries(*(_F + name for name in (
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "poisson_nll_loss", "kl_div", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "nll_loss", "cross_entropy",
)), within="nn.")  # fmt: skip
entry(_F + "soft_margin_loss", "nn.softplus", lambda x, target, reduction="mean": _reduced(ng.nn.softplus(-target * x), reduction))
entry(_F + "cosine_similarity", "nn.cosine_similarity")


def _gaussian(x: Any, target: Any, var: Any, **options: Any) -> Any:
    """Torch broadcasts the target, and takes a variance for each row without its axis."""
    var = ng.expand_dims(var, -1) if isinstance(var, ng.Tensor) and var.shape == x.shape[:-1] and var.ndim < x.ndim else var
    return ng.nn.gaussian_nll_loss(*ng.broadcast_arrays(x, target, var), **options)


entry(_F + "gaussian_nll_loss", "nn.gaussian_nll_loss", _gaussian)


def _reduced(loss: Any, reduction: str) -> Any:
    return loss if reduction == "none" else getattr(loss, reduction)()


def _ctc(log_probs: Any, targets: Any, inputs: Any, lengths: Any, **options: Any) -> Any:
    plain = [tuple(x.tolist()) if isinstance(x, ng.Tensor) else x for x in (inputs, lengths)]
    return ng.nn.ctc_loss(log_probs, targets, *plain, **options)


entry(_F + "ctc_loss", "nn.ctc_loss", _ctc)

