"""Solutions, inverses and determinants."""

from math import prod

import numpy as np

from nestgrad.backends.base import Backend, Value
from nestgrad.backends.derived.linalg import singular
from nestgrad.backends.exchanging import LARGE, Order, chosen, eliminated


class Linalg(Backend):
    """LAPACK's, by NumPy."""

    def solve(self, x: Value, y: Value) -> Value:
        try:
            return np.linalg.solve(x, y)
        except np.linalg.LinAlgError as error:
            raise singular("solve", x.shape) from error

    def inv(self, x: Value) -> Value:
        try:
            return np.linalg.inv(x)
        except np.linalg.LinAlgError as error:
            raise singular("inv", x.shape) from error

    def large_det(self, x: Value) -> Value:
        return np.asarray(np.linalg.det(x))

    def slogdet(self, x: Value) -> tuple[Value, Value]:
        sign, logabsdet = np.linalg.slogdet(x)
        return np.asarray(sign), np.asarray(logabsdet)

    def pivots(self, x: Value) -> Value:
        if x.shape[-1] < LARGE:
            return super().pivots(x)
        n, eps = x.shape[-1], float(np.finfo(x.dtype).eps)
        orders = [_order(part, eps) for part in x.reshape(prod(x.shape[:-2]), n, n)]
        return np.array(orders, dtype=np.int64).reshape(*x.shape[:-2], 3, n)


def _order(x: np.ndarray, eps: float) -> Order:
    """Of one matrix."""
    try:
        inverse = np.linalg.inv(x)
    except np.linalg.LinAlgError:
        pass
    else:
        if order := chosen(x, inverse, eps):
            return order
    return eliminated(x.copy(), np.abs(x), eps)
