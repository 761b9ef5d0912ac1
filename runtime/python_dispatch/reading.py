"""Reading one element of a tensor that is handled: by an operator, so that it is heard.

True only here: what `item()`, `bool()`, `int()`, ... do to such a tensor.  Importing
this module installs it.
"""

from typing import Any

from runtime.hooks import ELEMENT
from runtime.operators.call import core
from runtime.tensors.tensor import Tensor


def read(tensor: Tensor) -> Any:
    """The one element, as the handler gives it."""
    return core._local_scalar(tensor)


ELEMENT.set(read)
