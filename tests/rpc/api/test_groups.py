"""What all workers do together: gathering, barriers, and the end."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from everyorder.runtime import rpc
from everyorder.runtime.errors.rpc import RpcError, RpcTimeout
from everyorder.runtime.rpc.agent import current_agent, in_worker_slot, worker_slot
from everyorder.runtime.rpc.api import gatherings
from tests.coded import coded
from tests.rpc.api import remote_functions as remote
from tests.rpc.api.bodies import NAMES, OTHER, THIRD, in_world, on_all, until

GatherTimeout = coded(RpcTimeout, "GatherTimeout")


def gathered(names: set[str] | None = None) -> dict[str, str]:
    me = rpc.get_worker_info().name
    return rpc.api._all_gather(f"of {me}", names)


@pytest.mark.spec("rpc 8 ends and timeouts", "gathering")
@in_world
def test_everybody_gets_what_everybody_gave() -> None:
    expected = {name: f"of {name}" for name in NAMES}
    assert on_all(NAMES, gathered) == [expected] * 3


@pytest.mark.spec("rpc 8 ends and timeouts", "gathering")
@in_world
def test_some_of_them_gather_again_and_again() -> None:
    some = {OTHER, THIRD}
    expected = {name: f"of {name}" for name in sorted(some)}
    for _ in range(3):
        assert on_all([OTHER, THIRD], gathered, some) == [expected] * 2


@in_world
def test_one_alone() -> None:
    assert gathered({NAMES[0]}) == {NAMES[0]: f"of {NAMES[0]}"}


@pytest.mark.spec("rpc 8 ends and timeouts", "gathering that times out")
@in_world
def test_who_is_missing_is_named() -> None:
    # The first by name waits for the others, and knows who they are.
    with pytest.raises(GatherTimeout, match=r"timed out after 0\.10 seconds") as e:
        rpc.api._all_gather(1, {NAMES[0], OTHER, THIRD}, timeout=0.1)
    assert set(e.value.missing) == {OTHER, THIRD}
    # Anybody else waits for the first one.
    with pytest.raises((GatherTimeout, RpcTimeout)):
        rpc.rpc_sync(OTHER, late_gather, ({OTHER, THIRD},))


@in_world
def test_what_cannot_be_sent_does_not_end_a_gathering() -> None:
    assert rpc.rpc_sync(OTHER, gather_what_cannot_be_sent) == "Unsendable"
    expected = {name: f"of {name}" for name in NAMES}
    assert on_all(NAMES, gathered) == [expected] * 3


def gather_what_cannot_be_sent() -> str:
    try:
        rpc.api._all_gather(threading.Lock(), timeout=0.1)
    except RpcError as error:
        return type(error).__name__
    return ""


@in_world
def test_who_waits_for_the_first_one_gives_up_and_tries_again() -> None:
    pair = {NAMES[0], OTHER}
    with pytest.raises(GatherTimeout, match=r"the answer of the first worker"):
        rpc.rpc_sync(OTHER, late_gather, (pair,))
    # It is the same gathering when both come.
    expected = {name: f"of {name}" for name in sorted(pair)}
    assert on_all(sorted(pair), gathered, pair) == [expected] * 2


@in_world
def test_a_barrier_that_is_given_up_is_logged() -> None:
    rpc._set_rpc_timeout(0.1)
    logger = logging.getLogger("everyorder.runtime.rpc")
    told: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: told.append(record.getMessage())  # type: ignore[method-assign]
    logger.addHandler(handler)
    try:
        rpc.api._barrier({NAMES[0], THIRD})
    finally:
        logger.removeHandler(handler)
        rpc._set_rpc_timeout(60)
    assert [text.partition(":")[0] for text in told] == ["a barrier timed out"]
    assert "worker2" in told[0]
    assert on_all([NAMES[0], THIRD], passed_barriers, {NAMES[0], THIRD}, 1) == [1, 1]


def late_gather(names: set[str]) -> None:
    me = rpc.get_worker_info().name
    rpc.api._all_gather(f"of {me}", names, timeout=0.1)


def arrive_late(number: int, names: tuple[str, ...]) -> None:
    """What is left of a gathering that this worker gave up."""
    me = rpc.get_worker_info().name
    rpc.rpc_sync(names[0], gatherings._arrive, (number, names, me, "late", None))


@in_world
def test_what_comes_late_counts_for_who_tries_again() -> None:
    """Else it would wait for those who have gone on with what it gave first."""
    pair = {NAMES[0], OTHER}
    names = tuple(sorted(pair))
    found = gatherings._gatherings(current_agent("test"))
    first = rpc.rpc_async(NAMES[0], gathered, (pair,))
    assert until(lambda: names in found.led and bool(found.led[names].open))
    number = found.numbers[names].last
    rpc.rpc_sync(OTHER, arrive_late, (number, names))
    together = {NAMES[0]: f"of {NAMES[0]}", OTHER: "late"}
    assert first.wait() == together
    assert rpc.rpc_sync(OTHER, gathered, (pair,)) == together
    assert found.numbers[names].last == number
    expected = {name: f"of {name}" for name in names}
    assert on_all(names, gathered, pair) == [expected] * 2
    # What is later still is of no use to anybody, and waits for nobody.
    with pytest.raises(GatherTimeout):
        rpc.rpc_sync(OTHER, arrive_late, (number, names))


def arrive(
    number: int, names: tuple[str, ...], objects: list[str]
) -> list[dict[str, str]]:
    """What gatherings give that this worker comes to in the reverse order."""
    me = rpc.get_worker_info().name
    return [
        rpc.rpc_sync(names[0], gatherings._arrive, (number + n, names, me, each, None))
        for n, each in reversed([*enumerate(objects)])
    ]


@in_world
def test_gatherings_of_several_threads_end_in_any_order() -> None:
    names = tuple(sorted((NAMES[0], OTHER)))
    assert on_all(names, gathered, set(names))
    found = gatherings._gatherings(current_agent("test"))
    first = found.numbers[names].last + 1
    mine = [rpc.rpc_async(NAMES[0], gathered, (set(names),)) for _ in range(3)]
    assert until(lambda: len(found.led[names].open) == 3)
    theirs = rpc.rpc_sync(OTHER, arrive, (first, names, ["x", "y", "z"]))
    assert [each[OTHER] for each in theirs] == ["z", "y", "x"]
    assert sorted(each.wait()[OTHER] for each in mine) == ["x", "y", "z"]
    # The numbers that were used directly.
    rpc.rpc_sync(OTHER, skip_numbers, (names, 3))
    expected = {name: f"of {name}" for name in names}
    assert on_all(names, gathered, set(names)) == [expected] * 2
    # All members have ended the others.
    assert [*found.led[names].complete] == [first + 3]


def skip_numbers(names: tuple[str, ...], count: int) -> None:
    found = gatherings._gatherings(current_agent("test"))
    for _ in range(count):
        found.numbers[names].end(found.numbers[names].take())


def test_a_number_that_timed_out_is_taken_again_beside_later_ones() -> None:
    numbers = gatherings._Numbers()
    assert [numbers.take() for _ in range(3)] == [1, 2, 3]
    numbers.repeat(2)
    numbers.repeat(1)
    numbers.end(3)
    assert numbers.settled() == 1
    assert [numbers.take() for _ in range(3)] == [1, 2, 4]
    for number in (1, 2, 4):
        numbers.end(number)
    assert (numbers.settled(), numbers.last) == (5, 4)


def many_gathers(names: set[str], count: int) -> int:
    with ThreadPoolExecutor(count) as pool:
        slot = worker_slot()

        def gather(_: int) -> int:
            with in_worker_slot(slot):
                return len(rpc.api._all_gather("x", names))

        return sum(pool.map(gather, range(count)))


@in_world
def test_many_threads_gather_at_once() -> None:
    assert on_all(NAMES, many_gathers, set(NAMES), 12) == [36] * 3


@in_world
def test_whoever_does_not_belong_is_told() -> None:
    with pytest.raises(ValueError, match="worker0"):
        rpc.api._all_gather(1, {OTHER, THIRD})


def passed_barriers(names: set[str], count: int) -> int:
    for _ in range(count):
        rpc.api._barrier(names)
    return count


@pytest.mark.spec("rpc 8 groups", "barriers of some, from several threads")
@in_world
def test_barriers() -> None:
    assert on_all(NAMES, passed_barriers, set(NAMES), 3) == [3] * 3
    assert on_all([OTHER, THIRD], passed_barriers, {OTHER, THIRD}, 2) == [2] * 2


@pytest.mark.spec("rpc 8 groups", "barriers of some, from several threads")
@in_world
def test_barriers_of_several_threads_at_once() -> None:
    """Different groups, interleaved."""
    futures = [
        rpc.rpc_async(name, passed_barriers, (set(group), 3))
        for group in ((OTHER, THIRD), (NAMES[0], OTHER), (NAMES[0], THIRD))
        for name in group
    ]
    assert [each.wait() for each in futures] == [3] * 6


@in_world
def test_a_group_is_usable_after_one_that_failed() -> None:
    assert on_all(NAMES, gathered) == [{name: f"of {name}" for name in NAMES}] * 3
    assert rpc.rpc_sync(OTHER, remote.worker_name) == OTHER
