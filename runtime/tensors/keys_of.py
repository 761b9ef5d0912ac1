"""Which dispatch keys a new tensor carries.

True only here: the rule from device to key set.  A tensor has the key of its device,
`ADInplaceOrView`, the autograd key of its backend, and the autocast key of its backend
where the model has one (Meta has none).  `requires_grad` does not matter: whether a
gradient is wanted is decided by the kernel at the autograd key.

Tensors made in inference mode carry neither `ADInplaceOrView` nor an autograd key; the
mode itself is autograd's, which sets `inference.active` for its thread.
"""

import threading
from functools import cache

from runtime.keys import DispatchKey, KeySet, autograd_key_of, key_of_device


class _Inference(threading.local):
    """Whether the thread makes inference tensors; a thread starts without."""

    active: bool = False


inference = _Inference()

# (device type, made in inference mode) -> the bits of a fresh tensor
_FRESH: dict[tuple[str, bool], int] = {}


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
    found = _FRESH.get((kind, inference.active))
    return _fresh(kind, inference.active) if found is None else found


def _fresh(kind: str, active: bool) -> int:
    keys = inference_keys_of(kind) if active else keys_of(kind)
    return _FRESH.setdefault((kind, active), keys.bits)


def _autocast(key: DispatchKey) -> tuple[DispatchKey, ...]:
    name = f"Autocast{key.backend}"
    return (DispatchKey[name],) if name in DispatchKey else ()
