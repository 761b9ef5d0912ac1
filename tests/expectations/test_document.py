"""What of a report is expected, and how keys and texts are written."""

from itertools import combinations

import pytest
from hypothesis import given

from everyorder.harness.engine import State
from everyorder.harness.expectations import (
    Body,
    Digest,
    Document,
    Key,
    compare,
    document_of,
    key_of,
    parse,
    render,
)
from everyorder.harness.expectations.document import (
    block,
    body_of,
    digest_of,
    escape,
    lines_of,
    pairs_of,
    references_to,
    same,
    unblock,
    unescape,
    written_lines,
)
from tests.expectations.samples import BODIES, TEXTS, report


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("", r"\e"),
        ("plain: text = é 漢", "plain: text = é 漢"),
        ("a\\b", r"a\\b"),
        ("a\nb", r"a\nb"),
        ("tab\tinside", "tab\tinside"),
        ("tab at the end\t", r"tab at the end\x09"),
        ("two blanks  ", r"two blanks \x20"),
        ("\r\x00\x1b\x7f", r"\x0d\x00\x1b\x7f"),
        ("a\u2028b\u202e\ufeff", r"a\u2028b\u202e\ufeff"),
        ("a\u3000", r"a\u3000"),
        ("\ud800", r"\ud800"),
        (r"\e", r"\\e"),
    ],
)
def test_escape(text: str, written: str) -> None:
    assert escape(text) == written
    assert unescape(written) == text


def test_a_character_beyond_the_basic_plane_can_be_written_by_number() -> None:
    assert unescape(r"\U0001f600") == "\U0001f600"


@pytest.mark.parametrize("written", [r"a\q", r"\x4", r"\u12", "end\\", r"x\e"])
def test_an_unknown_escape_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="is not an escape of an expect file"):
        unescape(written)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("\n", [r"\e"]),
        ("a\n", ["a"]),
        ("a\nb", ["a", "b\\"]),
        ("a\n\n", ["a", r"\e"]),
        ("a\\\n", ["a\\\\"]),
        ("a\n\\", ["a", "\\\\\\"]),
        ("\n\nx", [r"\e", r"\e", "x\\"]),
    ],
)
def test_block(text: str, lines: list[str]) -> None:
    assert block(text) == lines
    assert unblock(lines) == text


@given(TEXTS)
def test_no_text_is_lost(text: str) -> None:
    assert unescape(escape(text)) == text
    assert unblock(block(text + "\n")) == text + "\n"
    lines = block("x\n" + text)
    assert unblock(lines) == "x\n" + text
    for line in (*lines, escape(text)):
        assert line == line.rstrip() != ""
        assert line.splitlines() == [line]
        assert line.encode().decode() == line


KEYS = [
    (Key(()), False, "{}"),
    (Key((0, 2)), False, "{1 3}"),
    (Key((0,), 1), False, "{1} + 2 fails"),
    # The undo of an active step was refused.
    (Key((0, 2), 2), False, "{1 3} + 3 fails"),
    (Key((2, 0), 2), True, "3 then 1 + 3 fails"),
    (Key(()), True, "{}"),
    (Key((), 4), True, "{} + 5 fails"),
    (Key((2,)), True, "{3}"),
    (Key((2, 0)), True, "3 then 1"),
    (Key((2, 0), 1), True, "3 then 1 + 2 fails"),
]


@pytest.mark.parametrize(("key", "ordered", "text"), KEYS)
def test_text(key: Key, ordered: bool, text: str) -> None:
    assert key.text(ordered=ordered) == text
    assert key_of(text, ordered=ordered) == key


@pytest.mark.parametrize(
    ("text", "ordered"),
    [
        ("", False),
        ("{3 1}", False),
        ("{1 1}", False),
        ("{01}", False),
        ("{1  3}", False),
        ("{1} + 02 fails", False),
        ("{1} fails", False),
        ("1 then 3", False),
        ("{1 3}", True),
        ("3", True),
        ("1 then 1", True),
        ("{" + "9" * 5000 + "}", False),
        ("{\u0661}", False),
    ],
)
def test_no_key_is_written_so(text: str, ordered: bool) -> None:
    assert key_of(text, ordered=ordered) is None


def test_order() -> None:
    keys = [Key((0, 1)), Key((1,)), Key((0,), 1), Key(()), Key((0,)), Key((), 0)]
    names = [k.text(ordered=False) for k in sorted(keys, key=lambda key: key.rank)]
    assert names == ["{}", "{} + 1 fails", "{1}", "{1} + 2 fails", "{2}", "{1 2}"]


def test_corners() -> None:
    states = [(), (3,), (1, 2), (0, 1, 2), (0, 1, 2, 3), (3, 2, 1, 0)]
    corners = [state for state in states if Key(state).is_corner(4)]
    assert corners == [(), (3,), (1, 2), (0, 1, 2, 3)]


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
    assert body_of(lines, {}) == body


@given(BODIES)
def test_no_body_is_lost(body: Body) -> None:
    written = (
        lines_of(body) if isinstance(body, Digest) else written_lines(body, "{}", {})
    )
    assert body_of(written, {}) == body


ROWS = (
    ("calls", "cpu: one: 1\ncuda: one: 1\nmeta: one: 2\n  cpu: two\n  cuda: two\n"),
    ("calls", "a | b: x\n|: x\nc|d: x\nc: x"),
    ("state", "plain\nplain\ncpu: one: 1\n"),
    ("state", "a: x\n: b: x\nc:: x\n:: x\nd: x\n"),
)


def test_neighbours_with_equal_texts_are_one_row() -> None:
    lines = [
        "calls:",
        "  cpu | cuda: one: 1",
        "  meta: one: 2",
        "    cpu: two",
        "    cuda: two",
        "calls:",
        r"  a \x7c b | \x7c | c|d: x",
        "  c: x\\",
        "state:",
        "  plain",
        "  plain",
        "  cpu: one: 1",
        *("state:", "  a: x", "  : b: x", "  c:: x", "  :: x", "  d: x"),
    ]
    assert written_lines(ROWS, "{}", {}) == lines
    assert body_of(lines, {}) == ROWS


def test_the_names_of_a_row_end_within_88_columns() -> None:
    names = [f"{number:019}" for number in range(6)]
    body = (("calls", "".join(f"{name}: {'x' * 99}\n" for name in names)),)
    rows = [" | ".join(names[:4]), " | ".join(names[4:])]
    lines = ["calls:", *(f"  {row}: {'x' * 99}" for row in rows)]
    assert lines[1].index(":") == 87
    assert written_lines(body, "{}", {}) == lines
    assert body_of(lines, {}) == body


def test_a_part_of_four_lines_refers_to_an_equal_part() -> None:
    long, short = ("state of f", "1\n2\n3\n"), ("calls", "1\n2\n")
    second = ("calls", "1\n2\n3\n")
    first_lines = ["state of f:", "  1", "  2", "  3", "calls:", "  1", "  2"]
    second_lines = ["calls:", "  1", "  2", "  3"]
    earlier: dict[tuple[str, str], list[str]] = {}
    body = (long, short, second)
    assert written_lines(body, "{1}", earlier) == first_lines + second_lines
    # `calls same as {1}` would name the first part with that title.
    lines = ["state of f same as {1}", "calls:", "  1", "  2", *second_lines]
    assert written_lines(body, "{2}", earlier) == lines
    references = references_to(body, "{1}")
    assert references == {
        long: "state of f same as {1}",
        short: "calls same as {1}",
    }
    parts = {line: part for part, line in references.items()}
    assert body_of(lines, parts) == body


def test_digests_do_not_depend_on_rows() -> None:
    plain = (("calls", "cpu: one\ncuda: one\n"),)
    assert written_lines(plain, "{}", {}) == ["calls:", "  cpu | cuda: one"]
    assert digest_of(plain) != digest_of((("calls", "cpu | cuda: one\n"),))
    assert digest_of(plain) == Digest("d15ad40e5e37f32381ff093663555343")


def test_digest() -> None:
    body = (("state", "one\n"),)
    digest = Digest("66acb343a78591dd4cb8d32cae921bdf")
    assert digest_of(body) == digest
    assert digest_of(body) != digest_of((("state", "one"),))
    assert digest_of(digest) is digest
    assert lines_of(Digest(DIGITS)) == [f"digest {DIGITS}"]
    assert body_of([f"digest {DIGITS}"], {}) == Digest(DIGITS)


def test_a_digest_agrees_with_its_body() -> None:
    body = (("state", "one\n"),)
    assert same(body, digest_of(body))
    assert same(digest_of(body), body)
    assert same(body, (("state", "one\n"),))
    assert not same(digest_of(body), Digest(DIGITS))
    assert not same((), digest_of(body))


def test_a_report_becomes_a_document() -> None:
    found = report(
        {(1,): (("state", "two"),), (): "nothing"},
        {((1,), 0): (("error", "Refused"),)},
        pinned="the newest wins",
    )
    assert document_of(found) == Document(
        scenario="scenarios/test_demo/pair",
        steps=('impl("demo::f", k1)', 'impl("demo::f", k2)'),
        uses=('call("demo::f", "cpu")',),
        pinned="the newest wins",
        entries=(
            (Key(()), (("observation", "nothing"),)),
            (Key((1,)), (("state", "two"),)),
            (Key((1,), 0), (("error", "Refused"),)),
        ),
    )
    assert document_of(found).ordered
    assert document_of(found).size == "2 states, 1 failing transition"


HELD = (("error", "Held"), ("text", "by step 1"))


def test_another_strategy_or_engine_that_observes_the_same_writes_the_same() -> None:
    one = document_of(report({(): "nothing"}, strategy="walk:2", transitions=8))
    found = report(
        {(): "nothing"}, strategy="graph+stale", transitions=90, unproven=("graph",)
    )
    assert render(document_of(found)) == render(one)
    assert compare(one, found).passed


def test_a_refused_undo_stands_at_the_state_that_stays() -> None:
    found = report(
        {(): "a", (0,): "b", (0, 2): "c"},
        {((0,), 1): (("error", "Refused"),)},
        refusals={((0, 2), 2): HELD, ((0, 2), 0): HELD},
        steps=3,
    )
    document = document_of(found)
    assert [key.text(ordered=False) for key, _ in document.entries] == [
        *("{}", "{1}", "{1} + 2 fails", "{1 3}", "{1 3} + 1 fails", "{1 3} + 3 fails"),
    ]
    assert dict(document.entries)[Key((0, 2), 2)] == HELD
    assert document.size == "3 states, 3 failing transitions"
    text = render(document)
    assert "\n== {1 3} + 3 fails ==\nsame as {1 3} + 1 fails\n" in text
    assert parse(text) == document


PAIRS_TEXT = """\
everyorder expect file, format 3
scenario: scenarios/test_demo/pair
steps:
  1  impl("demo::f", k1)
  2  impl("demo::f", k2)
  3  impl("demo::f", k3)
uses:
  1  call("demo::f", "cpu")
pinned: the order of impl("demo::f", k1) and impl("demo::f", k3)
entries: 7 states, 1 failing transition

== {} ==
state: nothing

== {1} ==
state: one

== {3} ==
same as {1}

== 1 then 2 ==
state: two

== 1 then 3 ==
state: one first

== 3 then 1 ==
state: three first

== 3 then 1 + 3 fails ==
error: Held
text: by step 1

== 2 then 3 then 1 ==
same as 3 then 1
"""


def test_pinned_pairs_are_named_and_tell_states_apart() -> None:
    bodies = {
        (): "nothing",
        (0,): "one",
        (2,): "one",
        (0, 1): "two",
        (0, 2): "one first",
        (2, 0): "three first",
        (1, 2, 0): "three first",
    }
    found = report(
        {state: (("state", text),) for state, text in bodies.items()},
        refusals={((2, 0), 2): HELD},
        pairs=((0, 2),),
        steps=3,
    )
    document = document_of(found)
    assert document.ordered
    assert render(document) == PAIRS_TEXT
    assert parse(PAIRS_TEXT) == document
    assert compare(document, found).passed


def test_pins_that_change_are_a_changed_header() -> None:
    states = {(): "nothing", (0,): "one"}
    pinned = document_of(report(states, pinned="the newest wins"))
    one = document_of(report(states, pairs=((0, 1),)))
    plain = document_of(report(states))
    for old, new in ((plain, one), (one, plain), (pinned, one)):
        comparison = compare(old, new)
        assert comparison.fields == ("pinned",)
        assert not comparison.divisible
    assert compare(one, one).passed


def test_above_256_states_only_the_corners_are_kept_in_full() -> None:
    states = {
        state: (("state", f"{state}"),)
        for size in range(10)
        for state in combinations(range(9), size)
    }
    failures: dict[tuple[State, int], Body] = {((0, 1, 2), 3): (("error", "Refused"),)}
    found = document_of(report(states, failures, steps=9))
    bodies = dict(found.entries)
    full = [key for key, body in found.entries if not isinstance(body, Digest)]
    assert len(full) == 1 + 9 + 36 + 1
    assert bodies[Key((0, 1, 2))] == digest_of(states[0, 1, 2])
    assert bodies[Key((0, 1, 2), 3)] == digest_of((("error", "Refused"),))
    assert bodies[Key(tuple(range(9)))] == states[tuple(range(9))]

    eight = {state: body for state, body in states.items() if 8 not in state}
    assert not any(
        isinstance(body, Digest)
        for _, body in document_of(report(eight, steps=8)).entries
    )
