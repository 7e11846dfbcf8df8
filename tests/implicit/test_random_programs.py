"""Random programs that mix levels and styles, with a solver in the place of a built-in function: no wrong number."""

import sys
from pathlib import Path

import numpy as np
import pytest

from nestgrad.errors import LevelError
from nestgrad.implicit import root

sys.path.insert(0, str(Path(__file__).parents[1] / "levels"))

from fuzz.run import many, summary
from fuzz.steps import UNARY


def equation(y, a):
    """Zero where y = tanh(a), and not linear in y."""
    apart = y - a.tanh()
    return apart + 0.25 * apart * y * y


def test_random_programs_are_right(monkeypatch):
    code, _, truth = UNARY["tanh"]
    monkeypatch.setitem(UNARY, "tanh", (code, root(lambda a: np.tanh(a.numpy()), equation), truth))
    counts, faults = many(range(1000, 1300), loops=10)
    assert not faults, faults
    assert counts["derivatives not zero"] > 1000
    assert counts["raised although they fit"] <= 0.1 * counts["derivatives that fit"], summary(counts)


def test_a_solution_remembers_what_its_parameter_was_taken_out_of(levels):
    """The parameter is a derivative on no level any more: the solution depends on x, unrecorded, and that is an error, not a zero."""
    f = root(lambda p: p.item() ** 0.5, lambda u, p: u * u - p)
    x = levels(1).tensor(2.0, requires_grad=True)
    u = f((x**3).wrt(x))
    assert not u.tracked_on() and u.marks
    with pytest.raises(LevelError):
        (u * x).wrt(x)
