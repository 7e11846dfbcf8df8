"""Powers of sizes."""

import torch

from nestgrad.backends.base import Backend, Value


class Statistics(Backend):
    """In two passes over the memory, where there would be five."""

    def abspow(self, x: Value, p: float, odd: bool) -> Value:
        if p == 0:
            return self.sign(x) if odd else torch.ones_like(x)
        if p == 1:
            return x if odd else torch.abs(x)
        power = torch.abs(x).pow_(p)
        return power.copysign_(x) if odd else power
