"""The PyTorch backend: plain torch operations on the CPU or a CUDA device, with torch's own autograd out of the way.

No value of this backend requires gradients, so torch records nothing. What differs from NumPy in torch, and is brought into line
here: no axes mean no reduction, slices may step backwards, an int beside an index array is an index array, and operands of
different dtypes may be multiplied as matrices.
"""

from nestgrad.backends.torch.backend import TorchBackend

__all__ = ["TorchBackend"]
