"""Derivatives of orders 1 to 4 against numerical derivatives of mpmath's own functions, taken with sixty digits.

The oracle shares nothing with the rules. float64 is compared to nearly its precision; the same rules over a backend of fifty digits are
compared to forty, where no wrong constant and no lost term can hide.
"""

from itertools import product

import mpmath
import numpy as np
import pytest

from nestgrad.tensor.handle import apply

mp = mpmath.mp.clone()
mp.dps = 60

# name: (mpmath's function, points, parameters)
UNARY = {
    "neg": (lambda x: -x, (-1.5, 0.7)),
    "reciprocal": (lambda x: 1 / x, (-1.5, 0.3)),
    "square": (lambda x: x**2, (-1.5, 0.0, 0.7)),
    "sqrt": (mp.sqrt, (0.3, 2.0)),
    "rsqrt": (lambda x: 1 / mp.sqrt(x), (0.3, 2.0)),
    "exp": (mp.exp, (-3.0, 0.0, 2.0)),
    "expm1": (mp.expm1, (-3.0, 1e-8, 2.0)),
    "log": (mp.log, (0.2, 1.0, 5.0)),
    "log1p": (mp.log1p, (-0.8, 1e-8, 3.0)),
    "sin": (mp.sin, (-2.0, 0.0, 0.9)),
    "cos": (mp.cos, (-2.0, 0.0, 0.9)),
    "tan": (mp.tan, (-1.2, 0.0, 0.9)),
    "asin": (mp.asin, (-0.9, 0.0, 0.5)),
    "acos": (mp.acos, (-0.9, 0.0, 0.5)),
    "atan": (mp.atan, (-3.0, 0.0, 0.5)),
    "sinh": (mp.sinh, (-2.0, 0.0, 0.9)),
    "cosh": (mp.cosh, (-2.0, 0.0, 0.9)),
    "tanh": (mp.tanh, (-2.0, 0.0, 0.9)),
    "asinh": (mp.asinh, (-3.0, 0.0, 0.5)),
    "acosh": (mp.acosh, (1.2, 4.0)),
    "atanh": (mp.atanh, (-0.9, 0.0, 0.5)),
    "erf": (mp.erf, (-1.5, 0.0, 0.6)),
    "sigmoid": (lambda x: 1 / (1 + mp.exp(-x)), (-4.0, 0.0, 3.0)),
    "softplus": (lambda x: mp.log1p(mp.exp(x)), (-4.0, 0.0, 3.0)),
    "abs": (abs, (-1.5, 0.7)),
    "relu": (lambda x: max(x, mp.mpf(0)), (-1.5, 0.7)),
    "powi": (lambda x: x**3, (-1.5, 0.0, 0.7), {"n": 3}),
    "powi -2": (lambda x: x**-2, (-1.5, 0.7), {"n": -2}),
    "powi 5": (lambda x: x**5, (-1.5, 0.0, 0.7), {"n": 5}),
    "powf": (lambda x: x**2.5, (0.3, 2.0), {"n": 2.5}),
    "powf -0.75": (lambda x: x**-0.75, (0.3, 2.0), {"n": -0.75}),
    "clamp": (lambda x: min(max(x, mp.mpf(-1)), mp.mpf(1)), (-1.5, 0.7, 3.0), {"lo": -1.0, "hi": 1.0}),
}

BINARY = {
    "add": (lambda x, y: x + y, (0.4, -1.1)),
    "sub": (lambda x, y: x - y, (0.4, -1.1)),
    "mul": (lambda x, y: x * y, (0.4, -1.1)),
    "div": (lambda x, y: x / y, (0.4, -1.1)),
    "mul0": (lambda x, y: x * y, (0.4, -1.1)),
    "div0": (lambda x, y: x / y, (0.4, -1.1)),
    "pow": (lambda x, y: x**y, (0.4, -1.1)),
    "powlog": (lambda x, y: x**y * mp.log(x) ** 2, (0.4, -1.1), {"n": 2}),
    "tanh_vjp": (lambda x, y: x * (1 - y**2), (0.4, -0.6)),
    "maximum": (lambda x, y: max(x, y), (0.4, -1.1)),
    "minimum": (lambda x, y: min(x, y), (0.4, -1.1)),
    "unit": (lambda x, y: x / y, (0.4, 1.1)),
}


def _softmax(x):
    e = [mp.exp(v) for v in x]
    return [v / sum(e) for v in e]


def _rows(x, n):
    return [x[k : k + n] for k in range(0, len(x), n)]


def _matmul(x, y, n, m):
    """Of flat lists: x of n columns, y of m columns."""
    return [sum(a * b for a, b in zip(row, column, strict=True)) for row in _rows(x, n) for column in zip(*_rows(y, m), strict=True)]


# name: (mpmath's function of flat lists, shapes, parameters); differentiated along a line
ARRAYS = {
    "sum": (lambda x: [sum(x[:3]), sum(x[3:])], [(2, 3)], {"axes": (1,)}),
    "mean": (lambda x: [sum(x[:3]) / 3, sum(x[3:]) / 3], [(2, 3)], {"axes": (1,)}),
    "var": (lambda x: [sum((v - sum(x) / 6) ** 2 for v in x) / 5], [(6,)], {"axes": (0,), "correction": 1}),
    "norm": (lambda x: [mp.sqrt(sum(v**2 for v in x))], [(2, 3)], {"axes": (0, 1)}),
    "prod": (lambda x: [mp.fprod(x[:5])], [(5,)], {"axes": (0,)}),
    "amax": (lambda x: [max(x)], [(6,)], {"axes": (0,)}),
    "amin": (lambda x: [min(x)], [(6,)], {"axes": (0,)}),
    "logsumexp": (lambda x: [mp.log(sum(map(mp.exp, x[:3]))), mp.log(sum(map(mp.exp, x[3:])))], [(2, 3)], {"axes": (1,)}),
    "softmax": (lambda x: [*_softmax(x[:3]), *_softmax(x[3:])], [(2, 3)], {"axis": 1}),
    "log_softmax": (lambda x: [mp.log(v) for v in [*_softmax(x[:3]), *_softmax(x[3:])]], [(2, 3)], {"axis": 1}),
    "matmul": (lambda x, y: _matmul(x, y, 3, 2), [(2, 3), (3, 2)], {}),
    "linear": (
        lambda x, y, z: [v + z[k % 2] for k, v in enumerate(_matmul(x, y, 3, 2))],
        [(2, 3), (3, 2), (2,)],
        {},
    ),
    "einsum": (
        lambda x, y, z: [sum(x[2 * i + j] * y[j] * z[i] for i in range(3)) for j in range(2)],
        [(3, 2), (2,), (3,)],
        {"subscripts": "ij,j,i->j"},
    ),
}

ORDER = 4


def _numbers(t):
    """Entries in the backend's own digits."""
    return np.asarray(t.b.read(t.value)).reshape(-1).tolist()


def _close(backend, got, want, scale):
    """To 1e-12 of the largest derivative of the case in float64 (some forty roundings at order 4), to 1e-40 with fifty digits."""
    tolerance = mp.mpf("1e-40") if backend.name == "mpmath" else mp.mpf("4e-12")
    for g, w in zip(got, want, strict=True):
        assert abs(mp.mpf(g) - w) <= tolerance * (abs(w) + scale), f"got {g}, expected {mpmath.nstr(w, 20)}"


@pytest.mark.parametrize("case", UNARY)
def test_functions_of_one_number(backend, nest, case):
    f, points, *rest = UNARY[case]
    params = rest[0] if rest else {}
    want = [mp.diffs(f, mp.mpf(p), ORDER) for p in points]
    want = [[mp.mpf(v) for v in derivatives] for derivatives in want]
    x = nest(backend, ORDER).tensor(list(points), requires_grad=True)
    y = apply(case.split()[0], x, **params)
    for k in range(1, ORDER + 1):
        y = x.grad(y.backward())
        _close(backend, _numbers(y), [w[k] for w in want], max(abs(w[k]) for w in want) / 100)


@pytest.mark.parametrize("case", BINARY)
def test_functions_of_two_numbers_and_their_mixed_partials(backend, nest, case):
    f, point, *rest = BINARY[case]
    params = rest[0] if rest else {}
    for n, m in product(range(ORDER + 1), repeat=2):
        if not 0 < n + m <= ORDER:
            continue
        want = mp.diff(f, tuple(map(mp.mpf, point)), (n, m))
        stack = nest(backend, ORDER)
        x, y = (stack.tensor(v, requires_grad=True) for v in point)
        for order in ({x: n, y: m}, {y: m, x: n}):  # in both orders
            z = apply(case, x, y, **params)
            for variable, times in order.items():
                for _ in range(times):
                    z = z.wrt(variable)
            _close(backend, _numbers(z), [want], 1)


@pytest.mark.parametrize("case", ARRAYS)
def test_functions_of_arrays_along_a_line(backend, nest, case):
    f, shapes, params = ARRAYS[case]
    rng = np.random.default_rng(3)
    starts, directions = ([rng.permutation(np.linspace(-1.1, 1.3, int(np.prod(s)))) for s in shapes] for _ in range(2))
    weights = rng.uniform(0.5, 1.5, 6)

    def along(t):
        xs = [[mp.mpf(a) + t * mp.mpf(v) for a, v in zip(start, step, strict=True)] for start, step in zip(starts, directions, strict=True)]
        return sum(mp.mpf(w) * v for w, v in zip(weights, f(*xs), strict=False))

    want = list(mp.diffs(along, 0, ORDER))
    t = nest(backend, ORDER).tensor(0.0, requires_grad=True)
    xs = [
        backend.tensor(start.reshape(s).tolist()) + t * backend.tensor(step.reshape(s).tolist())
        for start, step, s in zip(starts, directions, shapes, strict=True)
    ]
    out = apply(case, *xs, **params)
    y = (out.flatten() * backend.tensor(weights[: out.size].tolist())).sum()
    for k in range(1, ORDER + 1):
        y = y.wrt(t)
        _close(backend, _numbers(y), [want[k]], max(map(abs, want)))


def test_there_are_forty_ops():
    assert len({case.split()[0] for case in [*UNARY, *BINARY, *ARRAYS]}) >= 40
