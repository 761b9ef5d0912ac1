"""A mismatch in histories, whole texts."""

from itertools import combinations

from harness.expectations import Document, Key, compare, explain
from harness.expectations.document import Body, digest_of
from tests.expectations.samples import PAIR, document

ACCEPT = "--everyorder-update accepts it"
ONE, TWO, BOTH = Key((0,)), Key((1,)), Key((0, 1))


def changed(bodies: dict[Key, Body], **header: object) -> Document:
    known = dict(document().entries) | bodies
    ranked = sorted(known.items(), key=lambda entry: entry[0].rank)
    return document(entries=tuple(ranked), **header)


def told(old: Document | None, new: Document) -> list[str]:
    return explain(compare(old, new), "--everyorder-update").split("\n")


def test_nothing_to_tell() -> None:
    assert explain(compare(document(), document()), "--everyorder-update") == ""


def test_nothing_expected() -> None:
    assert told(None, document()) == ["nothing is expected yet (4 entries); " + ACCEPT]


def test_equal_diffs_are_told_once() -> None:
    two = (("state", "name: demo::f\nCPU: two\n"), ("calls", "one"))
    new = changed({ONE: two, TWO: two, Key((0,), 1): (("error", "Refused"),)})
    assert told(document(), new) == [
        "not as expected: 2 changed, 1 missing of 5 entries, first {1}; " + ACCEPT,
        "  header, explored:",
        "    -4 states, 8 transitions, 0 failing transitions",
        "    +4 states, 8 transitions, 1 failing transition",
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
        "not as expected: 1 stale of 3 entries, first {1 2}; " + ACCEPT
    )
    assert told(document(), new)[-4:] == [
        "  stale: {1 2}",
        "    -state:",
        "    -  one",
        "    -  two",
    ]


def test_only_the_header() -> None:
    assert told(document(), document(guarantee=("less",))) == [
        "not as expected: the header; " + ACCEPT,
        "  header, guarantee:",
        "    -every history of any length",
        "    +less",
    ]


def test_pinned_keys_are_named_by_order() -> None:
    old = document(pinned="p", entries=((Key((1, 0)), PAIR),))
    new = document(pinned="p", entries=((Key((1, 0)), (("state", "x"),)),))
    assert told(old, new)[0] == (
        "not as expected: 1 changed of 1 entry, first 2 then 1; " + ACCEPT
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
