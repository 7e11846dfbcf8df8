"""``checkpoint``: a function whose inner arrays are computed again when a backward pass needs them."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from nestgrad.errors import LevelError
from nestgrad.func.home import of
from nestgrad.func.trees import flatten, places, unflatten
from nestgrad.levels.recipe import current
from nestgrad.levels.region import Region
from nestgrad.tensor.handle import Handle, make

_F = TypeVar("_F", bound=Callable[..., Any])


def checkpoint(f: _F, *, store_waiting: bool = False) -> _F:
    """``f``, but of what it computes only its outputs are stored; backward passes make the rest again from its inputs.

    Values and derivatives are those of ``f`` to the last bit, at every level and order, and so are graphs, marks and errors: ``f`` runs
    once, and what runs again are its ops. So random numbers are drawn once, and side effects happen once. What passes compute inside of
    the region is forgotten like the rest of it, so higher derivatives take less memory, too.

    Tensors that ``f`` closes over are inputs like its arguments. What it computes of them alone, without an argument, is stored.
    Regions may be nested.

    Args:
        f: Takes Tensors, alone or in tuples, lists and dicts, and anything else; returns Tensors, alone or in such structures.
        store_waiting: From second order on, a pass comes to a region several times: first to what earlier passes computed in it, later to
            what ``f`` did. Cotangents that wait in between are made again, or, if true, stored, which takes less time and more memory. It
            makes no difference at first order.

    Returns:
        A function of the same arguments. A first backward pass costs the ops of ``f`` once more; ``docs/checkpointing.md`` tells what
        higher orders cost. On the innermost level, a look-up in ``Gradients`` that comes by gives all inputs of the region what is
        theirs, so that the next one makes nothing again; ``backward(wrt=[...])`` computes for those alone, in one go, on any level.

    Raises:
        LevelError: If ``f`` is no function, or returns something that is no Tensor.

    >>> from nestgrad import Autodiff, NumpyBackend
    >>> x = Autodiff(Autodiff(NumpyBackend())).tensor(2.0, requires_grad=True)
    >>> cube = checkpoint(lambda x: x * x * x)
    >>> cube(x).wrt(x).wrt(x).item()
    12.0
    """
    if not callable(f):
        raise LevelError(f"checkpoint: got a {type(f).__name__}; expected a function. Try checkpoint(f)(x), not checkpoint(f(x))")

    @wraps(f)
    def region(*args: Any, **kwargs: Any) -> Any:
        outer = current.get()
        here = Region(outer, store_waiting)
        given, structure = flatten((args, kwargs))
        positional, named = unflatten(structure, [_entered(here, x) if isinstance(x, Handle) else x for x in given])
        with here.entered():
            outs, structure = flatten(f(*positional, **named))
            for x, place in zip(outs, places(structure), strict=True):
                if not isinstance(x, Handle):
                    raise LevelError(
                        f"checkpoint: {_name(f)} returned a {type(x).__name__}{f' at {place}' if place else ''}; expected Tensors, "
                        "alone or in tuples, lists and dicts. Try ng.tensor(...) of it, or a function of its own for what is no Tensor"
                    )
            outs = [make(x.b, here.leave(x.value, outer), x.marks) for x in outs]
        return unflatten(structure, outs)

    return of(f, region)  # type: ignore[return-value]


def _entered(here: Region, x: Any) -> Any:
    return make(x.b, here.enter(x.value), x.marks)


def _name(f: Any) -> str:
    return getattr(f, "__qualname__", None) or repr(f)
