"""Which kind of graph is under a tensor: one of the levels of a Tensor, or one that an array library recorded by itself."""

from typing import Any

from nestgrad.errors import ArgumentError
from nestgrad.partials.foreign import Foreign
from nestgrad.partials.own import Levels
from nestgrad.partials.source import Source, told
from nestgrad.tensor.handle import Handle, default_backend, real_only


def source(tensor: Any) -> Source:
    """How the graph under a tensor is read.

    Raises:
        ArgumentError: If there is none.
        DTypeError: If it holds complex numbers.
    """
    if isinstance(tensor, Handle):
        return Levels(tensor.b.base)
    base = default_backend(tensor)
    if base.graphs is None or not base.accepts(tensor):
        raise ArgumentError(
            f"backward: got {told(tensor)}; expected a Tensor on levels, or a torch.Tensor that requires gradients, because "
            "derivatives are made of what was recorded. Try what is computed of stack.tensor(x, requires_grad=True), or of "
            "x.requires_grad_(), itself: no module, no list and no number of it"
        )
    real_only("backward", tensor)
    return Foreign(base)
