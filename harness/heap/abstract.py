"""What an abstract base class knows besides its attributes: registrations and caches.

A class made by `abc.ABCMeta` keeps its virtual subclasses, and the answers that it gave
before, where no attribute shows them.  The answers are left out as long as they follow
from bases and registrations: then whoever asks again gets the same.  Answers that do
not follow, or that a `__subclasshook__` gave, are state, for they can be stale.
"""

import _abc  # type: ignore[import-not-found]  # C module without stubs; abc uses it
from typing import Any

from harness.heap.layout import mro_of, namespace_of

_subclasses_of = type.__dict__["__subclasses__"]
_data: type = type(namespace_of(__import__("numbers").Number)["_abc_impl"])


def abstract(kind: type) -> bool:
    """Whether a class keeps registrations."""
    return type(namespace_of(kind).get("_abc_impl")) is _data


def registered(kind: type) -> list[type]:
    """The live virtual subclasses of an abstract class, in no particular order."""
    return _live(_abc._get_dump(kind)[0])


def answers(kind: type) -> tuple[list[type], list[type]]:
    """Cached answers that matter: classes held to be subclasses, and those not."""
    _, yes, no, version = _abc._get_dump(kind)
    positive = _live(yes)
    negative = _live(no) if version == _abc.get_cache_token() else []
    if not positive and not negative:
        return [], []
    for level in mro_of(kind):
        if "__subclasshook__" in namespace_of(level):
            if level is not object:
                return positive, negative
            break
    below = _below(kind)
    return (
        [each for each in positive if not _follows(each, below)],
        [each for each in negative if _follows(each, below)],
    )


def forget(kind: type) -> None:
    """Have a class be asked again; `ABCMeta` does the same for tests of its own."""
    _abc._reset_caches(kind)


def _live(references: Any) -> list[type]:
    return [each for ref in references if (each := ref()) is not None]


def _follows(kind: type, below: set[int]) -> bool:
    return any(id(level) in below for level in mro_of(kind))


def _below(kind: type) -> set[int]:
    """Ids of all classes that are subclasses by bases and registrations alone."""
    found = {id(kind)}
    pending = [kind]
    while pending:
        level = pending.pop()
        more = _subclasses_of(level)
        if abstract(level):
            more += registered(level)
        for each in more:
            if id(each) not in found:
                found.add(id(each))
                pending.append(each)
    return found
