"""A worker of the simulator: a real session, and an agent that does what it is told.

True only here: how an agent behaves that keeps to the rules of sessions.  It replies
once to each call that it was told of, drops each reference that it was told of, and
checks all that it is told: what breaks a law is `broken`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from everyorder.runtime.rpc.protocol.events import (
    Admitted,
    Answered,
    Called,
    Cancelled,
    Completed,
    Confirmed,
    Died,
    Event,
    Failed,
    Finished,
    Freed,
    Joined,
    Lost,
    Reason,
    Rejected,
)
from everyorder.runtime.rpc.protocol.identities import Fork, ForkId, RRefId, WorkerNode
from everyorder.runtime.rpc.protocol.session import Session
from tests.rpc.simulator.program import Request, answer_to, read, written


class Broken(Exception):
    """A law does not hold; the text is the law, and what was found."""


@dataclass(slots=True)
class Asked:
    """A call that went out; `then` is done with its end."""

    token: int
    deadline: float | None
    fork: ForkId | None = None
    then: Callable[[], None] | None = None


@dataclass(slots=True)
class Value:
    """A value of this worker: made or not yet, the references that it holds."""

    made: bool = False
    holds: list[Fork] = field(default_factory=list)
    # Fetches that came before it was made.
    parked: list[tuple[Called, Request]] = field(default_factory=list)


@dataclass(slots=True)
class Agent:
    """What one life of a worker has.

    `held` are references, confirmed or not; `values` its own values; `handles` those
    of them that it needs itself; `asked` its calls; `running` what it was told of and
    has not replied to; `members` whom it was told of.
    """

    session: Session
    later: Callable[[float, Callable[[], None]], None]
    ran: Callable[[int, str], None]
    held: dict[ForkId, Fork] = field(default_factory=dict)
    confirmed: set[ForkId] = field(default_factory=set)
    # An event may be on its way when they are dropped.
    dropped: set[ForkId] = field(default_factory=set)
    # What calls were to create that ended at once.
    never: set[RRefId] = field(default_factory=set)
    # Of those that calls create: what these do does not depend on other calls.
    plain: set[ForkId] = field(default_factory=set)
    values: dict[RRefId, Value] = field(default_factory=dict)
    handles: list[RRefId] = field(default_factory=list)
    asked: dict[int, Asked] = field(default_factory=dict)
    running: dict[tuple[WorkerNode, int], Called] = field(default_factory=dict)
    told: set[tuple[WorkerNode, int]] = field(default_factory=set)
    members: dict[WorkerNode, None] = field(default_factory=dict)
    ended: dict[str, int] = field(default_factory=dict)
    freed: list[RRefId] = field(default_factory=list)
    # In the worker's clock; the world sets it before it asks for anything.
    now: float = 0.0
    finished: bool = False
    # The members when it was told that all are done.
    last: tuple[WorkerNode, ...] = ()
    admitted: bool = False
    completed: bool = False
    rejected: bool = False
    # It has said so, and asks for nothing any more.
    done: bool = False
    closing: bool = False
    leaving: bool = False

    @property
    def name(self) -> str:
        """The worker's name."""
        return self.session.node.name

    # What it asks for.

    def call(
        self,
        peer: WorkerNode,
        request: Request,
        carries: list[Fork | RRefId],
        deadline: float | None,
        *,
        creates: bool = False,
        target: Fork | None = None,
        then: Callable[[], None] | None = None,
    ) -> int:
        """Call a worker."""
        rref = self.session.new_id() if creates else None
        number = self.session.call(
            peer,
            written(request),
            carries=carries,
            deadline=deadline,
            now=self.now,
            creates=rref,
            target=None if target is None else target.rref,
        )
        asked = self.asked[number] = Asked(request.token, deadline, then=then)
        if creates:
            try:
                fork = self.session.fork_of(number)
            except KeyError:
                # The call has ended already; that its value died is still to come.
                assert rref is not None, "it creates"
                self.never.add(rref)
                return number
            asked.fork = fork.fork
            sure = self.confirmed | self.plain
            if not request.forward and all(
                item.fork in sure for item in carries if isinstance(item, Fork)
            ):
                self.plain.add(fork.fork)
            self.held[fork.fork] = fork
        return number

    def own(self) -> None:
        """Make a value of its own."""
        rref = self.session.new_id()
        self.session.own(rref)
        self.values[rref] = Value(made=True)
        self.handles.append(rref)

    def disown(self, which: int) -> None:
        """Need a value of its own no more."""
        if self.handles:
            self.session.disown(self.handles.pop(which % len(self.handles)), self.now)

    def drop(self, fork: ForkId) -> None:
        """Let go of a reference."""
        del self.held[fork]
        self.confirmed.discard(fork)
        self.dropped.add(fork)
        self.session.drop(fork, self.now)

    def items(self, which: int, many: int) -> list[Fork | RRefId]:
        """Some of what can be sent along with a call."""
        return self._some([*self.held.values(), *self.handles], which, many)

    def answers(self, called: Called, which: int, many: int) -> list[Fork | RRefId]:
        """Some of what can be sent along with an answer.

        What creates a value does not wait for a value to be created, nor does an
        answer for what may wait for it: circles of workers that wait would never end.
        """
        ready = self.confirmed if called.creates else self.confirmed | self.plain
        held = [fork for name, fork in self.held.items() if name in ready]
        return self._some([*held, *self.handles], which, many)

    def _some(
        self, there: list[Fork | RRefId], which: int, many: int
    ) -> list[Fork | RRefId]:
        if not there or not many:
            return []
        return [there[(which + number) % len(there)] for number in range(many)]

    # What it is told.

    def hear(self, event: Event) -> None:
        """An event of the session.

        Raises:
            Broken: it should not have been told.
        """
        match event:
            case Called():
                self._called(event)
            case Cancelled(peer, call):
                if (peer, call) not in self.told:
                    raise Broken("only what was told is cancelled")
            case Answered():
                self._answered(event)
            case Failed(call, reason):
                asked = self._ended(call, f"failed: {reason.name}")
                if reason is Reason.DEADLINE and (
                    asked.deadline is None or self.now < asked.deadline
                ):
                    raise Broken("no call fails by its deadline before it")
                if asked.then is not None:
                    asked.then()
            case Confirmed(fork):
                if fork.fork in self.held:
                    if fork.fork in self.confirmed:
                        raise Broken("a reference is confirmed once")
                    self.confirmed.add(fork.fork)
            case Died(fork):
                self._died(fork)
            case Freed(rref):
                self._freed(rref)
            case Joined(node):
                if node in self.members:
                    raise Broken(f"{node} joined twice")
                self.members[node] = None
            case Lost(node):
                if self.members.pop(node, 0) is not None:
                    raise Broken(f"{node} left and was no member")
            case Admitted():
                self.admitted = True
            case Completed():
                if self.completed:
                    raise Broken("a group is complete once")
                self.completed = True
            case Rejected():
                self.rejected = True
            case Finished():
                if self.finished:
                    raise Broken("the end comes once")
                self.finished = True
                self.last = tuple(self.members)

    def _receive(self, forks: tuple[Fork, ...]) -> None:
        for fork in forks:
            if fork.fork in self.held:
                raise Broken("each reference is told once")
            self.held[fork.fork] = fork
            self.confirmed.add(fork.fork)

    def _called(self, called: Called) -> None:
        request = read(called.payload)
        self.ran(request.token, self.name)
        self._receive(called.carries)
        name = called.peer, called.call
        if name in self.told:
            raise Broken("nothing runs twice")
        self.told.add(name)
        self.running[name] = called
        if called.creates is not None:
            if called.creates in self.values:
                raise Broken("a value is created once")
            self.values[called.creates] = Value()
        if called.target is not None:
            value = self.values.get(called.target)
            if value is None:
                raise Broken("what is fetched is there")
            if not value.made:
                value.parked.append((called, request))
                return
        self.later(request.wait, lambda: self._work(called, request))

    def _work(self, called: Called, request: Request) -> None:
        """Do what is asked for, then reply."""
        mine = [fork for fork in called.carries if fork.fork in self.held]
        others = [node for node in self.members if node != self.session.node]
        if request.forward and others and not self.closing:
            peer = others[request.token % len(others)]
            further = request._replace(
                token=request.token * 10_000 + 1, forward=request.forward - 1
            )
            deadline = None if request.token % 3 else self.now + 1.0
            self.call(
                peer,
                further,
                list(mine),
                deadline,
                then=lambda: self._reply(called, request),
            )
        else:
            self._reply(called, request)

    def _reply(self, called: Called, request: Request) -> None:
        carries: list[Fork | RRefId] = []
        if called.target is not None:
            value = self.values.get(called.target)
            if value is None:
                raise Broken("what is fetched is kept")
            carries += [fork for fork in value.holds if fork.fork in self.held]
        else:
            carries += self.answers(called, request.token, request.answer)
        mine = [fork for fork in called.carries if fork.fork in self.held]
        made: list[tuple[Called, Request]] = []
        if called.creates is not None:
            value = self.values.get(called.creates)
            if value is None:
                raise Broken("what is created is kept")
            value.made = True
            if request.keep:
                value.holds = mine
            made, value.parked = value.parked, []
        del self.running[called.peer, called.call]
        self.session.reply(
            called.peer,
            called.call,
            answer_to(request.token),
            carries=carries,
            failed=request.failed,
            now=self.now,
        )
        if not request.keep or self.closing:
            for fork in mine:
                if fork.fork in self.held:
                    self.drop(fork.fork)
        for fetch, other in made:
            self.later(0.0, lambda f=fetch, o=other: self._reply(f, o))  # type: ignore[misc]  # bound now

    def _ended(self, call: int, how: str) -> Asked:
        asked = self.asked.pop(call, None)
        if asked is None:
            raise Broken(f"each call has one end; {how} is another one")
        self.ended[how] = self.ended.get(how, 0) + 1
        return asked

    def _answered(self, answered: Answered) -> None:
        asked = self._ended(answered.call, "answered")
        if [bytes(each) for each in answered.payload] != answer_to(asked.token):
            raise Broken("an answer is that to the call")
        self._receive(answered.carries)
        if self.closing or asked.token % 2:
            for fork in answered.carries:
                self.drop(fork.fork)
        if asked.then is not None:
            asked.then()

    def _died(self, fork: Fork) -> None:
        known = fork.fork in self.dropped or fork.rref in self.never
        if self.held.pop(fork.fork, None) is None and not known:
            raise Broken("only what is held dies")
        self.confirmed.discard(fork.fork)

    def _freed(self, rref: RRefId) -> None:
        value = self.values.pop(rref, None)
        if value is None:
            raise Broken("only what is there is freed, once")
        if not value.made or value.parked:
            raise Broken("nothing is freed that is being made or fetched")
        if rref in self.handles:
            raise Broken("nothing is freed that its owner needs")
        self.freed.append(rref)
        for fork in value.holds:
            if fork.fork in self.held:
                self.drop(fork.fork)
