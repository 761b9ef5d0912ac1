"""The small tensor: NumPy data with a key set."""

from runtime.tensors.tensor import Tensor, tensor

__all__ = ["Tensor", "tensor"]
