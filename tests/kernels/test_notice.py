"""The line that says that kernels are being compiled, on an emulated terminal."""

import logging
import re
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from everyorder.runtime.kernels.compile import notice
from everyorder.runtime.kernels.compile.notice import CompileNotice
from tests.kernels.test_cache import compiled_only

WIDTH, ROWS = 100, 4


class Terminal(StringIO):
    """A text stream that says it is a terminal, or not, and shows what one shows.

    It knows the sequences of a VT100 that the notice writes.
    """

    def __init__(self, is_one: bool = True) -> None:
        super().__init__()
        self.is_one = is_one
        self.screen = [[" "] * WIDTH for _ in range(ROWS)]
        self.row = self.column = 0
        self.saved = 0, 0

    def isatty(self) -> bool:
        return self.is_one

    def write(self, text: str) -> int:
        for part in re.findall(r"\x1b\[[A-Z]|\x1b.|.", text, re.DOTALL):
            action = MOVES.get(part)
            if action is not None:
                action(self)
            else:
                assert part.isprintable(), part
                self.screen[self.row][self.column] = part
                self.column += 1
        return super().write(text)

    def lines(self) -> list[str]:
        """What the screen shows, without the blanks at its ends."""
        rows = ["".join(each).rstrip() for each in self.screen]
        return "\n".join(rows).rstrip().split("\n")

    def down(self) -> None:
        """Go down in the same column; scroll at the last row."""
        if self.row == ROWS - 1:
            self.screen = [*self.screen[1:], [" "] * WIDTH]
        self.row = min(self.row + 1, ROWS - 1)

    def up(self) -> None:
        self.row = max(self.row - 1, 0)

    def new_line(self) -> None:
        self.down()
        self.column = 0

    def first_column(self) -> None:
        self.column = 0

    def save(self) -> None:
        self.saved = self.row, self.column

    def restore(self) -> None:
        self.row, self.column = self.saved

    def erase_line(self) -> None:
        self.screen[self.row][self.column :] = " " * (WIDTH - self.column)

    def erase_below(self) -> None:
        self.erase_line()
        for row in range(self.row + 1, ROWS):
            self.screen[row] = [" "] * WIDTH


MOVES: dict[str, Callable[[Terminal], None]] = {
    "\r": Terminal.first_column,
    "\n": Terminal.new_line,
    "\x1bD": Terminal.down,
    "\x1b[A": Terminal.up,
    "\x1b7": Terminal.save,
    "\x1b8": Terminal.restore,
    "\x1b[K": Terminal.erase_line,
    "\x1b[J": Terminal.erase_below,
}


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock: the last number is the time."""
    times = [0.0]
    monkeypatch.setattr(notice, "perf_counter", lambda: times[-1])
    return times


def compiled(subject: CompileNotice, times: list[float], took: float) -> None:
    subject.begin("softmax_rows of float32")
    times.append(times[-1] + took)
    subject.end()


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Make standard error a terminal, for the rest of a test."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    return stream


def test_a_line_appears_after_two_seconds_and_is_erased(
    seconds: list[float],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "everyorder.runtime.kernels")
    terminal, subject = on_terminal(monkeypatch), CompileNotice()
    compiled(subject, seconds, 1.5)
    compiled(subject, seconds, 1.5)
    assert terminal.getvalue() == ""
    subject.begin("x" * 200)
    empty, line = terminal.lines()
    assert line.startswith("compiling kernels, once for this machine: 2 in 3 s, now x")
    assert (empty, len(line)) == ("", 79)
    subject.end()
    assert terminal.lines() == [""]
    before = terminal.getvalue()
    subject.is_shown = False
    compiled(subject, seconds, 3.0)
    assert terminal.getvalue() == before
    assert caplog.messages[0] == "compiled softmax_rows of float32 in 1.50 s"
    # Loaded from disk: nothing was begun.
    subject.end()
    assert (subject.count, len(caplog.messages)) == (4, 4)


@pytest.mark.parametrize("above", range(ROWS))
def test_an_unfinished_line_of_the_program_stays(
    above: int, seconds: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the terminal scrolls, and where a kernel follows another."""
    terminal, subject = on_terminal(monkeypatch), CompileNotice()
    compiled(subject, seconds, 3.0)
    written = [f"line {number}" for number in range(above)]
    for each in written:
        terminal.write(f"{each}\n")
    terminal.write("loading ... ")
    for number in range(3):
        subject.begin("softmax_rows")
        shown = terminal.lines()
        assert shown[-2] == f"loading ... {'#' * number}".rstrip()
        assert shown[-1].startswith("compiling kernels")
        subject.end()
        assert "compiling" not in "".join(terminal.lines())
        terminal.write("#")
    terminal.write(" done\n")
    expected = [*written, "loading ... ### done"]
    assert terminal.lines() == expected[-(ROWS - 1) :]


def test_what_a_thread_prints_while_the_line_is_shown_stays(
    seconds: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal, subject = on_terminal(monkeypatch), CompileNotice()
    compiled(subject, seconds, 3.0)
    terminal.write("loading")
    subject.begin("softmax_rows")
    terminal.write(" a file\nand another one\nand")
    subject.end()
    first, second, third = terminal.lines()
    assert (first, third) == ("loading a file", "and")
    # The line is overwritten, and its end remains.
    assert second.startswith("and another one")


@pytest.mark.parametrize("name", [None, "dumb"])
def test_a_terminal_that_moves_no_cursor_has_no_line(
    name: str | None,
    seconds: list[float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal, subject = on_terminal(monkeypatch), CompileNotice()
    if name is None:
        monkeypatch.delenv("TERM")
    else:
        monkeypatch.setenv("TERM", name)
    for _ in range(3):
        compiled(subject, seconds, 3.0)
    assert (subject.count, terminal.getvalue()) == (3, "")


@pytest.mark.parametrize("stream", ["closed", "none", "file"])
def test_nothing_is_written_where_nobody_looks(
    stream: str, seconds: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = None if stream == "none" else Terminal(stream != "file")
    if place is not None and stream == "closed":
        place.close()
    monkeypatch.setattr(sys, "stderr", place)
    monkeypatch.setenv("TERM", "xterm")
    subject = CompileNotice()
    for _ in range(3):
        compiled(subject, seconds, 3.0)
    assert subject.count == 3
    if place is not None and stream == "file":
        assert place.getvalue() == ""


@compiled_only
def test_a_kernel_that_is_stored_is_no_compilation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from everyorder.runtime.kernels.compile import jit

    monkeypatch.setattr(jit, "folder", lambda: tmp_path)
    subject = CompileNotice()
    monkeypatch.setattr(jit, "NOTICE", subject)

    def body(x: Any, out: Any) -> None:
        for i in range(x.size):
            out[i] = x[i] * 7

    for expected in (1, 1):
        _ = jit.Family("sevenfold", body, "void(T[::1], T[::1])")["float64"]
        assert subject.count == expected
