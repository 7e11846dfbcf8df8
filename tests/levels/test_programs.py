"""Programs that mix levels are right, or raise an error that tells why (design section 5)."""

import re

import numpy as np
import pytest
from programs import CASES, Case
from programs.case import numbers

from nestgrad.errors import NestgradError
from nestgrad.levels.base import running

NAMES = [case.name for case in CASES]


def test_every_program_has_its_own_name():
    assert len(set(NAMES)) == len(NAMES) == 230


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_right_or_an_error_that_tells_the_story(case: Case):
    if case.errors:
        with pytest.raises(case.errors, match=case.match):
            case.run()
    else:
        try:
            result = case.run()
        except NestgradError as error:
            assert case.may_raise is not None, f"unreasonable: {error}"
            assert re.search(case.may_raise, str(error)), error
        else:
            _compare(numbers(result), case.right)
    assert running.get() is None


def _compare(got: list[np.ndarray], right: tuple[object, ...]) -> None:
    assert len(got) == len(right)
    for g, r in zip(got, right, strict=True):
        # float64 through at most a few hundred operations; the loops of group D contract
        np.testing.assert_allclose(g, r, rtol=1e-10, atol=1e-12)
        assert np.shape(g) == np.shape(r)
