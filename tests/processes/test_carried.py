"""Exceptions that were pickled: what they are, and how they are shown."""

import pickle
import traceback
from collections.abc import Callable

import pytest

from everyorder.harness.base.errors import CannotReplay
from everyorder.harness.pytest_plugin.scenario_child import rebuild_error, record_error


class Odd(Exception):
    """Its arguments do not make it again."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")
        self.one = one
        self.line = iter(lambda: 0, 1)  # no pickle takes its function


class Shown(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def crossed(error: BaseException) -> BaseException:
    """The exception on the other side."""
    return rebuild_error(pickle.loads(pickle.dumps(record_error(error))))


def caught(function: Callable[[], object]) -> BaseException:
    with pytest.raises(BaseException) as found:  # noqa: PT011  # whatever it is
        function()
    return found.value


def divide(by: int, *rest: object, **named: object) -> float:
    local = "seen"
    assert local
    return 1 / by


def multiline() -> object:
    return divide(
        0,
        "more",
        key=divide,
    )


@pytest.mark.parametrize(
    "error",
    [
        KeyError("x"),
        OSError(2, "No such file", "a.txt"),
        SystemExit(3),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
        CannotReplay(
            code="UnknownOperation", history=(1, 2), operation=9, operations=3
        ),
        StopIteration(4),
        KeyboardInterrupt(),
    ],
)
def test_well_known_ones(error: BaseException) -> None:
    found = crossed(error)
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert found.args == error.args
    for name in ("errno", "filename", "code", "object", "history", "value"):
        assert getattr(found, name, None) == getattr(error, name, None)


def test_one_that_its_arguments_do_not_make() -> None:
    found = crossed(Odd(1, 2))
    assert type(found) is Odd
    assert str(found) == "1 and 2"
    assert found.one == 1
    assert not hasattr(found, "line")


def test_one_of_a_class_that_nobody_can_import() -> None:
    class Local(LookupError):
        pass

    found = crossed(Local("here"))
    assert type(found).__name__ == "Local"
    assert isinstance(found, LookupError)
    assert str(found) == "here"
    assert traceback.format_exception_only(found)[0].endswith("Local: here\n")


def test_one_that_cannot_be_shown() -> None:
    found = crossed(Shown())
    assert str(found) == "<Shown that cannot be shown: RuntimeError>"


def test_its_traceback_is_printed_as_it_was() -> None:
    error = caught(multiline)
    found = crossed(error)
    assert error.__traceback__ is not None
    # The first frame is that of this helper, whose columns are another matter.
    before = traceback.format_tb(error.__traceback__)
    after = traceback.format_tb(found.__traceback__)
    assert after == before
    assert "in divide" in after[-1]


def test_its_variables_are_texts() -> None:
    found = crossed(caught(multiline))
    frames = [frame for frame, _ in traceback.walk_tb(found.__traceback__)]
    code, variables = frames[-1].f_code, frames[-1].f_locals
    assert code.co_name == "divide"
    assert frames[-1].f_globals["__name__"] == __name__
    assert code.co_varnames[: code.co_argcount] == ("by", "rest", "named")
    assert {name: repr(value) for name, value in variables.items()} == {
        "by": "0",
        "rest": "('more',)",
        "named": f"{{'key': {divide!r}}}",
        "local": "'seen'",
    }


def test_causes_contexts_and_notes() -> None:
    def chained() -> None:
        try:
            divide(0)
        except ZeroDivisionError as error:
            raise ValueError("outer") from error

    error = caught(chained)
    error.add_note("a note")
    found = crossed(error)
    assert traceback.format_exception(found) == traceback.format_exception(error)
    assert found.__notes__ == ["a note"]
    assert isinstance(found.__cause__, ZeroDivisionError)
    assert found.__suppress_context__


def test_a_ring_of_contexts_is_cut() -> None:
    one, two = ValueError("one"), ValueError("two")
    one.__context__, two.__context__ = two, one
    found = crossed(one)
    assert found.__context__ is not None
    assert found.__context__.__context__ is None


def test_a_group() -> None:
    def grouped() -> None:
        error = caught(multiline)
        assert isinstance(error, ZeroDivisionError)
        raise ExceptionGroup("several", [error, Odd(1, 2)])

    found = crossed(caught(grouped))
    assert isinstance(found, ExceptionGroup)
    assert found.message == "several"
    assert [type(each) for each in found.exceptions] == [ZeroDivisionError, Odd]
    assert found.exceptions[0].__traceback__ is not None


def test_the_outcomes_of_pytest() -> None:
    for function in (pytest.fail, pytest.skip):
        error = caught(lambda function=function: function("why"))  # type: ignore[misc]  # called at once
        found = crossed(error)
        assert type(found) is type(error)
        assert str(found) == "why"
