"""Special functions: torch's own where they are accurate everywhere, in as few new arrays as there can be."""

import math
from collections.abc import Callable
from typing import Any

import torch

from nestgrad.backends.base import Backend, Value
from nestgrad.backends.derived.gamma import remainders
from nestgrad.backends.derived.special import mills_left, mills_right, sinc_near, tail_ratios

_STEPS = 10


class Special(Backend):
    """Functions of the error function's and of the gamma function's families, and sinc."""

    sinc: Any = torch.sinc
    erfc: Any = torch.erfc
    erfcx: Any = torch.special.erfcx
    erfinv: Any = torch.erfinv
    log_ndtr: Any = torch.special.log_ndtr
    lgamma: Any = torch.lgamma
    digamma: Any = torch.digamma

    def sinc_slope(self, x: Value, n: int) -> Value:
        if n == 0:
            return torch.sinc(x)
        near = torch.abs(x) < (1.0 + n / 2) / math.pi
        turned = torch.mul(x, 0.5).round_().mul_(-2.0).add_(x).mul_(math.pi)  # exact, so that far out no digits are lost
        z = torch.mul(x, math.pi)
        sine, cosine = torch.sin(turned), turned.cos_()
        out = torch.div(sine, z)
        for k in range(1, n + 1):  # z f^(k) + k f^(k-1) = sin^(k)(z)
            out = out.mul_(-k).add_(sine if k % 2 == 0 else cosine, alpha=1 if k % 4 in (0, 1) else -1).div_(z)
        return self._patched(out, near, z, lambda v: sinc_near(self, v, n)).mul_(math.pi**n)

    def gauss(self, x: Value) -> Value:
        return torch.square(x).neg_().exp_().mul_(2 / math.sqrt(math.pi))

    def widening(self, x: Value) -> Value:
        return torch.square(x).exp_().mul_(math.sqrt(math.pi) / 2)

    def bell(self, x: Value) -> Value:
        return torch.square(x).mul_(-0.5).exp_().mul_(1 / math.sqrt(2 * math.pi))

    def erfcx_slope(self, x: Value, n: int) -> Value:
        scaled, before, c = torch.special.erfcx(x), torch.zeros_like(x), 2 / math.sqrt(math.pi)
        out = scaled
        for k in range(n):  # E' = 2 x E - c and E^(k+1) = 2 x E^(k) + 2 k E^(k-1)
            step = torch.mul(x, out).mul_(2.0)
            out, before = (step.sub_(c) if k == 0 else step.add_(before, alpha=2.0 * k)), out

        def right(v: Any) -> Any:
            y = torch.special.erfcx(v)
            for ratio in tail_ratios(self, v, n):
                y = y.mul_(ratio).neg_()
            return y

        return self._patched(out, x > 1.0, x, right) if n else out

    def ndtr(self, x: Value) -> Value:
        return torch.mul(x, -math.sqrt(0.5)).erfc_().mul_(0.5)  # torch's own is 0 to the left of -9

    def log_ndtr_slope(self, x: Value, n: int) -> Value:
        d = torch.square(x).mul_(-0.5).exp_().div_(torch.mul(x, -math.sqrt(0.5)).erfc_()).mul_(math.sqrt(2 / math.pi))
        out = d if n == 1 else torch.add(x, d).mul_(d).neg_() if n == 2 else mills_right(self, x, d, n)
        turn = -3.0 if x.dtype == torch.float64 else -1.5  # fewer digits bear less cancelling
        return self._patched(out, x < turn, x, lambda v: mills_left(self, v, n))

    def polygamma(self, x: Value, n: int) -> Value:
        if n == 0:
            return torch.digamma(x)
        if n > 8:  # where powers leave the range of single precision
            return super().polygamma(x, n)
        # torch's trigamma has nine digits, and its zeta is slow: a sum and its remainder after Euler and Maclaurin
        s, double = n + 1, x.dtype == torch.float64
        steps, terms = (_STEPS + s // 2, 11) if double else (4 + s // 2, 5)
        total = torch.zeros_like(x)
        for k in range(steps):
            _powered(torch.add(x, float(k)), s, total)
        w = torch.add(x, float(steps)).reciprocal_()
        square = torch.square(w)
        first, *rest = reversed(remainders(s, terms))
        tail = torch.full_like(x, first)
        for c in rest:
            tail.mul_(square).add_(c)
        inner = torch.mul(tail, square).add_(w, alpha=0.5).add_(1 / n)
        for _ in range(n):
            inner.mul_(w)
        out = total.add_(inner).mul_((-1.0) ** (n + 1) * math.factorial(n))
        return self._patched(out, x <= 0, x, lambda v: super(Special, self).polygamma(v, n))

    def _patched(self, out: Value, where: Value, x: Value, f: Callable[[Any], Any]) -> Value:
        """``out``, a new array, with ``f(x)`` where it is asked for, computed nowhere else."""
        if bool(where.any()):
            out[where] = f(x[where])
        return out


def _powered(x: torch.Tensor, s: int, total: torch.Tensor) -> None:
    """Add ``1 / x^s`` to ``total``; ``x`` is written over."""
    w = x.reciprocal_()
    if s == 2:
        total.addcmul_(w, w)
    elif s % 2:
        square = torch.square(w)
        for _ in range(s // 2 - 1):
            w.mul_(square)
        total.addcmul_(w, square)
    else:
        square = torch.square(w)
        power = square.clone()
        for _ in range(s // 2 - 2):
            power.mul_(square)
        total.addcmul_(power, square)
