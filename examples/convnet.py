"""Products with the Hessian of a small convolutional network, by all of its parameters.

Two convolutions, a pooling layer and a linear one on small pictures, with the cross-entropy of three classes. The loss has 400,000 second
derivatives; a product of all of them with a vector is one pass of forward mode over one of reverse mode. It is compared with torch's
double backward pass over torch's own layers, and with differences of gradients, for which no library is needed.
"""

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray

import nestgrad as ng
from nestgrad.func import grad, jvp

Array = NDArray[np.float64]

SHAPES = {"filters": (6, 2, 3, 3), "offsets": (6,), "second": (8, 6, 3, 3), "weights": (32, 3), "biases": (3,)}


def loss(theta: Mapping[str, ng.Tensor], pictures: Array, kinds: NDArray[np.int64]) -> ng.Tensor:
    """Mean cross-entropy of pictures of shape (n, 2, 8, 8)."""
    h = ng.nn.gelu(ng.nn.conv2d(pictures, theta["filters"], theta["offsets"], padding=1))
    h = ng.nn.max_pool2d(h, 2)
    assert isinstance(h, ng.Tensor)
    h = ng.tanh(ng.nn.conv2d(h, theta["second"], stride=2, padding=1))
    return ng.nn.cross_entropy(ng.linear(h.reshape(len(pictures), -1), theta["weights"], theta["biases"]), kinds)


def torchs(theta: Mapping[str, torch.Tensor], pictures: torch.Tensor, kinds: torch.Tensor) -> torch.Tensor:
    """The same, from torch."""
    f = torch.nn.functional
    h = f.max_pool2d(f.gelu(f.conv2d(pictures, theta["filters"], theta["offsets"], padding=1)), 2)
    h = torch.tanh(f.conv2d(h, theta["second"], stride=2, padding=1))
    return f.cross_entropy(h.flatten(1) @ theta["weights"] + theta["biases"], kinds)


def main() -> None:
    """One product, found in three ways."""
    rng = np.random.default_rng(0)
    pictures, kinds = rng.normal(size=(16, 2, 8, 8)), rng.integers(0, 3, 16)
    values, directions = ({name: 0.3 * rng.normal(size=shape) for name, shape in SHAPES.items()} for _ in range(2))

    gradient = grad(lambda theta: loss(theta, pictures, kinds))
    _, product = jvp(gradient, (values,), (directions,))

    variables = {name: torch.tensor(v, requires_grad=True) for name, v in values.items()}
    first = torch.autograd.grad(torchs(variables, torch.tensor(pictures), torch.tensor(kinds)), list(variables.values()), create_graph=True)
    along = torch.stack([(g * torch.tensor(v)).sum() for g, v in zip(first, directions.values(), strict=True)]).sum()
    right = dict(zip(SHAPES, torch.autograd.grad(along, list(variables.values())), strict=True))

    step = 1e-5
    ahead, behind = (gradient({name: v + sign * step * directions[name] for name, v in values.items()}) for sign in (1, -1))

    slip, gap = 0.0, 0.0
    for name, found in product.items():
        largest = abs(found.numpy()).max()
        slip = max(slip, abs(found.numpy() - right[name].numpy()).max() / largest)
        gap = max(gap, abs(found.numpy() - (ahead[name] - behind[name]).numpy() / (2 * step)).max() / largest)
    count = sum(v.size for v in values.values())
    print(f"Hessian of {count} parameters times a vector: {slip:.0e} away from torch's, {gap:.0e} from differences")
    assert slip < 1e-12
    assert gap < 1e-7  # the square of the step times a fourth derivative, and rounding over the step


if __name__ == "__main__":
    main()
