"""Expected documents compared with found ones: verdicts by key, and their words.

- missing: found, but nothing is expected there (or there is no file at all);
- changed: expected and found differ, in an entry or in a field of the header;
- stale: expected, but no longer there to be found.

A comparison is data; `accept` makes the next document of it, `explain` a text: a line
with the verdict, the first key, the counts and the flag that accepts it; then the
fields of the header that differ; then the entries, those with equal diffs told once.

Rules:
- a digest agrees with the body that it is the digest of; keys whose body is only known
  by its digest are one class, whatever the digests;
- `effort=False` leaves out strategy, guarantee and size, for runs whose strategy or
  budget somebody chose by hand;
- at most `MOST_CLASSES` classes and `MOST_LINES` lines of each are shown, and what is
  left out is counted.
"""

from dataclasses import dataclass, replace
from difflib import unified_diff
from typing import Literal, TypeAlias

from everyorder.harness.expectations.document import (
    Digest,
    Document,
    Key,
    document_of,
    lines_of,
    same,
)
from everyorder.harness.report.observation import readable_lines
from everyorder.harness.report.outcome import Report

Verdict: TypeAlias = Literal["changed", "missing", "stale", "unchanged"]

# Fields that follow from how much was explored, not from what the scenario is.
EFFORT = ("strategy", "guarantee", "explored")
# Fields that may get longer where a scenario grows: old numbers keep their meaning.
GROWING = ("steps", "uses")


@dataclass(frozen=True, slots=True)
class Comparison:
    """The keys and header fields of each verdict; `unchanged` counts entries."""

    expected: Document | None
    found: Document
    fields: tuple[str, ...]
    missing: tuple[Key, ...]
    changed: tuple[Key, ...]
    stale: tuple[Key, ...]
    unchanged: int

    @property
    def verdict(self) -> Verdict:
        """The most severe one; a changed header counts as changed."""
        if self.expected is None:
            return "missing"
        if self.changed or (self.fields and not (self.missing or self.stale)):
            return "changed"
        if self.missing:
            return "missing"
        return "stale" if self.stale else "unchanged"

    @property
    def passed(self) -> bool:
        """Whether everything is as expected."""
        return self.verdict == "unchanged"

    @property
    def divisible(self) -> bool:
        """Whether old keys keep their meaning, so that some alone can be accepted."""
        if self.expected is None:
            return False
        old, new = self.expected.header(), self.found.header()
        return all(
            name in EFFORT
            or (name in GROWING and old[name] == new[name][: len(old[name])])
            for name in self.fields
        )

    @property
    def only_new(self) -> bool:
        """Whether accepting it would add to what is expected and replace nothing."""
        if self.expected is None:
            return True
        if self.changed or self.stale or not self.missing:
            return False
        return self.divisible


def compare(
    expected: Document | None, found: Report | Document, *, effort: bool = True
) -> Comparison:
    """Compare what is expected, None where nothing is, with a report's findings."""
    new = found if isinstance(found, Document) else document_of(found)
    if expected is None:
        return Comparison(
            None, new, (), tuple(key for key, _ in new.entries), (), (), 0
        )
    old_header, new_header = expected.header(), new.header()
    fields = tuple(
        name
        for name, values in new_header.items()
        if old_header[name] != values and (effort or name not in EFFORT)
    )
    old_bodies, new_bodies = dict(expected.entries), dict(new.entries)
    changed = tuple(
        key
        for key, body in new.entries
        if key in old_bodies and not same(old_bodies[key], body)
    )
    missing = tuple(key for key, _ in new.entries if key not in old_bodies)
    stale = tuple(key for key, _ in expected.entries if key not in new_bodies)
    unchanged = len(new.entries) - len(changed) - len(missing)
    return Comparison(expected, new, fields, missing, changed, stale, unchanged)


def accept(comparison: Comparison, keys: frozenset[Key] | None = None) -> Document:
    """The document to write: everything found, or only some keys of it.

    With `keys`, a missing or changed key of them is taken from what was found, a stale
    one is given up, and everything else stays as it was expected; the header is that
    of what was found.  Where a comparison is not `divisible`, all of it is taken.
    """
    expected, found = comparison.expected, comparison.found
    if keys is None or expected is None or not comparison.divisible:
        return found
    old, new = dict(expected.entries), dict(found.entries)
    kept = {key: body for key, body in old.items() if key not in keys}
    taken = {key: body for key, body in new.items() if key in keys}
    merged = sorted((kept | taken).items(), key=lambda entry: entry[0].rank)
    return replace(found, entries=tuple(merged))


# Three classes and thirty lines fit a screen and show whether it is one cause or many.
MOST_CLASSES = 3
MOST_LINES = 30
MOST_KEYS = 6

# Lines around a difference: the operator's name or the table's title is among them.
CONTEXT = 2


@dataclass(frozen=True, slots=True)
class DiffClass:
    """Entries that differ in the same way."""

    verdict: Verdict
    keys: tuple[Key, ...]
    lines: tuple[str, ...]


def classes(comparison: Comparison) -> tuple[DiffClass, ...]:
    """Every missing, changed and stale entry, grouped by verdict and diff."""
    if comparison.expected is None:
        return ()
    old, new = dict(comparison.expected.entries), dict(comparison.found.entries)
    groups: dict[tuple[Verdict, tuple[str, ...]], list[Key]] = {}
    verdicts: tuple[tuple[Verdict, tuple[Key, ...]], ...] = (
        ("changed", comparison.changed),
        ("missing", comparison.missing),
        ("stale", comparison.stale),
    )
    for verdict, keys in verdicts:
        for key in keys:
            was, now = old.get(key, ()), new.get(key, ())
            if isinstance(was, Digest) or isinstance(now, Digest):
                lines: tuple[str, ...] = ("(only digests are kept of these)",)
            else:
                lines = diff(lines_of(was), lines_of(now))
            groups.setdefault((verdict, lines), []).append(key)
    return tuple(
        DiffClass(verdict, tuple(keys), lines)
        for (verdict, lines), keys in groups.items()
    )


def diff(was: list[str], now: list[str]) -> tuple[str, ...]:
    """A unified diff without its file header; `@@` alone stands between hunks."""
    lines = list(unified_diff(was, now, lineterm="", n=CONTEXT))[2:]
    shown = ["@@" if line.startswith("@@") else line for line in lines]
    return tuple(shown[1:])


def header_diffs(comparison: Comparison) -> list[tuple[str, tuple[str, ...]]]:
    """The fields of the header that differ, each with its diff."""
    if comparison.expected is None:
        return []
    old, new = comparison.expected.header(), comparison.found.header()
    return [(name, diff([*old[name]], [*new[name]])) for name in comparison.fields]


def headline(comparison: Comparison, flag: str) -> str:
    """The one line: verdict, first key, counts, and the flag that accepts it."""
    if comparison.expected is None:
        count = len(comparison.missing)
        return f"nothing is expected yet ({_entries(count)}); {flag} accepts it"
    parts = [
        f"{len(keys)} {word}"
        for word, keys in (
            ("changed", comparison.changed),
            ("missing", comparison.missing),
            ("stale", comparison.stale),
        )
        if keys
    ]
    total = comparison.unchanged + len(comparison.changed) + len(comparison.missing)
    keys = comparison.changed or comparison.missing or comparison.stale
    ordered = comparison.found.ordered
    first = f", first {keys[0].text(ordered=ordered)}" if keys else ""
    what = f"{', '.join(parts)} of {_entries(total)}{first}" if keys else "the header"
    return f"not as expected: {what}; {flag} accepts it"


def explain(comparison: Comparison, flag: str) -> str:
    """The whole text, without a newline at its end; empty where all is as expected."""
    if comparison.passed:
        return ""
    lines = [headline(comparison, flag)]
    if comparison.expected is None:
        return lines[0]
    for name, differing in header_diffs(comparison):
        lines.append(f"  header, {name}:")
        lines += [f"    {line}" for line in differing]
    groups = classes(comparison)
    for group in groups[:MOST_CLASSES]:
        lines.append(f"  {group.verdict}: {_names(group.keys, comparison)}")
        lines += [f"    {line}" for line in readable_lines(group.lines, MOST_LINES)]
    rest = groups[MOST_CLASSES:]
    if rest:
        count = sum(len(group.keys) for group in rest)
        lines.append(
            f"  ... and {_entries(count)} that differ in {len(rest)} other ways"
        )
    return "\n".join(lines)


def _names(keys: tuple[Key, ...], comparison: Comparison) -> str:
    ordered = comparison.found.ordered
    shown = ", ".join(key.text(ordered=ordered) for key in keys[:MOST_KEYS])
    rest = len(keys) - MOST_KEYS
    return f"{shown} and {rest} more" if rest > 0 else shown


def _entries(count: int) -> str:
    return f"{count} entry" if count == 1 else f"{count} entries"
