"""Whether torch records what is computed of its tensors, and whether it has numbers for them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._C._functorch import is_functorch_wrapped_tensor


@contextmanager
def recording(attached: bool) -> Iterator[None]:
    """While this holds, torch records what is computed, or does not, whatever holds outside.

    Nor are the results inference tensors, which nobody may record anything of later on.
    """
    with torch.inference_mode(False), torch.set_grad_enabled(attached):
        yield


def stands_in(x: Any) -> bool:
    """Whether ``x`` stands for other tensors while one of torch's transforms of functions runs."""
    return isinstance(x, torch.Tensor) and bool(is_functorch_wrapped_tensor(x))
