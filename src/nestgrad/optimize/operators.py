"""Matrices of derivatives as SciPy's linear operators: products without the matrix, from one run of the function."""

from collections.abc import Callable
from typing import Any

from nestgrad.dependence import sparse_arrays
from nestgrad.errors import LevelError
from nestgrad.func import grad, vjp, vmap
from nestgrad.func.home import of
from nestgrad.func.mapping import checked_chunk
from nestgrad.func.run import as_leaf, differentiable, joined
from nestgrad.func.trees import flatten
from nestgrad.optimize.callables import scalar
from nestgrad.optimize.flat import Parameters, Vectors, outside, tree
from nestgrad.tensor import Tensor

__all__ = ["gauss_newton_operator", "hessian_operator", "jacobian_operator"]

Linear = Callable[[Tensor], Tensor]
"""A linear function of a vector."""


def jacobian_operator(f: Callable[..., Any], params: Any, *args: Any, chunk_size: int | None = None) -> Any:
    """The Jacobian of a function at some parameters, as a ``scipy.sparse.linalg.LinearOperator``.

    Args:
        f: ``f(params, *args)`` returns a Tensor, or a nested structure of them: m entries in all.
        params: A floating Tensor, array or number, or a nested structure of them: n entries in all.
        args: Further arguments, which are passed on as they are.
        chunk_size: How many columns of a matrix to multiply with at once; ``None``: all. Bounds the memory of ``matmat`` and ``rmatmat``.

    Returns:
        An operator of shape ``(m, n)`` on NumPy vectors of float64, which hold entries end to end, as ``flat`` has them. ``f`` runs once,
        when the operator is made; the graph lives as long as the operator. Each product is one pass over it, and that with a matrix one
        batched pass. ``op.rmatvec(u)`` and ``op.T @ u`` are products with the transpose.

    Raises:
        BackendError: If SciPy is not installed.
        DTypeError: If a parameter, or the output, is not floating.
        ShapeError: If there are no parameters; in a product, vectors of another length.

    >>> import nestgrad as ng
    >>> op = jacobian_operator(lambda x: x**2 * x[0], ng.tensor([1.0, 2.0]))
    >>> (op @ [1.0, 10.0]).tolist(), (op.T @ [1.0, 10.0]).tolist()
    ([3.0, 44.0], [43.0, 40.0])
    """
    name = "jacobian_operator"
    linalg, found = _linalg(name), _Linearised(name, f, params, args)
    return _operator(linalg, found.outputs, found.inputs, found.push, found.pull, chunk_size)


def hessian_operator(f: Callable[..., Any], params: Any, *args: Any, chunk_size: int | None = None) -> Any:
    """The matrix of second derivatives of a scalar function at some parameters, as a ``scipy.sparse.linalg.LinearOperator``.

    Args:
        f: ``f(params, *args)`` returns a 0-dimensional Tensor.
        params: As for ``jacobian_operator``.
        args: As for ``jacobian_operator``.
        chunk_size: As for ``jacobian_operator``.

    Returns:
        A symmetric operator of shape ``(n, n)``. The gradient is computed once, when the operator is made; each product is one backward
        pass of it. For a single product ``scipy_callables(...).hessp`` is cheaper.

    Raises:
        ShapeError: If the output is not 0-dimensional; and as ``jacobian_operator``.
        BackendError: As ``jacobian_operator``.
        DTypeError: As ``jacobian_operator``.

    >>> import nestgrad as ng
    >>> op = hessian_operator(lambda x: x[0] ** 2 * x[1], ng.tensor([1.0, 2.0]))
    >>> (op @ [1.0, 10.0]).tolist()
    [24.0, 2.0]
    """
    name = "hessian_operator"
    linalg, vectors = _linalg(name), Parameters(name, params, f, args)
    value = of(f, lambda x: scalar(name, f(vectors.tree(x), *args), x))
    _, pullback = vjp(grad(value), vectors.begin)
    times: Linear = lambda v: pullback(v)[0]
    return _operator(linalg, vectors, vectors, times, times, chunk_size)


def gauss_newton_operator(
    residual: Callable[..., Any], params: Any, *args: Any, loss: Callable[[Any], Any] | None = None, chunk_size: int | None = None
) -> Any:
    """The Gauss-Newton matrix of a function at some parameters, as a ``scipy.sparse.linalg.LinearOperator``.

    With the Jacobian J of the residual it is ``J^T J``, the Hessian of half the sum of squares without the part that second derivatives
    of the residual give; with a loss over it, ``J^T H J``, where H is the Hessian of the loss.

    Args:
        residual: ``residual(params, *args)`` returns a Tensor, or a nested structure of them.
        params: As for ``jacobian_operator``.
        args: As for ``jacobian_operator``.
        loss: Of what the residual returns; returns a 0-dimensional Tensor. ``None``: half the sum of squares.
        chunk_size: As for ``jacobian_operator``.

    Returns:
        A symmetric operator of shape ``(n, n)``, positive semidefinite where the loss is convex. ``residual`` runs once, when the operator
        is made; each product costs one with J, one with its transpose, and one with H.

    Raises:
        ShapeError: If the loss is not 0-dimensional; and as ``jacobian_operator``.
        BackendError: As ``jacobian_operator``.
        DTypeError: As ``jacobian_operator``.

    >>> import nestgrad as ng
    >>> op = gauss_newton_operator(lambda x: x**2, ng.tensor([1.0, 2.0]))
    >>> (op @ [1.0, 10.0]).tolist()
    [4.0, 160.0]
    """
    name = "gauss_newton_operator"
    linalg, found = _linalg(name), _Linearised(name, residual, params, args)
    if loss is None:
        times: Linear = lambda v: found.pull(found.push(v))
    else:
        outer = of(loss, lambda y: scalar(name, loss(found.tree(y)), y))
        _, pullback = vjp(grad(outer), found.value)
        times = lambda v: found.pull(pullback(found.push(v))[0])
    return _operator(linalg, found.inputs, found.inputs, times, times, chunk_size)


class _Linearised:
    """A function of parameters at a point, as a linear map of vectors and its transpose.

    Attributes:
        inputs: The vectors of the parameters.
        outputs: Those of the outputs.
        value: The outputs at the point, as a constant vector.
        pull: The transpose.
        push: The linear map: the transpose of ``pull``.
    """

    __slots__ = ("_leaves", "_structure", "inputs", "outputs", "pull", "push", "value")

    def __init__(self, name: str, f: Callable[..., Any], params: Any, args: tuple[Any, ...]) -> None:
        self.inputs = inputs = Parameters(name, params, f, args)
        self._leaves: list[Tensor] = []

        def g(x: Tensor) -> Tensor:
            leaves, self._structure = flatten(f(inputs.tree(x), *args))
            self._leaves = [as_leaf(name, y, x.b) for y in leaves]
            differentiable(name, self._leaves, self._structure)
            found = joined(self._leaves)
            if found is None:
                raise LevelError(f"{name}: the function returned nothing; expected a Tensor")
            return found.ravel()

        value, pullback = vjp(of(f, g), inputs.begin)
        self._leaves = [x.detach() for x in self._leaves]
        self.value = value.detach()
        self.pull: Linear = lambda u: pullback(u)[0]
        _, pushforward = vjp(self.pull, self.value)  # linear, so where it is taken does not matter
        self.push: Linear = lambda v: pushforward(v)[0]
        self.outputs = Vectors(name, self.value, self.value.size)

    def tree(self, vector: Tensor) -> Any:
        """Outputs of the function with the entries of a vector."""
        return tree(vector, self._leaves, self._structure)


def _operator(linalg: Any, rows: Vectors, columns: Vectors, times: Linear, transposed: Linear, chunk_size: int | None) -> Any:
    """An operator on vectors outside, of linear functions of vectors inside."""
    step = checked_chunk(rows.name, chunk_size)

    def one(f: Linear, vectors: Vectors) -> Callable[[Any], Any]:
        return lambda x: outside(f(vectors.taken("a vector", x.reshape(-1))))

    def many(f: Linear, vectors: Vectors) -> Callable[[Any], Any]:
        mapped = vmap(f, 1, 1, step)
        return lambda x: outside(mapped(vectors.taken("a matrix", x, x.shape[1])))

    return linalg.LinearOperator(
        (rows.size, columns.size),
        matvec=one(times, columns),
        rmatvec=one(transposed, rows),
        matmat=many(times, columns),
        rmatmat=many(transposed, rows),
        dtype="float64",
    )


def _linalg(name: str) -> Any:
    """SciPy's module of linear operators.

    Raises:
        BackendError: If it is not installed.
    """
    sparse_arrays(name)
    from scipy.sparse import linalg

    return linalg
