"""Every place where the frontend raises is reached, by a program or by an object."""

import ast
import linecache
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

import everyorder.runtime.script.frontend
from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.script.frontend import (
    Annotations,
    read_class,
    read_function,
    read_signature,
    scope_of,
)
from tests.script.frontend.programs import GOLDEN, complaint

FOLDER = Path(everyorder.runtime.script.frontend.__file__).parent
# Functions that do nothing but raise.
RAISING = {"_changed", "_refuse_lambda", "fail"}


def sites(path: Path) -> Iterator[tuple[str, int]]:
    """The places of a file that raise, but for lookups that are caught there."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise):
            yield path.name, node.lineno
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            if name in RAISING:
                yield path.name, node.lineno


def frames(trace: TracebackType | None) -> Iterator[tuple[str, int]]:
    while trace is not None:
        code = trace.tb_frame.f_code
        if Path(code.co_filename).parent == FOLDER:
            yield Path(code.co_filename).name, trace.tb_lineno
        trace = trace.tb_next


def with_lines(text: str, then: str, name: str) -> Any:
    """What a text defines, in a file that has other lines by now."""
    scope: dict[str, Any] = {"__name__": "drawn", "__file__": "<lines>"}
    exec(compile(text, "<lines>", "exec"), scope)
    lines = then.splitlines(True)
    linecache.cache["<lines>"] = len(then), None, lines, "<lines>"
    return scope[name]


def read_with_owner() -> None:
    function = with_lines("def f(): pass\n", "def f(): pass\n", "f")
    one = read_function(function)
    annotations = Annotations(one, scope_of(function, one, lambda *_: None))
    from everyorder.runtime.schema.types import AnyType

    read_signature(annotations, function, AnyType)


F, G = "def f(x):\n    return x\n", "g = lambda: 1\n"
C = "class C:\n    def f(self): pass\n"
READ: dict[str, Callable[[], object]] = {
    "no function": lambda: read_function(3),
    "no lines": lambda: read_function(with_lines(F, "", "f")),
    "other lines": lambda: read_function(with_lines(F, "\n", "f")),
    "no program": lambda: read_function(with_lines(F, "(", "f")),
    "too deep": lambda: read_function(with_lines(F, f"{'-' * 5000}1\n", "f")),
    "a lambda": lambda: read_function(with_lines(G, G, "g")),
    "a lambda that is gone": lambda: read_function(with_lines(G, "\n", "g")),
    "a class in no file": lambda: read_class(type("C", (), {"__module__": "nowhere"})),
    "a class that is gone": lambda: read_class(with_lines(C, "\n", "C")),
    "two classes": lambda: read_class(
        with_lines("class C: pass\n" * 2, "class C: pass\n" * 2, "C")
    ),
    "no parameter for the object": read_with_owner,
}


@pytest.mark.spec("script 6.9", "every place is reached")
def test_every_place_that_raises_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {each for path in sorted(FOLDER.glob("*.py")) for each in sites(path)}
    reached: set[tuple[str, int]] = set()
    for case in GOLDEN.cases.values():
        error = complaint(case.input)
        assert error is not None
        reached |= {*frames(error.__traceback__)}
    drawn = type(sys)("drawn")
    drawn.__file__ = "<lines>"
    monkeypatch.setitem(sys.modules, "drawn", drawn)
    for name, run in READ.items():
        with pytest.raises(EveryorderError) as caught:
            run()
        assert name
        reached |= {*frames(caught.value.__traceback__)}
    linecache.cache.pop("<lines>", None)
    assert len(wanted) > 20
    assert sorted(wanted - reached) == []
