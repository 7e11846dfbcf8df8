"""Random programs that mix levels and styles, with functions and ops of one's own in the place of built-in ones: no wrong number."""

import sys
from pathlib import Path

import pytest

import nestgrad as ng

sys.path.insert(0, str(Path(__file__).parents[1] / "levels"))

from fuzz.run import many, summary
from fuzz.steps import UNARY

PROGRAMS = range(150)


def by_cotangents():
    f = ng.custom_vjp(lambda x: x.sin())
    return f.defvjp(lambda x: (x.sin(), x), lambda x, g: g * x.cos())


def by_tangents():
    f = ng.custom_jvp(lambda x: x.sin())
    return f.defjvp(lambda primals, tangents: (f(*primals), primals[0].cos() * tangents[0]))


def by_the_answer():
    """The tangent, with a rule that reads the saved answer."""
    f = ng.custom_vjp(lambda x: x.tanh())

    def fwd(x):
        y = x.tanh()
        return y, y

    return f.defvjp(fwd, lambda y, g: g * (1.0 - y * y))


def of_two():
    """A sine of a product of two equal arguments' halves: both cotangents come from one run of the rule."""
    f = ng.custom_vjp(lambda x, y: {"sin": (x + y).sin(), "cos": (x + y).cos()})
    f.defvjp(
        lambda x, y: (f(x, y), (x, y)),
        lambda saved, g: (c := g["sin"] * (saved[0] + saved[1]).cos() - g["cos"] * (saved[0] + saved[1]).sin(), c),
    )
    return lambda x: f(x * 0.25, x * 0.75)["sin"]


def op():
    return ng.define("sine(x)", "elementwise", lambda b, x: b.cos(x), value=lambda b, x: b.sin(x))


def special():
    return ng.define(
        "sine(x)",
        "special",
        lambda b, g, x: b.mul(g, b.cos(x)),
        forward=[lambda b, t, x: b.mul(t, b.cos(x))],
        value=lambda b, x: b.sin(x),
    )


CASES = {
    "vjp": ("sin", by_cotangents),
    "jvp": ("sin", by_tangents),
    "saved answer": ("tanh", by_the_answer),
    "two": ("sin", of_two),
    "op": ("sin", op),
    "special": ("sin", special),
}


@pytest.mark.parametrize("case", CASES)
def test_random_programs_are_right(case, monkeypatch):
    kind, make = CASES[case]
    code, _, truth = UNARY[kind]
    monkeypatch.setitem(UNARY, kind, (code, make(), truth))
    counts, faults = many(PROGRAMS, loops=10)
    assert not faults, faults
    assert counts["derivatives not zero"] > 300
    assert counts["raised although they fit"] <= 0.1 * counts["derivatives that fit"], summary(counts)
