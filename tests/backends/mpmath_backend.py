"""A backend of fifty digits: NumPy's object arrays, filled with the numbers of mpmath.

It defines what ``REQUIRED`` names and the special functions whose defaults end at double precision; all the rest comes from the defaults.
"""

from typing import Any

import numpy as np
from mpmath.ctx_mp import MPContext

from nestgrad.backends import Backend

mp = MPContext()
mp.dps = 50


def over(function: Any, n: int = 1) -> Any:
    """``function`` of numbers made a function of arrays; what is no real number becomes NaN, as in other backends."""

    def real(*xs: Any) -> Any:
        y = function(*(mp.mpf(x if isinstance(x, mp.mpf) else float(x)) for x in xs))
        return mp.nan if isinstance(y, mp.mpc) else y

    loop = np.frompyfunc(real, n, 1)
    return lambda *xs: np.asarray(loop(*xs), object)


def each(function: Any, n: int = 1) -> Any:
    """The same as a method."""
    return staticmethod(over(function, n))


def quotient(x: Any, y: Any) -> Any:
    return x / y if y else x * mp.inf


def power(x: Any, y: Any) -> Any:
    return mp.inf if not x and y < 0 else x**y


def greater(x: Any, y: Any) -> Any:
    return x if x > y or x != x else y


def pole(x: Any) -> bool:
    return bool(x > 0 or x != mp.floor(x))


def inverse(x: Any) -> Any:
    """The inverse of erf, which is NaN outside of its domain, and infinite at its ends."""
    return mp.erfinv(x) if abs(x) < 1 else x * mp.inf if abs(x) == 1 else mp.nan


def more(function: Any) -> Any:
    """``function`` with digits for what cancels in it."""

    def call(*args: Any) -> Any:
        with mp.workdps(mp.dps + 60):
            return function(*args)

    return call


@more
def sinc(x: Any, n: int) -> Any:
    """The ``n``-th derivative of sin(pi x) / (pi x): by recurrence, and by its series near 0."""
    z = mp.pi * x
    if abs(z) < 20 + n:
        terms = (((-1) ** ((m + n) // 2) * z**m / (mp.factorial(m) * (m + n + 1))) for m in range(n % 2, 240 + 4 * n, 2))
        return +mp.fsum(terms) * mp.pi**n
    f = mp.sin(z) / z
    for k in range(1, n + 1):
        f = (mp.sin(z + k * mp.pi / 2) - k * f) / z
    return f * mp.pi**n


@more
def scaled_tail(x: Any, n: int) -> Any:
    """The ``n``-th derivative of exp(x^2) erfc(x)."""
    before, f = mp.zero, mp.exp(x * x) * mp.erfc(x)
    for k in range(n):
        before, f = f, 2 * x * f + (2 * k * before if k else -2 / mp.sqrt(mp.pi))
    return f


@more
def cumulant(x: Any, n: int) -> Any:
    """The ``n``-th derivative of the logarithm of the normal distribution function."""
    d = [mp.npdf(x) / mp.ncdf(x)]
    gap = [x + d[0]]
    for k in range(1, n):
        d.append(-mp.fsum(mp.binomial(k - 1, j) * d[j] * gap[k - 1 - j] for j in range(k)))
        gap.append(d[-1] + (k == 1))
    return d[-1]


def arithmetic(ufunc: np.ufunc) -> Any:
    """A ufunc whose answer is an array, where NumPy would hand out a bare number."""
    return staticmethod(lambda *xs: np.asarray(ufunc(*xs)))


class MpmathBackend(Backend):
    """Floats are ``mpf`` in arrays of objects; integers and bools are NumPy's own."""

    name = "mpmath"
    default_dtype = np.dtype(object)

    def asarray(self, data: Any, dtype: Any = None) -> Any:
        return self.cast(np.array(data), self.resolve_dtype(dtype or np.array(data).dtype)).copy()

    def resolve_dtype(self, dtype: Any = None) -> Any:
        found = np.dtype(object if dtype is None else dtype)
        return np.dtype(object) if found.kind == "f" else found

    def cast(self, x: Any, dtype: Any) -> Any:
        dtype = self.resolve_dtype(dtype)
        if dtype.kind == "O":
            return self._numbers(x)
        return np.asarray(x != 0) if dtype.kind == "b" else np.asarray(x).astype(dtype)

    _numbers = each(lambda x: x)

    def to_numpy(self, x: Any) -> Any:
        return np.array(x, float if x.dtype == object else None)

    def shape(self, x: Any) -> tuple[int, ...]:
        return np.shape(x)

    def dtype(self, x: Any) -> Any:
        return x.dtype

    add, mul, abs = arithmetic(np.add), arithmetic(np.multiply), arithmetic(np.absolute)
    div, pow, exp, log = each(quotient, 2), each(power, 2), each(mp.exp), each(lambda x: mp.log(x) if x else -mp.inf)
    sin, cos, atan, tanh, sqrt, erf = map(each, (mp.sin, mp.cos, mp.atan, mp.tanh, mp.sqrt, mp.erf))
    _floor = each(lambda x: mp.floor(x) if mp.isfinite(x) else x)

    erfc, erfinv, lgamma = map(each, (mp.erfc, inverse, lambda x: mp.re(mp.loggamma(x)) if pole(x) else mp.inf))

    def sinc_slope(self, x: Any, n: int) -> Any:
        return over(lambda v: sinc(v, n))(x)

    def erfcx_slope(self, x: Any, n: int) -> Any:
        return over(lambda v: scaled_tail(v, n))(x)

    def log_ndtr(self, x: Any) -> Any:
        return over(lambda v: mp.log(mp.ncdf(v)) if v < 0 else mp.log1p(-mp.ncdf(-v)))(x)

    def log_ndtr_slope(self, x: Any, n: int) -> Any:
        return over(lambda v: cumulant(v, n))(x)

    def polygamma(self, x: Any, n: int) -> Any:
        return over(lambda v: mp.psi(n, v) if pole(v) else mp.inf)(x)

    def digamma(self, x: Any) -> Any:
        return self.polygamma(x, 0)

    def floor(self, x: Any) -> Any:
        return self._floor(x) if x.dtype == object else x

    def eq(self, x: Any, y: Any) -> Any:
        return np.asarray(np.equal(x, y), bool)

    def lt(self, x: Any, y: Any) -> Any:
        return np.asarray(np.less(x, y), bool)

    def logical_not(self, x: Any) -> Any:
        return np.asarray(np.equal(x, 0))

    def logical_and(self, x: Any, y: Any) -> Any:
        return np.not_equal(x, 0) & np.not_equal(y, 0)

    def where(self, c: Any, x: Any, y: Any) -> Any:
        return np.where(c, x, y)

    def sum(self, x: Any, axes: tuple[int, ...], keepdims: bool = False) -> Any:
        total = np.asarray(np.add.reduce(x, axes, None, None, keepdims))
        return self._numbers(total) if x.dtype == object else total

    def amax(self, x: Any, axes: tuple[int, ...], keepdims: bool = False) -> Any:
        for axis in axes:
            x = np.asarray(np.frompyfunc(greater, 2, 1).reduce(x, axis, keepdims=True), x.dtype)
        return x if keepdims else x.squeeze(axes)

    def argmax(self, x: Any, axis: int, keepdims: bool = False) -> Any:
        return np.argmax(x, axis, keepdims=keepdims)

    def reshape(self, x: Any, shape: tuple[int, ...]) -> Any:
        return x.reshape(shape)

    def permute(self, x: Any, axes: tuple[int, ...]) -> Any:
        return x.transpose(axes)

    def broadcast_to(self, x: Any, shape: tuple[int, ...]) -> Any:
        return np.broadcast_to(x, shape)

    def concat(self, *xs: Any, axis: int = 0) -> Any:
        return np.concatenate(xs, axis)

    def getitem(self, x: Any, index: tuple[Any, ...]) -> Any:
        return np.asarray(x[index])

    def index_set(self, x: Any, v: Any, index: tuple[Any, ...]) -> Any:
        x = x.copy()
        x[index] = v
        return x

    def index_add(self, x: Any, v: Any, index: tuple[Any, ...]) -> Any:
        x = x.copy()
        np.add.at(x, index, v)
        return x

    def matmul(self, x: Any, y: Any) -> Any:
        return self.cast(np.matmul(x, y), x.dtype)
