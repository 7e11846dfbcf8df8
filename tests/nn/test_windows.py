"""Windows: ``sliding_window_view`` is NumPy's, ``unfold`` and ``fold`` are torch's."""

import numpy as np
import pytest
import torch
from ladder import agree

import nestgrad as ng
from nestgrad.errors import ArgumentError, ShapeError

BACKENDS = {"numpy": ng.NumpyBackend(), "torch": ng.TorchBackend(dtype="float64")}
RNG = np.random.default_rng(0)
view = np.lib.stride_tricks.sliding_window_view

# shape of the image, options
FOLDS = {
    "plain": ((1, 2, 4, 3), {"kernel_size": 2}),
    "no samples": ((2, 4, 3), {"kernel_size": (2, 3)}),
    "strided": ((2, 1, 5, 4), {"kernel_size": 2, "stride": (2, 1), "padding": (1, 0)}),
    "dilated": ((1, 1, 5, 4), {"kernel_size": (2, 2), "dilation": (2, 1), "padding": 1, "stride": 2}),
}
every_fold = pytest.mark.parametrize("shape, options", FOLDS.values(), ids=FOLDS)


@pytest.fixture(params=BACKENDS)
def base(request):
    return BACKENDS[request.param]


@pytest.mark.parametrize("window, axis", [((2, 2, 1), None), (2, 1), ((2,), (0,)), ((1, 3), (2, 0)), ((3, 2), (-1, 1)), ((), ())])
def test_windows_are_numpys(window, axis, base):
    x = RNG.normal(size=(3, 4, 5))
    np.testing.assert_array_equal(ng.sliding_window_view(base.tensor(x), window, axis).numpy(), view(x, window, axis))


@pytest.mark.parametrize("axis, size, step", [(0, 2, 1), (1, 2, 2), (-1, 5, 3), (2, 1, 4)])
def test_unfolding_an_axis_is_torchs(axis, size, step, base):
    x = RNG.normal(size=(3, 4, 5))
    np.testing.assert_array_equal(base.tensor(x).unfold(axis, size, step).numpy(), torch.tensor(x).unfold(axis, size, step).numpy())
    agree(base, lambda m, x: (x.unfold(axis, size, step).sin() ** 2).sum(), [x], 2)


@every_fold
def test_columns_of_images_are_torchs(shape, options, base):
    x = RNG.normal(size=shape)
    columns = torch.nn.functional.unfold(torch.tensor(x), **options)
    np.testing.assert_array_equal(ng.nn.unfold(base.tensor(x), **options).numpy(), columns.numpy())
    y = RNG.normal(size=columns.shape)
    want = torch.nn.functional.fold(torch.tensor(y), shape[-2:], **options)
    np.testing.assert_allclose(ng.nn.fold(base.tensor(y), shape[-2:], **options).numpy(), want.numpy(), rtol=1e-13, atol=1e-14)


@every_fold
def test_fold_is_the_transpose_of_unfold(shape, options, base):
    x = base.tensor(RNG.normal(size=shape))
    y = base.tensor(RNG.normal(size=ng.nn.unfold(x, **options).shape))
    left, right = (ng.nn.unfold(x, **options) * y).sum(), (x * ng.nn.fold(y, shape[-2:], **options)).sum()
    assert left.item() == pytest.approx(right.item(), rel=1e-12)


@every_fold
def test_derivatives_to_third_order_are_torchs(shape, options, base):
    agree(base, lambda m, x: m.unfold(x.sin(), **options).sin().sum(), [RNG.normal(size=shape)])
    columns = ng.nn.unfold(ng.tensor(np.ones(shape)), **options).shape
    agree(base, lambda m, y: m.fold(y.sin(), shape[-2:], **options).sin().sum(), [RNG.normal(size=columns)])


def test_vmap_is_the_loop(base):
    xs = RNG.normal(size=(3, 4, 5))
    for f in (lambda x: ng.sliding_window_view(x, (2, 3)).prod((2, 3)).sum(), lambda x: x.unfold(0, 2, 2).sin().sum()):
        g = ng.func.grad(f)
        got = ng.func.vmap(g)(base.tensor(xs)).numpy()
        for k in range(3):
            np.testing.assert_allclose(got[k], g(base.tensor(xs[k])).numpy(), rtol=1e-13, atol=1e-13)


def test_whole_numbers_and_truths_have_windows(base):
    assert base.tensor(np.array([1, 2, 3])).unfold(0, 2, 1).tolist() == [[1, 2], [2, 3]]
    assert ng.sliding_window_view(base.tensor(np.array([True, False])), 1).tolist() == [[True], [False]]


def test_more_windows_than_entries_and_the_other_way_round(base):
    """Windows are added back by what there is less of."""
    for size, step in ((2, 1), (7, 1), (3, 3), (2, 5)):
        x = RNG.normal(size=(2, 8))
        agree(base, lambda m, x, size=size, step=step: (x.unfold(1, size, step).sin() ** 2).sum(), [x], 2)


X = ng.tensor(np.ones((2, 3)))
BAD = {
    "axes": (lambda: ng.sliding_window_view(X, 2), ShapeError,
             r"sliding_window_view: got window shape 2 for axes \(0, 1\); expected an int for each"),
    "twice": (lambda: ng.sliding_window_view(X, (1, 1), (0, 0)), ShapeError,
              r"sliding_window_view: got axis \(0, 0\); expected each axis once"),
    "size": (lambda: ng.sliding_window_view(X, (0, 1)), ArgumentError, r"got window sizes \(0, 1\); expected ints from 1 on"),
    "too large": (lambda: ng.sliding_window_view(X, 4, 1), ShapeError, r"got windows of 4 entries along axis 1 of shape \(2, 3\)"),
    "no int": (lambda: ng.sliding_window_view(X, 1.5, 1), ShapeError, r"got window shape 1.5"),
    "unfold, axis": (lambda: X.unfold(2, 1, 1), ShapeError, r"unfold: got axis 2 of an array with 2 axes"),
    "unfold, size": (lambda: X.unfold(0, 3, 1), ShapeError, r"unfold: got windows of 3 entries along axis 0"),
    "unfold, step": (lambda: X.unfold(0, 1, 0), ArgumentError, r"unfold: got step 0; expected an int from 1 on"),
    "columns, rank": (lambda: ng.nn.unfold(X, 2), ShapeError, r"unfold: got an input of shape \(2, 3\)"),
    "columns, too large": (lambda: ng.nn.unfold(X[None], 3), ShapeError,
                           r"unfold: got an image of \(2, 3\).*not larger than the padded image"),
    "columns, dilation": (lambda: ng.nn.unfold(X[None], 1, dilation=0), ArgumentError, r"unfold: got dilation 0"),
    "fold, rank": (lambda: ng.nn.fold(X[None, None], (2, 3), 2), ShapeError, r"fold: got an input of shape \(1, 1, 2, 3\)"),
    "fold, columns": (lambda: ng.nn.fold(X, (2, 5), (1, 2)), ShapeError, r"fold: got 2 rows and 3 columns.*and 8 columns"),
    "fold, rows": (lambda: ng.nn.fold(X, (1, 5), (1, 3)), ShapeError, r"fold: got 2 rows.*a multiple of 3 rows"),
    "fold, too large": (lambda: ng.nn.fold(X, (1, 1), 2), ShapeError, r"fold: .*0 columns"),
}  # fmt: skip


@pytest.mark.parametrize("call, error, text", BAD.values(), ids=BAD)
def test_bad_input_says_what_is_wrong(call, error, text):
    with pytest.raises(error, match=text):
        call()
