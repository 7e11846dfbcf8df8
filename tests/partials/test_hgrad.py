"""``HGrad``: a sequence whose entries are made when they are read."""

import gc
import tracemalloc
import weakref
from collections.abc import Sequence

import numpy as np
import pytest

from nestgrad.backends import NumpyBackend, TorchBackend
from nestgrad.partials.blocks import Block
from nestgrad.partials.hgrad import HGrad
from nestgrad.partials.structure import Leg

B = NumpyBackend()


def elementwise(n: int, order: int, b=B):
    """The derivatives of an elementwise function, one block for each order."""
    data = np.random.default_rng(0).standard_normal((order, n))
    return [Block(b, b.asarray(data[k]), (n,), ((n,),) * (k + 1), (Leg(n, 0, (0,) * (k + 1)),)) for k in range(order)]


def test_it_is_a_sequence_of_what_is_read():
    blocks = elementwise(3, 3)
    hgrad = HGrad(blocks)
    assert isinstance(hgrad, Sequence) and len(hgrad) == 3
    assert [entry.shape for entry in hgrad] == [(3, 3), (3, 3, 3), (3, 3, 3, 3)]
    for k in (0, 1, 2, -1):
        np.testing.assert_array_equal(hgrad[k], blocks[k].dense())
    assert [entry.ndim for entry in reversed(hgrad)] == [4, 3, 2]
    for bad in (3, -4):
        with pytest.raises(IndexError, match=rf"hgrad: got index {bad}; expected 0 to 2, because .* with order=3. Try a higher"):
            hgrad[bad]


def test_a_slice_is_read_later():
    blocks = elementwise(3, 3)
    some = HGrad(blocks, list)[1:]
    assert isinstance(some, HGrad) and some.blocks == tuple(blocks[1:]) and some.wrap is list
    assert [block.order for block in HGrad(blocks)[::-2].blocks] == [3, 1]


def test_reading_twice_gives_the_same_numbers_and_keeps_none():
    hgrad = HGrad(elementwise(4, 2))
    first = hgrad[1]
    first[...] = 7.0
    np.testing.assert_array_equal(hgrad[1], hgrad.blocks[1].dense())
    assert not (hgrad[1] == 7.0).any()
    gone = weakref.ref(hgrad[1])
    assert gone() is None, "what nobody holds is freed"


def test_nothing_dense_is_made_before_it_is_read(peak):
    n = 4096
    hgrad, most = peak(lambda: HGrad(elementwise(n, 3)))
    assert hgrad.nbytes == 3 * 8 * n and [block.size for block in hgrad.blocks] == [n] * 3
    _, told = peak(lambda: (repr(hgrad), hgrad.hdata, hgrad[1:], len(hgrad)))
    assert most < 12 * 8 * n and told < 20_000


def test_what_is_read_is_wrapped_as_the_user_wants_it():
    hgrad = HGrad(elementwise(3, 2), lambda raw: ("mine", raw.shape))
    assert [*hgrad] == [("mine", (3, 3)), ("mine", (3, 3, 3))]


def test_independent_axes_can_be_kept():
    def block(k):
        return Block(B, B.asarray(np.ones((4, 2, *(3,) * k))), (4, 2), ((4, 3),) * k, (Leg(4, 0, (0,) * k), Leg(2, 1, (None,) * k)))

    blocks = [block(1), block(2)]
    kept, plain = HGrad(blocks, keep_batch=True), HGrad(blocks)
    assert [entry.shape for entry in kept] == [(8, 4, 1, 3), (8, 4, 1, 3, 3)]
    assert kept.hdata == ((((4, 3),), ((0, None),), (0,)), (((4, 3),) * 2, ((0, None),) * 2, (0, 1)))
    assert [entry.shape for entry in plain] == [(8, 4, 3), (8, 4, 3, 4, 3)]
    assert plain.hdata == ((((4, 3),), ((None, None),), (0,)), (((4, 3),) * 2, ((None, None),) * 2, (0, 1)))
    assert kept[1:].hdata == kept.hdata[1:]


def test_it_is_equal_to_itself_alone_and_tells_what_it_stores():
    blocks = elementwise(3, 2)
    hgrad = HGrad(blocks)
    assert hgrad == hgrad and hgrad != HGrad(blocks) and len({hgrad, hgrad}) == 1
    told = "order 1: (3, 3), stored 3 of 9 numbers; order 2: (3, 3, 3), stored 3 of 27 numbers"
    assert repr(hgrad) == f"HGrad({told})"
    assert repr(HGrad([Block.zero(B, (), ((2,),))], keep_batch=True)) == "HGrad(order 1: (1, 2), stored 0 of 2 numbers)"
    assert repr(HGrad([])) == "HGrad()"


def test_torch_leaves_get_tensors_of_torch():
    torch = pytest.importorskip("torch")
    b = TorchBackend(dtype="float64")
    hgrad = HGrad([*elementwise(3, 2, b), Block.zero(b, (3,), ((3,),) * 3)])
    assert all(isinstance(entry, torch.Tensor) and not entry.requires_grad for entry in hgrad)
    assert hgrad[1].view(-1).sum() == hgrad.blocks[1].data.sum() and not hgrad[2].any()


def test_repeated_reading_does_not_grow():
    hgrad = HGrad(elementwise(64, 2))
    hgrad[1]
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(12):
            hgrad[1]
        assert tracemalloc.get_traced_memory()[0] < 8 * 64**3 / 10
    finally:
        tracemalloc.stop()
