"""Programs that mix levels are what they are without checkpointing, when every level has a policy that stores as little as it can."""

from typing import Any

import numpy as np
import pytest
from fuzz.run import many
from programs import CASES, Case
from programs.case import numbers

from nestgrad import Autodiff, Balanced
from nestgrad.errors import NestgradError
from nestgrad.levels import checkpointing

PLAIN = Autodiff.__init__


@pytest.fixture
def thrifty(monkeypatch: pytest.MonkeyPatch) -> None:
    """All levels that are made from now on forget what they can, at once."""

    def init(self: Any, inner: Any, checkpointing: Any = None) -> None:
        PLAIN(self, inner, checkpointing or Balanced(limit=2))

    monkeypatch.setattr(Autodiff, "__init__", init)
    monkeypatch.setattr(checkpointing, "WARM", 1)


def outcome(case: Case) -> Any:
    try:
        return numbers(case.run())
    except NestgradError as error:
        return type(error)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_programs_have_the_same_outcome(case, request):
    plain = outcome(case)
    request.getfixturevalue("thrifty")
    found = outcome(case)
    if isinstance(plain, type):
        assert found is plain
    else:
        for ours, theirs in zip(found, plain, strict=True):
            if case.name.startswith("j"):  # compiled: what is to be computed again runs as it was traced, and rounds otherwise
                np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-14)
            else:
                np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.usefixtures("thrifty")
def test_random_programs_are_right():
    counts, faults = many(range(120))
    assert not faults
    assert counts["derivatives not zero"] > 300
