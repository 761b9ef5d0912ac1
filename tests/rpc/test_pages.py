"""The page on processes: its commands run, and its program prints what it says."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from everyorder.runtime.errors import rpc as errors
from everyorder.runtime.rpc.agent import RpcBackendOptions
from everyorder.runtime.rpc.protocol.events import SHARED, Settings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "rpc-processes.md").read_text(encoding="utf-8")
PLACE = "127.0.0.1:5555"
SECONDS = 60


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture
def started(tmp_path: Path) -> Iterator[str]:
    """The commands of the page, run as it says; the address in the place of its own."""
    place = f"127.0.0.1:{free_port()}"
    commands = re.findall(r"^    (.+)$", PAGE, re.MULTILINE)[:3]
    keys, *workers = [each.replace(PLACE, place) for each in commands]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    program = keys.removeprefix('python -c "').removesuffix('"')
    subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, check=True
    )
    with ExitStack() as stack:
        for worker in workers:
            words = [sys.executable, "-m", *worker.split()]
            process = stack.enter_context(
                subprocess.Popen(
                    words,
                    cwd=tmp_path,
                    env=environment,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            stack.callback(process.kill)
            assert process.stdout is not None
            assert "serves at" in process.stdout.readline()
        yield place


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the page kills a process")
def test_the_program_prints_what_the_page_says(started: str, tmp_path: Path) -> None:
    blocks = re.findall(r"^```(?:python)?\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    program, printed = blocks
    run = subprocess.run(
        [sys.executable, "-c", program.replace(PLACE, started)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=2 * SECONDS,
        check=False,
    )
    assert (run.stdout, run.stderr) == (printed, "")


RAISED = (
    *("BlockGone", "JoinTimeout", "NotAdmitted", "ReferenceDead", "RpcTimeout"),
    "WorkerLost",
)


def test_what_the_page_names_is_there() -> None:
    named = {*re.findall(r"`([A-Za-z_]+)", PAGE)}
    assert {*RAISED} <= named
    assert all(hasattr(errors, each) for each in RAISED)
    options = {"max_payload", "max_calls_in_flight", "registered_only"}
    assert options <= named & {*RpcBackendOptions.__dataclass_fields__}
    first, *rest = SHARED
    told = ", ".join((f"`Settings.{first}`", *(f"`{each}`" for each in rest)))
    assert told in PAGE
    assert f"seconds without a sign of life, {Settings().dead:g} unless" in PAGE
