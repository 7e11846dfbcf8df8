"""Three levels, one in the other, in all sixty-four ways: third derivatives of ops of every kind are those of nested reverse mode."""

from itertools import product

import pytest
from operators import Energy, Truth, by_levels, by_transforms

import nestgrad as ng
from nestgrad.ops import TABLE

WORDS = ["".join(word) for word in product("RFBT", repeat=3)]
OPS = ["mul", "div", "tanh", "exp", "pow", "sum", "matmul", "linear", "softmax", "norm", "where", "getitem", "prod", "conv", "max_pool"]


def chosen(op):
    """The sample with the fewest entries among those that have several axes or parameters, so that there is something to get wrong."""
    return min(op.samples.calls[1:], key=lambda sample: (not sample.arrays[0], sum(str(a).count(",") for a in sample.arrays)))


@pytest.mark.parametrize("name", OPS)
def test_triples_of_level_objects(name):
    agree(name, ng.NumpyBackend(), by_levels)


@pytest.mark.parametrize("name", OPS)
def test_triples_of_transforms(name):
    agree(name, ng.TorchBackend(dtype="float64"), by_transforms)


def agree(name, base, way):
    op = TABLE[name]
    f = Energy(base, op, chosen(op), order=3)
    right = Truth(f)
    for word in WORDS:
        assert way(word, f) == pytest.approx(right(word), rel=1e-9, abs=1e-11), f"{word} of {op.signature}"
