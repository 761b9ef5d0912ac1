"""Calls: what was asked of whom, and how it ends.

Every call has one end. A call that goes out ends as `Answered` or `Failed`, whatever
comes first: the answer, the deadline, the end of the channel, a reference that it
carries and that is dead; whatever comes after that is dropped. A call that comes in is
told once, as `Called`, when its references are confirmed; it ends by the reply, or is
`Cancelled`.

    OUT     HELD        it carries what is not confirmed, or too many calls wait
            SENT        it was sent; the answer is waited for
            ANSWERED    the answer carries references that are not confirmed yet
    IN      ARRIVED     its references are not confirmed yet
            CALLED      the agent is at it
            REPLIED     the reply carries what is not confirmed yet

Rules:
- deadlines are absolute here, relative in messages; a caller whose deadline passes says
  so, and the callee's clock does not matter;
- the references of a call or an answer are the business of `ReferenceMachine`, which is
  asked
  before anything is sent, and told of all that comes;
- a call waits for others to end if too many have no answer yet; not one that creates,
  fetches or carries, as what is said of references keeps its order;
- the agent replies to each call that it is told of, also to one that was cancelled.
"""

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import ceil, inf

from everyorder.runtime.rpc.protocol.events import (
    Answered,
    Called,
    Cancelled,
    Event,
    Failed,
    Payload,
    Reason,
    Settings,
)
from everyorder.runtime.rpc.protocol.identities import Fork, RRefId, WorkerNode
from everyorder.runtime.rpc.protocol.messages import (
    Answer,
    Call,
    Cancel,
    Decline,
    Message,
)
from everyorder.runtime.rpc.protocol.ownership import CarrierStatus, Verdict
from everyorder.runtime.rpc.protocol.packets import BUFFERS
from everyorder.runtime.rpc.protocol.reference_machine import ReferenceMachine
from everyorder.runtime.rpc.protocol.wire import size

HELD, SENT, ANSWERED = "HELD", "SENT", "ANSWERED"
ARRIVED, CALLED, REPLIED = "ARRIVED", "CALLED", "REPLIED"
ENDED = "ENDED"

# What is not here is not legal: whoever asks looks before.
TRANSITIONS: dict[tuple[str, str], str] = {
    (HELD, "send"): SENT,
    (HELD, "end"): ENDED,
    (SENT, "answer"): ANSWERED,
    (SENT, "end"): ENDED,
    (ANSWERED, "end"): ENDED,
    (ARRIVED, "confirmed"): CALLED,
    (ARRIVED, "end"): ENDED,
    (CALLED, "reply"): REPLIED,
    (CALLED, "end"): ENDED,
    (REPLIED, "end"): ENDED,
}

# So many deadlines of calls that have ended are kept before they are cleared out.
_ENDED = 1000

Carries = Sequence[Fork | RRefId]


@dataclass(slots=True)
class _Out:
    """A call that went out."""

    call: int
    peer: WorkerNode
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

    peer: WorkerNode
    call: int
    event: Called | None
    state: str
    holds: bool = False
    reply: tuple[Payload, bool] | None = None


class Calls:
    """The machine of calls; `references` is asked about all that they carry."""

    def __init__(self, references: ReferenceMachine, settings: Settings) -> None:
        self.out: list[tuple[WorkerNode, Message]] = []
        self.events: list[Event] = []
        self._references = references
        self._settings = settings
        self._number = 0
        self._outs: dict[int, _Out] = {}
        self._ins: dict[tuple[WorkerNode, int], _In] = {}
        # How many are SENT to each peer, and what waits until there are fewer.
        self._flying: dict[WorkerNode, int] = {}
        self._waiting: dict[WorkerNode, deque[int]] = {}
        self._deadlines: list[tuple[float, int]] = []

    # Calls that go out.

    def call(
        self,
        peer: WorkerNode,
        payload: Payload,
        now: float,
        *,
        carries: Carries = (),
        deadline: float | None = None,
        creates: RRefId | None = None,
        target: RRefId | None = None,
        largest: int | None = None,
        gone: Reason | None = None,
    ) -> int:
        """Ask a peer, which takes `largest` bytes, for something: the call's number.

        To one that is `gone` nothing is sent, and no reference is given.
        """
        self._number = number = self._number + 1
        fork = None
        if creates is not None:
            fork = self._references.plan(("call", peer, number), peer, creates)
        out = _Out(number, peer, payload, carries, deadline, creates, target, fork)
        outs = self._outs
        outs[number] = out
        if deadline is not None:
            heappush(self._deadlines, (deadline, number))
            if len(self._deadlines) > 2 * len(self._outs) + _ENDED:
                self._deadlines = [each for each in self._deadlines if each[1] in outs]
                heapify(self._deadlines)
        excess = self._excess(payload, carries, largest)
        if gone is not None:
            self._fail(out, gone, now)
        elif excess is not None:
            self._fail(out, Reason.TOO_LARGE, now, excess)
        elif carries or target is not None:
            self._carry(out, now)
        elif fork is None and self._flying.get(peer, 0) >= self._settings.calls:
            self._waiting.setdefault(peer, deque()).append(number)
        else:
            self._send(out, (), now)
        return number

    def _excess(
        self, payload: Payload, carries: Carries, largest: int | None
    ) -> str | None:
        """What there is too much of for the peer, "" for bytes; None: all is taken.

        What it does not take is no message there, and would be sent again for ever.
        """
        if largest is not None and size(payload) > largest:
            return ""
        references = self._settings.references
        if len(carries) > references:
            return f"{len(carries)} references, where {references} are taken"
        if len(payload) > BUFFERS:
            return f"{len(payload)} buffers, where {BUFFERS} are taken"
        return None

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

    def _carry(self, out: _Out, now: float) -> None:
        """Send a call that holds references, when they are confirmed."""
        fate, forks = self._references.carry(
            ("call", out.peer, out.call), out.peer, out.carries, out.target
        )
        if fate is CarrierStatus.READY:
            self._send(out, forks, now)
        elif fate is CarrierStatus.DEAD:
            self._fail(out, Reason.REFERENCE, now)

    def _send(self, out: _Out, forks: tuple[Fork, ...], now: float) -> None:
        peer = out.peer
        self._flying[peer] = self._flying.get(peer, 0) + 1
        out.state = TRANSITIONS[out.state, "send"]
        left = None
        if out.deadline is not None:
            left = max(0, ceil((out.deadline - now) * 1000))
        fork = out.fork
        if fork is None and out.target is None:
            call = Call(out.call, out.payload, forks, left)
        else:
            name = None if fork is None else fork.fork
            call = Call(
                out.call, out.payload, forks, left, out.creates, name, out.target
            )
        self.out.append((peer, call))
        if fork is not None:
            self._references.asked(fork.fork)
        # They travel; what is needed of the call from now on is its number.
        out.payload = out.carries = ()

    def _give_up(self, out: _Out, reason: Reason, now: float) -> None:
        if out.state == SENT:
            self.out.append((out.peer, Cancel(out.call)))
        self._fail(out, reason, now)

    def _fail(self, out: _Out, reason: Reason, now: float, detail: str = "") -> None:
        if out.state == ANSWERED:
            self._references.forget(("answer", out.peer, out.call))
        elif out.state == HELD:
            self._references.withdraw(("call", out.peer, out.call))
        self._close(out, now)
        if out.fork is not None:
            self._references.uncreated(out.fork.fork, reason)
        self.events.append(Failed(out.call, reason, detail))

    def _close(self, out: _Out, now: float) -> None:
        """A call has its end; another one may be sent for it."""
        assert (out.state, "end") in TRANSITIONS, "each has one end"
        del self._outs[out.call]
        if out.state == HELD:
            return
        peer = out.peer
        flying = self._flying[peer] - 1
        if flying:
            self._flying[peer] = flying
        else:
            del self._flying[peer]
        waiting = self._waiting.get(peer)
        while waiting:
            following = self._outs.get(waiting.popleft())
            if not waiting:
                del self._waiting[peer]
            if following is not None:
                self._send(following, (), now)
                break

    def _answer(self, peer: WorkerNode, answer: Answer, now: float) -> None:
        out = self._outs.get(answer.call)
        wanted = out is not None and out.state == SENT and out.peer == peer
        if answer.carries:
            # One that nobody waits for may come beside one that still waits.
            key = ("answer" if wanted else "unwanted", peer, answer.call)
            fate = self._references.arrive(key, peer, answer.carries, now)
            if not wanted:
                self._references.forget(key)
                # What was told meanwhile is in nobody's hands.
                if fate is CarrierStatus.READY:
                    for fork in answer.carries:
                        self._references.drop(fork.fork)
                return
            assert out is not None, "it is wanted"
            if fate is CarrierStatus.WAITS:
                out.state = TRANSITIONS[out.state, "answer"]
                out.answer = answer
                return
            if fate is CarrierStatus.DEAD:
                self._fail(out, Reason.REFERENCE, now)
                return
        if wanted:
            assert out is not None, "it is wanted"
            self._answered(out, answer, now)

    def _answered(self, out: _Out, answer: Answer, now: float) -> None:
        self._close(out, now)
        if out.fork is not None:
            self._references.created(out.fork.fork)
        self.events.append(
            Answered(answer.call, answer.payload, answer.carries, answer.failed)
        )

    # Calls that come in.

    def reply(
        self,
        peer: WorkerNode,
        call: int,
        payload: Payload,
        now: float,
        *,
        carries: Carries = (),
        failed: bool = False,
        largest: int | None = None,
    ) -> None:
        """Answer a call; nothing happens where nobody waits for it any more."""
        name = peer, call
        entry = self._ins.get(name)
        if entry is None or entry.state != CALLED:
            if entry is None:
                self._references.done(("call", peer, call))
            return
        excess = self._excess(payload, carries, largest)
        if excess is not None:
            self._refuse(entry, Reason.TOO_LARGE, excess)
        elif not carries:
            self._reply(entry, Answer(call, payload, (), failed))
        else:
            key = ("answer", peer, call)
            fate, forks = self._references.carry(key, peer, carries)
            if fate is CarrierStatus.READY:
                self._reply(entry, Answer(call, payload, forks, failed))
            elif fate is CarrierStatus.DEAD:
                self._refuse(entry, Reason.REFERENCE)
            else:
                entry.state = TRANSITIONS[CALLED, "reply"]
                entry.reply = payload, failed

    def _reply(self, entry: _In, message: Answer | Decline) -> None:
        """A call that was told has its answer, or none; it keeps no value."""
        del self._ins[entry.peer, entry.call]
        self.out.append((entry.peer, message))
        if entry.holds:
            self._references.done(("call", entry.peer, entry.call))

    def _refuse(self, entry: _In, reason: Reason, detail: str = "") -> None:
        self._reply(entry, Decline(entry.call, reason, detail))

    def _called(self, peer: WorkerNode, call: Call, now: float) -> None:
        name = peer, call.call
        if name in self._ins:
            # A number is given once; who gives it twice is not answered twice.
            return
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
        if not (call.carries or call.creates or call.target):
            self._ins[name] = _In(peer, call.call, None, CALLED)
            self.events.append(event)
            return
        fate = self._references.arrive(
            ("call", *name),
            peer,
            call.carries,
            now,
            creates=call.creates,
            fork=call.fork,
            target=call.target,
        )
        if fate is CarrierStatus.DEAD:
            self.out.append((peer, Decline(call.call, Reason.REFERENCE)))
            return
        told = fate is CarrierStatus.READY
        state = CALLED if told else ARRIVED
        self._ins[name] = _In(peer, call.call, None if told else event, state, True)
        if told:
            self.events.append(event)

    def _cancelled(self, peer: WorkerNode, call: int) -> None:
        entry = self._ins.pop((peer, call), None)
        if entry is None:
            return
        if entry.state == CALLED:
            self.events.append(Cancelled(peer, call))
        elif entry.state == ARRIVED:
            self._references.forget(("call", peer, call))
        else:
            self._references.withdraw(("answer", peer, call))
            self._references.done(("call", peer, call))

    def refuse(self, peer: WorkerNode, message: Message, now: float) -> None:
        """A call or an answer came that is larger than is taken here.

        Nothing else has a payload, so nothing follows from it.
        """
        if not isinstance(message, Call | Answer):
            return
        if message.carries:
            key = ("oversized", peer, message.call)
            if (
                self._references.arrive(key, peer, message.carries, now)
                is CarrierStatus.READY
            ):
                for fork in message.carries:
                    self._references.drop(fork.fork)
            self._references.forget(key)
        if isinstance(message, Call):
            self.out.append((peer, Decline(message.call, Reason.TOO_LARGE)))
        else:
            self.receive(peer, Decline(message.call, Reason.TOO_LARGE), now)

    # The machine.

    def receive(self, peer: WorkerNode, message: Message, now: float) -> None:
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
            self._cancelled(peer, message.call)

    def lost(self, peer: WorkerNode, reason: Reason, now: float) -> None:
        """The channel to a peer ended, and with it every call there and from there."""
        self._waiting.pop(peer, None)
        for out in [each for each in self._outs.values() if each.peer == peer]:
            self._fail(out, reason, now)
        for entry in [each for each in self._ins.values() if each.peer == peer]:
            self._cancelled(peer, entry.call)

    def expired(self, peer: WorkerNode, now: float) -> None:
        """Nothing: calls ended with `lost`."""

    def judge(self, verdict: Verdict, now: float) -> None:
        """The references of a call or of an answer that waited for them are settled."""
        key: tuple[str, WorkerNode, int] = verdict.key  # type: ignore[assignment]  # ours
        what, peer, number = key
        ready = verdict.fate is CarrierStatus.READY
        if (what == "call") is not verdict.incoming:
            out = self._outs.get(number)
            if out is None:
                if ready and not verdict.incoming:
                    self._references.unsend(verdict.forks)
            elif not ready:
                self._fail(out, Reason.REFERENCE, now)
            elif verdict.incoming:
                assert out.answer is not None, "it is ANSWERED"
                self._answered(out, out.answer, now)
            else:
                self._send(out, verdict.forks, now)
            return
        entry = self._ins.get((peer, number))
        if entry is None:
            if ready and not verdict.incoming:
                self._references.unsend(verdict.forks)
        elif verdict.incoming:
            if ready:
                assert entry.event is not None, "it is ARRIVED"
                entry.state = TRANSITIONS[entry.state, "confirmed"]
                self.events.append(entry.event)
                entry.event = None
            else:
                del self._ins[peer, number]
                self.out.append((peer, Decline(number, Reason.REFERENCE)))
        elif ready:
            assert entry.reply is not None, "it is REPLIED"
            payload, failed = entry.reply
            self._reply(entry, Answer(number, payload, verdict.forks, failed))
        else:
            self._refuse(entry, Reason.REFERENCE)

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
            self._cancelled(entry.peer, entry.call)
        self.out.clear()

    def busy(self) -> tuple[int, int]:
        """How many calls have no end yet, out and in."""
        return len(self._outs), len(self._ins)

    def pending(self, call: int) -> bool:
        """Whether a call has no end yet."""
        return call in self._outs

    def state(self, now: float) -> Hashable:
        """Everything; numbers of calls are counted back from the last one."""

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
                    out.deadline and round(out.deadline - now, 6),
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
                    entry.reply and (frames(entry.reply[0]), entry.reply[1]),
                )
                for _, entry in sorted(self._ins.items())
            ),
            tuple(
                (peer, tuple(map(ago, waiting)))
                for peer, waiting in sorted(self._waiting.items())
            ),
        )
