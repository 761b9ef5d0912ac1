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

from harness.cli import main
from harness.cli.worker import worker

# What workers are made of is large: it is imported where it is needed.
pytestmark = pytest.mark.usefixtures("last")

SECONDS = 60
ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder() -> Iterator[str]:
    # The path of a socket has to be short.
    with tempfile.TemporaryDirectory(prefix="rpc") as made:
        yield made


def test_its_defaults_are_those_of_workers() -> None:
    """It says them without loading what workers are made of."""
    from runtime.rpc.agent import RpcBackendOptions

    defaults = {each.name: each.default for each in worker.params}
    options = RpcBackendOptions()
    assert defaults["threads"] == options.num_worker_threads
    assert defaults["timeout"] == options.join_timeout


def test_it_serves_until_it_is_told_to_leave(folder: str) -> None:
    from runtime.rpc import agent as agents

    (Path(folder) / "mine.py").write_text(
        "from runtime.rpc.values.registered import register\n"
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
            with agents.seated():
                options = agents.RpcBackendOptions(init_method=place)
                agents.init_rpc("w2", rpc_backend_options=options)
                try:
                    agent = agents.current_agent("test")
                    there = agent.find("w1")
                    asked = agents.Request(operator.add, (1, 2))
                    answer = agent.call_and_wait(there, asked, timeout=SECONDS)
                    assert answer == 3
                finally:
                    agents.shutdown()
            process.send_signal(signal.SIGTERM)
            assert process.communicate(timeout=SECONDS) == ("worker w1 has left\n", "")
            assert process.returncode == 0
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

    monkeypatch.setattr("runtime.rpc.agent.init_rpc", joins)
    command = ["worker", "--name", "a", "--join", f"ipc://{folder}/group"]
    found = CliRunner().invoke(main, command)
    assert (found.exit_code, went_on) == (130, [])


@pytest.mark.parametrize("missing", ["zmq", "runtime.rpc.agent"])
def test_without_the_extra_it_says_what_to_install(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    for name in [*sys.modules]:
        if name.startswith("runtime.rpc.transport."):
            monkeypatch.delitem(sys.modules, name)
    place = "tcp://127.0.0.1:1"
    found = CliRunner().invoke(main, ["worker", "--name", "a", "--join", place])
    assert found.exit_code == 2
    assert "pip install 'everyorder[rpc]'" in " ".join(found.output.split())
