"""Identity of constants and attributes: when two nodes say the same.

True only here: what two values of attributes have in common exactly when they are the
same.

Rules:
- the kind of a value counts: 1, 1.0 and True are three, and so are 0.0 and -0.0; one
  NaN is another;
- what is no plain value (a tensor, a function, a member of an enum) is itself only.
"""

from collections.abc import Hashable
from typing import Any

from runtime.schema.types import Type
from runtime.script.ir import Node

_PLAIN = (int, bool, str, type(None))


def identity(value: Any) -> Hashable:
    """What two values have in common exactly when they are the same."""
    kind = value.__class__
    if kind in _PLAIN:
        return kind, value
    if kind is float:
        return kind, value.hex()
    if kind is complex:
        return kind, value.real.hex(), value.imag.hex()
    if kind is tuple:
        return kind, tuple(map(identity, value))
    return (kind, value) if isinstance(value, Type) else (kind, id(value))


def same_work(node: Node) -> Hashable:
    """What two nodes without blocks have in common exactly when they do the same."""
    attributes = node.attributes
    return (
        node.kind,
        tuple(map(id, node.inputs)),
        tuple([id(each.type) for each in node.outputs]),
        tuple([(name, identity(attributes[name])) for name in sorted(attributes)]),
    )
