"""How workers start and end, and what is left of calls and references then."""

import os
import signal
import threading
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

import pytest

from everyorder.runtime import rpc
from everyorder.runtime.errors.rpc import (
    JoinTimeout,
    NotAdmitted,
    NotInitialized,
    ReferenceDead,
    RpcMisuse,
    RpcTimeout,
    WorkerLost,
)
from everyorder.runtime.rpc.agent import Agent, in_worker_slot
from everyorder.runtime.rpc.protocol.events import Settings
from everyorder.runtime.rpc.transport import LocalTransport
from tests.coded import code
from tests.rpc.api import remote_functions as remote
from tests.rpc.api.bodies import until
from tests.rpc.worlds import PATIENT, processes

_GROUPS = count()
# Late enough for busy machines.
MORTAL = Settings(heartbeat=0.5, dead=5.0, expire=7.0, connect=20.0)
SECONDS = 60


def joined(name: str, rank: int, size: int | None, group: str, **more: Any) -> None:
    options = rpc.RpcBackendOptions(init_method=f"local://{group}", **more)
    rpc.init_rpc(name, rank=rank, world_size=size, rpc_backend_options=options)


def together(
    *bodies: Callable[[], Any], ends: bool = True, group: str = "", **more: Any
) -> list[Any]:
    """What each worker of a group gives: threads of this process, each one worker.

    Their names are worker0, worker1, ...; what one raises is raised here.
    """
    group = group or f"ends{next(_GROUPS)}"
    more = {"session": PATIENT, **more}
    results: list[Any] = [None] * len(bodies)
    errors: list[BaseException] = []

    def work(rank: int, body: Callable[[], Any]) -> None:
        try:
            with in_worker_slot():
                joined(f"worker{rank}", rank, len(bodies), group, **more)
                try:
                    results[rank] = body()
                    if ends:
                        rpc.shutdown()
                finally:
                    if rpc.is_initialized():
                        rpc.shutdown(graceful=False)
        except BaseException as error:
            errors.append(error)

    threads = [
        threading.Thread(target=work, args=each, daemon=True)
        for each in enumerate(bodies)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive(), "a worker does not end"
    if errors:
        raise errors[0]
    return results


def nothing() -> None:
    return None


@pytest.mark.spec("rpc 8 ends and timeouts", "before the start")
def test_before_the_start_nothing_is_called() -> None:
    with in_worker_slot():
        for ask in (
            lambda: rpc.rpc_sync("a", remote.nothing),
            lambda: rpc.rpc_async("a", remote.nothing),
            lambda: rpc.remote("a", remote.nothing),
            lambda: rpc.RRef(1),
            rpc.get_worker_info,
            rpc.get_rpc_timeout,
            rpc.shutdown,
            lambda: rpc.api._all_gather(1),
        ):
            with pytest.raises(NotInitialized, match="RPC has not been initialized"):
                ask()


@pytest.mark.spec("rpc 8 ends and timeouts", "after the end")
def test_after_the_end_nothing_is_called() -> None:
    with in_worker_slot():
        joined("a", 0, 1, f"ends{next(_GROUPS)}")
        assert rpc.rpc_sync("a", remote.add, (1, 1)) == 2
        rpc.shutdown()
        assert not rpc.is_initialized()
        with pytest.raises(NotInitialized, match="RPC has not been initialized"):
            rpc.rpc_sync("a", remote.nothing)


@pytest.mark.spec("rpc 8 ends and timeouts", "started again")
def test_a_worker_starts_again() -> None:
    group = f"ends{next(_GROUPS)}"
    with in_worker_slot():
        for number in range(3):
            joined("a", 0, 1, group)
            assert rpc.rpc_sync("a", remote.add, (number, 1)) == number + 1
            rpc.shutdown()


@pytest.mark.spec("rpc 8 identity", "names that no worker has")
def test_names_that_no_worker_has() -> None:
    with in_worker_slot():
        for name in ("", "a b", "é", "x" * 128, 3):
            with pytest.raises(RpcMisuse, match="Worker name must match"):
                joined(name, 0, 1, "never")  # type: ignore[arg-type]
        assert not rpc.is_initialized()


@pytest.mark.spec("rpc 10", "D20 names with hyphens")
def test_names_with_hyphens() -> None:
    group = f"ends{next(_GROUPS)}"
    with in_worker_slot():
        joined("a-b:c_1", -1, None, group)
        with in_worker_slot():
            joined("-", -1, None, group)
            assert rpc.rpc_sync("a-b:c_1", remote.add, (1, 1)) == 2
            assert rpc.get_worker_info("a-b:c_1").name == "a-b:c_1"
            rpc.shutdown()
        rpc.shutdown()


@pytest.mark.spec("rpc 8 identity", "names that are not unique")
def test_a_name_that_is_taken() -> None:
    group = f"ends{next(_GROUPS)}"
    with in_worker_slot():
        joined("a", -1, None, group)
        with (
            in_worker_slot(),
            pytest.raises(NotAdmitted, check=code("NotUnique"), match="is not unique"),
        ):
            joined("a", -1, None, group)
        assert rpc.rpc_sync("a", remote.add, (1, 1)) == 2
        rpc.shutdown()


def test_who_never_came_is_named() -> None:
    with in_worker_slot(), pytest.raises(JoinTimeout, match="rank 1"):
        joined("a", 0, 2, f"ends{next(_GROUPS)}", join_timeout=0.2)


GATE = threading.Event()
DONE: list[int] = []


def slow(number: int) -> int:
    assert GATE.wait(SECONDS)
    DONE.append(number)
    return number


@pytest.mark.spec("rpc 8 ends and timeouts", "uneven work")
def test_the_end_waits_for_what_others_still_do() -> None:
    def first() -> list[Any]:
        # Begun, and not waited for before the end.
        return [rpc.rpc_async("worker1", slow, (n,)) for n in range(3)]

    futures, _, _ = together(first, GATE.set, nothing)
    assert sorted(DONE) == [0, 1, 2]
    assert [each.wait() for each in futures] == [0, 1, 2]
    GATE.clear()
    DONE.clear()


@pytest.mark.spec("rpc 8 ends and timeouts", "at once")
def test_the_end_at_once() -> None:
    def body() -> None:
        rpc.api._barrier({"worker0", "worker1"})
        rpc.shutdown(graceful=False)

    together(body, body, ends=False)


@pytest.mark.spec("rpc 8 ends and timeouts", "who is missing")
def test_who_never_comes_to_the_end_is_named() -> None:
    left = threading.Event()

    def waits() -> None:
        with pytest.raises(RpcTimeout, check=code("ShutdownTimeout"), match="worker1"):
            rpc.shutdown(timeout=0.2)
        # It has ended all the same.
        assert not rpc.is_initialized()
        left.set()

    def never() -> None:
        assert left.wait(SECONDS)

    together(waits, never, ends=False)


def test_calls_of_a_worker_that_left() -> None:
    def leaves() -> None:
        rpc.api._barrier({"worker0", "worker1"})
        rpc.shutdown(graceful=False)

    def stays() -> None:
        future = rpc.rpc_async("worker0", remote.pass_gate, ("never",))
        rpc.api._barrier({"worker0", "worker1"})
        with pytest.raises(WorkerLost, match="worker0"):
            future.wait()
        rpc.shutdown(graceful=False)

    together(leaves, stays, ends=False)
    remote.open_gate("never")


@pytest.mark.spec("rpc 8 references", "after the end")
def test_a_reference_after_the_end() -> None:
    kept: list[Any] = []

    def first() -> None:
        kept.append(rpc.remote("worker1", remote.add, (1, 2)))
        assert kept[0].to_here() == 3

    together(first, nothing)
    user = kept.pop()
    for ask in (user.to_here, user._serialize, user.rpc_sync().bit_length):
        with pytest.raises(RuntimeError, match=r"deleted|initialized"):
            ask()
    assert "UserRRef" in repr(user)


@pytest.mark.spec("rpc 8 references", "leaks")
@pytest.mark.spec("rpc 11.5", "the end with references under way")
def test_references_that_are_left_at_the_end() -> None:
    """They are told, and keep nobody from ending."""
    kept: list[Any] = []
    ended = threading.Event()

    def keeps() -> None:
        kept.append(rpc.remote("worker1", remote.add, (1, 2)))
        assert kept[0].to_here() == 3
        rpc.rpc_sync("worker1", remote.open_gate, ("left",))
        # In good order its references are given up.
        rpc.shutdown()
        ended.set()

    def has_it() -> None:
        remote.pass_gate("left")
        assert remote.owners() == 1
        rpc.shutdown(ignore_leaks=False)
        assert not rpc.is_initialized()

    together(keeps, has_it, ends=False)
    assert ended.is_set()
    kept.clear()


@pytest.mark.spec("rpc 8 references", "leaks")
def test_a_reference_that_is_never_given_up_is_told() -> None:
    """Its owner ends all the same; in an open group nobody is waited for."""
    group = f"ends{next(_GROUPS)}"
    with in_worker_slot() as owner, in_worker_slot():
        with in_worker_slot(owner):
            joined("owner", -1, None, group, session=PATIENT)
        joined("user", -1, None, group, session=PATIENT)
        kept = rpc.remote("owner", remote.add, (1, 2))
        assert kept.to_here() == 3
        with in_worker_slot(owner):
            with pytest.raises(
                ReferenceDead, check=code("ReferencesLeaked"), match="Leaking RRef"
            ):
                rpc.shutdown(timeout=0.3, ignore_leaks=False)
            assert not rpc.is_initialized()
        rpc.shutdown(graceful=False)


@pytest.mark.spec("rpc 8 ends and timeouts", "an error of the end")
def test_an_error_of_the_end_is_raised_by_a_worker_that_has_ended() -> None:
    group = f"ends{next(_GROUPS)}"

    def fails(_: Agent) -> None:
        raise RuntimeError("Expected error")

    with in_worker_slot():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Agent, "finish", fails)
            joined("a", 0, 1, group)
            with pytest.raises(RuntimeError, match="Expected error"):
                rpc.shutdown()
            assert not rpc.is_initialized()
        joined("a", 0, 1, group)
        rpc.shutdown()


@pytest.mark.spec("rpc 11.4", "lost messages")
def test_lost_packets_delay_and_lose_nothing() -> None:
    """11.4: references that are shared and dropped while packets get lost."""
    group = f"ends{next(_GROUPS)}"
    hasty = Settings(
        heartbeat=0.05, dead=30.0, expire=40.0, probe=0.02, acknowledge=0.01
    )
    # In turn it could be the same packet that is lost each time that it is sent again.
    drawn = Random(1)
    lost = 0

    class Lossy(LocalTransport):
        """Loses a third of the packets."""

        def send(self, endpoint: str, frames: Any) -> None:
            nonlocal lost
            if drawn.random() < 1 / 3:
                lost += 1
            else:
                super().send(endpoint, frames)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("everyorder.runtime.rpc.agent.rendezvous.LocalTransport", Lossy)

        def user() -> None:
            for number in range(3):
                rref = rpc.remote("worker1", remote.add, (number, 1))
                assert rpc.rpc_sync("worker2", remote.fetch, (rref,)) == number + 1
                del rref
            assert until(lambda: rpc.rpc_sync("worker1", remote.owners) == 0)

        together(user, nothing, nothing, group=group, session=hasty)
    assert lost > 6


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.spec("rpc 8 dead peers", "an error at the caller")
@pytest.mark.parametrize("how", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_a_worker_that_died(how: str) -> None:
    """Its callers are told, and whoever refers to its values."""
    with processes(how, ("a", "b"), session=MORTAL) as (_, _others):
        rref = rpc.remote("b", remote.add, (1, 2))
        assert rref.to_here() == 3
        waiting = rpc.rpc_async("b", remote.pass_gate, ("never",))
        with pytest.raises(WorkerLost) as e:
            rpc.rpc_sync("b", die)
        assert (e.value.worker, isinstance(e.value, ConnectionError)) == ("b", True)
        with pytest.raises(WorkerLost):
            waiting.wait(SECONDS)
        with pytest.raises(ReferenceDead, check=code("ReferenceDead")):
            rref.to_here()
        with pytest.raises(RuntimeError):
            rpc.rpc_sync("b", remote.nothing)
        # Whoever is left goes on.
        assert rpc.rpc_sync("a", remote.add, (1, 1)) == 2
        rpc.shutdown(graceful=False)
