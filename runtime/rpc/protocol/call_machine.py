"""Calls: the state of each call to and from a peer, and how each call ends.

Every call ends once.  An outgoing call ends as `Answered` or `Failed`, by the first of:
the answer, the deadline, the end of the channel, a dead reference that it carries;
later events are dropped.  An incoming call is reported once, as `Called`, when its
references are confirmed; it ends by the reply, or is `Cancelled`.

    OUT     HELD        it carries an unconfirmed reference, or too many calls wait
            SENT        it was sent; the answer is pending
            ANSWERED    the answer carries references that are not confirmed yet
    IN      ARRIVED     its references are not confirmed yet
            CALLED      the agent runs it
            REPLIED     the reply carries an unconfirmed reference

Rules:
- deadlines are absolute here, relative in messages; a caller whose deadline passes
  sends a cancellation, and the callee's clock does not matter;
- `ReferenceMachine` handles the references of a call or an answer: it is asked before a
  message is sent, and receives the references of every message;
- a call waits for others to end if too many have no answer yet; calls that create,
  fetch or carry do not wait, because messages about references keep their order;
- the agent replies to each reported call, also to a cancelled one.
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

# A missing transition is illegal; callers must check.
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

# Entries of ended calls in the heap of deadlines before they are removed.
_ENDED = 1000

Carries = Sequence[Fork | RRefId]


@dataclass(slots=True)
class _Out:
    """An outgoing call."""

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
    """An incoming call."""

    peer: WorkerNode
    call: int
    event: Called | None
    state: str
    holds: bool = False
    reply: tuple[Payload, bool] | None = None


class Calls:
    """The machine of calls; `references` decides about the references they carry."""

    def __init__(self, references: ReferenceMachine, settings: Settings) -> None:
        self.out: list[tuple[WorkerNode, Message]] = []
        self.events: list[Event] = []
        self._references = references
        self._settings = settings
        self._number = 0
        self._outs: dict[int, _Out] = {}
        self._ins: dict[tuple[WorkerNode, int], _In] = {}
        # The number of SENT calls to each peer, and the calls that wait for fewer.
        self._flying: dict[WorkerNode, int] = {}
        self._waiting: dict[WorkerNode, deque[int]] = {}
        self._deadlines: list[tuple[float, int]] = []

    # Outgoing calls.

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
        """Start a call to a peer and return the call's number.

        The peer accepts payloads of `largest` bytes.  If the peer is `gone`, the call
        fails: nothing is sent, and references are not passed on.
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
        """Return why a payload exceeds a limit of the peer, "" for bytes; None if it
        fits.

        A peer drops a packet that exceeds its limits, so it would be sent again for
        ever.
        """
        if largest is not None and size(payload) > largest:
            return ""
        references = self._settings.references
        if len(carries) > references:
            return f"{len(carries)} references; at most {references} are accepted"
        if len(payload) > BUFFERS:
            return f"{len(payload)} buffers; at most {BUFFERS} are accepted"
        return None

    def fork_of(self, call: int) -> Fork:
        """Return the reference of a call that creates a value, until the call ends."""
        fork = self._outs[call].fork
        assert fork is not None, "only calls that create have a fork"
        return fork

    def cancel(self, call: int, now: float) -> None:
        """Cancel a call that has not ended."""
        out = self._outs.get(call)
        if out is not None:
            self._give_up(out, Reason.CANCELLED, now)

    def _carry(self, out: _Out, now: float) -> None:
        """Send a call that carries references, once they are confirmed."""
        status, forks = self._references.carry(
            ("call", out.peer, out.call), out.peer, out.carries, out.target
        )
        if status is CarrierStatus.READY:
            self._send(out, forks, now)
        elif status is CarrierStatus.DEAD:
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
        # The peer has these now; only the number of the call is needed from here on.
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
        """Remove a call that ends, and send a waiting call in its place."""
        assert (out.state, "end") in TRANSITIONS, "each call ends once"
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
        expected = out is not None and out.state == SENT and out.peer == peer
        if answer.carries:
            # An unexpected answer may arrive while the expected one still waits.
            key = ("answer" if expected else "unexpected", peer, answer.call)
            status = self._references.arrive(key, peer, answer.carries, now)
            if not expected:
                self._references.forget(key)
                # References delivered in the meantime have no owner.
                if status is CarrierStatus.READY:
                    for fork in answer.carries:
                        self._references.drop(fork.fork)
                return
            assert out is not None, "an expected answer has a call"
            if status is CarrierStatus.WAITS:
                out.state = TRANSITIONS[out.state, "answer"]
                out.answer = answer
                return
            if status is CarrierStatus.DEAD:
                self._fail(out, Reason.REFERENCE, now)
                return
        if expected:
            assert out is not None, "an expected answer has a call"
            self._answered(out, answer, now)

    def _answered(self, out: _Out, answer: Answer, now: float) -> None:
        self._close(out, now)
        if out.fork is not None:
            self._references.created(out.fork.fork)
        self.events.append(
            Answered(answer.call, answer.payload, answer.carries, answer.failed)
        )

    # Incoming calls.

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
        """Answer a call; without effect if the caller does not wait any more."""
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
            status, forks = self._references.carry(key, peer, carries)
            if status is CarrierStatus.READY:
                self._reply(entry, Answer(call, payload, forks, failed))
            elif status is CarrierStatus.DEAD:
                self._refuse(entry, Reason.REFERENCE)
            else:
                entry.state = TRANSITIONS[CALLED, "reply"]
                entry.reply = payload, failed

    def _reply(self, entry: _In, message: Answer | Decline) -> None:
        """Answer or decline a reported call, which then no longer holds a value."""
        del self._ins[entry.peer, entry.call]
        self.out.append((entry.peer, message))
        if entry.holds:
            self._references.done(("call", entry.peer, entry.call))

    def _refuse(self, entry: _In, reason: Reason, detail: str = "") -> None:
        self._reply(entry, Decline(entry.call, reason, detail))

    def _called(self, peer: WorkerNode, call: Call, now: float) -> None:
        name = peer, call.call
        if name in self._ins:
            # A number identifies one call: a repeated number is not answered twice.
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
        status = self._references.arrive(
            ("call", *name),
            peer,
            call.carries,
            now,
            creates=call.creates,
            fork=call.fork,
            target=call.target,
        )
        if status is CarrierStatus.DEAD:
            self.out.append((peer, Decline(call.call, Reason.REFERENCE)))
            return
        is_ready = status is CarrierStatus.READY
        state = CALLED if is_ready else ARRIVED
        self._ins[name] = _In(peer, call.call, None if is_ready else event, state, True)
        if is_ready:
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
        """Handle a call or an answer that is larger than this worker accepts.

        Other messages have no payload, and are ignored.
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

    # Messages and timers.

    def receive(self, peer: WorkerNode, message: Message, now: float) -> None:
        """Handle a message of a peer."""
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
        """End every call to and from a peer whose channel ended."""
        self._waiting.pop(peer, None)
        for out in [each for each in self._outs.values() if each.peer == peer]:
            self._fail(out, reason, now)
        for entry in [each for each in self._ins.values() if each.peer == peer]:
            self._cancelled(peer, entry.call)

    def expired(self, peer: WorkerNode, now: float) -> None:
        """Do nothing: calls ended with `lost`."""

    def judge(self, verdict: Verdict, now: float) -> None:
        """Continue a call or an answer whose references are confirmed, or dead."""
        key: tuple[str, WorkerNode, int] = verdict.key  # type: ignore[assignment]  # set by this class
        what, peer, number = key
        ready = verdict.status is CarrierStatus.READY
        if (what == "call") is not verdict.incoming:
            out = self._outs.get(number)
            if out is None:
                if ready and not verdict.incoming:
                    self._references.unsend(verdict.forks)
            elif not ready:
                self._fail(out, Reason.REFERENCE, now)
            elif verdict.incoming:
                assert out.answer is not None, "a call in state ANSWERED has its answer"
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
                assert entry.event is not None, "a call in state ARRIVED has its event"
                entry.state = TRANSITIONS[entry.state, "confirmed"]
                self.events.append(entry.event)
                entry.event = None
            else:
                del self._ins[peer, number]
                self.out.append((peer, Decline(number, Reason.REFERENCE)))
        elif ready:
            assert entry.reply is not None, "a call in state REPLIED has its reply"
            payload, failed = entry.reply
            self._reply(entry, Answer(number, payload, verdict.forks, failed))
        else:
            self._refuse(entry, Reason.REFERENCE)

    def tick(self, now: float) -> None:
        """Fail the calls whose deadline has passed."""
        while self._deadlines and self._deadlines[0][0] <= now:
            out = self._outs.get(heappop(self._deadlines)[1])
            if out is not None:
                self._give_up(out, Reason.DEADLINE, now)

    def due(self) -> float:
        """Return the time of the next deadline."""
        deadlines = self._deadlines
        while deadlines and deadlines[0][1] not in self._outs:
            heappop(deadlines)
        return deadlines[0][0] if deadlines else inf

    def stop(self, now: float) -> None:
        """End every call."""
        for out in list(self._outs.values()):
            self._waiting.clear()
            self._fail(out, Reason.STOPPED, now)
        for entry in list(self._ins.values()):
            self._cancelled(entry.peer, entry.call)
        self.out.clear()

    def busy(self) -> tuple[int, int]:
        """Return the numbers of outgoing and of incoming calls that have not ended."""
        return len(self._outs), len(self._ins)

    def pending(self, call: int) -> bool:
        """Return True if an outgoing call has not ended."""
        return call in self._outs

    def state(self, now: float) -> Hashable:
        """Return the complete state; call numbers count back from the last one."""

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
