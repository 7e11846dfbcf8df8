"""The operations that a backend must supply; everything else derives from them.

An *array* here is whatever the backend computes with. Shapes and axes are plain Python data: ``shape`` a tuple of
non-negative ints, ``axes`` a tuple of non-negative ints (it may be empty), ``axis`` a non-negative int, ``index`` a
tuple of ints, slices (any step, negative ones too) and native integer arrays, with the meaning that NumPy gives it.

An operand of an elementwise operation may be a Python number, which is weakly typed: it never changes the dtype of a
floating array. At least one operand is an array. No method changes its arguments; ``getitem``, ``reshape``,
``permute``, ``broadcast_to`` and ``cast`` may return views of them, and so may any method whose answer equals its
argument.
"""

import inspect
from typing import Any, TypeAlias

from nestgrad.errors import MissingOp

Value: TypeAlias = Any
"""An array of some backend, or a Python number where an operand may be one."""

Index: TypeAlias = tuple[Any, ...]

REQUIRED = (
    "asarray", "to_numpy", "shape", "dtype", "cast",
    "add", "mul", "div", "pow", "exp", "log", "sin", "cos", "atan", "tanh", "sqrt", "erf", "abs", "floor",
    "eq", "lt", "logical_not", "logical_and", "where",
    "sum", "amax", "argmax", "reshape", "permute", "broadcast_to", "concat", "getitem", "index_set", "index_add",
    "matmul",
)  # fmt: skip


class Primitives:
    """The required operations. Each raises ``MissingOp``, naming itself, until a backend overrides it."""

    def asarray(self, data: Any, dtype: Any = None) -> Value:
        """A new array that holds ``data``: nested lists, Python numbers, a NumPy array, an array of this backend.

        Without ``dtype``, Python floats get the backend's default dtype, ints become int64, bools stay bool, and arrays
        keep theirs.
        """
        raise lacking(self, "asarray")

    def to_numpy(self, x: Value) -> Any:
        """A NumPy array with a copy of the values of ``x``."""
        raise lacking(self, "to_numpy")

    def shape(self, x: Value) -> tuple[int, ...]:
        """The shape of ``x``, a tuple of ints."""
        raise lacking(self, "shape")

    def dtype(self, x: Value) -> Any:
        """The dtype of ``x``, native to the backend."""
        raise lacking(self, "dtype")

    def cast(self, x: Value, dtype: Any) -> Value:
        """``x`` with another dtype; floats become integers towards zero, and a bool is ``x != 0``."""
        raise lacking(self, "cast")

    def add(self, x: Value, y: Value) -> Value:
        """``x + y``, broadcast."""
        raise lacking(self, "add")

    def mul(self, x: Value, y: Value) -> Value:
        """``x * y``, broadcast."""
        raise lacking(self, "mul")

    def div(self, x: Value, y: Value) -> Value:
        """``x / y``, broadcast; the quotient of integers is a float."""
        raise lacking(self, "div")

    def pow(self, x: Value, y: Value) -> Value:
        """``x ** y``, broadcast; NaN where ``x`` is negative and ``y`` not whole, and ``0 ** 0`` is 1."""
        raise lacking(self, "pow")

    def exp(self, x: Value) -> Value:
        """The exponential function."""
        raise lacking(self, "exp")

    def log(self, x: Value) -> Value:
        """The natural logarithm: -inf at 0, NaN below."""
        raise lacking(self, "log")

    def sin(self, x: Value) -> Value:
        """The sine."""
        raise lacking(self, "sin")

    def cos(self, x: Value) -> Value:
        """The cosine."""
        raise lacking(self, "cos")

    def atan(self, x: Value) -> Value:
        """The inverse tangent, between -pi/2 and pi/2."""
        raise lacking(self, "atan")

    def tanh(self, x: Value) -> Value:
        """The hyperbolic tangent."""
        raise lacking(self, "tanh")

    def sqrt(self, x: Value) -> Value:
        """The square root: NaN below 0."""
        raise lacking(self, "sqrt")

    def erf(self, x: Value) -> Value:
        """The error function, to the accuracy of the dtype."""
        raise lacking(self, "erf")

    def abs(self, x: Value) -> Value:
        """The absolute value."""
        raise lacking(self, "abs")

    def floor(self, x: Value) -> Value:
        """The greatest whole number that is not above ``x``, in the dtype of ``x``."""
        raise lacking(self, "floor")

    def eq(self, x: Value, y: Value) -> Value:
        """``x == y``, a bool array; NaN equals nothing."""
        raise lacking(self, "eq")

    def lt(self, x: Value, y: Value) -> Value:
        """``x < y``, a bool array; False where either is NaN."""
        raise lacking(self, "lt")

    def logical_not(self, x: Value) -> Value:
        """True where ``x`` is False or zero."""
        raise lacking(self, "logical_not")

    def logical_and(self, x: Value, y: Value) -> Value:
        """True where neither is False or zero."""
        raise lacking(self, "logical_and")

    def where(self, c: Value, x: Value, y: Value) -> Value:
        """``x`` where the bool array ``c`` holds, ``y`` elsewhere; all three broadcast."""
        raise lacking(self, "where")

    def sum(self, x: Value, axes: tuple[int, ...], keepdims: bool = False) -> Value:
        """The sum over ``axes``; over no axes it is ``x``. Bools and integers sum to int64."""
        raise lacking(self, "sum")

    def amax(self, x: Value, axes: tuple[int, ...], keepdims: bool = False) -> Value:
        """The greatest element over ``axes``, NaN if there is one; over no axes it is ``x``."""
        raise lacking(self, "amax")

    def argmax(self, x: Value, axis: int, keepdims: bool = False) -> Value:
        """Where the greatest element along ``axis`` stands, the first of equals, as int64."""
        raise lacking(self, "argmax")

    def reshape(self, x: Value, shape: tuple[int, ...]) -> Value:
        """The elements of ``x``, last axis fastest, in another shape of the same size."""
        raise lacking(self, "reshape")

    def permute(self, x: Value, axes: tuple[int, ...]) -> Value:
        """``x`` with its axes reordered: axis k of the answer is axis ``axes[k]`` of ``x``."""
        raise lacking(self, "permute")

    def broadcast_to(self, x: Value, shape: tuple[int, ...]) -> Value:
        """``x`` repeated along new leading axes and along axes of length 1."""
        raise lacking(self, "broadcast_to")

    def concat(self, *xs: Value, axis: int = 0) -> Value:
        """The arrays one after the other along an existing axis."""
        raise lacking(self, "concat")

    def getitem(self, x: Value, index: Index) -> Value:
        """``x[index]``."""
        raise lacking(self, "getitem")

    def index_set(self, x: Value, v: Value, index: Index) -> Value:
        """A copy of ``x`` with ``x[index] = v``; ``v`` broadcasts."""
        raise lacking(self, "index_set")

    def index_add(self, x: Value, v: Value, index: Index) -> Value:
        """A copy of ``x`` with ``v`` added at ``index``; an element that is named twice is added to twice."""
        raise lacking(self, "index_add")

    def matmul(self, x: Value, y: Value) -> Value:
        """The matrix product over the last two axes of arrays with at least two; leading axes broadcast."""
        raise lacking(self, "matmul")


def lacking(backend: Primitives, name: str) -> MissingOp:
    """The error for a required method that ``backend`` does not override."""
    method = getattr(Primitives, name)
    return MissingOp(
        f"{name}: {type(backend).__name__} lacks a required method. Add `def {name}{_signature(method)}`: "
        f"{inspect.getdoc(method)} All that it lacks: {', '.join(missing(backend))}"
    )


def missing(backend: Primitives | type[Primitives]) -> list[str]:
    """Names of the required methods that ``backend``, an instance or a class, does not override.

    >>> from nestgrad.backends import Backend, NumpyBackend, missing
    >>> missing(NumpyBackend())
    []
    >>> missing(Backend)[:3]
    ['asarray', 'to_numpy', 'shape']
    """
    kind, own = (backend, ()) if isinstance(backend, type) else (type(backend), vars(backend))
    return [name for name in REQUIRED if getattr(kind, name) is getattr(Primitives, name) and name not in own]


def _signature(method: Any) -> str:
    signature = inspect.signature(method)
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    return str(inspect.Signature(bare))
