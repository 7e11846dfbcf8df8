"""The ops for torch's compiler: no step depends on numbers, which are not there yet, and formulas stand where the compiler can join them.

Where the backend looks at numbers to take a faster way, this one has the general way. Where a number may be wrong, as a position that is
out of range, the op is computed for a right one, and a note is taken of what has to be true. What can be computed only by looking at
numbers stays a step of its own, which the compiler does not look into.
"""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import library as _ops

from nestgrad.backends.base import Index, Value
from nestgrad.backends.derived import Derived
from nestgrad.backends.torch.backend import TorchBackend
from nestgrad.backends.torch.places import add_at, native

_STEPS: "WeakValueDictionary[int, Opaque]" = WeakValueDictionary()
"""What the ops ``nestgrad::step`` and ``nestgrad::steps`` stand for, by numbers that are given once."""
_numbers = count()
_torch: Any = torch  # not all of it is typed
_untyped: Any = _ops
_library = _untyped.Library("nestgrad", "DEF")
_library.define("step(Tensor[] xs, int number) -> Tensor")
_library.define("steps(Tensor[] xs, int number) -> Tensor[]")  # of two or more: of a list of one, torch's compiler makes code that crashes


class Formulas(TorchBackend):
    """The ops of one program that is to be compiled.

    Attributes:
        conditions: What has to be true for the answers to be right, each an array of one bool.
        steps: What the compiled program calls. They live as long as it does.
    """

    def __init__(self, like: TorchBackend) -> None:
        super().__init__(like.default_device, like.default_dtype)
        self.like = like
        self.conditions: list[Value] = []
        self.steps: list[Opaque] = []

    def key(self) -> tuple[Any, ...]:
        return (*super().key(), id(self))

    def opaque(self, f: Callable[..., Any], shape: tuple[Any, ...], dtype: Any) -> Callable[..., Any]:
        """A function of arrays as a step of a compiled program; of several results, ``shape`` and ``dtype`` are tuples."""

        def step(*given: Any) -> Any:
            several = isinstance(dtype, tuple)
            places = [k for k, x in enumerate(given) if isinstance(x, torch.Tensor)]
            made = Opaque(f, given, places, shape if several else (shape,), dtype if several else (dtype,), self.default_device)
            self.steps.append(made)
            xs = [given[k] for k in places]
            return tuple(torch.ops.nestgrad.steps(xs, made.number)) if several else torch.ops.nestgrad.step(xs, made.number)

        return step

    def _require(self, condition: Value) -> None:
        self.conditions.append(torch.all(condition))

    def _placed(self, y: Value, n: int) -> Value:
        """Positions on an axis of size ``n``, which must not be out of range."""
        if not y.numel():
            return y
        self._require((y >= 0) & (y < n))
        return torch.clamp(y, 0, n - 1)

    # numbers

    def scale(self, x: Value, c: float) -> Value:
        return torch.mul(x, c)

    def per(self, x: Value, n: int) -> Value:
        return torch.div(x, n)

    def triple(self, x: Value, y: Value, z: Value, c: float) -> Value:
        return torch.mul(torch.mul(torch.mul(x, y), c), z)

    def tanh_vjp(self, g: Value, y: Value) -> Value:
        return torch.mul(g, 1 - y * y)

    def mul0(self, x: Value, y: Value) -> Value:
        return _zero_where_zero(x, torch.mul(x, y))

    def mul00(self, x: Value, y: Value) -> Value:
        return _zero_where_zero(y, _zero_where_zero(x, torch.mul(x, y)))

    def div0(self, x: Value, y: Value) -> Value:
        return _zero_where_zero(x, torch.div(x, y))

    mul_add = Derived.mul_add
    quotient00 = Derived.quotient00
    power0 = Derived.power0
    apart = Derived.apart
    pole = Derived.pole
    log_softmax = Derived.log_softmax
    log_softmax_vjp = Derived.log_softmax_vjp
    log_softmax_jvp = Derived.log_softmax_jvp
    recur = Derived.recur
    topk = Derived.topk
    ranked = Derived.ranked
    vecdot = Derived.vecdot

    # positions that are data

    def take_along(self, x: Value, y: Value, axis: int) -> Value:
        return torch.gather(x, axis, self._placed(y, x.shape[axis]))

    def add_along(self, x: Value, y: Value, axis: int, n: int) -> Value:
        return super().add_along(x, self._placed(y, n), axis, n)

    def max_along(self, x: Value, y: Value, z: Value, axis: int) -> Value:
        return super().max_along(x, self._placed(y, x.shape[axis]), z, axis)

    def min_along(self, x: Value, y: Value, z: Value, axis: int) -> Value:
        return super().min_along(x, self._placed(y, x.shape[axis]), z, axis)

    def set_along(self, x: Value, y: Value, z: Value, axis: int, once: bool) -> Value:
        y = self._placed(y, x.shape[axis])
        if once and y.numel():
            times = torch.zeros((*y.shape[:axis], x.shape[axis], *y.shape[axis + 1 :]), dtype=torch.int64, device=y.device)
            self._require(times.scatter_add(axis, y, torch.ones_like(y)) <= 1)
        return super().set_along(x, y, z, axis, False)

    def rows(self, x: Value, y: Value) -> Value:
        y = self._placed(y, x.shape[0])
        return torch.index_select(x, 0, y.reshape(-1)).reshape((*y.shape, *x.shape[1:]))

    def to_rows(self, x: Value, y: Value, count: int) -> Value:
        y = self._placed(y, count)
        full = torch.zeros((count, *x.shape[y.dim() :]), dtype=x.dtype, device=x.device)
        return full.index_add(0, y.reshape(-1), x.reshape((y.numel(), *full.shape[1:])))

    # positions that are constants, and have been looked at by the trace

    def getitem(self, x: Value, index: Index) -> Value:
        index, flipped = native(x, index)
        return (x.flip(flipped) if flipped else x)[index]

    def index_add(self, x: Value, v: Value, index: Index) -> Value:
        index, flipped = native(x, index)
        copy = x.flip(flipped) if flipped else x.clone(memory_format=torch.contiguous_format)
        add_at(copy, v, index, look=False)
        return copy.flip(flipped) if flipped else copy

    def put(self, x: Value, index: Index, shape: tuple[int, ...]) -> Value:
        return self.index_add(torch.zeros(shape, dtype=x.dtype, device=x.device), x, index)

    # ways that would depend on numbers, or on how an array lies in memory

    def _patched(self, out: Value, where: Value, x: Value, f: Callable[[Any], Any]) -> Value:
        return torch.where(where, f(x), out)

    def windows(self, x: Value, sizes: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...]) -> Value:
        lead = x.dim() - len(sizes)
        for axis, (k, s, d) in enumerate(zip(sizes, strides, dilations, strict=True)):
            x = x.unfold(lead + axis, d * (k - 1) + 1, s)[..., ::d]
        return x

    # steps of their own

    def solve(self, x: Value, y: Value) -> Value:
        lead = _torch.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        return self.opaque(self.like.solve, (*lead, *y.shape[-2:]), torch.promote_types(x.dtype, y.dtype))(x, y)

    def inv(self, x: Value) -> Value:
        return self.opaque(self.like.inv, tuple(x.shape), x.dtype)(x)

    def pivots(self, x: Value) -> Value:
        return self.opaque(self.like.pivots, (*x.shape[:-2], 3, x.shape[-1]), torch.int64)(x)


class Opaque:
    """A function of arrays that runs when the compiled program does.

    Args:
        f: The function.
        given: Its arguments, of which those at ``places`` are arrays.
        shapes, dtypes: Of its results.
        device: Where these are.
    """

    def __init__(
        self, f: Callable[..., Any], given: Sequence[Any], places: Sequence[int], shapes: Any, dtypes: Any, device: torch.device
    ) -> None:
        self.f, self.places = f, places
        self.given = [None if k in places else x for k, x in enumerate(given)]
        self.shapes, self.dtypes, self.device = shapes, dtypes, device
        self.number = next(_numbers)
        _STEPS[self.number] = self

    def run(self, xs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The results, as the compiler expects them: each in memory of its own."""
        given = list(self.given)
        for k, x in zip(self.places, xs, strict=True):
            given[k] = x
        out = self.f(*given)
        return [torch.clone(v, memory_format=torch.contiguous_format) for v in (out if isinstance(out, tuple) else (out,))]

    def empty(self) -> list[torch.Tensor]:
        """Arrays like the results."""
        return [torch.empty(s, dtype=d, device=self.device) for s, d in zip(self.shapes, self.dtypes, strict=True)]


def _zero_where_zero(x: Any, product: torch.Tensor) -> torch.Tensor:
    if isinstance(x, torch.Tensor):
        return torch.where(x == 0, 0, product)
    return product if x else torch.zeros_like(product)


for _name, _some in (("step", lambda outs: outs[0]), ("steps", lambda outs: outs)):
    _library.impl(_name, lambda xs, number, some=_some: some(_STEPS[number].run(xs)), "CompositeExplicitAutograd")
    _untyped.register_fake(f"nestgrad::{_name}", lambda xs, number, some=_some: some(_STEPS[number].empty()), lib=_library)
