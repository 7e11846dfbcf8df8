"""Nodes that take entries out and put entries in: the adopted graph has the derivatives of torch's nested backward passes."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from adopted import Run, compare, compare_all, reals

from nestgrad.errors import UnsupportedNode

F = torch.nn.functional
Tensor = torch.Tensor

A, NUMBER = reals(3, 4), reals(seed=3)
PLACES = torch.tensor([[0, 1], [1, 2], [3, 3]])
ONCE = torch.tensor([[0, 1], [1, 2], [3, 0]])
SOME = torch.tensor([[True, False, True, False], [False, False, True, True], [True, False, False, False]])


def at(*places: int) -> Tensor:
    return torch.tensor(places)


ONE: dict[str, Callable[[Tensor], Any]] = {
    "select": lambda a: a.select(1, -1),
    "number and number": lambda a: a[1, 2],
    "slice": lambda a: a[:, 1:4:2],
    "slice beyond the end": lambda a: a[1:100, -3:],
    "slice of nothing": lambda a: a[2:1],
    "narrow": lambda a: a.narrow(1, 1, 2),
    "slice_copy": lambda a: torch.slice_copy(a, 1, 0, 2),
    "select_copy": lambda a: torch.select_copy(a, 1, 0),
    "dots and a new axis": lambda a: a[None, ..., 2],
    "gather": lambda a: a.gather(1, PLACES),
    "gather of a corner": lambda a: a.gather(1, PLACES[:2]),
    "gather of nothing": lambda a: a[0].gather(0, torch.tensor([])),
    "take_along_dim": lambda a: a.take_along_dim(at(0, 1, 1).reshape(3, 1), 1),
    "positions": lambda a: a[at(0, -1, 0)],
    "positions of a second axis": lambda a: a[:, at(0, 0, 2)],
    "positions of both axes": lambda a: a[at(0, 2, 2), at(1, 1, -1)],
    "positions that broadcast": lambda a: a[at(0, 2).reshape(2, 1), at(1, 3)],
    "positions apart": lambda a: a.unflatten(1, (2, 2))[at(0, 2), :, at(1, 1)],
    "a position without axes": lambda a: a[torch.tensor(1)],
    "no positions": lambda a: a[torch.zeros(0, dtype=torch.int64)],
    "list, new axis and slice": lambda a: a[[0, 1], None, 1:3],
    "mask": lambda a: a[SOME],
    "mask of rows": lambda a: a[at(1, 0, 1).bool()],
    "mask of columns": lambda a: a[:, at(1, 0, 1, 1).bool()],
    "mask of what is positive": lambda a: a[a > 0],
    "index_select": lambda a: a.index_select(0, at(2, 0, 2)),
    "index_select of columns": lambda a: a.index_select(1, at(2, 0, 2)),
    "take": lambda a: a.take(torch.tensor([[0, -5], [0, 11]])),
    "masked_select": lambda a: a.masked_select(SOME),
    "masked_select that broadcasts": lambda a: a[:1].masked_select(SOME),
    "index_fill": lambda a: a.index_fill(0, at(0, 1), 2.0),
    "scatter of a number": lambda a: a.scatter(1, PLACES, 2.0),
    "sort": lambda a: a.sort(1)[0],
    "stable sort": lambda a: torch.sort(a, stable=True, dim=0, descending=True)[0],
    "msort": torch.msort,
    "topk": lambda a: a.topk(2, 1)[0],
    "topk of the least": lambda a: a.topk(2, 0, largest=False)[0],
    "kthvalue": lambda a: a.kthvalue(2, 1)[0],
    "kthvalue kept": lambda a: a.kthvalue(2, 1, keepdim=True)[0],
    "median": lambda a: a.median(1)[0],
    "median of all": lambda a: a.median(),
    "median of all with ties": lambda a: torch.stack([a, a]).median(),
    "nanmedian": lambda a: a.nanmedian(1, keepdim=True)[0],
    "nanmedian of all": lambda a: a.nanmedian(),
    "mode": lambda a: a.mode(1)[0],
    "cummax": lambda a: a.cummax(1)[0],
    "cummin": lambda a: a.cummin(0)[0],
    "quantile": lambda a: a.quantile(0.3, 1),
    "embedding": lambda a: F.embedding(torch.tensor([[0, 1], [1, 1]]), a),
    "embedding with padding": lambda a: F.embedding(torch.tensor([[0, 1], [1, 2]]), a, padding_idx=1),
    "one position": lambda a: F.embedding(torch.tensor(2), a),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE)
def test_entries_of_an_array(name: str) -> None:
    compare_all(lambda a: ONE[name](a * a * a), A)


SEVERAL: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "index_put": (lambda a, v: a.index_put((at(0, 2),), v), (A, reals(2, 4, seed=1))),
    "index_put that broadcasts": (lambda a, v: a.index_put((at(0, 2),), v), (A, reals(4, seed=1))),
    "index_put of a mask": (lambda a, v: a.index_put((SOME,), v), (A, NUMBER)),
    "index_put that adds": (lambda a, v: a.index_put((at(0, 0, -1),), v, accumulate=True), (A, reals(3, 4, seed=1))),
    "index_put in two axes": (lambda a, v: a.index_put((at(0, 2), at(1, 1)), v), (A, reals(2, seed=1))),
    "in place index_put": (lambda a, v: a.clone().index_put_((at(0, 2),), v), (A, reals(4, seed=1))),
    "index_add": (lambda a, v: a.index_add(0, at(0, 0), v, alpha=2), (A, reals(2, 4, seed=1))),
    "index_copy": (lambda a, v: a.index_copy(1, at(0, 3), v), (A, reals(3, 2, seed=1))),
    "index_fill": (lambda a, v: a.index_fill(0, at(0, 1), v), (A, NUMBER)),
    "scatter": (lambda a, v: a.scatter(1, ONCE, v), (A, reals(3, 2, seed=1))),
    "scatter into a corner": (lambda a, v: a.scatter(1, ONCE[:2], v), (A, reals(2, 2, seed=1))),
    "scatter_add": (lambda a, v: a.scatter_add(1, PLACES, v), (A, reals(3, 2, seed=1))),
    "scatter_add into a corner": (lambda a, v: a.scatter_add(1, PLACES[:2, :1], v), (A, reals(2, 1, seed=1))),
    "scatter_reduce of sums": (lambda a, v: a.scatter_reduce(1, PLACES, v, "sum"), (A, reals(3, 2, seed=1))),
    "select_scatter": (lambda a, v: a.select_scatter(v, 1, -1), (A, reals(3, seed=1))),
    "slice_scatter": (lambda a, v: a.slice_scatter(v, 1, 0, 4, 2), (A, reals(3, 2, seed=1))),
    "diagonal_scatter": (lambda a, v: a.diagonal_scatter(v, 1), (A, reals(3, seed=1))),
    "masked_scatter": (lambda a, v: a.masked_scatter(SOME, v), (A, reals(2, 4, seed=1))),
    "put": (lambda a, v: a.put(at(0, 5), v), (A, reals(2, seed=1))),
    "put that adds": (lambda a, v: a.put(at(0, 0), v, accumulate=True), (A, reals(2, seed=1))),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_entries_put_into_an_array(name: str) -> None:
    f, arguments = SEVERAL[name]
    compare_all(f, *arguments)


@pytest.mark.parametrize("f", [
    lambda a: a.gather(0, torch.tensor([0, 0])), lambda a: a.gather(0, torch.tensor(0)), lambda a: a.index_select(0, at(0)),
    lambda a: a.scatter(0, torch.tensor(0), a * a), lambda a: a.scatter_add(0, torch.tensor(0), a * a),
    lambda a: a.index_fill(0, at(0), 1.0),
    lambda a: a.sort()[0], lambda a: a.median(), lambda a: a.cummax(0)[0], lambda a: a.topk(1)[0], lambda a: a[None][0],
    lambda a: a.take(at(0)),
    lambda a: a.index_add(0, at(0), a * a), lambda a: a.kthvalue(1)[0], lambda a: a[a > -5], lambda a: a.masked_select(a > -5),
])  # fmt: skip
def test_numbers_as_arrays(f: Callable[[Tensor], Any]) -> None:
    compare(lambda a: f(a * a), NUMBER)


def test_the_recorded_backward_passes_are_adopted_too() -> None:
    def gradient(f: Callable[[Tensor], Any]) -> Callable[[Tensor], Tensor]:
        return lambda a: torch.autograd.grad((torch.stack([x.sum() for x in _all(f(a))]) ** 2).sum(), a, create_graph=True)[0]

    for name, f in ONE.items():
        if name != "index_fill":
            compare(gradient(lambda a, f=f: f(a * a)), A, orders=2)


def _all(found: Any) -> list[Tensor]:
    return [found] if isinstance(found, Tensor) else list(found)


def test_what_is_no_derivative_is_refused() -> None:
    for y, message in (
        (F.embedding(at(0, 0), A, scale_grad_by_freq=True), "EmbeddingBackward0 with scale_grad_by_freq=True"),
        (A.scatter_reduce(1, PLACES, A, "prod"), "ScatterReduceBackward0 with reduce='prod', include_self=True"),
    ):
        with pytest.raises(UnsupportedNode, match=message):
            Run(y, [A])
