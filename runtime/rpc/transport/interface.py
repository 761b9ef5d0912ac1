"""Transports: what brings packets from one worker to another, and may lose them.

True only here: what an agent may rely on, whatever the packets travel by.

Rules:
- a packet is a list of buffers; it arrives whole or not at all.  Packets to one
  endpoint arrive in the order in which they were sent, as long as the link holds; what
  was under way when it broke is lost, and nobody is told which: sessions find out;
- `send` is for any thread.  It never waits for the other side and never raises because
  of it: what cannot be sent is lost, and counted;
- buffers that were sent stay as they are until they are answered: large ones are not
  copied before they travel;
- packets are told one after the other, in order; so are times and links, perhaps
  beside packets.  None of it is told by a thread of somebody else, but by one that
  leads.  What a callback raises is logged, and the thread goes on;
- a thread that waits for an answer may lead: it receives what comes meanwhile, and no
  other thread is woken for it;
- `on_packet` gives what is to be done behind the packet, if anything: the thread that
  told it does that, and another one receives; only where `yields` said so;
- buffers that came in belong to whoever gets them; the large ones are writable;
- a transport that nobody closes is closed at the end of the process, after all that was
  registered later: its threads may not outlive the interpreter;
- in a forked child a transport is closed: the child makes its own, and the parent's
  goes on as if nothing had been.
"""

import atexit
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeAlias
from weakref import WeakSet

Buffer: TypeAlias = bytes | bytearray | memoryview

LOG = logging.getLogger("runtime.rpc")


class LinkState(Enum):
    """What became of a link."""

    UP = "the other side is there"
    DOWN = "the connection broke"
    ABSENT = "nobody listens there"
    REFUSED = "the two sides do not trust each other, or do not speak the same"
    STRANGER = "somebody whose key is not allowed asked to come in"


@dataclass(frozen=True, slots=True)
class Link:
    """A link changed.

    `endpoint` is as it was given to `send`; of a stranger it is "", and `key` is the
    public key that was shown.  `detail` is for people.
    """

    endpoint: str
    state: LinkState
    key: str = ""
    detail: str = ""


OnPacket: TypeAlias = Callable[[list[Buffer], str], Callable[[], object] | None]
OnTime: TypeAlias = Callable[[], None]
OnLink: TypeAlias = Callable[[Link], None]


class Transport(Protocol):
    """One worker's way to the others.

    `endpoint` is where others reach it; `key` is its public key, "" where there are
    none.
    """

    @property
    def endpoint(self) -> str:
        """Where others reach this worker, as they give it to `send`."""

    @property
    def key(self) -> str:
        """Its public key; "" without."""

    def start(
        self, on_packet: OnPacket, on_time: OnTime, on_link: OnLink | None = None
    ) -> None:
        """Begin to receive: once.

        `on_packet` gets the buffers and the public key of who sent them, which that
        one has proven to own; "" without keys.
        """

    def send(self, endpoint: str, frames: Sequence[Buffer]) -> None:
        """Send a packet, or lose it."""

    def wake_at(self, seconds_from_now: float | None) -> None:
        """Have `on_time` called then, instead of when it was said before; None: never.

        It may be called early, and is called once; who needs more, says so again.
        """

    def lead(self, over: Callable[[], bool], seconds: float) -> bool:
        """Receive by this thread until `over()`, or for so long.

        False: nothing was done, as another thread receives.  Who makes `over()` true
        on any other thread says `nudge` behind it.
        """

    def leads(self) -> bool:
        """Whether this very thread receives something just now."""

    def nudge(self) -> None:
        """Have who leads, if anybody does, ask whether it is over."""

    def yields(self) -> bool:
        """Whether this thread, in `on_packet`, may do what takes long behind it.

        If so, `on_packet` gives that; until it is done no other thread may.
        """

    def forget(self, endpoint: str) -> None:
        """Break the link to an endpoint; what still waits to be sent is lost."""

    def counts(self) -> dict[str, int]:
        """What was sent, received and lost, for people."""

    def close(self, linger: float = 1.0) -> None:
        """Stop; what was sent has `linger` seconds to leave.  Closed twice is closed.

        Nothing is told after it returned; on the thread that tells, after what is told
        now.  What is done behind a packet is not waited for.
        """


class Forkable(Protocol):
    """What a forked child must not use any more."""

    def in_child(self) -> None:
        """Be closed, without a lock and without touching what the parent uses."""


_FORKABLE: WeakSet[Forkable] = WeakSet()


def closed_in_child(transport: Forkable) -> None:
    """Have `in_child` called wherever this process is forked."""
    _FORKABLE.add(transport)


def _in_child() -> None:
    for each in [*_FORKABLE]:
        each.in_child()


_LEFT: WeakSet[Transport] = WeakSet()


def closed_at_exit(transport: Transport) -> None:
    """Have a transport closed when this process ends, unless it was before.

    What it still sends lies in memory that is about to be freed.
    """
    _LEFT.add(transport)


def _at_exit() -> None:
    for each in [*_LEFT]:
        each.close(linger=0)


atexit.register(_at_exit)

# Some systems have no fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
