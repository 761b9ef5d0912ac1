"""Timers of a channel: when it acknowledges, asks, and asks again.

That all comes once and in order is shown beside this (`test_channel`); nothing here is
lost for good, it only takes longer.
"""

import pytest

from everyorder.runtime.rpc.protocol.liveness import LeaseTimes
from tests.rpc.protocol.pair import Pair
from tests.rpc.protocol.times import TIMES


def asked(pair: Pair) -> float:
    """In how long the first side asks, or asks again."""
    return pair["a"].due() - pair.now


def test_a_sign_of_life_is_asked_for_when_the_last_one_is_old() -> None:
    pair = Pair()
    pair.open()
    assert pair["a"].due() == 10.0 + TIMES.heartbeat
    # What was sent, and came, is one of the time when it was sent.
    said = pair.now = 10.25
    pair.say("a", 1)
    pair.deliver(len(pair.sent) - 1)
    (pong,) = pair.tick(TIMES.acknowledge)
    pair.deliver(pong)
    assert pair["a"].lease.proven == said
    assert pair["a"].due() == said + TIMES.heartbeat


def test_who_has_just_spoken_acknowledges_what_comes_as_soon_as_others() -> None:
    pair = Pair()
    pair.open()
    pair.say("b", 1)
    pair.deliver(len(pair.sent) - 1)
    pair.say("a", 2)
    pair.deliver(len(pair.sent) - 1)
    (pong,) = pair.tick(TIMES.acknowledge)
    assert pair.kinds([pong]) == ["PONG to a"]


def test_an_acknowledgement_gives_what_is_left_its_whole_time() -> None:
    pair = Pair()
    pair.open()
    first = len(pair.sent)
    pair.say("a", 1)
    pair.say("a", 2)
    pair.deliver(first)
    (pong,) = pair.tick(TIMES.acknowledge)
    assert asked(pair) == pytest.approx(TIMES.probe - TIMES.acknowledge)
    pair.deliver(pong)
    assert pair["a"].unacknowledged() == 1
    assert asked(pair) == pytest.approx(TIMES.probe)


def test_a_question_without_an_answer_is_asked_ever_later_until_something_came() -> (
    None
):
    pair = Pair()
    pair.open()
    pair.say("a", 1)
    (ping,) = pair.tick(asked(pair))
    assert pair.kinds([ping]) == ["PING to b"]
    # The next one is for the sign of life, which is due before it is asked again.
    assert asked(pair) == pytest.approx(TIMES.heartbeat / 2)
    (pong,) = pair.deliver(ping)
    (again,) = pair.deliver(pong)
    assert pair.kinds([again]) == ["DATA to b"]
    # What was sent again may be lost again: that is asked as soon as at first.
    assert asked(pair) == pytest.approx(TIMES.probe)


def test_a_lease_shows_since_when_it_is_proven_and_whether_at_all() -> None:
    lease = LeaseTimes(TIMES)
    assert lease.picture(5.0) == (None, None, None, ())
    lease.prove(3.0)
    lease.heard = 4.0
    assert lease.picture(5.0) == (-1.0, -2.0, None, ())
    assert lease.picture(6.0) == (-2.0, -3.0, None, ())
    lease.reach(2.0)
    assert lease.picture(6.0) == (-2.0, -3.0, -4.0, ())


def test_a_process_that_runs_is_not_dead_however_silent() -> None:
    lease = LeaseTimes(TIMES)
    lease.prove(3.0)
    lease.heard = 4.0
    lease.reach(1.0)
    assert (lease.ends(), lease.expires()) == (3.0 + TIMES.dead, 4.0 + TIMES.expire)
    lease.reach(10.0)
    lease.reach(9.0)
    assert (lease.ends(), lease.expires()) == (10.0 + TIMES.dead, 10.0 + TIMES.expire)
