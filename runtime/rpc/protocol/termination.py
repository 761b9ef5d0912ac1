"""Termination: detecting that all members have finished and no message is in flight.

The member of the lowest number coordinates.  Each member that has finished and has no
messages in flight reports how many messages it sent and received on its channels.  When
all have reported and the sums are equal, all are asked once more; if the answers are
the same, no message was in flight in between (Mattern 1987, the method of four
counters), so none can follow.

Rules: the counts of a channel are removed at its end, on both sides; a lost member is
not waited for; when the coordinator is lost, the next member coordinates, and all
report to it.  The coordinator names the members that it counts: without a keeper,
members remove the members that are not named, so that no member finishes while a member
that it knows does not take part.
"""

from collections.abc import Hashable

from everyorder.runtime.rpc.protocol.events import Event, Finished
from everyorder.runtime.rpc.protocol.identities import WorkerNode
from everyorder.runtime.rpc.protocol.messages import (
    Finish,
    Idle,
    Message,
    Survey,
    Waiting,
)

RUNNING, DONE, FINISHING, FINISHED = "RUNNING", "DONE", "FINISHING", "FINISHED"

# A missing transition is illegal; callers must check.
TRANSITIONS: dict[tuple[str, str], str] = {
    (RUNNING, "done"): DONE,
    (DONE, "all are"): FINISHING,
    (DONE, "told"): FINISHED,
    (FINISHING, "all know"): FINISHED,
    (FINISHING, "told"): FINISHED,
}


class Termination:
    """The state machine of termination."""

    def __init__(self) -> None:
        self.out: list[tuple[WorkerNode, Message]] = []
        self.events: list[Event] = []
        self.status = RUNNING
        self._wave = 0
        # The last report: its coordinator, counts, and True if it was busy.
        self._reported: tuple[WorkerNode, int, int, bool] | None = None
        # At the coordinator: the reports, and the sum that a survey has to confirm.
        self._reports: dict[WorkerNode, Idle] = {}
        self._sum: int | None = None
        self._named: tuple[str, ...] | None = None
        # True if an event other than counting happened since the last `advance`.
        self.stirred = True

    def _move(self, what: str) -> None:
        self.status = TRANSITIONS[self.status, what]

    def done(self) -> None:
        """Mark this worker as finished."""
        self.stirred = True
        if self.status == RUNNING:
            self._move("done")

    def due(self, me: WorkerNode) -> bool:
        """Return True if `advance` may change the state; False while other members
        work.
        """
        if self.status == RUNNING:
            return self.stirred and bool(self._reports)
        if self.status != DONE or self.stirred or not self._named:
            return True
        # A member that has finished and reported waits for the missing ones.
        return self._reported is None or self._reported[0] == me

    def unfinished(
        self, me: WorkerNode, members: tuple[WorkerNode, ...]
    ) -> tuple[str, ...]:
        """Return the names of members that have not announced their end."""
        if self.status == FINISHED or not members:
            return ()
        if members[0] == me:
            return self._missing(members)
        if self._named is None:
            return (members[0].name,)
        return self._named

    def _missing(self, members: tuple[WorkerNode, ...]) -> tuple[str, ...]:
        return tuple(each.name for each in members if each not in self._reports)

    def advance(
        self,
        me: WorkerNode,
        members: tuple[WorkerNode, ...],
        counts: tuple[int, int],
        busy: bool,
        unacknowledged: bool,
    ) -> None:
        """Report or decide by the current counts; called after each change.

        `counts` are messages sent and received; `unacknowledged` means that some sent
        message is not acknowledged.
        """
        self.stirred = False
        if self.status == FINISHED or not members:
            return
        if self.status == FINISHING:
            if not unacknowledged:
                self._move("all know")
                self.events.append(Finished())
            return
        coordinator = members[0]
        report = (coordinator, *counts, busy)
        if self.status == DONE and report != self._reported:
            has_reported = (
                self._reported is not None and self._reported[0] == coordinator
            )
            # While a member has not finished, reports of changed counts are not needed.
            if not self._named or coordinator == me if has_reported else not busy:
                self._reported = report
                self._report(me, coordinator, Idle(0, *counts, busy))
        if coordinator == me:
            self._judge(me, members)

    def _report(self, me: WorkerNode, coordinator: WorkerNode, idle: Idle) -> None:
        if coordinator == me:
            self._reports[me] = idle
            if not idle.wave:
                self._sum = None
        else:
            self.out.append((coordinator, idle))

    def _judge(self, me: WorkerNode, members: tuple[WorkerNode, ...]) -> None:
        missing = self._missing(members)
        if missing != self._named:
            self._named = missing
            waiting = Waiting(missing, tuple(each.incarnation for each in members))
            # The missing members receive it, too, so that a lost one is detected.
            for each in members:
                if each != me:
                    self.out.append((each, waiting))
        if missing:
            return
        reports = [self._reports[each] for each in members]
        sent = sum(each.sent for each in reports)
        received = sum(each.received for each in reports)
        if any(each.busy for each in reports) or sent != received:
            return
        # Equal sums of one wave may still miss a message that two reports counted at
        # different times; the second wave must have the same sums.
        if self._sum is None:
            self._wave += 1
            self._sum = sent
            for each in members:
                if each != me:
                    self.out.append((each, Survey(self._wave)))
            self._reports[me] = self._survey_report(self._reports[me])
        if all(self._reports[each].wave == self._wave for each in members):
            if sent == self._sum:
                self._move("all are")
                for each in members:
                    if each != me:
                        self.out.append((each, Finish()))
            else:
                self._sum = None

    def _survey_report(self, idle: Idle) -> Idle:
        return Idle(self._wave, idle.sent, idle.received, idle.busy)

    def receive(
        self, peer: WorkerNode, message: Message, counts: tuple[int, int], busy: bool
    ) -> None:
        """Handle a message; `counts` and `busy` are the current ones of this worker."""
        self.stirred = True
        if isinstance(message, Survey):
            self._reported = (peer, *counts, busy)
            self.out.append((peer, Idle(message.wave, *counts, busy)))
        elif isinstance(message, Idle):
            if message.wave in (0, self._wave):
                self._reports[peer] = message
            if not message.wave:
                # Counts have changed: the survey is void.
                self._sum = self._named = None
            if self.status == FINISHED:
                # The peer was lost when the others received `Finish`, and is admitted
                # again.
                self.out.append((peer, Finish()))
        elif isinstance(message, Waiting):
            self._named = message.names
        elif isinstance(message, Finish) and (self.status, "told") in TRANSITIONS:
            self._move("told")
            self.events.append(Finished())

    def lost(self, peer: WorkerNode) -> None:
        """Do not wait for a lost peer, and forget its report."""
        self.stirred = True
        self._reports.pop(peer, None)
        # Notify the missing members again: they may be lost as well.
        self._sum = self._named = None
        if self._reported is not None and self._reported[0] == peer:
            self._reported = None

    def state(self) -> Hashable:
        """Return the complete state."""
        return (
            self.status,
            self._reported,
            tuple(sorted(self._reports.items(), key=lambda each: each[0])),
            self._sum,
            self._named,
            self._wave,
        )
