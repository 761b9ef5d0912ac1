"""Values in words: short, on one line, the same in every process."""

import pytest

from runtime.schema.calls import described, shortened, written_call


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
    assert described(value) == words


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
