"""The NumPy backend: NumPy's own functions wherever they mean the same, and thin ones elsewhere."""

from nestgrad.backends.numpy.backend import NumpyBackend

__all__ = ["NumpyBackend"]
