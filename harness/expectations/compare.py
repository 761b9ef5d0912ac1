"""Comparison of expected documents with the current ones: verdicts by key, and texts.

- missing: observed, but not expected (or there is no file at all);
- changed: expected and observed differ, in an entry or in a field of the header;
- stale: expected, but no longer observed.

A comparison is data; `accept` builds the next document from it, `explain` a text: a
line with the verdict, the first key and the counts; the header fields that differ; the
entries, those with equal diffs merged; the command that accepts them.

Rules:
- a digest matches the body from which it was computed; keys that differ and have only a
  digest form one class, for all digests;
- how the scenario was explored is not compared; `partial=True` reports no stale
  entries, for runs whose strategy or budget the user chose, which may reach fewer
  states;
- at most `MOST_CLASSES` classes and `MOST_LINES` lines of each are printed, and the
  others are counted.
"""

from dataclasses import dataclass, replace
from difflib import unified_diff
from typing import Literal, TypeAlias

from everyorder.harness.base.columns import fold_lines, wrap_words
from everyorder.harness.base.place import Place
from everyorder.harness.expectations.document import (
    Digest,
    Document,
    Key,
    document_of,
    lines_of,
    same,
)
from everyorder.harness.report.observation import readable_lines
from everyorder.harness.report.verdict import Report

Verdict: TypeAlias = Literal["changed", "missing", "stale", "unchanged"]

# Fields that may get longer when a scenario grows: old numbers keep their meaning.
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
    # The argument `expect=` that has the expectations, and its text; or an expect file.
    place: Place | None = None
    inline: str | None = None

    @property
    def verdict(self) -> Verdict:
        """Return the most severe verdict; a changed header counts as changed."""
        if self.expected is None:
            return "missing"
        if self.changed or (self.fields and not (self.missing or self.stale)):
            return "changed"
        if self.missing:
            return "missing"
        return "stale" if self.stale else "unchanged"

    @property
    def passed(self) -> bool:
        """Return True if everything is as expected."""
        return self.verdict == "unchanged"

    @property
    def is_old(self) -> bool:
        """Return True if the file has an older format, and should be rewritten."""
        return self.expected is not None and self.expected.is_old

    @property
    def divisible(self) -> bool:
        """Return True if old keys keep their meaning, so one key can be accepted."""
        if self.expected is None:
            return False
        old, new = self.expected.header(), self.found.header()
        return all(
            name in GROWING and old[name] == new[name][: len(old[name])]
            for name in self.fields
        )

    @property
    def cause(self) -> str:
        """Return a sentence on another chain of normalisers; "" if it is the same."""
        if self.expected is None or "normalisers" not in self.fields:
            return ""
        old, new = (
            "; ".join(each.normalisers) or "none"
            for each in (self.expected, self.found)
        )
        return f"the normalisers have changed, from {old} to {new}"

    @property
    def only_new(self) -> bool:
        """Return True if accepting the comparison only adds entries."""
        if self.expected is None:
            return True
        if self.changed or self.stale or not self.missing:
            return False
        return self.divisible


def compare(
    expected: Document | None, actual: Report | Document, *, partial: bool = False
) -> Comparison:
    """Compare an expected document, or None, with a report or its document.

    `partial=True` reports no stale entries.
    """
    new = actual if isinstance(actual, Document) else document_of(actual)
    if expected is None:
        return Comparison(
            None, new, (), tuple(key for key, _ in new.entries), (), (), 0
        )
    old_header, new_header = expected.header(), new.header()
    fields = tuple(
        name for name, values in new_header.items() if old_header[name] != values
    )
    old_bodies, new_bodies = dict(expected.entries), dict(new.entries)
    changed = tuple(
        key
        for key, body in new.entries
        if key in old_bodies and not same(old_bodies[key], body)
    )
    missing = tuple(key for key, _ in new.entries if key not in old_bodies)
    stale = tuple(
        key for key, _ in expected.entries if not partial and key not in new_bodies
    )
    unchanged = len(new.entries) - len(changed) - len(missing)
    return Comparison(expected, new, fields, missing, changed, stale, unchanged)


def accept(comparison: Comparison, keys: frozenset[Key] | None = None) -> Document:
    """Return the document to write: all observations, or only those of some keys.

    With `keys`, the missing and changed ones of them are replaced by the observations,
    the stale ones are removed, and all other entries keep their expectations; the
    header is the new one. If a comparison is not `divisible`, the whole new document is
    returned.
    """
    expected, actual = comparison.expected, comparison.found
    if keys is None or expected is None or not comparison.divisible:
        return actual
    old, new = dict(expected.entries), dict(actual.entries)
    unselected = {key: body for key, body in old.items() if key not in keys}
    selected = {key: body for key, body in new.items() if key in keys}
    merged = sorted((unselected | selected).items(), key=lambda entry: entry[0].rank)
    return replace(actual, entries=tuple(merged))


# Three classes and thirty lines fit a screen and show whether there is one cause.
MOST_CLASSES = 3
MOST_LINES = 30
MOST_KEYS = 6

# Context lines of a diff; they usually include the operator's name or the title.
CONTEXT = 2


@dataclass(frozen=True, slots=True)
class DiffClass:
    """Entries that differ in the same way."""

    verdict: Verdict
    keys: tuple[Key, ...]
    lines: tuple[str, ...]


def classes(comparison: Comparison) -> tuple[DiffClass, ...]:
    """Return every missing, changed and stale entry, grouped by verdict and diff."""
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
    """Return a unified diff without its file header; `@@` separates hunks."""
    lines = list(unified_diff(was, now, lineterm="", n=CONTEXT))[2:]
    numberless = ["@@" if line.startswith("@@") else line for line in lines]
    return tuple(numberless[1:])


def header_diffs(comparison: Comparison) -> list[tuple[str, tuple[str, ...]]]:
    """Return the header fields that differ, each with its diff."""
    if comparison.expected is None:
        return []
    old, new = comparison.expected.header(), comparison.found.header()
    return [(name, diff([*old[name]], [*new[name]])) for name in comparison.fields]


def headline(comparison: Comparison) -> str:
    """Return one line: verdict, first key and counts."""
    if comparison.expected is None:
        count = len(comparison.missing)
        return f"nothing is expected yet ({_entries(count)})"
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
    return f"not as expected: {what}"


def explain(comparison: Comparison, name: str, command: str, *, width: int = 80) -> str:
    """Return what differs, and the command that accepts it; "" if nothing does.

    `name` is that of the expect file, or of the scenario.
    """
    if comparison.passed:
        return ""
    head = f"{name}: {headline(comparison)}"
    lines = wrap_words(head, width, indent="  ")
    lines += fold_lines(_differences(comparison), width)
    return "\n".join([*lines, "accept it:", f"    {command}"])


def _differences(comparison: Comparison) -> list[str]:
    """Return the parts that differ, as indented lines."""
    if comparison.expected is None:
        return []
    lines: list[str] = []
    if comparison.cause:
        lines.append(f"  cause: {comparison.cause}; the registry may be as before")
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
    return lines


def _names(keys: tuple[Key, ...], comparison: Comparison) -> str:
    ordered = comparison.found.ordered
    names = ", ".join(key.text(ordered=ordered) for key in keys[:MOST_KEYS])
    rest = len(keys) - MOST_KEYS
    return f"{names} and {rest} more" if rest > 0 else names


def _entries(count: int) -> str:
    return f"{count} entry" if count == 1 else f"{count} entries"
