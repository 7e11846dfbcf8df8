"""Ways to all partial derivatives of one order: nestgrad's, thoad's, and torch's; what each gives, as dense tensors by keys."""

import contextlib
import importlib
import itertools
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd.functional import hessian

import nestgrad as ng
from benchmarks.partials_cases import Case

FEW = 10
"""How many times as many inputs as outputs there may be for forward mode alone, which holds a pass for each tuple of inputs."""
MANY = 20_000
"""First derivatives, of which a second ``jacrev`` would hold a pass each: with more it takes gigabytes, and is the slowest by far."""
Key = tuple[int, ...]
Dense = dict[Key, torch.Tensor | None]


@dataclass(frozen=True)
class Way:
    """What is timed; and what it gave, by keys: numbers of leaves. The output's entries run along the first axis."""

    run: Callable[[], Any]
    read: Callable[[Any], Dense]


class TooSlow(Exception):
    """It takes longer than it is waited for."""


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise what takes longer, at the next step of Python."""

    def stop(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def seconds(run: Callable[[], Any]) -> float:
    """Of one call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def keys(case: Case) -> list[Key]:
    """All keys of the order that the case asks for."""
    n = len(case.leaves)
    return list(itertools.product(range(n), repeat=case.order)) if case.crossings else [(k,) * case.order for k in range(n)]


def rows(case: Case, found: dict[Key, torch.Tensor]) -> Dense:
    """The output's axes as one, in the layout of ``hgrad``."""
    shaped: Dense = {}
    for key, value in found.items():
        inputs = [size for k in key for size in case.leaves[k].shape]
        shaped[key] = value.reshape(-1, *inputs) if value.numel() else value
    return shaped


def pure(case: Case) -> Callable[[tuple[Any, ...]], Dense]:
    """What the leaves hold, by keys."""
    return lambda found: {(k,) * case.order: value for k, value in enumerate(found)}


def nestgrad(case: Case) -> Way:
    """One call, and the reading of what was asked for."""
    wanted, order, leaves = keys(case), case.order, case.leaves
    if case.alone:
        graph = case.f(*leaves)

        def alone() -> tuple[Any, ...]:
            ng.backward(graph, order)
            return tuple(leaf.hgrad[order - 1] for leaf in leaves)

        return Way(alone, pure(case))

    def dense() -> dict[Key, torch.Tensor]:
        controller = ng.backward(case.f(*leaves), order, crossings=case.crossings)
        if not case.crossings:
            return {(k,) * order: leaf.hgrad[order - 1] for k, leaf in enumerate(leaves)}
        return {key: controller.fetch_hgrad([leaves[k] for k in key])[0] for key in wanted}

    def stored() -> dict[Key, torch.Tensor]:
        ng.backward(case.f(*leaves), order)
        return {(0,) * order: leaves[0].hgrad.blocks[order - 1].data}

    return Way(stored if case.samples else dense, dict)


def thoad(case: Case) -> Way:
    """The same by thoad.

    Raises:
        ImportError: thoad is not installed.
    """
    package = importlib.import_module("thoad")
    graph = case.f(*case.leaves) if case.alone else None
    order, leaves = case.order, case.leaves

    def run() -> tuple[Any, dict[Key, torch.Tensor | None]]:
        output = case.f(*leaves) if graph is None else graph
        controller = package.backward(output, order, crossings=case.crossings, keep_batch=case.samples is not None)
        found: dict[Key, torch.Tensor | None] = {(k,) * order: leaf.hgrad[order - 1] for k, leaf in enumerate(leaves)}
        for key in keys(case):
            if key not in found:
                try:
                    found[key] = controller.fetch_hgrad([leaves[k] for k in key])[0]
                except AssertionError:  # what it has for a partial that is zero everywhere
                    found[key] = None
        controller.clear()  # or nothing of it is ever freed
        return output, found

    def read(answer: tuple[Any, dict[Key, torch.Tensor | None]]) -> Dense:
        output, found = answer
        if case.samples is None:
            return dict(found)
        return {key: own_rows(value, output.shape, leaves[0].shape, order) for key, value in found.items() if value is not None}

    return Way(run, read)


def own_rows(value: torch.Tensor, out: torch.Size, leaf: torch.Size, order: int) -> torch.Tensor:
    """Of a partial with its batch kept, (outputs, batch, rest of the leaf for each order): that of each sample by itself.

    Raises:
        AssertionError: If something else is not zero.
    """
    batch = out[0]
    shaped = value.detach().reshape(batch, -1, batch, *(leaf[1:] * order))
    own = torch.stack([shaped[k, :, k] for k in range(batch)])
    assert torch.count_nonzero(shaped) == torch.count_nonzero(own)
    return own.reshape(*out, *(leaf[1:] * order))


def flattened(case: Case) -> tuple[Callable[[torch.Tensor], torch.Tensor], torch.Tensor, Callable[[torch.Tensor], dict[Key, torch.Tensor]]]:
    """The function of all leaves in one vector, the vector, and the blocks of what was found by it."""
    sizes = [leaf.numel() for leaf in case.leaves]
    point = torch.cat([leaf.detach().reshape(-1) for leaf in case.leaves])

    def f(flat: torch.Tensor) -> torch.Tensor:
        parts = flat.split(sizes)
        return case.f(*(part.view(leaf.shape) for part, leaf in zip(parts, case.leaves, strict=True)))

    def blocks(found: torch.Tensor) -> dict[Key, torch.Tensor]:
        whole = found.reshape(-1, *[len(point)] * case.order)
        starts = [sum(sizes[:k]) for k in range(len(sizes))]
        return {key: whole[(slice(None), *(slice(starts[k], starts[k] + sizes[k]) for k in key))] for key in keys(case)}

    return f, point, blocks


def nested_tuples(case: Case, found: Any) -> dict[Key, torch.Tensor]:
    """Blocks by keys, from tuples of tuples."""
    taken = {}
    for key in keys(case):
        value = found
        for k in key:
            value = value[k]
        taken[key] = value
    return taken


def torch_func(case: Case) -> dict[str, Way]:
    """Compositions of ``jacfwd`` and ``jacrev``: by the leaves one by one, by all together, by one vector of all, under ``vmap``."""
    forward, reverse, order = torch.func.jacfwd, torch.func.jacrev, case.order
    kinds = {"jacfwd of jacrev": [reverse, *[forward] * (order - 1)]}
    outputs, inputs = case.f(*case.leaves).numel(), sum(leaf.numel() for leaf in case.leaves)
    if inputs <= FEW * outputs:
        kinds["jacfwd"] = [forward] * order
    if order == 1 or (order == 2 and outputs * inputs <= MANY):
        kinds["jacrev"] = [reverse] * order
    leaves = tuple(leaf.detach() for leaf in case.leaves)
    ways = {}

    def by(transforms: list[Any], f: Callable[..., Any], argnums: Any) -> Callable[..., Any]:
        for transform in transforms:
            f = transform(f, argnums=argnums)
        return f

    for kind, transforms in kinds.items():
        if case.samples:
            mapped = torch.func.vmap(by(transforms, case.f, 0), in_dims=case.samples)
            ways[f"vmap of {kind}"] = Way(lambda mapped=mapped: mapped(*leaves), lambda found: {(0,) * order: found})
        elif case.crossings:
            every = by(transforms, case.f, tuple(range(len(leaves))))
            ways[kind] = Way(lambda every=every: every(*leaves), lambda found: rows(case, nested_tuples(case, found)))
            f, point, blocks = flattened(case)
            one = by(transforms, f, 0)
            read = lambda found, blocks=blocks: rows(case, blocks(found))
            ways[f"{kind}, one vector"] = Way(lambda one=one, point=point: one(point), read)
        else:
            single = [by(transforms, case.f, k) for k in range(len(leaves))]
            read = lambda found: rows(case, {(k,) * order: value for k, value in enumerate(found)})
            ways[kind] = Way(lambda single=single: [transform(*leaves) for transform in single], read)
    return ways


def hessians(case: Case, vectorize: bool) -> dict[str, Way]:
    """``torch.autograd.functional.hessian``, of scalars."""
    if case.order != 2 or case.samples or case.f(*case.leaves).ndim:
        return {}
    strategies = ["reverse-mode", "forward-mode"] if vectorize else ["reverse-mode"]
    leaves = tuple(leaf.detach() for leaf in case.leaves)
    read = lambda found: rows(case, nested_tuples(case, found))
    return {
        name: Way(lambda name=name: hessian(case.f, leaves, vectorize=vectorize, outer_jacobian_strategy=name), read) for name in strategies
    }


def nested(case: Case) -> dict[str, Way]:
    """Passes of torch.autograd over passes, all rows of one at once."""
    if case.samples and case.f(*case.leaves).shape == case.leaves[0].shape and case.leaves[0].ndim == 1:
        return {"sums": Way(lambda: sums(case), lambda found: {(0,) * case.order: found})}
    if not case.nested:
        return {}
    leaves = case.leaves
    if case.alone:
        graph = case.f(*leaves)
        return {"pass": Way(lambda: torch.autograd.grad(graph, leaves, retain_graph=True), lambda found: rows(case, pure_of(found)))}

    def run() -> Any:
        value = case.f(*leaves).reshape(-1)
        for k in range(case.order):
            more = k < case.order - 1
            columns: list[torch.Tensor]
            if len(value) == 1:
                columns = [g.reshape(1, -1) for g in torch.autograd.grad(value[0], leaves, create_graph=more, materialize_grads=True)]
            else:
                seeds = torch.eye(len(value), dtype=value.dtype)
                grads = torch.autograd.grad(value, leaves, seeds, create_graph=more, is_grads_batched=True, materialize_grads=True)
                columns = [g.reshape(len(value), -1) for g in grads]
            value = torch.cat(columns, 1).reshape(-1)
        return value

    def read(value: torch.Tensor) -> Dense:
        flat = value.reshape(-1, *[sum(leaf.numel() for leaf in leaves)] * case.order)
        sizes = [leaf.numel() for leaf in leaves]
        starts = [sum(sizes[:k]) for k in range(len(sizes))]
        return rows(case, {key: flat[(slice(None), *(slice(starts[k], starts[k] + sizes[k]) for k in key))] for key in keys(case)})

    return {"passes": Way(run, read)}


def pure_of(found: tuple[torch.Tensor, ...]) -> dict[Key, torch.Tensor]:
    """First derivatives by their keys."""
    return {(k,): value for k, value in enumerate(found)}


def sums(case: Case) -> torch.Tensor:
    """Derivatives of what no entry shares with another: those of the sum."""
    (x,) = case.leaves
    value = case.f(x)
    for k in range(case.order):
        (value,) = torch.autograd.grad(value.sum(), x, create_graph=k < case.order - 1)
    return value
