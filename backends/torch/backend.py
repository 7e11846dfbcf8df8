"""The backend itself: arrays in and out, dtypes, devices, new arrays. The operations are in the modules beside."""

import warnings
from operator import attrgetter
from typing import Any

import torch

from nestgrad.backends.base import Value, freeze, frozen, no_complex, no_masked
from nestgrad.backends.recorded import Graphs, Recorded
from nestgrad.backends.torch import graph
from nestgrad.backends.torch.activations import Activations
from nestgrad.backends.torch.along import Along
from nestgrad.backends.torch.arranging import Arranging
from nestgrad.backends.torch.arrays import Arrays
from nestgrad.backends.torch.attention import Attention
from nestgrad.backends.torch.compiling import Compiling
from nestgrad.backends.torch.convolution import Convolution
from nestgrad.backends.torch.elementwise import Elementwise
from nestgrad.backends.torch.graph.viewing import viewed
from nestgrad.backends.torch.linalg import Linalg
from nestgrad.backends.torch.normalization import Normalization
from nestgrad.backends.torch.numbers import Numbers
from nestgrad.backends.torch.padding import Padding
from nestgrad.backends.torch.placing import Placing
from nestgrad.backends.torch.pooling import Pooling
from nestgrad.backends.torch.scans import Scans
from nestgrad.backends.torch.sorting import Sorting
from nestgrad.backends.torch.special import Special
from nestgrad.backends.torch.statistics import Statistics
from nestgrad.backends.torch.windows import Windows
from nestgrad.errors import BackendError, DTypeError, ShapeError


class TorchBackend(
    Elementwise, Numbers, Special, Activations, Along, Arranging, Padding, Placing, Pooling, Convolution, Windows, Normalization, Attention,
    Scans, Linalg, Sorting, Statistics, Arrays, Compiling,
):
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

    # builtins do not bind, so they stand here as they are

    shape: Any = attrgetter("shape")
    dtype: Any = attrgetter("dtype")

    # arrays in and out

    def asarray(self, data: Any, dtype: Any = None) -> Value:
        wanted = None if dtype is None else self.resolve_dtype(dtype)
        if isinstance(data, torch.Tensor):
            _dense(data)
            return data.detach().to(self.default_device, wanted, copy=True)
        if hasattr(data, "__array_interface__"):
            if data.dtype.kind == "c":
                raise no_complex(data.dtype)
            no_masked(data)
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
            no_masked(data)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # a read-only array is welcome here: nobody writes to it
                    value = torch.from_numpy(data)
            except (TypeError, ValueError):
                return self.asarray(data), None
            chain = freeze(data)
        elif data.is_inference():  # such tensors count no versions
            return self.asarray(data), None
        else:
            _dense(data)
            value = data.detach()
        if value.device != self.default_device:
            return self.asarray(value), None
        return value, (value._version, chain)

    def stamp(self, value: Value) -> Any:
        return None if value.is_inference() else (value._version, ())

    def changed(self, value: Value, token: Any) -> bool:
        return token is not None and (value._version != token[0] or not frozen(token[1]))

    def overlaps(self, x: Value, y: Value) -> bool:
        return bool(x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr())

    def owner(self, x: Value) -> Any:
        return x.untyped_storage().data_ptr()

    def index(self, data: Any) -> Value:
        array = self.asarray(data)
        if array.numel() and (array.is_floating_point() or array.dtype == torch.bool):
            raise DTypeError(f"index: positions must be integers, got {array.dtype}")
        return array.to(torch.int64)

    def nonzero(self, mask: Value) -> tuple[Value, ...]:
        return torch.nonzero(mask, as_tuple=True)

    @property
    def graphs(self) -> Graphs:
        return graph

    def recorded(self, data: Any) -> tuple[Recorded, ...]:
        if not isinstance(data, torch.Tensor) or not data.requires_grad:
            return super().recorded(data)
        return viewed(data)

    def nbytes(self, x: Value) -> int:
        return int(x.element_size() * x.numel())

    def device(self, x: Value) -> str:
        return str(x.device)

    def wait(self) -> None:
        if self.default_device.type == "cuda":
            torch.cuda.synchronize(self.default_device)

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


def _dense(data: torch.Tensor) -> None:
    """Refuse tensors whose entries do not lie side by side as real numbers.

    Raises:
        DTypeError: If it is one: complex, sparse, nested, quantized.
    """
    if data.is_complex():
        raise no_complex(data.dtype)
    kinds = {
        "nested": (data.is_nested, "torch.nested.to_padded_tensor(x, 0.0)"),
        "quantized": (data.is_quantized, "x.dequantize()"),
        str(data.layout).removeprefix("torch."): (data.layout is not torch.strided, "x.to_dense()"),
    }
    for kind, (found, way) in kinds.items():
        if found:
            raise DTypeError(f"got a torch tensor that is {kind}; expected a dense one, since backends compute with those only. Try {way}")


def _holds_arrays(data: Any) -> bool:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return isinstance(data, torch.Tensor) or (hasattr(data, "__array_interface__") and not isinstance(data, float))
