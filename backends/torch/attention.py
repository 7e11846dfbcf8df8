"""Attention in torch's kernel, for values that are not differentiated."""

from typing import Any

import torch

from nestgrad.backends.base import Backend, Value

_attention: Any = torch.nn.functional.scaled_dot_product_attention


class Attention(Backend):
    """Torch's own, which picks the kernel."""

    def attention(self, *xs: Value, causal: bool, scale: float) -> Value:
        """``softmax(scale q k') v``; ``causal``: query i sees the keys up to i; a last array is a mask."""
        q, k, v, *masks = xs
        dtype = torch.promote_types(torch.promote_types(q.dtype, k.dtype), v.dtype)
        q, k, v = q.to(dtype), k.to(dtype), v.to(dtype)
        if not masks:
            return _attention(q, k, v, None, 0.0, causal, scale=scale)
        mask = masks[0]
        if causal:
            lower = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).tril()
            mask = mask & lower if mask.dtype is torch.bool else torch.where(lower, mask, -torch.inf)
        return _attention(q, k, v, mask if mask.dtype is torch.bool else mask.to(dtype), 0.0, scale=scale)
