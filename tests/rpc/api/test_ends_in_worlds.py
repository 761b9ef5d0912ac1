"""How workers start and end, as forked and as spawned processes.

Two processes are there for all tests, as no worker at all: each test makes a group of
its own of them, by what it has each of them call.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from typing import Any

import pytest

from everyorder.runtime import rpc
from everyorder.runtime.errors.rpc import (
    NotAdmitted,
    NotInitialized,
    ReferenceDead,
    RpcMisuse,
    RpcTimeout,
)
from everyorder.runtime.rpc.agent import Agent
from tests.coded import code
from tests.rpc.api import remote_functions as remote
from tests.rpc.worlds import Process, options

_GROUPS = count()
KEPT: list[Any] = []


class Two:
    """Two processes, and an address for the next group of theirs."""

    def __init__(self, made: list[Process], folder: str) -> None:
        self.made = made
        self._folder = folder

    def place(self) -> str:
        """Where a group meets that nobody has met at."""
        return f"ipc://{self._folder}/{next(_GROUPS)}"

    def together(self, *bodies: Callable[[], Any], ends: bool = True) -> list[Any]:
        """What each worker of a static group gives; `ends` in good order after it."""
        where = self.place()
        for rank, (each, body) in enumerate(zip(self.made, bodies, strict=False)):
            each.ask(work, body, where, rank, len(bodies), ends)
        return [each.answer() for each in self.made[: len(bodies)]]

    def do(self, number: int, body: Callable[..., Any], *args: Any) -> Any:
        """What a function gives in one of the processes."""
        return self.made[number].do(body, *args)


@pytest.fixture(scope="module", params=["fork", "spawn"])
def two(request: pytest.FixtureRequest) -> Iterator[Two]:
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="rpc"))
        made = []
        for number in range(2):
            where = f"ipc://{folder}/alone{number}"
            each = Process(
                request.param, "alone", rank=0, world_size=1, init_method=where
            )
            stack.callback(each.close)
            made.append(each)
        for each in made:
            each.answer()
        for each in made:
            each.do(rpc.shutdown)
        yield Two(made, folder)


def joined(where: str, name: str, rank: int = -1, size: int | None = None) -> None:
    chosen = options(init_method=where)
    rpc.init_rpc(name, rank=rank, world_size=size, rpc_backend_options=chosen)


def work(body: Callable[[], Any], where: str, rank: int, size: int, ends: bool) -> Any:
    joined(where, f"worker{rank}", rank, size)
    try:
        result = body()
        if ends:
            rpc.shutdown()
        return result
    finally:
        if rpc.is_initialized():
            rpc.shutdown(graceful=False)


def nothing() -> None:
    return None


def leave() -> None:
    rpc.shutdown(graceful=False)


def no_worker() -> None:
    asks: tuple[Callable[[], Any], ...] = (
        lambda: rpc.rpc_sync("worker0", remote.nothing),
        lambda: rpc.rpc_async("worker0", remote.nothing),
        lambda: rpc.remote("worker0", remote.nothing),
        lambda: rpc.RRef(1),
        rpc.get_worker_info,
        rpc.shutdown,
    )
    for ask in asks:
        with pytest.raises(NotInitialized, match="RPC has not been initialized"):
            ask()


@pytest.mark.spec("rpc 8 ends and timeouts", "after the end", "before the start")
def test_before_the_start_and_after_the_end_nothing_is_called(two: Two) -> None:
    two.do(0, no_worker)
    two.together(nothing, nothing)
    two.do(0, no_worker)
    two.do(1, no_worker)


def call_the_other() -> int:
    there = f"worker{1 - rpc.get_worker_info().id}"
    result: int = rpc.rpc_sync(there, remote.add, (1, 1))
    return result


@pytest.mark.spec("rpc 8 ends and timeouts", "started again")
def test_they_start_again(two: Two) -> None:
    for _ in range(3):
        assert two.together(call_the_other, call_the_other) == [2, 2]


def start_twice() -> None:
    with pytest.raises(
        RpcMisuse, check=code("AlreadyInitialized"), match="RPC is already initialized"
    ):
        joined("ipc:///nowhere", "another")
    assert call_the_other() == 2


@pytest.mark.spec("rpc 8 identity", "initialized twice")
def test_a_second_start_is_refused(two: Two) -> None:
    two.together(start_twice, start_twice)


def no_names() -> None:
    for name in ("", "a b", "é", "x" * 128):
        with pytest.raises(RpcMisuse, match="Worker name must match"):
            joined("ipc:///nowhere", name)
    assert not rpc.is_initialized()


@pytest.mark.spec("rpc 8 identity", "names that no worker has")
def test_names_that_no_worker_has(two: Two) -> None:
    two.do(0, no_names)


def not_unique(where: str, name: str) -> None:
    with pytest.raises(NotAdmitted, check=code("NotUnique"), match="is not unique"):
        joined(where, name)
    assert not rpc.is_initialized()


@pytest.mark.spec("rpc 8 identity", "names that are not unique")
@pytest.mark.spec("rpc 10", "D20 names with hyphens")
def test_a_name_that_is_taken(two: Two) -> None:
    where = two.place()
    two.do(0, joined, where, "a")
    two.do(1, not_unique, where, "a")
    two.do(1, joined, where, "b-1")
    assert two.do(0, rpc.rpc_sync, "b-1", remote.add, (1, 1)) == 2
    two.do(1, rpc.shutdown)
    two.do(0, rpc.shutdown)


def begin_and_end() -> list[Any]:
    gates = [f"uneven{number}" for number in range(3)]
    futures = [rpc.rpc_async("worker1", remote.pass_gate, (each,)) for each in gates]
    futures += [rpc.rpc_async("worker1", remote.open_gate, (each,)) for each in gates]
    # The other one is at its end already, and waits for these.
    rpc.shutdown()
    assert all(each.done() for each in futures)
    return [each.error() for each in futures]


@pytest.mark.spec("rpc 8 ends and timeouts", "uneven work")
def test_the_end_waits_for_what_others_still_do(two: Two) -> None:
    errors, _ = two.together(begin_and_end, rpc.shutdown, ends=False)
    assert errors == [None] * 6


def end_at_once() -> None:
    rpc.api._barrier({"worker0", "worker1"})
    rpc.shutdown(graceful=False)
    assert not rpc.is_initialized()


@pytest.mark.spec("rpc 8 ends and timeouts", "at once")
def test_the_end_at_once(two: Two) -> None:
    two.together(end_at_once, end_at_once, ends=False)


def wait_in_vain() -> None:
    with pytest.raises(RpcTimeout, check=code("ShutdownTimeout"), match="worker1"):
        rpc.shutdown(timeout=0.2)
    # It has ended all the same.
    assert not rpc.is_initialized()


@pytest.mark.spec("rpc 8 ends and timeouts", "who is missing")
def test_who_never_comes_to_the_end_is_named(two: Two) -> None:
    where = two.place()
    for number in range(2):
        two.made[number].ask(joined, where, f"worker{number}", number, 2)
    for each in two.made:
        each.answer()
    two.do(0, wait_in_vain)
    two.do(1, leave)


def end_with_an_error() -> None:
    def fails(_: Agent) -> None:
        raise RuntimeError("Expected error")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Agent, "finish", fails)
        with pytest.raises(RuntimeError, match="Expected error"):
            rpc.shutdown()
    assert not rpc.is_initialized()


@pytest.mark.spec("rpc 8 ends and timeouts", "an error of the end")
def test_an_error_of_the_end_is_raised_by_a_worker_that_has_ended(two: Two) -> None:
    two.together(end_with_an_error, ends=False)
    assert two.together(call_the_other, call_the_other) == [2, 2]


def keep(owner: str) -> None:
    KEPT.append(rpc.remote(owner, remote.add, (1, 2)))
    assert KEPT[-1].to_here() == 3


def end_with_leaks(ignored: bool) -> None:
    if ignored:
        rpc.shutdown(timeout=0.3)
    else:
        with pytest.raises(
            ReferenceDead, check=code("ReferencesLeaked"), match="Leaking RRef"
        ):
            rpc.shutdown(timeout=0.3, ignore_leaks=False)
    assert not rpc.is_initialized()


def kept_are_dead() -> None:
    for user in KEPT:
        for ask in (user.to_here, user._serialize, user.rpc_sync().bit_length):
            with pytest.raises(RuntimeError, match=r"deleted|initialized|dead"):
                ask()
        assert "UserRRef" in repr(user)
    KEPT.clear()


@pytest.mark.spec("rpc 8 references", "leaks", "after the end")
@pytest.mark.parametrize("ignored", [False, True])
def test_a_reference_that_is_never_given_up(two: Two, ignored: bool) -> None:
    """It is told, or not, and dead after the end; its owner ends all the same."""
    where = two.place()
    two.do(0, joined, where, "owner")
    two.do(1, joined, where, "user")
    two.do(1, keep, "owner")
    two.do(0, end_with_leaks, ignored)
    two.do(1, leave)
    two.do(1, kept_are_dead)


def keep_to_the_end() -> None:
    keep("worker1")
    rpc.rpc_sync("worker1", remote.open_gate, ("left",))
    # In good order its references are given up.
    rpc.shutdown()
    kept_are_dead()


def end_without_leaks() -> None:
    remote.pass_gate("left")
    assert remote.owners() == 1
    rpc.shutdown(ignore_leaks=False)


@pytest.mark.spec("rpc 8 references", "leaks")
@pytest.mark.spec("rpc 11.5", "the end with references under way")
def test_references_that_are_left_at_the_end(two: Two) -> None:
    two.together(keep_to_the_end, end_without_leaks, ends=False)
