"""Dispatch keys: interned names with a value, bits and, for most, a slot.

True only here: one object exists per name.  Keys are compared by identity, ordered
by `.value`, and a copy or an unpickled key is the very same object.

Kinds:
- `undefined`       the one key `Undefined`: no bits, slot 0;
- `functionality`   one bit, one slot (`Python`);
- `building_block`  one bit, no slot: a functionality that needs a backend (`Sparse`);
- `runtime`         a building block's bit and a backend's, one slot (`SparseCPU`);
- `alias`           no bits, no slot: a name for a set (`Autograd`).

Values are upstream's enum integers.  After the functionalities comes an end marker,
and each per-backend block opens with a start marker; markers are gaps here.  Sorting
by value is the order of a state dump; `SLOTS` is the order of a table dump.

A key is reached as `DispatchKey.CPU`, `DispatchKey["CPU"]` or `DispatchKey.parse`;
where a name is assigned, `parse` it: mypy reads `k = DispatchKey[n]` as an alias.
All names come from `runtime.keys.model`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NoReturn

from runtime.errors.base import nearest
from runtime.errors.key import UnknownKey
from runtime.keys.model import (
    ALIASES,
    BACKENDS,
    FORMER_NAMES,
    FUNCTIONALITIES,
    PER_BACKEND,
)

Kind = Literal["undefined", "functionality", "building_block", "runtime", "alias"]

# Backend bits are the low ones, so that a functionality always outranks them.
BACKEND_BITS = (1 << len(BACKENDS)) - 1


class _Keys(type):
    """Makes the class of keys itself the collection of all keys, by value."""

    def __call__(cls, *_: object, **__: object) -> NoReturn:
        raise TypeError("keys are not made: take DispatchKey.parse(name)")

    def __getattr__(cls, name: str) -> "DispatchKey":
        # Key names begin with a capital; all else is Python asking for a protocol.
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
        """The key of this name, which is case sensitive.

        Raises `UnknownKey`, with near names, where there is none.
        """
        key = _BY_NAME.get(name)
        if key is None:
            raise _unknown(name)
        return key

    @property
    def is_alias(self) -> bool:
        """Whether the key only names a set of others."""
        return self.kind == "alias"

    @property
    def is_runtime(self) -> bool:
        """Whether a dispatch table has a slot for the key."""
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
    # `type.__call__` goes past the metaclass, which refuses everybody else.
    key: DispatchKey = type.__call__(
        DispatchKey, name, value, kind, slot, bits, backend, functionality
    )
    return key


def _generate() -> Iterator[DispatchKey]:
    """All keys by ascending value."""
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
            # The block's own start marker stands before its first key.
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


def _unknown(name: str) -> UnknownKey:
    """The error for a name, with candidates compared without regard to case."""
    former = dict(FORMER_NAMES).get(name)
    if former is not None:
        return UnknownKey(name=name, near=(former,))
    folded = {known.lower(): known for known in _BY_NAME}
    near = nearest(name.lower(), tuple(folded))
    return UnknownKey(name=name, near=tuple(folded[each] for each in near))


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
