"""Every place where compiling raises is reached by a wrong program of the corpora.

The places of the frontend are looked at in `tests/script/frontend/test_raising.py`.
"""

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import everyorder.runtime.script.emission
import everyorder.runtime.script.modules
from everyorder.runtime.script.emission import compile_function, compile_text
from everyorder.runtime.script.ir.program import Program
from tests.script.emission import wrong_forms, wrong_programs
from tests.script.emission.both import NAMES
from tests.script.frontend import programs as frontend_programs
from tests.script.modules import refused

EMISSION = Path(everyorder.runtime.script.emission.__file__).parent
MODULES = Path(everyorder.runtime.script.modules.__file__).parent
FILES = [
    # What is a program there raises when it runs.
    *sorted(
        {*EMISSION.glob("*.py")}
        - {EMISSION / f"{name}.py" for name in ("program_forms", "tensor_programs")}
    ),
    *(MODULES / f"{name}.py" for name in ("build", "module_shape", "module_sugar")),
]
# Functions that do nothing but raise.
RAISING = {"_lacks", "fail", "no_attribute", "torn"}
# What says that it cannot happen, or that a class below says it; and what is caught.
NEVER = ("AssertionError", "NotImplementedError", "_TooNarrow")

# The lines that no program reaches, and why they are there.
UNREACHED = {
    "raise not_defined(node, NOT_YET, e.source)": (
        "absences are told before, by the frontend: whoever changes one of the two "
        "and forgets the other gets an error that is ours"
    ),
    'e.fail(f"{python!r} is not a type of programs")': (
        "what annotations read refuses such classes first, in words of its own"
    ),
}


class Site(NamedTuple):
    """A place that raises: its file, its lines, and the first of them."""

    file: str
    first: int
    last: int
    line: str


def sites(path: Path) -> Iterator[Site]:
    """The places of a file that raise something of their own."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Raise):
            if node.exc is None or ast.unparse(node.exc).startswith(NEVER):
                continue
        elif not isinstance(node, ast.Call):
            continue
        elif ast.unparse(node.func) == "fail":
            # A function of that name in another one.
            continue
        elif ast.unparse(node.func).rpartition(".")[2] not in RAISING:
            continue
        assert node.end_lineno is not None, "it was parsed"
        yield Site(
            path.name, node.lineno, node.end_lineno, lines[node.lineno - 1].strip()
        )


def raised() -> Iterator[BaseException]:
    """What the wrong programs of all corpora raise."""
    names = {**NAMES, **wrong_programs.EXTRA}
    for case in wrong_programs.GOLDEN.cases.values():
        text = case.input
        if re.search("helper|untyped|recursive", text):
            text += wrong_programs.HELPERS
        try:
            compile_text(text, Program(), names)
        except Exception as error:
            yield error
    for case in wrong_forms.GOLDEN.cases.values():
        try:
            compile_function(wrong_forms.defined(case.input)["f"], Program())
        except Exception as error:
            yield error
        finally:
            del sys.modules["program"]
    for case in refused.GOLDEN.cases.values():
        found = refused.complaint(case.input)
        assert found is not None
        yield found
    yield from without_room()
    try:
        compile_text("class C:\n    n: int\n", Program())
    except Exception as error:
        yield error


def without_room() -> Iterator[BaseException]:
    """What deep programs raise where the stack is nearly full already."""
    text = f"def f(x: int) -> int:\n    return {'-' * 90}x\n"
    before, here = sys.getrecursionlimit(), len(inspect.stack(0))
    for room in range(150, 300, 10):
        sys.setrecursionlimit(here + room)
        try:
            compile_text(text, Program())
        except Exception as error:
            yield error
        finally:
            sys.setrecursionlimit(before)


def frames(error: BaseException | None) -> Iterator[tuple[str, int]]:
    """Where an exception came by, and those that it came of."""
    while error is not None:
        trace = error.__traceback__
        while trace is not None:
            path = Path(trace.tb_frame.f_code.co_filename)
            if path.parent in (EMISSION, MODULES):
                yield path.name, trace.tb_lineno
            trace = trace.tb_next
        error = error.__cause__ or error.__context__


def unreached(found: set[tuple[str, int]]) -> list[str]:
    """The places that are not among those that were passed."""
    return [
        each.line
        for path in FILES
        for each in sites(path)
        if not any((each.file, n) in found for n in range(each.first, each.last + 1))
    ]


@pytest.mark.spec("script 6.9", "every place is reached")
def test_every_place_that_raises_is_reached() -> None:
    found: set[tuple[str, int]] = set()
    for error in raised():
        found |= {*frames(error)}
    assert sorted(unreached(found)) == sorted(UNREACHED)
    assert all(UNREACHED.values())


def test_a_place_that_nobody_reaches_is_found() -> None:
    every = [each.line for path in FILES for each in sites(path)]
    assert len(every) > 130
    assert sorted(unreached(set())) == sorted(every)


def test_there_are_three_hundred_wrong_programs() -> None:
    corpora = [
        module.GOLDEN.cases.values()
        for module in (wrong_programs, wrong_forms, refused, frontend_programs)
    ]
    assert min(map(len, corpora)) > 50
    # Each has its own text: none is counted twice.
    assert len({case.input for cases in corpora for case in cases}) >= 500
