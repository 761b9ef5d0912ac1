"""The commands, their exit codes, and signals at any moment: nothing is left."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import get_args
from uuid import uuid4

import pytest

from everyorder.harness.cli import command as exits
from everyorder.harness.cli.command import defer_interrupts, raise_interrupts
from everyorder.harness.cli.group import COMMANDS
from everyorder.harness.report.verdict import VERDICTS, Failure
from tests.cli.conftest import Project
from tests.processes.samples import is_alive

COMMANDS = COMMANDS


def test_the_commands_in_the_order_of_need(project: Project) -> None:
    text = project.run("--help").output
    listed = text.partition("Commands:\n")[2].splitlines()
    assert tuple(line.split()[0] for line in listed) == tuple(COMMANDS)
    assert not [line for line in listed if line.endswith("...")]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_tells_the_exit_codes_and_fits_80_columns(
    project: Project, name: str
) -> None:
    result = project.run(name, "-h")
    assert result.exit_code == 0
    if name != "show":
        assert "Exit codes" in result.output
    assert max(map(len, result.output.splitlines())) <= 80


def test_an_unknown_command(project: Project) -> None:
    result = project.run("rum")
    assert result.exit_code == 2
    assert (
        "Error: there is no command 'rum'; did you mean run or runtime?"
        in result.output
    )


def test_version(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: f"of {name}")
    assert project.run("--version").output == "everyorder of everyorder\n"

    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", missing)
    assert project.run("--version").output == (
        "everyorder (from its source tree, not installed)\n"
    )


def test_as_a_module() -> None:
    root = Path(__file__).parents[2]
    result = subprocess.run(
        [sys.executable, "-m", "everyorder", "run", "--help"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.startswith("Usage: everyorder run [OPTIONS] [PATHS]...\n")
    assert result.stderr == ""


def test_every_code_has_a_sentence_and_every_verdict_a_code() -> None:
    values = [value for name, value in vars(exits).items() if name.isupper()]
    assert {code for code in values if isinstance(code, int) and code >= 10} == (
        set(exits.GATE) - {exits.OK} | {exits.INTERRUPTED}
    )
    assert set(exits.VERDICT_CODES) == set(VERDICTS)
    assert set(exits.FAILURE_CODES) == set(get_args(Failure))
    used = {*exits.VERDICT_CODES.values(), *exits.FAILURE_CODES.values()}
    used |= {*exits.COMPARISON_CODES.values(), exits.NOT_LOADED}
    assert used == set(exits.GATE)
    assert set(exits.COMPARISON_CODES) == {"unchanged", "changed", "missing", "stale"}


ROOT = Path(__file__).parents[2]

# As the console script has it, and it says when it begins: the first thing that `main`
# does after it has taken over the signals is to look for what hides our packages.
SCRIPT = """
import builtins
from everyorder.__main__ import main
plain = builtins.__import__
def first(name, *rest):
    # The handlers of signals are set before the command line is imported.
    if name == "everyorder.harness.cli":
        print("begun", flush=True)
        builtins.__import__ = plain
    return plain(name, *rest)
builtins.__import__ = first
main()
"""

SLOW = """
import subprocess
from time import sleep
from everyorder.harness.scenario import Scenario
from tests.scenarios.test_sound import add, shown


def look(registry):
    # Something that a step has started, and that is gone only if somebody ends it.
    process = subprocess.Popen(["sleep", "60"])
    sleep(0.02)
    process.kill()
    process.wait()
    return shown(registry)


one = Scenario(add("a"), create=list, observe=look)
two = Scenario(add("b"), create=list, observe=look)
"""


def test_both_signals_are_interruptible_and_handlers_put_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    for number in (signal.SIGINT, signal.SIGTERM):
        with pytest.raises(KeyboardInterrupt), raise_interrupts():
            signal.raise_signal(number)
    assert before == [
        signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)
    ]


def test_a_deferred_signal_is_raised_where_somebody_asks() -> None:
    done = []

    def asked(check: Callable[[], None]) -> None:
        check()
        signal.raise_signal(signal.SIGTERM)
        done.append("went on")
        check()

    with defer_interrupts() as check, pytest.raises(KeyboardInterrupt):
        asked(check)
    assert done == ["went on"]


def test_a_deferred_signal_is_raised_at_the_end() -> None:
    with pytest.raises(KeyboardInterrupt), defer_interrupts():
        signal.raise_signal(signal.SIGINT)


def test_a_second_signal_does_not_wait() -> None:
    done = []

    def impatient() -> None:
        with defer_interrupts():
            signal.raise_signal(signal.SIGINT)
            done.append("once")
            signal.raise_signal(signal.SIGINT)
            done.append("twice")

    with pytest.raises(KeyboardInterrupt):
        impatient()
    assert done == ["once"]


def test_signals_that_are_ignored_stay_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with defer_interrupts() as check, raise_interrupts():
            signal.raise_signal(signal.SIGINT)
            check()
    finally:
        signal.signal(signal.SIGINT, before)


class Command:
    """A run of the command in a process of its own, which is told when to end."""

    def __init__(self, project: Project, folder: Path) -> None:
        self.mark = f"EVERYORDER_MARK={uuid4()}"
        name, _, value = self.mark.partition("=")
        self.temporary = folder / value
        self.temporary.mkdir()
        environment = {
            **os.environ,
            name: value,
            "TMPDIR": str(self.temporary),
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self.report = project.root / f"report-{value}"
        arguments = ("run", "--strategy", "walk:1", "--jobs", "2", "--report")
        self.process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, *arguments, str(self.report)],
            cwd=project.root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "begun\n"
        self.begun = time.monotonic()

    def ended(self) -> tuple[str, str, int]:
        """What it printed, and how it ended."""
        out, err = self.process.communicate(timeout=120)
        return out, err, self.process.returncode

    def left(self) -> list[str]:
        """The processes and files that it leaves; processes get a moment to die."""
        until = time.monotonic() + 10
        while (alive := self._alive()) and time.monotonic() < until:
            time.sleep(0.01)
        files = [path.name for path in self.temporary.rglob("*")]
        if self.report.exists():
            files += [path.name for path in self.report.glob("*.new")]
        return [*map(str, alive), *files]

    def _alive(self) -> list[int]:
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and is_alive(int(entry.name)):
                try:
                    environment = (entry / "environ").read_bytes()
                except OSError:
                    continue
                if self.mark.encode() in environment:
                    found.append(int(entry.name))
        return found


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    "moments", [4, pytest.param(10, marks=pytest.mark.slow, id="10")]
)
def test_at_any_moment_nothing_is_left(
    project: Project, tmp_path: Path, moments: int
) -> None:
    project.scenarios("slow", SLOW)
    whole = Command(project, tmp_path)
    out, err, code = whole.ended()
    assert (err, code) == ("", exits.OK)
    assert "4 scenarios: 1 pinned, 3 holding; " in out
    assert whole.left() == []
    seconds = time.monotonic() - whole.begun
    interrupted = 0
    for moment in range(moments):
        number = signal.SIGTERM if moment % 5 == 4 else signal.SIGINT
        command = Command(project, tmp_path)
        time.sleep(seconds * moment / moments)
        command.process.send_signal(number)
        out, err, code = command.ended()
        assert command.left() == [], (moment, out, err)
        assert "Traceback" not in out + err, (moment, out, err)
        if code == -number:  # all was said, and Python was about to end
            assert "4 scenarios: " in out, (moment, out, err)
        elif code != exits.OK:  # not over before, on a machine that is faster now
            assert code == exits.INTERRUPTED, (moment, out, err)
            assert "interrupted" in out + err
            interrupted += 1
    assert interrupted >= moments / 2


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
def test_a_command_that_is_killed_takes_its_children_along(
    project: Project, tmp_path: Path
) -> None:
    project.scenarios("slow", SLOW.replace("sleep(0.02)", "sleep(50)"))
    command = Command(project, tmp_path)
    until = time.monotonic() + 60
    # The command, the child that explores, and what its step has started.
    while len(command._alive()) < 3 and time.monotonic() < until:
        time.sleep(0.05)
    sleeping = [pid for pid in command._alive() if _name(pid) == "sleep"]
    command.process.kill()
    command.ended()
    # Whoever is killed can end nobody; what it has forked is ended by the kernel, and
    # what that has started is not.
    for pid in sleeping:
        os.kill(pid, signal.SIGKILL)
    assert command.left() == []


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
