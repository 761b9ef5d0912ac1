"""Planted faults: each is one line, and is found by the law that it breaks.

A fault is a patch of one method or table; a law is a test of the files beside this one,
which fails while the fault is there.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from math import inf
from typing import Any
from unittest import mock

import pytest

from everyorder.runtime.rpc.protocol import (
    call_machine,
    channel,
    core,
    liveness,
    membership,
    packets,
    termination,
)
from everyorder.runtime.rpc.protocol.events import Answered
from everyorder.runtime.rpc.protocol.identities import WorkerNode
from everyorder.runtime.rpc.protocol.messages import Answer, Call, Idle
from everyorder.runtime.rpc.protocol.wire import (
    HEADER,
    FieldReader,
    Head,
    Member,
    PacketError,
)
from tests.rpc.protocol import (
    test_call_machine,
    test_channel,
    test_garbage,
    test_membership,
    test_messages,
    test_parts,
    test_session,
    test_termination,
    test_wire,
)

Method = Callable[..., Any]


@dataclass(frozen=True)
class Fault:
    """What is wrong, where it is planted, and the law that finds it."""

    what: str
    place: Any
    name: str
    replaced: Callable[[Any], Any]
    law: Callable[[], object]


def _skipped(_: Method) -> Method:
    return lambda *arguments, **options: None


def _numbers_forgotten(data: Method) -> Method:
    def faulty(self: Any, found: Any, frames: Any, decode: Any, now: float) -> Any:
        came = data(self, found, frames, decode, now)
        self._received = min(self._received, found.sequence)
        return came if came != () else (decode(frames),)

    return faulty


def _order_ignored(data: Method) -> Method:
    def faulty(self: Any, found: Any, frames: Any, decode: Any, now: float) -> Any:
        if self._ours(found, now) is None and found.sequence > self._received:
            self._received = found.sequence
            return (decode(frames),)
        return data(self, found, frames, decode, now)

    return faulty


def _all_again(missing: Method) -> Method:
    return lambda self, stamp, early: list(self.flight)


def _early_forgotten(missing: Method) -> Method:
    return lambda self, stamp, early: missing(self, stamp, ())


def _nothing_again(missing: Method) -> Method:
    return lambda self, stamp, early: []


def _any_acknowledged(acknowledge: Method) -> Method:
    def faulty(self: Any, sequence: int) -> Any:
        return acknowledge(self, min(sequence, self.following - 1))

    return faulty


def _arrival_counts(prove: Method) -> Method:
    def faulty(self: Any, time: float) -> None:
        # When the answer came, not when that was sent which it answers.
        self.proven = max(self.heard, time)

    return faulty


def _shorter(expires: Method) -> Method:
    return lambda self: self.heard + self._dead - 0.5


def _fenced_and_listening(ours: Method) -> Method:
    def faulty(self: Any, found: Any, now: float) -> Any:
        if self.state == "FENCED":
            self.lease.heard = now
            self._note(4, self._beat(now))
            return None
        return ours(self, found, now)

    return faulty


def _numbers_of_sessions_ignored(ours: Method) -> Method:
    def faulty(self: Any, found: Any, now: float) -> Any:
        same = found._replace(mine=self._theirs, theirs=self._mine)
        return ours(self, same, now)

    return faulty


def _kept_over_the_end(restart: Method) -> Method:
    return lambda self: None if hasattr(self, "acked") else restart(self)


def _without(table: Mapping[Any, Any], key: Any) -> dict[Any, Any]:
    return {each: value for each, value in table.items() if each != key}


def _late_answers(answer: Method) -> Method:
    def faulty(self: Any, peer: Any, message: Answer, now: float) -> None:
        if message.call not in self._outs:
            self.events.append(Answered(message.call, message.payload))
        answer(self, peer, message, now)

    return faulty


def _no_cancel(give_up: Method) -> Method:
    return lambda self, out, reason, now: self._fail(out, reason, now)


def _twice(called: Method) -> Method:
    def faulty(self: Any, peer: Any, message: Call, now: float) -> None:
        self._ins.pop((peer, message.call), None)
        called(self, peer, message, now)

    return faulty


def _anybody(answer: Method) -> Method:
    def faulty(self: Any, peer: Any, message: Answer, now: float) -> None:
        out = self._outs.get(message.call)
        answer(self, peer if out is None else out.peer, message, now)

    return faulty


def _told_too_early(called: Method) -> Method:
    def faulty(self: Any, peer: Any, message: Call, now: float) -> None:
        called(self, peer, message, now)
        entry = self._ins.get((peer, message.call))
        if entry is not None and entry.event is not None:
            entry.state = "CALLED"
            self.events.append(entry.event)

    return faulty


def _kept_when_unwanted(answer: Method) -> Method:
    def faulty(self: Any, peer: Any, message: Answer, now: float) -> None:
        with mock.patch.object(self._references.__class__, "drop", _skipped(answer)):
            answer(self, peer, message, now)

    return faulty


def _one_wave(judge: Method) -> Method:
    def faulty(self: Any, me: Any, everybody: Any) -> None:
        # Who reported is not asked once more.
        if not self._missing(everybody) and self.status == "DONE":
            self._wave += 1
            self._reports = {
                node: Idle(self._wave, each.sent, each.received)
                for node, each in self._reports.items()
            }
            self._sum = sum(each.sent for each in self._reports.values())
        judge(self, me, everybody)

    return faulty


def _old_answers(receive: Method) -> Method:
    def faulty(self: Any, peer: Any, message: Any, *rest: Any) -> None:
        if isinstance(message, Idle) and not message.wave:
            message = Idle(self._wave, message.sent, message.received, message.busy)
        receive(self, peer, message, *rest)

    return faulty


def _everybody_tells(receive: Method) -> Method:
    return lambda self, peer, message, now: receive(self, self.keeper, message, now)


def _names_are_not_looked_at(join: Method) -> Method:
    def faulty(self: Any, source: int, note: Any, now: float) -> None:
        known = {name: each for name, each in self._members.items() if name == source}
        with mock.patch.object(self, "_members", known or {}):
            node = WorkerNode(note.name, 7, source)
            self._announce(Member(node, note.endpoint, note.key))

    return faulty


def _rejected_at_once(proven: Method) -> Method:
    return lambda self, node: inf


def _keys_ignored(unknown: Method) -> Method:
    return lambda self, found, channel, key: PacketError.STRANGER


def _kind_ignored(parse: Method) -> Method:
    def faulty(packet: Any) -> Any:
        found = parse(packet)
        if found in (PacketError.VERSION, PacketError.KIND):
            return Head._make(HEADER.unpack_from(packet[0]))
        return found

    return faulty


def _raises(parse: Method) -> Method:
    return lambda packet: Head._make(HEADER.unpack_from(packet[0]))


def _limits_ignored(many: Method) -> Method:
    return lambda self, most, each: many(self, 65535, each)


def law_of_meddling() -> None:
    """All comes once and in order, whatever becomes of the first five packets."""
    fates = (
        test_channel.LOST,
        test_channel.ONCE,
        test_channel.TWICE,
        test_channel.LATE,
    )
    for each in product(fates, repeat=5):
        assert test_channel.once_and_in_order(test_channel.meddle(each)), each


def ends(first: str, second: str) -> Callable[[], None]:
    return lambda: test_call_machine.test_the_first_end_is_the_only_one(first, second)


CHANNEL, CALLS = channel.Channel, call_machine.Calls
OUTBOX, LEASE = packets.Outbox, liveness.LeaseTimes
TERMINATION, MEMBERS = termination.Termination, membership.MembershipMachine

FAULTS = [
    Fault(
        "a packet that comes twice is taken twice",
        CHANNEL,
        "data",
        _numbers_forgotten,
        law_of_meddling,
    ),
    Fault(
        "what comes early is taken at once",
        CHANNEL,
        "data",
        _order_ignored,
        law_of_meddling,
    ),
    Fault("nothing is sent again", OUTBOX, "missing", _nothing_again, law_of_meddling),
    Fault(
        "what is slow is sent again",
        OUTBOX,
        "missing",
        _all_again,
        test_channel.test_what_did_not_come_before_the_question_is_sent_again_alone,
    ),
    Fault(
        "what came early is sent again",
        OUTBOX,
        "missing",
        _early_forgotten,
        test_channel.test_what_did_not_come_before_the_question_is_sent_again_alone,
    ),
    Fault(
        "numbers that were never sent are acknowledged",
        OUTBOX,
        "acknowledge",
        _any_acknowledged,
        lambda: (
            test_channel.test_acknowledgements_of_what_was_never_sent_change_nothing(99)
        ),
    ),
    Fault(
        "there is always room",
        OUTBOX,
        "room",
        lambda room: lambda self, size: True,
        test_channel.test_a_window_holds_back_what_is_more,
    ),
    Fault(
        "a large message never has room",
        OUTBOX,
        "room",
        lambda room: lambda self, size: self.flying + size <= self._bytes,
        test_channel.test_a_window_counts_bytes_and_takes_one_message_of_any_size,
    ),
    Fault(
        "what was on its way is kept over the end",
        OUTBOX,
        "restart",
        _kept_over_the_end,
        test_channel.test_who_begins_anew_ends_the_session_of_the_other,
    ),
    Fault(
        "a lease runs from when the answer came",
        LEASE,
        "prove",
        _arrival_counts,
        test_channel.test_a_user_gives_up_before_the_owner_gives_away,
    ),
    Fault(
        "the owner's lease is shorter than the user's",
        LEASE,
        "expires",
        _shorter,
        test_channel.test_a_user_gives_up_before_the_owner_gives_away,
    ),
    Fault(
        "a fenced channel still answers",
        CHANNEL,
        "_ours",
        _fenced_and_listening,
        test_channel.test_a_fenced_side_is_silent,
    ),
    Fault(
        "an old session's packets are taken for the new one's",
        CHANNEL,
        "_ours",
        _numbers_of_sessions_ignored,
        test_channel.test_packets_of_an_old_session_are_dropped,
    ),
    Fault(
        "who counts on an old session is not told",
        CHANNEL,
        "_stale",
        lambda stale: lambda self, found: PacketError.SESSION,
        test_channel.test_who_was_given_up_is_told_and_a_new_session_begins,
    ),
    Fault(
        "an answer that is late is told",
        CALLS,
        "_answer",
        _late_answers,
        ends("deadline", "answer"),
    ),
    Fault(
        "the callee does not hear of a deadline",
        CALLS,
        "_give_up",
        _no_cancel,
        test_session.test_a_deadline_that_passes_is_told_to_both,
    ),
    Fault(
        "a call is told twice",
        CALLS,
        "_called",
        _twice,
        test_call_machine.test_a_call_that_comes_is_told_once_and_answered_once,
    ),
    Fault(
        "anybody answers",
        CALLS,
        "_answer",
        _anybody,
        test_call_machine.test_only_who_was_asked_answers,
    ),
    Fault(
        "a call is told before its references are confirmed",
        CALLS,
        "_called",
        _told_too_early,
        test_call_machine.test_a_call_is_told_when_all_that_it_carries_is_confirmed,
    ),
    Fault(
        "references of an answer that nobody waits for are kept",
        CALLS,
        "_answer",
        _kept_when_unwanted,
        test_call_machine.test_an_answer_that_comes_too_late_leaves_no_reference_behind,
    ),
    Fault(
        "calls are not ended with the channel",
        CALLS,
        "lost",
        _skipped,
        test_membership.test_all_hear_of_who_is_started_anew,
    ),
    Fault(
        "who reported is not asked once more",
        TERMINATION,
        "_judge",
        _one_wave,
        lambda: test_termination.test_nothing_ends_where_something_happened_since(
            Idle(1, 2, 3)
        ),
    ),
    Fault(
        "what is reported since counts as the answer",
        TERMINATION,
        "receive",
        _old_answers,
        lambda: test_termination.test_nothing_ends_where_something_happened_since(
            Idle(0, 1, 3)
        ),
    ),
    Fault(
        "who is lost is waited for",
        TERMINATION,
        "lost",
        _skipped,
        test_termination.test_who_asks_is_told_again_after_it_was_lost,
    ),
    Fault(
        "anybody tells of members",
        MEMBERS,
        "receive",
        _everybody_tells,
        test_membership.test_only_the_keeper_tells_of_members,
    ),
    Fault(
        "names are not looked at",
        MEMBERS,
        "_join",
        _names_are_not_looked_at,
        test_membership.test_a_name_is_not_given_twice,
    ),
    Fault(
        "a name is refused though its worker is gone",
        core.ProtocolCore,
        "_proven",
        _rejected_at_once,
        test_membership.test_a_name_whose_worker_is_gone_is_given_again,
    ),
    Fault(
        "nobody is told of a wrong key",
        core.ProtocolCore,
        "_unknown",
        _keys_ignored,
        test_garbage.test_a_key_that_is_not_the_sender_s_is_told,
    ),
    Fault(
        "another version is read as this one",
        core,
        "parse",
        _kind_ignored,
        lambda: test_garbage.test_what_somebody_can_act_on_is_told_once(
            "another version"
        ),
    ),
    Fault(
        "what is cut raises",
        core,
        "parse",
        _raises,
        lambda: test_garbage.fuzz(200, 1),
    ),
    Fault(
        "limits of lists are not looked at",
        FieldReader,
        "many",
        _limits_ignored,
        test_wire.test_lists_have_a_limit_before_anything_is_read,
    ),
    Fault(
        "limits of references are not looked at",
        FieldReader,
        "many",
        _limits_ignored,
        test_messages.test_references_are_counted_before_they_are_read,
    ),
    Fault(
        "what is large is sent in one packet",
        core,
        "split",
        lambda split: lambda body, tail, packet: iter([(body, tail)]),
        test_parts.test_a_slow_way_is_no_death,
    ),
    Fault(
        "pieces are not limited",
        packets.Parts,
        "take",
        lambda take: lambda self, part, largest: take(self, part, 2**40),
        test_parts.test_what_is_too_large_in_all_is_refused,
    ),
    Fault(
        "bytes left over are not looked at",
        FieldReader,
        "end",
        _skipped,
        lambda: test_messages.test_what_is_no_message_is_malformed(
            "bytes behind a call"
        ),
    ),
]

# Entries of tables of transitions, without which a law is broken.
MISSING: list[tuple[Any, tuple[str, str], Callable[[], object]]] = [
    (
        channel,
        ("OPENING", "hello"),
        test_channel.test_two_sides_that_begin_at_once_open_one_channel,
    ),
    (
        channel,
        ("FENCED", "expiry"),
        test_channel.test_a_peer_that_is_silent_is_given_up_and_released_later,
    ),
    (call_machine, ("SENT", "end"), ends("answer", "lost")),
    (
        membership,
        ("MEMBER", "keeper lost"),
        test_membership.test_without_a_keeper_the_others_go_on_and_nobody_joins,
    ),
    (
        termination,
        ("FINISHING", "all know"),
        test_termination.test_one_worker_finishes_by_itself,
    ),
]


@contextmanager
def planted(fault: Fault) -> Iterator[None]:
    """A fault, where it belongs."""
    right = getattr(fault.place, fault.name)
    with mock.patch.object(fault.place, fault.name, fault.replaced(right)):
        yield


def broken(law: Callable[[], object]) -> bool:
    """Whether a law is broken now."""
    try:
        law()
    except (Exception, pytest.fail.Exception):
        return True
    return False


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_a_fault_is_found_by_its_law(fault: Fault) -> None:
    fault.law()
    with planted(fault):
        assert broken(fault.law)


@pytest.mark.parametrize("missing", MISSING, ids=lambda entry: " ".join(entry[1]))
def test_a_transition_is_needed(
    missing: tuple[Any, tuple[str, str], Callable[[], object]],
) -> None:
    module, key, law = missing
    table = _without(module.TRANSITIONS, key)
    assert len(table) == len(module.TRANSITIONS) - 1
    with mock.patch.object(module, "TRANSITIONS", table):
        assert broken(law)


def test_faults_are_of_all_parts() -> None:
    assert {fault.place for fault in FAULTS} == {
        CHANNEL,
        OUTBOX,
        LEASE,
        CALLS,
        TERMINATION,
        MEMBERS,
        core.ProtocolCore,
        core,
        packets.Parts,
        FieldReader,
    }
