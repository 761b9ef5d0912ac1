"""Strings: slices, positions, splitting and formatting of any text."""

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everyorder.runtime.errors.script import RunningError
from everyorder.runtime.errors.tensor import ArithmeticRefused
from everyorder.runtime.schema.types import StrType
from everyorder.runtime.script.primitives import (
    by_function,
    by_method,
    by_name,
    by_operator,
)
from tests.coded import code, coded
from tests.script.primitives.trial import canonical, outcome, perform

AttributeInFormat = coded(RunningError, "AttributeInFormat")

TEXTS = st.text(alphabet="ab \t\n,.{}%sd0é😀ß", max_size=8)
PLACES = st.one_of(st.none(), st.integers(-10, 10))
METHODS_OF_TEXT = (
    *("capitalize", "casefold", "isalnum", "isalpha", "isascii", "isdecimal"),
    *("isdigit", "isidentifier", "islower", "isnumeric", "isprintable", "isspace"),
    *("istitle", "isupper", "lower", "lstrip", "rsplit", "rstrip", "split"),
    *("splitlines", "strip", "swapcase", "title", "upper", "expandtabs"),
)
METHODS_OF_TWO = (
    *("count", "endswith", "find", "index", "lstrip", "partition", "removeprefix"),
    *("removesuffix", "rfind", "rindex", "rpartition", "rsplit", "rstrip", "split"),
    *("startswith", "strip"),
)


@given(TEXTS, st.sampled_from(METHODS_OF_TEXT))
def test_methods_of_a_text(text: str, name: str) -> None:
    wanted = outcome(getattr(text, name))
    assert outcome(lambda: perform(by_method(name, StrType), text)) == wanted


@given(TEXTS, TEXTS, st.sampled_from(METHODS_OF_TWO))
def test_methods_of_two_texts(text: str, other: str, name: str) -> None:
    wanted = outcome(lambda: getattr(text, name)(other))
    assert outcome(lambda: perform(by_method(name, StrType), text, other)) == wanted


@given(TEXTS, PLACES, PLACES, PLACES)
def test_slices(text: str, start: Any, stop: Any, step: Any) -> None:
    row = by_name("script::slice.str")
    assert row is not None
    came = outcome(lambda: row.function(text, start, stop, step))
    assert came == outcome(lambda: text[start:stop:step])


@given(TEXTS, st.integers(-10, 10))
def test_characters(text: str, index: int) -> None:
    came = outcome(lambda: perform(by_operator("[]"), text, index))
    assert came == outcome(lambda: text[index])


@given(TEXTS, TEXTS, PLACES, PLACES)
def test_search_between_places(text: str, part: str, start: Any, end: Any) -> None:
    for name in ("find", "rfind", "index", "rindex", "count", "startswith", "endswith"):
        row = by_name(f"script::{name}.str")
        assert row is not None
        came = outcome(partial(row.function, text, part, start, end))
        assert came == outcome(partial(getattr(text, name), part, start, end))


VALUES = st.one_of(st.integers(-99, 99), st.floats(), TEXTS, st.booleans(), st.none())


@given(TEXTS, st.lists(VALUES, max_size=3))
def test_formats(template: str, values: list[Any]) -> None:
    row = by_name("script::format.str")
    assert row is not None
    came = outcome(lambda: row.function(template, *values))
    if came.error is not AttributeInFormat:
        assert came == outcome(lambda: template.format(*values))
    percent = by_name("script::mod.str")
    assert percent is not None
    given_ = tuple(values)
    came = outcome(lambda: percent.function(template, given_))
    assert came == outcome(lambda: template % given_)


@pytest.mark.parametrize(
    ("template", "field"),
    [
        ("{0.real}", "0.real"),
        ("{.real}", ".real"),
        ("{0[a].b}", "0[a].b"),
        ("{:{0.real}}", "0.real"),
        ("{0.__class__.__init__.__globals__}", "0.__class__.__init__.__globals__"),
    ],
)
def test_a_format_looks_into_no_value(template: str, field: str) -> None:
    row = by_name("script::format.str")
    assert row is not None
    with pytest.raises(RunningError, check=code("AttributeInFormat")) as caught:
        row.function(template, 1)
    assert caught.value.field == field
    assert f"the field {{{field}}}" in " ".join(str(caught.value).split())


def test_an_f_string_is_its_pieces() -> None:
    x, name = 2.5, "é"
    pieces = [
        "x=",
        perform(by_function(format), x, ".2f"),
        perform(by_function(repr), name),
        perform(by_function(ascii), name),
        perform(by_function(str), x),
    ]
    joined = perform(by_method("join", StrType), "", pieces)
    assert joined == f"x={x:.2f}{name!r}{name!a}{x!s}"
    assert canonical(joined)[0] is str


@given(st.one_of(st.integers(-(10**20), 10**20).map(str), TEXTS))
def test_numbers_of_texts(text: str) -> None:
    for kind in (float, complex):
        came = outcome(partial(perform, by_function(kind), text))
        assert came == outcome(partial(kind, text))
    came = outcome(lambda: perform(by_function(int), text))
    wanted = outcome(lambda: int(text))
    if wanted.error is None and not -(2**63) <= int(text) < 2**63:
        assert came.error is coded(ArithmeticRefused, "IntegerOverflow")
    else:
        assert came == wanted
