"""That no case of a user was forgotten: each number has a test."""

import re
from pathlib import Path

RANGES = ((1, 5), (7, 13), (15, 22), (24, 32), (34, 45), (47, 51), (53, 59), (61, 65))
"""The numbers of the cases; those between were taken out before they came here."""


def test_every_case_has_a_test_with_its_number():
    named = {int(n) for path in Path(__file__).parent.glob("test_*.py") for n in re.findall(r"^def test_(\d\d)_", path.read_text(), re.M)}
    assert named == {n for first, last in RANGES for n in range(first, last + 1)}
