"""Functions as programs: ``trace`` records one, ``call`` runs it, differentiably, on any levels."""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

from nestgrad.errors import DTypeError, LevelError, ShapeError, TraceError
from nestgrad.func.home import home
from nestgrad.func.run import as_leaf
from nestgrad.func.trees import LEAF, Structure, flatten, parted, shown, unflatten
from nestgrad.levels.base import running
from nestgrad.levels.marks import NONE, join
from nestgrad.levels.traced.call import invoke
from nestgrad.levels.traced.program import Program
from nestgrad.levels.traced.recording import Recording
from nestgrad.tensor import Tensor
from nestgrad.tensor.handle import Handle, is_scalar, make, meet

__all__ = ["call", "trace"]


def trace(f: Callable[..., Any]) -> Callable[..., Program]:
    """A function that runs ``f`` and returns the program of what it did.

    Args:
        f: Of Tensors; returns a Tensor, or a nested structure of them. It may differentiate inside, in any way: the program holds the ops
            that this comes down to, and no levels. What it closes over is captured if it lives on levels outside, else a constant.

    Returns:
        A function of f's arguments: Tensors, arrays, numbers, or nested structures of them, whose shapes and dtypes the program takes over.
        Inside, they are on no level: make a variable with ``S.tensor(x, requires_grad=True)``, or use ``func.grad``. Keyword arguments
        reach ``f`` as they are.

    Raises:
        TraceError: When the program is recorded, where it would depend on what Python does with the numbers of this run (``if x:``,
            ``x[mask]``, ``float(x)``), on random numbers, or on part of the levels (``detach(level=...)``).
        LevelError: Arguments over different base backends.

    >>> from nestgrad.func import grad
    >>> print(trace(grad(lambda x: x.sin()))(1.0))
    input v0: float64[]
    v1: float64[] = constant 1.0
    v2: float64[] = cos(v0)
    v3: float64[] = mul(v1, v2)
    return v3
    """

    def traced(*args: Any, **kwargs: Any) -> Program:
        b = home(f, args)
        parts, structures = _taken_apart(args)
        leaves = _over("trace", [as_leaf("trace", x, b) for x in parts], b)
        recording = Recording(b.base, "trace", max((x.level for x in leaves), default=0) + 1)
        recording.begin()
        token = running.set(recording.tape)
        try:
            inside = [make(b, recording.input(x.value), NONE) for x in leaves]
            return program_of(recording, structures, f(*parted(structures, inside), **kwargs))
        finally:
            running.reset(token)
            recording.abandon()

    return traced


def call(program: Program, *args: Any) -> Any:
    """Run a program: the function that was traced, for other arguments of the same shapes and dtypes.

    On every level a call is one step, whose derivative is a program as well, made when it is first asked for and kept. So it can be
    differentiated to any order and in every mode, by its arguments and by the tensors that it has captured.

    Args:
        program: From ``trace``.
        args: As the function had them: Tensors on any levels, arrays, numbers, or nested structures of them.

    Returns:
        What the function returned. Where one of several results depends on an argument and another does not, the derivative of the latter
        is zero.

    Raises:
        ShapeError: Arguments of another number, structure or shape than those of the trace.
        DTypeError: Of another dtype.
        LevelError: Over another base backend.
        TraceError: No program.

    >>> from nestgrad.func import grad
    >>> program = trace(lambda x: x**3)(1.0)
    >>> grad(lambda x: call(program, x))(2.0).item()
    12.0
    """
    if not isinstance(program, Program):
        raise TraceError(f"call: got a {type(program).__name__}; expected a program. Try trace(f)(*args), which is one")
    parts, structures = _taken_apart(args)
    if structures != program.arguments:
        got, expected = (", ".join(map(shown, trees)) for trees in (structures, program.arguments))
        raise ShapeError(f"call: got arguments ({got}); expected ({expected}), as those of the trace, with a * for each Tensor")
    given = _fitting(program, parts)
    everywhere = reduce(join, program.marks, NONE)
    b, values, marks = meet("call", *given, *program.captured, make(program.base.dressed, 0.0, everywhere))
    outs = []
    for value, own, connected in zip(invoke(b, program, values[:-1]), program.marks, program.connected, strict=True):
        outs.append(make(b, value, join(own, marks) if connected else own))
    return unflatten(program.structure, outs)


def program_of(recording: Recording, arguments: Sequence[Structure] | int, result: Any) -> Program:
    """End a recording with what the function returned.

    Args:
        recording: Its run.
        arguments: The structures of the arguments; of that many single Tensors.
        result: A nested structure of Tensors, arrays and numbers.

    Raises:
        TraceError: If there is something else in it.
    """
    b = recording.base.dressed
    outs, structure = flatten(result)
    for k, x in enumerate(outs):
        if is_scalar(x) or b.base.accepts(x):
            outs[k] = as_leaf("trace", x, b)
        elif not isinstance(x, Handle) or x.b.base != b.base:
            what = f"a Tensor over {x.b.base!r}" if isinstance(x, Handle) else f"a {type(x).__name__}"
            raise TraceError(f"trace: the function returned {what} as output {k}; expected a Tensor over {b.base!r}, or several")
    given = (LEAF,) * arguments if isinstance(arguments, int) else tuple(arguments)
    return recording.program([(x.value, x.marks) for x in outs], partial(make, b, marks=NONE), given, structure)


def _taken_apart(args: Sequence[Any]) -> tuple[list[Any], tuple[Structure, ...]]:
    """The leaves of all arguments, and the structure of each."""
    leaves: list[Any] = []
    structures = []
    for a in args:
        found, structure = flatten(a)
        leaves += found
        structures.append(structure)
    return leaves, tuple(structures)


def _over(name: str, leaves: list[Tensor], b: Any) -> list[Tensor]:
    """The leaves, if they are over ``b``."""
    if strange := [x for x in leaves if x.b.base != b.base]:
        raise LevelError(f"{name}: got a tensor over {strange[0].b.base!r} beside one over {b.base!r}; expected one base backend")
    return leaves


def _fitting(program: Program, leaves: Sequence[Any]) -> list[Tensor]:
    """The leaves of a call's arguments as Tensors that fit the inputs."""
    b, given = program.base.dressed, []
    for x, variable in zip(leaves, program.inputs, strict=False):
        if is_scalar(x) and program.floating(variable):
            given.append(make(b, b.base.full((), x, variable.dtype), NONE))  # Python numbers are weakly typed
        else:
            given.append(as_leaf("call", x, b))
    for x, variable in zip(_over("call", given, b), program.inputs, strict=False):
        if tuple(x.shape) != variable.shape:
            raise ShapeError(
                f"call: got shape {x.shape} for input {variable.typed}; expected that shape, since a program is of fixed shapes. "
                "Try trace(f) with arguments of the new shape"
            )
        if x.dtype != variable.dtype:
            raise DTypeError(
                f"call: got dtype {x.dtype} for input {variable.typed}; expected that dtype. Try x.astype(...), or trace(f) with such "
                "arguments"
            )
    return given
