"""Nodes that arrange entries: the adopted graph has the derivatives of torch's nested backward passes, alone and inside of a graph."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from adopted import Run, compare, compare_all, reals

import nestgrad as ng
from nestgrad.errors import UnsupportedNode

F = torch.nn.functional
Tensor = torch.Tensor

A, B, LINE, CUBE, NUMBER = reals(3, 4), reals(3, 4, seed=1), reals(3), reals(2, 3, 2, seed=2), reals(seed=3)

ONE: dict[str, Callable[[Tensor], Any]] = {
    "view": lambda a: a.view(2, 6),
    "reshape of a transpose": lambda a: a.t().reshape(2, 6),
    "flatten": lambda a: a.flatten(),
    "unflatten": lambda a: a.unflatten(1, (2, 2)),
    "view_copy": lambda a: torch.view_copy(a, (12,)),
    "contiguous": lambda a: a.t().contiguous(),
    "alias": lambda a: torch.ops.aten.alias(a),
    "t": lambda a: a.t(),
    "transpose": lambda a: a.transpose(0, -1),
    "mT": lambda a: a.mT,
    "permute": lambda a: a[None].permute(2, 0, -2),
    "movedim": lambda a: a[None].movedim(0, -1),
    "in place t": lambda a: a.clone().t_(),
    "in place transpose": lambda a: a.clone().transpose_(0, 1),
    "in place unsqueeze": lambda a: a.clone().unsqueeze_(-1),
    "unsqueeze": lambda a: a.unsqueeze(-1),
    "squeeze": lambda a: a[:, None].squeeze(),
    "squeeze of an axis": lambda a: a[:, None].squeeze(1),
    "squeeze of none": lambda a: a.squeeze(1),
    "squeeze of axes": lambda a: a[None, :, None].squeeze((0, 2)),
    "in place squeezes": lambda a: a[None, :, None, :, None].clone().squeeze_(0).squeeze_((1,)).squeeze_(),
    "expand": lambda a: a.expand(2, 3, 4),
    "repeat": lambda a: a.repeat(2, 1, 3),
    "repeat no times": lambda a: a.repeat(2, 0),
    "tile": lambda a: a.tile(2),
    "repeat_interleave": lambda a: a.repeat_interleave(2, 0),
    "repeat_interleave by counts": lambda a: a.repeat_interleave(torch.tensor([1, 0, 2]), 0),
    "flip": lambda a: a.flip(0, -1),
    "roll": lambda a: a.roll((1, 2), (0, -1)),
    "roll of all": lambda a: a.roll(5),
    "rot90": lambda a: [torch.rot90(a, k, (0, 1)) for k in (1, 2, 3, -1)],
    "diagonal": lambda a: [a.diagonal(k) for k in (-1, 0, 2)],
    "diagonal of an axis": lambda a: a.unflatten(1, (2, 2)).diagonal(0, -1, 0),
    "diag": lambda a: [torch.diag(a), torch.diag(a[0], -1)],
    "diag_embed": lambda a: torch.diag_embed(a, 1, 0, 2),
    "tril": lambda a: a.tril(-1),
    "triu": lambda a: a.triu(1),
    "trace": torch.trace,
    "unfold": lambda a: a.unfold(1, 2, 1),
    "unfold of the first axis": lambda a: a.unfold(0, 2, 1),
    "as_strided": lambda a: a.as_strided((2, 2), (1, 4), 1),
    "as_strided that overlaps": lambda a: a.as_strided((3, 3), (2, 1)),
    "split": lambda a: torch.split(a, 3, 1),
    "split by sizes": lambda a: torch.split(a, [1, 0, 3], -1),
    "chunk": lambda a: a.chunk(2, 0),
    "tensor_split": lambda a: torch.tensor_split(a, 3, 1),
    "unsafe splits": lambda a: [*torch.unsafe_split(a, 2, 1), *torch.unsafe_split_with_sizes(a, [1, 3], 1)],
    "unbind": lambda a: a.unbind(-1),
    "parts that are multiplied": lambda a: torch.mul(*a.chunk(2, 1)),
    "one of the parts": lambda a: a.unbind(0)[1],
    "many parts": lambda a: sum(part * float(k % 3) for k, part in enumerate(a.repeat(1, 10).split(1, 1))),
    "many slices": lambda a: sum(part * float(k % 3) for k, part in enumerate(a.repeat(1, 10).unbind(1))),
    "diff": lambda a: a.diff(dim=1),
    "pixel_shuffle": lambda a: F.pixel_shuffle(a.reshape(1, 4, 3, 1), 2),
    "pixel_unshuffle": lambda a: F.pixel_unshuffle(a.reshape(1, 1, 6, 2), 2),
    "channel_shuffle": lambda a: F.channel_shuffle(a.reshape(1, 4, 3, 1), 2),
    "the same twice": lambda a: torch.cat([a, a]) * torch.stack([a, a]).flatten(0, 1),
    "not contiguous": lambda a: a[::2, 1:].t().reshape(-1) * a.t()[1:, ::2].flatten(),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE)
def test_an_array_arranged_anew(name: str) -> None:
    compare_all(lambda a: ONE[name](a * a), A)


@pytest.mark.parametrize("x", [NUMBER, reals(0, 3)], ids=["number", "nothing"])
@pytest.mark.parametrize("f", [
    lambda a: a.reshape(a.numel(), 1), lambda a: a.unsqueeze(0), lambda a: a.squeeze(), lambda a: a.flip(tuple(range(a.dim()))),
    lambda a: a.roll(1), lambda a: a.repeat(*[2] * max(a.dim(), 1)), lambda a: a.expand(2, *a.shape), lambda a: torch.stack([a, a * a]),
    lambda a: torch.cat([a.unsqueeze(0), a.unsqueeze(0).exp()]),
    lambda a: a.reshape(-1).unfold(0, 1, 1) if a.dim() == 0 else a.unfold(1, 2, 1),
    lambda a: a.unfold(0, 1, 1) if a.dim() == 0 else a, lambda a: a.unsqueeze(0).split(1), lambda a: a.unsqueeze(0).unbind(0),
])  # fmt: skip
def test_numbers_and_arrays_without_entries(f: Callable[[Tensor], Any], x: Tensor) -> None:
    compare(lambda a: f(a * a), x)


SEVERAL: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "cat": (lambda a, b: torch.cat([a, b, a], 1), (A, B)),
    "cat of several sizes": (lambda a, b, c: torch.cat([a, b, c], -1), (A, reals(3, 2), reals(3, 1))),
    "cat with nothing": (lambda a: torch.cat([torch.zeros(0, dtype=a.dtype), a, a]), (A,)),
    "hstack": (lambda a, b: torch.hstack([a, b]), (LINE, LINE.detach()[:2].requires_grad_())),
    "vstack": (lambda a, b: torch.vstack([a, b]), (LINE, A[:, :3].detach().requires_grad_())),
    "dstack": (lambda a, b: torch.dstack([a, b]), (A, B)),
    "stack": (lambda a, b: torch.stack([a, b], 1), (A, B)),
    "meshgrid": (lambda a, b: torch.meshgrid(a, b, indexing="ij"), (LINE, LINE.detach()[:2].requires_grad_())),
    "cartesian_prod": (torch.cartesian_prod, (LINE, LINE.detach()[:2].requires_grad_())),
    "block_diag": (torch.block_diag, (A, LINE, NUMBER)),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_arrays_put_together(name: str) -> None:
    f, arguments = SEVERAL[name]
    compare_all(f, *arguments)


def test_constants_of_any_sizes_stand_between_parts() -> None:
    compare(lambda a: torch.cat([torch.ones(3, 1), a, torch.ones(3, 2), a.tanh(), torch.ones(3, 3)], 1).sin(), A)


def test_strides_of_what_is_not_contiguous_are_refused() -> None:
    y = (A * A).t().as_strided((2, 2), (1, 1))
    with pytest.raises(UnsupportedNode, match=r"AsStridedBackward0 of an array that is not contiguous.*Try as_strided of x.contiguous\(\)"):
        Run(y, [A])


def test_of_many_parts_none_is_larger_than_it_has_to_be() -> None:
    (x,) = [reals(1, 100)]
    program = Run(sum(part * part for part in x.split(1, 1)), [x]).program
    assert max(len(step.op.results) for step in program.instructions) <= ng.ops.splitting.MOST
