"""What of a report is expected."""

from itertools import combinations

from harness.engine import State
from harness.expectations import (
    Body,
    Digest,
    Document,
    Key,
    compare,
    document_of,
    parse,
    render,
)
from harness.expectations.document import digest_of
from tests.expectations.samples import report


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
        strategy="graph",
        guarantee=("graph: any length", "walk:2: the last two"),
        transitions=8,
        entries=(
            (Key(()), (("observation", "nothing"),)),
            (Key((1,)), (("state", "two"),)),
            (Key((1,), 0), (("error", "Refused"),)),
        ),
    )
    assert document_of(found).ordered
    assert document_of(found).size == "2 states, 8 transitions, 1 failing transition"


HELD = (("error", "Held"), ("text", "by step 1"))


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
    assert document.size == "3 states, 8 transitions, 3 failing transitions"
    text = render(document)
    assert "\n== {1 3} + 3 fails ==\nsame as {1 3} + 1 fails\n" in text
    assert parse(text) == document


PAIRS_TEXT = """\
everyorder expect file, format 1
scenario: scenarios/test_demo/pair
steps:
  1  impl("demo::f", k1)
  2  impl("demo::f", k2)
  3  impl("demo::f", k3)
uses:
  1  call("demo::f", "cpu")
pinned: the order of impl("demo::f", k1) and impl("demo::f", k3)
strategy: graph
guarantee:
  1  graph: any length
  2  walk:2: the last two
explored: 7 states, 8 transitions, 1 failing transition

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
