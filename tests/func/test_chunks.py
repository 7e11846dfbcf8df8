"""``chunk_size``: the same numbers, in as much memory as a chunk needs, whatever is built row by row, column by column or by samples."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nestgrad as ng
from nestgrad import func
from nestgrad.errors import LevelError

RNG = np.random.default_rng(8)
A, B = RNG.normal(size=(7, 5)), RNG.normal(size=(6, 7))
X, POINTS = RNG.normal(size=5), RNG.normal(size=(11, 5))


def net(x: Any) -> Any:
    """Six outputs of five entries."""
    return ng.tensor(B) @ (ng.tensor(A) @ x).tanh() * x.sum().exp()


WHOLE: dict[str, Callable[[int | None], Any]] = {
    "jacrev": lambda c: func.jacrev(net, chunk_size=c)(X),
    "jacfwd": lambda c: func.jacfwd(net, chunk_size=c)(X),
    "hessian": lambda c: func.hessian(net, chunk_size=c)(X),
    "hessian_diag": lambda c: func.hessian_diag(lambda x: (net(x) ** 2).sum(), chunk_size=c)(X),
    "vmap": lambda c: func.vmap(net, chunk_size=c)(POINTS),
    "vmap of grad": lambda c: func.vmap(func.grad(lambda x: net(x).sum()), chunk_size=c)(POINTS),
    "vmap of hessian": lambda c: func.vmap(func.hessian(net), chunk_size=c)(POINTS),
    "vmap of chunks": lambda c: func.vmap(func.jacrev(net, chunk_size=c), chunk_size=c)(POINTS),
}


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 100])
@pytest.mark.parametrize("name", WHOLE)
def test_chunks_give_the_numbers_of_the_whole(name, size):
    """Up to the last bit: products of matrices add in another order when there are fewer columns."""
    want = WHOLE[name](None).numpy()
    found = WHOLE[name](size).numpy()
    assert found.shape == want.shape
    np.testing.assert_allclose(found, want, rtol=1e-14, atol=1e-15 * abs(want).max())


@pytest.mark.parametrize("size", [1, 3, None])
@pytest.mark.parametrize("name", ["jacrev", "jacfwd", "hessian"])
def test_elementwise_functions_give_the_same_bits(name, size):
    """Where no sums are, chunks make no difference at all."""
    f = (lambda x: (x.sin() * x.exp()).sum()) if name == "hessian" else (lambda x: x.sin() * x.exp())
    kind = getattr(func, name)
    np.testing.assert_array_equal(kind(f, chunk_size=size)(X).numpy(), kind(f)(X).numpy())


N = 300
WIDE = ng.tensor(RNG.normal(size=(N, N)) / N)


def deep(x: Any) -> Any:
    """As many outputs as entries, through thirty layers: each direction takes thirty vectors."""
    for _ in range(10):
        x = (WIDE @ x).sin() * x.exp()
    return x


BIG: dict[str, tuple[Callable[[int | None], Any], int]] = {
    "jacrev": (lambda c: func.jacrev(deep, chunk_size=c)(np.ones(N)), 3),
    "jacfwd": (lambda c: func.jacfwd(deep, chunk_size=c)(np.ones(N)), 3),
    "hessian": (lambda c: func.hessian(lambda x: deep(x).sum(), chunk_size=c)(np.ones(N)), 3),
    "hessian_diag": (lambda c: func.hessian_diag(lambda x: deep(x).sum(), chunk_size=c or N)(np.ones(N)), 1),
    "vmap": (lambda c: func.vmap(lambda x: deep(x * np.ones(N)), chunk_size=c)(np.ones(N)), 3),
    "vmap of grad": (lambda c: func.vmap(func.grad(lambda x: deep(x).sum()), chunk_size=c)(np.ones((N, N))), 5),
}
"""With how many copies of the result are allowed beside what a chunk takes: its parts, and these end to end."""


@pytest.mark.parametrize("name", BIG)
def test_memory_is_that_of_a_chunk_and_the_result(peak, name):
    """A tenth of the directions takes about a tenth of what all take, and no more than that beside the result."""
    run, copies = BIG[name]
    run(N // 10)  # what it imports, and programs that it keeps, are no memory of a chunk
    (_, part), (_, whole) = peak(lambda: run(N // 10)), peak(lambda: run(None))
    result = N * N * 8
    assert part < whole / 10 * 1.5 + copies * result, f"{part / result:.1f} results instead of {whole / result:.1f}"


def test_rows_of_a_hessian_come_in_chunks_too(peak):
    """Of a function with many outputs: a batch of all its rows would be a hundred times a row."""
    f = lambda x: deep(x) * ng.tensor(np.ones(N))
    run = lambda c: func.hessian(lambda x: f(x * np.ones(N)), chunk_size=c)(1.0)
    (part, less), (whole, most) = peak(lambda: run(10)), peak(lambda: run(None))
    np.testing.assert_allclose(part.numpy(), whole.numpy(), rtol=1e-12)
    assert less < most / 4


def test_data_beside_the_output_is_kept_once(peak):
    """Each run returns some; that of the first counts."""
    f = lambda x: (x.sin(), np.zeros(100_000))
    assert peak(lambda: func.jacfwd(f, has_aux=True, chunk_size=1)(np.ones(40)))[1] < 4 * 800_000


@pytest.mark.parametrize("kind", ["jacfwd", "hessian", "vmap"])
def test_outputs_that_change_from_chunk_to_chunk_are_refused(kind):
    """In structure, and in shape, with the place in the structure."""
    runs: list[int] = []

    def counted(f: Callable[[Any, int], Any]) -> Callable[[Any], Any]:
        runs.clear()
        return lambda x: (runs.append(1), f(x, len(runs)))[1]

    transform = getattr(func, kind)
    with pytest.raises(
        LevelError, match=rf"^{kind}: the function returned the structure \* for one chunk and \(\*, \*\) for another; expec"
    ):
        transform(counted(lambda x, k: x * 2.0 if k == 1 else (x, x)), chunk_size=2)(np.ones(3))
    shape = r"\(1,\) for one chunk and \(2,\) for another" if kind != "hessian" else r"\(1, 3\) for one chunk and \(2, 3\) for another"
    with pytest.raises(
        LevelError, match=rf"^{kind}: the function returned shape {shape} as its output\['y'\]; .* changes from run to run\?"
    ):
        transform(counted(lambda x, k: {"a": x, "y": ng.ones(k) * x.sum()}), chunk_size=2)(np.ones(3))
