"""A run: where it started and ended, what was called, and what is still held.

True only here: what whoever drives a dispatcher has to write down for the laws of a
run.  A run holds no handle and no kernel, except through states and tokens that are
live anyway; of what ought to die it holds weak references.
"""

from dataclasses import dataclass
from typing import Any
from weakref import ReferenceType

from invariants.surroundings import Surroundings
from runtime.dispatch.state import DispatcherState
from runtime.dispatch.token import Token


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
