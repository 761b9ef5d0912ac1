"""Dispatch keys, sets of them, and what a thread adds to and takes from a call."""

from runtime.keys.aliases import (
    AFTER_ADINPLACEORVIEW,
    AFTER_AUTOGRAD,
    AFTER_FUNCTIONALIZE,
    AUTOCAST_KEYS,
    AUTOGRAD_KEYS,
    AUTOGRAD_KEYS_WITH_ADINPLACEORVIEW,
    AUTOGRADOTHER_BACKENDS,
    DEFAULT_EXCLUDED,
    DEFAULT_INCLUDED,
    FUNCTORCH_KEYS,
    PYTHON_KEYS,
    autograd_key_of,
    guarded_backends,
    is_member,
    members,
)
from runtime.keys.device import key_of_device
from runtime.keys.dispatch_key import BACKEND_BITS, SLOTS, DispatchKey
from runtime.keys.keyset import FULL, KeySet, full_after, mask_index, slot_of
from runtime.keys.local import (
    LOCAL,
    effective,
    exclude_keys,
    force_keys,
    include_keys,
    preserve_keys,
    set_excluded,
    set_included,
)
from runtime.keys.model import BACKENDS, FUNCTIONALITIES
from runtime.keys.registrable import fallback_keys, kernel_key

__all__ = [
    "AFTER_ADINPLACEORVIEW",
    "AFTER_AUTOGRAD",
    "AFTER_FUNCTIONALIZE",
    "AUTOCAST_KEYS",
    "AUTOGRADOTHER_BACKENDS",
    "AUTOGRAD_KEYS",
    "AUTOGRAD_KEYS_WITH_ADINPLACEORVIEW",
    "BACKENDS",
    "BACKEND_BITS",
    "DEFAULT_EXCLUDED",
    "DEFAULT_INCLUDED",
    "FULL",
    "FUNCTIONALITIES",
    "FUNCTORCH_KEYS",
    "LOCAL",
    "PYTHON_KEYS",
    "SLOTS",
    "DispatchKey",
    "KeySet",
    "autograd_key_of",
    "effective",
    "exclude_keys",
    "fallback_keys",
    "force_keys",
    "full_after",
    "guarded_backends",
    "include_keys",
    "is_member",
    "kernel_key",
    "key_of_device",
    "mask_index",
    "members",
    "preserve_keys",
    "set_excluded",
    "set_included",
    "slot_of",
]
