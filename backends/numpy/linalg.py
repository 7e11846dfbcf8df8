"""Solutions, inverses and determinants."""

import numpy as np

from nestgrad.backends.base import Backend, Value
from nestgrad.backends.derived.linalg import noise, singular, vague


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
        return _pivots(x, float(np.finfo(x.dtype).eps)) if x.ndim == 2 else super().pivots(x)


def _pivots(x: np.ndarray, eps: float) -> np.ndarray:
    """Of one matrix, with rows and columns that are exchanged, so that what is left shrinks."""
    n = len(x)
    rest, grain, worth = x.copy(), np.abs(x), np.zeros(n, np.int64)
    orders = np.arange(n), np.arange(n)
    for k in range(n - 3):
        size = np.abs(rest[k:, k:])
        size[size <= noise(n, eps) * grain[k:, k:]] = 0
        i, j = divmod(int(size.argmax()), n - k)
        for order, at in zip(orders, (i, j), strict=True):
            order[[k, k + at]] = order[[k + at, k]]
        for array in (rest, grain):
            array[[k, k + i]] = array[[k + i, k]]
            array[:, [k, k + j]] = array[:, [k + j, k]]
        if size[i, j] == 0:
            worth[k:] = 2
            break
        worth[k:] = max(worth[k], size[i, j] <= vague(eps) * grain[k, k])
        change = np.multiply.outer(rest[k + 1 :, k] / rest[k, k], rest[k, k + 1 :])
        rest[k + 1 :, k + 1 :] -= change
        grain[k + 1 :, k + 1 :] += np.abs(change, out=change)
    for order in orders:
        order[n - 3 :].sort()
    if sum(int(np.triu(order[:, None] > order, 1).sum()) for order in orders) % 2:
        orders[0][[n - 2, n - 1]] = orders[0][[n - 1, n - 2]]
    return np.stack([*orders, worth])
