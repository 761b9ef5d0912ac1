"""A run: where it started and ended, what was called, and what surrounded the calls.

This is what whoever drives a dispatcher writes down for the laws of a run.  A sample of
the surroundings (keys, modes and context of the thread, nesting, the lock) is the one
place where something is looked at that is no value; callers take it before, inside and
after a call, and the laws compare the samples.

Rules: a sample keeps nothing alive; modes and contexts are told apart by identity and
shown by name.  A run holds no handle and no kernel, except through states and tokens
that are live anyway; of what ought to die it holds weak references.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from weakref import ReferenceType

from runtime.dispatch.state import DispatcherState
from runtime.dispatch.token import Token


class ThreadKeys(Protocol):
    """The thread's included and excluded keys."""

    @property
    def included(self) -> int:
        """Bits that every call gets."""

    @property
    def excluded(self) -> int:
        """Bits that no call keeps."""

    @property
    def switched_in(self) -> Hashable:
        """What was switched on in the included set."""

    @property
    def switched_out(self) -> Hashable:
        """What was switched on in the excluded set."""


class Nesting(Protocol):
    """How deep the traced calls of this thread are nested."""

    @property
    def level(self) -> int:
        """0 outside of all calls."""


class Dispatching(Protocol):
    """What the thread is in as regards dispatch to Python."""

    @property
    def stack(self) -> Sequence[Any]:
        """The modes that were entered, outermost first, each as `mode`."""

    @property
    def snapshot(self) -> Any:
        """The keys that the outermost call found; None outside of all calls."""

    @property
    def context(self) -> Any:
        """The interpreter, which has a `name`."""


class Lockable(Protocol):
    """A lock that can be asked."""

    def locked(self) -> bool:
        """Whether anybody holds it."""


@dataclass(frozen=True, slots=True)
class Named:
    """A mode or a context: which one it is, and what it is called."""

    name: str
    identity: int = field(repr=False)

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Surroundings:
    """One sample; before and inside of a call that no handler sees, only `locked` and
    the nesting may differ, and after it nothing.
    """

    included: int
    excluded: int
    switched_in: Hashable
    switched_out: Hashable
    nesting: int
    locked: bool
    modes: tuple[Named, ...] = ()
    snapshot: tuple[int, int] | None = None
    context: Named | None = None


def surroundings(
    keys: ThreadKeys,
    nesting: Nesting,
    lock: Lockable,
    dispatching: Dispatching | None = None,
) -> Surroundings:
    """Sample now, on this thread; without `dispatching`, keys and nesting only."""
    values = (
        keys.included,
        keys.excluded,
        keys.switched_in,
        keys.switched_out,
        nesting.level,
        lock.locked(),
    )
    if dispatching is None:
        return Surroundings(*values)
    taken, context = dispatching.snapshot, dispatching.context
    stack = dispatching.stack
    return Surroundings(
        *values,
        tuple([_named(entered.mode) for entered in stack]) if stack else (),
        None if taken is None else (taken.included, taken.excluded),
        None if context is None else Named(context.name, id(context)),
    )


def _named(mode: Any) -> Named:
    return Named(type(mode).__name__, id(mode))


@dataclass(frozen=True, slots=True)
class Call:
    """One call: the published state, the key bits of its arguments, what it ran.

    `inside` are samples taken by kernels; `ran` is the description of the registration
    whose kernel ran first, None where none did (the call raised before).
    """

    operator: str
    state: DispatcherState
    arguments: int
    before: Surroundings
    after: Surroundings
    inside: tuple[Surroundings, ...] = ()
    ran: str | None = None


@dataclass(frozen=True, slots=True)
class Deed:
    """Something besides a call: a registration, a removal, a look; what it was."""

    what: str
    before: Surroundings
    after: Surroundings


@dataclass(frozen=True, slots=True)
class Run:
    """One run, finished; `held` are the tokens whose handles are still open.

    `gone` names what must be dead by now: kernels, handles, modes, classes, contexts.
    The caller collects garbage first, if what it drove is allowed to have cycles.
    """

    start: DispatcherState
    end: DispatcherState
    held: tuple[Token, ...] = ()
    calls: tuple[Call, ...] = ()
    gone: tuple[tuple[str, ReferenceType[Any]], ...] = ()
    deeds: tuple[Deed, ...] = ()
