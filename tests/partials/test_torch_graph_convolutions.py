"""Nodes of convolutions, pooling and padding: the adopted graph has the derivatives of torch's nested backward passes."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from adopted import compare, compare_all, reals

F = torch.nn.functional
Tensor = torch.Tensor


def x(*shape: int, seed: int = 0) -> Tensor:
    return reals(*shape, seed=seed)


CONVOLUTIONS: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "conv1d": (lambda a, w, b: F.conv1d(a, w, b, stride=2, padding=1), (x(2, 3, 6), x(4, 3, 3, seed=1), x(4, seed=2))),
    "conv1d of one sample": (F.conv1d, (x(2, 5), x(3, 2, 2, seed=1))),
    "conv1d of the same size": (lambda a, w: F.conv1d(a, w, padding="same"), (x(1, 2, 5), x(2, 2, 3, seed=1))),
    "conv2d": (
        lambda a, w, b: F.conv2d(a, w, b, groups=2, dilation=2, stride=(1, 2)), (x(2, 2, 5, 4), x(4, 1, 2, 2, seed=1), x(4, seed=2))),
    "conv2d of each channel": (lambda a, w: F.conv2d(a, w, groups=2), (x(1, 2, 3, 3), x(2, 1, 2, 2, seed=1))),
    "conv3d": (F.conv3d, (x(1, 2, 3, 2, 3), x(2, 2, 2, 2, 1, seed=1), x(2, seed=2))),
    "conv_transpose1d": (
        lambda a, w, b: F.conv_transpose1d(a, w, b, stride=2, padding=1),
        (x(2, 2, 3), x(2, 3, 3, seed=1), x(3, seed=2))),
    "conv_transpose2d": (lambda a, w: F.conv_transpose2d(a, w, stride=2, groups=2), (x(1, 2, 2, 3), x(2, 2, 2, 3, seed=1))),
    "conv_transpose3d": (F.conv_transpose3d, (x(1, 2, 2, 1, 2), x(2, 1, 2, 2, 1, seed=1), x(1, seed=2))),
}  # fmt: skip


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_have_the_derivatives_of_torch(name: str) -> None:
    f, arguments = CONVOLUTIONS[name]
    compare_all(f, *arguments)


def penalty(f: Callable[..., Tensor], *which: int) -> Callable[..., Tensor]:
    """The squares of first derivatives."""

    def run(*arguments: Tensor) -> Tensor:
        wanted = [a for k, a in enumerate(arguments) if k in which and a.requires_grad]
        found = torch.autograd.grad(f(*arguments).pow(3).sum(), wanted, create_graph=True)
        return torch.stack([(g * g).sum() for g in found]).sum()

    return run


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_recorded_backward_passes_of_convolutions(name: str) -> None:
    f, arguments = CONVOLUTIONS[name]
    compare(penalty(f, 0, 1, 2), *arguments, orders=2)
    for k in range(len(arguments)):
        compare(penalty(f, k), *arguments, orders=2)
        compare(penalty(f, k), *[a if j == k else a.detach() for j, a in enumerate(arguments)], orders=2)


def test_a_transposed_convolution_may_have_more_on_one_side() -> None:
    # torch has no second derivative of it: there, the answer without what is more is the oracle, and that is where the bias is alone
    arguments = x(2, 2, 3), x(2, 3, 3, seed=1), x(3, seed=2)
    compare(
        lambda a, w, b: F.conv_transpose1d(a, w, b, stride=3, output_padding=1), *arguments,
        oracle=lambda a, w, b: F.pad(F.conv_transpose1d(a, w, stride=3), (0, 1)) + b[:, None])  # fmt: skip


def test_a_network_of_convolutions() -> None:
    def network(a: Tensor, w: Tensor, b: Tensor, v: Tensor) -> Tensor:
        return F.linear(F.avg_pool1d(torch.tanh(F.conv1d(a, w, b, padding=1)), 2).flatten(1), v)

    compare(network, x(2, 1, 4), x(2, 1, 3, seed=1), x(2, seed=2), x(1, 4, seed=3))


def test_an_array_convolved_with_itself() -> None:
    compare_all(lambda a: F.conv1d(a, a), x(2, 2, 3))


IMAGE, LINE, CUBE = x(1, 2, 4, 5), x(1, 2, 6), x(1, 1, 4, 3, 4)

WINDOWS: dict[str, tuple[Callable[[Tensor], Any], Tensor]] = {
    "max_pool1d": (lambda a: F.max_pool1d(a, 2), LINE),
    "max_pool2d": (lambda a: F.max_pool2d(a, 2, 1, 1), IMAGE),
    "max_pool2d of one sample": (lambda a: F.max_pool2d(a[0], 2), IMAGE),
    "max_pool3d": (lambda a: F.max_pool3d(a, 2), CUBE),
    "avg_pool1d": (lambda a: F.avg_pool1d(a, 3, 2, 1, count_include_pad=False), LINE),
    "avg_pool2d": (lambda a: F.avg_pool2d(a, (2, 3), ceil_mode=True), IMAGE),
    "avg_pool2d by a divisor": (lambda a: F.avg_pool2d(a, 2, 1, divisor_override=3), IMAGE),
    "avg_pool3d": (lambda a: F.avg_pool3d(a, 2), CUBE),
    "adaptive_avg_pool1d": (lambda a: F.adaptive_avg_pool1d(a, 4), LINE),
    "adaptive_avg_pool2d": (lambda a: F.adaptive_avg_pool2d(a, (3, 2)), IMAGE),
    "adaptive_avg_pool2d of all": (lambda a: F.adaptive_avg_pool2d(a, 1), IMAGE),
    "adaptive_avg_pool3d": (lambda a: F.adaptive_avg_pool3d(a, (3, 2, 3)), CUBE),
    "adaptive_max_pool1d": (lambda a: F.adaptive_max_pool1d(a, 4), LINE),
    "adaptive_max_pool2d": (lambda a: F.adaptive_max_pool2d(a, (3, 2)), IMAGE),
    "adaptive_max_pool3d": (lambda a: F.adaptive_max_pool3d(a, 2), CUBE),
    "lp_pool1d": (lambda a: F.lp_pool1d(a.abs() + 0.5, 3, 2), LINE),
    "pad": (lambda a: F.pad(a, (1, 2, 0, 1), value=3.0), IMAGE),
    "pad that cuts": (lambda a: F.pad(a, (-1, 2, 1, -2)), IMAGE),
    "reflection of a line": (lambda a: F.pad(a, (1, 2), mode="reflect"), LINE),
    "reflection of an image": (lambda a: F.pad(a, (1, 2, 3, 0), mode="reflect"), IMAGE),
    "reflection of a cube": (lambda a: F.pad(a, (1, 2, 0, 1, 1, 1), mode="reflect"), CUBE),
    "replication of a line": (lambda a: F.pad(a, (1, 2), mode="replicate"), LINE),
    "replication of an image": (lambda a: F.pad(a, (1, 2, 3, 0), mode="replicate"), IMAGE),
    "replication of a cube": (lambda a: F.pad(a, (1, 2, 0, 1, 1, 1), mode="replicate"), CUBE),
    "circular": (lambda a: F.pad(a, (1, 2, 1, 0), mode="circular"), IMAGE),
    "columns": (lambda a: F.unfold(a, (2, 3), dilation=(2, 1), padding=(0, 1), stride=(1, 2)), IMAGE),
    "columns of one sample": (lambda a: F.unfold(a[0], 2), IMAGE),
    "from columns": (lambda a: F.fold(a.reshape(1, 4, 3), (2, 4), 2), LINE),
    "from columns with padding": (lambda a: F.fold(a.reshape(1, 4, 3), (5, 2), (2, 2), stride=2, padding=(1, 0), dilation=(2, 1)), LINE),
    "local_response_norm": (lambda a: F.local_response_norm(a, 2), IMAGE),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_pooling_and_padding_have_the_derivatives_of_torch(name: str) -> None:
    f, a = WINDOWS[name]
    compare_all(lambda a: f(a * a), a)
    compare(penalty(f, 0), a, orders=2)


SIZES: dict[str, tuple[dict[str, Any], Tensor]] = {
    "nearest line": ({"scale_factor": 2}, LINE),
    "nearest image": ({"size": (5, 3)}, IMAGE),
    "nearest cube": ({"scale_factor": (2, 1, 0.5)}, CUBE),
    "exactly nearest image": ({"scale_factor": 1.5, "mode": "nearest-exact"}, IMAGE),
    "linear": ({"size": 4, "mode": "linear"}, LINE),
    "bilinear": ({"scale_factor": 1.5, "mode": "bilinear"}, IMAGE),
    "bilinear from corner to corner": ({"size": (6, 3), "mode": "bilinear", "align_corners": True}, IMAGE),
    "bicubic": ({"size": (5, 7), "mode": "bicubic"}, IMAGE),
    "trilinear": ({"scale_factor": (1.5, 2, 1), "mode": "trilinear"}, CUBE),
}


@pytest.mark.parametrize("name", SIZES)
def test_resizing_has_the_derivatives_of_torch(name: str) -> None:
    how, a = SIZES[name]
    compare(lambda a: F.interpolate(a * a, **how), a, orders=2)
    compare(penalty(lambda a: F.interpolate(a, **how), 0), a, orders=2)


def test_of_equal_entries_the_one_that_torch_took_has_the_slope() -> None:
    ties = torch.ones(1, 1, 4, 4, dtype=torch.float64, requires_grad=True)
    compare(lambda a: F.max_pool2d(a * a, 2), ties)
