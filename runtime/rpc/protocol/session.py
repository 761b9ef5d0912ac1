"""Session: one worker, as a state machine of packets, time and requests of its agent.

The agent calls and answers, holds and drops references, joins, leaves and finishes; it
passes packets and the time to the session, and fetches packets and events.

Rules:
- the code below does not read a clock, draw a random number, block or do I/O: the same
  calls produce the same packets and events;
- each call has been processed completely when it returns, so `take_packets` and
  `take_events` are complete; reacting to events is the task of the agent;
- work that is due by `now` is done first: a worker that was suspended for a long time
  gives up its holds before it uses any of them;
- one thread at a time.
"""

from collections.abc import Mapping

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
from everyorder.runtime.rpc.protocol.messages import KINDS, MemberJoined
from everyorder.runtime.rpc.protocol.wire import PacketError

_ADMISSIONS = frozenset(
    number for number, kind in KINDS.items() if kind is MemberJoined
)


class Session(ProtocolCore):
    """The session of one worker's life; `node` is its identity, with id -1 before it
    joins.
    """

    # Membership.

    def keep(self, *, world_size: int | None, id: int = 0) -> None:  # noqa: A002
        """Become the keeper of a group; `world_size` is None for an open group."""
        self._members.keep(world_size, id)
        self._drain(self._now)

    def join(
        self,
        endpoint: str,
        *,
        id: int | None,  # noqa: A002
        now: float,
        world_size: int | None = None,
    ) -> None:
        """Ask the keeper at an endpoint to join, with the number `id` if it is not
        None.

        `world_size` is the required size of the group, None for any.  The request is
        repeated until it ends with an `Admitted` or a `Rejected`.
        """
        self._advance_clock(now)
        self._members.join(endpoint, id, now, world_size)
        self._drain(now)

    def leave(self, now: float) -> None:
        """Notify all members that this worker leaves, and stop."""
        self._advance_clock(now)
        for channel in self._channels.values():
            channel.goodbye()
        goodbyes = list(self._packets)
        self.stop(now)
        self._packets.extend(goodbyes)

    def stop(self, now: float) -> None:
        """End everything at once; nothing more is sent."""
        if self._stopped:
            return
        for channel in list(self._channels.values()):
            channel.over(Reason.STOPPED)
        self._end(now)
        self._calls.stop(now)
        self._drain(now)
        self._stopped = True
        self._channels.clear()
        self._timers.clear()
        self._packets.clear()

    def members(self) -> tuple[WorkerNode, ...]:
        """Return all members, including this worker, by number."""
        return self._members.members()

    def uninformed(self) -> int:
        """Return how many workers do not know yet that this worker, the keeper, has
        given up a static group.
        """
        return self._members.uninformed()

    def is_announcing(self) -> bool:
        """Return True if a member may not know all others, and would never if this
        worker, the keeper, left now.
        """
        return any(
            channel.has_unacknowledged(_ADMISSIONS)
            for channel in self._channels.values()
        )

    def finish(self, now: float) -> None:
        """Announce that this worker has finished; `Finished` follows when all have.

        The worker continues to serve the others until then.
        """
        self._advance_clock(now)
        self._termination.done()
        self._drain(now)

    def unfinished(self) -> tuple[str, ...]:
        """Return the names of members that have not announced their end."""
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
        """Start a call to a peer and return its number.

        The call ends as `Answered` or `Failed`.  `carries` are references of this
        worker, or ids of its own values; `creates` is the new id of a value that the
        peer creates; `target` the value that the call fetches.  `deadline` and `now`
        are in seconds.
        """
        self._advance_clock(now)
        channel = self._channels.get(peer.incarnation)
        gone = None
        if channel is None and (self._stopped or peer != self.node):
            lost = peer.incarnation in self._former
            gone = Reason.LOST if lost else Reason.LEFT
            gone = Reason.STOPPED if self._stopped else gone
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
        self._drain(now)
        return number

    def fork_of(self, call: int) -> Fork:
        """Return the reference of a call that creates a value, until the call ends."""
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
        """Answer a call; required once for each `Called`, also if it is cancelled."""
        self._advance_clock(now)
        self._calls.reply(
            peer,
            call,
            payload,
            now,
            carries=carries,
            failed=failed,
            largest=self._largest(peer),
        )
        self._drain(now)

    def _largest(self, peer: WorkerNode) -> int:
        """Return the largest payload of a peer in bytes; by default, this worker's."""
        channel = self._channels.get(peer.incarnation)
        largest = None if channel is None else channel.largest
        return self.settings.largest if largest is None else largest

    def cancel(self, call: int, now: float) -> None:
        """Cancel a call: it ends as `Failed`, unless it has ended."""
        self._advance_clock(now)
        self._calls.cancel(call, now)
        self._drain(now)

    # References.

    def new_id(self) -> GloballyUniqueId:
        """Return an id that is unique among all workers."""
        return self._references.new_id()

    def own(self, rref: RRefId) -> None:
        """Add a local handle on a value of this worker."""
        self._references.own(rref)

    def disown(self, rref: RRefId, now: float) -> None:
        """Remove a local handle; `Freed` follows when no reference is left."""
        self._advance_clock(now)
        self._references.disown(rref)
        self._drain(now)

    def drop(self, fork: ForkId, now: float) -> None:
        """Drop a reference."""
        self._advance_clock(now)
        self._references.drop(fork)
        self._drain(now)

    def listed(self) -> list[tuple[RRefId, ForkId]]:
        """Return this worker's values to which others refer, with the references."""
        values = self._references.owners.values
        return [
            (rref, fork)
            for rref, owned in sorted(values.items())
            for fork, user in sorted(owned.forks.items())
            if user != self.node
        ]

    def reached(self, times: Mapping[str, float]) -> None:
        """Record until when the processes at some endpoints were running.

        The next call of the session relies on it; `times` are in this worker's clock.
        """
        for channel in self._channels.values():
            time = times.get(channel.endpoint)
            if time is not None:
                channel.lease.reach(time)

    def unreachable(self, endpoint: str, now: float) -> None:
        """Handle an endpoint without a listening process: calls to it fail.

        Its worker's holds are released no sooner than after its silence: a refused link
        does not prove that the worker has ended.
        """
        self._advance_clock(now)
        for channel in self._channels.values():
            if channel.endpoint == endpoint:
                channel.unreachable(now)
        self._drain(now)

    def endpoint_of(self, node: WorkerNode) -> str:
        """Return the endpoint of a member; "" if it is not a member."""
        member = self._members.member(node.incarnation)
        return member.endpoint if member is not None else ""

    # Inspection.

    def garbage(self) -> dict[str, int]:
        """Return the number of dropped packets by reason."""
        return {
            error.name: self._garbage[error]
            for error in PacketError
            if self._garbage[error]
        }

    def positions(self) -> dict[WorkerNode, tuple[int, ...]]:
        """Return, for each channel, the absolute numbers that `state` omits."""
        return {each.node: each.positions() for each in self._channels.values()}
