"""How one object names another that it refers to: `.name`, `[3]`, `['key']`.

True only here: names are for people.  They are found by identity, by the descriptors of
base classes and without user code; a name that cannot be had that way is `.<Type>`.

How it works: a module, class, function or instance that refers to its own namespace
names it "", and the namespace names its values `.name`, so that steps join to a path.
An instance whose attributes stand in no dict yet gets one when it is asked for a name,
which nobody can tell.
"""

import _thread
import gc
import sys
import types
from collections import deque
from collections.abc import Mapping
from functools import _lru_cache_wrapper
from typing import Any

from harness.heap.flat import thread_dict
from harness.heap.layout import bases_of, module_dict, mro_of, namespace_of

# Attributes of C types that are no members and read without side effects.
_ATTRIBUTES: Mapping[type, tuple[str, ...]] = {
    types.FunctionType: ("__closure__", "__defaults__", "__kwdefaults__"),
    types.MethodType: ("__self__", "__func__"),
    types.BuiltinFunctionType: ("__self__",),
    types.CellType: ("cell_contents",),
    property: ("fget", "fset", "fdel"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
}
_BY_ID = {id(kind): names for kind, names in _ATTRIBUTES.items()}
_NAMESPACE_SLOTS = (types.GetSetDescriptorType, types.MemberDescriptorType)
_SHOWN_KEYS = (str, int, bytes, bool, float, type(None))
_LONGEST_KEY = 40
_SYSTEM = {"posix": "os", "nt": "os"}  # where everybody looks for their names
_base_of = type.__dict__["__base__"].__get__


def reference(owner: Any, child: Any, namespace: bool = False) -> str:
    """How `owner` names `child`; `namespace` says that `owner` is a dict of names."""
    kind = type(owner)
    if issubclass(kind, dict):
        for key, value in [*dict.items(owner)]:
            if value is child:
                if owner is sys.modules:
                    return _SYSTEM.get(key, str(key))
                return f".{key}" if namespace else f"[{_short(key)}]"
            if key is child:
                return f".keys()[{_short(key)}]"
    for base in (list, tuple, deque):
        if issubclass(kind, base):
            for at, member in enumerate([*base.__iter__(owner)]):
                if member is child:
                    return f"[{at}]"
    if issubclass(kind, (set, frozenset)):
        return "[...]"
    for name in _BY_ID.get(id(kind), ()):
        if getattr(owner, name) is child:
            return f".{name}"
    if kind is types.FunctionType and owner.__globals__ is child:
        return ".__globals__"
    if kind is _lru_cache_wrapper and type(child) is not dict:
        return ".__wrapped__" if type(child) is types.FunctionType else "(...)"
    if issubclass(kind, type):
        return _of_class(owner, child)
    if type(child) is dict and _namespace(owner, child) is child:
        return ""
    return f".{_attribute(owner, child) or f'<{type(child).__name__}>'}"


def _of_class(owner: Any, child: Any) -> str:
    if gc.get_referents(namespace_of(owner))[0] is child:
        return ""
    if _base_of(owner) is child:
        return ".__base__"
    if mro_of(owner) is child:
        return ".__mro__"
    if bases_of(owner) is child:
        return ".__bases__"
    return f".<{type(child).__name__}>"


def _namespace(owner: Any, child: dict[Any, Any]) -> object:
    """The namespace of an object that is no class, when `child` may be it."""
    kind = type(owner)
    if issubclass(kind, types.ModuleType):
        return module_dict(owner)
    if issubclass(kind, _thread._local):
        return thread_dict(owner, "__dict__")
    if kind is types.FunctionType:
        # Asking a function for its annotations or attributes makes them.
        parameters = {"return", *owner.__code__.co_varnames}
        return None if parameters.issuperset(child) else child
    for base in mro_of(kind):
        slot = namespace_of(base).get("__dict__")
        if type(slot) in _NAMESPACE_SLOTS:
            return slot.__get__(owner)
    return None


def _attribute(owner: Any, child: Any) -> str | None:
    """The name of the slot or attribute of an instance that holds `child`."""
    kind = type(owner)
    for base in mro_of(kind):
        for name, slot in [*namespace_of(base).items()]:
            if type(slot) is types.MemberDescriptorType and _held(slot, owner) is child:
                return str(name)
    if kind is types.FunctionType:
        return "__annotations__" if type(child) is dict else None
    inner = _namespace(owner, {})
    if type(inner) is dict:
        for name, value in [*inner.items()]:
            if value is child:
                return str(name)
    return None


def _held(slot: types.MemberDescriptorType, owner: Any) -> object:
    try:
        return slot.__get__(owner)
    except AttributeError:
        return None


def _short(key: Any) -> str:
    if issubclass(type(key), type):
        return str(type.__dict__["__name__"].__get__(key))
    if type(key) not in _SHOWN_KEYS:
        return f"<{type(key).__name__}>"
    shown = repr(key)
    return shown if len(shown) <= _LONGEST_KEY else f"{shown[:_LONGEST_KEY]}..."
