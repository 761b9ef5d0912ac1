"""Calls between agents: results, errors, timeouts, nesting, what is kept and let go."""

import gc
import operator
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from everyorder.runtime.errors.rpc import (
    NotInitialized,
    ReferenceDead,
    RemoteError,
    RpcMisuse,
    RpcTimeout,
    Unsendable,
    WorkerLost,
)
from everyorder.runtime.futures import Future
from everyorder.runtime.rpc.agent import Agent, CallRequest, current_agent
from everyorder.runtime.rpc.codec.named_functions import MARK
from everyorder.runtime.rpc.protocol.events import Settings
from everyorder.runtime.rpc.protocol.identities import WorkerNode
from tests.coded import code
from tests.rpc.worlds import HASTY, SECONDS, at_once, stopped, threads


@pytest.fixture(scope="module")
def world() -> Iterator[tuple[Agent, Agent, Agent]]:
    with threads("a", "b", "c") as (a, b, c):
        yield a, b, c


World = tuple[Agent, Agent, Agent]


def call(agent: Agent, to: str, function: Any, *args: Any, **kwargs: Any) -> Any:
    """What a function gives on another worker, asked in both ways."""
    request = CallRequest(function, args, kwargs)
    node = agent.find(to)
    later = agent.call(node, request, timeout=SECONDS)
    now = agent.call_and_wait(node, request, timeout=SECONDS)
    assert later.wait(SECONDS) == now
    return now


def asked(agent: Agent, node: WorkerNode, request: CallRequest, later: bool) -> Any:
    if later:
        return agent.call(node, request, timeout=SECONDS).wait(SECONDS)
    return agent.call_and_wait(node, request, timeout=SECONDS)


def me() -> str:
    return current_agent("test").name


def thread() -> str:
    return threading.current_thread().name.rpartition(" ")[0]


@pytest.mark.parametrize("to", ["a", "b"])
def test_a_function_runs_where_it_is_asked_of(world: World, to: str) -> None:
    assert call(world[0], to, operator.add, 1, 2) == 3
    assert call(world[0], to, me) == to
    assert call(world[0], to, thread) == f"{to} request"
    assert call(world[0], to, dict, x=1) == {"x": 1}


def appended(values: list[int]) -> list[int]:
    values.append(1)
    return values


@pytest.mark.parametrize("to", ["a", "b"])
def test_arguments_and_results_are_copies(world: World, to: str) -> None:
    given: list[int] = []
    found = call(world[0], to, appended, given)
    assert (given, found) == ([], [1])


def nested(names: list[str]) -> list[str]:
    """The names of the workers that were asked, one by the other."""
    agent = current_agent("test")
    if not names:
        return [agent.name]
    request = CallRequest(nested, (names[1:],))
    answer = agent.call_and_wait(agent.find(names[0]), request, timeout=SECONDS)
    return [agent.name, *answer]


def test_calls_within_calls_go_round_and_round(world: World) -> None:
    names = ["b", "c", "a", "a", "b"]
    assert call(world[0], "c", nested, names) == ["c", *names]


def test_more_of_them_at_once_than_there_are_threads() -> None:
    with threads("a", "b", num_worker_threads=1) as (a, b):
        request = CallRequest(nested, (["a", "b"] * 4,))
        futures = [a.call(b.node, request, timeout=SECONDS) for _ in range(10)]
        for future in futures:
            assert future.wait(SECONDS) == ["b", *["a", "b"] * 4]
        for agent in (a, b):
            assert agent.wait_until(agent.is_idle, SECONDS)


class Own(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(one, two)


def fails(kind: str) -> None:
    raise {
        "value": ValueError("Expected error"),
        "own": Own(1, 2),
        "exit": SystemExit(3),
        "interrupt": KeyboardInterrupt(),
    }[kind]


@pytest.mark.parametrize("to", ["a", "b"])
@pytest.mark.parametrize(
    ("kind", "classes"),
    [
        ("value", (RemoteError, RuntimeError, ValueError)),
        ("own", (RemoteError, RuntimeError, Own)),
        ("exit", (RemoteError, RuntimeError)),
        ("interrupt", (RemoteError, RuntimeError)),
    ],
)
def test_what_it_raises_is_raised_here(
    world: World, to: str, kind: str, classes: tuple[type, ...]
) -> None:
    agent = world[0]
    request = CallRequest(fails, (kind,))
    node = agent.find(to)
    for later in (False, True):
        with pytest.raises(RemoteError) as error:
            asked(agent, node, request, later)
        assert all(isinstance(error.value, each) for each in classes)
        assert not isinstance(error.value, SystemExit | KeyboardInterrupt)
        assert f"name={to})" in str(error.value)
    # The worker is there as before.
    assert call(agent, to, operator.add, 1, 2) == 3


def test_a_mistake_is_raised_here_and_nothing_is_sent(world: World) -> None:
    a, b, _ = world
    before = a.session.counts()["calls"]
    with pytest.raises(Unsendable, check=code("Unsendable")):
        a.call(b.node, CallRequest(id, (threading.Lock(),)), timeout=SECONDS)
    assert a.session.counts()["calls"] == before
    assert not a.debug_info()["agent.client_active_calls"]


def test_a_result_that_cannot_be_sent(world: World) -> None:
    a, b, _ = world
    with pytest.raises(RemoteError, match="cannot be sent"):
        a.call_and_wait(b.node, CallRequest(threading.Lock), timeout=SECONDS)


class Gate:
    """Functions that wait until the test lets them go."""

    began = threading.Semaphore(0)
    free = threading.Semaphore(0)
    ran: list[int] = []  # noqa: RUF012  # of the test that runs

    @classmethod
    def wait(cls, number: int) -> int:
        cls.began.release()
        assert cls.free.acquire(timeout=SECONDS)
        cls.ran.append(number)
        return number


@pytest.fixture
def gate() -> type[Gate]:
    Gate.began, Gate.free = threading.Semaphore(0), threading.Semaphore(0)
    Gate.ran = []
    return Gate


def wait_in_gate(number: int) -> int:
    return Gate.wait(number)


def test_a_deadline_marks_the_caller_only(world: World, gate: type[Gate]) -> None:
    a, b, _ = world
    with pytest.raises(RpcTimeout) as error:
        a.call_and_wait(b.node, CallRequest(wait_in_gate, (1,)), timeout=0.05)
    assert str(error.value).startswith("RPC ran for more than set timeout (50 ms)")
    assert isinstance(error.value, TimeoutError)
    future = a.call(b.node, CallRequest(wait_in_gate, (2,)), timeout=0.05)
    with pytest.raises(RpcTimeout, check=code("RpcTimeout")):
        future.wait(SECONDS)
    for _ in range(2):
        assert gate.began.acquire(timeout=SECONDS)
        gate.free.release()
    assert b.wait_until(b.is_idle, SECONDS)
    assert sorted(gate.ran) == [1, 2]
    # The late answer changes nothing.
    assert call(a, "b", operator.add, 1, 2) == 3
    with pytest.raises(RpcTimeout, check=code("RpcTimeout")):
        future.wait()


def test_a_call_without_an_end_in_time_waits(world: World, gate: type[Gate]) -> None:
    a, b, _ = world
    future = a.call(b.node, CallRequest(wait_in_gate, (1,)), timeout=None)
    assert gate.began.acquire(timeout=SECONDS)
    gate.free.release()
    assert future.wait(SECONDS) == 1


def test_what_nobody_waits_for_is_not_begun(gate: type[Gate]) -> None:
    with threads("a", "b", num_worker_threads=1) as (a, b):
        first = a.call(b.node, CallRequest(wait_in_gate, (1,)), timeout=SECONDS)
        assert gate.began.acquire(timeout=SECONDS)
        with pytest.raises(RpcTimeout, check=code("RpcTimeout")):
            a.call_and_wait(b.node, CallRequest(wait_in_gate, (2,)), timeout=0.05)
        assert b.wait_until(
            lambda: any(job.cancelled for job in [*b._jobs.values()]), SECONDS
        )
        gate.free.release()
        assert first.wait(SECONDS) == 1
        assert b.wait_until(b.is_idle, SECONDS)
        assert gate.ran == [1]
        stopped(a, b)


def test_who_waits_may_be_interrupted(world: World, gate: type[Gate]) -> None:
    import signal

    a, b, _ = world
    main = threading.main_thread().ident
    assert main is not None

    def interrupt() -> None:
        assert gate.began.acquire(timeout=SECONDS)
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        a.call_and_wait(b.node, CallRequest(wait_in_gate, (1,)), timeout=SECONDS)
    thread.join(SECONDS)
    gate.free.release()
    assert a.wait_until(a.is_idle, SECONDS)
    assert call(a, "b", operator.add, 1, 2) == 3


def test_who_is_interrupted_when_it_was_sent_leaves_no_value_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with threads("a", "b") as (a, b):
        do = a.do

        def interrupted(act: Any, name: str) -> None:
            do(act, name)
            raise KeyboardInterrupt

        future: Future[int] = Future()
        future.set_result(1)
        with monkeypatch.context() as patch:
            patch.setattr(a, "do", interrupted)
            with pytest.raises(KeyboardInterrupt):
                a.remote(b.node, CallRequest(list), timeout=SECONDS)
            with pytest.raises(KeyboardInterrupt):
                a.own(future)
        # What is asked now comes after all that.
        assert call(a, "b", operator.add, 1, 2) == 3
        for agent in (a, b):
            assert agent.wait_until(lambda each=agent: not each._owned, SECONDS)  # type: ignore[misc]  # a default binds it


def test_callbacks_may_call_and_wait(world: World) -> None:
    a, b, _ = world

    def again(future: Future[int]) -> int:
        request = CallRequest(operator.add, (future.value(), 1))
        return int(a.call_and_wait(b.node, request, timeout=SECONDS))

    future: Future[int] = a.call(
        b.node, CallRequest(operator.add, (1, 2)), timeout=SECONDS
    )
    for _ in range(40):
        future = future.then(again)
    assert future.wait(SECONDS) == 43


def test_callbacks_run_on_request_threads(world: World, gate: type[Gate]) -> None:
    a, b, _ = world
    future = a.call(b.node, CallRequest(wait_in_gate, (1,)), timeout=SECONDS)
    named = future.then(lambda _: threading.current_thread().name)
    gate.free.release()
    assert named.wait(SECONDS).startswith("a request ")


def later(value: Any) -> Future[Any]:
    """A function whose result comes from a thread of its own."""
    result: Future[Any] = Future()

    def complete() -> None:
        if isinstance(value, Exception):
            result.set_exception(value)
        else:
            result.set_result(value)

    threading.Thread(target=complete).start()
    return result


setattr(later, MARK, later)


def wrong() -> int:
    return 5


setattr(wrong, MARK, wrong)


@pytest.mark.parametrize("to", ["a", "b"])
def test_functions_whose_results_come_later(world: World, to: str) -> None:
    a = world[0]
    assert call(a, to, later, 5) == 5
    request = CallRequest(later, (ValueError("Expected error"),))
    with pytest.raises(ValueError, match="Expected error"):
        a.call_and_wait(a.find(to), request, timeout=SECONDS)
    handle = a.remote(a.find(to), CallRequest(later, (5,)), timeout=SECONDS)
    assert a.fetch(handle, timeout=SECONDS).wait(SECONDS) == 5
    handle.drop()


def test_they_give_futures(world: World) -> None:
    a, b, _ = world
    with pytest.raises(RpcMisuse, check=code("NotAFuture")) as error:
        a.call_and_wait(b.node, CallRequest(wrong), timeout=SECONDS)
    text = "Functions decorated with @rpc.async_function must return a "
    assert text in str(error.value)


def test_a_future_itself_does_not_travel(world: World) -> None:
    a, b, _ = world
    request = CallRequest(Future)
    with pytest.raises(RemoteError, match="Future"):
        a.call_and_wait(b.node, request, timeout=SECONDS)
    handle = a.remote(b.node, request, timeout=SECONDS)
    with pytest.raises(RemoteError, match="Future"):
        a.fetch(handle, timeout=SECONDS).wait(SECONDS)
    handle.drop()


def test_with_too_many_calls_the_caller_waits(gate: type[Gate]) -> None:
    with threads("a", "b", max_calls_in_flight=3) as (a, b):
        request = CallRequest(wait_in_gate, (1,))
        futures = [a.call(b.node, request, timeout=SECONDS) for _ in range(3)]
        more: list[Future[int]] = []

        def fourth() -> None:
            more.append(a.call(b.node, request, timeout=SECONDS))

        thread = threading.Thread(target=fourth)
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
        assert a.debug_info()["agent.client_active_calls"] == 3
        gate.free.release()
        thread.join(SECONDS)
        for _ in range(3):
            gate.free.release()
        for future in (*futures, *more):
            assert future.wait(SECONDS) == 1
        stopped(a, b)


def test_who_waits_for_room_has_a_deadline_all_the_same(gate: type[Gate]) -> None:
    with threads("a", "b", max_calls_in_flight=1) as (a, b):
        first = a.call(b.node, CallRequest(wait_in_gate, (1,)), timeout=SECONDS)
        with pytest.raises(RpcTimeout, check=code("RpcTimeout")):
            a.call_and_wait(b.node, CallRequest(operator.add, (1, 2)), timeout=0.05)
        gate.free.release()
        assert first.wait(SECONDS) == 1


def test_calls_within_calls_do_not_wait_for_room() -> None:
    with threads("a", "b", max_calls_in_flight=1) as (a, b):
        request = CallRequest(nested, (["a", "b", "a"],))
        answer = a.call_and_wait(b.node, request, timeout=SECONDS)
        assert answer == ["b", "a", "b", "a"]


@pytest.mark.slow
def test_a_hundred_thousand_calls_in_flight() -> None:
    with threads("a", "b") as (a, b):
        request = CallRequest(operator.add, (1, 2))
        futures = [a.call(b.node, request, timeout=None) for _ in range(100_000)]
        assert {future.wait(SECONDS) for future in futures} == {3}
        stopped(a, b)


def test_what_is_too_large_is_refused_and_the_other_goes_on() -> None:
    small = Settings(heartbeat=0.3, dead=30.0, expire=40.0, largest=4096)
    with threads("a", "b", settings=small) as (a, b):
        with pytest.raises(
            Unsendable, check=code("PayloadTooLarge"), match="too large"
        ):
            a.call_and_wait(b.node, CallRequest(len, (bytes(10_000),)), timeout=SECONDS)
        with pytest.raises(
            Unsendable, check=code("PayloadTooLarge"), match="too large"
        ):
            a.call_and_wait(b.node, CallRequest(bytes, (10_000,)), timeout=SECONDS)
        assert call(a, "b", operator.add, 1, 2) == 3


def test_the_value_that_was_too_large_to_be_asked_for_was_never_made() -> None:
    small = Settings(heartbeat=0.3, dead=30.0, expire=40.0, largest=4096)
    with threads("a", "b", settings=small) as (a, b):
        there = a.remote(b.node, CallRequest(len, (bytes(10_000),)), timeout=SECONDS)
        with pytest.raises(ReferenceDead, check=code("ReferenceDead")) as error:
            a.fetch_and_wait(there, timeout=SECONDS)
        assert error.value.reference == there.text()
        assert "was not sent" in error.value.reason


def test_a_reference_of_an_earlier_life_is_not_sent() -> None:
    future: Future[int] = Future()
    future.set_result(1)
    with threads("a") as (a,):
        old = a.own(future)
        stopped(a)
    with threads("a") as (a,):
        with pytest.raises(RpcMisuse) as error:
            a.call_and_wait(a.node, CallRequest(print, (old,)), timeout=SECONDS)
        assert error.value.found == "a reference of the worker `a`, which has stopped"


def test_texts_name_the_class_that_is_called() -> None:
    assert CallRequest(PS).text() == "PS"
    assert CallRequest(operator.add).text() == "add"


class PS:
    """A class that is called."""


def test_a_worker_that_is_lost(gate: type[Gate]) -> None:
    with threads("a", "b", settings=HASTY) as (a, b):
        node = b.node
        future = a.call(node, CallRequest(wait_in_gate, (1,)), timeout=SECONDS)
        assert gate.began.acquire(timeout=SECONDS)
        b.transport.close(0)
        with pytest.raises(WorkerLost, match="on `b` has no answer") as error:
            future.wait(SECONDS)
        assert isinstance(error.value, ConnectionError)
        gate.free.release()
        with pytest.raises(WorkerLost):
            a.call_and_wait(node, CallRequest(operator.add, (1, 2)), timeout=SECONDS)


def test_a_worker_that_has_stopped(gate: type[Gate]) -> None:
    with threads("a", "b") as (a, b):
        future = a.call(b.node, CallRequest(wait_in_gate, (1,)), timeout=SECONDS)
        assert gate.began.acquire(timeout=SECONDS)
        threading.Timer(0.1, gate.free.release).start()
        a.close()
        with pytest.raises(WorkerLost, match="RPC is no longer running"):
            future.wait(SECONDS)
        for ask in (a.call, a.call_and_wait, a.remote):
            with pytest.raises(NotInitialized, match="RPC has not been initialized"):
                ask(b.node, CallRequest(operator.add, (1, 2)), timeout=SECONDS)


# Values that stay -----------------------------------------------------------------


class Value:
    """A value that says when it goes, and from which thread."""

    gone: list[str] = []  # noqa: RUF012  # of the test that runs
    agents: tuple[Agent, ...] = ()

    def __del__(self) -> None:
        self.gone.append(threading.current_thread().name)
        for agent in self.agents:
            # Whoever drops a value holds no lock of its worker.
            taken = agent._lock.acquire(timeout=SECONDS)
            assert taken
            agent._lock.release()


def test_a_value_is_dropped_when_its_reference_is(world: World) -> None:
    a, b, _ = world
    Value.gone = []
    Value.agents = (a, b)
    try:
        handle = a.remote(b.node, CallRequest(Value), timeout=SECONDS)
        handle.created.wait(SECONDS)
        assert handle.confirmed
        assert b.debug_info()["num_owner_rrefs"] == 1
        handle.drop()
        handle.drop()
        a.do(lambda _: None, "test")
        assert b.wait_until(lambda: bool(Value.gone), SECONDS)
        assert Value.gone[0].startswith("b request ")
        assert b.debug_info()["num_owner_rrefs"] == 0
    finally:
        Value.agents = ()


def test_a_finalizer_tells_nobody_and_the_next_one_does(world: World) -> None:
    a, b, _ = world
    handle = a.remote(b.node, CallRequest(operator.add, (1, 2)), timeout=SECONDS)
    handle.created.wait(SECONDS)
    with a._lock:
        # As the garbage collector may do anywhere.
        handle.drop()
        assert [*a.dropped] == [handle]
    assert b.wait_until(lambda: b.session.counts()["owners"] == 0, SECONDS)


def test_a_value_that_fails_to_be_made_is_an_error_where_it_is_fetched(
    world: World,
) -> None:
    a, b, _ = world
    handle = a.remote(b.node, CallRequest(fails, ("value",)), timeout=SECONDS)
    assert handle.created.wait(SECONDS) is None
    with pytest.raises(ValueError, match="Expected error"):
        a.fetch(handle, timeout=SECONDS).wait(SECONDS)
    handle.drop()


def test_a_fetch_may_come_before_the_value(world: World, gate: type[Gate]) -> None:
    a, b, _ = world
    handle = a.remote(b.node, CallRequest(wait_in_gate, (7,)), timeout=SECONDS)
    fetched = [a.fetch(handle, timeout=SECONDS) for _ in range(3)]
    assert not any(each.done() for each in fetched)
    gate.free.release()
    assert [each.wait(SECONDS) for each in fetched] == [7, 7, 7]
    handle.drop()


def test_a_creation_that_is_not_in_time_is_dead(world: World, gate: type[Gate]) -> None:
    a, b, _ = world
    handles = [
        a.remote(b.node, CallRequest(wait_in_gate, (n,)), timeout=0.05)
        for n in range(2)
    ]
    for handle in handles:
        with pytest.raises(RpcTimeout, match="RPC ran for more than"):
            handle.created.wait(SECONDS)
        with pytest.raises(
            ReferenceDead, check=code("ReferenceDead"), match="RRef creation"
        ):
            a.fetch(handle, timeout=SECONDS)
    for _ in handles:
        gate.free.release()
    assert b.wait_until(b.is_idle, SECONDS)
    assert b.wait_until(lambda: b.debug_info()["num_owner_rrefs"] == 0, SECONDS)


def test_values_of_ones_own(world: World) -> None:
    a, b, _ = world
    value: Future[list[int]] = Future()
    value.set_result([1])
    handle = a.own(value)
    assert handle.is_owner
    assert a.fetch(handle, timeout=SECONDS).wait() is value.value()
    there = b.call_and_wait(a.node, CallRequest(me), timeout=SECONDS)
    assert there == "a"
    count = a.debug_info()["num_owner_rrefs"]
    handle.drop()
    a.do(lambda _: None, "test")
    assert a.wait_until(lambda: a.debug_info()["num_owner_rrefs"] == count - 1, SECONDS)


def fetched(reference: Any) -> Any:
    handle = getattr(reference, "_handle", reference)
    try:
        return handle.agent.fetch(handle, timeout=SECONDS).wait(SECONDS)
    finally:
        handle.drop()


def test_references_travel(world: World) -> None:
    a, b, _ = world
    handle = a.remote(b.node, CallRequest(operator.add, (1, 2)), timeout=SECONDS)
    for to in ("a", "b", "c"):
        assert call(a, to, fetched, handle) == 3
    handle.drop()
    del handle
    gc.collect()
    a.do(lambda _: None, "test")
    assert b.wait_until(lambda: b.debug_info()["num_owner_rrefs"] == 0, SECONDS)


def test_nothing_of_a_call_is_kept(world: World) -> None:
    a, b, _ = world
    future = a.call(b.node, CallRequest(operator.add, (1, 2)), timeout=SECONDS)
    future.wait(SECONDS)
    gone = weakref.ref(future)
    del future
    assert a.wait_until(lambda: gone() is None, SECONDS)
    assert a._pending == {}


def test_many_threads_at_once(world: World) -> None:
    a, b, c = world

    def work(agent: Agent, to: Agent) -> int:
        request = CallRequest(operator.add, (1, 2))
        return sum(
            agent.call_and_wait(to.node, request, timeout=SECONDS) for _ in range(50)
        )

    pairs = [(x, y) for x in world for y in (a, b, c)]
    assert at_once(*(lambda pair=pair: work(*pair) for pair in pairs)) == [150] * 9
