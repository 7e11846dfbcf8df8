"""All first and second partial derivatives of attention, pure and mixed, from the graph that PyTorch recorded.

``scaled_dot_product_attention(X, Y', Y')`` with ten queries of fifteen numbers, and twenty keys that are the values as well. One call
fills in every partial derivative of the 150 numbers of the answer; each is compared with torch's. A row of the answer depends on its own
query alone: that is found out from the graph, and what is zero for this reason is not stored.
"""

import itertools
import warnings

import torch
from torch.nn.functional import scaled_dot_product_attention

import nestgrad as ng

ORDER = 2


def attention(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Queries ``x`` of shape (n, d); keys, and values, are the columns of ``y``, of shape (d, m)."""
    return scaled_dot_product_attention(x, y.T, y.T)


def torchs(x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
    """The same by torch's transforms, by names such as "XY"."""
    first = torch.func.jacrev(attention, argnums=(0, 1))
    second = torch.func.jacfwd(first, argnums=(0, 1))
    found = {"X": first(x, y)[0], "Y": first(x, y)[1]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of its own, when its forward mode is used for the first time
        blocks = second(x, y)
    return found | {one + other: blocks[i][j] for (i, one), (j, other) in itertools.product(enumerate("XY"), repeat=2)}


def main() -> None:
    """Compute them, compare them, and say what is stored."""
    torch.manual_seed(0)
    x, y = torch.randn(10, 15, dtype=torch.float64), torch.randn(15, 20, dtype=torch.float64)
    leaves = {"X": x.requires_grad_(), "Y": y.requires_grad_()}

    z = attention(x, y)
    controller = ng.backward(z, order=ORDER, crossings=True)

    for name, right in torchs(x.detach(), y.detach()).items():
        variables = [leaves[letter] for letter in name]
        partial, _ = controller.fetch_hgrad(variables)
        assert partial.shape == (z.numel(), *(size for leaf in variables for size in leaf.shape))
        slip = float((partial.reshape(right.shape) - right).abs().max() / right.abs().max())
        print(f"{name:2} {tuple(partial.shape)}: {slip:.0e} away from torch's")
        assert slip < 1e-13
        if len(set(name)) == 1:
            assert torch.equal(leaves[name[0]].hgrad[len(name) - 1], partial)  # type: ignore[attr-defined]

    block = x.hgrad.blocks[1]  # type: ignore[attr-defined]
    print(f"by X twice, stored: {block.size} of {150**3} numbers, the second derivatives of each row by its query")
    assert block.size == 10 * 15**3


if __name__ == "__main__":
    main()
