"""Torch's own database of operations as an oracle: what it calls, how ours are called with the same, and how both are compared."""

from torch_ops import activations, arrays, elementwise, layers, linalg, products, special, statistics, structure

__all__ = ["activations", "arrays", "elementwise", "layers", "linalg", "products", "special", "statistics", "structure"]
