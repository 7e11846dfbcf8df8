"""Functions that run as programs: ``jit``."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, overload

from nestgrad.compiled.function import Jitted, Stats
from nestgrad.errors import TraceError

__all__ = ["Jitted", "Stats", "jit"]


@overload
def jit(f: Callable[..., Any], *, executor: str = "auto", static_argnames: Sequence[str] = ()) -> Jitted: ...
@overload
def jit(f: None = None, *, executor: str = "auto", static_argnames: Sequence[str] = ()) -> Callable[[Callable[..., Any]], Jitted]: ...
def jit(f: Any = None, *, executor: str = "auto", static_argnames: Sequence[str] = ()) -> Any:
    """A function that is traced once for each signature, and then runs as a program without levels.

    The trace records the base operations that the function comes down to, derivatives of any order among them; the optimiser throws away
    what is computed twice or not needed; an executor runs what is left.

    Args:
        f: Of Tensors, arrays, Python numbers and nested structures of them; returns the same. Inside, all that the eager library can do is
            allowed but what depends on the numbers of one run. Without it, ``jit`` is a decorator with options.
        executor: ``"replay"`` (any backend: straight-line calls), ``"numpy"`` (replay that writes into memory that is not needed any more),
            ``"torch.compile"``, or ``"auto"``, which chooses by the backend; ``jitted.executor`` says what it chose.
        static_argnames: Names of arguments that are part of the signature: for each value there is a program of its own. Whole numbers,
            booleans, strings and other objects are always that. A Python float is an input.

    Returns:
        The function, with ``stats()``, ``captured`` and ``program(*args)``. On levels it is what ``f`` is: a call with tracked arguments
        gives results that live where those of ``f`` would, and are differentiable to any order and in any mode. A call costs what the
        program costs, and about 10 us. At most 64 traces are kept.

    Raises:
        TraceError: At a call that traces, where the program would depend on the numbers of this run, or the function changes something.
        LevelError: Results that live on levels made inside; tensors over several backends.
        BackendError: An executor that is unknown, or not offered by the backend.

    >>> import nestgrad as ng
    >>> S = ng.Autodiff(ng.Autodiff(ng.NumpyBackend()))
    >>> @ng.jit
    ... def slope(x):
    ...     return (x**3).sum().wrt(x)
    >>> x = S.tensor([1.0, 2.0], requires_grad=True)
    >>> slope(x).tolist(), slope(x).wrt(x).tolist()
    ([3.0, 12.0], [6.0, 12.0])
    """
    if not callable(f) and f is not None:
        raise TraceError(f"jit: got a {type(f).__name__}; expected a function of Tensors. Try jit(f), and call that: jit(f)(x)")
    if f is None:
        return partial(jit, executor=executor, static_argnames=static_argnames)
    return Jitted(f, executor, static_argnames)
