"""Dispatch keys: names, aliases, and which registrations each allows.

One object exists per name: keys are compared by identity, ordered by `.value`, and a
copy or an unpickled key is the very same object.  Everything here is computed from the
tables of `runtime.keys.key_tables`.

Kinds:
- `undefined`       the one key `Undefined`: no bits, slot 0;
- `functionality`   one bit, one slot (`Python`);
- `building_block`  one bit, no slot: a functionality that needs a backend (`Sparse`);
- `runtime`         a building block's bit and a backend's, one slot (`SparseCPU`);
- `alias`           no bits, no slot: a name for a set (`Autograd`).

Values are upstream's enum integers.  After the functionalities comes an end marker, and
each per-backend block opens with a start marker; markers are gaps here.  Sorting by
value is the order of a state dump; `SLOTS` is the order of a table dump.

Rules:
- a key is accessed as `DispatchKey.CPU`, `DispatchKey["CPU"]` or `DispatchKey.parse`;
  for an assignment use `parse`: mypy reads `k = DispatchKey[n]` as an alias;
- the members of an alias are exact keys, not bits, so that no cross product is added;
  Undefined, aliases and building blocks are in no alias: where a rule of the table
  covers Undefined, that rule names it;
- every backend has a separate autograd key, which guards that backend, HIP, VE and MTIA
  included; upstream omits these three;
- a building block is a valid name but accepts neither kernel nor fallback.  Upstream
  accepts it for kernels; it then has no slot and still answers "this backend has a
  kernel", which changes the kernels of other slots;
- a kernel at Undefined is one at the default, CompositeImplicitAutograd; a fallback
  there is rejected, since no key is left to fall back from.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NoReturn

from everyorder.runtime.errors.base import nearest
from everyorder.runtime.errors.registration import (
    KeyMisuse,
    LookupFailed,
    UnknownDevice,
)
from everyorder.runtime.keys.key_tables import (
    ALIASES,
    BACKENDS,
    DEVICES,
    FORMER_NAMES,
    FUNCTIONALITIES,
    GUARDS,
    PER_BACKEND,
)

Kind = Literal["undefined", "functionality", "building_block", "runtime", "alias"]

# Backend bits are the low ones, so that a functionality always outranks them.
BACKEND_BITS = (1 << len(BACKENDS)) - 1


class _Keys(type):
    """Makes the class of keys itself the collection of all keys, by value."""

    def __call__(cls, *_: object, **__: object) -> NoReturn:
        raise TypeError("keys cannot be created: use DispatchKey.parse(name)")

    def __getattr__(cls, name: str) -> "DispatchKey":
        # Key names begin with a capital; other names are look-ups of protocols.
        if not name[:1].isupper():
            raise AttributeError(name)
        raise AttributeError(_unknown(name).render(), name=name, obj=cls)

    def __getitem__(cls, name: str) -> "DispatchKey":
        return DispatchKey.parse(name)

    def __iter__(cls) -> Iterator["DispatchKey"]:
        return iter(_BY_NAME.values())

    def __len__(cls) -> int:
        return len(_BY_NAME)

    def __contains__(cls, item: object) -> bool:
        return isinstance(item, DispatchKey) or item in _BY_NAME


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DispatchKey(metaclass=_Keys):
    """One dispatch key; see the module for kinds, order and access."""

    name: str
    value: int
    kind: Kind
    slot: int | None
    bits: int
    backend: str | None
    functionality: str | None

    @classmethod
    def parse(cls, name: str) -> "DispatchKey":
        """Return the key of this name, which is case sensitive.

        Raises `LookupFailed`, with near names, if there is none.
        """
        key = _BY_NAME.get(name)
        if key is None:
            raise _unknown(name)
        return key

    @property
    def is_alias(self) -> bool:
        """Return True if the key only names a set of others."""
        return self.kind == "alias"

    @property
    def is_runtime(self) -> bool:
        """Return True if a dispatch table has a slot for the key."""
        return self.slot is not None

    def __repr__(self) -> str:
        return f"DispatchKey.{self.name}"

    def __str__(self) -> str:
        return self.name

    def __lt__(self, other: "DispatchKey") -> bool:
        return self.value < other.value

    def __le__(self, other: "DispatchKey") -> bool:
        return self.value <= other.value

    def __gt__(self, other: "DispatchKey") -> bool:
        return self.value > other.value

    def __ge__(self, other: "DispatchKey") -> bool:
        return self.value >= other.value

    def __copy__(self) -> "DispatchKey":
        return self

    def __deepcopy__(self, _memo: object) -> "DispatchKey":
        return self

    def __reduce__(self) -> tuple[Callable[[str], "DispatchKey"], tuple[str]]:
        return DispatchKey.parse, (self.name,)


def _make(
    name: str,
    value: int,
    kind: Kind,
    slot: int | None = None,
    bits: int = 0,
    backend: str | None = None,
    functionality: str | None = None,
) -> DispatchKey:
    # `type.__call__` bypasses the metaclass, which rejects all other calls.
    key: DispatchKey = type.__call__(
        DispatchKey, name, value, kind, slot, bits, backend, functionality
    )
    return key


def _generate() -> Iterator[DispatchKey]:
    """Yield all keys by ascending value."""
    yield _make("Undefined", 0, "undefined", slot=0)
    slot = 1
    first_slot: dict[str, int] = {}
    for position, each in enumerate(FUNCTIONALITIES):
        bit = 1 << (len(BACKENDS) + position)
        first_slot[each.name] = slot
        if each.prefix is None:
            yield _make(
                each.name,
                position + 1,
                "functionality",
                slot=slot,
                bits=bit,
                functionality=each.name,
            )
            slot += 1
        else:
            yield _make(
                each.name,
                position + 1,
                "building_block",
                bits=bit,
                functionality=each.name,
            )
            slot += len(BACKENDS)
    # One value is the end marker of the functionalities.
    value = len(FUNCTIONALITIES) + 2
    for each in PER_BACKEND:
        bit = 1 << (len(BACKENDS) + FUNCTIONALITIES.index(each))
        for index, backend in enumerate(BACKENDS):
            # The start marker of the block precedes its first key.
            yield _make(
                f"{each.prefix}{backend}",
                value + 1 + index,
                "runtime",
                slot=first_slot[each.name] + index,
                bits=bit | 1 << index,
                backend=backend,
                functionality=each.name,
            )
        value += 1 + len(BACKENDS)
    for index, alias in enumerate(ALIASES):
        yield _make(alias.name, value + index, "alias")


def _unknown(name: str) -> LookupFailed:
    """Return the error for a name, with candidates compared without regard to case."""
    former = dict(FORMER_NAMES).get(name)
    if former is not None:
        return LookupFailed(code="UnknownKey", name=name, near=(former,))
    folded = {key_name.lower(): key_name for key_name in _BY_NAME}
    near = nearest(name.lower(), tuple(folded))
    return LookupFailed(
        code="UnknownKey", name=name, near=tuple(folded[each] for each in near)
    )


_BY_NAME: dict[str, DispatchKey] = {key.name: key for key in _generate()}
for _key in _BY_NAME.values():
    setattr(DispatchKey, _key.name, _key)

# Index = slot: Undefined, then functionalities ascending with their backends in place.
SLOTS: tuple[DispatchKey, ...] = tuple(
    sorted(
        (key for key in _BY_NAME.values() if key.slot is not None),
        key=lambda key: key.slot or 0,
    )
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

_GUARDED_KEYS: dict[DispatchKey, tuple[DispatchKey, ...]] = {
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
    """Return the runtime keys of `key`, in slot order.

    An alias has its members, a runtime key itself, a building block none.
    """
    if key.is_alias:
        return _MEMBERS[key]
    return (key,) if key.is_runtime else ()


def is_member(key: DispatchKey, alias: DispatchKey) -> bool:
    """Return True if `key` is one of `members(alias)`."""
    if alias.is_alias:
        return key in _MEMBER_SETS[alias]
    return key is alias and key.is_runtime


def guarded_backends(autograd_key: DispatchKey) -> tuple[DispatchKey, ...]:
    """Return the backend keys that this autograd key guards; none for other keys."""
    return _GUARDED_KEYS.get(autograd_key, ())


def autograd_key_of(backend: str | None) -> DispatchKey:
    """Return the autograd key of a backend component; AutogradOther for None.

    Raises `LookupFailed`.
    """
    if backend is None:
        return DispatchKey.AutogradOther
    if backend not in BACKENDS:
        raise LookupFailed(code="UnknownBackend", name=backend, known=BACKENDS)
    return DispatchKey[f"Autograd{backend}"]


def kernel_key(key: DispatchKey) -> DispatchKey:
    """Return the key under which a kernel registered at `key` is stored.

    Raises `KeyMisuse` for a building block.
    """
    if key is DispatchKey.Undefined:
        return DispatchKey.CompositeImplicitAutograd
    if key.kind == "building_block":
        raise _building_block(key, "kernel")
    return key


def fallback_keys(key: DispatchKey) -> tuple[DispatchKey, ...]:
    """Return the runtime keys that a fallback at `key` covers, in slot order.

    Raises `KeyMisuse` for Undefined and for a building block.
    """
    if key is DispatchKey.Undefined:
        raise KeyMisuse(
            code="NotRegistrable",
            key=key.name,
            subject="fallback",
            reason="undefined",
            instead=("a runtime key", "an alias"),
        )
    if key.kind == "building_block":
        raise _building_block(key, "fallback")
    return members(key)


def _building_block(
    key: DispatchKey, subject: Literal["kernel", "fallback"]
) -> KeyMisuse:
    instances = [each for each in SLOTS if each.functionality == key.functionality]
    return KeyMisuse(
        code="NotRegistrable",
        key=key.name,
        subject=subject,
        reason="building block",
        instead=tuple(each.name for each in instances),
    )


# An index is a 32-bit number at most; Python refuses to read thousands of digits.
_DIGITS = 9

# Common names of device types -> the names here.
_DEVICE_SYNONYMS = {
    "gpu": "cuda",
    "nvidia": "cuda",
    "rocm": "hip",
    "amd": "hip",
    "tpu": "xla",
}

_KEYS: dict[str, DispatchKey] = {kind: DispatchKey[key] for kind, key in DEVICES}


def key_of_device(device: str) -> DispatchKey:
    """Return the key of a plain tensor on `device`, such as `"cpu"` or `"cuda:1"`.

    Raises `UnknownDevice` for an unknown type and for a malformed string.
    """
    kind, colon, index = device.partition(":")
    types = tuple(_KEYS)
    if kind not in _KEYS:
        near = _near_devices(kind.strip().lower(), types)
        raise UnknownDevice(device=device, reason="type", known=types, near=near)
    # ASCII digits in their one spelling: "01" and other scripts' digits are rejected.
    if colon and not (
        index.isascii()
        and index.isdecimal()
        and len(index) <= _DIGITS
        and str(int(index)) == index
    ):
        raise UnknownDevice(device=device, reason="form", known=types)
    return _KEYS[kind]


def _near_devices(kind: str, types: tuple[str, ...]) -> tuple[str, ...]:
    """Return the type with this common name, else those that are spelled alike."""
    return (
        (_DEVICE_SYNONYMS[kind],) if kind in _DEVICE_SYNONYMS else nearest(kind, types)
    )
