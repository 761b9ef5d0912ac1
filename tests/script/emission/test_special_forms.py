"""Special forms in scripts: what is asked of the compiler, and calls to Python."""

# mypy: disable-error-code="no-any-return"
# Functions of the runtime give what they give.

import warnings
from typing import Any, Optional

import pytest

from everyorder import runtime
from everyorder.runtime import Tensor
from everyorder.runtime.errors.registration import AlreadyRegistered
from everyorder.runtime.errors.script import IllTyped, UnknownAttribute
from everyorder.runtime.script.emission import (
    Arguments,
    Emitter,
    SpecialForm,
    Sugared,
    arguments_of,
    register_special_form,
    register_sugar,
    sugar_of_value,
)
from everyorder.runtime.script.ir import Value
from everyorder.runtime.script.ir.program import (
    annotate,
    export,
    ignore,
    is_of_type,
    is_scripting,
    unchecked_cast,
    unused,
)
from tests.coded import code
from tests.script.emission.scripts import agrees, compiled, kinds, script


def test_annotate() -> None:
    def f() -> tuple[list[str], float | None]:
        names = annotate(list[str], [])
        maybe = annotate(Optional[float], None)  # noqa: UP045  # both ways are written
        names.append("a")
        return names, maybe

    agrees(f)


def test_is_scripting() -> None:
    def f(n: int) -> int:
        if is_scripting():
            return n + 1
        return undefined_for_scripts(n)

    def undefined_for_scripts(*more: int) -> int:
        return sum(more)

    assert script(f)(3) == 4
    assert f(3) == 3


def test_is_of_type() -> None:
    def f(x: list[int] | int | str) -> tuple[bool, int]:
        n = 0
        if is_of_type(x, list[int]):
            n = len(x)  # type: ignore[arg-type]  # mypy does not know the form
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
    """In Python; a form of the test's takes its place in scripts."""
    return 2 * n


def tripled(e: Emitter, arguments: Arguments) -> Sugared:
    (n,) = arguments_of(e, "doubled", ("n",), arguments)
    return sugar_of_value(e.operator("script::mul.int", n.value(e), e.constant(3)))


def asks(n: int) -> int:
    return doubled(n)


@pytest.mark.spec("script 0.4", "a symbol, a form, an operator of a plug-in")
def test_a_form_of_a_plug_in_is_registered_and_taken_back() -> None:
    assert script(asks)(5) == 10
    with register_special_form(doubled, SpecialForm("doubled", tripled, doubled)):
        kept = script(asks)
        assert kept(5) == 15
    assert script(asks)(5) == 10
    # What was compiled stays what it was compiled to.
    assert kept(5) == 15


@pytest.mark.spec("script 0.4", "a symbol, a form, an operator of a plug-in")
def test_an_object_has_one_form_and_a_closed_one_makes_room() -> None:
    def other(e: Emitter, arguments: Arguments) -> Sugared:
        return sugar_of_value(e.constant(7))

    first = register_special_form(doubled, SpecialForm("doubled", tripled, doubled))
    with pytest.raises(AlreadyRegistered):
        register_special_form(doubled, SpecialForm("doubled", other, doubled))
    assert script(asks)(5) == 15
    first.close()
    with register_special_form(doubled, SpecialForm("doubled", other, doubled)):
        first.close()
        assert script(asks)(5) == 7
    assert script(asks)(5) == 10


def asks_operator(x: Tensor) -> Tensor:
    return runtime.ops.plugged.scaled(x, 3)


@pytest.mark.spec("script 0.4", "a symbol, a form, an operator of a plug-in")
def test_an_operator_of_a_plug_in_is_registered_and_taken_back() -> None:
    def kernel(x: Tensor, by: int) -> Tensor:
        return x * by

    x = runtime.tensor([1.0, 2.0])
    with pytest.raises(UnknownAttribute):
        compiled(asks_operator)
    library = runtime.Library("plugged", "DEF")
    library.define("scaled(Tensor x, int by) -> Tensor", kernel=kernel)
    kept = script(asks_operator)
    assert kept(x).tolist() == [3.0, 6.0]
    library.close()
    with pytest.raises(Exception, match="plugged::scaled"):
        kept(x)
    with runtime.Library("plugged", "DEF") as again:
        again.define("scaled(Tensor x, int by) -> Tensor", kernel=lambda x, by: -x)
        assert kept(x).tolist() == [-1.0, -2.0]


class Wrapper:
    """A class that a plug-in knows: its objects are constants of scripts."""

    def __init__(self, n: int) -> None:
        self.n = n


WRAPPED = Wrapper(4)


def asks_object(n: int) -> int:
    return n + WRAPPED  # type: ignore[operator]  # a script knows what it is


@pytest.mark.spec("script 0.4", "a symbol, a form, an operator of a plug-in")
def test_sugar_of_a_class_of_a_plug_in() -> None:
    class Number(Sugared):
        def __init__(self, wrapped: Wrapper) -> None:
            self.wrapped = wrapped

        def value(self, e: Emitter) -> Value:
            return e.constant(self.wrapped.n)

    with register_sugar(Wrapper, Number):
        assert script(asks_object)(3) == 7
    with pytest.raises(
        IllTyped,
        check=code("IllTyped"),
        match=r"_forms\.Wrapper means nothing",
    ):
        compiled(asks_object)
