"""Saved tensors: what a node keeps for its gradient, and how it is given back.

True only here: versions.  A tensor is saved with the version of its elements; given
back, both must be equal, or the gradient would be computed from other values.

| what      | saved as                       | given back as                          |
|-----------|--------------------------------|----------------------------------------|
| an input  | the tensor itself, its version | the tensor itself                      |
| an output | an alias without history, its  | the alias; where the backward pass is  |
|           | version, the output's number   | recorded, one with the node's history  |

An output is not kept itself: it keeps its node, and node and tensor would be a circle
that no reference count ends.  One that has no gradient keeps no node, and is.
"""

from typing import TYPE_CHECKING

from runtime.autograd.history import History
from runtime.autograd.modes import GRAD
from runtime.errors.autograd import InferenceTensorUsed, SavedTensorModified
from runtime.errors.python_dispatch import WrongDetach, WrongHandlerResult
from runtime.keys import AUTOGRAD_KEYS, LOCAL, DispatchKey
from runtime.keys.local import view_of
from runtime.operators.call import core
from runtime.tensors.arrays import claimed
from runtime.tensors.keys import HANDLED, MODED, PYTHON, is_handled
from runtime.tensors.tensor import Tensor

if TYPE_CHECKING:
    from runtime.autograd.node import Node

TRACKED = DispatchKey.ADInplaceOrView.bits
# The keys that would note a detached tensor as a view.
_RECORDING = AUTOGRAD_KEYS.bits | TRACKED
SavedInput = tuple[Tensor, int]
SavedOutput = tuple[Tensor, int, int | None]


def is_inference(tensor: Tensor) -> bool:
    """Whether the tensor was made in inference mode, so that nobody tracks it."""
    return tensor.key_bits & TRACKED != TRACKED


def save(tensor: Tensor, operator: str) -> SavedInput:
    """An input to be kept.  Raises `InferenceTensorUsed`."""
    if tensor.key_bits & TRACKED != TRACKED:
        raise InferenceTensorUsed(use="saved", operator=operator, shape=tensor.shape)
    place = tensor._place
    return tensor, 0 if place is None else place[0].version


def restore(saved: SavedInput, operator: str, argument: str) -> Tensor:
    """A saved input.  Raises `SavedTensorModified`."""
    tensor, version = saved
    place = tensor._place
    found = 0 if place is None else place[0].version
    if found != version:
        raise modified(saved, operator, argument)
    return tensor


def save_output(tensor: Tensor, number: int | None) -> SavedOutput:
    """An output to be kept by its own node; without number, it has no gradient."""
    if number is None:
        # It does not keep its node, so that it can be kept itself.
        place = tensor._place
        return tensor, 0 if place is None else place[0].version, None
    alias = sharing(tensor)
    return alias, alias._place[0].version, number  # type: ignore[index]  # an alias has a place


def restore_output(saved: SavedOutput, node: "Node", argument: str) -> Tensor:
    """A saved output of `node`.  Raises `SavedTensorModified`."""
    alias, number = checked(saved, node.operator, argument), saved[2]
    if number is None or not GRAD.enabled:
        return alias
    tensor = sharing(alias)
    tensor._history = History(node, number)
    tensor._requires_grad = True
    return tensor


def checked(saved: SavedOutput, operator: str, argument: str) -> Tensor:
    """The alias of a saved output.  Raises `SavedTensorModified`."""
    alias, version, _ = saved
    found = alias._version
    if found != version:
        raise modified((alias, version), operator, argument)
    return alias


def sharing(tensor: Tensor) -> Tensor:
    """Another tensor on the same elements, without history.

    One that is handled is detached by that.  Raises `WrongDetach`.
    """
    if tensor.key_bits & PYTHON or (MODED and is_handled(tensor)):
        return _detached(tensor)
    place = tensor._place or claimed(tensor)
    made = Tensor(
        tensor._flat, tensor.shape, tensor.dtype, tensor.device, tensor.key_bits
    )
    made._place = place
    return made


def _detached(tensor: Tensor) -> Tensor:
    """What a handler makes of `detach`; a plain tensor where it is switched off."""
    view = LOCAL.view
    if not is_handled(tensor):
        storage, offset, strides = claimed(tensor)
        bits = tensor.key_bits & ~HANDLED
        made = Tensor(None, tensor._shape, tensor._dtype, tensor._device, bits)
        made._place = storage, offset, strides
        return made
    LOCAL.view = view_of(view.included, view.excluded | _RECORDING)
    try:
        found: Tensor = core.detach(tensor)
    except WrongHandlerResult as error:
        raise WrongDetach(
            handler=error.handler, operator="autograd", found=error.problem
        ) from None
    finally:
        LOCAL.view = view
    return found


def modified(saved: SavedInput, operator: str, argument: str) -> SavedTensorModified:
    """The error that a saved tensor was written to."""
    tensor, version = saved
    return SavedTensorModified(
        operator=operator,
        argument=argument,
        shape=tensor.shape,
        dtype=str(tensor.dtype),
        expected=version,
        found=tensor._version,
    )
