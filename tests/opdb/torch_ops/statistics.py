"""Order, running sums and what statistics makes of an axis."""

from typing import Any

import nestgrad as ng
from torch_ops.table import entry, function, only

entry("topk", "topk", lambda x, k, dim=-1, largest=True, sorted=True: ng.topk(x, k, dim, largest))
entry("kthvalue", "kthvalue", lambda x, k, dim=-1, keepdim=False: ng.kthvalue(x, k, dim, keepdim))
entry("msort", "sort", lambda x: ng.sort(x, 0))
entry("count_nonzero", "count_nonzero", lambda x, dim=None: ng.count_nonzero(x, _axis(dim)))
for _name in ("all", "any"):
    entry(_name, _name, lambda x, dim=None, keepdim=False, name=_name: function(name)(x, _axis(dim), keepdim))
entry("aminmax", "aminmax", lambda x, dim=None, keepdim=False: ng.aminmax(x, dim, keepdim))
entry("max|reduction_with_dim", "max", lambda x, dim, keepdim=False: (ng.max(x, dim, keepdim), ng.argmax(x, dim, keepdim)))
entry("min|reduction_with_dim", "min", lambda x, dim, keepdim=False: (ng.min(x, dim, keepdim), ng.argmin(x, dim, keepdim)))


def _axis(dim: Any) -> Any:
    """No axes mean all of them to torch."""
    return None if dim is not None and not isinstance(dim, int) and len(dim) == 0 else dim


def _median(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    n = x.size if dim is None else x.shape[dim] if x.ndim else 1
    only(n % 2, "the median of an even number: the lower one in torch, the mean of the middle two here, as in NumPy")
    return ng.median(x, dim, keepdim)


entry("median", "median", _median, results=(0,))


def _quantile(x: Any, q: Any, dim: Any = None, keepdim: bool = False, interpolation: str = "linear") -> Any:
    only(not (isinstance(q, ng.Tensor) and q.level), "derivatives by the place of a quantile")
    return ng.quantile(x, q.tolist() if isinstance(q, ng.Tensor) else q, dim, interpolation, keepdim)


entry("quantile", "quantile", _quantile)
for _name in ("nansum", "nanmean"):
    entry(_name, _name, lambda x, dim=None, keepdim=False, dtype=None, name=_name: function(name)(
        x if dtype is None else x.astype(dtype), _axis(dim), keepdim))  # fmt: skip


def _std(x: Any, dim: Any = None, unbiased: Any = None, correction: Any = None, keepdim: bool = False) -> Any:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    return ng.std(x, _axis(dim), int(unbiased) if unbiased is not None else 1 if correction is None else correction, keepdim)


for _name in ("std", "std|unbiased"):
    entry(_name, "std", _std)
for _name in ("std_mean", "std_mean|unbiased"):
    entry(_name, "std", lambda x, dim=None, unbiased=None, correction=None, keepdim=False: (
        _std(x, dim, unbiased, correction, keepdim), ng.mean(x, None if isinstance(dim, bool) else _axis(dim), keepdim)))  # fmt: skip
entry("cov", "cov", lambda x, correction=1, fweights=None, aweights=None: ng.cov(
    x, correction=correction, fweights=fweights, aweights=aweights))  # fmt: skip
entry("corrcoef", "corrcoef")

# running

for _name in ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"):
    entry(_name, _name, lambda x, dim, dtype=None, name=_name: function(name)(x if dtype is None else x.astype(dtype), dim))
entry("diff", "diff", lambda x, n=1, dim=-1, prepend=None, append=None: ng.diff(x, n, dim, prepend, append))
for _name in ("trapezoid", "trapz"):
    entry(_name, "trapezoid", lambda y, x=None, dx=1.0, dim=-1: ng.trapezoid(y, x, dx, dim))
entry("cumulative_trapezoid", "cumulative_trapezoid", lambda y, x=None, dx=1.0, dim=-1: ng.cumulative_trapezoid(y, x, dx, dim))
