"""Nodes of writes in place, and of linear equations: the adopted graph has the derivatives of torch's nested backward passes."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from adopted import Run, compare, compare_all, reals

from nestgrad.errors import MutatedError, UnsupportedNode

Tensor = torch.Tensor

A, LINE, NUMBER = reals(3, 4), reals(4, seed=1), reals(seed=3)


def into(write: Callable[[Tensor, Tensor], Any]) -> Callable[[Tensor, Tensor], Tensor]:
    """A function that writes into what it made."""

    def run(a: Tensor, v: Tensor) -> Tensor:
        y = a * a
        write(y, v)
        return y

    return run


def _row(y: Tensor, v: Tensor) -> None:
    y[1] = v


def _column(y: Tensor, v: Tensor) -> None:
    y[:, 1] = v[:3]


def _rows(y: Tensor, v: Tensor) -> None:
    y[1:] = v


def _twice(y: Tensor, v: Tensor) -> None:
    y[0], y[1, 1:3], y[1, 2] = v, 2 * v[:2], v[3] * v[2]


def _positions(y: Tensor, v: Tensor) -> None:
    y[torch.tensor([0, 1])] = v


def _mask(y: Tensor, v: Tensor) -> None:
    y[torch.eye(3, 4).bool()] = v[:3]


def _numbers(y: Tensor, v: Tensor) -> None:
    y[:, 0].zero_()
    y[0].mul_(3.0)
    y[1, 2:].fill_(0.5)
    y[2].add_(v)
    y[2, ::2] -= 2 * v[:2]
    y[2].t_().neg_()


WRITES: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "row": _row,
    "column": _column,
    "rows": _rows,
    "several": _twice,
    "positions": _positions,
    "mask": _mask,
    "numbers": _numbers,
    "all": lambda y, v: y.copy_(v),
    "a number": lambda y, v: y.fill_(v[0]),
    "zeros": lambda y, v: y.zero_().add_(v),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_of_values_in_place(name: str) -> None:
    compare_all(into(WRITES[name]), A, LINE)


def test_an_array_that_is_filled_step_by_step() -> None:
    def steps(a: Tensor) -> list[Tensor]:
        found = [a[0]]
        for k in range(1, 5):
            found.append(torch.sin(found[-1]) * a[k % 4])
        return found

    def filled(a: Tensor) -> Tensor:
        y = torch.zeros(5, dtype=a.dtype)
        for k, value in enumerate(steps(a)):
            y[k] = value
        return y

    compare(filled, LINE)


def test_what_a_write_kept_may_not_be_written_over() -> None:
    def write(y: Tensor, v: Tensor) -> None:
        y[0].relu_()
        y[1].copy_(v)

    with pytest.raises(MutatedError, match=r"CopySlices saved, was written into afterwards"):
        Run(into(write)(A, LINE), [A, LINE])


def test_writes_with_numbers_of_single_precision() -> None:
    x = torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()
    y = into(_numbers)(x, torch.ones(4))
    (expected,) = torch.autograd.grad(y.sum(), x, retain_graph=True)
    torch.testing.assert_close(Run(y, [x]).gradient(torch.ones_like(y))[0], expected)


def _tanh(y: Tensor, v: Tensor) -> None:
    y[0].tanh_()


def _product(y: Tensor, v: Tensor) -> None:
    y[0].mul_(v)


def _square(y: Tensor, v: Tensor) -> None:
    y[:, 1].pow_(2)


def _relu(y: Tensor, v: Tensor) -> None:
    y[0].sub_(v).relu_()


@pytest.mark.parametrize("write", [_tanh, _product, _square, _relu])
def test_writes_that_are_not_linear_are_refused(write: Callable[[Tensor, Tensor], None]) -> None:
    with pytest.raises(UnsupportedNode, match=r"CopySlices, a write into a part of an array in place, of more than values.*Try torch"):
        Run(into(write)(A, LINE), [A, LINE])


MATRIX = (torch.eye(3, dtype=torch.float64) * 2 + reals(3, 3).detach()).requires_grad_()
STACK = (torch.eye(2, dtype=torch.float64) * 2 + reals(3, 2, 2).detach()).requires_grad_()

EQUATIONS: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "solve": (torch.linalg.solve, (MATRIX, reals(3, 2, seed=1))),
    "solve for a vector": (torch.linalg.solve, (MATRIX, reals(3, seed=1))),
    "solve a stack": (torch.linalg.solve, (STACK, reals(3, 2, 1, seed=1))),
    "solve a stack for vectors": (torch.linalg.solve, (STACK, reals(3, 2, seed=1))),
    "solve from the right": (lambda a, b: torch.linalg.solve(a, b, left=False), (MATRIX, reals(2, 3, seed=1))),
    "triangular": (lambda a, b: torch.linalg.solve_triangular(a, b, upper=True), (MATRIX, reals(3, 2, seed=1))),
    "triangular from the right": (
        lambda a, b: torch.linalg.solve_triangular(a, b, upper=False, left=False, unitriangular=True), (MATRIX, reals(2, 3, seed=1))),
    "inverse": (torch.linalg.inv, (MATRIX,)),
    "inverses": (torch.linalg.inv, (STACK,)),
    "determinant": (torch.linalg.det, (MATRIX,)),
    "determinants": (torch.det, (STACK,)),
    "slogdet": (lambda a: torch.linalg.slogdet(a)[1], (STACK,)),
    "logdet": (torch.logdet, (MATRIX,)),
}  # fmt: skip


@pytest.mark.parametrize("name", EQUATIONS)
def test_solutions_inverses_and_determinants(name: str) -> None:
    f, arguments = EQUATIONS[name]

    def near(*xs: Tensor) -> Any:  # far from singular matrices, inside of a graph too
        return f(xs[0] + 3 * torch.eye(xs[0].shape[-1], dtype=xs[0].dtype), *xs[1:])

    compare_all(near, *arguments, tolerance=1e-8)

    def penalty(*xs: Tensor) -> Tensor:
        return torch.stack([(g * g).sum() for g in torch.autograd.grad(near(*xs).pow(2).sum(), xs, create_graph=True)]).sum()

    compare(penalty, *arguments, orders=2, tolerance=1e-8)
