"""Held kernels: the kernel that an operator has for a key now, to be called later.

True only here: a kernel that stays itself.  Whoever overrides a kernel and wants to
call the one before takes it first:

    before = get_kernel("mylib::scale", "CPU")
    library.impl("scale", mine, "CPU")      # mine calls before.call_boxed(keyset, x)

Rules:
- it keeps all kernels that the operator had then, as those below it are among them;
- it works as long as the operator is defined, by whomever.
"""

from typing import Any

from runtime.custom.target import Operator, dispatcher_of, handle_of, schema_known
from runtime.dispatch.call import Caller, Place
from runtime.dispatch.handle import OperatorHandle
from runtime.errors.call import OperatorGone
from runtime.errors.registration import NoKernelForKey
from runtime.keys import BACKEND_BITS, DispatchKey, KeySet, full_after


class HeldKernel:
    """A kernel of an operator, as it was; made by `get_kernel`."""

    __slots__ = ("_caller", "_place", "key")

    def __init__(self, place: Place, caller: Caller, key: DispatchKey) -> None:
        self._place = place
        self._caller = caller
        self.key = key

    def call_boxed(self, keyset: KeySet, /, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel with a keyset, of which it sees its own key and those below.

        Raises:
            OperatorGone: the operator is not defined any more.
            CallError: the arguments do not fit the schema that it had.
        """
        entry = self._place.published()
        if entry is None or not entry.definitions:
            raise OperatorGone(operator=self._place.text)
        own = self.key.bits
        bits = keyset.bits & full_after(self.key).bits
        if own & BACKEND_BITS:
            # The highest backend of a keyset would win over the kernel's own.
            bits &= ~BACKEND_BITS
        else:
            bits |= keyset.bits & BACKEND_BITS
        caller = self._caller
        values, below = caller.bind(args, kwargs), KeySet.from_bits(bits | own)
        return caller.redispatch("redispatch", self._place, below, values)

    def __repr__(self) -> str:
        return f"<HeldKernel {self._place.text} at {self.key.name}>"


def get_kernel(op: Operator, key: DispatchKey | str, /) -> HeldKernel:
    """The kernel that a call of `op` with the highest key `key` runs now.

    Raises:
        UnknownKey: there is no such key.
        SchemaNotFound: there is no such operator.
        NoKernelForKey: it has none for the key, or the key is an alias.
    """
    handle = handle_of("get_kernel(...)", op)
    schema_known(handle)
    wanted = DispatchKey.parse(key) if isinstance(key, str) else key
    place = Place(dispatcher_of(handle), handle.name, OperatorHandle)
    entry = place.published()
    caller = place.caller(entry)
    assert entry is not None, "its caller was there"
    if wanted.slot is None or entry.table.slot(wanted.slot).kernel is None:
        raise NoKernelForKey(
            operator=str(handle.name),
            key=wanted.name,
            available=tuple(sorted(each.name for each in entry.implementations)),
        )
    return HeldKernel(place, caller, wanted)
