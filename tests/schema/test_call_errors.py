"""Calls and values in words, and Python functions that refuse calls as operators do."""

from typing import Any

import pytest

from everyorder.runtime.errors.call import CallError
from everyorder.runtime.schema.call_errors import (
    checked,
    describe_value,
    shortened,
    written_call,
)
from tests.coded import code, coded


class Duck:
    key_bits = 0


class Broken:
    def __repr__(self) -> str:
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "None"),
        (1, "an int"),
        ("x", "a str"),
        ([], "a list"),
        ([1, "x", 2], "a list of int and str"),
        ((1.5,), "a tuple of float"),
        (Duck(), "a Duck"),
        ({"a": 1}, "a dict"),
    ],
)
def test_described(value: object, words: str) -> None:
    assert describe_value(value) == words


def test_shortened_is_one_short_line_without_addresses() -> None:
    assert shortened("x") == "'x'"
    assert shortened(object()) == "<object object>"
    assert shortened(Broken()) == "<Broken whose repr raises ZeroDivisionError>"
    assert shortened(list(range(40))) == (
        "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16..."
    )
    assert len(shortened("x" * 1000)) == 60
    assert shortened("x" * 1000, 10) == "'xxxxxx..."
    assert shortened(type("Lines", (), {"__repr__": lambda _: "a\n  b"})()) == "a b"


def test_a_written_call_names_tensors_by_class() -> None:
    text = written_call(
        "t::f", (Duck(), [Duck(), None], [1]), {"k": "x", "out": Duck()}
    )
    assert text == "t::f(<Duck>, [<Duck>, None], [1], k='x', out=<Duck>)"
    assert written_call("t::f", (), {}) == "t::f()"


DuplicateArgument = coded(CallError, "DuplicateArgument")
MissingArgument = coded(CallError, "MissingArgument")
TooManyArguments = coded(CallError, "TooManyArguments")
UnknownArgument = coded(CallError, "UnknownArgument")


@checked
def scaled(x: int, factor: int = 2, *, minus: int = 0) -> int:
    """Scaled."""
    return x * factor - minus


@checked
def gathered(*sizes: int, **options: Any) -> Any:
    return sizes, options


@pytest.mark.parametrize(
    ("args", "kwargs", "kind", "message"),
    [
        (
            (3,),
            {"minuss": 1},
            UnknownArgument,
            "`scaled` has no argument `minuss`.\n"
            "  call:   scaled(3, minuss=1)\n"
            "  schema: scaled(x, factor=2, *, minus=0)\n"
            "  near:   minus",
        ),
        (
            (3, 2, 1),
            {},
            TooManyArguments,
            "`scaled` takes at most 2 positional arguments, but 3 were given.\n"
            "  call:    scaled(3, 2, 1)\n"
            "  schema:  scaled(x, factor=2, *, minus=0)\n"
            "  by name: minus",
        ),
        (
            (),
            {"factor": 1},
            MissingArgument,
            "`scaled` was called without `x`, which has no default.\n"
            "  call:   scaled(factor=1)\n"
            "  schema: scaled(x, factor=2, *, minus=0)",
        ),
        (
            (3, 2),
            {"x": 1},
            DuplicateArgument,
            "`scaled` got `x` twice: as positional argument 1 and by name.\n"
            "  call:   scaled(3, 2, x=1)\n"
            "  schema: scaled(x, factor=2, *, minus=0)",
        ),
    ],
)
def test_what_does_not_fit(
    args: tuple[Any, ...], kwargs: dict[str, Any], kind: type[CallError], message: str
) -> None:
    with pytest.raises(kind) as caught:
        scaled(*args, **kwargs)
    assert str(caught.value) == message
    assert caught.value.__suppress_context__


def test_what_fits() -> None:
    assert scaled(3) == 6
    assert scaled(x=3, factor=4, minus=1) == 11
    assert gathered(1, 2, more=3) == ((1, 2), {"more": 3})
    assert (scaled.__name__, scaled.__doc__) == ("scaled", "Scaled.")


def test_an_error_of_the_function_itself_is_its_own() -> None:
    @checked
    def broken(x: Any) -> Any:
        nothing: tuple[Any, ...] = ()
        return scaled(*nothing) if x else len(x)

    with pytest.raises(TypeError, match="has no len"):
        broken(0)
    with pytest.raises(CallError, check=code("MissingArgument")) as caught:
        broken(1)
    assert caught.value.operator == "scaled"
