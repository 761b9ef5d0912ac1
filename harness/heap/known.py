"""What the tables of known types consist of, and the two commonest ways to read.

True only here: no line runs code of a user.  Methods and descriptors are those of a
built-in type, never looked up on an instance.
"""

import sys
import warnings
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

from harness.heap.layout import module_of, namespace_of, qualname_of

Parts: TypeAlias = list[tuple[str, Any]]
Body: TypeAlias = Literal["", "sequence", "dict", "ordered", "set"]


class Absent:
    """The type of `ABSENT`."""


ABSENT = Absent()
"""Stands for a slot that is not set, an empty cell, a dead target."""


class Unreadable(Exception):
    """What an instance holds cannot be seen, although its type is known."""


class Known(NamedTuple):
    """How instances of a type are read: the kind of body, and parts beside it.

    `alone` says that the parts are all, and attributes are nobody's business.
    """

    body: Body = ""
    parts: Callable[[Any], Parts] | None = None
    items: Callable[[Any], Any] | None = None
    alone: bool = False


def members(kind: type, *names: str) -> Callable[[Any], Parts]:
    """Read attributes by the descriptors of a built-in type."""
    getters = [(name, namespace_of(kind)[name].__get__) for name in names]

    def read(o: Any) -> Parts:
        parts: Parts = []
        for name, getter in getters:
            try:
                parts.append((name, getter(o)))
            except AttributeError:
                parts.append((name, ABSENT))
        return parts

    return read


def reduced(kind: type) -> Known:
    """Read by the `__reduce__` of the type itself, which copies what is left."""
    reduce: Any = kind.__reduce__

    def read(o: Any) -> Parts:
        return [("state", reduce(o))]

    def read_quietly(o: Any) -> Parts:
        # Python 3.12 and 3.13 warn that iterators of itertools lose __reduce__.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [("state", reduce(o))]

    late = module_of(kind) == "itertools" and sys.version_info >= (3, 12)
    return Known(parts=read_quietly if late else read)


def exact_name(kind: type) -> str:
    """A class as it is written: `collections.deque`, `dict`."""
    module = module_of(kind)
    name = str.__str__(qualname_of(kind))
    return name if module in ("builtins", "") else f"{module}.{name}"
