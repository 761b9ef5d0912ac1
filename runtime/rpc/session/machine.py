"""Machines: what a session is composed of, and how they are asked and answer.

True only here: the protocol of a sub-machine.  It has no clock and sends nothing: it is
told what came and what time it is, and appends what is to be sent to `out`, what is to
be told to the agent to `events`; whoever composes the machines empties both.

Rules:
- messages of one peer come once, and in the order in which the peer sent them;
- the end of a channel has two moments.  `lost`: this worker has fenced itself; calls to
  the peer end, references that it holds through the peer die.  `expired`, then or
  later: the peer has fenced itself by now, too, so what it held here is released.  Each
  `lost` is followed by one `expired`, and nothing comes from the peer in between.
  After that the same peer may speak again, on a channel that begins anew;
- `state` is everything that it knows: hashable, in an order of its own, and equal
  wherever the machine behaves in the same way.
"""

from collections.abc import Hashable, Sequence
from enum import Enum
from typing import Protocol

from runtime.rpc.identities import Fork, ForkId, Node, RRefId
from runtime.rpc.messages import Message
from runtime.rpc.session.events import Event, Reason


class Machine(Protocol):
    """A sub-machine of a session."""

    out: list[tuple[Node, Message]]
    events: list[Event]

    def receive(self, peer: Node, message: Message, now: float) -> None:
        """A message of the machine's kinds came."""

    def lost(self, peer: Node, reason: Reason, now: float) -> None:
        """The channel to a peer ended; nothing that is sent to it arrives."""

    def expired(self, peer: Node, now: float) -> None:
        """The peer knows by now that the channel ended."""

    def state(self) -> Hashable:
        """Everything that the machine knows."""


class Standing(Enum):
    """What can be done with references that are to be sent, or that came."""

    READY = "all are confirmed"
    WAITING = "some are not confirmed yet"
    DEAD = "one is worth nothing any more"


class Carrying(Protocol):
    """What calls ask of the machine of references.

    A carrier is a call or an answer, named by a value that calls choose.  Where
    `arrived` said WAITING, the carrier is appended to `settled`, once, with READY or
    DEAD; for what waits to be sent, calls ask `standing` again after each message.
    """

    settled: list[tuple[Hashable, Standing]]

    def standing(self, carries: Sequence[Fork | RRefId]) -> Standing:
        """Whether these can be sent: forks that this worker holds, values it owns."""

    def carry(
        self, peer: Node, carries: Sequence[Fork | RRefId], now: float
    ) -> tuple[Fork, ...]:
        """These as they travel, if READY: each with the fork of the receiver.

        Each is held here until the peer accepts it, or is lost.
        """

    def arrived(
        self, peer: Node, carrier: Hashable, forks: Sequence[Fork], now: float
    ) -> Standing:
        """These came with a carrier, and are held here from now on."""

    def unwanted(self, peer: Node, forks: Sequence[Fork], now: float) -> None:
        """These came with something that nobody waits for: none is held here."""

    def forget(self, carrier: Hashable, now: float) -> None:
        """Nobody waits for a carrier any more; what came with it is not held."""

    def create(self, rref: RRefId, owner: Node, now: float) -> Fork:
        """This worker's reference to what a call will make; pending until `created`."""

    def created(self, fork: ForkId, now: float) -> None:
        """The answer to that call came."""

    def uncreated(self, fork: ForkId, reason: Reason, now: float) -> None:
        """That call ended in another way: the reference died."""

    def made(self, peer: Node, rref: RRefId, fork: ForkId, now: float) -> None:
        """A call came that makes a value here; the peer is its first user."""
