"""Random programs: lists of steps, each of which takes what it finds some places back."""

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st


def steps_of(unary: Iterable[str], binary: Iterable[str], *, back: int, most: int) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    """Lists of up to ``most`` steps: a name of a function of one or of two values, and how many places back each is, up to ``back``."""
    place = st.integers(0, back)
    one, two = st.tuples(st.sampled_from(sorted(unary)), place), st.tuples(st.sampled_from(sorted(binary)), place, place)
    return st.lists(st.one_of(one, two), min_size=1, max_size=most)
