"""Whole matrices of derivatives: ``jacrev`` by rows, ``jacfwd`` by columns, ``hessian`` by both.

All rows, or columns, are one pass over a batch of unit vectors. The unit vectors go over the entries of all outputs, or arguments.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from nestgrad.func.forward import pushed
from nestgrad.func.home import of
from nestgrad.func.mapping import checked_chunk, dressed, undressed
from nestgrad.func.reverse import Pullback, pulled
from nestgrad.func.run import ArgNums, Arguments, Outputs, Run, differentiable, outside, same_outputs, zeros
from nestgrad.func.trees import unflatten
from nestgrad.functions.shaping import concat
from nestgrad.levels.marks import NONE
from nestgrad.tensor import Tensor
from nestgrad.tensor.handle import make


def jacrev(f: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False, chunk_size: int | None = None) -> Callable[..., Any]:
    """The Jacobian by reverse mode: one batched backward pass over the entries of the output.

    Args:
        f: Returns a Tensor, or a nested structure of them (with ``has_aux`` a pair of that and anything else).
        argnums: Which positional argument to differentiate by, or several. An argument may be a nested structure.
        has_aux: Whether ``f`` returns auxiliary data as well.
        chunk_size: How many rows to compute at once; ``None``: all. Bounds memory; ``f`` runs once all the same.

    Returns:
        A function of the same arguments. It gives a Tensor of the output's shape and the argument's, one after the other; a tuple of them
        for several ``argnums``; for nested structures the output's structure of the argument's; with ``has_aux`` a pair with the auxiliary
        data. The dtype is the argument's. Cheaper than ``jacfwd`` where the output has fewer entries than the argument.

    Raises:
        DTypeError: If an argument, or an output, is not floating.
        LevelError: If the output was taken out of the level of this very transform.

    >>> from nestgrad import tensor
    >>> jacrev(lambda x: x**2)(tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    return _by_rows("jacrev", f, argnums, has_aux, checked_chunk("jacrev", chunk_size))


def jacfwd(f: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False, chunk_size: int | None = None) -> Callable[..., Any]:
    """The Jacobian by forward mode: one run of ``f`` on a batch of directions, one for each entry of the argument.

    Arguments, result and errors are those of ``jacrev``; the dtype is the output's. With ``chunk_size``, ``f`` runs once for each chunk of
    directions. Keeps no graph, and is cheaper than ``jacrev`` where the argument has fewer entries than the output.

    >>> from nestgrad import tensor
    >>> jacfwd(lambda x: x.sum() * x)(tensor([1.0, 2.0])).tolist()
    [[4.0, 1.0], [2.0, 5.0]]
    """
    return _by_columns("jacfwd", f, argnums, has_aux, checked_chunk("jacfwd", chunk_size))


def hessian(f: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False, chunk_size: int | None = None) -> Callable[..., Any]:
    """All second derivatives, by forward mode over reverse mode.

    Args:
        f: Returns a Tensor, or a nested structure of them (with ``has_aux`` a pair of that and anything else).
        argnums: As for ``jacrev``.
        has_aux: As for ``jacrev``.
        chunk_size: How many columns to compute at once, and for how many entries of the output; ``None``: all. Bounds memory, and runs
            ``f`` once for each chunk of columns.

    Returns:
        A function of the same arguments. It gives what ``jacfwd(jacrev(f))`` does: for an argument of shape ``s`` and an output of shape
        ``t`` a Tensor of shape ``(*t, *s, *s)``. One gradient of ``f``, on a batch of directions.

    Raises:
        As ``jacrev``.

    >>> from nestgrad import tensor
    >>> hessian(lambda x: x[0] ** 2 * x[1])(tensor([1.0, 2.0])).tolist()
    [[4.0, 2.0], [2.0, 0.0]]
    """
    step = checked_chunk("hessian", chunk_size)
    return _by_columns("hessian", _by_rows("hessian", f, argnums, has_aux, step), argnums, has_aux, step)


def _by_rows(name: str, f: Callable[..., Any], argnums: ArgNums, has_aux: bool, step: int | None) -> Callable[..., Any]:
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        pullback, aux = pulled(name, f, argnums, has_aux, args, kwargs, False)
        differentiable(name, pullback.values, pullback.structure)
        values, leaves, root = pullback.values, pullback.arguments.leaves, pullback.root
        n = 0 if root is None else root.size
        chunks = [_rows(name, pullback, start, stop) for start, stop in _ranges(n, step)]
        rows = [_end_to_end([chunk[k] for chunk in chunks], 0) for k in range(len(leaves))] if chunks else []
        blocks = dict(zip(pullback.connected, _blocks([values[i] for i in pullback.connected]), strict=True)) if rows else {}
        table = [
            [r[slice(*blocks[i])].reshape((*y.shape, *x.shape)) for r, x in zip(rows, leaves, strict=True)]
            if i in blocks
            else [zeros(x, (*y.shape, *x.shape), values) for x in leaves]
            for i, y in enumerate(values)
        ]
        found = unflatten(pullback.structure, [_argument(pullback.arguments, argnums, row) for row in table])
        return (found, aux) if has_aux else found

    return of(f, jacobian)


def _rows(name: str, pullback: Pullback, start: int, stop: int) -> list[Tensor]:
    """Rows ``start`` to ``stop`` of the Jacobian of the root, for each leaf of the arguments: axis 0 is along the rows."""
    root = pullback.root
    assert root is not None
    units = unit_vectors(root, root.size, start, stop)
    if stop - start == 1:
        seed = units[0]
        return [g.reshape((1, *g.shape)) for g in pullback.cotangents(seed, [seed])]
    with Run(name, [*pullback.values, *pullback.arguments.leaves]) as tape:
        seed = dressed(units, 0, tape)
        found = [undressed(name, g, tape, stop - start, 0) for g in pullback.cotangents(seed, [seed])]
    return [outside(g) for g in found]


def _by_columns(name: str, f: Callable[..., Any], argnums: ArgNums, has_aux: bool, step: int | None) -> Callable[..., Any]:
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        arguments = Arguments(name, f, argnums, args, kwargs.values())
        arguments.floating()
        n = sum(x.size for x in arguments.leaves)
        (start, stop), *ranges = _ranges(n, step) if n else [(0, 0)]
        first, moved = _columns(f, arguments, start, stop, kwargs, has_aux)
        chunks = [moved]
        for start, stop in ranges:
            out, moved = _columns(f, arguments, start, stop, kwargs, has_aux)  # outputs and data beside them are let go of
            same_outputs(name, (first.structure, first.shapes()), (out.structure, out.shapes()))
            chunks.append(moved)
        table = []
        for i, y in enumerate(first.leaves):
            columns = _end_to_end([moved[i] for moved in chunks], -1)
            blocks = zip(_blocks(arguments.leaves), arguments.leaves, strict=True)
            table.append([columns[..., slice(*block)].reshape((*y.shape, *x.shape)) for block, x in blocks])
        found = unflatten(first.structure, [_argument(arguments, argnums, row) for row in table])
        return (found, first.aux) if has_aux else found

    return of(f, jacobian)


def _columns(
    f: Callable[..., Any], arguments: Arguments, start: int, stop: int, kwargs: dict[str, Any], has_aux: bool
) -> tuple[Outputs, list[Tensor]]:
    """The outputs, and columns ``start`` to ``stop`` of the Jacobian of each: its last axis is along the columns."""
    blocks = [(x, a, b) for x, (a, b) in zip(arguments.leaves, _blocks(arguments.leaves), strict=True)]
    units = [unit_vectors(x, b - a, start - a, stop - a) if start < b and a < stop else None for x, a, b in blocks]
    out, found = pushed_along(f, arguments, units, stop - start, -1, kwargs, has_aux)
    differentiable(arguments.name, out.leaves, out.structure)
    return out, [zeros(y, (*y.shape, stop - start), [y]) if t is None else t for y, t in zip(out.leaves, found, strict=True)]


def pushed_along(
    f: Callable[..., Any],
    arguments: Arguments,
    directions: Sequence[Tensor | None],
    n: int,
    axis: int,
    kwargs: dict[str, Any],
    has_aux: bool,
) -> tuple[Outputs, list[Tensor | None]]:
    """The outputs, and the tangent of each along ``n`` directions, by one run on a batch of them. For a single one there is no batch.

    Axis 0 of the directions is along them, and ``axis`` of the tangents. ``None`` for what stands still.
    """
    if n <= 1:
        out, moved = pushed(f, arguments, [None if t is None else t[0] for t in directions], kwargs, has_aux)
        return out, [None if t is None else t.expand_dims(axis) for t in moved]
    with Run(arguments.name, arguments.leaves) as tape:
        out, moved = pushed(f, arguments, [None if t is None else dressed(t, 0, tape) for t in directions], kwargs, has_aux)
        found = [None if t is None else undressed(arguments.name, t, tape, n, axis) for t in moved]
    out.leaves = [outside(x) for x in out.leaves]
    return out, [None if t is None else outside(t) for t in found]


def unit_vectors(like: Tensor, size: int, start: int, stop: int) -> Tensor:
    """Unit vectors number ``start`` to ``stop`` of those of ``size`` entries, each of the shape of ``like``; zeros beyond them."""
    base = like.b.base
    rows = base.reshape(base.arange(start, stop), (stop - start, 1))
    columns = base.reshape(base.arange(0, size), (1, size))
    units = base.cast(base.eq(rows, columns), like.dtype)
    return make(like.b, base.reshape(units, (stop - start, *like.shape)), NONE)


def _end_to_end(parts: Sequence[Tensor], axis: int) -> Tensor:
    return concat(parts, axis) if len(parts) > 1 else parts[0]


def _ranges(n: int, step: int | None) -> list[tuple[int, int]]:
    step = step or max(n, 1)
    return [(start, min(start + step, n)) for start in range(0, n, step)]


def _blocks(leaves: Sequence[Tensor]) -> list[tuple[int, int]]:
    """The places of each leaf's entries where all are end to end."""
    ends = list(accumulate(x.size for x in leaves))
    return list(zip([0, *ends[:-1]], ends, strict=True)) if ends else []


def _argument(arguments: Arguments, argnums: ArgNums, leaves: Sequence[Tensor]) -> Any:
    trees = arguments.trees(leaves)
    return trees if isinstance(argnums, Sequence) else trees[0]
