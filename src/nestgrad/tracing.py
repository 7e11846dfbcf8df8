"""Functions as programs: ``trace`` records one, ``call`` runs it, differentiably, on any levels."""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

from nestgrad.errors import DTypeError, LevelError, ShapeError, TraceError
from nestgrad.levels.base import running
from nestgrad.levels.coats import bare
from nestgrad.levels.marks import NONE, join
from nestgrad.levels.traced.call import invoke
from nestgrad.levels.traced.program import Program
from nestgrad.levels.traced.wire import Recording
from nestgrad.tensor import Tensor
from nestgrad.tensor.handle import Handle, Operand, as_tensor, is_scalar, make, meet

__all__ = ["call", "trace"]


def trace(f: Callable[..., Any]) -> Callable[..., Program]:
    """A function that runs ``f`` and returns the program of what it did.

    Args:
        f: Of Tensors; returns a Tensor, or a tuple or list of such. It may differentiate inside, in any way: the program holds the ops
            that this comes down to, and no levels. What it closes over is captured if it lives on levels outside, else a constant.

    Returns:
        A function of f's arguments (Tensors, arrays or numbers), whose shapes and dtypes the program takes over. Inside, they are on no
        level: make a variable with ``S.tensor(x, requires_grad=True)``, or use ``func.grad``. Keyword arguments reach ``f`` as they are.

    Raises:
        TraceError: When the program is recorded, where it would depend on what Python does with the numbers of this run (``if x:``,
            ``x[mask]``, ``float(x)``), on random numbers, or on part of the levels (``detach(level=...)``).

    >>> from nestgrad import func, trace
    >>> print(trace(func.grad(lambda x: x.sin()))(1.0))
    input v0: float64[]
    v1: float64[] = constant 1.0
    v2: float64[] = cos(v0)
    v3: float64[] = mul(v1, v2)
    return v3
    """

    def traced(*args: Operand, **kwargs: Any) -> Program:
        first = next((x for x in args if isinstance(x, Handle)), None)
        b = None if first is None else first.b
        given = [as_tensor(x, b) for x in args]
        b = given[0].b if given else as_tensor(0.0).b
        if strange := [x for x in given if x.b.base != b.base]:
            raise LevelError(f"trace: got tensors over different base backends, {b.base!r} and {strange[0].b.base!r}; expected one")
        recording = Recording(b.base, "trace", max((x.level for x in given), default=0) + 1)
        recording.begin()
        token = running.set(recording.tape)
        try:
            result = f(*(make(b, recording.input(x.value), NONE) for x in given), **kwargs)
            return program_of(recording, result)
        finally:
            running.reset(token)
            recording.abandon()

    return traced


def call(program: Program, *tensors: Operand) -> Any:
    """Run a program: the function that was traced, for other arguments of the same shapes and dtypes.

    On every level a call is one step, whose derivative is a program as well, made when it is first asked for and kept. So it can be
    differentiated to any order and in every mode, by its arguments and by the tensors that it has captured.

    Args:
        program: From ``trace``.
        tensors: One for each argument: Tensors on any levels, arrays or numbers.

    Returns:
        What the function returned: a Tensor, or a tuple of them. Floating results depend on all arguments that are tracked; the derivative
        by one that the program does not use is zero.

    Raises:
        ShapeError: Not as many tensors as the program has inputs, or of another shape.
        DTypeError: Of another dtype.
        LevelError: Over another base backend.

    >>> from nestgrad import func, trace
    >>> program = trace(lambda x: x**3)(1.0)
    >>> func.grad(lambda x: call(program, x))(2.0).item()
    12.0
    """
    if not isinstance(program, Program):
        raise TraceError(f"call: got a {type(program).__name__}; expected a program. Try trace(f)(*args), which is one")
    given = _fitting(program, tensors)
    everywhere = reduce(join, program.marks, NONE)
    b, values, marks = meet("call", *given, *program.captured, make(program.base.dressed, 0.0, everywhere))
    outs = []
    for value, own in zip(invoke(b, program, values[:-1]), program.marks, strict=True):
        outs.append(make(b, value, join(own, marks) if b.base.is_floating(bare(value)) else NONE))
    return outs[0] if program.single else tuple(outs)


def program_of(recording: Recording, result: Any) -> Program:
    """End a recording with what the function returned.

    Raises:
        TraceError: If that is neither a Tensor nor a tuple or list of Tensors, arrays and numbers.
    """
    single = not isinstance(result, (tuple, list))
    outs = [result] if single else list(result)
    b = recording.base.dressed
    for k, x in enumerate(outs):
        if is_scalar(x) or b.base.accepts(x):
            outs[k] = as_tensor(x, b)
        elif not isinstance(x, Handle) or x.b.base != b.base:
            what = f"a Tensor over {x.b.base!r}" if isinstance(x, Handle) else f"a {type(x).__name__}"
            raise TraceError(f"trace: the function returned {what} as output {k}; expected a Tensor over {b.base!r}, or a tuple of such")
    return recording.program([(x.value, x.marks) for x in outs], single, partial(make, b, marks=NONE))


def _fitting(program: Program, tensors: Sequence[Operand]) -> list[Tensor]:
    """The arguments of a call as Tensors, checked."""
    inputs = program.inputs[: len(program.inputs) - len(program.captured)]
    if len(tensors) != len(inputs):
        raise ShapeError(f"call: got {len(tensors)} tensors for {program!r}; expected {len(inputs)}, one for each argument")
    b = program.base.dressed
    given = []
    for k, (x, variable) in enumerate(zip(tensors, inputs, strict=True)):
        given.append(as_tensor(x, b))
        if is_scalar(x) and program.floating(variable):
            given[k] = given[k].astype(variable.dtype)  # Python numbers are weakly typed
        if given[k].b.base != b.base:
            raise LevelError(f"call: got a tensor over {given[k].b.base!r} for a program over {b.base!r}; expected one base backend")
        if tuple(given[k].shape) != variable.shape:
            raise ShapeError(
                f"call: got shape {given[k].shape} for input {k}, {variable.typed}; expected that shape, since the program is of fixed "
                "shapes. Try trace(f) with arguments of the new shape, or func.vmap for one more axis"
            )
        if given[k].dtype != variable.dtype:
            raise DTypeError(
                f"call: got dtype {given[k].dtype} for input {k}, {variable.typed}; expected that. Try x.astype(...), or trace(f) anew"
            )
    return given
