"""Whether torch records what is computed of its tensors."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def recording(attached: bool) -> Iterator[None]:
    """While this holds, torch records what is computed, or does not, whatever holds outside.

    Nor are the results inference tensors, which nobody may record anything of later on.
    """
    with torch.inference_mode(False), torch.set_grad_enabled(attached):
        yield
