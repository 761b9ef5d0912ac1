"""Wrong programs with remote calls: all that is said of each, and by whom."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import everyorder.runtime.rpc.script
from everyorder.runtime.script.emission import compile_function
from everyorder.runtime.script.ir.program import Program
from tests.rpc.script.fakes import World
from tests.rpc.script.wrong_calls import GOLDEN, complaint, defined
from tests.script.test_raise_sites import Site, sites

FOLDER = Path(everyorder.runtime.rpc.script.__file__).parent
# The chapters that compile; what the others raise, programs raise when they run.
FILES = (FOLDER / "remote_forms.py",)


@pytest.mark.spec("rpc 3.1", "the count, then keywords")
@pytest.mark.spec("rpc 3.3", "the callee's schema decides")
@pytest.mark.spec("rpc 3.4", "errors of compiling")
@pytest.mark.spec("rpc 3.7", "methods of references")
@pytest.mark.parametrize("title", GOLDEN.cases)
def test_what_is_said_of_a_wrong_program(title: str) -> None:
    words = complaint(GOLDEN.cases[title].input)
    assert words
    GOLDEN.check(title, f"{words}\n")


def test_there_are_enough() -> None:
    assert len(GOLDEN.cases) >= 65


def test_another_text_is_found() -> None:
    case = GOLDEN.cases["worker: a number"]
    words = complaint(case.input.replace("1,", "1.0,", 1))
    assert f"{words}\n" != case.output
    assert complaint("def f():\n    return 3\n") == ""


def passed() -> Iterator[tuple[str, int]]:
    """Where the errors of all wrong programs came by in the chapters."""
    for case in GOLDEN.cases.values():
        with World().plugged():
            try:
                compile_function(defined(case.input)["f"], Program())
            except Exception as error:
                trace = error.__traceback__
                while trace is not None:
                    path = Path(trace.tb_frame.f_code.co_filename)
                    if path in FILES:
                        yield path.name, trace.tb_lineno
                    trace = trace.tb_next


def unreached(found: set[tuple[str, int]]) -> list[str]:
    """The places that raise and are not among those that were passed."""
    every: list[Site] = [site for path in FILES for site in sites(path)]
    return [
        site.line
        for site in every
        if not any((site.file, n) in found for n in range(site.first, site.last + 1))
    ]


@pytest.mark.spec("rpc 3.1", "the count, then keywords")
@pytest.mark.spec("rpc 3.4", "errors of compiling")
def test_every_place_that_raises_is_reached() -> None:
    assert unreached({*passed()}) == []


def test_a_place_that_nobody_reaches_is_found() -> None:
    assert len(unreached(set())) > 12
