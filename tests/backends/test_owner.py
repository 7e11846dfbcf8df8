"""``owner``: whose memory an array is."""

import pytest

from nestgrad.backends import get_backend


@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_views_have_one_owner_and_copies_have_others(name):
    b = get_backend(name)
    x = b.asarray([[1.0, 2.0], [3.0, 4.0]])
    row = b.getitem(x, (1,))
    views = (x, row, b.permute(x, (1, 0)), b.reshape(x, (4,)))
    assert len({b.owner(view) for view in views}) == 1
    kept = [x, b.asarray(x), b.scale(x, 1.0), b.asarray(row)]
    assert len({b.owner(array) for array in kept}) == 4
