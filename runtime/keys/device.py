"""From a device string to the key of plain tensors there.

True only here: the form of a device string, `type` or `type:index`.  The types are
the table `DEVICES` of `runtime.keys.model`; the index does not matter for a key.
"""

from runtime.errors.key import UnknownDevice
from runtime.keys.dispatch_key import DispatchKey
from runtime.keys.model import DEVICES

# An index is a 32-bit number at most; Python refuses to read thousands of digits.
_DIGITS = 9

_KEYS: dict[str, DispatchKey] = {kind: DispatchKey[key] for kind, key in DEVICES}


def key_of_device(device: str) -> DispatchKey:
    """The key of a plain tensor on `device`, such as `"cpu"` or `"cuda:1"`.

    Raises `UnknownDevice` for an unknown type and for a malformed string.
    """
    kind, colon, index = device.partition(":")
    known = tuple(_KEYS)
    if kind not in _KEYS:
        raise UnknownDevice(device=device, reason="type", known=known)
    # ASCII digits in their one spelling: "01" and other scripts' digits are refused.
    if colon and not (
        index.isascii()
        and index.isdecimal()
        and len(index) <= _DIGITS
        and str(int(index)) == index
    ):
        raise UnknownDevice(device=device, reason="form", known=known)
    return _KEYS[kind]
