"""How exceptions are read: arguments, cause, context, notes, and what C adds.

Each class of exception adds fields of its own in C, like the file name of an `OSError`;
their descriptors stand in the class that adds them.
"""

import builtins
import types
from typing import Any

from harness.heap.known import ABSENT, Known, Parts
from harness.heap.layout import mro_of, namespace_of


def _exception(kind: type) -> Known:
    """An exception with what its C struct adds to that of its base."""
    fields: Parts = []
    for level in reversed(mro_of(kind)):
        if level is object:
            continue
        for name, found in sorted(namespace_of(level).items()):
            kinds = (types.MemberDescriptorType, types.GetSetDescriptorType)
            if type(found) in kinds and name != "__dict__":
                fields.append((name, found.__get__))

    def read(o: Any) -> Parts:
        parts: Parts = []
        for name, getter in fields:
            try:
                value = getter(o)
            except (AttributeError, TypeError):  # it is not set
                value = ABSENT
            if value is not None or name == "args":
                parts.append((name, value))
        return parts

    return Known(parts=read)


def _exceptions() -> dict[type, Known]:
    return {
        kind: _exception(kind)
        for kind in vars(builtins).values()
        if type(kind) is type and issubclass(kind, BaseException)
    }


EXCEPTIONS = _exceptions()
