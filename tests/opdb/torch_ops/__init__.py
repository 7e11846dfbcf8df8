"""Torch's own database of operations as an oracle: what it calls, how ours are called with the same, and how both are compared."""

from torch_ops import arrays, elementwise, products

__all__ = ["arrays", "elementwise", "products"]
