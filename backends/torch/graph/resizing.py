"""Nodes that resize images: each axis by a matrix, which torch itself makes of the unit vectors. And their backward passes."""

from collections.abc import Callable
from typing import Any

import torch

from nestgrad.backends.torch.graph.reading import Inputs, Node, Rule
from nestgrad.backends.torch.graph.windows import by_matrix

Tensor = torch.Tensor
Resize = Callable[[Node, Tensor, int, Any], Tensor]
"""Of unit vectors, of shape (1, n, n), a size and a scale, if there is one, to the vectors resized along the last axis."""

_aten = torch.ops.aten
_SCALES = {1: ("scales",), 2: ("scales_h", "scales_w"), 3: ("scales_d", "scales_h", "scales_w")}


def _nearest(node: Node, unit: Tensor, m: int, scale: Any) -> Tensor:
    found: Tensor = _aten.upsample_nearest1d(unit, [m], scale)
    return found


def _nearest_exact(node: Node, unit: Tensor, m: int, scale: Any) -> Tensor:
    found: Tensor = _aten._upsample_nearest_exact1d(unit, [m], scale)
    return found


def _linear(node: Node, unit: Tensor, m: int, scale: Any) -> Tensor:
    found: Tensor = _aten.upsample_linear1d(unit, [m], node.saved("align_corners"), scale)
    return found


def _cubic(node: Node, unit: Tensor, m: int, scale: Any) -> Tensor:
    found: Tensor = _aten.upsample_bicubic2d(unit.unsqueeze(2), [1, m], node.saved("align_corners"), None, scale)
    return found.squeeze(2)


def _resized(resize: Resize, rank: int, back: bool) -> Rule:
    def rule(graph: Any, node: Node, inputs: Inputs) -> Any:
        x, shape = inputs[0], node.shape
        for axis, name in zip(range(len(shape) - rank, len(shape)), _SCALES[rank], strict=True):
            n, m = (shape[axis], x.shape[axis]) if back else (x.shape[axis], shape[axis])
            with torch.no_grad():
                matrix = resize(node, torch.eye(n, dtype=node.dtype, device=node.device)[None], m, node.saved(name))[0]
            x = by_matrix(graph, x, axis, matrix if back else matrix.T)
        return x

    return rule


_WAYS: dict[str, tuple[Resize, int]] = {
    **{f"UpsampleNearest{d}D": (_nearest, d) for d in (1, 2, 3)},
    **{f"UpsampleNearestExact{d}D": (_nearest_exact, d) for d in (1, 2, 3)},
    "UpsampleLinear1D": (_linear, 1),
    "UpsampleBilinear2D": (_linear, 2),
    "UpsampleTrilinear3D": (_linear, 3),
    "UpsampleBicubic2D": (_cubic, 2),
}

RULES: dict[str, Rule] = {
    **{f"{name}Backward0": _resized(resize, rank, False) for name, (resize, rank) in _WAYS.items()},
    **{f"{name}BackwardBackward0": _resized(resize, rank, True) for name, (resize, rank) in _WAYS.items()},
}
