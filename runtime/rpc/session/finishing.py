"""Finishing: all are done, and nothing is in flight; who is not done is named.

The member of the lowest number asks. Each member that is done and has nothing in flight
reports how many messages it sent and received on its channels. When all have reported
and the sums are equal, all are asked once more; where the answers are the same, nothing
was in flight in between (Mattern 1987, the method of four counters), so nothing ever
will be.

Rules: a channel that ended takes its counts with it, on both sides; a member that is
lost is not waited for; where the one who asks is lost, the next one does, and all
report to it.  Who asks says which members it counts: where no keeper says who is there,
those who ask it lose the others, so that nobody is told of an end that a member whom it
knows has no part in.
"""

from collections.abc import Hashable

from runtime.rpc.identities import Node
from runtime.rpc.messages import Finish, Idle, Message, Survey, Waiting
from runtime.rpc.session.events import Event, Finished

RUNNING, DONE, FINISHING, FINISHED = "RUNNING", "DONE", "FINISHING", "FINISHED"

# What is not here is not legal: whoever asks looks before.
TRANSITIONS: dict[tuple[str, str], str] = {
    (RUNNING, "done"): DONE,
    (DONE, "all are"): FINISHING,
    (DONE, "told"): FINISHED,
    (FINISHING, "all know"): FINISHED,
    (FINISHING, "told"): FINISHED,
}


class Finishing:
    """The machine of the end."""

    def __init__(self) -> None:
        self.out: list[tuple[Node, Message]] = []
        self.events: list[Event] = []
        self.status = RUNNING
        self._wave = 0
        # The last report: to whom, and what it said.
        self._told: tuple[Node, int, int, bool] | None = None
        # Of the one who asks: the reports, and the sum that the survey is to confirm.
        self._reports: dict[Node, Idle] = {}
        self._sum: int | None = None
        self._named: tuple[str, ...] | None = None
        # Whether something came since the last look, besides messages being counted.
        self.stirred = True

    def _move(self, what: str) -> None:
        self.status = TRANSITIONS[self.status, what]

    def done(self) -> None:
        """This worker is done."""
        self.stirred = True
        if self.status == RUNNING:
            self._move("done")

    def due(self, me: Node) -> bool:
        """Whether a look may find something: as long as others work, it does not."""
        if self.status == RUNNING:
            return self.stirred and bool(self._reports)
        if self.status != DONE or self.stirred or not self._named:
            return True
        # Who is done and has said so waits for those who are named.
        return self._told is None or self._told[0] == me

    def unfinished(self, me: Node, members: tuple[Node, ...]) -> tuple[str, ...]:
        """Who is not done yet, as far as it is known here."""
        if self.status == FINISHED or not members:
            return ()
        if members[0] == me:
            return self._missing(members)
        if self._named is None:
            return (members[0].name,)
        return self._named

    def _missing(self, members: tuple[Node, ...]) -> tuple[str, ...]:
        return tuple(each.name for each in members if each not in self._reports)

    def look(
        self,
        me: Node,
        members: tuple[Node, ...],
        counts: tuple[int, int],
        busy: bool,
        unacknowledged: bool,
    ) -> None:
        """See what follows from how things are; asked after everything that happens.

        `counts` are messages sent and received; `unacknowledged` says that some
        message is not known to have come.
        """
        self.stirred = False
        if self.status == FINISHED or not members:
            return
        if self.status == FINISHING:
            if not unacknowledged:
                self._move("all know")
                self.events.append(Finished())
            return
        asks = members[0]
        report = (asks, *counts, busy)
        if self.status == DONE and report != self._told:
            known = self._told is not None and self._told[0] == asks
            # As long as somebody is not done, nobody needs to know how things are.
            if not self._named or asks == me if known else not busy:
                self._told = report
                self._report(me, asks, Idle(0, *counts, busy))
        if asks == me:
            self._judge(me, members)

    def _report(self, me: Node, asks: Node, idle: Idle) -> None:
        if asks == me:
            self._reports[me] = idle
            if not idle.wave:
                self._sum = None
        else:
            self.out.append((asks, idle))

    def _judge(self, me: Node, members: tuple[Node, ...]) -> None:
        missing = self._missing(members)
        if missing != self._named:
            self._named = missing
            waiting = Waiting(missing, tuple(each.incarnation for each in members))
            # Those who are waited for are told, too: one who is gone is found out.
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
        if self._sum is None:
            self._wave += 1
            self._sum = sent
            for each in members:
                if each != me:
                    self.out.append((each, Survey(self._wave)))
            self._reports[me] = self._again(self._reports[me])
        if all(self._reports[each].wave == self._wave for each in members):
            if sent == self._sum:
                self._move("all are")
                for each in members:
                    if each != me:
                        self.out.append((each, Finish()))
            else:
                self._sum = None

    def _again(self, idle: Idle) -> Idle:
        return Idle(self._wave, idle.sent, idle.received, idle.busy)

    def receive_with(
        self, peer: Node, message: Message, counts: tuple[int, int], busy: bool
    ) -> None:
        """A message came; how things are here is told with it."""
        self.stirred = True
        if isinstance(message, Survey):
            self._told = (peer, *counts, busy)
            self.out.append((peer, Idle(message.wave, *counts, busy)))
        elif isinstance(message, Idle):
            if message.wave in (0, self._wave):
                self._reports[peer] = message
            if not message.wave:
                # Something happened since: a survey is worth nothing.
                self._sum = self._named = None
            if self.status == FINISHED:
                # It was lost when all were told, and has been admitted anew.
                self.out.append((peer, Finish()))
        elif isinstance(message, Waiting):
            self._named = message.names
        elif isinstance(message, Finish) and (self.status, "told") in TRANSITIONS:
            self._move("told")
            self.events.append(Finished())

    def lost(self, peer: Node) -> None:
        """A peer is not waited for; what it said is forgotten."""
        self.stirred = True
        self._reports.pop(peer, None)
        # Those who are waited for are asked once more: they may be gone as well.
        self._sum = self._named = None
        if self._told is not None and self._told[0] == peer:
            self._told = None

    def state(self) -> Hashable:
        """Everything that it knows."""
        return (
            self.status,
            self._told,
            tuple(sorted(self._reports.items(), key=lambda each: each[0])),
            self._sum,
            self._named,
            self._wave,
        )
