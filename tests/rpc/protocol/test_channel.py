"""Channels: everything once and in order, whatever happens to packets, or an end."""

from collections.abc import Hashable, Iterator
from dataclasses import replace
from itertools import permutations, product

import pytest

from everyorder.runtime.rpc.protocol.channel import (
    ANSWERING,
    CLOSED,
    FENCED,
    OPEN,
    OPENING,
    TRANSITIONS,
    End,
)
from everyorder.runtime.rpc.protocol.events import Reason
from everyorder.runtime.rpc.protocol.messages import KINDS, Cancel, encode
from everyorder.runtime.rpc.protocol.wire import Head, PacketError, PacketKind, parse
from tests.rpc.protocol.pair import Pair, kind
from tests.rpc.protocol.times import TIMES

STATES = (CLOSED, OPENING, ANSWERING, OPEN, FENCED)


def test_every_state_is_reached_and_left() -> None:
    assert {state for state, _ in TRANSITIONS} == set(STATES)
    assert set(TRANSITIONS.values()) == set(STATES)


def test_a_channel_opens_by_three_packets_and_then_sends_what_waits() -> None:
    pair = Pair()
    pair.say("a", 1)
    pair.say("b", 2)
    # Both began: each HELLO is answered.
    assert pair.kinds([0, 1]) == ["HELLO to b", "HELLO to a"]
    pair = Pair()
    pair.say("a", 1)
    (hello,) = range(len(pair.sent))
    (welcome,) = pair.deliver(hello)
    assert (pair["a"].state, pair["b"].state) == (OPENING, ANSWERING)
    after = pair.deliver(welcome)
    assert pair.kinds([hello, welcome, *after]) == [
        "HELLO to b",
        "WELCOME to a",
        "PONG to b",
        "DATA to b",
    ]
    assert pair["a"].state == OPEN
    # Any of the two that come opens the other side.
    pair.deliver(after[1])
    assert (pair["b"].state, pair.heard("b")) == (OPEN, [1])


def test_two_sides_that_begin_at_once_open_one_channel() -> None:
    for order in permutations(range(4)):
        pair = Pair()
        pair.say("a", 1)
        pair.say("b", 2)
        waiting = [0, 1]
        for place in order:
            if waiting:
                waiting += pair.deliver(waiting.pop(place % len(waiting)))
        pair.run(1.0, waiting)
        assert (pair.heard("a"), pair.heard("b")) == ([2], [1])
        assert pair["a"].numbers() == pair["b"].numbers() == (1, 1)
        assert pair.sides["a"].ends == pair.sides["b"].ends == []


def orders(most: int) -> Iterator[tuple[int, ...]]:
    """Every order in which three packets arrive, each not, once, or twice."""
    for copies in product(range(most + 1), repeat=3):
        packets = [n for n, count in enumerate(copies) for _ in range(count)]
        yield from sorted(set(permutations(packets)))


def arrive(order: tuple[int, ...]) -> list[int]:
    """What comes of three messages if their packets arrive like this at first."""
    pair = Pair()
    pair.open()
    first = len(pair.sent)
    pair.say("a", 1, 2, 3)
    waiting = []
    for packet in order:
        waiting += pair.deliver(first + packet)
        came = pair.heard("b")
        assert came == [1, 2, 3][: len(came)]
    pair.run(1.0, waiting)
    assert pair["a"].unacknowledged() == 0
    assert pair.sides["b"].ends == pair.sides["a"].ends == []
    return pair.heard("b")


def test_lost_doubled_and_out_of_order_three_messages_come_once_and_in_order() -> None:
    every = list(orders(2))
    assert len(every) == 271
    for order in every:
        assert arrive(order) == [1, 2, 3], order


LOST, ONCE, TWICE, LATE = "lost", "once", "twice", "late"


def meddle(fates: tuple[str, ...]) -> Pair:
    """Two sides that speak to each other; of the first packets each has its fate."""
    pair = Pair()
    pair.say("a", 1, 2)
    pair.say("b", 3, 4)
    late: list[int] = []
    waiting = [0, 1]
    seen = 0
    end = pair.now + 4.0
    while pair.now < end:
        while waiting:
            number = waiting.pop(0)
            fate = fates[seen] if seen < len(fates) else ONCE
            seen += 1
            if fate == LATE:
                late.append(number)
            for _ in range({LOST: 0, ONCE: 1, TWICE: 2, LATE: 0}[fate]):
                waiting += pair.deliver(number)
        pair.now = min(pair["a"].due(), pair["b"].due())
        waiting += pair.tick()
        if seen > len(fates) + 3:
            waiting += late
            late.clear()
    return pair


def once_and_in_order(pair: Pair) -> bool:
    return (pair.heard("a"), pair.heard("b")) == ([3, 4], [1, 2]) and not (
        pair.sides["a"].ends or pair.sides["b"].ends
    )


@pytest.mark.parametrize("first", [LOST, ONCE, TWICE, LATE])
def test_whatever_becomes_of_the_first_packets_all_comes_once_and_in_order(
    first: str,
) -> None:
    for rest in product([LOST, ONCE, TWICE, LATE], repeat=5):
        assert once_and_in_order(meddle((first, *rest))), (first, *rest)


@pytest.mark.slow
@pytest.mark.parametrize("first", list(product([LOST, ONCE, TWICE, LATE], repeat=2)))
def test_whatever_becomes_of_the_first_eight_packets(first: tuple[str, str]) -> None:
    for rest in product([LOST, ONCE, LATE], repeat=6):
        assert once_and_in_order(meddle((*first, *rest))), (*first, *rest)


def test_a_window_holds_back_what_is_more() -> None:
    pair = Pair(replace(TIMES, window=4))
    pair.open()
    first = len(pair.sent)
    pair.say("a", *range(10))
    assert len(pair.sent) - first == 4
    assert (pair["a"].queued(), pair["a"].unacknowledged()) == (6, 10)
    pair.run(1.0, list(range(first, first + 4)))
    assert pair.heard("b") == list(range(10))
    assert pair["a"].unacknowledged() == 0


def test_a_window_counts_bytes_and_takes_one_message_of_any_size() -> None:
    pair = Pair(replace(TIMES, window_bytes=1000))
    pair.open()
    first = len(pair.sent)
    pair.say("a", 1, tail=bytes(5000))
    pair.say("a", 2)
    assert (len(pair.sent) - first, pair["a"].queued()) == (1, 1)
    pair.run(1.0, [first])
    assert pair.heard("b") == [1, 2]


def test_what_is_not_acknowledged_is_asked_about_and_not_sent_again() -> None:
    pair = Pair()
    pair.open()
    first = len(pair.sent)
    pair.say("a", 1)
    (ping,) = pair.tick(0.2)
    assert pair.kinds([ping]) == ["PING to b"]
    # It was slow, not lost: it comes before the question does.
    pair.deliver(first)
    (pong,) = pair.deliver(ping)
    pair.deliver(pong)
    assert (pair["a"].resent, pair["a"].unacknowledged()) == (0, 0)


def test_what_did_not_come_before_the_question_is_sent_again_alone() -> None:
    pair = Pair()
    pair.open()
    first = len(pair.sent)
    pair.say("a", 1, 2, 3)
    pair.deliver(first)
    pair.deliver(first + 2)
    ping = next(each for each in pair.tick(0.2) if pair.sent[each][0] == "b")
    pair.say("a", 4)
    (pong,) = pair.deliver(ping)
    again = pair.deliver(pong)
    assert pair.kinds(again) == ["DATA to b"]
    assert pair["a"].resent == 1
    pair.deliver(again[0])
    assert pair.heard("b") == [1, 2, 3]


def test_what_came_is_acknowledged_soon_and_by_the_way() -> None:
    pair = Pair()
    pair.open()
    first = len(pair.sent)
    pair.say("a", 1)
    assert pair.deliver(first) == []
    (pong,) = pair.tick(0.05)
    assert pair.kinds([pong]) == ["PONG to a"]
    pair.deliver(pong)
    assert pair["a"].unacknowledged() == 0
    pair.say("a", 2)
    pair.deliver(len(pair.sent) - 1)
    pair.say("b", 3)
    pair.deliver(len(pair.sent) - 1)
    assert pair["a"].unacknowledged() == 0
    # Nothing is owed to who was told by the way.
    assert pair.tick(0.04) == []


def test_many_messages_are_acknowledged_at_once() -> None:
    pair = Pair(replace(TIMES, acknowledge_each=3))
    pair.open()
    first = len(pair.sent)
    pair.say("a", 1, 2, 3)
    sent = [pair.kinds(pair.deliver(first + each)) for each in range(3)]
    assert sent == [[], [], ["PONG to a"]]


def test_signs_of_life_keep_an_idle_channel() -> None:
    pair = Pair()
    pair.open()
    first = len(pair.sent)
    pair.run(60.0)
    assert (pair["a"].state, pair["b"].state) == (OPEN, OPEN)
    kinds = {kind(frames) for _, frames in pair.sent[first:]}
    assert kinds == {PacketKind.PING, PacketKind.PONG}
    # One of the two asks, twice a second; the other is told by the way.
    assert 4 * 60 - 4 <= len(pair.sent) - first <= 4 * 60 + 4


def test_a_peer_that_is_silent_is_given_up_and_released_later() -> None:
    pair = Pair()
    pair.open()
    pair.say("a", 1)
    opened, node = 10.0, pair.nodes["b"]
    while pair["a"].state == OPEN:
        pair.now = pair["a"].due()
        pair["a"].tick(pair.now)
    assert pair.now == opened + 1.5
    assert (pair["a"].state, pair.sides["a"].ends) == (FENCED, [End(node, Reason.LOST)])
    pair.now = pair["a"].due()
    assert pair.now == opened + 2.0
    pair["a"].tick(pair.now)
    assert pair["a"].state == CLOSED
    assert pair.sides["a"].ends == [End(node, Reason.LOST), End(node, None)]


def test_a_peer_that_nobody_reaches_is_given_up_at_once_and_released_later() -> None:
    """That a link is refused does not prove that the peer has given up."""
    pair = Pair()
    pair["a"].unreachable(pair.now)
    assert pair.sides["a"].ends == [], "nothing has begun"
    pair.open()
    heard, node = 10.0, pair.nodes["b"]
    pair["a"].unreachable(pair.now)
    pair["a"].unreachable(pair.now)
    assert (pair["a"].state, pair.sides["a"].ends) == (FENCED, [End(node, Reason.LOST)])
    assert pair["a"].due() == heard + pair.settings.expire
    pair["a"].tick(pair["a"].due())
    assert pair.sides["a"].ends == [End(node, Reason.LOST), End(node, None)]


@pytest.mark.parametrize("state", [OPENING, ANSWERING])
def test_a_peer_that_was_never_reached_is_given_up_at_once(state: str) -> None:
    """Nothing was sent to it that it could count on; it may come later."""
    pair = Pair()
    pair.say("b", 1)
    pair.say("a", 2)
    if state == ANSWERING:
        pair.deliver(0)
    side, node = pair.sides["a"], pair.nodes["b"]
    assert side.channel.state == state
    side.channel.unreachable(pair.now)
    assert side.channel.state == CLOSED
    assert side.ends == [End(node, Reason.LOST), End(node, None)]
    assert (side.channel.queued(), side.channel.due()) == (0, float("inf"))
    pair.run(5.0)
    pair.say("a", 3)
    pair.run(1.0, [len(pair.sent) - 1])
    assert pair.heard("b") == [3]


def test_a_channel_that_nobody_answers_ends() -> None:
    pair = Pair()
    pair.say("a", 1)
    while pair["a"].state == OPENING:
        pair.now = pair["a"].due()
        pair["a"].tick(pair.now)
    assert pair.now == 15.0
    node = pair.nodes["b"]
    assert pair.sides["a"].ends == [End(node, Reason.LOST), End(node, None)]
    assert (pair["a"].state, pair["a"].unacknowledged()) == (CLOSED, 0)


def lease(first: str, lost_from: int, delay: float) -> tuple[float, float]:
    """When a user fences itself, and when the owner releases it.

    All packets to `first` are lost from one on, those to the other one later.
    """
    pair = Pair()
    pair.open()
    fenced = released = 0.0
    seen = 0
    while not (fenced and released):
        for number in pair.collect():
            target, _ = pair.sent[number]
            seen += 1
            if seen < lost_from or (target != first and pair.now < 10 + delay):
                pair.deliver(number)
        due = [
            pair[each].due()
            for each in "ab"
            if (each != "a" or not fenced) and (each != "b" or not released)
        ]
        pair.now = max(pair.now, min(due))
        for each in "ab":
            pair[each].tick(pair.now)
        if not fenced and any(end.reason for end in pair.sides["a"].ends):
            fenced = pair.now
        if not released and any(not end.reason for end in pair.sides["b"].ends):
            released = pair.now
    return fenced, released


def test_a_user_gives_up_before_the_owner_gives_away() -> None:
    for first, lost, delay in product("ab", range(1, 12), (0.0, 0.6, 1.3, 1.9, 2.5)):
        fenced, released = lease(first, lost, delay)
        assert fenced < released, (first, lost, delay)


def test_a_fenced_side_is_silent() -> None:
    """What it said would prolong the lease that it has given up."""
    pair = Pair()
    pair.open()
    pair["a"].tick(pair.now + 1.5)
    assert pair["a"].state == FENCED
    before = pair["a"].due()
    pair.now += 1.5
    pair.collect()
    pair.say("b", 1)
    answers = pair.deliver(len(pair.sent) - 1)
    assert pair.kinds(answers) == ["RESET to b"]
    assert (pair.heard("a"), pair["a"].due()) == ([], before)


def test_a_message_alone_does_not_open_what_began_long_ago() -> None:
    """It says that some WELCOME came; not that it was not the first one."""
    pair = Pair()
    pair.say("a", 1)
    pair.deliver(0)
    notes = [each for _ in range(8) for each in pair.tick(0.25)]
    assert pair["b"].state == ANSWERING
    hello = [each for each in notes if pair.kinds([each]) == ["HELLO to b"]][-1]
    (welcome,) = pair.deliver(hello)
    pong, data = pair.deliver(welcome)
    assert pair.kinds([pong, data]) == ["PONG to b", "DATA to b"]
    pair.deliver(data)
    assert (pair["b"].state, pair.heard("b")) == (ANSWERING, [])
    pair.deliver(pong)
    assert pair["b"].state == OPEN
    pair.run(1.0)
    assert pair.heard("b") == [1]
    assert pair.sides["b"].ends == []


def test_an_answer_to_what_was_said_long_ago_does_not_open() -> None:
    pair = Pair()
    pair.say("a", 1)
    (welcome,) = pair.deliver(0)
    for _ in range(8):
        pair.tick(0.25)
    (hello,) = pair.deliver(welcome)
    assert pair.kinds([hello]) == ["HELLO to b"]
    assert pair["a"].state == OPENING
    pair.run(1.0, [hello])
    assert pair.heard("b") == [1]
    assert pair.sides["a"].ends == pair.sides["b"].ends == []


def test_one_who_leaves_after_it_was_given_up_ends_what_waits_for_it() -> None:
    pair = Pair()
    pair.open()
    pair["a"].tick(pair.now + 1.5)
    pair.say("a", 1)
    assert (pair["a"].state, pair["a"].queued()) == (FENCED, 1)
    pair["a"].over(Reason.LEFT)
    node = pair.nodes["b"]
    assert pair.sides["a"].ends == [
        End(node, Reason.LOST),
        End(node, None),
        End(node, Reason.LEFT),
        End(node, None),
    ]
    assert (pair["a"].state, pair["a"].queued()) == (CLOSED, 0)
    assert pair["a"].due() == float("inf")


def test_who_was_given_up_is_told_and_a_new_session_begins() -> None:
    pair = Pair()
    pair.open()
    pair.sides["a"].channel.tick(pair.now + 3.0)
    assert pair["a"].state == CLOSED
    pair.collect()
    pair.say("b", 1)
    (reset,) = pair.deliver(len(pair.sent) - 1)
    assert pair.kinds([reset]) == ["RESET to b"]
    pair.deliver(reset)
    node = pair.nodes["a"]
    assert pair.sides["b"].ends == [End(node, Reason.LOST), End(node, None)]
    # What was sent in the old session is gone; what is said now is said anew.
    pair.now += 3.0
    pair.say("a", 7)
    pair.say("b", 8)
    pair.run(1.0, [len(pair.sent) - 2, len(pair.sent) - 1])
    assert (pair.heard("a"), pair.heard("b")) == ([8], [7])
    assert pair["a"].numbers() == pair["b"].numbers() == (2, 2)
    # The end of the old one is not that of the new one.
    pair.deliver(reset)
    assert (pair["b"].state, pair.sides["b"].flaws[-1]) == (OPEN, PacketError.SESSION)


def test_a_question_in_an_old_session_is_answered_by_its_end() -> None:
    pair = Pair()
    pair.open()
    pair["a"].over(Reason.LOST)
    ping = pair.kinds(pair.tick(0.4) + pair.tick(0.8))
    assert ping == ["PING to a"]
    (reset,) = pair.deliver(len(pair.sent) - 1)
    assert pair.kinds([reset]) == ["RESET to b"]
    pair.deliver(reset)
    assert pair["b"].state == CLOSED


def test_who_begins_anew_ends_the_session_of_the_other() -> None:
    pair = Pair()
    pair.open()
    pair.say("b", 1)
    # "a" has forgotten everything but the numbers, as one who was cut off.
    pair["a"].over(Reason.LOST)
    pair.say("a", 2)
    waiting = [each for each in range(len(pair.sent)) if pair.sent[each][0] == "b"][-1:]
    pair.run(1.0, waiting)
    node = pair.nodes["a"]
    assert pair.sides["b"].ends == [End(node, Reason.LOST), End(node, None)]
    assert (pair.heard("a"), pair.heard("b")) == ([], [2])


def test_packets_of_an_old_session_are_dropped() -> None:
    pair = Pair()
    pair.open()
    pair.say("a", 1, 2, 3)
    old = [number for number, (to, _) in enumerate(pair.sent) if to == "b"]
    pair["a"].over(Reason.LOST)
    pair.say("a", 4)
    pair.run(0.1, [len(pair.sent) - 1])
    before = pair["b"].picture(pair.now)
    for number in old:
        pair.deliver(number)
    assert pair.heard("b") == [4]
    assert pair["b"].picture(pair.now) == before
    assert set(pair.sides["b"].flaws) == {PacketError.SESSION}


def test_what_waits_while_the_end_is_not_certain_is_of_the_next_session() -> None:
    pair = Pair()
    pair.open()
    pair["a"].tick(pair.now + 1.5)
    pair.collect()
    assert pair["a"].state == FENCED
    pair["b"].over(Reason.LOST)
    pair.now += 1.5
    pair.say("a", 5)
    assert pair["a"].queued() == 1
    pair.run(3.0)
    assert pair.heard("b") == [5]


def test_numbers_out_of_the_window_are_dropped() -> None:
    pair = Pair(replace(TIMES, window=4))
    pair.open()
    wide = Pair(replace(TIMES, window=10))
    wide.open()
    first = len(wide.sent)
    wide.say("a", *range(6))
    pair.sent += wide.sent[first:]
    assert pair.deliver(len(pair.sent) - 1) == []
    assert pair.sides["b"].flaws == [PacketError.SEQUENCE]


@pytest.mark.parametrize("number", [2, 99])
def test_acknowledgements_of_what_was_never_sent_change_nothing(number: int) -> None:
    pair = Pair()
    pair.open()
    first = len(pair.sent)
    pair.say("a", 1)
    pair.deliver(first)
    (pong,) = pair.tick(0.05)
    target, frames = pair.sent[pong]
    forged = bytearray(frames[0])
    forged[44:52] = number.to_bytes(8, "little")
    pair.sent.append((target, [bytes(forged)]))
    pair.deliver(len(pair.sent) - 1)
    assert pair["a"].unacknowledged() == 1
    pair.deliver(pong)
    assert pair["a"].unacknowledged() == 0


def test_a_fenced_side_that_hears_of_the_end_releases_at_once() -> None:
    """That the peer has no such session is what its silence would have shown."""
    pair = Pair()
    pair.open()
    pair.say("a", 1)
    data = len(pair.sent) - 1
    pair["b"].over(Reason.LOST)
    pair.now += 1.6
    pair["a"].tick(pair.now)
    pair.say("a", 2)
    assert (pair["a"].state, pair["a"].queued()) == (FENCED, 1)
    (reset,) = pair.deliver(data)
    found = parse(pair.sent[reset][1])
    assert isinstance(found, Head)
    # It names the session that is over, and nothing else.
    told = (found.kind, found.mine, found.theirs, found.sequence, found.acknowledged)
    assert told == (PacketKind.RESET, 1, 1, 0, 0)
    # What waits is said in the next session, which begins.
    (hello,) = pair.deliver(reset)
    found = parse(pair.sent[hello][1])
    assert isinstance(found, Head)
    assert (found.kind, found.mine, found.theirs) == (PacketKind.HELLO, 2, 0)
    node = pair.nodes["b"]
    assert pair.sides["a"].ends == [End(node, Reason.LOST), End(node, None)]


def test_a_channel_begins_once() -> None:
    pair = Pair()
    pair.open()
    pair["a"].begin(pair.now)
    assert (pair["a"].state, pair.collect()) == (OPEN, [])


def test_an_answer_says_which_question_it_answers() -> None:
    pair = Pair()
    pair.say("a", 1)
    hellos = [0, *pair.tick(0.3)]
    assert pair.kinds(hellos) == ["HELLO to b"] * 2
    for hello in hellos:
        (welcome,) = pair.deliver(hello)
        asked, answered = (parse(pair.sent[each][1]) for each in (hello, welcome))
        assert isinstance(asked, Head)
        assert isinstance(answered, Head)
        assert answered.acknowledged == asked.sequence > 0


def looks(seconds: float) -> list[Hashable]:
    """Both sides, when something is on its way, waits and came early."""
    pair = Pair(replace(TIMES, window=3))
    pair.open()
    pair.run(seconds)
    first = len(pair.sent)
    pair.say("a", 1, 2, 3, 4)
    pair.deliver(first + 2)
    return [pair[name].picture(pair.now) for name in "ab"]


def test_a_channel_looks_the_same_whenever_it_is() -> None:
    """Signs of life go on, and with them all numbers and times."""
    assert looks(30.0) == looks(45.0)
    assert looks(30.0) != looks(30.25)


def test_equal_histories_have_equal_pictures_wherever_they_begin() -> None:
    """A picture has no absolute numbers or times: it comes back."""
    pair = Pair()
    pair.open()
    pictures = []
    for number in (1, 2, 3):
        pair.say("a", number)
        pair.run(10.0, [len(pair.sent) - 1])
        pair.now = pair["a"].due()
        pair.run(0.0)
        picture = pair["a"].picture(pair.now)
        hash(picture)
        pictures.append(picture)
    assert pictures[1] == pictures[2]
    pair.say("a", 4)
    assert pair["a"].picture(pair.now) not in pictures


def test_bodies_are_kept_as_they_were_written() -> None:
    pair = Pair()
    pair.open()
    body, _ = encode(Cancel(1))
    tail = bytearray(b"payload")
    pair["a"].send(body, (tail,), len(body) + len(tail), pair.now)
    (sent,) = pair.collect()
    assert pair.sent[sent][1][1] is tail


def test_the_numbers_of_kinds_are_a_part_of_the_format() -> None:
    """A worker of another version reads them: what is new gets a number behind all."""
    assert {number: kind.__name__ for number, kind in KINDS.items()} == {
        1: "Call",
        2: "Answer",
        3: "Decline",
        4: "Cancel",
        5: "Register",
        6: "ReferenceRegistered",
        7: "ReferenceRefused",
        8: "Accept",
        9: "Delete",
        10: "MemberJoined",
        11: "MemberLeft",
        12: "Idle",
        13: "Survey",
        14: "Waiting",
        15: "Finish",
        16: "FramePart",
    }
