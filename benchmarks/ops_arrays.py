"""Rows of the table of all operations: reductions, order, shapes, positions, products."""

import numpy as np
import torch

import nestgrad as ng
from benchmarks.ops_cases import POSITIVE, REAL, ROWS, SIZE, by_rows, case, cases, draw, first, squared

_F = torch.nn.functional
_RNG = np.random.default_rng(1)

for _name in ("sum", "mean"):  # with a square after what is linear, so that there is a second derivative
    case(_name, squared(by_rows(getattr(torch, _name))), ROWS, ours=squared(by_rows(getattr(ng, _name))))
for _name in ("nansum", "nanmean"):
    case(_name, squared(by_rows(getattr(torch, _name))), ROWS, ours=squared(by_rows(getattr(ng, _name))))
case("logsumexp", by_rows(torch.logsumexp), ROWS, ours=by_rows(ng.logsumexp))
case("prod", by_rows(torch.prod), draw(0.99, 1.01, 1000, 1000), ours=by_rows(ng.prod))
cases({
    "max": (by_rows(ng.max), by_rows(torch.amax)),
    "min": (by_rows(ng.min), by_rows(torch.amin)),
    "ptp": (by_rows(ng.ptp), lambda x: torch.amax(x, 1) - torch.amin(x, 1)),
    "aminmax": (lambda x: sum(ng.aminmax(x, 1)), lambda x: sum(torch.aminmax(x, dim=1))),
    "median": (by_rows(lambda x, k: ng.median(x[:, 1:], k)), first(by_rows(lambda x, k: torch.median(x[:, 1:], k)))),
    "quantile": (lambda x: ng.quantile(x, 0.3, 1), lambda x: torch.quantile(x, 0.3, 1)),
    "percentile": (lambda x: ng.percentile(x, 30, 1), lambda x: torch.quantile(x, 0.3, 1)),
    "sort": (by_rows(ng.sort), first(by_rows(torch.sort))),
    "topk": (lambda x: ng.topk(x, 10)[0], lambda x: torch.topk(x, 10)[0]),
    "kthvalue": (lambda x: ng.kthvalue(x, 10)[0], lambda x: torch.kthvalue(x, 10)[0]),
    "cumsum": (by_rows(ng.cumsum), by_rows(torch.cumsum)),
    "cummax": (first(by_rows(ng.cummax)), first(by_rows(torch.cummax))),
    "cummin": (first(by_rows(ng.cummin)), first(by_rows(torch.cummin))),
    "diff": (ng.diff, torch.diff),
    "trapezoid": (ng.trapezoid, torch.trapezoid),
    "cumulative_trapezoid": (ng.cumulative_trapezoid, torch.cumulative_trapezoid),
}, ROWS, square=True)  # fmt: skip
cases({
    "var": (lambda x: ng.var(x, 1, 1), lambda x: torch.var(x, 1)),
    "std": (lambda x: ng.std(x, 1, 1), lambda x: torch.std(x, 1)),
    "norm": (by_rows(ng.norm), lambda x: torch.linalg.vector_norm(x, dim=1)),
    "norm, order 3": (lambda x: ng.norm(x, 1, ord=3), lambda x: torch.linalg.vector_norm(x, 3, dim=1)),
    "logcumsumexp": (by_rows(ng.logcumsumexp), by_rows(torch.logcumsumexp)),
    "cov": (ng.cov, torch.cov), "corrcoef": (ng.corrcoef, torch.corrcoef),
}, draw(-1.8, 1.8, 300, 1000))  # fmt: skip
case("cumprod", by_rows(torch.cumprod), draw(0.99, 1.01, 1000, 1000), ours=by_rows(ng.cumprod), tolerance=1e-2)
case("average", lambda x, w: (x * w).sum(1) / w.sum(1), ROWS, draw(0.5, 1.5, 1000, 1000), ours=lambda x, w: ng.average(x, 1, w))
for _name in ("softmax", "log_softmax"):
    # squared, since the sum of all of softmax is constant
    case(_name, squared(by_rows(getattr(torch, _name))), ROWS, ours=squared(by_rows(getattr(ng, _name))))

# shapes

cases({
    "reshape": (lambda x: ng.reshape(x, (-1, 10)), lambda x: x.reshape(-1, 10)),
    "flatten": (ng.flatten, torch.flatten),
    "permute": (lambda x: ng.permute(x, (1, 0)), lambda x: x.permute(1, 0)),
    "pad": (lambda x: ng.pad(x, ((1, 1), (2, 2))), lambda x: _F.pad(x, (2, 2, 1, 1))),
    "getitem": (lambda x: x[2:, ::2], lambda x: x[2:, ::2]),
    "concat": (lambda x: ng.concat([x, x], axis=1), lambda x: torch.cat([x, x], dim=1)),
    "stack": (lambda x: ng.stack([x, x]), lambda x: torch.stack([x, x])),
    "flip": (lambda x: ng.flip(x, 1), lambda x: torch.flip(x, (1,))),
    "roll": (lambda x: ng.roll(x, 3, 1), lambda x: torch.roll(x, 3, 1)),
    "rot90": (ng.rot90, torch.rot90),
    "moveaxis": (lambda x: ng.moveaxis(x, 0, 1), lambda x: torch.moveaxis(x, 0, 1)),
    "repeat": (lambda x: ng.repeat(x, 2, 1), lambda x: torch.repeat_interleave(x, 2, 1)),
    "tile": (lambda x: ng.tile(x, (1, 2)), lambda x: torch.tile(x, (1, 2))),
    "triu": (ng.triu, torch.triu), "tril": (ng.tril, torch.tril),
    "diagonal": (ng.diagonal, torch.diagonal), "trace": (ng.trace, torch.trace),
    "split": (lambda x: sum(ng.split(x, 4, 1)), lambda x: sum(torch.split(x, 250, 1))),
    "chunk": (lambda x: sum(ng.chunk(x, 4, 1)), lambda x: sum(torch.chunk(x, 4, 1))),
    "hstack": (lambda x: ng.hstack([x, x]), lambda x: torch.hstack([x, x])),
    "vstack": (lambda x: ng.vstack([x, x]), lambda x: torch.vstack([x, x])),
    "dstack": (lambda x: ng.dstack([x, x]), lambda x: torch.dstack([x, x])),
    "column_stack": (lambda x: ng.column_stack([x, x]), lambda x: torch.column_stack([x, x])),
    "array_split": (lambda x: sum(part.sum(1) for part in ng.array_split(x, 3, 1)),
                    lambda x: sum(part.sum(1) for part in torch.tensor_split(x, 3, 1))),
    "sliding_window_view": (lambda x: ng.sliding_window_view(x, 4, axis=1).sum(2), lambda x: x.unfold(1, 4, 1).sum(2)),
    "safe_where": (lambda x: ng.safe_where(x > 0, ng.exp, ng.sin, x), lambda x: torch.where(
        x > 0, torch.where(x > 0, x, 1.0).exp(), torch.where(x > 0, 1.0, x).sin())),
}, ROWS, square=True)  # fmt: skip
case("broadcast_to", lambda x: torch.square(x.expand(1000, 1000)), draw(-1, 1, 1000),
     ours=lambda x: ng.square(ng.broadcast_to(x, (1000, 1000))), tolerance=2e-3)  # fmt: skip
case("diag", squared(torch.diag), draw(-1, 1, 1000), ours=squared(ng.diag))
case("diag_embed", squared(torch.diag_embed), draw(-1, 1, 100, 100), ours=squared(ng.diag_embed))
case("meshgrid", lambda x, y: torch.meshgrid(x, y, indexing="ij")[0] * torch.meshgrid(x, y, indexing="ij")[1], draw(-1, 1, 1000),
     draw(-1, 1, 1000), ours=lambda x, y: ng.meshgrid(x, y, indexing="ij")[0] * ng.meshgrid(x, y, indexing="ij")[1])  # fmt: skip
case("unbind", lambda x: sum(torch.unbind(x, 0)) ** 2, draw(-1, 1, 10, 100_000), ours=lambda x: sum(ng.unbind(x, 0)) ** 2)

# positions

_PLACES = _RNG.integers(0, 1000, (1000, 1000))
_LINE = _RNG.permutation(1000)
_MASK = _RNG.random((1000, 1000)) < 0.5
_T = {"places": torch.from_numpy(_PLACES), "line": torch.from_numpy(_LINE), "mask": torch.from_numpy(_MASK)}
_N = {k: ng.tensor(v, backend="torch") for k, v in (("places", _PLACES), ("line", _LINE), ("mask", _MASK))}
cases({
    "gather": (lambda x: ng.gather(x, 1, _N["places"]), lambda x: torch.gather(x, 1, _T["places"])),
    "take_along_axis": (lambda x: ng.take_along_axis(x, _N["places"], 1), lambda x: torch.take_along_dim(x, _T["places"], 1)),
    "take": (lambda x: ng.take(x, _N["places"]), lambda x: torch.take(x, _T["places"])),
    "index_select": (lambda x: ng.index_select(x, 1, _N["line"]), lambda x: torch.index_select(x, 1, _T["line"])),
    "x[index]": (lambda x: x[_N["line"]], lambda x: x[_T["line"]]),
    "masked_select": (lambda x: ng.masked_select(x, _N["mask"]), lambda x: torch.masked_select(x, _T["mask"])),
    "masked_fill": (lambda x: ng.masked_fill(x, _N["mask"], 0.5), lambda x: torch.masked_fill(x, _T["mask"], 0.5)),
    "index_fill": (lambda x: ng.index_fill(x, 1, _N["line"], 0.5), lambda x: torch.index_fill(x, 1, _T["line"], 0.5)),
}, ROWS, square=True)  # fmt: skip
cases({
    "scatter_add": (lambda x, y: ng.scatter_add(x, 1, _N["places"], y), lambda x, y: torch.scatter_add(x, 1, _T["places"], y)),
    "scatter_reduce": (lambda x, y: ng.scatter_reduce(x, 1, _N["places"], y, "amax"),
                       lambda x, y: torch.scatter_reduce(x, 1, _T["places"], y, "amax")),
    "index_add": (lambda x, y: ng.index_add(x, 1, _N["line"], y), lambda x, y: torch.index_add(x, 1, _T["line"], y)),
    "index_copy": (lambda x, y: ng.index_copy(x, 1, _N["line"], y), lambda x, y: torch.index_copy(x, 1, _T["line"], y)),
}, ROWS, ROWS, square=True)  # fmt: skip

_ORDER = np.argsort(_RNG.random((1000, 1000)), 1)
_T["order"], _N["order"] = torch.from_numpy(_ORDER), ng.tensor(_ORDER, backend="torch")
_KNOTS = np.linspace(-2.0, 2.0, 101).astype("float32")
_T["knots"] = torch.from_numpy(_KNOTS)


def _between(rng: np.random.Generator) -> np.ndarray:
    """Numbers that are not so near to a knot that rounding decides on which side they are."""
    return (rng.integers(0, 100, SIZE) + rng.uniform(0.1, 0.9, SIZE)) / 25.0 - 2.0


def _interpolated(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """``ng.interp``, which torch does not have."""
    k = (torch.searchsorted(_T["knots"], x.detach(), right=True) - 1).clamp_(0, 99)
    left, right = _T["knots"][k], _T["knots"][k + 1]
    return y[k] + (y[k + 1] - y[k]) * ((x - left) / (right - left))


cases({
    "scatter": (lambda x, y: ng.scatter(x, 1, _N["order"], y), lambda x, y: torch.scatter(x, 1, _T["order"], y)),
    "put_along_axis": (lambda x, y: ng.put_along_axis(x, _N["order"], y, 1), lambda x, y: torch.scatter(x, 1, _T["order"], y)),
}, ROWS, ROWS, square=True)  # fmt: skip
case("put", lambda x, y: torch.index_put(x, (_T["line"],), y) ** 2, REAL, draw(-1, 1, 1000),
     ours=lambda x, y: ng.put(x, _N["line"], y) ** 2)  # fmt: skip
case("interp", lambda x, y: _interpolated(x, y) ** 2, _between, draw(-1, 1, 101),
     ours=lambda x, y: ng.interp(x, _KNOTS, y) ** 2)  # fmt: skip

# products

cases({
    "matmul": (ng.matmul, torch.matmul), "inner": (ng.inner, torch.inner),
    "tensordot": (lambda x, y: ng.tensordot(x, y, 1), lambda x, y: torch.tensordot(x, y, 1)),
}, draw(-1, 1, 512, 512), draw(-1, 1, 512, 512))  # fmt: skip
case("linear", lambda x, w, z: torch.addmm(z, x, w), draw(-1, 1, 4096, 256), draw(-1, 1, 256, 256), draw(-1, 1, 256))
case("einsum", lambda x, y: torch.einsum("bij,bjk->bik", x, y), draw(-1, 1, 64, 100, 100), draw(-1, 1, 64, 100, 100),
     ours=lambda x, y: ng.einsum("bij,bjk->bik", x, y))  # fmt: skip
for _name in ("dot", "vdot"):
    case(_name, getattr(torch, _name), REAL, POSITIVE)
case("outer", squared(torch.outer), draw(-1, 1, 1000), draw(-1, 1, 1000), ours=squared(ng.outer))
case("kron", squared(torch.kron), draw(-1, 1, 30, 30), draw(-1, 1, 33, 33), ours=squared(ng.kron))
case("vecdot", squared(torch.linalg.vecdot), draw(-1, 1, 10_000, 100), draw(-1, 1, 10_000, 100), ours=squared(ng.vecdot))
case("cross", squared(torch.linalg.cross), draw(-1, 1, 300_000, 3), draw(-1, 1, 300_000, 3), ours=squared(ng.cross))

# linear algebra


def _regular(rng: np.random.Generator) -> np.ndarray:
    """A matrix of which the determinant is a number of moderate size."""
    return np.eye(200) + rng.uniform(-0.02, 0.02, (200, 200))


cases({
    "linalg.det": (ng.linalg.det, torch.linalg.det),
    "linalg.slogdet": (lambda x: ng.linalg.slogdet(x)[1], lambda x: torch.linalg.slogdet(x)[1]),
    "linalg.inv": (ng.linalg.inv, torch.linalg.inv),
}, _regular)  # fmt: skip
case("linalg.solve", torch.linalg.solve, _regular, draw(-1, 1, 200, 50))
