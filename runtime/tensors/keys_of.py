"""Which dispatch keys a new tensor carries.

True only here: the rule from device to key set.  A tensor has the key of its device,
`ADInplaceOrView`, the autograd key of its backend, and the autocast key of its backend
where the model has one (Meta has none).  `requires_grad` does not matter: whether a
gradient is wanted is decided by the kernel at the autograd key.
"""

from functools import cache

from runtime.keys import DispatchKey, KeySet, autograd_key_of, key_of_device


@cache
def keys_of(kind: str) -> KeySet:
    """The keys of a plain tensor on a device type.  Raises `UnknownDevice`."""
    key = key_of_device(kind)
    keys = [key, DispatchKey.ADInplaceOrView, autograd_key_of(key.backend)]
    autocast = f"Autocast{key.backend}"
    if autocast in DispatchKey:
        keys.append(DispatchKey[autocast])
    return KeySet(keys)
