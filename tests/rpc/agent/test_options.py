"""Options and backends: defaults, what is refused, how a backend is found."""

import math
from typing import Any

import pytest

from everyorder.runtime.base.registry import Registry
from everyorder.runtime.errors.rpc import RpcMisuse
from everyorder.runtime.rpc.agent import (
    RpcBackendOptions,
    backend_registered,
    backend_type,
    construct_rpc_backend_options,
    init_backend,
    register_backend,
    timeout_seconds,
)
from everyorder.runtime.rpc.agent import options as chapter
from everyorder.runtime.rpc.agent.options import choose_backend
from everyorder.runtime.rpc.protocol.events import Settings
from everyorder.runtime.rpc.script.surface import UNSET


def test_defaults() -> None:
    options = RpcBackendOptions()
    assert (options.rpc_timeout, options.init_method) == (60.0, "env://")
    assert options.num_worker_threads == 16
    # Programs have it from a chapter that loads no agent.
    assert chapter.UNSET_RPC_TIMEOUT == UNSET == -1.0
    assert chapter.DEFAULT_SHUTDOWN_TIMEOUT == 0


def test_what_is_given_beside_the_times_of_a_session() -> None:
    options = RpcBackendOptions(max_payload=5, device_maps={"b": {0: 0}})
    assert options.settings == Settings(largest=5)
    assert RpcBackendOptions().settings == Settings()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"rpc_timeout": -1.0}, "RPC Timeout must be non-negative"),
        ({"rpc_timeout": -5}, "RPC Timeout must be non-negative"),
        ({"rpc_timeout": "1"}, "the timeout '1'"),
        ({"num_worker_threads": 0}, "num_worker_threads must be positive, got 0"),
        ({"num_worker_threads": 1.5}, "num_worker_threads must be positive, got 1.5"),
        ({"max_calls_in_flight": 0}, "max_calls_in_flight must be positive, got 0"),
        ({"max_payload": -1}, "max_payload must be positive, got -1"),
        ({"init_method": 5}, "the address 5"),
        ({"host": 5}, "the host 5"),
        ({"device_maps": {"b": {0: 1}}}, "a map from 0 to 1 for `b`"),
        ({"keys": 5}, "keys=5"),
        ({"join_timeout": "1"}, "join_timeout='1'"),
        ({"join_timeout": -1}, "join_timeout=-1"),
    ],
)
def test_what_no_worker_could_take(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(RpcMisuse) as error:
        RpcBackendOptions(**wrong)
    assert said in " ".join(str(error.value).split())


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (-1, 60.0),
        (0, None),
        (0.0, None),
        (math.inf, None),
        (5, 5.0),
        (0.5, 0.5),
        (0.001, 0.001),
        # Less than a millisecond is one: never for ever.
        (0.0001, 0.001),
        (0.0011, 0.002),
    ],
)
def test_timeouts_are_in_whole_milliseconds(given: float, seconds: float) -> None:
    assert timeout_seconds(given, 60.0, "rpc_sync") == seconds


def test_the_default_may_be_for_ever() -> None:
    assert timeout_seconds(-1, 0.0, "rpc_sync") is None


@pytest.mark.parametrize("wrong", [-5, -0.001, math.nan, "1", None, True])
def test_what_is_no_timeout(wrong: Any) -> None:
    with pytest.raises(RpcMisuse, match="RPC Timeout must be non-negative"):
        timeout_seconds(wrong, 60.0, "rpc_sync")


class _Own(RpcBackendOptions):
    pass


@pytest.fixture
def _backends(monkeypatch: pytest.MonkeyPatch) -> None:
    backends = Registry("backends", {**chapter.BACKENDS.rows}, order=str)
    monkeypatch.setattr(chapter, "BACKENDS", backends)


@pytest.mark.usefixtures("_backends")
def test_a_backend_of_ones_own() -> None:
    started: list[Any] = []
    before = backend_type()

    def start(*args: Any, **kwargs: Any) -> Any:
        started.append((args, kwargs))

    own = register_backend("OWN", _Own, start)
    assert repr(own) == "BackendType.OWN"
    assert backend_registered("OWN")
    assert backend_type()["OWN"] is own
    assert "OWN" not in before.__members__
    made = construct_rpc_backend_options(own, rpc_timeout=3, num_worker_threads=2)
    assert type(made) is _Own
    assert (made.rpc_timeout, made.num_worker_threads) == (3, 2)
    init_backend(own, 1, name="w")
    assert started == [((1,), {"name": "w"})]
    assert choose_backend(None, made, "EVERYORDER") == (own, made)
    assert type(choose_backend(own, None, "EVERYORDER")[1]) is _Own
    # A member of an older enumeration is the same backend.
    old = before["EVERYORDER"]
    assert choose_backend(old, None, "OWN")[0].handlers is own_handlers("EVERYORDER")


def own_handlers(name: str) -> Any:
    return chapter.BACKENDS.rows[name]


@pytest.mark.usefixtures("_backends")
def test_a_name_is_taken_once() -> None:
    with pytest.raises(RpcMisuse, match="RPC backend EVERYORDER: already"):
        register_backend("EVERYORDER", RpcBackendOptions, lambda: None)


def test_without_either_it_is_the_default() -> None:
    backend, options = choose_backend(None, None, "EVERYORDER")
    assert backend.name == "EVERYORDER"
    assert options == RpcBackendOptions()
    assert not backend_registered("NONE")


def test_the_name_that_programs_for_torch_give() -> None:
    name = backend_type()["TENSORPIPE"]
    assert name.handlers == backend_type()["EVERYORDER"].handlers


@pytest.mark.parametrize(
    ("backend", "options", "said"),
    [
        ("OWN", None, "Argument backend must be a member of BackendType"),
        (
            None,
            {"rpc_timeout": 1},
            "Argument rpc_backend_options must be an instance of RpcBackendOptions",
        ),
        (None, _Own(), "Could not infer backend for options"),
    ],
)
def test_what_is_none(backend: Any, options: Any, said: str) -> None:
    with pytest.raises(RpcMisuse) as error:
        choose_backend(backend, options, "EVERYORDER")
    assert said in " ".join(str(error.value).split())
    assert isinstance(error.value, TypeError)
