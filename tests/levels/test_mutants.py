"""Each clause of the level rules is needed, and its loss is noticed: see ``mutants.py``."""

from collections import Counter

import numpy as np
import pytest
from fuzz.run import one
from mutants import MUTANTS, Mutant
from programs import CASES, Case
from programs.case import numbers

from nestgrad.errors import NestgradError

CASE = {case.name[:3]: case for case in CASES}


def fails(case: Case) -> bool:
    """Whether a program is wrong, or raises without reason."""
    try:
        got = numbers(case.run())
    except NestgradError as error:
        return not (case.may_raise or isinstance(error, case.errors or ()))
    return not case.right or not all(np.allclose(g, r, rtol=1e-9) for g, r in zip(got, case.right, strict=True))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_broken_clause_is_noticed(mutant: Mutant, monkeypatch: pytest.MonkeyPatch):
    assert mutant.seen_by or mutant.fuzz or mutant.law
    with monkeypatch.context() as patch:
        mutant.patch(patch)
        missed = [name for name in mutant.seen_by if not fails(CASE[name])]
        assert not missed, "these programs do not notice"
        assert mutant.law is None or not mutant.law()
        assert not mutant.fuzz or any(one(seed, Counter())[0] for seed in range(mutant.fuzz)), "random programs do not notice"
    assert mutant.law is None or mutant.law()


def test_the_programs_pass_as_they_are():
    assert not [case.name for case in CASES if fails(case)]
