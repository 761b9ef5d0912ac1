"""The boundary: how calls from Python are bound, converted and refused."""

from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime.errors.call import CallError
from everyorder.runtime.futures import Future, awaitable_nowait
from everyorder.runtime.script.executor import call
from everyorder.runtime.script.ir.program import Function
from tests.coded import coded
from tests.script.executor.written import written

DuplicateArgument = coded(CallError, "DuplicateArgument")
MissingArgument = coded(CallError, "MissingArgument")
TooManyArguments = coded(CallError, "TooManyArguments")
UnknownArgument = coded(CallError, "UnknownArgument")
WrongArgumentType = coded(CallError, "WrongArgumentType")


def same(type_: str) -> Function:
    return written(f"same({type_} x) -> {type_}", "  return (%x)\n")


@pytest.mark.spec("script 6.10", "conversions")
@pytest.mark.parametrize(
    ("type_", "given", "result"),
    [
        ("int", 3, 3),
        ("float", 3, 3.0),
        ("float", True, 1.0),
        ("complex", 2, 2 + 0j),
        ("Scalar", 2.5, 2.5),
        ("str", "a", "a"),
        ("bool", True, True),
        ("None", None, None),
        ("int?", None, None),
        ("float?", 2, 2.0),
        ("(int, float)", (1, 2), (1, 2.0)),
        ("(int, float)", [1, 2], (1, 2.0)),
        ("int[]", (1, 2), [1, 2]),
        ("Dict(str, int)", {"a": 1}, {"a": 1}),
        ("Union(int, str)", "a", "a"),
        ("Any", [1, "a"], [1, "a"]),
        ("Device", "cpu", runtime.device("cpu")),
        ("ScalarType", runtime.float32, runtime.float32),
        ("(int[])", ([1],), ([1],)),
    ],
)
def test_values_that_fit(type_: str, given: Any, result: Any) -> None:
    found = call(same(type_), (given,))
    assert (found, type(found)) == (result, type(result))


@pytest.mark.spec("script 6.10", "conversions")
@pytest.mark.parametrize(
    ("type_", "given"),
    [
        ("int", 1.0),
        ("int", "1"),
        ("str", 1),
        ("Tensor", None),
        ("Tensor", 1),
        ("int[]", [1, "a"]),
        ("float[]", [1, 2.0]),
        ("int[]", 1),
        ("Dict(str, int)", {"a": "b"}),
        ("Dict(str, float)", {"a": 1}),
        ("(int, int)", (1,)),
        ("(int, int)", (1, "a")),
        ("Union(int, str)", 1.0),
        ("Future(int)", 1),
        ("Await(int)", 1),
        ("int?", "a"),
    ],
)
def test_values_that_do_not_fit(type_: str, given: Any) -> None:
    with pytest.raises(WrongArgumentType):
        call(same(type_), (given,))


@pytest.mark.parametrize(
    ("type_", "given"),
    [
        ("int[]", [1, 2]),
        ("int[][]", [[1], []]),
        ("Dict(str, int[])", {"a": [1]}),
        ("(int[], int)", ([1], 2)),
        ("int[]?", [1]),
        ("Union(int[], str)", [1]),
        ("Any", [1]),
        ("Tensor", runtime.ones(1)),
        ("Future(int)", Future()),
        ("Await(int)", awaitable_nowait(1)),
        ("Function", len),
    ],
)
def test_lists_and_objects_are_the_callers_own(type_: str, given: Any) -> None:
    assert call(same(type_), (given,)) is given


def test_what_a_program_writes_to_a_list_is_seen() -> None:
    append = written(
        "append(int[] l, int n) -> int[]",
        "  script::append.t(%l, %n)\n  return (%l)\n",
    )
    mine = [1]
    assert call(append, (mine, 2)) is mine
    assert mine == [1, 2]


TWO = "two(int x, float y=2.5, *, str z='a') -> (int, float, str)"
LINES = """\
  %t : (int, float, str) = prim::TupleConstruct(%x, %y, %z)
  return (%t)
"""


@pytest.mark.spec("script 6.10", "calls that fit")
@pytest.mark.parametrize(
    ("args", "kwargs", "result"),
    [
        ((1,), {}, (1, 2.5, "a")),
        ((1, 2), {"z": "b"}, (1, 2.0, "b")),
        ((), {"y": 0, "x": 5}, (5, 0.0, "a")),
    ],
)
def test_calls_that_fit(args: Any, kwargs: Any, result: Any) -> None:
    assert call(written(TWO, LINES), args, kwargs) == result


@pytest.mark.spec("script 6.10", "too many, missing, twice, unknown, another type")
@pytest.mark.parametrize(
    ("args", "kwargs", "error", "text"),
    [
        (
            (1, 2.0, "a"),
            {},
            TooManyArguments,
            "`two` takes at most 2 positional arguments, but 3 were given.",
        ),
        (
            (),
            {},
            MissingArgument,
            "`two` was called without `x`, which has no default.",
        ),
        (
            (1,),
            {"x": 2},
            DuplicateArgument,
            "`two` got `x` twice: as positional argument 1 and by name.",
        ),
        ((1,), {"w": 2}, UnknownArgument, "`two` has no argument `w`"),
        (
            ("a",),
            {},
            WrongArgumentType,
            "Argument 1 of `two`, `x`, takes `int`, but was given a str.",
        ),
    ],
)
def test_calls_that_do_not_fit(
    args: Any, kwargs: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error) as caught:
        call(written(TWO, LINES), args, kwargs)
    told = " ".join(str(caught.value).split())
    assert "schema: two(int x, float y=2.5, *, str z='a')" in told.replace('"', "'")
    assert text in told


@pytest.mark.spec(
    "boundary", "a call that does not fit the schema is refused before anything runs"
)
def test_a_refused_call_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    show = written("show(int x) -> int", "  prim::Print(%x)\n  return (%x)\n")
    with pytest.raises(WrongArgumentType):
        call(show, ("a",))
    assert capsys.readouterr().out == ""
