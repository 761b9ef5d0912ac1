"""Joining: addresses, names, ranks; static and open groups, and who does not get in."""

import operator
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from everyorder.runtime.errors.rpc import (
    AddressUnusable,
    JoinTimeout,
    NotAdmitted,
    NotInitialized,
    RpcError,
    RpcMisuse,
    UnsafeKeys,
)
from everyorder.runtime.rpc.agent import (
    Agent,
    CallRequest,
    WorkerSlot,
    current_agent,
    in_worker_slot,
    is_initialized,
    rendezvous,
    worker_slot,
)
from everyorder.runtime.rpc.agent.rendezvous import (
    Rendezvous,
    _listen_address,
    check_name,
    check_rank,
    join,
    parse_init_method,
)
from everyorder.runtime.rpc.api.lifecycle import (
    get_worker_info,
    init_rpc,
    shutdown,
    stop,
)
from everyorder.runtime.rpc.protocol.events import Admitted, Lost
from everyorder.runtime.rpc.protocol.identities import WorkerInfo
from everyorder.runtime.rpc.protocol.wire import Head, parse
from everyorder.runtime.rpc.transport import Transport
from everyorder.runtime.rpc.transport.addresses import Keys, own_address
from everyorder.runtime.rpc.transport.sockets import SocketTransport
from tests.coded import code
from tests.rpc.faulty_agent import FaultyTransport
from tests.rpc.worlds import HASTY, SECONDS, at_once, options, place, stopped, threads

ADD = CallRequest(operator.add, (1, 2))
ENVIRONMENT = {"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "5555"}


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("tcp://10.0.0.1:5555", Rendezvous("tcp://10.0.0.1:5555", "tcp://*:0")),
        ("tcp://127.0.0.1:5", Rendezvous("tcp://127.0.0.1:5", "tcp://127.0.0.1:0")),
        ("tcp://localhost:5", Rendezvous("tcp://127.0.0.1:5", "tcp://127.0.0.1:0")),
        ("tcp://[::1]:5", Rendezvous("tcp://[::1]:5", "tcp://[::1]:0")),
        (
            "tcp://h:5?rank=1&world_size=3",
            Rendezvous("tcp://h:5", "tcp://*:0", 1, 3),
        ),
        ("ipc:///run/g", Rendezvous("ipc:///run/g/keeper", "ipc:///run/g/")),
        ("file:///run/g/", Rendezvous("ipc:///run/g/keeper", "ipc:///run/g/")),
        ("local://g", Rendezvous("local://g", "local://")),
        ("env://", Rendezvous("tcp://10.0.0.1:5555", "tcp://*:0")),
    ],
)
def test_addresses(address: str, found: Rendezvous) -> None:
    assert parse_init_method(address, environment=ENVIRONMENT) == found


def test_what_is_given_counts_before_what_the_address_says() -> None:
    where = parse_init_method("tcp://h:5?rank=1&world_size=3", 2, 4)
    assert (where.rank, where.world_size) == (2, 4)


def test_the_environment_may_name_rank_and_size() -> None:
    more = {**ENVIRONMENT, "RANK": "1", "WORLD_SIZE": "2"}
    where = parse_init_method("env://", environment=more)
    assert (where.rank, where.world_size) == (1, 2)
    where = parse_init_method("env://", 0, 3, environment=more)
    assert (where.rank, where.world_size) == (0, 3)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("", "unknown scheme, or missing place"),
        ("nowhere", "unknown scheme, or missing place"),
        ("tcp://", "it lacks a host or a port"),
        ("tcp://h", "it lacks a host or a port"),
        ("tcp://h:70000", "Port out of range"),
        ("tcp://h:1?rank=x", "invalid literal"),
        ("ipc://folder", "unknown scheme, or missing place"),
        ("ipc:///", "unknown scheme, or missing place"),
        ("env://", "MASTER_ADDR and MASTER_PORT are not set"),
    ],
)
def test_what_is_no_address(address: str, why: str) -> None:
    with pytest.raises(RpcMisuse) as error:
        parse_init_method(address, environment={})
    assert why in " ".join(str(error.value).split())


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"MASTER_PORT": ""}, "MASTER_PORT is not set"),
        ({"RANK": "first"}, "RANK or WORLD_SIZE: invalid literal"),
        ({"WORLD_SIZE": "all"}, "RANK or WORLD_SIZE: invalid literal"),
    ],
)
def test_what_is_no_environment(more: dict[str, str], why: str) -> None:
    with pytest.raises(RpcMisuse) as error:
        parse_init_method("env://", environment=ENVIRONMENT | more)
    assert why in " ".join(str(error.value).split())


@pytest.mark.parametrize("name", ["a", "A-b_c:1", "x" * 127])
def test_names(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", "a b", "a/b", "\u00e9", "x" * 128, "a\n", None])
def test_what_is_no_name(name: Any) -> None:
    with pytest.raises(RpcMisuse) as error:
        check_name(name)
    said = " ".join(str(error.value).split())
    assert "Worker name must match ^[A-Za-z0-9-_:]*$" in said
    assert "must be non-empty and shorter than 128 chars" in said


@pytest.mark.parametrize(
    ("given", "found"),
    [((-1, None), (-1, None)), ((None, 0), (-1, None)), ((1, 2), (1, 2))],
)
def test_ranks(given: tuple[Any, Any], found: tuple[int, int | None]) -> None:
    assert check_rank(*given) == found


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ((1 << 15, None), "RPC worker id out of bound of int16_t"),
        ((2, 2), "a rank below the size of the group"),
        ((0, -1), "a rank below the size of the group"),
        (("0", 1), "a whole number"),
        ((0, 1.5), "a whole number"),
    ],
)
def test_what_is_no_rank(given: tuple[Any, Any], why: str) -> None:
    with pytest.raises(RpcMisuse, match=why):
        check_rank(*given)


def test_a_static_group_is_whole() -> None:
    with threads("a", "b", "c") as agents:
        for agent in agents:
            assert [node.name for node in agent.nodes()] == ["a", "b", "c"]
            assert [node.id for node in agent.nodes()] == [0, 1, 2]
            assert agent.is_static
        assert [agent.info for agent in agents] == [
            WorkerInfo("a", 0),
            WorkerInfo("b", 1),
            WorkerInfo("c", 2),
        ]


def test_workers_are_found_by_name_number_and_info() -> None:
    with threads("a", "b") as (a, b):
        assert a.find("b") == a.find(1) == a.find(WorkerInfo("b", 1)) == b.node
        assert a.find("a") == a.node


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("worker2", "Worker `worker1` could not find destination name worker2."),
        (99, "Worker `worker1` could not find destination id 99."),
        (
            WorkerInfo("worker1", 5),
            "Worker `worker1` could not find destination worker1, id 5.",
        ),
    ],
)
def test_who_is_no_member(to: Any, said: str) -> None:
    with (
        threads("worker1") as (agent,),
        pytest.raises(RpcMisuse, check=code("UnknownWorker")) as error,
    ):
        agent.find(to)
    assert str(error.value).startswith(said)
    assert error.value.near == ("worker1",)


@pytest.mark.parametrize("to", [1.5, None, True, ("a", 0)])
def test_what_names_no_worker(to: Any) -> None:
    cannot = pytest.raises(RpcMisuse, match="Cannot get WorkerInfo from name")
    with threads("a") as (agent,), cannot as error:
        agent.find(to)
    assert isinstance(error.value, ValueError)


def begun(
    where: str, name: str, rank: int = -1, size: int | None = None, **more: Any
) -> Agent:
    return join(
        name, parse_init_method(where, rank, size), options(**more), WorkerSlot()
    )


def comes_to(agent: Agent, members: int) -> bool:
    return agent.wait_until(lambda: len(agent.nodes()) == members, SECONDS)


@pytest.fixture
def ending() -> Iterator[Callable[[Agent], Agent]]:
    """Stops agents when a test is over."""
    made: list[Agent] = []

    def note(agent: Agent) -> Agent:
        made.append(agent)
        return agent

    yield note
    for agent in made:
        if not agent.ended:
            stop(agent, graceful=False)


Ending = Callable[[Agent], Agent]


def test_an_open_group_grows_and_shrinks(ending: Ending) -> None:
    where = place()
    a = ending(begun(where, "a"))
    assert not a.is_static
    assert [node.name for node in a.nodes()] == ["a"]
    b = ending(begun(where, "b"))
    c = ending(begun(where, "c", rank=7))
    assert (b.info.id, c.info.id) == (1, 7)
    assert comes_to(a, 3)
    assert comes_to(b, 3)
    stop(b, timeout=SECONDS)
    for left in (a, c):
        assert comes_to(left, 2)
        assert [node.name for node in left.nodes()] == ["a", "c"]
    # The name and the number are free again.
    again = ending(begun(where, "b", rank=1))
    assert again.info == WorkerInfo("b", 1)


@pytest.mark.parametrize(
    ("name", "rank", "why"),
    [
        ("b", 5, "RPC worker name b is not unique: worker 3 has it"),
        ("x", 3, "RPC worker id 3 is not unique: worker b has it"),
    ],
)
def test_names_and_numbers_are_unique(
    name: str, rank: int, why: str, ending: Ending
) -> None:
    where = place()
    ending(begun(where, "a"))
    ending(begun(where, "b", 3))
    slot = WorkerSlot()
    with pytest.raises(
        NotAdmitted, check=code("NotUnique"), match="is not unique"
    ) as error:
        join(name, parse_init_method(where, rank), options(), slot)
    assert error.value.why == why
    assert slot.agent is None


@pytest.mark.parametrize(
    ("member", "second", "why"),
    [
        (("b", 1), ("b", 2), "RPC worker name b is not unique"),
        (("c", 2), ("a", 1), "RPC worker name a is not unique"),
        (("b", 1), ("c", 1), "RPC worker id 1 is not unique"),
    ],
)
def test_a_name_that_two_want_is_told_to_all(
    member: tuple[str, int], second: tuple[str, int], why: str
) -> None:
    """A static group cannot become complete then: nobody waits for it."""
    where = place()
    admitted = threading.Event()

    class Member(Agent):
        def _admitted(self, event: Admitted) -> None:
            super()._admitted(event)
            admitted.set()

    def told(name: str, rank: int, make: type[Agent] = Agent) -> NotAdmitted:
        here = parse_init_method(where, rank, 3)
        with pytest.raises(NotAdmitted, match="not unique") as error:
            join(name, here, options(), WorkerSlot(), make=make)
        return error.value

    def later() -> NotAdmitted:
        assert admitted.wait(SECONDS)
        return told(*second)

    errors = at_once(lambda: told("a", 0), lambda: told(*member, Member), later)
    assert [each.code for each in errors] == [
        *("OthersNotUnique", "OthersNotUnique", "NotUnique")
    ]
    assert [why in each.why for each in errors] == [True] * 3


def test_who_comes_after_a_name_that_two_want_is_told_too() -> None:
    """It would wait for a keeper that has ended; so the keeper waits for it."""
    where = place()
    told = threading.Event()

    def refused(name: str, rank: int) -> str:
        here = parse_init_method(where, rank, 3)
        with pytest.raises(NotAdmitted, match="name a is not unique") as error:
            join(name, here, options(), WorkerSlot())
        return error.value.code

    def second() -> str:
        code = refused("a", 1)
        told.set()
        return code

    def late() -> str:
        assert told.wait(SECONDS)
        return refused("c", 2)

    codes = at_once(lambda: refused("a", 0), second, late)
    assert codes == ["OthersNotUnique", "NotUnique", "OthersNotUnique"]


def test_a_keeper_that_gives_up_waits_for_some_seconds_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rendezvous, "_LATE", 0.2)
    where = place()
    waits: list[float | None] = []

    class Keeper(Agent):
        def wait_until(self, holds: Callable[[], bool], seconds: float | None) -> bool:
            waits.append(seconds)
            return super().wait_until(holds, seconds)

    def refused(rank: int, make: type[Agent]) -> None:
        here = parse_init_method(where, rank, 3)
        with pytest.raises(NotAdmitted, match="name a is not unique"):
            join("a", here, options(), WorkerSlot(), make=make)

    at_once(lambda: refused(0, Keeper), lambda: refused(1, Agent))
    assert 0.2 in waits


def test_a_static_group_takes_no_more_than_its_size(ending: Ending) -> None:
    where = place()
    both = at_once(lambda: begun(where, "a", 0, 2), lambda: begun(where, "b", 1, 2))
    for agent in both:
        ending(agent)
    with pytest.raises(NotAdmitted, match="the group has all of its 2"):
        begun(where, "c", -1, 2)


def test_who_leaves_at_once_does_not_keep_the_others_from_joining() -> None:
    where = place()
    gone = threading.Event()

    class Late(Agent):
        """Looks at the group only when the other worker has left it."""

        def _lost(self, event: Lost) -> None:
            super()._lost(event)
            gone.set()

        def wait_until(self, holds: Callable[[], bool], seconds: float | None) -> bool:
            assert gone.wait(SECONDS)
            return super().wait_until(holds, seconds)

    def first() -> Agent:
        here = parse_init_method(where, 0, 2)
        return join("a", here, options(), WorkerSlot(), make=Late)

    agent, _ = at_once(first, lambda: stop(begun(where, "b", 1, 2), graceful=False))
    assert [node.name for node in agent.nodes()] == ["a"]
    assert agent.is_static
    stop(agent, graceful=False)


def test_a_keeper_that_leaves_at_once_has_named_all_members(
    ending: Ending, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member whose channel to the keeper opens late knows all others, too."""
    from everyorder.runtime.rpc.agent import agent as chapter

    monkeypatch.setattr(chapter, "_ANNOUNCE_SECONDS", SECONDS)
    where = place()
    leaves, admitted = threading.Event(), threading.Event()

    class Keeper(Agent):
        def close(self) -> None:
            leaves.set()
            super().close()

    class Member(Agent):
        def _admitted(self, event: Admitted) -> None:
            super()._admitted(event)
            admitted.set()

    def loses(_: str, frames: Any) -> bool:
        header = parse(frames)
        return isinstance(header, Head) and header.kind > 1 and not leaves.is_set()

    def member() -> Agent:
        def wrap(transport: Transport) -> Transport:
            return FaultyTransport(transport, fail=until_admitted)

        def until_admitted(endpoint: str, frames: Any) -> bool:
            return admitted.is_set() and loses(endpoint, frames)

        here = parse_init_method(where, 1, 3)
        return join("b", here, options(), WorkerSlot(), make=Member, wrap=wrap)

    def last() -> Agent:
        assert admitted.wait(SECONDS)
        return begun(where, "c", 2, 3)

    def keeper() -> None:
        here = parse_init_method(where, 0, 3)
        agent = join("a", here, options(), WorkerSlot(), make=Keeper)
        stop(agent, graceful=False)

    _, *others = at_once(keeper, member, last)
    for each in others:
        ending(each)
        assert comes_to(each, 2)


def test_who_is_not_needed_any_more_says_how_long_it_waited() -> None:
    given = options(join_timeout=1000.0)
    with pytest.raises(JoinTimeout) as error:
        join(
            "a",
            parse_init_method(place(), 0, 2),
            given,
            WorkerSlot(),
            over=lambda: True,
        )
    assert error.value.seconds < 1000.0
    assert error.value.missing == ("the worker of rank 1",)


def test_who_is_missing_is_named() -> None:
    where = place()
    with pytest.raises(JoinTimeout) as error:
        begun(where, "a", 0, 3, join_timeout=0.1)
    assert error.value.missing == ("the worker of rank 1", "the worker of rank 2")
    with pytest.raises(JoinTimeout) as error:
        begun(where, "b", 1, 3, join_timeout=0.1)
    assert error.value.missing == ("an answer of the keeper of the address",)
    assert not [each for each in threading.enumerate() if "rpc local" in each.name]


def test_a_place_that_is_left_is_kept_by_the_next() -> None:
    where = place()
    first = begun(where, "a")
    stop(first, graceful=False)
    second = begun(where, "a")
    assert second.info == WorkerInfo("a", 0)
    stop(second, graceful=False)


def test_a_place_of_another_group_is_waited_for() -> None:
    where = place()
    first = begun(where, "a", 0, 1)
    began = threading.Event()

    def second() -> Agent:
        began.set()
        return begun(where, "a", 0, 1)

    def end() -> None:
        assert began.wait(SECONDS)
        stop(first)

    agent, _ = at_once(second, end)
    assert agent.info == WorkerInfo("a", 0)
    stop(agent)


def test_a_place_that_stays_taken_is_refused(
    ending: Ending, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everyorder.runtime.rpc.agent.rendezvous._TAKEN", 0.05)
    where = place()
    ending(begun(where, "a", 0, 1))
    with pytest.raises(AddressUnusable):
        begun(where, "b", 0, 1)


def test_the_others_go_on_without_the_keeper() -> None:
    import operator

    from everyorder.runtime.rpc.agent import CallRequest

    with threads("a", "b", "c", settings=HASTY) as (a, b, c):
        a.transport.close(0)
        for each in (b, c):
            assert comes_to(each, 2)
        request = CallRequest(operator.add, (1, 2))
        assert b.call_and_wait(b.find("c"), request, timeout=SECONDS) == 3


@pytest.mark.parametrize("how", ["ipc", "tcp"])
def test_over_sockets(how: str, ending: Ending) -> None:
    import operator

    from everyorder.runtime.rpc.agent import CallRequest

    with tempfile.TemporaryDirectory(prefix="rpc") as folder:
        if how == "ipc":
            where = f"ipc://{folder}/g"
            first = ending(begun(where, "a"))
        else:
            first = ending(begun("tcp://127.0.0.1:0", "a", 0))
            where = first.transport.endpoint.partition("#")[0]
        second = ending(begun(where, "b", 1))
        request = CallRequest(operator.add, (1, 2))
        assert second.call_and_wait(second.find("a"), request, timeout=SECONDS) == 3
        stop(second, timeout=SECONDS)
        stop(first, timeout=SECONDS)


@pytest.mark.parametrize("how", ["ipc", "tcp"])
def test_names_are_unique_where_workers_share_a_key(how: str, ending: Ending) -> None:
    """Who has the name keeps it, and who wanted it too is not tried for ever."""
    from everyorder.runtime.rpc.agent import CallRequest

    with tempfile.TemporaryDirectory(prefix="rpc") as folder:
        if how == "ipc":
            where = f"ipc://{folder}/g"
            first = ending(begun(where, "a"))
        else:
            first = ending(begun("tcp://127.0.0.1:0", "a", 0))
            where = first.transport.endpoint.partition("#")[0]
        second = ending(begun(where, "b", 1))
        with pytest.raises(NotAdmitted, check=code("NotUnique"), match="is not unique"):
            begun(where, "b")
        assert first.find("b") == second.find("b") == second.node
        request = CallRequest(max, (1, 2))
        assert first.call_and_wait(second.node, request, timeout=SECONDS) == 2
        assert second.call_and_wait(first.node, request, timeout=SECONDS) == 2
        transport = first.transport
        assert isinstance(transport, SocketTransport)
        assert first.wait_until(lambda: len(transport._peers) == 1, SECONDS)


def test_other_machines_are_reached_with_keys_only() -> None:
    with pytest.raises(UnsafeKeys, check=code("KeysNeeded")):
        begun("tcp://0.0.0.0:0", "a", 0)
    # Wherever it would listen itself: the address that was given is told.
    with pytest.raises(UnsafeKeys, check=code("KeysNeeded")) as error:
        begun("tcp://192.0.2.1:5", "a", 1)
    assert error.value.address == "tcp://192.0.2.1:5"


class TestTheProcess:
    """`init_rpc` and `shutdown`, in a slot of the test."""

    @pytest.fixture(autouse=True)
    def _seat(self) -> Iterator[None]:
        with in_worker_slot():
            yield
            if is_initialized():
                shutdown(graceful=False)

    def test_before_and_after(self) -> None:
        for call in (get_worker_info, shutdown):
            with pytest.raises(NotInitialized, match="RPC has not been initialized"):
                call()
        for _ in range(2):
            where = options(init_method=place())
            init_rpc("a", rank=0, world_size=1, rpc_backend_options=where)
            assert get_worker_info() == get_worker_info("a") == WorkerInfo("a", 0)
            shutdown()
            with pytest.raises(NotInitialized):
                get_worker_info()

    def test_twice(self) -> None:
        where = options(init_method=place())
        init_rpc("a", rpc_backend_options=where)
        with pytest.raises(RpcMisuse, check=code("AlreadyInitialized")) as error:
            init_rpc("b", rpc_backend_options=where)
        assert str(error.value).startswith("RPC is already initialized")
        assert error.value.name == "a"
        shutdown()

    def test_what_fails_leaves_nothing(self) -> None:
        where = options(init_method=place(), join_timeout=0.05)
        for _ in range(2):
            with pytest.raises(JoinTimeout):
                init_rpc("a", rank=0, world_size=2, rpc_backend_options=where)
            assert not is_initialized()
        with pytest.raises(RpcMisuse, check=code("RpcMisuse")):
            init_rpc("a b", rpc_backend_options=where)
        assert not is_initialized()

    def test_two_threads_at_once(self) -> None:
        mine = worker_slot()
        where = options(init_method=place())
        errors: list[Exception] = []

        def begin(name: str) -> None:
            with in_worker_slot(mine):
                try:
                    init_rpc(name, rpc_backend_options=where)
                except RpcMisuse as error:
                    errors.append(error)

        at_once(lambda: begin("a"), lambda: begin("b"))
        assert len(errors) == 1
        assert current_agent("test").name in ("a", "b")

    def test_a_seat_of_ones_own(self) -> None:
        where = place()
        init_rpc("a", rpc_backend_options=options(init_method=where))
        with in_worker_slot():
            assert not is_initialized()
            init_rpc("b", rpc_backend_options=options(init_method=where))
            assert get_worker_info().name == "b"
            shutdown(timeout=SECONDS)
        assert get_worker_info().name == "a"


def test_a_forked_child_has_no_worker() -> None:
    from tests.forking import in_child

    with threads("a") as (agent,), in_worker_slot(agent.slot):
        assert is_initialized()

        def check() -> bool:
            return not is_initialized()

        assert in_child(check)
        assert is_initialized()
        stopped(agent)


def test_a_forked_child_waits_for_nobody_s_value() -> None:
    from everyorder.runtime.rpc.agent import CallRequest
    from tests.forking import in_child

    with threads("a", "b") as (a, b):
        asked = CallRequest(int, ("3",), {})
        there = a.remote(b.node, asked, timeout=SECONDS)
        assert a.fetch_and_wait(there, timeout=SECONDS) == 3

        def check() -> bool:
            with pytest.raises(NotInitialized):
                a.fetch_and_wait(there, timeout=None)
            return True

        assert in_child(check)
        assert a.fetch_and_wait(there, timeout=SECONDS) == 3


def test_who_is_not_trusted_is_told_so(ending: Ending) -> None:
    with tempfile.TemporaryDirectory(prefix="rpc") as folder:
        folders = [f"{folder}/{name}" for name in ("one", "two", "three")]
        for each in folders[:2]:
            Keys.create(each)
        first = ending(begun("tcp://127.0.0.1:0", "a", 0, keys=folders[0]))
        where = first.transport.endpoint.partition("#")[0]
        second = ending(begun(where, "b", 1, keys=folders[0]))
        assert second.find("a") == first.node
        with pytest.raises(NotAdmitted, match="do not trust"):
            begun(where, "c", 2, keys=folders[1])
        with pytest.raises(RpcError, match="is not safe"):
            begun(where, "c", 2, keys=folders[2])


def test_others_are_told_the_host_that_was_given(ending: Ending) -> None:
    """As by a machine of several networks, or behind a name."""
    with tempfile.TemporaryDirectory(prefix="rpc") as folder:
        keys = f"{folder}/keys"
        Keys.create(keys)
        first = ending(begun("tcp://*:0", "a", 0, keys=keys, host="localhost"))
        where = first.transport.endpoint.partition("#")[0]
        assert where.startswith("tcp://localhost:")
        second = ending(begun(where, "b", 1, keys=keys))
        assert first.session.endpoint_of(first.node) == first.transport.endpoint
        assert second.session.endpoint_of(first.node) == first.transport.endpoint


def test_a_wrong_key_is_not_heard(
    ending: Ending, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that its owner sends gets as far as to be read."""
    from contextlib import closing

    from everyorder.runtime.rpc.transport import Link, LinkState
    from everyorder.runtime.rpc.transport.addresses import Keys

    heard: list[str] = []
    refused = threading.Event()

    def on_link(link: Link) -> None:
        if link.state is LinkState.REFUSED:
            refused.set()

    with tempfile.TemporaryDirectory(prefix="rpc") as folder:
        own = Keys.create(f"{folder}/own")
        first = ending(begun("tcp://127.0.0.1:0", "a", 0, keys=f"{folder}/own"))
        receive = first.session.receive

        def listen(frames: Any, key: str, now: float) -> None:
            heard.append(key)
            receive(frames, key, now)

        monkeypatch.setattr(first.session, "receive", listen)
        where = first.transport.endpoint
        with closing(SocketTransport("tcp://127.0.0.1:0", Keys.drawn())) as stranger:
            stranger.start(lambda *_: None, lambda: None, on_link)
            stranger.send(where, [b"attack"])
            assert refused.wait(SECONDS)
        # Who has the key is heard all the while.
        second = begun(where.partition("#")[0], "b", 1, keys=f"{folder}/own")
        assert second.find("a") == first.node
        stop(second, timeout=SECONDS)
        assert {*heard} == {own.public}


def test_what_is_wrong_with_the_answers_is_told(
    monkeypatch: pytest.MonkeyPatch, ending: Ending
) -> None:
    where = place()
    keeper = ending(begun(where, "a"))
    send = keeper.transport.send

    def of_another_version(endpoint: str, frames: Any) -> None:
        first = bytearray(frames[0])
        first[2] += 1
        send(endpoint, [first, *frames[1:]])

    monkeypatch.setattr(keeper.transport, "send", of_another_version)
    with pytest.raises(JoinTimeout) as error:
        begun(where, "b", 1, join_timeout=1.0)
    assert len(error.value.missing) == 2
    assert "version" in error.value.missing[1]


def test_who_says_another_size_than_the_group_s_is_told(ending: Ending) -> None:
    where = place()

    def other() -> None:
        with pytest.raises(NotAdmitted) as error:
            begun(where, "b", 1, 3)
        assert error.value.why == "it has world_size = 3, and the group has 2"
        ending(begun(where, "b", 1, 2))

    keeper, _ = at_once(lambda: begun(where, "a", 0, 2), other)
    ending(keeper)


def test_who_has_other_times_than_the_group_is_told(ending: Ending) -> None:
    """One of two would release what the other one still counts on."""
    where = place()
    ending(begun(where, "a"))
    with pytest.raises(NotAdmitted) as error:
        begun(where, "b", 1, settings=HASTY)
    assert error.value.why.startswith("it has dead = 0.5, and the group has 30; ")
    with pytest.raises(NotAdmitted) as error:
        begun(where, "b", 1, 2)
    assert error.value.why == "it has world_size = 2, and the group has none"


def test_links_to_who_is_gone_are_forgotten(ending: Ending) -> None:
    where = place()
    a = ending(begun(where, "a"))
    forgotten: list[str] = []
    a.transport.forget = forgotten.append  # type: ignore[assignment,method-assign]  # to see it
    b = begun(where, "b", 1)
    assert comes_to(a, 2)
    stop(b, timeout=SECONDS)
    assert comes_to(a, 1)
    assert set(forgotten) == {b.transport.endpoint}


def test_workers_listen_where_they_reach_the_keeper() -> None:
    """Not at all interfaces of their machine."""
    own = own_address(False)
    if own.startswith("127.") or not own[0].isdigit():
        pytest.skip("this machine has no address but that of itself")
    with tempfile.TemporaryDirectory(prefix="rpc") as folder:
        keys = Keys.create(f"{folder}/keys").folder
        first = begun(f"tcp://{own}:0", "a", 0, keys=keys)
        try:
            where = first.transport.endpoint.partition("#")[0]
            second = begun(where, "b", 1, keys=keys)
            transport = second.transport
            assert isinstance(transport, SocketTransport)
            assert transport._last_endpoint().startswith(f"tcp://{own}:")
            assert transport.endpoint.startswith(f"tcp://{own}:")
            assert first.call_and_wait(second.node, ADD, timeout=SECONDS) == 3
            stop(second, graceful=False)
        finally:
            stop(first, graceful=False)


@pytest.mark.parametrize(
    ("endpoint", "host", "keys", "address"),
    [
        ("tcp://127.0.0.1:5", "", "keys", "tcp://127.0.0.1:0"),
        # It is reached by another address than its own.
        ("tcp://127.0.0.1:5", "me.example", "keys", "tcp://*:0"),
        ("tcp://no-such-host.invalid:5", "", "keys", "tcp://*:0"),
        # The error names what was asked for.
        ("tcp://127.0.0.1:5", "", None, "tcp://*:0"),
    ],
)
def test_where_a_worker_listens(
    endpoint: str, host: str, keys: str | None, address: str
) -> None:
    where = Rendezvous(endpoint, "tcp://*:0")
    assert _listen_address(where, options(host=host, keys=keys)) == address
    folder = Rendezvous("ipc:///folder/keeper", "ipc:///folder/")
    assert _listen_address(folder, options(keys=keys)) == "ipc:///folder/"
