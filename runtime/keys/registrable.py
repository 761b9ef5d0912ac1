"""Where a kernel and where a fallback may be registered.

True only here: a building block (`Dense`, `Sparse`) parses as a name but takes
neither.  Upstream accepts it for kernels; it then reaches no slot and yet answers
"this backend has a kernel", which changes what other slots run.

Undefined as the key of a kernel means the default, CompositeImplicitAutograd; a
fallback there is refused, since no key is left to fall back from.
"""

from typing import Literal

from runtime.errors.key import NotRegistrable
from runtime.keys.aliases import members
from runtime.keys.dispatch_key import SLOTS, DispatchKey


def kernel_key(key: DispatchKey) -> DispatchKey:
    """The key under which a kernel registered at `key` is kept.

    Raises `NotRegistrable` for a building block.
    """
    if key is DispatchKey.Undefined:
        return DispatchKey.CompositeImplicitAutograd
    _refuse_building_block(key, "kernel")
    return key


def fallback_keys(key: DispatchKey) -> tuple[DispatchKey, ...]:
    """The runtime keys that a fallback at `key` covers, in slot order.

    Raises `NotRegistrable` for Undefined and for a building block.
    """
    if key is DispatchKey.Undefined:
        raise NotRegistrable(
            key=key.name,
            subject="fallback",
            reason="undefined",
            instead=("a runtime key", "an alias"),
        )
    _refuse_building_block(key, "fallback")
    return members(key)


def _refuse_building_block(
    key: DispatchKey, subject: Literal["kernel", "fallback"]
) -> None:
    if key.kind == "building_block":
        instances = [each for each in SLOTS if each.functionality == key.functionality]
        raise NotRegistrable(
            key=key.name,
            subject=subject,
            reason="building block",
            instead=tuple(each.name for each in instances),
        )
