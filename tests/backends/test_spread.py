"""``spread`` puts each number at equal positions along the axes that go together, and zeros elsewhere; on every backend."""

import numpy as np
import pytest

from nestgrad.backends import TorchBackend

CASES = {
    "a diagonal": ((3,), (0, 0)),
    "three times": ((2,), (0, 0, 0)),
    "crossed": ((2, 3), (1, 0, 0, 1)),
    "with one apart": ((2, 3, 4), (2, 0, 1, 0)),
    "nothing to spread": ((2, 3), (1, 0)),
    "no axes": ((), ()),
    "no entries": ((0, 2), (0, 1, 0)),
}


@pytest.mark.parametrize(("shape", "along"), CASES.values(), ids=CASES)
def test_numbers_stand_at_equal_positions_and_zeros_elsewhere(b, shape, along):
    data = np.random.default_rng(1).standard_normal(shape).astype(np.float32).astype(float)
    want = np.zeros([shape[k] for k in along])
    for position in np.ndindex(want.shape):
        places = [{i for i, k in zip(position, along, strict=True) if k == axis} for axis in range(len(shape))]
        if all(len(found) == 1 for found in places):
            want[position] = data[tuple(found.pop() for found in places)]
    b.check(b.spread(b.array(data), along), want)


@pytest.mark.parametrize("shape", [(2048,), (1100, 1)])
def test_large_spread_arrays_of_torch_are_as_others(shape):
    """Their memory comes from the system, page by page."""
    torch = pytest.importorskip("torch")
    x = torch.arange(1.0, shape[0] + 1, dtype=torch.float64).view(shape).requires_grad_()
    full = TorchBackend(dtype="float64").spread(x, (0, 0, *range(1, len(shape))))
    assert full.is_contiguous() and torch.equal(full.detach().view(shape[0], -1), torch.diag(x.detach().view(-1)))
    (full * full).sum().backward()
    assert torch.equal(x.grad, 2 * x.detach())
    again = full.detach().clone()
    full.detach().mul_(0).add_(1)
    assert bool((full == 1).all()) and torch.equal(again.view(shape[0], -1), torch.diag(x.detach().view(-1)))


def test_a_stamp_tells_whether_an_array_was_written_into():
    torch = pytest.importorskip("torch")
    b = TorchBackend()
    x = torch.ones(3)
    stamp = b.stamp(x)
    assert not b.changed(x, stamp)
    x.detach()[0] = 2
    assert b.changed(x, stamp)
    with torch.inference_mode():
        counted_by_nobody = torch.ones(3)
    assert not b.changed(counted_by_nobody, b.stamp(counted_by_nobody))
