"""Random functions: all six derivatives, with random options, are those of torch."""

import random

import numpy as np
import pytest
from user_functions import inputs, same, tensors, theirs, torched

from nestgrad import functional

SHAPES = ((), (1,), (3,), (2, 2), (2, 3), (1, 3))

ONE = (
    lambda x: x.sin(), lambda x: x.exp(), lambda x: x.tanh(), lambda x: x.pow(3), lambda x: 1 / (1 + x * x), lambda x: (1 + x * x).log(),
    lambda x: x.abs(), lambda x: (x - x.detach()) * x, lambda x: x.sum() * x, lambda x: x.reshape(-1), lambda x: -x, lambda x: 0.5 * x,
    lambda x: (1 + x * x).sqrt(), lambda x: x.prod(),
)  # fmt: skip
ALONG = (
    lambda x: x.cumsum(dim=0), lambda x: x.mean(dim=-1, keepdim=True), lambda x: x.sum(dim=0), lambda x: x[..., :1],
    lambda x: x.softmax(dim=-1), lambda x: x.logsumexp(dim=-1), lambda x: x.amax(dim=0), lambda x: x.log_softmax(dim=0),
)  # fmt: skip
TWO = (lambda x, y: x * y, lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x / (2 + y * y), lambda x, y: x.sum() * y)


def program(rng):
    """A function of some inputs, with some outputs, and the shapes of the inputs."""
    shapes = tuple(rng.choice(SHAPES) for _ in range(rng.choice((1, 1, 2, 3))))
    steps = [(rng.random() < 0.55, rng.randrange(100), rng.randrange(100), rng.randrange(100)) for _ in range(rng.randrange(2, 7))]

    def values(xs):
        known = list(xs)
        for unary, f, i, j in steps:
            x, y = known[i % len(known)], known[j % len(known)]
            if unary or not fit(x.shape, y.shape):
                functions = ONE + ALONG if len(x.shape) else ONE
                known.append(functions[f % len(functions)](x))
            else:
                known.append(TWO[f % len(TWO)](x, y))
        return known

    return shapes, values


def fit(a, b):
    """Whether two shapes broadcast."""
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(tuple(a)), reversed(tuple(b)), strict=False))


def case(seed):
    rng = random.Random(seed)
    shapes, values = program(rng)
    several, n = rng.random() < 0.3, rng.choice((1, 1, 2, 3))

    def field(*xs):
        outs = tuple(values(xs)[-n:])
        return outs[0] if len(outs) == 1 and not several else outs

    def scalar(*xs):
        return sum(y.sin().sum() for y in values(xs)[-n:])

    return rng, inputs(shapes, several=rng.random() < 0.3), field, scalar


@pytest.mark.parametrize("seed", range(24))
def test_the_six_derivatives_of_a_random_function(seed):
    rng, given, field, scalar = case(seed)
    xs = given if isinstance(given, tuple) else (given,)
    drawn = np.random.default_rng(seed)
    like = lambda trees: tuple(drawn.normal(size=x.shape) for x in trees)
    along = like(xs) if isinstance(given, tuple) else like(xs)[0]
    outs = field(*torched(xs))
    back = like(outs) if isinstance(outs, tuple) else like((outs,))[0]
    for convert in (tensors, lambda tree: tree, torched):
        strategy, vectorize = rng.choice(("reverse-mode", "forward-mode")), rng.random() < 0.5
        ours = convert(given)
        found = functional.jacobian(field, ours, strategy=strategy, vectorize=vectorize)
        same(found, theirs("jacobian", field, given), rtol=1e-9)
        found = functional.hessian(scalar, ours, outer_jacobian_strategy=strategy, vectorize=vectorize)
        same(found, theirs("hessian", scalar, given), rtol=1e-9)
        found = functional.jvp(field, ours, convert(along), mode=rng.choice(("forward", "reversed")), create_graph=rng.random() < 0.5)
        same(found, theirs("jvp", field, given, along), rtol=1e-9)
        same(functional.vjp(field, ours, convert(back)), theirs("vjp", field, given, back), rtol=1e-9)
        for name in ("hvp", "vhp"):
            same(getattr(functional, name)(scalar, ours, convert(along)), theirs(name, scalar, given, along), rtol=1e-9)
