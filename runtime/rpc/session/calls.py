"""Calls: what was asked of whom, and how it ends.

True only here: that every call has one end.  A call that goes out ends as `Answered` or
`Failed`, whatever comes first: the answer, the deadline, the end of the channel, a
reference that it carries and that is dead; whatever comes after that is dropped.  A
call that comes in is told once, as `Called`, when its references are confirmed; it ends
by the reply, or is `Cancelled`.

    OUT     HELD        it carries what is not confirmed, or too many calls wait
            SENT        it was sent; the answer is waited for
            ANSWERED    the answer carries references that are not confirmed yet
    IN      ARRIVED     its references are not confirmed yet
            CALLED      the agent is at it
            REPLIED     the reply carries what is not confirmed yet

Rules: deadlines are absolute here, relative in messages; a caller whose deadline passes
says so, and the callee's clock does not matter.  The references of a call or of an
answer are the business of `Carrying`, which is asked before anything is sent and told
of all that comes.
"""

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import ceil, inf

from runtime.rpc.identities import Fork, Node, RRefId
from runtime.rpc.messages.kinds import Answer, Call, Cancel, Decline, Message
from runtime.rpc.session.events import (
    Answered,
    Called,
    Cancelled,
    Event,
    Failed,
    Payload,
    Reason,
)
from runtime.rpc.session.machine import Carrying, Standing
from runtime.rpc.session.settings import Settings
from runtime.rpc.wire import size

HELD, SENT, ANSWERED = "HELD", "SENT", "ANSWERED"
ARRIVED, CALLED, REPLIED = "ARRIVED", "CALLED", "REPLIED"

# What is not here is not legal: whoever asks looks before.
TRANSITIONS: dict[tuple[str, str], str | None] = {
    (HELD, "send"): SENT,
    (HELD, "end"): None,
    (SENT, "answer"): ANSWERED,
    (SENT, "end"): None,
    (ANSWERED, "end"): None,
    (ARRIVED, "confirmed"): CALLED,
    (ARRIVED, "end"): None,
    (CALLED, "reply"): REPLIED,
    (CALLED, "end"): None,
    (REPLIED, "end"): None,
}

Carries = Sequence[Fork | RRefId]


@dataclass(slots=True)
class _Out:
    """A call that went out."""

    call: int
    peer: Node
    payload: Payload
    carries: Carries
    deadline: float | None
    creates: RRefId | None
    target: RRefId | None
    fork: Fork | None
    state: str = HELD
    answer: Answer | None = None


@dataclass(slots=True)
class _In:
    """A call that came in."""

    peer: Node
    call: int
    event: Called | None
    state: str
    reply: tuple[Payload, Carries, bool] | None = None


class Calls:
    """The machine of calls; `references` is asked about all that they carry."""

    def __init__(self, references: Carrying, settings: Settings) -> None:
        self.out: list[tuple[Node, Message]] = []
        self.events: list[Event] = []
        self._references = references
        self._settings = settings
        self._number = 0
        self._outs: dict[int, _Out] = {}
        self._ins: dict[tuple[Node, int], _In] = {}
        # How many are SENT to each peer, and what waits until there are fewer.
        self._flying: dict[Node, int] = {}
        self._waiting: dict[Node, deque[int]] = {}
        # What waits for references before it is sent.
        self._unsent: dict[int | tuple[Node, int], None] = {}
        self._deadlines: list[tuple[float, int]] = []

    # Calls that go out.

    def call(
        self,
        peer: Node,
        payload: Payload,
        now: float,
        *,
        carries: Carries = (),
        deadline: float | None = None,
        creates: RRefId | None = None,
        target: RRefId | None = None,
    ) -> int:
        """Ask a peer for something; the number of the call."""
        self._number = number = self._number + 1
        fork = None
        if creates is not None:
            fork = self._references.create(creates, peer, now)
        out = _Out(number, peer, payload, carries, deadline, creates, target, fork)
        self._outs[number] = out
        if deadline is not None:
            heappush(self._deadlines, (deadline, number))
        if size(payload) > self._settings.largest:
            self._fail(out, Reason.TOO_LARGE, now)
        else:
            self._try(out, now)
        return number

    def fork_of(self, call: int) -> Fork:
        """The reference of a call that creates; as long as the call has no end."""
        fork = self._outs[call].fork
        assert fork is not None, "it creates"
        return fork

    def cancel(self, call: int, now: float) -> None:
        """The caller gives a call up, if it has no end yet."""
        out = self._outs.get(call)
        if out is not None:
            self._give_up(out, Reason.CANCELLED, now)

    def _try(self, out: _Out, now: float) -> None:
        """Send a call if it can be sent."""
        if out.carries:
            match self._references.standing(out.carries):
                case Standing.WAITING:
                    self._unsent[out.call] = None
                    return
                case Standing.DEAD:
                    self._fail(out, Reason.REFERENCE, now)
                    return
        peer = out.peer
        flying = self._flying.get(peer, 0)
        if flying >= self._settings.calls:
            self._waiting.setdefault(peer, deque()).append(out.call)
            return
        self._flying[peer] = flying + 1
        out.state = SENT
        carried = (
            self._references.carry(peer, out.carries, now) if out.carries else ()
        )
        left = None
        if out.deadline is not None:
            left = max(0, ceil((out.deadline - now) * 1000))
        self.out.append(
            (
                peer,
                Call(
                    out.call,
                    out.payload,
                    carried,
                    left,
                    out.creates,
                    None if out.fork is None else out.fork.fork,
                    out.target,
                ),
            )
        )
        # They travel; what is needed of the call from now on is its number.
        out.payload = out.carries = ()

    def _give_up(self, out: _Out, reason: Reason, now: float) -> None:
        if out.state == SENT:
            self.out.append((out.peer, Cancel(out.call)))
        elif out.state == ANSWERED:
            self._references.forget(out.call, now)
        self._fail(out, reason, now)

    def _fail(self, out: _Out, reason: Reason, now: float, detail: str = "") -> None:
        self._close(out, now)
        if out.fork is not None:
            self._references.uncreated(out.fork.fork, reason, now)
        self.events.append(Failed(out.call, reason, detail))

    def _close(self, out: _Out, now: float) -> None:
        """A call has its end; another one may be sent for it."""
        del self._outs[out.call]
        self._unsent.pop(out.call, None)
        if out.state != HELD:
            self._landed(out.peer, now)

    def _landed(self, peer: Node, now: float) -> None:
        flying = self._flying[peer] - 1
        if flying:
            self._flying[peer] = flying
        else:
            del self._flying[peer]
        waiting = self._waiting.get(peer)
        while waiting:
            out = self._outs.get(waiting.popleft())
            if not waiting:
                del self._waiting[peer]
            if out is not None:
                self._try(out, now)
                break

    def _answer(self, peer: Node, answer: Answer, now: float) -> None:
        out = self._outs.get(answer.call)
        if out is None or out.state != SENT or out.peer != peer:
            if answer.carries:
                self._references.unwanted(peer, answer.carries, now)
            return
        if answer.carries:
            standing = self._references.arrived(
                peer, answer.call, answer.carries, now
            )
            if standing is Standing.WAITING:
                out.state = ANSWERED
                out.answer = answer
                return
            if standing is Standing.DEAD:
                self._fail(out, Reason.REFERENCE, now)
                return
        self._answered(out, answer, now)

    def _answered(self, out: _Out, answer: Answer, now: float) -> None:
        self._close(out, now)
        if out.fork is not None:
            self._references.created(out.fork.fork, now)
        self.events.append(
            Answered(answer.call, answer.payload, answer.carries, answer.failed)
        )

    # Calls that come in.

    def reply(
        self,
        peer: Node,
        call: int,
        payload: Payload,
        now: float,
        *,
        carries: Carries = (),
        failed: bool = False,
        largest: int | None = None,
    ) -> None:
        """Answer a call; nothing happens where nobody waits for it any more."""
        entry = self._ins.get((peer, call))
        if entry is None or entry.state != CALLED:
            return
        if largest is not None and size(payload) > largest:
            del self._ins[peer, call]
            self.out.append((peer, Decline(call, Reason.TOO_LARGE)))
            return
        if not carries:
            del self._ins[peer, call]
            self.out.append((peer, Answer(call, payload, (), failed)))
            return
        entry.state = REPLIED
        entry.reply = payload, carries, failed
        self._try_reply(entry, now)

    def _try_reply(self, entry: _In, now: float) -> None:
        assert entry.reply is not None, "it is REPLIED"
        payload, carries, failed = entry.reply
        name = entry.peer, entry.call
        match self._references.standing(carries):
            case Standing.WAITING:
                self._unsent[name] = None
                return
            case Standing.READY:
                carried = self._references.carry(entry.peer, carries, now)
                answer = Answer(entry.call, payload, carried, failed)
                self.out.append((entry.peer, answer))
            case Standing.DEAD:
                self.out.append((entry.peer, Decline(entry.call, Reason.REFERENCE)))
        del self._ins[name]
        self._unsent.pop(name, None)

    def _called(self, peer: Node, call: Call, now: float) -> None:
        name = peer, call.call
        if name in self._ins:
            # A number is given once; who gives it twice is not answered twice.
            return
        if call.creates is not None:
            assert call.fork is not None, "they come together"
            self._references.made(peer, call.creates, call.fork, now)
        deadline = None
        if call.milliseconds is not None:
            deadline = now + call.milliseconds / 1000
        event = Called(
            peer,
            call.call,
            call.payload,
            call.carries,
            call.creates,
            call.target,
            deadline,
        )
        if call.carries:
            standing = self._references.arrived(peer, name, call.carries, now)
            if standing is Standing.WAITING:
                self._ins[name] = _In(peer, call.call, event, ARRIVED)
                return
            if standing is Standing.DEAD:
                self.out.append((peer, Decline(call.call, Reason.REFERENCE)))
                return
        self._ins[name] = _In(peer, call.call, None, CALLED)
        self.events.append(event)

    def _cancelled(self, peer: Node, call: int, now: float) -> None:
        entry = self._ins.pop((peer, call), None)
        if entry is None:
            return
        self._unsent.pop((peer, call), None)
        if entry.state == CALLED:
            self.events.append(Cancelled(peer, call))
        elif entry.state == ARRIVED:
            self._references.forget((peer, call), now)

    def refuse(self, peer: Node, call: Call, reason: Reason, now: float) -> None:
        """A call came that is not taken here."""
        if call.carries:
            self._references.unwanted(peer, call.carries, now)
        self.out.append((peer, Decline(call.call, reason)))

    # The machine.

    def receive(self, peer: Node, message: Message, now: float) -> None:
        """A message came."""
        kind = type(message)
        if kind is Call:
            self._called(peer, message, now)  # type: ignore[arg-type]  # its class
        elif kind is Answer:
            self._answer(peer, message, now)  # type: ignore[arg-type]  # its class
        elif isinstance(message, Decline):
            out = self._outs.get(message.call)
            if out is not None and out.state == SENT and out.peer == peer:
                self._fail(out, message.reason, now, message.detail)
        elif isinstance(message, Cancel):
            self._cancelled(peer, message.call, now)

    def lost(self, peer: Node, reason: Reason, now: float) -> None:
        """The channel to a peer ended, and with it every call there and from there."""
        self._waiting.pop(peer, None)
        for out in [each for each in self._outs.values() if each.peer == peer]:
            if out.state == ANSWERED:
                self._references.forget(out.call, now)
            self._fail(out, reason, now)
        for entry in [each for each in self._ins.values() if each.peer == peer]:
            self._cancelled(peer, entry.call, now)

    def expired(self, peer: Node, now: float) -> None:
        """Nothing: calls ended with `lost`."""

    def look(self, now: float) -> None:
        """Go on with what waited for references, as far as they are settled."""
        references = self._references
        while references.settled:
            carrier, standing = references.settled.pop(0)
            if isinstance(carrier, int):
                self._settled_out(carrier, standing, now)
            else:
                self._settled_in(carrier, standing, now)
        for name in list(self._unsent):
            if name not in self._unsent:
                continue
            if isinstance(name, int):
                out = self._outs[name]
                if references.standing(out.carries) is not Standing.WAITING:
                    del self._unsent[name]
                    self._try(out, now)
            else:
                self._try_reply(self._ins[name], now)

    def _settled_out(self, call: int, standing: Standing, now: float) -> None:
        out = self._outs.get(call)
        if out is None or out.state != ANSWERED:
            return
        assert out.answer is not None, "it is ANSWERED"
        if standing is Standing.READY:
            self._answered(out, out.answer, now)
        else:
            self._fail(out, Reason.REFERENCE, now)

    def _settled_in(self, name: Hashable, standing: Standing, now: float) -> None:
        entry = self._ins.get(name)  # type: ignore[call-overload]  # one of ours
        if entry is None or entry.state != ARRIVED:
            return
        assert entry.event is not None, "it is ARRIVED"
        if standing is Standing.READY:
            entry.state = CALLED
            self.events.append(entry.event)
            entry.event = None
        else:
            del self._ins[entry.peer, entry.call]
            self.out.append((entry.peer, Decline(entry.call, Reason.REFERENCE)))

    def tick(self, now: float) -> None:
        """Fail what is over its deadline."""
        while self._deadlines and self._deadlines[0][0] <= now:
            out = self._outs.get(heappop(self._deadlines)[1])
            if out is not None:
                self._give_up(out, Reason.DEADLINE, now)

    def due(self) -> float:
        """When the next deadline is."""
        deadlines = self._deadlines
        while deadlines and deadlines[0][1] not in self._outs:
            heappop(deadlines)
        return deadlines[0][0] if deadlines else inf

    def stop(self, now: float) -> None:
        """Every call ends."""
        for out in list(self._outs.values()):
            self._waiting.clear()
            self._fail(out, Reason.STOPPED, now)
        for entry in list(self._ins.values()):
            self._cancelled(entry.peer, entry.call, now)
        self.out.clear()

    def busy(self) -> tuple[int, int]:
        """How many calls have no end yet, out and in."""
        return len(self._outs), len(self._ins)

    def pending(self, call: int) -> bool:
        """Whether a call has no end yet."""
        return call in self._outs

    def state(self) -> Hashable:
        """Everything that it knows; numbers of calls are counted back from the last."""

        def frames(payload: Payload) -> tuple[bytes, ...]:
            return tuple(map(bytes, payload))

        def ago(call: int) -> int:
            return self._number - call

        return (
            tuple(
                (
                    ago(out.call),
                    out.peer,
                    frames(out.payload),
                    tuple(out.carries),
                    out.deadline,
                    out.creates,
                    out.target,
                    out.fork,
                    out.state,
                    out.answer and (frames(out.answer.payload), out.answer.carries),
                )
                for out in self._outs.values()
            ),
            tuple(
                (
                    entry.peer,
                    entry.call,
                    entry.state,
                    entry.event and (frames(entry.event.payload), entry.event.carries),
                    entry.reply and (frames(entry.reply[0]), tuple(entry.reply[1])),
                )
                for _, entry in sorted(self._ins.items())
            ),
            tuple(
                (peer, tuple(map(ago, waiting)))
                for peer, waiting in sorted(self._waiting.items())
            ),
        )


