"""From a device string to the key of plain tensors there.

True only here: the form of a device string, `type` or `type:index`.  The types are
the table `DEVICES` of `runtime.keys.model`; the index does not matter for a key.
"""

from runtime.errors.base import nearest
from runtime.errors.key import UnknownDevice
from runtime.keys.dispatch_key import DispatchKey
from runtime.keys.model import DEVICES

# An index is a 32-bit number at most; Python refuses to read thousands of digits.
_DIGITS = 9

# What people call types that have another name here.
_SPOKEN = {"gpu": "cuda", "nvidia": "cuda", "rocm": "hip", "amd": "hip", "tpu": "xla"}

_KEYS: dict[str, DispatchKey] = {kind: DispatchKey[key] for kind, key in DEVICES}


def key_of_device(device: str) -> DispatchKey:
    """The key of a plain tensor on `device`, such as `"cpu"` or `"cuda:1"`.

    Raises `UnknownDevice` for an unknown type and for a malformed string.
    """
    kind, colon, index = device.partition(":")
    known = tuple(_KEYS)
    if kind not in _KEYS:
        near = _near(kind.strip().lower(), known)
        raise UnknownDevice(device=device, reason="type", known=known, near=near)
    # ASCII digits in their one spelling: "01" and other scripts' digits are refused.
    if colon and not (
        index.isascii()
        and index.isdecimal()
        and len(index) <= _DIGITS
        and str(int(index)) == index
    ):
        raise UnknownDevice(device=device, reason="form", known=known)
    return _KEYS[kind]


def _near(kind: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """The type that people call so, else those that are spelled alike."""
    return (_SPOKEN[kind],) if kind in _SPOKEN else nearest(kind, known)
