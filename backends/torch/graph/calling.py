"""A program as one operation of PyTorch's, of which torch knows all derivatives.

torch cannot record what the ops do one by one: they write into arrays, and use kernels of which it has no second derivative. So its graph
gets one node for the whole program. The backward pass is a program, too, and called in the same way, so it has derivatives again.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

Pull = Callable[[Any, tuple[int, ...], tuple[int, ...], Sequence[Any]], tuple[Any, tuple[int, ...]]]
"""Of a program, numbers of inputs and of outputs, and examples, to the program from the inputs and the cotangents of those outputs to the
cotangents of those inputs that are reached, and which these are."""


def called(program: Any, pull: Pull, values: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The outputs of a program; they can be differentiated where values can."""
    found: tuple[torch.Tensor, ...] = _Call.apply(program, pull, *values)  # type: ignore[no-untyped-call]
    return found


class _Call(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, program: Any, pull: Pull, *values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.program, ctx.pull = program, pull
        ctx.save_for_backward(*values)
        ctx.set_materialize_grads(False)
        # an output that is an input would be taken for a write in place
        return tuple(out.clone() if any(out is x for x in values) else out for out in program.evaluate(program.base.dressed, values))

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> tuple[Any, ...]:
        values = ctx.saved_tensors
        wanted = tuple([k for k, needed in enumerate(ctx.needs_input_grad[2:]) if needed])
        seeded = tuple([k for k, g in enumerate(cotangents) if g is not None])
        both = [*values, *(cotangents[k] for k in seeded)]
        with torch.no_grad():
            program, reached = ctx.pull(ctx.program, wanted, seeded, [x.detach() for x in both])
        found: dict[int, Any] = dict(zip(reached, called(program, ctx.pull, both), strict=True)) if reached else {}
        return None, None, *[found.get(k) for k in range(len(values))]
