"""Fields of C structs that no attribute shows.

- A *property* remembers whether its docstring is that of its getter, and its name.
- A *weak reference* caches the hash of its target, which is lost if it dies before.
- An *alias* of a generic type, and a union, cache their type parameters.

Two of them are read from memory, at the offset that CPython 3.11 to 3.13 use.  Each is
tried out when this module is imported; where the layout is another one, a field is
read as far as a method without side effects shows it.
"""

import ctypes
import gc
import types
import typing
import weakref
from collections.abc import Callable
from typing import Any

from everyorder.harness.state.layout import (
    ABSENT,
    Parts,
    members,
    namespace_of,
)

_HEAD = object.__basicsize__
_WORD = ctypes.sizeof(ctypes.c_void_p)


def _documented(_o: Any) -> None:
    """Document a getter."""


def _flag_at(o: Any) -> int:
    # Behind fget, fset, fdel, doc and name.
    return ctypes.c_int.from_address(id(o) + _HEAD + 5 * _WORD).value


def _hash_at(o: Any) -> int:
    # Behind the target and the callback; -1 if it is not known.
    return ctypes.c_ssize_t.from_address(id(o) + _HEAD + 2 * _WORD).value


def _flag_is_there() -> bool:
    if property.__basicsize__ < _HEAD + 6 * _WORD:
        return False
    own = property(_documented), property(_documented, doc="own")
    return tuple(map(_flag_at, own)) == (1, 0)


def _hash_is_there() -> bool:
    if weakref.ReferenceType.__basicsize__ < _HEAD + 3 * _WORD:
        return False
    target = type("Target", (), {"__hash__": lambda _: 12345})()
    reference = weakref.ref(target)
    before = _hash_at(reference)
    return before == -1 and hash(reference) == _hash_at(reference) == 12345


_KNOWS_FLAG, _KNOWS_HASH = _flag_is_there(), _hash_is_there()


def generated_doc(o: Any) -> bool | None:
    """Return True if a property has its docstring from its getter; None if unknown."""
    if _KNOWS_FLAG:
        return bool(_flag_at(o))
    if type(o) is not property:  # a copy would be made by the user's class
        return None
    copy = property.getter(o, _documented)
    return _doc_of(copy) is _documented.__doc__


_doc_of: Any = namespace_of(property)["__doc__"].__get__
_attributes_of = members(property, "fget", "fset", "fdel", "__doc__")


def property_fields(o: Any) -> Parts:
    """Return the functions of a property, its docstring and its name."""
    parts: Parts = _attributes_of(o)
    every = gc.get_referents(o)
    if type(o) is not property:  # its attributes and its class come first
        places = [place for place, each in enumerate(every) if each is type(o)]
        every = every[places[0] + 1 :] if places else []
    referents = iter(every)
    following = next(referents, ABSENT)
    for _, value in parts:
        if following is value:
            following = next(referents, ABSENT)
    if following is not ABSENT:
        parts.append(("name", following))
    if _doc_of(o) is not None:
        parts.append(("generated doc", generated_doc(o)))
    return parts


def property_token(o: Any) -> tuple[bool | None, ...]:
    """Return what references do not show of a property: which of them is which."""
    functions = (value is None for _, value in _attributes_of(o))
    return generated_doc(o), *functions


def hash_of_reference(o: Any, target: Any) -> int | None:
    """Return the hash that a weak reference knows, or None.

    That of a living object is 0: it follows from the object, and may derive from an
    address, which is another one in each system.
    """
    if _KNOWS_HASH:
        known = _hash_at(o)
        if known == -1:
            return None
    elif target is not None:
        return None  # asking would cache it
    else:
        try:
            known = weakref.ReferenceType.__hash__(o)
        except TypeError:
            return None
    return known if target is None else 0


def own_parameters(kind: type, *names: str) -> Callable[[Any], Parts]:
    """Return the reader of an alias or a union: attributes, and cached parameters.

    Parameters are computed when they are first asked for.  They are left out if they
    follow from the arguments: these are classes, variables, and aliases of such.
    """

    def read(o: Any) -> Parts:
        parts = attributes(o)
        # The origin, if there is one, and the arguments come first.
        known = gc.get_referents(o)[before:]
        if known and not all(map(_is_usual, arguments_of(o))):
            parts += [("known", each) for each in known]
        return parts

    attributes = members(kind, *names)
    arguments_of = _ARGUMENTS_OF[id(kind)]
    before = 2 if kind is types.GenericAlias else 1
    return read


_ARGUMENTS_OF: dict[int, Any] = {
    id(kind): namespace_of(kind)["__args__"].__get__
    for kind in (types.GenericAlias, types.UnionType)
}
_USUAL = frozenset(
    map(
        id,
        (
            *(type(None), type(...), str, type(typing.Union)),
            *(typing.TypeVar, typing.ParamSpec, typing.TypeVarTuple),
        ),
    )
)


def _is_usual(argument: Any) -> bool:
    kind = type(argument)
    arguments_of = _ARGUMENTS_OF.get(id(kind))
    if arguments_of is not None:
        return all(map(_is_usual, arguments_of(argument)))
    return issubclass(kind, type) or id(kind) in _USUAL
