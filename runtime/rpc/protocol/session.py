"""Session: one worker, as a state machine of packets, time and requests of its agent.

The agent calls and answers, holds references and drops them, joins, leaves and
finishes; it passes packets and the time in, and takes packets and events out.

Rules:
- nothing below reads a clock, draws a number, blocks or does I/O: the same calls give
  the same packets and events;
- after each call everything that follows from it has happened, so `take_packets` and
  `take_events` are complete; reacting to events is for the agent;
- whatever is due by `now` happens first: a worker that was stopped for long has given
  up what it held before it uses any of it;
- one thread at a time.
"""

from everyorder.runtime.rpc.protocol.call_machine import Carries
from everyorder.runtime.rpc.protocol.core import ProtocolCore
from everyorder.runtime.rpc.protocol.events import Payload, Reason
from everyorder.runtime.rpc.protocol.identities import (
    Fork,
    ForkId,
    GloballyUniqueId,
    RRefId,
    WorkerNode,
)


class Session(ProtocolCore):
    """One worker's life; `node` is what it is known as, with -1 for no number yet."""

    # Membership.

    def keep(self, *, world_size: int | None, id: int = 0) -> None:  # noqa: A002
        """Become the keeper of a group, which is complete at `world_size` if given."""
        self._members.keep(world_size, id)
        self._settle(self._now)

    def join(
        self,
        endpoint: str,
        *,
        id: int | None,  # noqa: A002
        now: float,
        world_size: int | None = None,
    ) -> None:
        """Ask the keeper at an endpoint to be a member, with this number if given.

        `world_size` is the size that the group has to have, None for any.  The end
        is an `Admitted` or a `Rejected`; until then it is asked again.
        """
        self._come(now)
        self._members.join(endpoint, id, now, world_size)
        self._settle(now)

    def leave(self, now: float) -> None:
        """Tell all members that this worker leaves, and stop."""
        self._come(now)
        for channel in self._channels.values():
            channel.goodbye()
        kept = list(self._packets)
        self.stop(now)
        self._packets.extend(kept)

    def stop(self, now: float) -> None:
        """End everything at once; nothing more is sent."""
        if self._stopped:
            return
        for channel in list(self._channels.values()):
            channel.over(Reason.STOPPED)
        self._end(now)
        self._calls.stop(now)
        self._settle(now)
        self._stopped = True
        self._channels.clear()
        self._timers.clear()
        self._packets.clear()

    def members(self) -> tuple[WorkerNode, ...]:
        """All members, this worker among them, by number."""
        return self._members.members()

    def finish(self, now: float) -> None:
        """Say that this worker is done; `Finished` comes when all are.

        It goes on to serve the others until then.
        """
        self._come(now)
        self._termination.done()
        self._settle(now)

    def unfinished(self) -> tuple[str, ...]:
        """The names of members that are not known to be done."""
        return self._termination.unfinished(self.node, self.members())

    # Calls.

    def call(
        self,
        peer: WorkerNode,
        payload: Payload,
        *,
        carries: Carries = (),
        deadline: float | None,
        now: float,
        creates: RRefId | None = None,
        target: RRefId | None = None,
    ) -> int:
        """Ask a peer for something; the call ends as `Answered` or `Failed`.

        `carries` are references of this worker, or names of its own values; `creates`
        is a new name, of a value that the peer makes; `target` one that it fetches.
        """
        self._come(now)
        channel = self._channels.get(peer.incarnation)
        gone = None
        if channel is None and (self._stopped or peer != self.node):
            gone = Reason.STOPPED if self._stopped else Reason.LEFT
        number = self._calls.call(
            peer,
            payload,
            now,
            carries=carries,
            deadline=deadline,
            creates=creates,
            target=target,
            largest=self._largest(peer),
            gone=gone,
        )
        self._settle(now)
        return number

    def fork_of(self, call: int) -> Fork:
        """The reference of a call that creates; while the call has no end."""
        return self._calls.fork_of(call)

    def reply(
        self,
        peer: WorkerNode,
        call: int,
        payload: Payload,
        *,
        carries: Carries = (),
        failed: bool = False,
        now: float,
    ) -> None:
        """Answer a call; to be said once for each `Called`, also if it is cancelled."""
        self._come(now)
        self._calls.reply(
            peer,
            call,
            payload,
            now,
            carries=carries,
            failed=failed,
            largest=self._largest(peer),
        )
        self._settle(now)

    def _largest(self, peer: WorkerNode) -> int:
        """The bytes of a payload that a peer takes; ours, until it has said so."""
        channel = self._channels.get(peer.incarnation)
        told = None if channel is None else channel.largest
        return self.settings.largest if told is None else told

    def cancel(self, call: int, now: float) -> None:
        """Cancel a call: it ends as `Failed`, unless it has ended."""
        self._come(now)
        self._calls.cancel(call, now)
        self._settle(now)

    # References.

    def new_id(self) -> GloballyUniqueId:
        """A name that no worker gives twice."""
        return self._references.new_id()

    def own(self, rref: RRefId) -> None:
        """One more local handle on a value of this worker."""
        self._references.own(rref)

    def disown(self, rref: RRefId, now: float) -> None:
        """One local handle less; `Freed` follows when no reference is left."""
        self._come(now)
        self._references.disown(rref)
        self._settle(now)

    def drop(self, fork: ForkId, now: float) -> None:
        """Drop a reference."""
        self._come(now)
        self._references.drop(fork)
        self._settle(now)

    def listed(self) -> list[tuple[RRefId, ForkId]]:
        """The values of this worker that others refer to, with the references."""
        values = self._references.owners.values
        return [
            (rref, fork)
            for rref, owned in sorted(values.items())
            for fork, user in sorted(owned.forks.items())
            if user != self.node
        ]

    def unreachable(self, endpoint: str, now: float) -> None:
        """No process listens at an endpoint any more: calls there fail.

        What its worker holds here is released no sooner than after its silence: a
        refused link does not prove that the worker has ended.
        """
        self._come(now)
        for channel in self._channels.values():
            if channel.endpoint == endpoint:
                channel.unreachable(now)
        self._settle(now)

    def endpoint_of(self, node: WorkerNode) -> str:
        """Where a member is reached; "" where it is none."""
        member = self._members.member(node.incarnation)
        return member.endpoint if member is not None else ""
