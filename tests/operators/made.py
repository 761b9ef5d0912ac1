"""Tensors for the tests of operators: dtypes by letter, and their values.

True only here: one letter a dtype, so that what an operator gives for every dtype is a
word: `"-uilhgfdc"` refuses bool (`-`) and keeps every other dtype.
"""

from typing import Any

import numpy as np

from runtime.schema.codes import Device, DType
from runtime.tensors.elements import numpy_dtype
from runtime.tensors.making import from_numpy
from runtime.tensors.tensor import Tensor

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
BACK = {dtype: letter for letter, dtype in LETTERS.items()}
META = Device("meta")


def made(letter: str, values: Any) -> Tensor:
    """A CPU tensor of these values."""
    return from_numpy(np.array(values).astype(numpy_dtype(LETTERS[letter])))


def tensor(values: Any, dtype: str = "float32") -> Tensor:
    """A CPU tensor of these values, by the name of the dtype."""
    return from_numpy(np.array(values).astype(numpy_dtype(DType.named(dtype))))


def shown(found: Tensor) -> tuple[str, Any]:
    """The dtype and the elements, for comparing whole results."""
    return found.dtype.name, found.numpy().tolist()


def letter_of(found: Tensor) -> str:
    """The letter of a tensor's dtype."""
    return BACK[found.dtype]
