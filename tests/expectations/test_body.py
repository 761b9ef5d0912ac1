"""Bodies become lines and come back; digests follow the lines."""

from hypothesis import given

from harness.expectations.document import (
    Body,
    Digest,
    body_of,
    digest_of,
    lines_of,
    pairs_of,
    same,
)
from tests.expectations.samples import BODIES

DIGITS = "0123456789abcdef" * 2


def test_pairs_stay_as_they_are_and_the_rest_gets_a_title() -> None:
    assert pairs_of((("a", "b"), ("c", "d"))) == (("a", "b"), ("c", "d"))
    assert pairs_of(()) == ()
    assert pairs_of("text\n") == (("observation", "text\n"),)
    assert pairs_of((("a", 1),)) == (("observation", "(('a', 1),)"),)
    assert pairs_of((("a", "b", "c"),)) == (("observation", "(('a', 'b', 'c'),)"),)
    assert pairs_of(("ab",)) == (("observation", "('ab',)"),)


def test_lines() -> None:
    body = (
        ("state", "name: f\n\n  CPU\n"),
        ("answer", "42"),
        ("nothing", ""),
        ("cut", "a\nb"),
        ("a: b", "c: d"),
        (" == x", "y"),
        ("== {} ==", "z"),
        ("", "untitled"),
    )
    lines = [
        "state:",
        "  name: f",
        r"  \e",
        "    CPU",
        "answer: 42",
        r"nothing: \e",
        "cut:",
        "  a",
        "  b\\",
        r"a\x3a b: c: d",
        r"\x20== x: y",
        r"\x3d= {} ==: z",
        r"\e: untitled",
    ]
    assert lines_of(body) == lines
    assert body_of(lines) == body


@given(BODIES)
def test_no_body_is_lost(body: Body) -> None:
    assert body_of(lines_of(body)) == body


def test_digest() -> None:
    body = (("state", "one\n"),)
    digest = Digest("66acb343a78591dd4cb8d32cae921bdf")
    assert digest_of(body) == digest
    assert digest_of(body) != digest_of((("state", "one"),))
    assert digest_of(digest) is digest
    assert lines_of(Digest(DIGITS)) == [f"digest {DIGITS}"]
    assert body_of([f"digest {DIGITS}"]) == Digest(DIGITS)


def test_a_digest_agrees_with_its_body() -> None:
    body = (("state", "one\n"),)
    assert same(body, digest_of(body))
    assert same(digest_of(body), body)
    assert same(body, (("state", "one\n"),))
    assert not same(digest_of(body), Digest(DIGITS))
    assert not same((), digest_of(body))
