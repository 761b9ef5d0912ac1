"""`everyorder worker`: it joins, serves, leaves when asked, and says why it cannot."""

import operator
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from everyorder.harness.cli import main
from everyorder.harness.cli.worker import worker
from everyorder.runtime.errors.rpc import WorkerLost
from everyorder.runtime.rpc.agent import (
    CallRequest,
    RpcBackendOptions,
    current_agent,
    in_worker_slot,
)
from everyorder.runtime.rpc.api.lifecycle import init_rpc, shutdown

SECONDS = 60
ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder() -> Iterator[str]:
    # The path of a socket has to be short.
    with tempfile.TemporaryDirectory(prefix="rpc") as made:
        yield made


def test_its_defaults_are_those_of_workers() -> None:
    """It says them without loading what workers are made of."""
    defaults = {each.name: each.default for each in worker.params}
    options = RpcBackendOptions()
    assert defaults["threads"] == options.num_worker_threads
    assert defaults["timeout"] == options.join_timeout


def test_it_serves_until_it_is_told_to_leave(folder: str) -> None:
    (Path(folder) / "mine.py").write_text(
        "from everyorder.runtime.rpc.codec.named_functions import register\n"
        "@register('mine.add')\n"
        "def add(a, b):\n    return a + b\n"
    )
    place = f"ipc://{folder}/group"
    command = [sys.executable, "-m", "everyorder", "worker", "--name", "w1"]
    command += ["--join", place, "--import", "mine", "--path", folder]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    with process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert re.fullmatch(
                r"worker w1 \(id 0\) serves at ipc:///\S+/keeper; Ctrl-C to leave\n",
                said,
            ), (said, process.poll())
            with in_worker_slot():
                options = RpcBackendOptions(init_method=place)
                init_rpc("w2", rpc_backend_options=options)
                try:
                    agent = current_agent("test")
                    there = agent.find("w1")
                    asked = CallRequest(operator.add, (1, 2))
                    answer = agent.call_and_wait(there, asked, timeout=SECONDS)
                    assert answer == 3
                finally:
                    shutdown()
            process.send_signal(signal.SIGTERM)
            assert process.communicate(timeout=SECONDS) == ("worker w1 has left\n", "")
            assert process.returncode == 0
        finally:
            process.kill()


def test_a_second_interrupt_ends_it_at_once(folder: str) -> None:
    """Though it is at something, which it would have finished after the first one."""
    place = f"ipc://{folder}/group"
    command = [sys.executable, "-m", "everyorder", "worker", "--name", "w1"]
    process = subprocess.Popen(
        [*command, "--join", place, "--timeout", "3600"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.readline().startswith("worker w1 (id 0) serves")
            with in_worker_slot():
                init_rpc("w2", rpc_backend_options=RpcBackendOptions(init_method=place))
                try:
                    agent = current_agent("test")
                    ever = CallRequest(signal.pause, ())
                    future = agent.call(agent.find("w1"), ever, timeout=None)
                    done = CallRequest(operator.add, (1, 2))
                    there = agent.find("w1")
                    assert agent.call_and_wait(there, done, timeout=SECONDS) == 3
                    process.send_signal(signal.SIGINT)
                    said = process.stderr.readline()
                    assert "Ctrl-C to end it at once" in said
                    process.send_signal(signal.SIGINT)
                    process.wait(timeout=SECONDS)
                    # It has said good-bye all the same.
                    with pytest.raises(WorkerLost, match="left"):
                        future.wait(SECONDS)
                finally:
                    shutdown(graceful=False)
            assert process.returncode == 130
            assert "has left" not in process.communicate()[0]
        finally:
            process.kill()


def test_what_cannot_start_says_why(folder: str) -> None:
    run = CliRunner().invoke
    place = f"ipc://{folder}/group"
    found = run(main, ["worker", "--name", "a b", "--join", place])
    assert found.exit_code == 2
    assert "worker a b could not start: `init_rpc` was given the name" in found.output
    found = run(main, ["worker", "--name", "a", "--join", "nowhere"])
    assert found.exit_code == 2
    assert "was given the address 'nowhere'" in found.output
    found = run(
        main, ["worker", "--name", "a", "--join", place, "--import", "no_such_module"]
    )
    assert found.exit_code == 2
    assert "No module named 'no_such_module'" in found.output


def test_an_interrupt_while_it_joins_ends_it_at_once(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    went_on: list[bool] = []

    def joins(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGINT)
        went_on.append(True)

    monkeypatch.setattr("everyorder.runtime.rpc.api.lifecycle.init_rpc", joins)
    command = ["worker", "--name", "a", "--join", f"ipc://{folder}/group"]
    found = CliRunner().invoke(main, command)
    assert (found.exit_code, went_on) == (130, [])


@pytest.mark.parametrize("missing", ["zmq", "everyorder.runtime.rpc.api.lifecycle"])
def test_without_the_extra_it_says_what_to_install(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    for name in [*sys.modules]:
        if name.startswith("everyorder.runtime.rpc.transport."):
            monkeypatch.delitem(sys.modules, name)
    place = "tcp://127.0.0.1:1"
    found = CliRunner().invoke(main, ["worker", "--name", "a", "--join", place])
    assert found.exit_code == 2
    assert "pip install 'everyorder[rpc]'" in " ".join(found.output.split())
