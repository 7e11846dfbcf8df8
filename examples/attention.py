"""All second derivatives of attention: the Hessian by queries and by keys, which are the values as well, with the blocks between them.

``softmax(X Y / sqrt(15)) Y'`` with ten queries of fifteen numbers and twenty keys. The Hessian of a weighted sum of the answer has 450
rows; it is compared with torch's. The answer's own second derivatives by the queries are ``vmap`` of a Hessian, since a row of the answer
depends on its own query alone: 10 x 15 x 15 x 15 numbers in place of 150 x 150 x 150, of which most would be zeros.
"""

import math

import numpy as np
import torch

import nestgrad as ng
from nestgrad.func import hessian, vmap


def attention(x: ng.Tensor, y: ng.Tensor) -> ng.Tensor:
    """Queries ``x`` of shape (n, d), or one of shape (d,); keys, and values, are the columns of ``y``, of shape (d, m)."""
    return ng.softmax(x @ y / math.sqrt(y.shape[0]), axis=-1) @ y.T


def torchs(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The same, from torch."""
    return torch.nn.functional.scaled_dot_product_attention(x[None], y.T[None], y.T[None])[0]


def main() -> None:
    """Compare the Hessian of a scalar, and those of all entries by the queries, with torch's."""
    rng = np.random.default_rng(0)
    x, y, weights = rng.normal(size=(10, 15)), rng.normal(size=(15, 20)), rng.normal(size=(10, 15))

    blocks = hessian(lambda x, y: (attention(x, y) * weights).sum(), argnums=(0, 1))(x, y)
    whole = np.block([[block.numpy().reshape(n, -1) for block in row] for n, row in zip((150, 300), blocks, strict=True)])

    def weighed(v: torch.Tensor) -> torch.Tensor:
        return (torchs(v[:150].reshape(10, 15), v[150:].reshape(15, 20)) * torch.tensor(weights)).sum()

    point = torch.tensor(np.concatenate([x.ravel(), y.ravel()]))
    right = torch.func.jacrev(torch.func.jacrev(weighed))(point).numpy()
    slip = abs(whole - right).max() / abs(right).max()
    print(f"Hessian {whole.shape}: {slip:.0e} away from torch's, {abs(whole - whole.T).max():.0e} from its transpose")
    assert slip < 1e-13

    by_row = vmap(hessian(attention), in_axes=(0, None))(x, y).numpy()
    keys = torch.tensor(y)
    twice = torch.func.jacrev(torch.func.jacrev(lambda q: torch.softmax(q @ keys / math.sqrt(15), -1) @ keys.T))
    slip = abs(by_row - torch.func.vmap(twice)(torch.tensor(x)).numpy()).max() / abs(by_row).max()
    print(f"second derivatives of each row by its query {by_row.shape}: {slip:.0e} away")
    assert slip < 1e-13


if __name__ == "__main__":
    main()
