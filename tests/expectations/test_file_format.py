"""The layout of an expect file, whole; whatever happens to one is one error."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everyorder.harness.base.errors import DamagedExpectFile
from everyorder.harness.expectations import Digest, Document, Key, parse, render
from tests.expectations.samples import PAIR, document, documents

WHOLE = """\
everyorder expect file, format 3
scenario: scenarios/test_demo/pair
steps:
  1  one()
  2  two()
entries: 4 states, 0 failing transitions

== {} ==
state: nothing

== {1} ==
state:
  name: demo::f
  CPU: one
calls: one

== {2} ==
same as {1}

== {1 2} ==
state:
  one
  two
"""

PINNED = """\
everyorder expect file, format 3
scenario: scenarios/test_demo/pair
steps:
  1  one()
  2  two()
uses:
  1  call()
pinned: the newest wins
entries: 2 states, 2 failing transitions

== {1} + 2 fails ==

== 1 then 2 ==
state:
  name: demo::f
  CPU: one
calls: one

== 2 then 1 ==
digest 00112233445566778899aabbccddeeff

== 2 then 1 + 1 fails ==
same as {1} + 2 fails
"""


def test_a_set_document() -> None:
    assert render(document()) == WHOLE
    assert parse(WHOLE) == document()


def test_a_pinned_document() -> None:
    pinned = document(
        uses=("call()",),
        pinned="the newest wins",
        entries=(
            (Key((0,), 1), ()),
            (Key((0, 1)), PAIR),
            (Key((1, 0)), Digest("00112233445566778899aabbccddeeff")),
            (Key((1, 0), 0), ()),
        ),
    )
    assert render(pinned) == PINNED
    assert parse(PINNED) == pinned


@given(documents())
def test_parse_and_render_are_inverse(value: Document) -> None:
    text = render(value)
    assert parse(text) == value
    assert all(line == line.rstrip() for line in text.split("\n"))


def damaged(old: str, new: str) -> str:
    assert WHOLE.count(old) >= 1, "the damage is done"
    return WHOLE.replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 1, "the file ends; expected 'everyorder expect file, format 3'"),
        ("\n", 1, "expected 'everyorder expect file, format 3'"),
        (damaged("format 3", "format 4"), 1, "only format 3 is known; was it written"),
        (damaged("format 3", "format 0"), 1, "only format 3 is known; was it written"),
        (damaged("every", "ever"), 1, "expected 'everyorder expect file, format"),
        (damaged("scenario: ", "scenario "), 2, "expected 'scenario: '"),
        (damaged("steps:", "steps: 2"), 3, "expected 'steps:'"),
        (damaged("  2  two", "  3  two"), 5, "expected number 2"),
        (damaged("two()", "\\two"), 5, "'\\t' is not an escape of an expect file"),
        (damaged("entries: ", "Entries: "), 6, "expected 'entries: '"),
        (damaged("4 states", "4 States"), 6, "expected 'N states, N failing trans"),
        (damaged("4 states", "04 states"), 6, "the file holds 4 states, 0 failing"),
        (damaged("4 states", "5 states"), 6, "the file holds 4 states, 0 failing"),
        (damaged("\n== {2} ==\nsame as {1}\n", ""), 6, "the file holds 3 states, 0 "),
        (
            damaged("\n\n== {} ==", "\n== {} =="),
            7,
            "expected an empty line before a h",
        ),
        (damaged("== {} ==", "== {} =="[:-1]), 8, "expected a heading, '== {1 2"),
        (damaged("== {} ==", "== {3} =="), 8, "the steps are numbered from 1 to 2"),
        (damaged("{} ==", "{2} =="), 11, "sections are sorted, and {2} is before"),
        (damaged("== {1} ==", "== {} =="), 11, "sections are sorted, and {} is befo"),
        (damaged("state: nothing", "state nothing"), 9, "expected 'title:' or "),
        (damaged("state: nothing", "state:nothing"), 9, "expected 'title:' or "),
        (damaged("state: nothing", "  state: x"), 9, "expected 'title:' or 'ti"),
        (
            damaged("state: nothing", "state: \\q"),
            9,
            "'\\q' is not an escape of an exp",
        ),
        (damaged("state: nothing", "state:"), 9, "the text under this title is mis"),
        (damaged("calls: one", "calls: 1\n  2"), 16, "a text on the line of its title"),
        (damaged("state: nothing", "digest 12"), 9, "a digest has 32 hexadecimal d"),
        (damaged("as {1}\n", "as {1 2}\n"), 18, "no section before this one has thi"),
        (damaged("as {1}\n", "as one\n"), 18, "no section before this one has this "),
        (damaged("same as", "x same as"), 18, "no section before this one has this b"),
        (damaged("same as", "calls same as"), 18, "expected 'calls: one'"),
        (damaged("\n  CPU", "\n\n  CPU"), 15, "expected a heading, '== {1 2} ==' "),
        (damaged("CPU: one", "CPU: one "), 14, "expected '  CPU: one\\\\x20'"),
        (WHOLE.rstrip("\n"), 23, "the file does not end in a newline; it may have b"),
        (WHOLE + "\n", 25, "the file ends; expected a heading, '== {1 2} =='"),
        (WHOLE.replace("\n", "\r\n"), 1, "lines end in a carriage return; keep line "),
        (damaged("two()\n", "two()\nx\n"), 6, "expected 'entries: '"),
        (damaged("  one\n", "<<<<<<< mine\n"), 22, "a merge conflict is not resolved"),
    ],
)
def test_damage(text: str, line: int, reason: str) -> None:
    with pytest.raises(DamagedExpectFile) as caught:
        parse(text, "expect/x.txt")
    error = caught.value
    assert (error.line, error.reason[: len(reason)]) == (line, reason)
    lines = text.split("\n")
    assert error.found == (lines[line - 1] if line <= len(lines) else "")
    assert str(error).startswith(f"expect/x.txt:{line}: {reason}")


def test_the_error_says_what_to_do() -> None:
    with pytest.raises(DamagedExpectFile) as caught:
        parse(damaged("scenario: ", "scenary: "), "expect/a/b.txt")
    assert str(caught.value) == (
        "expect/a/b.txt:2: expected 'scenario: '; the line reads "
        "'scenary: scenarios/test_demo/pair'. Restore the file from version control, "
        "or accept what is observed now with --everyorder-update=all, which rewrites "
        "it."
    )


def test_a_file_of_an_older_format_says_what_to_do() -> None:
    with pytest.raises(DamagedExpectFile) as caught:
        parse(damaged("format 3", "format 1"), "expect/a/b.txt")
    assert caught.value.code == "OldExpectFile"
    assert str(caught.value) == (
        "expect/a/b.txt:1: this is not format 3; the line reads 'everyorder expect "
        "file, format 1'. Rewrite it with --everyorder-update=all, and review the "
        "difference in version control."
    )


OLD = WHOLE.replace("format 3", "format 2").replace(
    "entries: 4 states, 0 failing",
    "strategy: graph\nexplored: 4 states, 8 transitions, 0 failing",
)


def test_a_file_of_format_2_is_read_and_is_old() -> None:
    read = parse(OLD)
    assert read == document()
    assert (read.format, read.is_old) == (2, True)
    assert not parse(WHOLE).is_old
    assert render(read) == WHOLE


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ("strategy: graph\n", "", 6, "expected 'strategy: '"),
        ("8 transitions", "many", 7, "expected 'N states, N transitions, N failing"),
        ("8 transitions", "08 transitions", 7, "the file holds 4 states, 8 transit"),
        ("4 states", "5 states", 7, "the file holds 4 states, 8 transitions, 0 fail"),
        ("\n== {2} ==\nsame as {1}\n", "", 7, "the file holds 3 states, 8 transit"),
        ("CPU: one", "CPU: one ", 15, "expected '  CPU: one\\\\x20'"),
    ],
)
def test_a_file_of_format_2_is_read_as_strictly(
    old: str, new: str, line: int, reason: str
) -> None:
    assert old in OLD
    with pytest.raises(DamagedExpectFile) as caught:
        parse(OLD.replace(old, new, 1))
    assert (caught.value.line, caught.value.reason[: len(reason)]) == (line, reason)


SHARED = """\
everyorder expect file, format 3
scenario: scenarios/test_demo/pair
steps:
  1  one()
  2  two()
entries: 4 states, 0 failing transitions

== {} ==
state:
  a
  b
  c
calls:
  cpu | cuda: one
  meta: two

== {1} ==
state same as {}
calls:
  cpu | cuda: one
  meta: two
more: x

== {2} ==
state:
  a
  b
  d
calls:
  cpu: one
  cuda | meta: two

== {1 2} ==
state same as {2}
more: x
"""


def test_equal_parts_are_in_full_once_if_they_are_long() -> None:
    first, second = ("state", "a\nb\nc\n"), ("state", "a\nb\nd\n")
    calls = ("calls", "cpu: one\ncuda: one\nmeta: two\n")
    value = document(
        entries=(
            (Key(()), (first, calls)),
            (Key((0,)), (first, calls, ("more", "x"))),
            (Key((1,)), (second, ("calls", "cpu: one\ncuda: two\nmeta: two\n"))),
            (Key((0, 1)), (second, ("more", "x"))),
        )
    )
    assert render(value) == SHARED
    assert parse(SHARED) == value


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ("as {2}", "as {1}", 34, "expected 'state same as {}'"),
        ("as {2}", "as {1 2}", 34, "no section before this one has this body or"),
    ],
)
def test_damaged_references_and_rows(
    old: str, new: str, line: int, reason: str
) -> None:
    with pytest.raises(DamagedExpectFile) as caught:
        parse(SHARED.replace(old, new, 1))
    assert (caught.value.line, caught.value.reason[: len(reason)]) == (line, reason)


def test_rows_that_are_not_joined_are_not_the_layout() -> None:
    with pytest.raises(DamagedExpectFile, match=r"expected '  cpu \| cuda: one'"):
        parse(SHARED.replace("cpu | cuda: one", "cpu: one\n  cuda: one"))


def test_a_body_written_twice_is_not_the_layout() -> None:
    body = "state:\n  name: demo::f\n  CPU: one\ncalls: one\n"
    with pytest.raises(DamagedExpectFile, match=r"expected 'same as \{1\}'"):
        parse(damaged("same as {1}\n", body))


@settings(max_examples=300)
@given(documents(), st.randoms(use_true_random=False))
def test_fuzz(value: Document, chance: random.Random) -> None:
    text = list(render(value))
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(text))
        piece = chance.choice(["", "\n", " ", ":", "\\", "=", "{", "1", "\r", text[at]])
        text[at : at + chance.randint(0, 3)] = piece
        if not text:
            break
    damage = "".join(text)
    try:
        read = parse(damage)
    except DamagedExpectFile as error:
        written, line = damage, error.line
    else:
        written, line = render(read), 1
    assert written == damage
    assert 1 <= line <= damage.count("\n") + 2


@pytest.mark.parametrize(
    "title", ["<<<<<<<", ">>>>>>>", "|||||||", "=======", "<<<<<<< x", "||||||| x"]
)
def test_a_title_may_look_like_a_conflict(title: str) -> None:
    """Neither the title of a part nor a reference to that part is read as a mark."""
    part = (title, "1\n2\n3\n4\n5\n6\n")
    value = document(
        entries=(
            (Key(()), ((title, "x"),)),
            (Key((0,)), (part,)),
            (Key((1,)), (part, ("more", "x"))),
        )
    )
    text = render(value)
    assert text.count(" same as {1}\n") == 1
    assert parse(text) == value
