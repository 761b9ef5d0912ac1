from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


from harness.cli.campaign import Advanced, Display, Finished, Started
from harness.cli.task import Task
from harness.report import Unexplored
from tests.report.samples import PROVEN

TASKS = [
    Task("scenarios/test_a/one", Path("a"), Path(), 1_000),
    Task("scenarios/test_a/two", Path("a"), Path(), 3_000),
]


def shown(display: Display, console: "Console") -> str:
    with console.capture() as capture:
        console.print(display._picture())
    return capture.get()


def test_the_picture_of_a_run(terminal: "type[Console]") -> None:
    console = terminal(file=StringIO(), width=80, height=40, force_terminal=True)
    with Display(console, TASKS) as display:
        display.show(Started(0))
        display.show(Started(1))
        display.show(Advanced(0, 500, 900))
        text = shown(display, console)
        assert "500/3900" in text.replace(" ", "")
        assert "one" in text
        assert "500/900" in text.replace(" ", "")
        assert "scenario " not in text
        display.show(Finished(0, PROVEN))
        display.show(Finished(1, Unexplored("scenarios/test_a/two", "", "gone")))
        text = shown(display, console)
        assert "two_kernels" in text
        assert "628/628" in text.replace(" ", "")
        assert "FAILED" in text


def test_only_the_last_rows_fit_a_small_terminal(terminal: "type[Console]") -> None:
    console = terminal(file=StringIO(), width=80, height=10, force_terminal=True)
    tasks = [TASKS[0]] * 10
    with Display(console, tasks) as display:
        for index in range(10):
            display.show(Started(index))
            display.show(Finished(index, Unexplored(f"s/test_a/n{index}", "", "gone")))
        text = shown(display, console)
    assert "n7" in text
    assert "n6" not in text


def test_logs_get_no_picture(terminal: "type[Console]") -> None:
    text = StringIO()
    console = terminal(file=text, width=80)
    with Display(console, TASKS) as display:
        display.show(Started(0))
        display.show(Advanced(0, 500, 900))
        display.show(Finished(0, PROVEN))
    assert text.getvalue() == ""
