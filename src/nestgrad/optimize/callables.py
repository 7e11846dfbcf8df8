"""A scalar function as what ``scipy.optimize.minimize`` takes: ``scipy_callables``."""

from collections.abc import Callable
from operator import is_
from typing import Any

from nestgrad.errors import LevelError, ShapeError
from nestgrad.func import grad, hessian, jvp, value_and_grad, vjp
from nestgrad.func.home import of
from nestgrad.func.run import differentiable
from nestgrad.func.trees import LEAF
from nestgrad.optimize.flat import Array, Parameters, outside
from nestgrad.tensor import Tensor
from nestgrad.tensor.handle import Handle, as_tensor, is_scalar

__all__ = ["ScipyCallables", "scipy_callables"]


def scipy_callables(f: Callable[..., Any], params: Any, *, chunk_size: int | None = None) -> "ScipyCallables":
    """A scalar function of nested parameters as functions of one NumPy vector, for ``scipy.optimize``.

    Args:
        f: ``f(params, *args)`` returns a 0-dimensional Tensor. It sees parameters of the structure, shapes, dtypes and backend of
            ``params``, and further arguments as they are given. In between ``fun(x)`` and ``jac(x)`` at the same ``x``, what it closes
            over must not change.
        params: An example of the parameters, and where to start: a floating Tensor, array or number, or a nested structure of them.
        chunk_size: How many columns of ``hess`` to compute at once; ``None``: all.

    Returns:
        ``fun``, ``jac``, ``hess``, ``hessp`` and ``x0`` for ``minimize``; see ``ScipyCallables``. SciPy itself is not needed.

    Raises:
        DTypeError: If a parameter is not floating.
        ShapeError: If there are no parameters, or ``chunk_size`` is no positive int.

    >>> import nestgrad as ng
    >>> c = scipy_callables(lambda p: (p["w"] ** 3).sum() * p["b"], {"w": ng.tensor([1.0, 2.0]), "b": 2.0})
    >>> c.fun(c.x0), c.jac(c.x0).tolist()
    (18.0, [9.0, 6.0, 24.0])
    >>> c.hessp(c.x0, [1.0, 0.0, 0.0]).tolist()
    [0.0, 3.0, 12.0]
    """
    return ScipyCallables(f, params, chunk_size)


class ScipyCallables:
    """What ``scipy_callables`` returns. All its functions take ``x``, the entries of the parameters end to end, and the further arguments
    of the function; they give floats and NumPy arrays of float64.

    Infinite and NaN values pass through, since line searches know what to do with them. Where the backend computes in float32, ``x`` is
    rounded to it, and so are the results.

    Attributes:
        size: How many entries the parameters have.
    """

    __slots__ = ("_f", "_hessian", "_last", "_vectors", "size")

    def __init__(self, f: Callable[..., Any], params: Any, chunk_size: int | None) -> None:
        self._vectors = vectors = Parameters("scipy_callables", params, f)
        self.size = vectors.size
        self._f = of(f, lambda x, *args: scalar("scipy_callables", f(vectors.tree(x), *args), x))
        self._hessian = hessian(self._f, chunk_size=chunk_size)
        self._last: tuple[bytes, tuple[Any, ...], Callable[[], tuple[Tensor]]] | None = None

    @property
    def x0(self) -> Array:
        """The parameters that were given, as a vector."""
        return self._vectors.start

    def unflatten(self, x: Any) -> Any:
        """The parameters that a vector stands for, as constants in the structure, shapes, dtypes and backend of those that were given.

        Raises:
            ShapeError: If the vector is of another length.
        """
        return self._vectors.unflatten(x)

    def fun(self, x: Any, *args: Any) -> float:
        """The value. The run is kept until the next one, so that ``jac`` at the same ``x`` takes one backward pass and no run.

        Raises:
            ShapeError: If ``x`` is of another length, or the function's output is not 0-dimensional.
            DTypeError: If the output is not floating.
        """
        point = self._vectors.taken("x", x)
        value, pullback = vjp(lambda x: self._f(x, *args), point)
        self._last = (_bytes(point), args, pullback)
        return float(outside(value))

    def jac(self, x: Any, *args: Any) -> Array:
        """The gradient, a vector of the length of ``x``.

        Raises:
            As ``fun``.
        """
        point = self._vectors.taken("x", x)
        last, self._last = self._last, None  # serves once: what the function closes over may change from one step to the next
        if last is not None and last[0] == _bytes(point) and len(args) == len(last[1]) and all(map(is_, args, last[1])):
            return outside(last[2]()[0])
        return outside(grad(self._f)(point, *args))

    def fun_and_jac(self, x: Any, *args: Any) -> tuple[float, Array]:
        """The value and the gradient, by one run and one backward pass: for ``minimize(..., jac=True)``.

        Raises:
            As ``fun``.
        """
        value, g = value_and_grad(self._f)(self._vectors.taken("x", x), *args)
        return float(outside(value)), outside(g)

    def hess(self, x: Any, *args: Any) -> Array:
        """The matrix of second derivatives, of shape ``(size, size)``.

        Raises:
            As ``fun``.
        """
        return outside(self._hessian(self._vectors.taken("x", x), *args))

    def hessp(self, x: Any, p: Any, *args: Any) -> Array:
        """The Hessian at ``x`` times the vector ``p``, without the matrix: forward over reverse mode, about two gradients.

        Raises:
            As ``fun``.
        """
        point, direction = self._vectors.taken("x", x), self._vectors.taken("p", p)
        return outside(jvp(lambda x: grad(self._f)(x, *args), (point,), (direction,))[1])


def scalar(name: str, out: Any, like: Tensor) -> Tensor:
    """The output of a scalar function, over the backend of ``like`` if it is a number or an array.

    Raises:
        ShapeError: If it is not 0-dimensional.
        DTypeError: If it is not floating.
        LevelError: If it is no Tensor, array or number.
    """
    if not isinstance(out, Handle) and not is_scalar(out) and not like.b.base.accepts(out):
        raise LevelError(f"{name}: the function returned a {type(out).__name__}; expected a 0-dimensional Tensor")
    value = as_tensor(out, like.b)
    if value.shape != ():
        raise ShapeError(
            f"{name}: the function returned shape {value.shape}; expected a 0-dimensional tensor. "
            "Try .sum(), or jacobian_operator for residuals"
        )
    differentiable(name, [value], LEAF)
    return value


def _bytes(x: Tensor) -> bytes:
    found: bytes = x.numpy().tobytes()
    return found
