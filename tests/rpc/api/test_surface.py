"""The names, what is loaded for them, and what picklers are told."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from everyorder.runtime import rpc
from everyorder.runtime.errors.rpc import RpcMisuse
from tests.rpc.api import remote_functions as remote
from tests.rpc.api.bodies import OTHER, in_world

ROOT = Path(__file__).parents[3]
# Of `torch.distributed.rpc`: those that programs say.
NAMES = (
    *("BackendType", "PyRRef", "RRef", "RpcBackendOptions"),
    *("TensorPipeRpcBackendOptions", "WorkerInfo", "api", "backend_registered"),
    *("construct_rpc_backend_options", "functions", "get_rpc_timeout"),
    *("get_worker_info", "init_backend", "init_rpc", "is_available"),
    *("register_backend", "remote", "rpc_async", "rpc_sync", "shutdown"),
    *("_all_gather", "_barrier", "_is_current_rpc_agent_set", "_set_rpc_timeout"),
    *("_rref_context_get_debug_info", "_use_rpc_pickler", "_wait_all"),
)


def test_the_names_of_programs_for_torch() -> None:
    for name in NAMES:
        assert getattr(rpc, name) is not None
        assert name in dir(rpc)
    for name in rpc.__all__:
        assert getattr(rpc, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'absent'"):
        rpc.absent  # type: ignore[attr-defined]  # noqa: B018  # asked for, not used


@pytest.mark.torch
def test_all_of_them_are_names_of_torch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    there = torch.distributed.rpc
    homes = (there, there.api, there.backend_registry)
    assert [name for name in NAMES if not any(hasattr(h, name) for h in homes)] == []


def ran(program: str) -> str:
    """What a program prints, in an interpreter of its own."""
    told = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not told.stderr, told.stderr
    return told.stdout


def test_it_is_cheap_to_import() -> None:
    heavy = {
        "numpy",
        "numba",
        "zmq",
        "cloudpickle",
        "everyorder.runtime.jit",
        "everyorder.runtime.tensors",
    }
    heavy |= {
        "everyorder.runtime.script.emission",
        "everyorder.runtime.rpc.agent",
        "everyorder.runtime.rpc.codec",
    }
    program = (
        "import sys; from everyorder.runtime import rpc; rpc.WorkerInfo('a', 1); "
        f"print(sorted({heavy} & {{*sys.modules}}))"
    )
    assert ran(program) == "[]\n"
    assert all(find_spec(name) is not None for name in heavy)


@pytest.mark.slow
def test_without_the_extra_it_says_so() -> None:
    """Nothing else needs it: calls within one process work."""
    program = """
import sys
sys.modules["zmq"] = sys.modules["cloudpickle"] = None
from everyorder.runtime import rpc
options = rpc.RpcBackendOptions(init_method="tcp://127.0.0.1:1")
try:
    rpc.init_rpc("a", rank=0, world_size=1, rpc_backend_options=options)
except ImportError as error:
    print(type(error).__name__, "everyorder[rpc]" in str(error))
options = rpc.RpcBackendOptions(init_method="local://one")
rpc.init_rpc("a", rank=0, world_size=1, rpc_backend_options=options)
print(rpc.rpc_sync("a", max, (1, 2)))
rpc.shutdown()
"""
    assert ran(program) == "RpcMisuse True\n2\n"


def test_what_is_missing_is_told_as_a_text() -> None:
    error = RpcMisuse(code="ExtraMissing", call="init_rpc", package="zmq")
    assert str(error) == (
        "`init_rpc` needs the package `zmq`, which is not installed.\n"
        "  to do: pip install 'everyorder[rpc]'"
    )


class Celsius:
    def __init__(self, degrees: float) -> None:
        self.degrees = degrees

    def __reduce__(self) -> Any:
        raise TypeError("it is not pickled by itself")


def rebuilt(degrees: float) -> Celsius:
    return Celsius(degrees)


def reduced(value: Celsius) -> Any:
    return rebuilt, (value.degrees,)


def refused(value: Celsius) -> Any:
    raise AssertionError("the first one stays")


def degrees(value: Celsius) -> float:
    return value.degrees


def doubled(x: float) -> float:
    return 2 * x


def offer(name: str) -> None:
    rpc.register(name)(doubled)


@in_world
def test_what_others_have_registered() -> None:
    """Its name is all that is known of it here."""
    rpc.rpc_sync(OTHER, offer, ("surface.doubled",))
    given = rpc.registered("surface.doubled")
    assert rpc.rpc_sync(OTHER, given, (1.5,)) == 3.0
    with pytest.raises(RuntimeError, match="undefined registered function"):
        rpc.rpc_sync(OTHER, rpc.registered("surface.nothing"))


@pytest.mark.spec("rpc 8 picklers", "reducers of a class, the first one wins")
@in_world
def test_reducers_of_classes() -> None:
    rpc.register_reducer(Celsius, reduced)
    rpc.register_reducer(Celsius, refused)
    assert rpc.rpc_sync(OTHER, degrees, (Celsius(20.5),)) == 20.5


class Plain:
    """A pickler of one's own, which counts."""

    def __init__(self) -> None:
        self.written = 0

    def serialize(self, obj: Any) -> tuple[bytes, list[Any]]:
        import pickle

        self.written += 1
        return pickle.dumps(obj), []

    def deserialize(self, binary_data: bytes, tensor_table: list[Any]) -> Any:
        import pickle

        return pickle.loads(binary_data)


@pytest.mark.spec("rpc 8 picklers", "a pickler for a while")
@in_world
def test_a_pickler_of_ones_own_for_a_while() -> None:
    pickler = Plain()
    me = rpc.get_worker_info()
    with rpc.use_pickler(pickler):
        assert rpc.rpc_sync(me, remote.add, (1, 2)) == 3
        written = pickler.written
        assert written > 0
    assert rpc.rpc_sync(me, remote.add, (1, 2)) == 3
    assert pickler.written == written


def test_where_it_is_left_out_it_is_no_name() -> None:
    program = """
import importlib.abc, sys
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.startswith("everyorder.runtime.rpc"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Absent())
from everyorder import runtime
print(hasattr(runtime, "rpc"), hasattr(runtime, "futures"))
"""
    assert ran(program) == "False True\n"
