"""`tensor.data`: the elements past autograd, and other elements in their place.

True only here: what has the elements of a tensor and not its version.

| who              | same elements as the tensor | same version | handler is asked    |
|------------------|-----------------------------|--------------|---------------------|
| `x.detach()`     | yes                         | yes          | once                |
| `x.data`         | yes                         | no           | once, by `detach`   |
| `x.data = other` | those of `other`            | no           | never               |
| `x.set_(other)`  | those of `other`            | its version  | as by any operator  |

Rules:
- what is written through `data` is seen by nobody who saved the tensor for a gradient;
- replacing the elements counts as writing to them: who saved the old ones hears of it;
- elements are replaced by some of the same dtype on the same device; the shape may
  become another one only while the tensor has no gradient and came from no operator;
- a wrapper has no elements, neither to give nor to replace; `set_`, which its handler
  did to what it wraps, makes its shape that of another wrapper.
"""

from typing import Any

from runtime.autograd.saved import sharing
from runtime.errors.subclass import DoesNotFit, NotReplaceable
from runtime.keys import AUTOGRAD_KEYS, DispatchKey, KeySet, exclude_keys
from runtime.operators.call import core
from runtime.tensors.arrays import claimed
from runtime.tensors.keys import HANDLED, MODED, PYTHON, is_handled
from runtime.tensors.storage import Storage, WrapperStorage
from runtime.tensors.tensor import Tensor

# What would note a detached tensor as a view.
_RECORDING = AUTOGRAD_KEYS | KeySet([DispatchKey.ADInplaceOrView])
_HANDLED = KeySet.from_bits(HANDLED)


def read_data(tensor: Tensor) -> Tensor:
    """The elements as a leaf without grad, with a version of its own.

    A handler, or a mode, is asked to `detach`, once.  Raises `WrongDetach`.
    """
    if MODED and not tensor.key_bits & PYTHON and is_handled(tensor):
        with exclude_keys(_RECORDING):
            found: Tensor = core.detach(tensor)
    else:
        found = sharing(tensor)
    if found is not tensor:
        storage, offset, strides = claimed(found)
        found._place = _counted_apart(storage), offset, strides
    return found


def write_data(tensor: Tensor, source: Tensor) -> None:
    """Put the elements of another tensor in place of the tensor's, sharing memory.

    No handler is asked.  Raises `DoesNotFit`, `NotReplaceable`.
    """
    asked = "tensor.data = ..."
    check_fit(tensor, source, asked)
    _check_elements(tensor, source, asked)
    version = tensor._version + 1
    storage, offset, strides = claimed(source)
    apart = _counted_apart(storage)
    apart.version = version
    _take(tensor, source, (apart, offset, strides))


def set_source(self: Tensor, source: Tensor) -> Tensor:
    """The kernel of `set_`: the tensor has the storage of `source` from now on.

    Raises `DoesNotFit`, `NotReplaceable`.
    """
    asked = "core::set_.source_Tensor"
    check_fit(self, source, asked)
    if not (_is_bare(self) and _is_bare(source)):
        _check_elements(self, source, asked)
    _take(self, source, claimed(source))
    return self


def check_fit(tensor: Tensor, source: object, asked: str) -> None:
    """Whether a tensor can have the elements of another one in place of its own.

    Raises `DoesNotFit`, `NotReplaceable`.
    """
    if not isinstance(source, Tensor):
        raise DoesNotFit(
            asked=asked, what="type", expected="Tensor", found=type(source).__name__
        )
    for what in ("dtype", "device", "keys"):
        expected, found = _read(tensor, what), _read(source, what)
        if expected != found:
            raise DoesNotFit(asked=asked, what=what, expected=expected, found=found)
    history = tensor._history
    if history is None:
        return
    if history.view is not None:
        raise NotReplaceable(
            asked=asked,
            reason="the tensor is a view, and would be one no more",
            remedy="ask its base, or call `.detach()` on it first",
        )
    kept = history.node is not None or (
        history.extra is not None and history.extra.grad is not None
    )
    if kept and tensor._shape != source._shape:
        raise DoesNotFit(
            asked=asked,
            what="shape",
            expected=f"{tensor._shape}, as its gradient,",
            found=f"{source._shape}",
        )


def _is_bare(tensor: Tensor) -> bool:
    return isinstance(claimed(tensor)[0], WrapperStorage)


def _check_elements(tensor: Tensor, source: Tensor, asked: str) -> None:
    for each in (tensor, source):
        if _is_bare(each):
            raise NotReplaceable(
                asked=asked,
                reason=f"a `{type(each).__name__}` is a wrapper, without elements",
                remedy="replace what it wraps",
            )


def _read(tensor: Tensor, what: str) -> str:
    if what == "keys":
        # Which of them has a handler does not matter: none is asked.
        return str(tensor.keyset - _HANDLED)
    return str(getattr(tensor, f"_{what}"))


def _take(tensor: Tensor, source: Tensor, place: Any) -> None:
    shape = source._shape
    # Together: nothing is called in between.
    tensor._flat, tensor._shape, tensor._place, tensor.number = None, shape, place, None


def _counted_apart(storage: Storage) -> Storage:
    """A storage on the same memory, its version 0 and its own."""
    if isinstance(storage, WrapperStorage):
        return storage.copy()
    return Storage(storage.array, storage.device, storage.dtype, storage.count)
