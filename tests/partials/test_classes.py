"""Classes of axes against a brute force count of entries."""

import itertools
from math import prod

from hypothesis import given, settings, strategies as st

from nestgrad.partials.classes import Classes

ENTRIES = 72


def factored(n):
    """All lists of factors."""
    return [[n]] + [[k, *rest] for k in range(2, n) if n % k == 0 for rest in factored(n // k)]


SIZES = st.sampled_from(factored(ENTRIES))


def strides(classes, axes):
    """The live atoms of a list of axes: how many entries lie within one, its size, and its class."""
    atoms = [root for axis in axes for root in classes.atoms(axis)]
    sizes = [classes.sizes[root] for root in atoms]
    return [(prod(sizes[k + 1 :]), sizes[k], root) for k, root in enumerate(atoms) if not classes.dead(root)]


def cuts(sizes):
    """How many entries lie within one of each axis, and within all from some on."""
    return {*itertools.accumulate([1, *sizes[::-1]], lambda total, n: total * n)}


@settings(deadline=None, derandomize=True)
@given(SIZES, SIZES)
def test_what_two_lists_have_in_common_lives(one, other):
    """Atoms are what lies between two cuts; they live if they fit on both sides."""
    classes = Classes()
    xs, ys = [classes.axis(n) for n in one], [classes.axis(n) for n in other]
    classes.match(xs, ys)
    found = strides(classes, xs)
    assert found == strides(classes, ys)
    every = sorted(cuts(one) | cuts(other))
    askew = any(b % a for a, b in itertools.pairwise(every))
    if not askew:
        assert [stride for stride, _, _ in found] == every[-2::-1]
    for axes, sizes in ((xs, one), (ys, other)):
        for axis, n in zip(axes, sizes, strict=True):
            assert prod(classes.sizes[root] for root in classes.atoms(axis)) == n


@settings(deadline=None, derandomize=True)
@given(st.lists(SIZES, min_size=3, max_size=6))
def test_lists_that_are_matched_one_after_the_other_agree(lists):
    """As arrays of one size do that are reshaped time and again."""
    classes = Classes()
    axes = [[classes.axis(n) for n in sizes] for sizes in lists]
    for xs, ys in itertools.pairwise(axes):
        classes.match(xs, ys)
    live = [{(stride, size): root for stride, size, root in strides(classes, xs)} for xs in axes]
    assert all(own == live[0] for own in live)


def test_a_class_that_comes_apart_does_so_everywhere():
    classes = Classes()
    x, y, z = classes.axis(12), classes.axis(12), [classes.axis(4), classes.axis(3)]
    classes.join(x, y)
    classes.match([x], z)
    assert classes.atoms(y) == classes.atoms(x) == [classes.root(k) for k in z]
    assert [classes.stride(y, root) for root in classes.atoms(y)] == [3, 1]
    classes.kill(z[1])
    assert [classes.dead(root) for root in classes.atoms(x)] == [False, True]


def test_what_does_not_fit_dies_and_what_comes_after_it_lives():
    classes = Classes()
    xs, ys = [classes.axis(n) for n in (2, 2, 6, 5)], [classes.axis(n) for n in (2, 3, 4, 5)]
    classes.match(xs, ys)
    assert [classes.dead(classes.root(k)) for k in xs] == [False, True, True, False]
    assert classes.root(xs[3]) == classes.root(ys[3])
