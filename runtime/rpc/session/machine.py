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
from typing import Protocol

from runtime.rpc.identities import Fork, ForkId, Node, RRefId
from runtime.rpc.messages import Message
from runtime.rpc.session.carriers import Fate, Key, Verdict
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


class Carrying(Protocol):
    """What calls ask of the machine of references.

    A carrier is a call or an answer that holds references, named by a key that calls
    choose; while it waits, what it holds stays listed, whatever the agent drops.
    Verdicts on carriers that waited are emptied after each step, before `out`.
    """

    verdicts: list[Verdict]

    def carry(
        self,
        key: Key,
        peer: Node,
        carries: Sequence[Fork | RRefId],
        target: RRefId | None = None,
    ) -> tuple[Fate, tuple[Fork, ...]]:
        """On the way out: READY is sent now, with these forks; WAITS gets a verdict.

        `target` is what a call fetches: it may not overtake the call that creates it.
        """

    def withdraw(self, key: Key) -> None:
        """A carrier that waits is not to be sent any more; nothing where none waits."""

    def unsend(self, forks: Sequence[Fork]) -> None:
        """A carrier that was ready was not sent after all."""

    def arrive(
        self,
        key: Key,
        peer: Node,
        forks: Sequence[Fork],
        now: float,
        *,
        creates: RRefId | None = None,
        fork: ForkId | None = None,
        target: RRefId | None = None,
    ) -> Fate:
        """On the way in, also where nobody waits for it: then `forget` follows.

        READY is told now, WAITS gets a verdict, DEAD is never told.
        """

    def drop(self, fork: ForkId) -> None:
        """A reference that was told is let go of."""

    def forget(self, key: Key) -> None:
        """A carrier that came is not to be told any more; nothing where none waits."""

    def done(self, key: Key) -> None:
        """A call that was told is replied to, whoever hears it; it keeps no value."""

    def plan(self, call: Key, owner: Node, rref: RRefId) -> Fork:
        """This worker's reference to what a call will create."""

    def asked(self, fork: ForkId) -> None:
        """That call is on its way, in order before whatever is sent after this."""

    def created(self, fork: ForkId) -> None:
        """Its answer is told to the agent now."""

    def uncreated(self, fork: ForkId, reason: Reason) -> None:
        """It ended without an answer: the reference is dead."""
