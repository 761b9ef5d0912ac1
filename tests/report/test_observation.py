from collections.abc import Hashable
from typing import NamedTuple

import pytest

from everyorder.harness.report.observation import (
    MOST_CHARACTERS,
    MOST_LINES,
    Divergence,
    difference,
    divergence,
    law_text,
    readable_lines,
    sections,
)


class Seen(NamedTuple):
    state: str
    probes: tuple[int, ...]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((("state", "a"), ("table", "")), (("state", "a"), ("table", ""))),
        ("plain", (("", "plain"),)),
        (Seen("a\n", (1, 2)), (("state", "a\n"), ("probes", "(1, 2)"))),
        ((), (("", "()"),)),
        ((("state", 1),), (("", "(('state', 1),)"),)),
        (frozenset({1}), (("", "frozenset({1})"),)),
    ],
)
def test_sections(value: object, expected: object) -> None:
    assert sections(value) == expected


def test_divergence_is_the_first_section_that_differs() -> None:
    expected = (("state", "same"), ("table", "a\nb\nc\nd\ne"), ("calls", "x"))
    found = (("state", "same"), ("table", "a\nb\nc\nD\ne"), ("calls", "y"))
    lines = ("@@ -2,4 +2,4 @@", " b", " c", "-d", "+D", " e")
    assert divergence(expected, found) == Divergence("table", lines)


def test_divergence_of_a_section_that_only_one_has() -> None:
    found = (("state", "a"), ("holders", "b"))
    lines = ("@@ -0,0 +1 @@", "+b")
    assert divergence((("state", "a"),), found) == Divergence("holders", lines)


ERROR = (("error", "KeyError"), ("text", "'a'"))


@pytest.mark.parametrize(
    ("expected", "found", "title", "lines"),
    [
        # An answer on one side and an error on the other: both whole.
        (-3, ERROR, "", ("--3", "+error: KeyError", "+text: 'a'")),
        ("a\nb", ERROR, "", ("-a", "-b", "+error: KeyError", "+text: 'a'")),
        (("raised", ERROR), 1, "", ("-error: KeyError", "-text: 'a'", "+1")),
        ("", ERROR, "", ("-", "+error: KeyError", "+text: 'a'")),
        # Two errors: what differs of them.
        (ERROR, (("error", "KeyError"), ("text", "'b'")), "text", ("-'a'", "+'b'")),
        # What reads alike is told apart by its quotes, and only that.
        (3, "3", "", ("-3", "+'3'")),
        ("True", True, "", ("-'True'", "+True")),
        ("3", 4, "", ("-3", "+4")),
    ],
)
def test_divergence_of_two_kinds(
    expected: Hashable, found: Hashable, title: str, lines: tuple[str, ...]
) -> None:
    told = divergence(expected, found)
    assert told is not None
    hunks = tuple(line for line in told.lines if not line.startswith("@@"))
    assert (told.title, hunks) == (title, lines)


def test_no_divergence() -> None:
    assert divergence("a", "a") is None
    assert difference("a", "a") == ()


@pytest.mark.parametrize(
    ("law", "text"),
    [
        ((("law", "one"), ("where", "here")), "law: one\nwhere: here"),
        (("one", "here"), "one: here"),
        ("one", "one"),
        ((1, 2), "(1, 2)"),
    ],
)
def test_law_text(law: object, text: str) -> None:
    assert law_text(law) == text


def test_lines_that_can_be_read_stay_as_they_are() -> None:
    lines = ["-a", "+" + "b" * (MOST_CHARACTERS - 1), " c"]
    assert readable_lines(lines) == lines
    assert readable_lines(lines, 2) == [*lines[:2], "... and 1 more lines"]
    many = [str(number) for number in range(3_000)]
    assert readable_lines(many) == [*many[:MOST_LINES], "... and 2,960 more lines"]


def test_a_very_long_line_is_shown_where_it_begins_to_differ() -> None:
    """Megabytes were printed, and the difference stood at their end."""
    same, half = "y" * 3_000_000, "y" * (MOST_CHARACTERS // 2)
    assert readable_lines([f"-{same}ab", f"+{same}ba", " end"]) == [
        f"-(2,999,602 characters) ...{half}{half[:-2]}ab",
        f"+(2,999,602 characters) ...{half}{half[:-2]}ba",
        " end",
    ]
    rest = "... and 2,999,801 more characters"
    assert readable_lines([f"-{same}a{same}", f"+{same}b{same}"]) == [
        f"-(2,999,800 characters) ...{half}a{half[1:]}{rest}",
        f"+(2,999,800 characters) ...{half}b{half[1:]}{rest}",
    ]
    assert readable_lines([same]) == [half * 2 + "... and 2,999,600 more characters"]


def test_long_lines_of_a_diff_are_shown_beside_their_like() -> None:
    long = "x" * 1_000
    shown = readable_lines(
        ["-1", f"-{long}a", "+1", f"+{long}b", f"-{long}", " ", f"+{long}"]
    )
    cut = "(601 characters) ..." + "x" * 399
    assert shown[1:4:2] == [f"-{cut}a", f"+{cut}b"]
    # What stands alone differs from its beginning on.
    alone = "x" * 399 + "... and 601 more characters"
    assert (shown[4], shown[6]) == (f"-{alone}", f"+{alone}")
