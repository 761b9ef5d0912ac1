"""The keys that the current thread includes in, and excludes from, every call.

The only mutable state of `runtime.keys`: two sets of raw bits for each thread.  A new
thread starts from the defaults, not from its parent.

Rules:
- exclusion has priority over inclusion, but cannot remove backend bits;
- a guard adds the bits that are missing and on exit removes exactly those, so guards
  over distinct keys may end in any order;
- a switch (`set_included`, `set_excluded`) turned on and off again restores the exact
  bits before.  Upstream leaves the backend bit of a per-backend key set, and from then
  on the thread calls the wrong backend.

How a switch does it: it records which keys are switched on and which bits that added.
Switching one off drops the added bits that no other switched key needs.  A key that is
present for another reason (the defaults, a guard) is recorded by no switch; switching
it off removes its functionality, as `KeySet.remove` does.

A guard belongs to the thread that entered it: its entry holds `LOCAL.__dict__`, one
object for each thread, and an exit in another thread is rejected before anything
changes, as the garbage collector may end a generator there.  The entry of the guard and
the view of the thread change together, with no call in between, so that no signal finds
one without the other: a guard that is exited in the state after its entry restores the
previous view, and any other view is looked up, and created only on first use.

The two sets together are the thread's `view`, one object for each pair: caches of calls
are stored under it.
"""

import threading
from collections.abc import Generator, Iterable
from typing import Any, Self

from everyorder.runtime.base.exits import Exit
from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.errors.registration import KeyMisuse
from everyorder.runtime.keys.dispatch_key import BACKEND_BITS, DispatchKey
from everyorder.runtime.keys.keyset import DEFAULT_EXCLUDED, DEFAULT_INCLUDED, KeySet

Keys = DispatchKey | KeySet | Iterable[DispatchKey]


class View:
    """The included and the excluded bits of a thread; compared by identity.

    `handling` and `handling_last` are views that dispatch to Python derives from it,
    once.
    """

    __slots__ = ("excluded", "handling", "handling_last", "included")

    def __init__(self, included: int, excluded: int) -> None:
        self.included = included
        self.excluded = excluded
        self.handling: View | None = None
        self.handling_last: View | None = None


class _Views(dict[tuple[int, int], View]):
    """The bits and their views; a missing one is created."""

    def __missing__(self, bits: tuple[int, int]) -> View:
        # If two threads create one at once, both get the first.
        return self.setdefault(bits, View(*bits))


# A program sees few pairs: one for each combination of nested guards.
_VIEWS = _Views()


def view_of(included: int, excluded: int) -> View:
    """Return the one view with these bits."""
    return _VIEWS[included, excluded]


# The view of a new thread.
_FIRST = view_of(DEFAULT_INCLUDED.bits, DEFAULT_EXCLUDED.bits)


class _ThreadBits(threading.local):
    """The bits of one thread; `view` is stored in the `__dict__`."""

    view: View
    # For each set: the keys switched on, and the bits that the switches added.
    switched_in: tuple[frozenset[DispatchKey], int] = (frozenset(), 0)
    switched_out: tuple[frozenset[DispatchKey], int] = (frozenset(), 0)

    def __init__(self) -> None:
        self.view = _FIRST

    @property
    def included(self) -> int:
        """Return the bits that are added to every call."""
        return self.view.included

    @included.setter
    def included(self, bits: int) -> None:
        self.view = view_of(bits, self.view.excluded)

    @property
    def excluded(self) -> int:
        """Return the bits that are removed from every call."""
        return self.view.excluded

    @excluded.setter
    def excluded(self, bits: int) -> None:
        self.view = view_of(self.view.included, bits)


LOCAL = _ThreadBits()


def effective_bits(bits: int) -> int:
    """Return the bits of a call: `bits` and the included ones, less the excluded."""
    return (bits | LOCAL.included) & (BACKEND_BITS | ~LOCAL.excluded)


def guard_error(guard: object, entry: Any) -> EveryorderError:
    """Return the error for a guard that was not entered, or in another thread."""
    name = type(guard).__name__
    return (
        KeyMisuse(code="GuardNotEntered", guard=name)
        if entry is None
        else KeyMisuse(code="GuardLeftElsewhere", guard=name)
    )


class include_keys:  # noqa: N801  # used as a verb: `with include_keys(...)`
    """Context: include the keys; on exit remove the bits that this added.

    Leaving raises `KeyMisuse` if it was not entered in this thread.
    """

    __slots__ = ("_bits", "_entry")

    def __init__(self, keys: Keys) -> None:
        self._bits = KeySet(keys).bits
        # The thread, what it added, the views outside and inside, the entry before.
        self._entry: Any = None

    def __enter__(self) -> Self:
        view = LOCAL.view
        added = self._bits & ~view.included
        inside = _VIEWS[view.included | added, view.excluded]
        entry = LOCAL.__dict__, added, view, inside, self._entry
        self._entry, LOCAL.view = entry, inside
        return self

    @Exit
    def __exit__(self) -> Generator[None, None, None]:
        freed = False
        try:
            yield
        except GeneratorExit:
            freed = True
        finally:
            if not freed:
                entry = self._entry
                if entry is None or entry[0] is not LOCAL.__dict__:
                    raise guard_error(self, entry)
                _, added, outside, inside, before = entry
                view = LOCAL.view
                if view is not inside:
                    outside = _VIEWS[view.included & ~added, view.excluded]
                self._entry, LOCAL.view = before, outside


class exclude_keys:  # noqa: N801  # used as a verb: `with exclude_keys(...)`
    """Context: exclude the keys; on exit remove the bits that this added.

    Leaving raises `KeyMisuse` if it was not entered in this thread.
    """

    __slots__ = ("_bits", "_entry")

    def __init__(self, keys: Keys) -> None:
        self._bits = KeySet(keys).bits
        # The thread, what it added, the views outside and inside, the entry before.
        self._entry: Any = None

    def __enter__(self) -> Self:
        view = LOCAL.view
        added = self._bits & ~view.excluded
        inside = _VIEWS[view.included, view.excluded | added]
        entry = LOCAL.__dict__, added, view, inside, self._entry
        self._entry, LOCAL.view = entry, inside
        return self

    @Exit
    def __exit__(self) -> Generator[None, None, None]:
        freed = False
        try:
            yield
        except GeneratorExit:
            freed = True
        finally:
            if not freed:
                entry = self._entry
                if entry is None or entry[0] is not LOCAL.__dict__:
                    raise guard_error(self, entry)
                _, added, outside, inside, before = entry
                view = LOCAL.view
                if view is not inside:
                    outside = _VIEWS[view.included, view.excluded & ~added]
                self._entry, LOCAL.view = before, outside


class preserve_keys:  # noqa: N801  # used as a verb: `with preserve_keys()`
    """Context: restore both sets on exit, whatever happens inside.

    Leaving raises `KeyMisuse` if it was not entered in this thread.
    """

    __slots__ = ("_saved",)

    def __init__(self) -> None:
        # The thread, its view, what is switched, and the entry before.
        self._saved: Any = None

    def __enter__(self) -> Self:
        view, switched_in, switched_out = (
            LOCAL.view,
            LOCAL.switched_in,
            LOCAL.switched_out,
        )
        self._saved = LOCAL.__dict__, view, switched_in, switched_out, self._saved
        return self

    @Exit
    def __exit__(self) -> Generator[None, None, None]:
        freed = False
        try:
            yield
        except GeneratorExit:
            freed = True
        finally:
            if not freed:
                entry = self._saved
                if entry is None or entry[0] is not LOCAL.__dict__:
                    raise guard_error(self, entry)
                _, view, switched_in, switched_out, before = entry
                LOCAL.switched_in, LOCAL.switched_out = switched_in, switched_out
                self._saved, LOCAL.view = before, view


class force_keys(preserve_keys):  # noqa: N801  # used as a verb: `with force_keys(...)`
    """Context: set both sets to exactly these; restore them on exit.

    Leaving raises `KeyMisuse` if it was not entered in this thread.
    """

    __slots__ = ("_view",)

    def __init__(self, include: Keys, exclude: Keys) -> None:
        super().__init__()
        self._view = view_of(KeySet(include).bits, KeySet(exclude).bits)

    def __enter__(self) -> Self:
        view, switched_in, switched_out = (
            LOCAL.view,
            LOCAL.switched_in,
            LOCAL.switched_out,
        )
        entry = LOCAL.__dict__, view, switched_in, switched_out, self._saved
        nothing: tuple[frozenset[DispatchKey], int] = (frozenset(), 0)
        self._saved, LOCAL.view = entry, self._view
        LOCAL.switched_in = LOCAL.switched_out = nothing
        return self


def set_included(key: DispatchKey, on: bool) -> None:
    """Switch a key in the included set on or off, until it is switched again."""
    bits, switched = _switch(LOCAL.view.included, LOCAL.switched_in, key, on)
    LOCAL.view, LOCAL.switched_in = _VIEWS[bits, LOCAL.view.excluded], switched


def set_excluded(key: DispatchKey, on: bool) -> None:
    """Switch a key in the excluded set on or off, until it is switched again."""
    bits, switched = _switch(LOCAL.view.excluded, LOCAL.switched_out, key, on)
    LOCAL.view, LOCAL.switched_out = _VIEWS[LOCAL.view.included, bits], switched


def _switch(
    bits: int, switched: tuple[frozenset[DispatchKey], int], key: DispatchKey, on: bool
) -> tuple[int, tuple[frozenset[DispatchKey], int]]:
    keys, brought = switched
    present = bits & key.bits == key.bits
    if on:
        if present:
            return bits, switched
        return bits | key.bits, (keys | {key}, brought | key.bits & ~bits)
    if key not in keys:
        return (bits & (BACKEND_BITS | ~key.bits) if present else bits), switched
    keys -= {key}
    needed = KeySet(keys).bits
    drop = key.bits & brought & ~needed
    return bits & ~drop, (keys, brought & ~drop)
