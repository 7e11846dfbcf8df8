"""A block is its dense array: by loops over all entries, on every kind of backend."""

import functools
import itertools
import math
from typing import Any

import block_oracle as oracle
import numpy as np
import pytest
from digits_oracle import DIGITS
from hypothesis import given, settings, strategies as st

from nestgrad.backends import NumpyBackend, TorchBackend
from nestgrad.errors import MutatedError, RuleError, ShapeError
from nestgrad.levels.autodiff import Autodiff
from nestgrad.partials.blocks import Block
from nestgrad.partials.structure import Leg, Structure
from nestgrad.tensor.handle import make

BACKENDS = {
    "numpy": NumpyBackend(),
    "torch": TorchBackend(dtype="float64"),
    "fifty digits": DIGITS,
}
KINDS = pytest.mark.parametrize("b", BACKENDS.values(), ids=BACKENDS)
few = settings(max_examples=60, deadline=None, derandomize=True)


def block_of(b: Any, given: Any, seed: int = 0) -> Any:
    data = np.random.default_rng(seed).standard_normal(oracle.stored_shape(*given))
    return data, Block(b, b.asarray(data), *given)


def numbers(b: Any, x: Any) -> Any:
    return np.asarray(b.to_numpy(x), float)


@KINDS
@few
@given(parts=oracle.structures())
def test_the_dense_array_has_each_entry_where_the_loops_put_it(b, parts):
    data, block = block_of(b, parts)
    out_shape, shapes, _ = parts
    dense = numbers(b, block.dense())
    assert dense.shape == (math.prod(out_shape), *itertools.chain(*shapes))
    np.testing.assert_array_equal(dense, oracle.dense(data, *parts))
    assert block.size == data.size and block.dense_size == dense.size and block.order == len(shapes)


@KINDS
@few
@given(parts=oracle.structures())
def test_independent_axes_are_taken_once(b, parts):
    """Each entry of the batched array is the dense entry with every leg's axes at the position of its independent axis."""
    data, block = block_of(b, parts)
    out_shape, shapes, legs = parts
    batched, indeps = block.batched()
    got, want = numbers(b, batched), oracle.dense(data, *parts).reshape((*out_shape, *itertools.chain(*shapes)))
    carried = [[leg.slots[s] for leg in legs if leg.slots[s] is not None] for s in range(len(shapes))]
    rests = [[n for axis, n in enumerate(shape) if axis not in held] for shape, held in zip(shapes, carried, strict=True)]
    free = [leg for leg in legs if leg.out is None]
    of_out = {leg.out: leg for leg in legs if any(axis is not None for axis in leg.slots)}
    independent = [*[of_out.get(axis) for axis in range(len(out_shape))], *free]
    assert got.shape == (math.prod(out_shape), *[leg.size if leg else 1 for leg in independent], *itertools.chain(*rests))
    assert indeps == tuple(tuple(leg.slots[s] if leg else None for leg in independent) for s in range(len(shapes)))
    n = len(independent)
    got = got.reshape((*out_shape, *got.shape[1:]))
    for position in np.ndindex(got.shape):
        at, label, rest = position[: len(out_shape)], position[len(out_shape) : len(out_shape) + n], [*position[len(out_shape) + n :]]
        where = [*at]
        for s, shape in enumerate(shapes):
            for axis in range(len(shape)):
                where.append(label[indeps[s].index(axis)] if axis in indeps[s] else rest.pop(0))
        assert got[position] == want[tuple(where)]


@KINDS
@few
@given(parts=oracle.structures())
def test_the_batched_array_makes_the_block_again(b, parts):
    """On the diagonal of the output: elsewhere it is zero, as the block is."""
    data, block = block_of(b, parts)
    batched, indeps = block.batched()
    again = Block.of_batched(b, batched, parts[0], parts[1], indeps)
    np.testing.assert_array_equal(numbers(b, again.dense()), oracle.dense(data, *parts))
    np.testing.assert_array_equal(numbers(b, again.batched()[0]).ravel(), numbers(b, batched).ravel())
    plain = Block.of_dense(b, block.dense(), parts[0], parts[1])
    assert plain.size == plain.dense_size
    np.testing.assert_array_equal(numbers(b, plain.dense()), oracle.dense(data, *parts))


@KINDS
@few
@given(parts=oracle.structures(), data=st.data())
def test_a_permuted_block_is_the_permuted_array(b, parts, data):
    _, block = block_of(b, parts)
    shapes = parts[1]
    order = tuple(data.draw(st.permutations(range(len(shapes)))))
    starts = np.cumsum([0, *[len(shape) for shape in shapes]])
    axes = [0, *[1 + int(starts[k]) + axis for k in order for axis in range(len(shapes[k]))]]
    turned = block.permuted(order)
    assert turned.shapes == tuple(shapes[k] for k in order) and turned.size == block.size
    np.testing.assert_array_equal(numbers(b, turned.dense()), numbers(b, block.dense()).transpose(axes))
    back = turned.permuted([order.index(k) for k in range(len(shapes))])
    assert back.structure == block.structure
    np.testing.assert_array_equal(numbers(b, back.array()), numbers(b, block.array()))


def test_a_permuted_block_shares_its_numbers():
    b = NumpyBackend()
    block = Block(b, b.asarray(np.arange(24.0).reshape(2, 3, 4)), (2,), ((3,), (2, 4)), (Leg(2, 0, (None, 0)),))
    turned = block.permuted((1, 0))
    assert np.shares_memory(turned.data, block.data) and turned.array().shape == (2, 4, 3)
    assert block.permuted((0, 1)) is block


@KINDS
@few
@given(parts=oracle.structures(same=True), seed=st.integers(0, 9))
def test_distinct_entries_are_all_of_them(b, parts, seed):
    out_shape, shapes, legs = parts
    k = len(shapes)
    _, first = block_of(b, parts, seed)
    turned = [first.permuted(order).array() for order in itertools.permutations(range(k))]
    block = Block(b, functools.reduce(b.add, turned), *parts)
    packed = numbers(b, block.packed())
    lead = [leg.size for leg in legs]
    out_rest = [n for axis, n in enumerate(out_shape) if axis not in [leg.out for leg in legs]]
    n = math.prod(size for axis, size in enumerate(shapes[0]) if axis not in [leg.slots[0] for leg in legs])
    assert packed.shape == (*lead, math.prod(out_rest), math.comb(n + k - 1, k))
    flat = numbers(b, block.array()).reshape(*lead, math.prod(out_rest), *(n,) * k)
    for entry, index in enumerate(oracle.multisets(n, k)):
        np.testing.assert_array_equal(packed[..., entry], flat[(..., *index)])
    again = Block.unpacked(b, b.asarray(packed), out_shape, shapes[0], k, legs)
    np.testing.assert_allclose(numbers(b, again.dense()), numbers(b, block.dense()), rtol=1e-13, atol=1e-13)


def test_packing_spreads_legs_of_some_slots_and_refuses_what_would_get_lost():
    b = NumpyBackend()
    eye = Block(b, b.asarray(np.ones(3)), (), ((3,), (3,)), (Leg(3, None, (0, 0)),))
    assert eye.packed().tolist() == [[[1.0]], [[1.0]], [[1.0]]], "on a leg each position is for itself"
    of_one = Block(b, b.asarray(np.ones((3, 3))), (), ((3,), (3,)), (Leg(3, None, (None, 0)),))
    assert of_one.packed().tolist() == [[1.0] * 6]
    skew = Block(b, b.asarray([[0.0, 1.0], [2.0, np.nan]]), (), ((2,), (2,)))
    with pytest.raises(RuleError, match=r"packed: entries that exchange slots 1 and 2 differ by 1; expected equal ones.* because .*Try"):
        skew.packed()
    assert np.isnan(Block(b, b.asarray([[0.0, 1.0], [1.0, np.nan]]), (), ((2,), (2,))).packed()[0, 2])
    with pytest.raises(ShapeError, match=r"packed: got slots of shapes \(\(2,\), \(3,\)\); expected the same leaf"):
        Block.zero(b, (), ((2,), (3,))).packed()
    with pytest.raises(ShapeError, match=r"unpacked: got an array of shape \(1, 5\); expected \(1, 6\), because"):
        Block.unpacked(b, b.asarray(np.ones((1, 5))), (), (3,), 2)


@KINDS
@few
@given(parts=oracle.structures())
def test_zeros_are_not_stored(b, parts):
    out_shape, shapes, _ = parts
    block = Block.zero(b, out_shape, shapes)
    assert block.is_zero and block.size == block.nbytes == 0
    dense = numbers(b, block.dense())
    assert dense.shape == block.structure.dense_shape and not dense.any()
    batched, indeps = block.batched()
    assert numbers(b, batched).shape == block.structure.batched_shape and indeps == ((None,) * len(out_shape),) * len(shapes)
    assert block.permuted((*range(len(shapes)),)[::-1]).is_zero


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("make", [NumpyBackend, TorchBackend])
def test_zeros_have_the_dtype_that_was_asked_for(make, dtype):
    b = make()
    assert dtype in str(b.dtype(Block.zero(b, (2,), ((3,),), dtype).dense()))


@KINDS
def test_no_axes_and_no_entries(b):
    number = Block(b, b.asarray(3.0), (), ((), ()))
    assert numbers(b, number.dense()).tolist() == [3.0], "a leaf without axes adds none"
    assert numbers(b, number.packed()).tolist() == [[3.0]]
    for out, shapes in (((0,), ((2,), (2,))), ((2,), ((0,), (0,))), ((), ((0, 2),))):
        legs = (Leg(shapes[0][0], None, (0,) * len(shapes)),)
        block = Block(b, b.asarray(np.zeros(oracle.stored_shape(out, shapes, legs))), out, shapes, legs)
        assert numbers(b, block.dense()).shape == (math.prod(out), *itertools.chain(*shapes))
        assert block.dense_size == 0
        assert numbers(b, block.packed()).size == block.size


@KINDS
def test_the_layouts_by_example(b):
    """The first and second derivative of tanh(X @ W), and the mixed one, for X (4, 3) and W (3, 2)."""
    rows, columns = Leg(4, 0, (0, 0)), Leg(2, 1, (None, None))
    xx = Block(b, b.asarray(np.ones((4, 2, 3, 3))), (4, 2), ((4, 3), (4, 3)), (rows, columns))
    assert b.shape(xx.dense()) == (8, 4, 3, 4, 3)
    assert b.shape(xx.batched()[0]) == (8, 4, 1, 3, 3) and xx.batched()[1] == ((0, None), (0, None))
    xw = Block(b, b.asarray(np.ones((4, 2, 3, 3))), (4, 2), ((4, 3), (3, 2)), (Leg(4, 0, (0, None)), Leg(2, 1, (None, 1))))
    assert b.shape(xw.dense()) == (8, 4, 3, 3, 2)
    assert b.shape(xw.batched()[0]) == (8, 4, 2, 3, 3) and xw.batched()[1] == ((0, None), (None, 1))
    assert xw.metadata(keep_batch=True) == (((4, 3), (3, 2)), ((0, None), (None, 1)), (0, 1))
    assert xw.metadata() == (((4, 3), (3, 2)), ((None, None), (None, None)), (0, 1))
    total = Block(b, b.asarray(np.ones((4, 3))), (3,), ((4, 3), (4, 3)), (Leg(4, None, (0, 0)), Leg(3, 0, (1, 1))))
    assert b.shape(total.batched()[0]) == (3, 3, 4) and total.batched()[1] == ((1, 0), (1, 0)), "first the axes of the output"


def test_an_elementwise_derivative_is_as_many_numbers_as_there_are_entries(peak):
    b, n = NumpyBackend(), 4096
    data = b.asarray(np.random.default_rng(0).standard_normal(n))

    def run() -> Any:
        block = Block(b, data, (n,), ((n,),) * 3, (Leg(n, 0, (0, 0, 0)),))
        turned = block.permuted((2, 0, 1))
        return turned, turned.packed()

    (block, packed), most = peak(run)
    assert block.size == n and block.nbytes == 8 * n and block.dense_size == n**4 and packed.shape == (n, 1, 1)
    assert most < 60 * 8 * n, "no array of more than these was made"
    np.testing.assert_array_equal(block.data, data)


def test_an_array_that_was_written_into_is_not_read_again():
    torch = pytest.importorskip("torch")
    b = TorchBackend(dtype="float64")
    block = Block(b, torch.ones(2, 3, dtype=torch.float64), (2,), ((3,),))
    dense = block.dense()
    assert dense.data_ptr() == block.data.data_ptr(), "with nothing to spread it is no copy"
    dense.mul_(2)
    for read in (block.dense, block.batched, block.array, lambda: block.permuted((0,)).dense(), block.packed):
        with pytest.raises(MutatedError, match=r"Block\(order 1, .*: 6 of 6 numbers\): its numbers have been written over.*Try a copy"):
            read()


def test_torch_differentiates_what_is_spread():
    torch = pytest.importorskip("torch")
    b = TorchBackend(dtype="float64")
    x = torch.rand(2, 3, dtype=torch.float64, requires_grad=True)
    legs = (Leg(2, 0, (0, 0)),)

    def read(data: Any) -> Any:
        return Block(b, data, (2,), ((2,), (2, 3)), legs).dense()

    assert torch.autograd.gradcheck(read, (x,)) and torch.autograd.gradgradcheck(read, (x,))


@few
@given(parts=oracle.structures())
def test_values_on_levels_are_spread_by_ops(parts):
    """And differentiated: each number that is stored is read once."""
    data = np.random.default_rng(3).standard_normal(oracle.stored_shape(*parts))
    x = Autodiff(NumpyBackend()).tensor(data, requires_grad=True)
    block = Block(x.b, x.value, *parts)
    dense = make(x.b, block.dense(), x.marks)
    np.testing.assert_array_equal(dense.numpy(), oracle.dense(data, *parts))
    weights = np.random.default_rng(4).standard_normal(dense.shape)
    found = x.grad((dense * weights).sum().backward()).numpy()
    number = oracle.dense(np.arange(1.0, data.size + 1).reshape(data.shape), *parts)  # which of what is stored stands where, from 1 on
    want = [weights[number == k + 1].sum() for k in range(data.size)]
    np.testing.assert_allclose(found.ravel(), want, rtol=1e-13, atol=1e-13)


BAD = {
    "slots": (Leg(2, 0, (0,)), r"Block: leg 0, .* tells of 1 slots; expected 2, because .* Try None"),
    "nothing": (Leg(2, None, (None, None)), r"Block: leg 0, .* has no axes; expected one at least.*Try to leave it out"),
    "size": (Leg(3, 0, (0, 0)), r"Block: leg 0, .* has axis 0 of the output, whose shape is \(2,\); expected an axis of size 3"),
    "range": (Leg(2, 0, (1, 0)), r"Block: leg 0, .* has axis 1 of slot 1, whose shape is \(2,\); expected an axis of size 2"),
    "negative": (Leg(2, 0, (-1, 0)), r"has axis -1 of slot 1.*Try axes that count from 0"),
}


@pytest.mark.parametrize(("leg", "match"), BAD.values(), ids=BAD)
def test_legs_that_do_not_fit_are_refused(leg, match):
    with pytest.raises(ShapeError, match=match):
        Structure((2,), ((2,), (2, 3)), (leg,))


def test_other_things_that_do_not_fit_are_refused():
    b = NumpyBackend()
    with pytest.raises(ShapeError, match=r"leg 1, .* has axis 0 of slot 2, which is in leg 0; expected an axis in one leg.*Try one leg"):
        Structure((2,), ((2,), (2, 3)), (Leg(2, 0, (0, 0)), Leg(2, None, (None, 0))))
    with pytest.raises(ShapeError, match=r"Block: data has shape \(3,\); expected \(2, 3\), because.*Try Block.of_dense"):
        Block(b, b.asarray(np.ones(3)), (2,), ((2, 3),), (Leg(2, 0, (0,)),))
    with pytest.raises(ShapeError, match=r"permuted: got \(0, 0\); expected a permutation of the slots 0 to 1.*Try \(1, 0\)"):
        Block.zero(b, (), ((), ())).permuted((0, 0))
    with pytest.raises(ShapeError, match=r"of_dense: got an array of shape \(3, 2\); expected \(2, 3\).*Try reshape"):
        Block.of_dense(b, b.asarray(np.ones((3, 2))), (2,), ((3,),))
    with pytest.raises(ShapeError, match=r"of_batched: got an array of shape \(2, 1, 3\); expected \(2, 2, 3\)"):
        Block.of_batched(b, b.asarray(np.ones((2, 1, 3))), (2,), ((2, 3),), ((0,),))
