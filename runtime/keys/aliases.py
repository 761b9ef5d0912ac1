"""What stands behind an alias, what an autograd key guards, and the named sets.

True only here: the tables of `runtime.keys.model` become members and sets.  Members
are exact keys, not bits, so no cross product gets in.

Rules:
- Undefined is in no alias; where a table rule covers it, that rule says so;
- an alias is in no alias, not even in itself, and a building block in none either;
- every backend has its own autograd key, which guards that backend, HIP, VE and MTIA
  included; upstream forgets these three.
"""

from runtime.errors.key import UnknownBackend
from runtime.keys.dispatch_key import SLOTS, DispatchKey
from runtime.keys.keyset import KeySet, full_after
from runtime.keys.model import (
    ALIASES,
    AUTOCAST,
    AUTOGRAD,
    AUTOGRADOTHER,
    BACKENDS,
    EXCLUDED_AT_START,
    GUARDS,
    INCLUDED_AT_START,
)

_MEMBERS: dict[DispatchKey, tuple[DispatchKey, ...]] = {
    DispatchKey[alias.name]: tuple(
        key
        for key in SLOTS
        if key.functionality in alias.functionalities
        and key.backend not in alias.without_backends
    )
    for alias in ALIASES
}

_MEMBER_SETS: dict[DispatchKey, frozenset[DispatchKey]] = {
    alias: frozenset(keys) for alias, keys in _MEMBERS.items()
}

_GUARDED: dict[DispatchKey, tuple[DispatchKey, ...]] = {
    guard: tuple(
        key
        for key in SLOTS
        if key.functionality in guarded and guard.backend in (None, key.backend)
    )
    for functionality, guarded in GUARDS
    for guard in SLOTS
    if guard.functionality == functionality
}


def members(key: DispatchKey) -> tuple[DispatchKey, ...]:
    """The runtime keys that `key` stands for, in slot order.

    An alias stands for its members, a runtime key for itself, a building block for
    nothing.
    """
    if key.is_alias:
        return _MEMBERS[key]
    return (key,) if key.is_runtime else ()


def is_member(key: DispatchKey, alias: DispatchKey) -> bool:
    """Whether `key` is one of `members(alias)`."""
    if alias.is_alias:
        return key in _MEMBER_SETS[alias]
    return key is alias and key.is_runtime


def guarded_backends(autograd_key: DispatchKey) -> tuple[DispatchKey, ...]:
    """The backend keys before which this autograd key stands; none for other keys."""
    return _GUARDED.get(autograd_key, ())


def autograd_key_of(backend: str | None) -> DispatchKey:
    """The autograd key of a backend component; AutogradOther where there is none.

    Raises `UnknownBackend`.
    """
    if backend is None:
        return DispatchKey.AutogradOther
    if backend not in BACKENDS:
        raise UnknownBackend(name=backend, known=BACKENDS)
    return DispatchKey[f"Autograd{backend}"]


def _named(*names: str) -> KeySet:
    return KeySet(DispatchKey[name] for name in names)


# With every backend bit: the set is used to ask "which backend keys are these".
AUTOGRADOTHER_BACKENDS = KeySet(guarded_backends(DispatchKey.AutogradOther))
assert AUTOGRADOTHER_BACKENDS.has_all(_named(*AUTOGRADOTHER)), "one table feeds both"

# Without backend bits: these sets are used for removal.
AUTOGRAD_KEYS = _named(*AUTOGRAD)
AUTOGRAD_KEYS_WITH_ADINPLACEORVIEW = AUTOGRAD_KEYS.add(DispatchKey.ADInplaceOrView)
AUTOCAST_KEYS = _named(*AUTOCAST)
PYTHON_KEYS = _named("Python", "PythonTLSSnapshot")
FUNCTORCH_KEYS = _named(
    "FuncTorchBatched",
    "FuncTorchVmapMode",
    "Batched",
    "VmapMode",
    "FuncTorchGradWrapper",
)

# What a kernel of that layer redispatches with.
AFTER_AUTOGRAD = full_after(DispatchKey.AutogradOther)
AFTER_ADINPLACEORVIEW = full_after(DispatchKey.ADInplaceOrView)
AFTER_FUNCTIONALIZE = full_after(DispatchKey.Functionalize).remove(
    DispatchKey.ADInplaceOrView
)

DEFAULT_INCLUDED = _named(*INCLUDED_AT_START)
DEFAULT_EXCLUDED = _named(*EXCLUDED_AT_START)
