"""A comparison in words: one line, then the differences, equal ones told once.

True only here: what of a mismatch is shown, and in which order.  The first line names
the verdict, the first key, the counts and the flag that accepts it.  Then come the
fields of the header that differ, then classes of entries whose diffs are equal.

Rules:
- at most `MOST_CLASSES` classes and `MOST_LINES` lines of each are shown, and what is
  left out is counted;
- keys whose body is only known by its digest form one class, whatever the digests.
"""

from dataclasses import dataclass
from difflib import unified_diff

from harness.expectations.body import Digest, lines_of
from harness.expectations.compare import Comparison, Verdict
from harness.expectations.key import Key
from harness.report.observation import readable

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
    old, new = comparison.expected.header(), comparison.found.header()
    for name in comparison.fields:
        lines.append(f"  header, {name}:")
        lines += [f"    {line}" for line in diff([*old[name]], [*new[name]])]
    groups = classes(comparison)
    for group in groups[:MOST_CLASSES]:
        lines.append(f"  {group.verdict}: {_names(group.keys, comparison)}")
        lines += [f"    {line}" for line in readable(group.lines, MOST_LINES)]
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
