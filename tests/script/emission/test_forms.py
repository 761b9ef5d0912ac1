"""Special forms in scripts: what is asked of the compiler, and calls to Python."""

import warnings
from collections.abc import Iterator
from typing import Any, Optional

import pytest

from runtime.script.emission import register_special_form
from runtime.script.program import (
    annotate,
    export,
    fork,
    ignore,
    is_of_type,
    is_scripting,
    unchecked_cast,
    unused,
    wait,
)
from tests.script.emission.scripts import agrees, compiled, kinds, script


def test_annotate() -> None:
    def f() -> tuple[list[str], float | None]:
        names = annotate(list[str], [])
        maybe = annotate(Optional[float], None)
        names.append("a")
        return names, maybe

    agrees(f)


def test_is_scripting() -> None:
    def f(n: int) -> int:
        if is_scripting():
            return n + 1
        else:
            return undefined_for_scripts(n)

    def undefined_for_scripts(*more: int) -> int:
        return sum(more)

    assert script(f)(3) == 4
    assert f(3) == 3


def test_is_of_type() -> None:
    def f(x: list[int] | int | str) -> tuple[bool, int]:
        n = 0
        if is_of_type(x, list[int]):
            n = len(x)
        return is_of_type(x, (int, str)), n

    agrees(f, ([1, 2],), (3,), ("a",))


def test_unchecked_cast() -> None:
    def f(x: Any) -> int:
        n = unchecked_cast(int, x)
        return n + 1

    agrees(f, (3,))


seen: list[Any] = []


@ignore
def noted(n: int, words: str = "w") -> int:
    """Only Python can do this."""
    seen.append([n, words])
    return len({*seen[-1]}) + n


@ignore
def untrue(n: int) -> str:
    return n  # type: ignore[return-value]  # that is the point


@unused
def never(n: int) -> int:
    return eval("n")


@export
def plain(n: int) -> int:
    return n + 1


def test_ignored_functions_run_in_python() -> None:
    def f(n: int) -> int:
        return noted(n) + noted(n, words="v")

    seen.clear()
    assert script(f)(3) == 10
    assert seen == [[3, "w"], [3, "v"]]
    assert "prim::PythonOp" in kinds(compiled(f))


def test_what_an_ignored_function_gives_is_looked_at() -> None:
    def f(n: int) -> str:
        return untrue(n)

    with pytest.raises(Exception, match="str"):
        script(f)(3)


def test_unused_functions_raise() -> None:
    def f(n: int) -> int:
        if n > 3:
            return never(n)
        return n

    scripted = script(f)
    assert scripted(3) == 3
    with pytest.raises(Exception, match="never"):
        scripted(4)


def test_exported_functions_are_compiled() -> None:
    def f(n: int) -> int:
        return plain(n)

    agrees(f, (3,))
    assert "prim::PythonOp" not in kinds(compiled(f))


def test_print(capsys: pytest.CaptureFixture[str]) -> None:
    def f(n: int) -> None:
        print("n is", n, [n, 2], None, 1.5, (n, "a"))
        print()

    script(f)(3)
    found = capsys.readouterr().out
    f(3)
    assert found == capsys.readouterr().out


def test_warnings() -> None:
    def f(n: int) -> int:
        warnings.warn("odd" + str(n), stacklevel=2)
        return n

    with pytest.warns(UserWarning, match="odd3"):
        assert script(f)(3) == 3


def doubled(n: int) -> int:
    """Python's own: a form of the test's takes its place in scripts."""
    return 2 * n


@pytest.fixture
def registered() -> Iterator[None]:
    def form(call: Any) -> Any:
        (n,) = call.values()
        return call.operator("script::mul.int", n, call.constant(3))

    registration = register_special_form(doubled, form)
    yield
    registration.close()


def test_a_fork_of_a_form_is_refused() -> None:
    def f() -> int:
        return wait(fork(is_scripting))

    with pytest.raises(Exception, match="is_scripting"):
        compiled(f)
