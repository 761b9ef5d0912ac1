"""Tensors for the tests of operators, and what is compared of them.

True only here: one letter a dtype, so that tests of many dtypes read `for letter in
"hgfd"`.
"""

from typing import Any

import numpy as np

from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.tensors.construction import empty_tensor, from_numpy
from everyorder.runtime.tensors.dtype_info import numpy_dtype
from everyorder.runtime.tensors.tensor import Tensor

Array = np.ndarray[Any, Any]

LETTERS = {
    "b": DType.named("bool"),
    "u": DType.named("uint8"),
    "i": DType.named("int32"),
    "l": DType.named("int64"),
    "h": DType.named("float16"),
    "g": DType.named("bfloat16"),
    "f": DType.named("float32"),
    "d": DType.named("float64"),
    "c": DType.named("complex64"),
}
META = Device("meta")


def of_letter(letter: str, values: Any) -> Tensor:
    """A CPU tensor of these values, by the letter of the dtype."""
    return from_numpy(np.array(values).astype(numpy_dtype(LETTERS[letter])))


def tensor(values: Any, dtype: str = "float32") -> Tensor:
    """A CPU tensor of these values, by the name of the dtype."""
    return from_numpy(np.array(values).astype(numpy_dtype(DType.named(dtype))))


def shown(result: Tensor) -> tuple[str, Any]:
    """The dtype and the elements, for comparing whole results."""
    return result.dtype.name, result.numpy().tolist()


def normal(*shape: int, seed: int = 0) -> Array:
    """Normal numbers, the same for one seed."""
    drawn: Array = np.random.default_rng(seed).standard_normal(shape)
    return drawn


def grid(*shape: int) -> Array:
    """The numbers from 0 on in a shape."""
    return np.arange(int(np.prod(shape))).reshape(shape)


def zeros(*shape: int, dtype: str = "float64") -> Tensor:
    """Zeros on the CPU."""
    return tensor(np.zeros(shape), dtype)


def on_meta(*shape: int) -> Tensor:
    """A shape without elements, of float64."""
    return empty_tensor(shape, LETTERS["d"], META)


def cube() -> Tensor:
    """2 x 3 x 4 numbers."""
    return from_numpy(grid(2, 3, 4))


MATRIX = from_numpy(grid(2, 3))
