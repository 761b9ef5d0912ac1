"""A tensor of any class from its parts, past whatever the class has for a constructor.

True only here: where it is decided, once and for all, whether a tensor has a handler,
and to which context it belongs.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import ref

from runtime.schema.codes import DType
from runtime.schema.device import Device
from runtime.tensors.handled import HANDLED, PYTHON, STATE, handler_bits
from runtime.tensors.storage import Storage

if TYPE_CHECKING:
    from runtime.tensors.tensor import Tensor

T = TypeVar("T", bound="Tensor")
Place = tuple[Storage, int, tuple[int, ...]]

# What has the metadata of a tensor asked of its handler, as its `_policy` says: the
# last one does (`runtime.python_dispatch.policies`).
POLICIES: list[Callable[["Tensor", int], None]] = []


def instance_of(
    kind: type[T],
    shape: tuple[int, ...],
    dtype: DType,
    device: Device,
    key_bits: int,
    place: Place,
) -> T:
    """A tensor of class `kind` at a place, without history; nothing is checked.

    `key_bits` are those of a tensor without a handler.
    """
    made: Any = object.__new__(kind)
    made._flat = None
    made._shape = shape
    made._dtype = dtype
    made._device = device
    made.key_bits = (key_bits & ~HANDLED) | handler_bits(kind)
    made._place = place
    made._requires_grad = False
    made._history = None
    made.number = None
    if made.key_bits & PYTHON:
        made._policy = 0
        made._context = context = STATE.context
        if context.noted.get(id(kind)) is not ref(kind):
            context.note(kind)
    return made  # type: ignore[no-any-return]  # it is one now
