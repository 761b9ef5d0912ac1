"""Objects whose lifetime may be observable, and what holds them.

The target of a weak reference must not be held by the harness, nor anything that holds
it, up to a class, a module or a global.
"""

import functools
import types
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Any

from everyorder.harness.state.references import children_of

# Functions that steps register, and what holds them.
_HANDED = (
    *(types.FunctionType, types.MethodType, types.CellType, functools.partial),
    *(tuple, list),
)


def is_permanent(o: Any) -> bool:
    """Return True for classes and modules, which are in reference cycles."""
    return issubclass(type(o), (type, types.ModuleType))


def holders_of(
    seeds: AbstractSet[int], owners: Iterable[Any]
) -> tuple[set[int], list[Any]]:
    """Return the ids of the seeds and of all that hold them, and permanent holders.

    Holders are looked for among the owners; what is permanent is held by nothing.
    """
    holders: dict[int, list[Any]] = {}
    for o in owners:
        for child in children_of(o):
            holders.setdefault(id(child), []).append(o)
    pending, observable, permanent = list(seeds), set(seeds), list[Any]()
    while pending:
        for holder in holders.get(pending.pop(), ()):
            if is_permanent(holder):
                permanent.append(holder)
            elif id(holder) not in observable:
                observable.add(id(holder))
                pending.append(id(holder))
    return observable, permanent


def alike(
    observable: AbstractSet[int], owners: Iterable[Any], roots: Iterable[Any]
) -> set[int]:
    """Return the ids of what other steps probably register as one step does these.

    That are functions of the same container, and those of all roots if some root is
    among them.  Else another attempt would find each of them.
    """
    functions = {
        id(child)
        for o in owners
        if id(o) in observable and type(o) in (dict, list, tuple)
        for child in children_of(o)
        if type(child) is types.FunctionType
    }
    plain = [root for root in roots if not is_permanent(root)]
    pending = [] if observable.isdisjoint(map(id, plain)) else plain
    while pending:
        o = pending.pop()
        if id(o) not in functions:
            functions.add(id(o))
            pending += [each for each in children_of(o) if type(each) in _HANDED]
    return functions
