"""New Tensors from data, shapes and ranges. All but ``tensor`` give constants.

``backend`` is a backend, a stack of levels (whose base is taken), or a name such as ``"torch"``; the default is NumPy. ``device`` is for
backends that have devices: ``zeros(3, device="cuda")`` is torch's. ``dtype`` is a dtype of the backend or its name; the default is the
backend's own for floats.
"""

from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING, Any

from nestgrad.backends import get_backend
from nestgrad.errors import BackendError, ShapeError
from nestgrad.functions.choose import where
from nestgrad.levels.marks import NONE
from nestgrad.tensor.axes import shape_of
from nestgrad.tensor.handle import Handle, Operand, as_tensor, default_backend, is_scalar, make

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = [
    "tensor", "asarray", "from_numpy", "from_torch", "zeros", "ones", "full", "eye", "arange", "linspace", "zeros_like", "ones_like",
    "full_like",
]  # fmt: skip

Shape = int | Sequence[int]


def tensor(
    data: Any, requires_grad: bool = False, backend: Any = None, levels: Sequence[Any] | None = None, dtype: Any = None
) -> "Tensor":
    """A Tensor; ``backend.tensor(data, ...)`` with a default.

    Args:
        data: Numbers, nested lists or an array, which are copied; or a Tensor, whose history and marks are kept.
        requires_grad: Make a variable, on the levels of ``backend``.
        backend: A stack, such as ``Autodiff(NumpyBackend())``, or a backend. ``None``: that of ``data`` if it is a Tensor of ours or of
            torch, else NumPy.
        levels: The levels that track it, by number (1 is innermost) or as objects. ``None``: all of the stack.
        dtype: Python floats take the backend's default dtype; arrays keep theirs.

    Raises:
        LevelError: ``requires_grad`` without a level, or a Tensor over another base backend.
        DTypeError: Complex data, or integers that are to require gradients.

    >>> tensor([1, 2], dtype="float64")
    Tensor([1.0, 2.0], dtype=float64)
    """
    if isinstance(data, Handle) and backend is None:
        made: Tensor = as_tensor(data) if dtype is None else as_tensor(data).astype(dtype)
        return made.require_grad(levels) if requires_grad else made
    stack = default_backend(data) if backend is None else _stack(backend)
    tensor: Tensor = stack.tensor(data, requires_grad, levels, dtype)
    return tensor


def asarray(data: Any, dtype: Any = None, backend: Any = None) -> "Tensor":
    """A Tensor as it is; anything else as a constant, copied."""
    return tensor(data, backend=backend, dtype=dtype)


def from_numpy(array: Any, requires_grad: bool = False, backend: Any = None, levels: Sequence[Any] | None = None) -> "Tensor":
    """A Tensor that shares the memory of a NumPy array, which becomes read-only; see ``Factories.from_numpy``."""
    shared: Tensor = _stack(backend).from_numpy(array, requires_grad, levels)
    return shared


def from_torch(array: Any, requires_grad: bool = False, backend: Any = None, levels: Sequence[Any] | None = None) -> "Tensor":
    """A Tensor that shares the memory of a torch tensor, on its device and with its dtype; see ``Factories.from_torch``."""
    shared: Tensor = (default_backend(array) if backend is None else _stack(backend)).from_torch(array, requires_grad, levels)
    return shared


def zeros(shape: Shape, dtype: Any = None, backend: Any = None, device: Any = None) -> "Tensor":
    """Zeros.

    >>> zeros((2, 2)).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    return full(shape, 0.0, dtype, backend, device)


def ones(shape: Shape, dtype: Any = None, backend: Any = None, device: Any = None) -> "Tensor":
    """Ones."""
    return full(shape, 1.0, dtype, backend, device)


def full(shape: Shape, value: Operand, dtype: Any = None, backend: Any = None, device: Any = None) -> "Tensor":
    """One value everywhere. The value may be a Tensor that broadcasts; then the result depends on it."""
    sizes = sizes_of("full", shape)
    if not is_scalar(value):
        given = tensor(value, backend=backend, dtype=dtype)
        return given.broadcast_to(sizes)
    base = base_of(backend, device)
    return make(base.dressed, base.full(sizes, value, None if dtype is None else base.resolve_dtype(dtype)), NONE)


def eye(n: int, m: int | None = None, k: int = 0, dtype: Any = None, backend: Any = None, device: Any = None) -> "Tensor":
    """Ones on a diagonal of an ``(n, m)`` matrix, zeros elsewhere; ``k`` above the main diagonal, or below if negative.

    >>> eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    base = base_of(backend, device)
    rows, columns = sizes_of("eye", (n, n if m is None else m))
    i = base.reshape(base.arange(k, k + rows), (rows, 1))
    j = base.reshape(base.arange(0, columns), (1, columns))
    return make(base.dressed, base.cast(base.eq(i, j), base.resolve_dtype(dtype)), NONE)


def arange(
    start: float, stop: float | None = None, step: float = 1, dtype: Any = None, backend: Any = None, device: Any = None
) -> "Tensor":
    """``start``, ``start + step``, ... up to but without ``stop``; ``arange(n)`` counts from 0. Integers if all three are.

    With a step that is not whole, rounding may decide whether the last point is in: prefer ``linspace``. A step of 0 is a ``ShapeError``.

    >>> arange(3).tolist()
    [0, 1, 2]
    """
    base = base_of(backend, device)
    start, stop = (0, _number(start)) if stop is None else (_number(start), _number(stop))
    step = _number(step)
    if step == 0:
        raise ShapeError("arange: got step 0; expected another")
    if (stop - start) * step < 0:
        stop = start
    return make(base.dressed, base.arange(start, stop, step, None if dtype is None else base.resolve_dtype(dtype)), NONE)


def linspace(
    start: Operand, stop: Operand, num: int = 50, dtype: Any = None, backend: Any = None, device: Any = None
) -> "Tensor":
    """``num`` evenly spaced points, the first exactly ``start`` and the last exactly ``stop``.

    Args:
        start, stop: Numbers, or 0-dimensional Tensors, on which the result then depends.
        num: How many; of one point it is ``start``.

    >>> linspace(0.0, 1.0, 3).tolist()
    [0.0, 0.5, 1.0]
    """
    (num,) = sizes_of("linspace", num)
    given = next((x for x in (start, stop) if isinstance(x, Handle)), None)
    base = given.b.base if given is not None and backend is None and device is None else base_of(backend, device)
    kind = base.resolve_dtype(dtype) if dtype is not None or given is None else base.dtype(base.full((), 0.0, as_tensor(given).dtype))
    count: Tensor = make(base.dressed, base.cast(base.arange(0, num), kind), NONE)
    # Counted from the nearer end, so that both are exact and the points lie symmetrically.
    step = (stop - start) / (num - 1) if num > 1 else 0.0
    near, far = start + count * step, stop - (num - 1 - count) * step
    return where(count < 0.5 * num, near, far)


def zeros_like(x: Operand, dtype: Any = None) -> "Tensor":
    """Zeros of the shape, dtype and backend of ``x``; a constant."""
    return full_like(x, 0.0, dtype)


def ones_like(x: Operand, dtype: Any = None) -> "Tensor":
    """Ones of the shape, dtype and backend of ``x``; a constant."""
    return full_like(x, 1.0, dtype)


def full_like(x: Operand, value: float, dtype: Any = None) -> "Tensor":
    """One number everywhere, in the shape, dtype and backend of ``x``; a constant."""
    like = as_tensor(x)
    base = like.b.base
    return make(like.b, base.full(like.shape, value, like.dtype if dtype is None else base.resolve_dtype(dtype)), NONE)


def _number(x: Any) -> float:
    """An int or a float."""
    if is_scalar(x):
        return float(x) if isinstance(x, float) else int(x)
    try:
        return index(x)
    except TypeError:
        return float(x)


def sizes_of(name: str, shape: Shape) -> tuple[int, ...]:
    """A shape as a tuple of non-negative ints."""
    sizes = shape_of(name, shape)
    if any(n < 0 for n in sizes):
        raise ShapeError(f"{name}: got shape {sizes}; expected non-negative sizes")
    return sizes


def _stack(backend: Any) -> Any:
    """What ``backend=`` names."""
    if backend is None:
        return default_backend()
    if isinstance(backend, str):
        return get_backend(backend)
    if not hasattr(backend, "tensor") or not hasattr(backend, "dressed"):
        raise BackendError(f"backend: got {backend!r}; expected a backend, a level over one, or a name such as 'torch'")
    return backend


def base_of(backend: Any, device: Any) -> Any:
    """The base backend that ``backend=`` and ``device=`` name together."""
    if device is not None and (backend == "torch" or (backend is None and str(device) != "cpu")):
        return get_backend("torch", device=device)
    base = _stack(backend).base
    if device is None or str(device) == base.device(base.full((), 0.0)):
        return base
    if base.name != "torch":
        raise BackendError(f"device: got {device!r} for {base!r}, which has no such device. Try backend='torch'")
    return get_backend("torch", device=device, dtype=base.default_dtype)
