"""What differs from what is expected, as data and in words."""

from dataclasses import replace
from itertools import combinations

import pytest

from everyorder.harness.expectations import (
    Comparison,
    Document,
    Key,
    accept,
    compare,
    document_of,
    explain,
    parse,
    render,
)
from everyorder.harness.expectations.document import Body, digest_of
from tests.expectations.samples import PAIR, document, report

NONE, ONE, TWO, BOTH = Key(()), Key((0,)), Key((1,)), Key((0, 1))
OTHER = (("state", "other\n"),)


def entries(*changes: tuple[Key, object], without: tuple[Key, ...] = ()) -> Document:
    bodies = {k: b for k, b in document().entries if k not in without}
    bodies.update(changes)  # type: ignore[arg-type]  # bodies are written as such
    return document(
        entries=tuple(sorted(bodies.items(), key=lambda entry: entry[0].rank))
    )


def test_as_expected() -> None:
    comparison = compare(document(), document())
    assert comparison == Comparison(document(), document(), (), (), (), (), 4)
    assert comparison.verdict == "unchanged"
    assert comparison.passed
    assert not comparison.only_new


def test_nothing_is_expected() -> None:
    found = report({(): "nothing", (0,): "one"})
    comparison = compare(None, found)
    assert comparison == Comparison(
        None, document_of(found), (), (NONE, ONE), (), (), 0
    )
    assert comparison.verdict == "missing"
    assert comparison.only_new
    assert not comparison.divisible


def test_three_verdicts_at_once() -> None:
    old = entries(without=(BOTH,))
    new = entries((ONE, OTHER), without=(TWO,))
    comparison = compare(old, new)
    assert comparison.missing == (BOTH,)
    assert comparison.changed == (ONE,)
    assert comparison.stale == (TWO,)
    assert comparison.unchanged == 1
    assert comparison.fields == ()
    assert comparison.verdict == "changed"
    assert not comparison.passed


@pytest.mark.parametrize(
    ("new", "verdict", "only_new"),
    [
        (entries((ONE, OTHER)), "changed", False),
        (entries((Key((0,), 1), OTHER)), "missing", True),
        (entries(without=(BOTH,)), "stale", False),
        (document(uses=("call()",)), "changed", False),
        (document(pinned="the newest wins"), "changed", False),
        (document(scenario="moved"), "changed", False),
    ],
)
def test_verdict(new: Document, verdict: str, only_new: bool) -> None:
    comparison = compare(document(), new)
    assert comparison.verdict == verdict
    assert comparison.only_new is only_new


def test_a_fourth_step_only_adds_but_another_first_step_does_not() -> None:
    grown = replace(entries((Key((2,)), OTHER)), steps=("one()", "two()", "three()"))
    assert compare(document(), grown).only_new
    assert compare(document(), grown).fields == ("steps",)
    moved = replace(grown, steps=("zero()", "one()", "two()"))
    assert not compare(document(), moved).only_new
    assert not compare(document(), moved).divisible


def test_a_run_that_may_reach_less_reports_no_stale_entries() -> None:
    less = entries(without=(BOTH,))
    assert compare(document(), less).stale == (BOTH,)
    assert compare(document(), less, partial=True).passed
    assert not compare(document(), entries((ONE, OTHER)), partial=True).passed


def test_an_older_format_is_as_expected_and_is_told() -> None:
    comparison = compare(document(format=2), document())
    assert comparison.passed
    assert comparison.is_old
    assert not accept(comparison, frozenset()).is_old
    assert not compare(document(), document()).is_old


def test_a_digest_agrees_with_the_body_in_full() -> None:
    assert compare(entries((ONE, digest_of(PAIR))), document()).passed
    assert compare(document(), entries((ONE, digest_of(OTHER)))).changed == (ONE,)


def test_accept_everything() -> None:
    new = entries((ONE, OTHER), without=(TWO,))
    assert accept(compare(document(), new)) == new
    assert accept(compare(None, new), frozenset({ONE})) == new


def test_accept_some_keys() -> None:
    failing = Key((0,), 1)
    old, new = document(), entries((ONE, OTHER), (failing, OTHER), without=(TWO,))
    comparison = compare(old, new)
    assert accept(comparison, frozenset()) == old
    assert accept(comparison, frozenset({ONE})) == entries((ONE, OTHER))
    assert accept(comparison, frozenset({failing})) == entries((failing, OTHER))
    assert accept(comparison, frozenset({TWO})) == entries(without=(TWO,))
    assert accept(comparison, frozenset({ONE, TWO, failing})) == new
    assert compare(accept(comparison, frozenset({ONE})), new).changed == ()


def test_where_steps_mean_something_else_all_is_taken() -> None:
    new = replace(entries((ONE, OTHER)), steps=("two()", "one()"))
    assert accept(compare(document(), new), frozenset({TWO})) == new


def changed(bodies: dict[Key, Body], **header: object) -> Document:
    known = dict(document().entries) | bodies
    ranked = sorted(known.items(), key=lambda entry: entry[0].rank)
    return document(entries=tuple(ranked), **header)


def told(old: Document | None, new: Document) -> list[str]:
    lines = explain(compare(old, new), "FILE", "COMMAND").split("\n")
    assert lines[-2:] == ["accept it:", "    COMMAND"]
    return lines[:-2]


def test_nothing_to_tell() -> None:
    assert explain(compare(document(), document()), "FILE", "COMMAND") == ""


def test_nothing_expected() -> None:
    assert told(None, document()) == ["FILE: nothing is expected yet (4 entries)"]


def test_equal_diffs_are_told_once() -> None:
    two = (("state", "name: demo::f\nCPU: two\n"), ("calls", "one"))
    new = changed({ONE: two, TWO: two, Key((0,), 1): (("error", "Refused"),)})
    assert told(document(), new) == [
        "FILE: not as expected: 2 changed, 1 missing of 5 entries, first {1}",
        "  changed: {1}, {2}",
        "     state:",
        "       name: demo::f",
        "    -  CPU: one",
        "    +  CPU: two",
        "     calls: one",
        "  missing: {1} + 2 fails",
        "    +error: Refused",
    ]


def test_stale_entries() -> None:
    new = document(entries=document().entries[:-1])
    assert told(document(), new)[0] == (
        "FILE: not as expected: 1 stale of 3 entries, first {1 2}"
    )
    assert told(document(), new)[-4:] == [
        "  stale: {1 2}",
        "    -state:",
        "    -  one",
        "    -  two",
    ]


def test_only_the_header() -> None:
    assert told(document(), document(uses=("call()",))) == [
        "FILE: not as expected: the header",
        "  header, uses:",
        "    +call()",
    ]


def test_a_difference_within_a_row_names_exactly_what_differs() -> None:
    names = ("cpu", "cuda", "meta", "sparse", "mkldnn", "hip")
    calls = dict.fromkeys(names, "MissingKernel")
    was = (("calls", "".join(f"{name}: {text}\n" for name, text in calls.items())),)
    calls["meta"] = "on_meta"
    now = (("calls", "".join(f"{name}: {text}\n" for name, text in calls.items())),)
    old = changed({ONE: was, TWO: was, BOTH: was})
    read = parse(render(old))
    assert "  cpu | cuda | meta | sparse | mkldnn | hip: MissingKernel" in render(old)
    assert told(read, changed({ONE: was, TWO: now, BOTH: was})) == [
        "FILE: not as expected: 1 changed of 4 entries, first {2}",
        "  changed: {2}",
        "       cpu: MissingKernel",
        "       cuda: MissingKernel",
        "    -  meta: MissingKernel",
        "    +  meta: on_meta",
        "       sparse: MissingKernel",
        "       mkldnn: MissingKernel",
    ]


def test_pinned_keys_are_named_by_order() -> None:
    old = document(pinned="p", entries=((Key((1, 0)), PAIR),))
    new = document(pinned="p", entries=((Key((1, 0)), (("state", "x"),)),))
    assert told(old, new)[0] == (
        "FILE: not as expected: 1 changed of 1 entry, first 2 then 1"
    )


def test_hunks_are_kept_apart() -> None:
    numbers = [str(number) for number in range(12)]
    old = (("state", "\n".join(numbers) + "\n"),)
    new = (("state", "\n".join(["x", *numbers[1:-1], "y"]) + "\n"),)
    assert told(changed({ONE: old}), changed({ONE: new}))[1:] == [
        "  changed: {1}",
        "     state:",
        "    -  0",
        "    +  x",
        "       1",
        "       2",
        "    @@",
        "       9",
        "       10",
        "    -  11",
        "    +  y",
    ]


def test_much_is_counted_instead_of_shown() -> None:
    keys = [Key(state) for state in combinations(range(12), 1)]
    steps = tuple(f"s{i}()" for i in range(12))
    old = document(steps=steps, entries=tuple((key, ()) for key in keys))
    long = (("state", "".join(f"{i}\n" for i in range(40))),)
    bodies: list[Body] = [*[long] * 8, *((("n", str(i)),) for i in range(4))]
    new = document(steps=steps, entries=tuple(zip(keys, bodies, strict=True)))
    lines = told(old, new)
    assert lines[1] == "  changed: {1}, {2}, {3}, {4}, {5}, {6} and 2 more"
    assert len([line for line in lines if line.startswith("    +")]) == 30 + 2
    assert lines[32] == "    ... and 11 more lines"
    assert lines[-1] == "  ... and 2 entries that differ in 2 other ways"


def test_digests_are_one_class() -> None:
    old = changed({ONE: digest_of(PAIR), TWO: digest_of(PAIR)})
    new = changed({ONE: digest_of(()), TWO: digest_of((("a", "b"),))})
    assert told(old, new)[1:] == [
        "  changed: {1}, {2}",
        "    (only digests are kept of these)",
    ]
