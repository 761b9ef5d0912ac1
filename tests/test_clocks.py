"""No test asserts how long something took: machines are busy, and then it fails.

Limits of time are for what would never end; what is measured, is measured by `make
bench`.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
CLOCKS = frozenset(
    {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time"}
)


def reads_a_clock(node: ast.AST, read: frozenset[str] = frozenset()) -> bool:
    """Whether an expression calls a clock, or names what was read from one."""
    return any(
        (isinstance(each, ast.Call) and ast.unparse(each.func).split(".")[-1] in CLOCKS)
        or (isinstance(each, ast.Name) and each.id in read)
        for each in ast.walk(node)
    )


def timed(source: str) -> Iterator[int]:
    """The lines of assertions that compare what a clock said."""
    if not any(clock in source for clock in CLOCKS):
        return
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        read: frozenset[str] = frozenset()
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and reads_a_clock(node.value, read):
                names = (each for target in node.targets for each in ast.walk(target))
                read |= {
                    each.id
                    for each in names
                    if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
                }
        for node in ast.walk(function):
            if isinstance(node, ast.Assert) and reads_a_clock(node.test, read):
                yield node.lineno


def test_none_does() -> None:
    found = [
        f"{path.relative_to(HERE)}:{line}"
        for path in sorted(HERE.rglob("*.py"))
        if path.name.startswith("test_")
        for line in timed(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_one_that_did_would_be_seen() -> None:
    for ending in (
        "took = time.perf_counter() - began\n    assert took < 2",
        "assert monotonic() - began < 2",
    ):
        source = f"def test_it():\n    began = monotonic()\n    {ending}\n"
        assert len([*timed(source)]) == 1
    assert [*timed("def test_it():\n    assert len([]) < 2\n")] == []
