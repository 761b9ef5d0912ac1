"""Sets of dispatch keys: 62 bits, backends low, functionalities high; the named sets.

A set does not hold keys but bits, and per-backend keys share them.  Consequences, as in
upstream:
- {CPU, AutogradCUDA} also has CUDA and AutogradCPU: bits form a cross product;
- `-` and `remove` only remove functionality bits; `remove_backend` removes backends;
- a building block adds its functionality bit; Undefined and aliases add nothing;
- iteration yields keys only where functionality and backend meet, so a set with bits
  can have no keys.

Other than upstream: `has` is false for a key without bits (Undefined, aliases), and the
highest key of a per-backend functionality without a backend is its building block,
where upstream has an unnamed marker.

The call path uses raw ints: `slot_of` and `mask_index` are table look-ups.
"""

from collections.abc import Iterable, Iterator

from everyorder.runtime.errors.registration import KeyMisuse, LookupFailed
from everyorder.runtime.errors.tensor import UnfitValue
from everyorder.runtime.keys.dispatch_key import (
    BACKEND_BITS,
    SLOTS,
    DispatchKey,
    guarded_backends,
)
from everyorder.runtime.keys.key_tables import (
    AUTOCAST,
    AUTOGRAD,
    AUTOGRADOTHER,
    BACKENDS,
    EXCLUDED_AT_START,
    FUNCTIONALITIES,
    INCLUDED_AT_START,
    LEGACY_IGNORED,
)

# A key, or its name.
Key = DispatchKey | str

# Characters of a value in errors: a line of a terminal, less the label.
_VALUE_WIDTH = 60

_SHIFT = len(BACKENDS)
_ALL = (1 << (_SHIFT + len(FUNCTIONALITIES))) - 1

# Index = number of the highest functionality, counted from 1; 0 is Undefined.
_FUNCTIONALITY_KEYS: tuple[DispatchKey, ...] = (
    DispatchKey.Undefined,
    *(DispatchKey[each.name] for each in FUNCTIONALITIES),
)


def _first_slot(key: DispatchKey) -> int:
    instance = key if key.slot is not None else _instance(key, BACKENDS[0])
    assert instance.slot is not None, "runtime keys have slots by construction"
    return instance.slot


def _instance(block: DispatchKey, backend: str) -> DispatchKey:
    bits = block.bits | 1 << BACKENDS.index(backend)
    return next(key for key in SLOTS if key.bits == bits)


# [highest functionality][highest backend], both counted from 1 with 0 for none.
_SLOT_ROWS: tuple[tuple[int, ...], ...] = tuple(
    (_first_slot(key),) * (1 + _SHIFT)
    if key.slot is not None
    else (_first_slot(key), *range(_first_slot(key), _first_slot(key) + _SHIFT))
    for key in _FUNCTIONALITY_KEYS
)


def slot_of(bits: int) -> int:
    """Return the slot of a call with these effective bits.

    A per-backend functionality without a backend has the CPU's slot.
    """
    return _SLOT_ROWS[(bits >> _SHIFT).bit_length()][(bits & BACKEND_BITS).bit_length()]


def mask_index(bits: int) -> int:
    """Return the highest backend as an index into per-backend masks; CPU if none."""
    return ((bits & BACKEND_BITS).bit_length() or 1) - 1


class KeySet:
    """An immutable set of dispatch keys; see the module for its rules.

    Built from keys, sets of them, and iterables of keys.  A key may be passed by its
    name, here and in methods.

    Raises:
        LookupFailed: a name is not that of a key.
        UnfitValue: a value of another type.
    """

    __slots__ = ("bits",)

    bits: int

    def __init__(self, *keys: "Key | KeySet | Iterable[Key]") -> None:
        bits = 0
        for each in keys:
            if isinstance(each, _KEY_TYPES) or not isinstance(each, Iterable):
                bits |= _bits_of(each)
            else:
                for key in each:
                    bits |= _bits_of(key)
        object.__setattr__(self, "bits", bits)

    @classmethod
    def from_bits(cls, bits: int) -> "KeySet":
        """Return the set with exactly these bits; raises `KeyMisuse` beyond bit 61."""
        if not 0 <= bits <= _ALL:
            raise KeyMisuse(code="ForeignBits", bits=bits, full=_ALL)
        keyset = cls.__new__(cls)
        object.__setattr__(keyset, "bits", bits)
        return keyset

    def has(self, key: Key) -> bool:
        """Return True if all bits of `key` are set; false for a key without bits."""
        bits = _bits_of(key)
        return bits != 0 and self.bits & bits == bits

    def has_all(self, other: "KeySet") -> bool:
        """Return True if every bit of `other` is set here."""
        return self.bits & other.bits == other.bits

    def has_backend(self, backend: str) -> bool:
        """Return True if the backend's bit is set; raises `LookupFailed`."""
        return bool(self.bits & backend_bit(backend))

    def add(self, key: Key) -> "KeySet":
        """Return the union with the key's bits."""
        return self.from_bits(self.bits | _bits_of(key))

    def remove(self, key: Key) -> "KeySet":
        """Return the set without the key's functionality; backend bits stay."""
        return self.from_bits(self.bits & (BACKEND_BITS | ~_bits_of(key)))

    def remove_backend(self, backend: str) -> "KeySet":
        """Return the set without the backend's bit; raises `LookupFailed`."""
        return self.from_bits(self.bits & ~backend_bit(backend))

    @property
    def highest_functionality(self) -> DispatchKey:
        """Return the highest functionality or building block, or Undefined."""
        return _FUNCTIONALITY_KEYS[(self.bits >> _SHIFT).bit_length()]

    @property
    def highest_backend(self) -> str | None:
        """Return the backend of highest priority, or None."""
        count = (self.bits & BACKEND_BITS).bit_length()
        return BACKENDS[count - 1] if count else None

    @property
    def highest_key(self) -> DispatchKey:
        """Return the key that a call dispatches on; a building block if no backend."""
        if self.bits & BACKEND_BITS:
            return SLOTS[slot_of(self.bits)]
        return self.highest_functionality

    @property
    def legacy_key(self) -> DispatchKey:
        """Return the one key of a tensor's kind, as in older interfaces."""
        return (self - _LEGACY).highest_key

    def __or__(self, other: "KeySet") -> "KeySet":
        if not isinstance(other, KeySet):
            return NotImplemented
        return self.from_bits(self.bits | other.bits)

    def __and__(self, other: "KeySet") -> "KeySet":
        if not isinstance(other, KeySet):
            return NotImplemented
        return self.from_bits(self.bits & other.bits)

    def __xor__(self, other: "KeySet") -> "KeySet":
        if not isinstance(other, KeySet):
            return NotImplemented
        return self.from_bits(self.bits ^ other.bits)

    def __sub__(self, other: "KeySet") -> "KeySet":
        """Return the set without the other's functionalities; backend bits stay."""
        if not isinstance(other, KeySet):
            return NotImplemented
        return self.from_bits(self.bits & (BACKEND_BITS | ~other.bits))

    def __contains__(self, key: Key) -> bool:
        return self.has(key)

    def __iter__(self) -> Iterator[DispatchKey]:
        """Yield functionalities ascending, per-backend ones expanded in place."""
        return (key for key in SLOTS if key.bits and self.bits & key.bits == key.bits)

    def __bool__(self) -> bool:
        return self.bits != 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeySet) and self.bits == other.bits

    def __hash__(self) -> int:
        return hash((KeySet, self.bits))

    def __repr__(self) -> str:
        return f"KeySet({', '.join(key.name for key in self)})"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a KeySet is immutable: {name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a KeySet is immutable: {name} cannot be deleted")

    def __reduce__(self) -> tuple[object, ...]:
        return KeySet.from_bits, (self.bits,)


# Single arguments, although some of them are iterable.
_KEY_TYPES = (DispatchKey, str, KeySet)


def _bits_of(key: object) -> int:
    """Return the bits of a key, of the key of that name, or of a set."""
    if isinstance(key, DispatchKey | KeySet):
        return key.bits
    if isinstance(key, str):
        return DispatchKey.parse(key).bits
    from re import sub

    raise UnfitValue(
        code="WrongValue",
        expected="DispatchKey | str | KeySet",
        found=f"something of type {type(key).__name__}",
        value=sub(r" at 0x[0-9a-fA-F]+", "", repr(key))[:_VALUE_WIDTH],
    )


def backend_bit(backend: str) -> int:
    """Return the bit of a backend component; raises `LookupFailed`."""
    if backend not in BACKENDS:
        raise LookupFailed(code="UnknownBackend", name=backend, known=BACKENDS)
    return 1 << BACKENDS.index(backend)


def full_after(key: DispatchKey) -> KeySet:
    """Return every bit strictly below the key's functionality, and PythonDispatcher.

    PythonDispatcher is always included, as in 2.13: a redispatch must not lose it.
    Raises `KeyMisuse` for Undefined and aliases.
    """
    if key.bits == 0:
        raise KeyMisuse(code="NoPriority", key=key.name)
    functionality = key.bits & ~BACKEND_BITS
    return KeySet.from_bits(functionality - 1 | DispatchKey.PythonDispatcher.bits)


FULL = KeySet.from_bits(_ALL)


def _keyset(*names: str) -> KeySet:
    return KeySet(DispatchKey[name] for name in names)


# With every backend bit: the set answers "is this one of these backend keys".
AUTOGRADOTHER_BACKENDS = KeySet(guarded_backends(DispatchKey.AutogradOther))
assert AUTOGRADOTHER_BACKENDS.has_all(_keyset(*AUTOGRADOTHER)), "one table feeds both"

# Without backend bits: these sets are used for removal.
AUTOGRAD_KEYS = _keyset(*AUTOGRAD)
AUTOGRAD_KEYS_WITH_ADINPLACEORVIEW = AUTOGRAD_KEYS.add(DispatchKey.ADInplaceOrView)
AUTOCAST_KEYS = _keyset(*AUTOCAST)
PYTHON_KEYS = _keyset("Python", "PythonTLSSnapshot")
FUNCTORCH_KEYS = _keyset(
    "FuncTorchBatched",
    "FuncTorchVmapMode",
    "Batched",
    "VmapMode",
    "FuncTorchGradWrapper",
)

# The keysets with which kernels of these layers redispatch.
AFTER_AUTOGRAD = full_after(DispatchKey.AutogradOther)
AFTER_ADINPLACEORVIEW = full_after(DispatchKey.ADInplaceOrView)
AFTER_FUNCTIONALIZE = full_after(DispatchKey.Functionalize).remove(
    DispatchKey.ADInplaceOrView
)

DEFAULT_INCLUDED = _keyset(*INCLUDED_AT_START)
DEFAULT_EXCLUDED = _keyset(*EXCLUDED_AT_START)

_LEGACY = _keyset(*LEGACY_IGNORED)
