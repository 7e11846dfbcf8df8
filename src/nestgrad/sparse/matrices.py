"""``sparse_hessian`` and ``sparse_jacobian``: functions of a function, which remember its pattern."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from nestgrad.backends.derived.linalg import resolution
from nestgrad.dependence import TooDense, given_pattern, jacobian_pattern, sparse_arrays, symmetric
from nestgrad.dependence.checking import direction
from nestgrad.dependence.pattern import HOST
from nestgrad.errors import ArgumentError, LevelError, ShapeError, TraceError
from nestgrad.func.forward import jvp
from nestgrad.func.mapping import checked_chunk, vmap
from nestgrad.func.reverse import grad, vjp
from nestgrad.func.run import Arguments
from nestgrad.func.tracing import trace
from nestgrad.func.trees import LEAF, flatten, shown, unflatten
from nestgrad.levels.coats import worn
from nestgrad.levels.marks import NONE
from nestgrad.levels.recipe import Remade
from nestgrad.levels.shared import Shared
from nestgrad.sparse.compression import Compression, compression
from nestgrad.tensor import Tensor
from nestgrad.tensor.handle import is_floating, is_scalar, make

_MOST = 2**26
"""So many entries of a pattern are found by tracing: about half a gigabyte."""

_KEPT = 64
"""So many patterns are remembered; numbers among the arguments, which count by value, would pile up otherwise."""

_MODES = ("auto", "columns", "rows")


def sparse_hessian(
    f: Callable[..., Any], pattern: Any = None, chunk_size: int | None = None, argnums: int = 0, check: bool = True
) -> "SparseMap":
    """The Hessian of a scalar function, as a sparse matrix.

    Args:
        f: Returns a 0-dimensional Tensor. Its argument number ``argnums`` is one array of any shape; others stay as they are.
        pattern: Where the Hessian may be nonzero: a matrix of ``scipy.sparse``, or a boolean array, of shape ``(n, n)`` for ``n`` entries.
            One triangle is enough. ``None``: found by tracing the gradient, at the first call for arguments of such shapes.
        chunk_size: How many products to compute at once; ``None``: all.
        argnums: Which argument to differentiate by.
        check: Whether each call computes one more product, in a direction with random signs, and compares.

    Returns:
        A function of the same arguments. It gives a ``scipy.sparse.csr_array`` of shape ``(n, n)`` with the entries of the pattern, those
        that happen to be zero too, in the dtype of the gradient (float32 for half precision, which scipy.sparse lacks). Costs one gradient
        of ``f`` on a batch of as many directions as a star colouring of the pattern has colours: 3 for a tridiagonal Hessian, 2 for one
        with a full row and column beside the diagonal. The first call also traces ``f``, and colours.

    Raises:
        BackendError: If scipy is not installed.
        TraceError: At a call, where ``f`` cannot be traced, because it branches on values; then give a pattern.
        PatternError: If the pattern lacks an entry.
        ShapeError: If the pattern has another shape, the output is not 0-dimensional, or the argument is no single array.
        DTypeError: If the argument is not floating.
        LevelError: If the argument, or the result, is on levels: what comes out are plain numbers.

    >>> import nestgrad as ng
    >>> hessian = sparse_hessian(lambda x: (x[1:] * x[:-1]).sum() + (x**3).sum())
    >>> hessian(ng.tensor([1.0, 2.0, 3.0])).toarray().tolist()
    [[6.0, 1.0, 0.0], [1.0, 12.0, 1.0], [0.0, 1.0, 18.0]]
    >>> hessian.products
    2
    """
    return SparseMap("sparse_hessian", grad(f, argnums), pattern, "symmetric", chunk_size, argnums, check)


def sparse_jacobian(
    f: Callable[..., Any],
    pattern: Any = None,
    chunk_size: int | None = None,
    mode: str = "auto",
    argnums: int = 0,
    check: bool = True,
) -> "SparseMap":
    """The Jacobian of a function, as a sparse matrix.

    Args:
        f: Returns a Tensor of any shape, of ``m`` entries. Its argument number ``argnums`` is one array of any shape, of ``n`` entries.
        pattern: As for ``sparse_hessian``, of shape ``(m, n)``.
        chunk_size: How many products to compute at once; ``None``: all.
        mode: ``"columns"``: products with sums of columns, by forward mode. ``"rows"``: with sums of rows, by reverse mode. ``"auto"``:
            whatever needs fewer.
        argnums: Which argument to differentiate by.
        check: As for ``sparse_hessian``.

    Returns:
        A function of the same arguments. It gives a ``scipy.sparse.csr_array`` of shape ``(m, n)``, in the dtype of the output (by rows in
        that of the argument).

    Raises:
        ArgumentError: If the mode is none of these.
        As ``sparse_hessian``.

    >>> import nestgrad as ng
    >>> jacobian = sparse_jacobian(lambda x: x[1:] * x[:-1])
    >>> jacobian(ng.tensor([1.0, 2.0, 3.0])).toarray().tolist()
    [[2.0, 1.0, 0.0], [0.0, 3.0, 2.0]]
    >>> jacobian.products
    2
    """
    if mode not in _MODES:
        raise ArgumentError(f"sparse_jacobian: got mode {mode!r}; expected one of {', '.join(_MODES)}")
    return SparseMap("sparse_jacobian", f, pattern, mode, chunk_size, argnums, check)


class SparseMap:
    """A function whose values are sparse matrices of derivatives; it remembers patterns and colours by the shapes of its arguments.

    What is no array among these counts by its value, since the function may branch on it: a number that changes from call to call is better
    an array. The last 64 patterns are kept.
    ``pattern``, ``colors`` and ``products`` tell of the last call.
    """

    __slots__ = ("_argnums", "_check", "_derived", "_given", "_last", "_made", "_mode", "_name", "_step")

    def __init__(
        self,
        name: str,
        derived: Callable[..., Any],
        pattern: Any,
        mode: str,
        chunk_size: int | None,
        argnums: int,
        check: bool,
    ) -> None:
        if type(argnums) is not int:
            raise ArgumentError(f"{name}: got argnums {argnums!r}; expected one int, since there is one matrix")
        sparse_arrays(name)
        self._name, self._derived, self._mode, self._argnums, self._check = name, derived, mode, argnums, check
        self._step = checked_chunk(name, chunk_size)
        self._given = None if pattern is None else compression(given_pattern(name, pattern, mode == "symmetric"), mode)
        self._last = self._given
        self._made: dict[Hashable, Compression] = {}

    @property
    def pattern(self) -> Any:
        """Where the matrix may be nonzero: a boolean ``csr_array``; ``None`` before the first call, if none was given."""
        return None if self._last is None else self._last.pattern

    @property
    def colors(self) -> Any:
        """A colour for each column, or each row, as an int array; those of one colour are computed in one product."""
        return None if self._last is None else self._last.colors

    @property
    def products(self) -> int | None:
        """How many products a matrix costs, without the one that checks."""
        return None if self._last is None else self._last.products

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The matrix."""
        arguments = Arguments(self._name, self._derived, self._argnums, args, kwargs.values())
        if arguments.structures[0] is not LEAF:
            raise ShapeError(
                f"{self._name}: got an argument of structure {shown(arguments.structures[0])}; expected a single array, since there is one "
                "matrix. Try ng.concat inside of the function to make parts of one, or func.hessian"
            )
        arguments.floating()
        (x,) = arguments.leaves
        self._plain(x, "an argument")
        made = self._compression(args, kwargs)
        self._last = made
        if made.pattern.shape[1] != x.size:
            raise ShapeError(
                f"{self._name}: got a pattern of shape {made.pattern.shape} for an argument of {x.size} entries; expected as many columns"
            )
        products, eps = self._products(made, lambda v: self._derived(*arguments.with_leaves([v]), **kwargs), x)
        found = made.matrix(products[: made.products])
        if self._check:
            made.checked(self._name, found, products[-1], eps)
        return found

    def _compression(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Compression:
        """Pattern and colours for arguments."""
        if self._given is not None:
            return self._given
        leaves, structure = flatten((args, kwargs))
        marked = flatten(unflatten(structure, list(range(len(leaves))))[0][self._argnums])[0][0]
        arrays = [i for i, x in enumerate(leaves) if i == marked or (not is_scalar(x) and hasattr(x, "shape"))]
        key = _key(leaves, arrays, structure)
        made = self._made.get(key)
        if made is None:
            made = compression(self._traced(leaves, arrays, structure, marked), self._mode)
            if key is not None:
                self._made[key] = made
                for old in list(self._made)[:-_KEPT]:
                    self._made.pop(old, None)  # another thread may have been here
        return made

    def _traced(self, leaves: Sequence[Any], arrays: Sequence[int], structure: Any, marked: int) -> Any:
        """The pattern, as a matrix. All arrays are inputs of the program, so that their numbers have no part in it."""

        def f(*given: Any) -> Any:
            all_leaves = list(leaves)
            for i, x in zip(arrays, given, strict=True):
                all_leaves[i] = x
            args, kwargs = unflatten(structure, all_leaves)
            return self._derived(*args, **kwargs)

        try:
            program = trace(f)(*(leaves[i] for i in arrays))
        except TraceError as error:
            raise TraceError(
                f"{self._name}: the function cannot be traced for its pattern. {error}. Or give pattern=..., where it may be nonzero"
            ) from error
        if program.structure is not LEAF:
            raise ShapeError(f"{self._name}: the function returned {shown(program.structure)}; expected a single Tensor")
        place = arrays.index(marked)
        try:
            (found,) = jacobian_pattern(program, [place], limit=_MOST)
        except TooDense as error:
            raise ShapeError(
                f"{self._name}: got a function whose pattern has more than {_MOST} entries on the way; expected a sparse one. "
                "Try pattern=..., products by func.jvp or func.vjp, or func.hessian_diag"
            ) from error
        shape = program.outputs[0].shape
        m, n = HOST.full(shape, False).size, HOST.full(program.inputs[place].shape, False).size
        matrix = sparse_arrays(self._name).csr_array((m, n), dtype=bool) if found is None else found.matrix()
        return symmetric(matrix) if self._mode == "symmetric" else matrix

    def _products(self, made: Compression, g: Callable[[Any], Any], x: Tensor) -> tuple[Any, float]:
        """The products of the matrix with the sums of each colour, and with the direction that checks: one in each row.

        And the resolution of the coarser of the dtypes that go in and come out.
        """
        eps = resolution(x.b.base, x.dtype)
        if made.mode == "rows":
            value, pull = vjp(g, x)
            self._single(value, made.pattern.shape[0])
            like, along = value, vmap(lambda u: pull(u)[0])
        else:
            like, along = x, vmap(lambda v: jvp(g, (x,), (v,))[1])
        total = made.products + self._check
        step = self._step or max(total, 1)
        found = [_host(x.b.base, x.b.base.full((0, x.size), 0.0, x.dtype))]
        for start in range(0, total, step):
            stop = min(start + step, total)
            seeds = made.seeds(start, min(stop, made.products))
            if stop > made.products:
                seeds = HOST.concat(seeds, direction(len(made.colors))[None, :], axis=0)
            out = along(_tensor(seeds.reshape((stop - start, *like.shape)), like))
            self._single(out, made.pattern.shape[0] if made.mode != "rows" else x.size, stop - start)
            self._plain(out, "a result")
            found.append(_host(out.b.base, out.b.read(out.value)).reshape((stop - start, -1)))
            if is_floating(out):
                eps = max(eps, resolution(out.b.base, out.dtype))
        found = found[1:] or found
        return HOST.concat(*found, axis=0) if len(found) > 1 else found[0], eps

    def _single(self, out: Any, size: int, samples: int = 1) -> None:
        if not isinstance(out, Tensor):
            raise ShapeError(f"{self._name}: the function returned a {type(out).__name__}; expected a single Tensor")
        if out.size != size * samples:
            raise ShapeError(
                f"{self._name}: got a pattern of {size} rows for an output of {out.size // samples} entries; expected as many rows"
            )

    def _plain(self, x: Tensor, what: str) -> None:
        if any(not isinstance(coat, (Remade, Shared)) for coat in worn(x.value)):
            raise LevelError(
                f"{self._name}: got {what} on {next(iter(worn(x.value))).tape}; expected none on any level, because a sparse matrix holds "
                "plain numbers and would silently be a constant there. Try func.hessian, func.hessian_diag or products by func.jvp, which "
                "stay on levels; or detach() the argument, and what the function closes over"
            )


def _key(leaves: Sequence[Any], arrays: Sequence[int], structure: Any) -> Hashable:
    """What a pattern goes by: shapes and dtypes of arrays, all else by value; ``None`` where a value cannot tell."""
    key = tuple(_form(x) if i in arrays else (type(x), x) for i, x in enumerate(leaves))
    try:
        hash(key)
    except TypeError:
        return None
    return key, structure


def _form(x: Any) -> tuple[Any, ...]:
    return (type(x),) if is_scalar(x) else (tuple(x.shape), str(x.dtype))


def _tensor(array: Any, like: Tensor) -> Tensor:
    base = like.b.base
    return make(like.b, base.cast(base.asarray(array), like.dtype), NONE)


def _host(base: Any, raw: Any) -> Any:
    """A raw array as NumPy's, in a dtype that ``scipy.sparse`` has."""
    array = base.to_numpy(raw)
    return HOST.cast(array, "float32") if array.dtype.itemsize == 2 else array
