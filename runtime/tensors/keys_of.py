"""Which dispatch keys a new tensor carries.

True only here: the rule from device to key set.  A tensor has the key of its device,
`ADInplaceOrView`, the autograd key of its backend, and the autocast key of its backend
where the model has one (Meta has none).  `requires_grad` does not matter: whether a
gradient is wanted is decided by the kernel at the autograd key.

Tensors made in inference mode carry neither `ADInplaceOrView` nor an autograd key; the
mode itself is autograd's, which sets `inference.active` for its thread.  Every call
that makes a tensor asks for the mode, and nearly no process has a thread in it:
`INFERRING`, which all threads share, says so at a fifth of the cost.
"""

import threading
from functools import cache
from typing import Any
from weakref import ref

from runtime.keys import DispatchKey, KeySet, autograd_key_of, key_of_device

# A `Presence` for each time that a thread has entered inference mode.
INFERRING: set[ref[Any]] = set()


class _Inference(threading.local):
    """Whether the thread makes inference tensors; a thread starts without.

    Whoever sets it holds a `Presence` in `INFERRING` as long.
    """

    active: bool = False


inference = _Inference()

# device type -> the bits of a fresh tensor, outside and inside of inference mode
_FRESH: dict[str, int] = {}
_FRESH_INFERENCE: dict[str, int] = {}


@cache
def keys_of(kind: str) -> KeySet:
    """The keys of a plain tensor on a device type.  Raises `UnknownDevice`."""
    key = key_of_device(kind)
    keys = [key, DispatchKey.ADInplaceOrView, autograd_key_of(key.backend)]
    return KeySet([*keys, *_autocast(key)])


@cache
def inference_keys_of(kind: str) -> KeySet:
    """The keys of a tensor made in inference mode.  Raises `UnknownDevice`."""
    key = key_of_device(kind)
    return KeySet([key, *_autocast(key)])


def fresh_key_bits(kind: str) -> int:
    """The bits of a tensor that this thread makes now on a device type.

    Raises `UnknownDevice`.
    """
    active = bool(INFERRING) and inference.active
    found = (_FRESH_INFERENCE if active else _FRESH).get(kind)
    return _fresh(kind, active) if found is None else found


def _fresh(kind: str, active: bool) -> int:
    if active:
        return _FRESH_INFERENCE.setdefault(kind, inference_keys_of(kind).bits)
    return _FRESH.setdefault(kind, keys_of(kind).bits)


def _autocast(key: DispatchKey) -> tuple[DispatchKey, ...]:
    name = f"Autocast{key.backend}"
    return (DispatchKey[name],) if name in DispatchKey else ()
