"""The diagonal of a Hessian: ``hessian_diag``.

Entry ``i`` of the product with a sum of unit vectors is entry ``i`` of the diagonal, if ``i`` is one of them and no two of them are
coupled. Which are, a trace of the gradient tells. A colouring of the graph of couplings then gives few such sums: one, if there are none.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate
from math import prod
from typing import Any

from nestgrad.backends.derived.linalg import resolution
from nestgrad.dependence import Pattern, TooDense, given_pattern, jacobian_pattern, neighbours_apart, rows_of, sparse_arrays, symmetric
from nestgrad.dependence.checking import compared, signs
from nestgrad.dependence.pattern import HOST
from nestgrad.errors import NestgradError, PatternError, ShapeError
from nestgrad.func.home import of
from nestgrad.func.jacobians import pushed_along
from nestgrad.func.mapping import checked_chunk
from nestgrad.func.reverse import grad
from nestgrad.func.run import ArgNums, Arguments, Outputs, zeros
from nestgrad.func.tracing import trace
from nestgrad.functions.shaping import concat
from nestgrad.levels.coats import bare
from nestgrad.levels.marks import NONE
from nestgrad.levels.traced.program import Program
from nestgrad.tensor import Tensor
from nestgrad.tensor.handle import make

_FEW = 256
"""So many unit directions are cheaper than a trace."""

_FULL = 64
"""More entries than these, each coupled with all, would take as many directions: no pattern is sparse then."""

_AT_ONCE = 2**17
"""How many numbers the directions of one pass hold at most, where nothing else is said."""


def hessian_diag(
    f: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False, chunk_size: int | None = None, pattern: Any = None
) -> Callable[..., Any]:
    """The diagonal of the Hessian of a scalar function, without the rest of it.

    Forward mode over reverse mode, on a batch of directions. From 256 entries on, each call first traces the gradient for which entries are
    coupled, and takes as many directions as a colouring of the couplings has colours: one for ``sum_i f_i(x_i)``, two or three where only
    neighbours in a chain are coupled. Where nearly all are coupled, where the function cannot be traced, where scipy is not installed, and
    for fewer entries, there is a direction for each entry.

    Args:
        f: Returns a 0-dimensional Tensor (with ``has_aux`` a pair of it and anything else).
        argnums: Which positional argument to differentiate by, or several. An argument may be a nested structure.
        has_aux: Whether ``f`` returns auxiliary data as well.
        chunk_size: How many directions to take at once; ``f`` runs once for each chunk. ``None``: so many that they hold 2^17 numbers.
        pattern: Where the Hessian may be nonzero, in the place of a trace: a matrix of ``scipy.sparse``, or a boolean array, of shape
            ``(n, n)`` for ``n`` entries of all arguments in question, end to end. It is checked, by as many directions again, with random
            signs.

    Returns:
        A function of the same arguments. It gives a Tensor of the argument's shape, or the argument's structure of them; a tuple for
        several ``argnums``; with ``has_aux`` a pair with the auxiliary data. No array has ``n^2`` entries.

    Raises:
        ShapeError: If the output is not 0-dimensional, or the pattern has another shape.
        DTypeError: If an argument is not floating.
        PatternError: If the pattern lacks an entry.
        BackendError: If a pattern is given, and scipy is not installed.
        LevelError: If the output was taken out of the level of this very transform.

    >>> from nestgrad import tensor
    >>> hessian_diag(lambda x: x[0] ** 3 * x[1] ** 2)(tensor([1.0, 2.0])).tolist()
    [24.0, 2.0]
    """
    step = checked_chunk("hessian_diag", chunk_size)
    known = None if pattern is None else given_pattern("hessian_diag", pattern, square=True)
    gradient = grad(f, argnums, has_aux)

    def diagonal(*args: Any, **kwargs: Any) -> Any:
        arguments = Arguments("hessian_diag", f, argnums, args, kwargs.values())
        arguments.floating()
        n = sum(x.size for x in arguments.leaves)
        if known is not None and known.shape[0] != n:
            raise ShapeError(f"hessian_diag: got a pattern of shape {known.shape} for {n} entries; expected ({n}, {n})")
        colors = _traced(gradient, arguments, kwargs, has_aux, n) if known is None else neighbours_apart(rows_of(known))
        passes = _Passes(gradient, arguments, kwargs, has_aux, HOST.cast(HOST.asarray(colors), "int64"))
        size = step or max(_AT_ONCE // max(n, 1), 1)
        found = passes.diagonal(size)
        if known is not None:
            passes.check(found, size)
        trees = arguments.trees(found)
        answer = trees if isinstance(argnums, Sequence) else trees[0]
        return (answer, passes.aux) if has_aux else answer

    return of(f, diagonal)


class _Passes:
    """The products of the Hessian with sums of unit vectors, and what they tell.

    Attributes:
        aux: The auxiliary data of the first pass.
    """

    __slots__ = ("_arguments", "_colors", "_count", "_gradient", "_has_aux", "_kwargs", "aux")

    def __init__(self, gradient: Callable[..., Any], arguments: Arguments, kwargs: dict[str, Any], has_aux: bool, colors: Any) -> None:
        self._gradient, self._arguments, self._kwargs, self._has_aux = gradient, arguments, kwargs, has_aux
        sizes = [x.size for x in arguments.leaves]
        self._colors = [colors[stop - size : stop] for size, stop in zip(sizes, accumulate(sizes), strict=True)]
        self._count = int(colors.max()) + 1 if len(colors) else 0
        self.aux: Any = None

    def diagonal(self, size: int, signed: bool = False) -> list[Tensor]:
        """The diagonal, in the shape of each leaf; ``size`` colours at once. If ``signed``, from unit vectors of random signs."""
        pieces: list[list[Tensor]] = [[] for _ in self._colors]
        first = None
        for start in range(0, max(self._count, 1), size):
            stop = min(start + size, self._count)
            out, moved = self._products(start, stop, signed)
            first = first or out
            for k, colors in enumerate(self._colors):
                places = ((colors >= start) & (colors < stop)).nonzero()[0]
                pieces[k].append(moved[k].reshape((max(stop - start, 1), len(colors)))[colors[places] - start, places])
        assert first is not None
        self.aux = first.aux
        found = []
        for x, colors, parts in zip(self._arguments.leaves, self._colors, pieces, strict=True):
            whole = concat(parts) if len(parts) > 1 else parts[0]
            if len(parts) > 1:  # by colour, and back to the order of the entries
                whole = whole[(colors // size).argsort(kind="stable").argsort(kind="stable")]
            found.append(whole.reshape(x.shape))
        return found

    def check(self, found: Sequence[Tensor], size: int) -> None:
        """Compare with what other signs give.

        Raises:
            PatternError: If it is not the same, because two entries of one colour are coupled.
        """
        again = self.diagonal(size, signed=True)
        for x, y, colors in zip(found, again, self._colors, strict=True):
            base = x.b.base
            one, other = (HOST.asarray(base.to_numpy(x.b.read(bare(p.value)))) for p in (x, y))
            off = compared(one, other * signs(len(colors)).reshape(x.shape), abs(one), resolution(base, x.dtype))
            if off is not None:
                raise PatternError(
                    f"hessian_diag: got a pattern that lacks entries: of the diagonal, {off[0]} of {one.size} numbers are off, by "
                    f"{off[1]:.3g} at most; expected each entry that is not zero for some value of the argument. Try pattern=None, which "
                    "traces the function"
                )

    def _products(self, start: int, stop: int, signed: bool) -> tuple[Outputs, list[Tensor]]:
        """The gradient, and its tangent along the colours from ``start`` to ``stop``, of which axis 0 is."""
        leaves = self._arguments.leaves
        stop = max(stop, start + 1)
        seeds = [self._seeds(x, colors, start, stop, signed) for x, colors in zip(leaves, self._colors, strict=True)]
        out, found = pushed_along(self._gradient, self._arguments, seeds, stop - start, 0, self._kwargs, self._has_aux)
        return out, [zeros(y, (stop - start, *y.shape), [y]) if t is None else t for y, t in zip(out.leaves, found, strict=True)]

    def _seeds(self, like: Tensor, colors: Any, start: int, stop: int, signed: bool) -> Tensor:
        base = like.b.base
        seeds = HOST.cast(colors[None, :] == HOST.arange(start, stop)[:, None], "float64")
        if signed:
            seeds = seeds * signs(len(colors))
        array = base.cast(base.asarray(seeds.reshape((stop - start, *like.shape))), like.dtype)
        return make(like.b, array, NONE)


def _traced(gradient: Callable[..., Any], arguments: Arguments, kwargs: dict[str, Any], has_aux: bool, n: int) -> list[int]:
    """A colour for each entry, such that no two coupled ones have the same; all different where no trace tells."""
    if n >= _FEW:
        try:
            couplings = _couplings(gradient, arguments, kwargs, has_aux, n)
            alone = int(couplings.diagonal().sum()) == couplings.nnz
            return [0] * n if alone else neighbours_apart(rows_of(couplings))
        except (TooDense, NestgradError):  # an error of the function's own comes again when it runs
            pass
    return list(range(n))


def _couplings(gradient: Callable[..., Any], arguments: Arguments, kwargs: dict[str, Any], has_aux: bool, n: int) -> Any:
    """The pattern of the Hessian.

    Raises:
        TooDense: If it is not sparse.
        NestgradError: If there is no scipy, or the function cannot be traced.
    """
    sp = sparse_arrays("hessian_diag")

    def f(*leaves: Any) -> Any:
        found = gradient(*arguments.with_leaves(leaves), **kwargs)
        return found[0] if has_aux else found

    program: Program = trace(f)(*arguments.leaves)
    largest = max((prod(step.out.shape) for step in program.instructions if not step.op.results), default=0)
    found = jacobian_pattern(program, range(len(arguments.leaves)), limit=64 * n + 4 * largest)
    rows = [sp.csr_array((x.size, n), dtype=bool) if p is None else _matrix(p, n) for x, p in zip(arguments.leaves, found, strict=True)]
    return symmetric(sp.vstack(rows, format="csr"))


def _matrix(pattern: Pattern, n: int) -> Any:
    if int(pattern.full.sum()) > _FULL:
        raise TooDense
    return pattern.matrix()
