"""Indices by arrays on torch, where arrays on adjacent axes go by torch's functions for one axis: NumPy's answers, and its refusals."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from nestgrad.backends import NumpyBackend

torch = pytest.importorskip("torch")

from nestgrad.backends import TorchBackend  # noqa: E402

NUMPY, TORCH = NumpyBackend(), TorchBackend(dtype="float64")


@st.composite
def indices(draw):
    """A shape, and an index that begins with full slices or arrays, perhaps followed by others."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    places = draw(st.lists(st.integers(0, 3), min_size=0, max_size=2))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    index = []
    for n in shape[: draw(st.integers(1, len(shape)))]:
        kind = draw(st.sampled_from(["array", "array", "array", "whole", "part", "int", "one"]))
        index.append({
            "array": rng.integers(-n, n, places), "one": rng.integers(0, n, [1] * len(places)), "whole": slice(None),
            "part": slice(0, n, 2), "int": int(rng.integers(-n, n)),
        }[kind])  # fmt: skip
    return shape, index


def as_torch(index):
    return tuple(torch.from_numpy(part) if isinstance(part, np.ndarray) else part for part in index)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(indices())
def test_entries_are_numpys_and_so_is_the_transpose(made):
    shape, index = made
    x = np.random.default_rng(1).normal(size=shape)
    want = np.asarray(x[tuple(index)])
    here = tuple(NUMPY.index(part) if isinstance(part, np.ndarray) else part for part in index)
    got = TORCH.getitem(torch.from_numpy(x), as_torch(index))
    np.testing.assert_array_equal(got.numpy(), want)
    v = np.random.default_rng(2).normal(size=want.shape)
    put = TORCH.put(torch.from_numpy(v), as_torch(index), tuple(shape)).numpy()
    np.testing.assert_allclose(put, NUMPY.put(v, here, tuple(shape)), rtol=1e-13, atol=1e-14)
    added = TORCH.index_add(torch.from_numpy(x), torch.from_numpy(v), as_torch(index)).numpy()
    np.testing.assert_allclose(added, NUMPY.index_add(x, v, here), rtol=1e-13, atol=1e-14)
    np.testing.assert_array_equal(TORCH.index_add(torch.from_numpy(x), 0.0, as_torch(index)).numpy(), x)


@pytest.mark.parametrize("wrong", [4, -5])
@pytest.mark.parametrize(
    "form", [lambda i: (i,), lambda i: (slice(None), i), lambda i: (i, torch.tensor([0])), lambda i: (torch.tensor([0]), i)]
)
def test_a_position_out_of_range_is_refused_on_its_own_axis(wrong, form):
    """Also where it would be some other entry of the axes together."""
    x, index = torch.zeros(4, 4, 2), form(torch.tensor([1, wrong]))
    with pytest.raises(IndexError, match=f"index {wrong} is out of bounds"):
        TORCH.getitem(x, index)
    with pytest.raises(IndexError, match=f"index {wrong} is out of bounds"):
        TORCH.put(torch.ones(2), index[:2] if len(index) == 2 else (*index, 0), (4, 4))
