"""Callers: how a call finds its kernel and runs it.

True only here: a caller is a pure function of one immutable entry, built on the first
call and kept on the entry; it can therefore not be stale.  Nothing here takes a lock.

How a call works: bind the arguments to the schema; join the keysets of the tensors
among them; add what the thread includes, take off what it excludes and what falls
through; the highest key left names a slot; run the slot's kernel by its convention.

An operator that is called again and again gets a front, which does the same without a
list of arguments (`runtime.dispatch.place`); `Caller.link` serves it.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from runtime.dispatch.entry import OperatorEntry
from runtime.dispatch.kernel import Kernel
from runtime.dispatch.links import Link, Links
from runtime.dispatch.reading import DefinitionReading
from runtime.dispatch.running import LINKED, Running
from runtime.dispatch.table import Table
from runtime.dispatch.watch import DEPTH, UNOBSERVED, WATCH, Observer
from runtime.errors.call import CallWithoutSchema, OperatorGone
from runtime.keys import SLOTS, DispatchKey, KeySet, slot_of

# Calls of one entry before a front is made: compiling one costs as much as some hundred
# plain calls, and entries that are explored are called a few times only.
WARM = 8
# Further plain calls of one entry after which another handle of it may get a front.
COLD = 64


class Place(Protocol):
    """Who calls: something that knows its dispatcher (see `runtime.dispatch.place`)."""

    @property
    def keyring(self) -> object:
        """What belongs to the dispatcher alone."""

    def operator(self) -> Any:
        """A handle of the operator."""

    def weak(self) -> Callable[[], Any]:
        """`operator`, without keeping the dispatcher."""


class Caller:
    """Everything a call of one entry needs; see `caller_of`."""

    __slots__ = ("_links", "bind", "calls", "name", "reading", "running", "schema")

    def __init__(self, entry: OperatorEntry, reading: DefinitionReading) -> None:
        # Not the entry itself, which keeps the caller: a circle would keep its kernels
        # alive until the garbage collector comes by.  So nothing below holds `self`.
        self.name = entry.name
        self.schema = reading.schema
        self.reading = reading
        self.bind = reading.convention.bind
        self.running = Running(entry, reading)
        self._links: dict[object, Links] = {}
        # Plain calls so far.
        self.calls = 0

    @property
    def table(self) -> Table:
        """The table of the entry."""
        return self.running.table

    def call(
        self, place: Place, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Bind, dispatch, run."""
        values = self.bind(args, kwargs)
        running = self.running
        bits = running.keys_of(values)
        if WATCH.active:
            return self._watched("call", place, bits, values)
        runner = running.runner(slot_of(bits))
        if runner is LINKED:
            return self.run(place, bits, values)
        return runner(place.operator, bits, values)

    def call_boxed(self, place: Place, values: list[Any]) -> Any:
        """Dispatch and run bound arguments."""
        bits = self.running.keys_of(values)
        if WATCH.active:
            return self._watched("callBoxed", place, bits, values)
        return self.run(place, bits, values)

    def redispatch(
        self, label: str, place: Place, keyset: KeySet, values: list[Any]
    ) -> Any:
        """Run the kernel of the highest key of `keyset`, taken as it is."""
        if WATCH.active:
            return self._traced(label, place, keyset.bits, values)
        return self.run(place, keyset.bits, values)

    def run(self, place: Place, bits: int, values: list[Any]) -> Any:
        """Run the kernel of the highest key of `bits`."""
        runner = self.running.runner(slot_of(bits))
        if runner is LINKED:
            link = self._linked(place, WATCH.active).top(bits)
            return self.running.returns(link(*self.running.presented(values)))
        return runner(place.operator, bits, values)

    def run_kernel(
        self,
        place: Place,
        kernel: Kernel,
        fallback: bool,
        key: DispatchKey,
        values: Any,
    ) -> Any:
        """Run a kernel that may not be the one of its slot."""
        bits = self.running.keys_of(values)
        if kernel.facts.kind == "linked":
            link = self._linked(place, WATCH.active).of(kernel, bits, key)
            return self.running.returns(link(*self.running.presented(values)))
        run = self.running.runner_of(kernel, fallback, key.name)
        return run(place.operator, bits, values)

    def link(self, place: Place, bits: int) -> Link:
        """The link of a call whose arguments have these bits."""
        return self._linked(place, False).top(self.running.called_by(bits))

    def _linked(self, place: Place, traced: bool) -> Links:
        asked = (place.keyring, traced)
        found = self._links.get(asked)
        if found is None:
            found = Links(self.running, place.weak(), traced)
            self._links[asked] = found
        return found

    def _watched(self, label: str, place: Place, bits: int, values: list[Any]) -> Any:
        observers = WATCH.observers
        if not observers or self.name.name in UNOBSERVED:
            return self._traced(label, place, bits, values)
        return self._observed(observers, label, place, bits, values)

    def _observed(
        self,
        observers: tuple[Observer, ...],
        label: str,
        place: Place,
        bits: int,
        values: list[Any],
    ) -> Any:
        """Tell the first observer, and run the call inside; the others likewise.

        One call inside of another, so that each hears the end whatever the others do.
        """
        if not observers:
            return self._traced(label, place, bits, values)
        first, *others = observers
        context = first.before(
            str(self.name), self.schema, tuple(values), KeySet.from_bits(bits)
        )
        try:
            outcome = self._observed(tuple(others), label, place, bits, values)
        except BaseException as error:
            first.after(context, error)
            raise
        first.after(context, outcome)
        return outcome

    def _traced(self, label: str, place: Place, bits: int, values: list[Any]) -> Any:
        WATCH.write(label, str(self.name), SLOTS[slot_of(bits)].name)
        DEPTH.level += 1
        try:
            return self.run(place, bits, values)
        finally:
            DEPTH.level -= 1


def caller_of(entry: OperatorEntry | None, name: str) -> Caller:
    """The caller of an entry, kept on it.

    Raises:
        CallWithoutSchema: the operator has kernels and no schema.
        OperatorGone: it has rules alone.
    """
    if entry is not None:
        found = entry.memo.get("caller")
        if found is not None:
            return found  # type: ignore[no-any-return]  # the memo holds what was put there
        if entry.definitions:
            caller = Caller(entry, entry.definitions[0].reading)
            entry.memo["caller"] = caller
            return caller
        if not entry.total:
            raise OperatorGone(operator=name)
    raise CallWithoutSchema(operator=name)
