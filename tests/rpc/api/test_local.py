"""Local workers: a whole group in one block, of threads or of processes."""

import operator
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from everyorder.runtime.errors.rpc import RpcMisuse
from everyorder.runtime.rpc.agent import (
    CallRequest,
    current_agent,
    in_worker_slot,
    is_initialized,
)
from everyorder.runtime.rpc.api.lifecycle import local_workers
from everyorder.runtime.rpc.protocol.identities import WorkerInfo
from tests.coded import code
from tests.forking import needs_fork
from tests.rpc.worlds import SECONDS, options

ROOT = Path(__file__).parents[3]


def ask(to: str, function: Any, *args: Any) -> Any:
    agent = current_agent("test")
    request = CallRequest(function, args)
    return agent.call_and_wait(agent.find(to), request, timeout=SECONDS)


@pytest.mark.parametrize(
    "how", ["threads", "fork", pytest.param("spawn", marks=pytest.mark.slow)]
)
def test_this_thread_is_the_first_of_them(how: Any) -> None:
    with in_worker_slot():
        with local_workers(["a", "b", "c"], how=how, options=options()) as workers:
            assert workers == tuple(WorkerInfo(n, i) for i, n in enumerate("abc"))
            assert current_agent("test").name == "a"
            assert ask("b", operator.add, 1, 2) == ask("c", operator.add, 1, 2) == 3
            here = ask("b", os.getpid) == os.getpid()
            assert here is (how == "threads")
            assert ask("a", os.getpid) == os.getpid()
        assert not is_initialized()


def test_how_many_are_enough() -> None:
    with in_worker_slot(), local_workers(2, options=options()) as workers:
        assert [worker.name for worker in workers] == ["worker0", "worker1"]


@pytest.mark.parametrize("wrong", [0, [], ["a", "a"], ["a b"], "abc", 2.5])
def test_what_no_group_is(wrong: Any) -> None:
    with (
        in_worker_slot(),
        pytest.raises(RpcMisuse, check=code("RpcMisuse")),
        local_workers(wrong),
    ):
        pass


def test_how_no_group_is_begun() -> None:
    how: Any = "thread"
    with pytest.raises(RpcMisuse) as error, local_workers(2, how=how):
        pass
    assert str(error.value).splitlines() == [
        "`local_workers` was given how='thread'.",
        "  it takes: 'threads', 'spawn', 'fork'",
    ]


def test_who_is_a_worker_opens_none() -> None:
    with in_worker_slot(), local_workers(1, options=options()):
        with (
            pytest.raises(RpcMisuse, check=code("AlreadyInitialized")),
            local_workers(1),
        ):
            pass
        assert is_initialized()


@pytest.mark.parametrize("how", ["threads", "fork"])
def test_an_error_ends_all_at_once(how: Any) -> None:
    with in_worker_slot():
        with (
            pytest.raises(ZeroDivisionError),
            local_workers(2, how=how, options=options()),
        ):
            raise ZeroDivisionError
        assert not is_initialized()
        # The next group is another one.
        with local_workers(2, how=how, options=options()):
            assert ask("worker1", operator.add, 1, 2) == 3


FORKS = """
import operator, os, sys, warnings
from everyorder.runtime import rpc
from everyorder.runtime.errors.rpc import NotInitialized

warnings.simplefilter("ignore", DeprecationWarning)
with rpc.local_workers(["a", "b"], how=sys.argv[1]):
    kept = rpc.remote("b", operator.add, (1, 2))
    child = os.fork()
    if not child:
        asks = [lambda: rpc.rpc_sync("b", os.getpid), kept.to_here, rpc.shutdown]
        for ask in asks:
            try:
                ask()
            except NotInitialized as error:
                assert error.parent == "a"
                assert "the worker `a` is its parent's" in " ".join(str(error).split())
            else:
                raise AssertionError("nobody answers in a child")
        if sys.argv[2] == "ends":
            sys.exit(0)
        if sys.argv[2] == "fails":
            raise ZeroDivisionError
    else:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(code, rpc.rpc_sync("b", operator.add, (2, 3)), kept.to_here())
print("after it", flush=True)
"""


@needs_fork
@pytest.mark.parametrize("how", ["threads", "fork"])
@pytest.mark.parametrize(
    ("ending", "said", "failed"),
    [
        ("ends", ["0 5 3", "after it"], ""),
        ("leaves", ["after it", "0 5 3", "after it"], ""),
        ("fails", ["1 5 3", "after it"], "ZeroDivisionError"),
    ],
)
def test_who_is_forked_in_the_block_does_nothing_to_it(
    how: str, ending: str, said: list[str], failed: str
) -> None:
    """However the child ends; what it calls says that it has no worker."""
    run = subprocess.run(
        [sys.executable, "-c", FORKS, how, ending],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (run.returncode, run.stdout.splitlines()) == (0, said), run.stderr
    assert run.stderr.splitlines()[-1:] == ([failed] if failed else [])
