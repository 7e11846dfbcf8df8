"""The PyTorch backend: plain torch operations on the CPU or a CUDA device, with torch's own autograd out of the way.

No value of this backend requires gradients, so torch records nothing. What differs from NumPy in torch, and is brought into line
here: no axes mean no reduction, slices may step backwards, an int beside an index array is an index array, and operands of
different dtypes may be multiplied as matrices.
"""

import warnings
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import torch

from nestgrad.backends.base import Backend, Index, Value, freeze, frozen, no_complex
from nestgrad.backends.contractions import parse
from nestgrad.errors import BackendError, DTypeError, ShapeError

_at_least_1d: Any = torch.atleast_1d
_matmul: Any = torch.matmul
_times_transposed: Any = torch.nn.functional.linear  # the transpose is taken in C++
_addcmul: Any = torch.addcmul
# The function in C++ without the Python around it.
_tanh_backward: Any = getattr(torch.ops.aten.tanh_backward.default, "_op", torch.ops.aten.tanh_backward.default)


class TorchBackend(Backend):
    """Tensors of PyTorch.

    Integers given to a function of the reals become torch's default dtype, as in torch.

    >>> b = TorchBackend()
    >>> b.mul(b.asarray([1.0, 2.0]), 2.0)
    tensor([2., 4.])
    """

    name = "torch"

    def __init__(self, device: Any = "cpu", dtype: Any = torch.float32) -> None:
        try:
            place = torch.device(device)
        except (RuntimeError, TypeError) as error:
            raise BackendError(f"TorchBackend: got device {device!r}; expected such as 'cpu' or 'cuda:0': {error}") from error
        if place.type == "cuda":
            if not torch.cuda.is_available():
                raise BackendError(f"TorchBackend: torch finds no CUDA device for {device!r}; use device='cpu'")
            place = torch.device("cuda", torch.cuda.current_device() if place.index is None else place.index)
        self._numbers: dict[tuple[float, torch.dtype], torch.Tensor] = {}
        self._nothings: dict[torch.dtype, torch.Tensor] = {}
        self.default_device = place
        self.default_dtype = torch.float32
        self.default_dtype = self.resolve_dtype(dtype)
        if not self.default_dtype.is_floating_point:
            raise DTypeError(f"TorchBackend: the default dtype must be floating, got {self.default_dtype}")

    def key(self) -> tuple[Any, ...]:
        return (type(self), str(self.default_device), self.default_dtype)

    def __repr__(self) -> str:
        dtype = str(self.default_dtype).removeprefix("torch.")
        if self.default_device.type != "cpu":
            return f"torch({self.default_device}, {dtype})"
        return "torch" if dtype == "float32" else f"torch({dtype})"

    # torch's builtins do not bind, so they stand here as they are.

    shape: Any = attrgetter("shape")
    dtype: Any = attrgetter("dtype")
    add: Any = torch.add
    sub: Any = torch.sub
    mul: Any = torch.mul
    div: Any = torch.div
    pow: Any = torch.pow
    powf: Any = torch.pow
    neg: Any = torch.neg
    abs: Any = torch.abs
    reciprocal: Any = torch.reciprocal
    square: Any = torch.square
    sqrt: Any = torch.sqrt
    rsqrt: Any = torch.rsqrt
    exp: Any = torch.exp
    expm1: Any = torch.expm1
    log: Any = torch.log
    log1p: Any = torch.log1p
    sin: Any = torch.sin
    cos: Any = torch.cos
    tan: Any = torch.tan
    asin: Any = torch.asin
    acos: Any = torch.acos
    atan: Any = torch.atan
    sinh: Any = torch.sinh
    cosh: Any = torch.cosh
    tanh: Any = torch.tanh
    asinh: Any = torch.asinh
    acosh: Any = torch.acosh
    atanh: Any = torch.atanh
    erf: Any = torch.erf
    sigmoid: Any = torch.sigmoid
    relu: Any = torch.relu
    floor: Any = torch.floor
    ceil: Any = torch.ceil
    round: Any = torch.round
    logical_not: Any = torch.logical_not
    isnan: Any = torch.isnan
    isfinite: Any = torch.isfinite
    reshape: Any = torch.reshape
    permute: Any = torch.permute
    broadcast_to: Any = torch.broadcast_to

    # arrays in and out

    def asarray(self, data: Any, dtype: Any = None) -> Value:
        wanted = None if dtype is None else self.resolve_dtype(dtype)
        if isinstance(data, torch.Tensor):
            if data.is_complex():
                raise no_complex(data.dtype)
            return data.detach().to(self.default_device, wanted, copy=True)
        if hasattr(data, "__array_interface__"):
            if data.dtype.kind == "c":
                raise no_complex(data.dtype)
            return self._made(data.copy(), wanted)  # torch takes no array whose strides are negative
        if isinstance(data, (list, tuple)) and _holds_arrays(data):
            return torch.stack([self.asarray(part, wanted) for part in data])
        array = self._made(data, wanted)
        if array.is_complex():
            raise no_complex(array.dtype)
        return self._made(data, self.default_dtype) if wanted is None and array.is_floating_point() else array

    def _made(self, data: Any, dtype: Any) -> torch.Tensor:
        try:
            return torch.tensor(data, dtype=dtype, device=self.default_device)
        except (TypeError, ValueError, RuntimeError) as error:
            if "expected sequence of length" in str(error):
                raise ShapeError(f"asarray: the lists are ragged, and an array needs rows of equal lengths ({error})") from error
            raise DTypeError(f"asarray: got {type(data).__name__} {data!r:.60}; expected numbers: {error}") from error

    def to_numpy(self, x: Value) -> Any:
        x = x.detach().cpu()
        return (x.float() if x.dtype == torch.bfloat16 else x).numpy().copy()  # NumPy has no bfloat16

    def cast(self, x: Value, dtype: Any) -> Value:
        return x.to(self.resolve_dtype(dtype))

    def resolve_dtype(self, dtype: Any = None) -> Any:
        if isinstance(dtype, torch.dtype) and not dtype.is_complex:
            return dtype
        if dtype is None or dtype is float:
            return self.default_dtype
        whole = {int: "int64", complex: "complex64"}.get(dtype) if isinstance(dtype, type) else None
        name = whole or str(getattr(dtype, "name", getattr(dtype, "__name__", dtype)))
        found = getattr(torch, name.removeprefix("torch.").rstrip("_"), None)
        if not isinstance(found, torch.dtype):
            raise DTypeError(f"unknown dtype {dtype!r}; try 'float32', 'float64', 'int64' or 'bool'")
        if found.is_complex:
            raise no_complex(found)
        return found

    def kind(self, x: Value) -> str:
        return "float" if x.is_floating_point() else "bool" if x.dtype == torch.bool else "int"

    def is_floating(self, x: Value) -> bool:
        return bool(x.is_floating_point())

    def accepts(self, data: Any) -> bool:
        return isinstance(data, torch.Tensor) or hasattr(data, "__array_interface__")

    def share(self, data: Any) -> tuple[Value, Any]:
        chain: tuple[Any, ...] = ()
        if not isinstance(data, torch.Tensor):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # a read-only array is welcome here: nobody writes to it
                    value = torch.from_numpy(data)
            except (TypeError, ValueError):
                return self.asarray(data), None
            chain = freeze(data)
        elif data.is_complex():
            raise no_complex(data.dtype)
        elif data.is_inference():  # such tensors count no versions
            return self.asarray(data), None
        else:
            value = data.detach()
        if value.device != self.default_device:
            return self.asarray(value), None
        return value, (value._version, chain)

    def changed(self, value: Value, token: Any) -> bool:
        return token is not None and (value._version != token[0] or not frozen(token[1]))

    def overlaps(self, x: Value, y: Value) -> bool:
        return bool(x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr())

    def index(self, data: Any) -> Value:
        array = self.asarray(data)
        if array.numel() and (array.is_floating_point() or array.dtype == torch.bool):
            raise DTypeError(f"index: positions must be integers, got {array.dtype}")
        return array.to(torch.int64)

    def nonzero(self, mask: Value) -> tuple[Value, ...]:
        return torch.nonzero(mask, as_tuple=True)

    def nbytes(self, x: Value) -> int:
        return int(x.element_size() * x.numel())

    def device(self, x: Value) -> str:
        return str(x.device)

    def full(self, shape: tuple[int, ...], value: float, dtype: Any = None) -> Value:
        wanted = self.resolve_dtype(type(value) if dtype is None else dtype)
        return torch.full(shape, value, dtype=wanted, device=self.default_device)

    def arange(self, start: float, stop: float, step: float = 1, dtype: Any = None) -> Value:
        floating = any(isinstance(bound, float) for bound in (start, stop, step))
        wanted = self.resolve_dtype(dtype or (float if floating else int))
        return torch.arange(start, stop, step, dtype=wanted, device=self.default_device)

    def generator(self, seed: int | None = None) -> Any:
        generator = torch.Generator(device=self.default_device)
        generator.seed() if seed is None else generator.manual_seed(seed)
        return generator

    def uniform(self, shape: tuple[int, ...], generator: Any, dtype: Any = None) -> Value:
        return torch.rand(shape, generator=generator, dtype=self.resolve_dtype(dtype), device=self.default_device)

    def normal(self, shape: tuple[int, ...], generator: Any, dtype: Any = None) -> Value:
        return torch.randn(shape, generator=generator, dtype=self.resolve_dtype(dtype), device=self.default_device)

    # elementwise; torch refuses a Python number as the first operand, or as any, of what follows

    def eq(self, x: Value, y: Value) -> Value:
        return torch.eq(x, y) if isinstance(x, torch.Tensor) else torch.eq(y, x)

    def ne(self, x: Value, y: Value) -> Value:
        return torch.ne(x, y) if isinstance(x, torch.Tensor) else torch.ne(y, x)

    def lt(self, x: Value, y: Value) -> Value:
        return torch.lt(x, y) if isinstance(x, torch.Tensor) else torch.gt(y, x)

    def le(self, x: Value, y: Value) -> Value:
        return torch.le(x, y) if isinstance(x, torch.Tensor) else torch.ge(y, x)

    def gt(self, x: Value, y: Value) -> Value:
        return torch.gt(x, y) if isinstance(x, torch.Tensor) else torch.lt(y, x)

    def ge(self, x: Value, y: Value) -> Value:
        return torch.ge(x, y) if isinstance(x, torch.Tensor) else torch.le(y, x)

    def logical_and(self, x: Value, y: Value) -> Value:
        return torch.logical_and(self._array(x), self._array(y))

    def logical_or(self, x: Value, y: Value) -> Value:
        return torch.logical_or(self._array(x), self._array(y))

    def _array(self, x: Value) -> torch.Tensor:
        return x if isinstance(x, torch.Tensor) else self.asarray(x)

    def maximum(self, x: Value, y: Value) -> Value:
        if not isinstance(y, torch.Tensor):
            return torch.clamp(x, min=y)
        return torch.maximum(x, y) if isinstance(x, torch.Tensor) else torch.clamp(y, min=x)

    def minimum(self, x: Value, y: Value) -> Value:
        if not isinstance(y, torch.Tensor):
            return torch.clamp(x, max=y)
        return torch.minimum(x, y) if isinstance(x, torch.Tensor) else torch.clamp(y, max=x)

    def where(self, c: Value, x: Value, y: Value) -> Value:
        if isinstance(x, float) and isinstance(y, float):  # torch would give its own default dtype
            x = self.asarray(x)
        return torch.where(c, x, y)

    def clamp(self, x: Value, lo: float | None = None, hi: float | None = None) -> Value:
        return x if lo is None and hi is None else torch.clamp(x, lo, hi)

    def sign(self, x: Value) -> Value:
        return torch.where(x != x, x, torch.sign(x)) if x.is_floating_point() else torch.sign(x)  # torch: sign(NaN) is 0

    def powi(self, x: Value, n: int) -> Value:
        if n == 2:
            return torch.square(x)
        return torch.pow(x, n) if n >= 0 or x.is_floating_point() else torch.reciprocal(torch.pow(x, -n))

    def softplus(self, x: Value) -> Value:
        return torch.nn.functional.softplus(x, 1.0, 40.0)  # from 40 on it is x in double precision too

    def mul0(self, x: Value, y: Value) -> Value:
        return _zero_where_zero(x, torch.mul(x, y))

    def mul00(self, x: Value, y: Value) -> Value:
        return _zero_where_zero(y, self.mul0(x, y))

    def div0(self, x: Value, y: Value) -> Value:
        return _zero_where_zero(x, torch.div(x, y))

    def scale(self, x: Value, c: float) -> Value:
        return torch.mul(x, self._number(c, x)) if x.is_floating_point() else torch.mul(x, c)

    def per(self, x: Value, n: int) -> Value:
        return torch.div(x, self._number(float(n), x)) if x.is_floating_point() else torch.div(x, n)

    def _number(self, c: float, x: torch.Tensor) -> torch.Tensor:
        """``c`` as an array without axes, which costs half the time of a number."""
        key = (c, x.dtype)
        number = self._numbers.get(key)
        if number is None:
            if len(self._numbers) > 1000:
                self._numbers.clear()
            number = self._numbers[key] = torch.tensor(c, dtype=x.dtype, device=self.default_device)
        return number

    def triple(self, x: Value, y: Value, z: Value, c: float) -> Value:
        try:
            dtype = x.dtype
            if z.dtype is dtype and dtype.is_floating_point:  # two passes over the memory of one new array, instead of three of two
                nothing = self._nothings.get(dtype)
                if nothing is None:  # minus zero keeps the sign of a zero that it is added to
                    nothing = self._nothings[dtype] = torch.tensor(-0.0, dtype=dtype, device=self.default_device)
                return _addcmul(nothing, x, y, value=c).mul_(z)
        except (RuntimeError, TypeError, AttributeError):  # z is larger than the product of x and y, or one is a Python number
            pass
        return self.scale(torch.mul(torch.mul(x, y), z), c)

    def mul_add(self, x: Value, y: Value, z: Value) -> Value:
        try:
            if x.dtype is y.dtype is z.dtype and x.dtype.is_floating_point:
                return _addcmul(z, x, y)
        except AttributeError:  # one is a Python number
            pass
        return torch.add(torch.mul(x, y), z)

    def tanh_vjp(self, g: Value, y: Value) -> Value:
        try:
            return _tanh_backward(g, y)
        except (RuntimeError, TypeError):  # a Python number, or shapes that do not broadcast
            return torch.mul(g, 1 - y * y)

    # whole arrays

    def sum(self, x: Value, axes: tuple[int, ...], keepdims: bool = False) -> Value:
        if axes:
            return torch.sum(x, axes, keepdims)
        return x if x.is_floating_point() else x.to(torch.int64)

    def mean(self, x: Value, axes: tuple[int, ...], keepdims: bool = False) -> Value:
        if len(axes) == x.ndim and not keepdims and x.is_floating_point():
            return torch.mean(x)
        return super().mean(x, axes, keepdims)

    def amax(self, x: Value, axes: tuple[int, ...], keepdims: bool = False) -> Value:
        return torch.amax(x, axes, keepdims) if axes else x

    def amin(self, x: Value, axes: tuple[int, ...], keepdims: bool = False) -> Value:
        return torch.amin(x, axes, keepdims) if axes else x

    def argmax(self, x: Value, axis: int, keepdims: bool = False) -> Value:
        return torch.argmax(x.to(torch.uint8) if x.dtype == torch.bool else x, axis, keepdims)

    def argmin(self, x: Value, axis: int, keepdims: bool = False) -> Value:
        return torch.argmin(x.to(torch.uint8) if x.dtype == torch.bool else x, axis, keepdims)

    def logsumexp(self, x: Value, axes: tuple[int, ...], keepdims: bool = False) -> Value:
        return torch.logsumexp(x, axes, keepdims) if axes else x

    def softmax(self, x: Value, axis: int) -> Value:
        return torch.softmax(x, axis)

    def log_softmax(self, x: Value, axis: int) -> Value:
        return torch.log_softmax(x, axis)

    def concat(self, *xs: Value, axis: int = 0) -> Value:
        return torch.cat(xs, axis)

    def pad(self, x: Value, widths: tuple[tuple[int, int], ...]) -> Value:
        return torch.constant_pad_nd(x, [n for pair in reversed(widths) for n in pair])

    def getitem(self, x: Value, index: Index) -> Value:
        index, flipped = _native(x, index)
        return x.flip(flipped)[index] if flipped else x[index]

    def index_set(self, x: Value, v: Value, index: Index) -> Value:
        index, flipped = _native(x, index)
        copy = x.flip(flipped) if flipped else x.clone()
        copy[index] = v
        return copy.flip(flipped) if flipped else copy

    def index_add(self, x: Value, v: Value, index: Index) -> Value:
        index, flipped = _native(x, index)
        copy = x.flip(flipped) if flipped else x.clone(memory_format=torch.contiguous_format)
        _add_at(copy, v, index)
        return copy.flip(flipped) if flipped else copy

    def put(self, x: Value, index: Index, shape: tuple[int, ...]) -> Value:
        full = torch.zeros(shape, dtype=x.dtype, device=x.device)
        index, flipped = _native(full, index)
        _add_at(full, x, index)
        return full.flip(flipped) if flipped else full

    def matmul(self, x: Value, y: Value) -> Value:
        try:
            return torch.matmul(x, y)
        except RuntimeError:
            if x.dtype == y.dtype:
                raise
            return _promoted(torch.matmul, x, y)

    def product(self, x: Value, y: Value, tx: bool, ty: bool) -> Value:
        try:
            if ty and not tx and y.dim() == 2:
                return _times_transposed(x, y)
            return _matmul(x.mT if tx else x, y.mT if ty else y)
        except RuntimeError:
            if x.dtype == y.dtype:
                raise
            return _promoted(torch.matmul, x.mT if tx else x, y.mT if ty else y)

    def linear(self, x: Value, w: Value, bias: Value) -> Value:
        if x.ndim == 2 and bias.ndim == 1:
            try:
                return torch.addmm(bias, x, w)
            except RuntimeError:  # of different dtypes, or with a bias that makes the product wider
                pass
        return torch.add(self.matmul(x, w), bias)

    def einsum(self, *xs: Value, subscripts: str) -> Value:
        parse(subscripts)
        try:
            return _promoted(lambda *ys: torch.einsum(subscripts, *ys), *xs)
        except (RuntimeError, ValueError) as error:
            shapes = ", ".join(str(tuple(x.shape)) for x in xs)
            raise ShapeError(f"einsum: {subscripts!r} does not fit the shapes {shapes}: {error}") from error


def _holds_arrays(data: Any) -> bool:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return isinstance(data, torch.Tensor) or (hasattr(data, "__array_interface__") and not isinstance(data, float))


def _promoted(product: Callable[..., torch.Tensor], *xs: torch.Tensor) -> torch.Tensor:
    dtype = xs[0].dtype
    for x in xs[1:]:
        dtype = torch.promote_types(dtype, x.dtype)
    return product(*(x.to(dtype) for x in xs))


def _zero_where_zero(x: Any, product: torch.Tensor) -> torch.Tensor:
    """``product`` with 0 where ``x`` is 0; on the CPU one cheap pass unless an element is infinite, NaN or huge."""
    if product.is_cpu and product.is_floating_point():
        flat = product.reshape(-1)
        total = torch.dot(flat, flat).item()  # NaN and inf survive a sum of squares
        if total - total == 0:
            return product
    if isinstance(x, torch.Tensor):
        return torch.where(x == 0, 0, product)
    return product if x else torch.zeros_like(product)


def _native(x: torch.Tensor, index: Index) -> tuple[Index, tuple[int, ...]]:
    """``index`` for ``x`` flipped on some axes, so that no slice goes backwards; and these axes."""
    flipped: tuple[int, ...] = ()
    arrays = ints = False
    for axis, part in enumerate(index):
        if isinstance(part, slice):
            if part.step is not None and part.step < 0:
                flipped += (axis,)
        elif isinstance(part, torch.Tensor) and part.dim():
            arrays = True
        else:
            ints = True
    if not flipped and not (arrays and ints):
        return index, flipped
    native = list(index)
    for axis in flipped:
        n = x.shape[axis]
        start, stop, step = index[axis].indices(n)
        native[axis] = slice(n - 1 - start, max(n - 1 - stop, n - 1 - start), -step)
    if arrays:  # torch would take an int out first, which puts the axes in another order
        native = [p if isinstance(p, slice) else _at_least_1d(torch.as_tensor(p, device=x.device)) for p in native]
    return tuple(native), flipped


def _add_at(x: torch.Tensor, v: Any, index: Index) -> None:
    """``x[index] += v`` in place, where an element named twice is added to twice. ``x`` is contiguous."""
    if not any(isinstance(part, torch.Tensor) for part in index):
        x[index].add_(v)
        return
    v = torch.as_tensor(v, dtype=x.dtype, device=x.device)
    if all(isinstance(part, torch.Tensor) for part in index):
        x.index_put_(index, v, accumulate=True)
        return
    places = torch.arange(x.numel(), device=x.device).reshape(x.shape)[index]
    x.view(-1).index_add_(0, places.reshape(-1), v.expand(places.shape).reshape(-1))
