"""Convolution by the kernels of torch: one forward, and one for both transposes, of which each call asks for one answer."""

from typing import Any

import torch

from nestgrad.backends.base import Backend

Ints = tuple[int, ...]

_forward: Any = torch.convolution
_backward: Any = torch.ops.aten.convolution_backward
_INPUT, _WEIGHT = [True, False, False], [False, True, False]


class Convolution(Backend):
    """What only lends its shape to a kernel is a single number, spread out."""

    def conv(self, x: Any, y: Any, strides: Ints, padding: Ints, dilations: Ints, groups: int) -> Any:
        return _forward(x, y, None, strides, padding, dilations, False, (0,) * len(strides), groups)

    def conv_input(self, x: Any, y: Any, spaces: Ints, strides: Ints, padding: Ints, dilations: Ints, groups: int) -> Any:
        like = x.new_empty(()).expand(x.shape[0], groups * y.shape[1], *spaces)
        none = (0,) * len(strides)
        return _backward(x, like, y, None, strides, padding, dilations, False, none, groups, _INPUT)[0]

    def conv_weight(self, x: Any, y: Any, kernel: Ints, strides: Ints, padding: Ints, dilations: Ints, groups: int) -> Any:
        like = x.new_empty(()).expand(y.shape[1], x.shape[1] // groups, *kernel)
        none = (0,) * len(strides)
        return _backward(y, x, like, None, strides, padding, dilations, False, none, groups, _WEIGHT)[1]
