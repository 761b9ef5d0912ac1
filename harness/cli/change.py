"""A change that somebody decides on: entries of scenarios that differ alike.

True only here: what is one decision.  Entries whose verdict and diff are equal are one
change, whichever scenario they are from.  Of a scenario that has no expect file, or
whose old numbers mean other steps now, only the whole can be accepted; new scenarios
together are one change, as are expect files without a scenario.  A damaged expect file
is a change of its own, and never new: who accepts it gives up what stood there.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.cli.judgement import Judgement
from harness.expectations import Comparison, Document, Key, accept, classes
from harness.expectations.compare import diff
from harness.report.text import plural

# Names in a headline; more would push the rest off the line.
NAMED = 3


@dataclass(frozen=True, slots=True)
class Part:
    """What a change takes of one scenario: some keys, or None for all of it."""

    scenario: str
    comparison: Comparison | None
    keys: tuple[Key, ...] | None


@dataclass(frozen=True, slots=True)
class Change:
    """One decision; `lines` is the difference that all its entries share."""

    verdict: str
    parts: tuple[Part, ...]
    lines: tuple[str, ...]
    only_new: bool

    @property
    def scenarios(self) -> tuple[str, ...]:
        """The scenarios that it touches."""
        return tuple(part.scenario for part in self.parts)

    def only(self, scenarios: Collection[str]) -> "Change":
        """What of it touches these scenarios."""
        parts = tuple(part for part in self.parts if part.scenario in scenarios)
        return replace(self, parts=parts)

    def headline(self) -> str:
        """What it is, in one line."""
        shown = list(self.scenarios[:NAMED])
        rest = len(self.scenarios) - NAMED
        names = ", ".join(shown) + (f" and {rest} more" if rest > 0 else "")
        entries = sum(len(part.keys or ()) for part in self.parts)
        if not entries:
            return f"{self.verdict}: {names}"
        count = "1 entry" if entries == 1 else f"{entries} entries"
        return f"{self.verdict}: {count} of {names}"


def changes(found: Sequence[Judgement], stale: Sequence[str]) -> list[Change]:
    """Every decision that there is to take, equal differences together."""
    new: list[Part] = []
    single: list[Change] = []
    groups: dict[tuple[str, tuple[str, ...]], list[Part]] = {}
    for each in found:
        comparison = each.comparison
        if comparison is None or comparison.passed:
            continue
        part = Part(each.scenario, comparison, None)
        if each.damage:
            single.append(Change("damaged file", (part,), (each.damage,), False))
        elif comparison.expected is None:
            new.append(part)
        elif not comparison.divisible:
            lines = _header_lines(comparison)
            single.append(Change("another scenario", (part,), lines, False))
        elif comparison.fields and not classes(comparison):
            header = Part(each.scenario, comparison, ())
            lines = _header_lines(comparison)
            groups.setdefault(("changed header", lines), []).append(header)
        else:
            for group in classes(comparison):
                part = Part(each.scenario, comparison, group.keys)
                groups.setdefault((group.verdict, group.lines), []).append(part)
    decisions = [
        Change(verdict, tuple(parts), lines, all(_only_new(part) for part in parts))
        for (verdict, lines), parts in groups.items()
    ]
    if new:
        count = plural(len(new), "scenario")
        decisions.insert(0, Change(f"new, {count}", tuple(new), (), True))
    if stale:
        gone = tuple(Part(name, None, None) for name in stale)
        decisions.append(Change("stale, no scenario", gone, (), False))
    return single + decisions


def documents(taken: Sequence[Change]) -> Mapping[str, Document | None]:
    """What is to be written when these are accepted; None is a file to delete."""
    parts: dict[str, list[Part]] = {}
    for change in taken:
        for part in change.parts:
            parts.setdefault(part.scenario, []).append(part)
    return {scenario: _document(each) for scenario, each in parts.items()}


def _document(parts: Sequence[Part]) -> Document | None:
    comparison = parts[0].comparison
    if comparison is None:
        return None
    keys: set[Key] = set()
    for part in parts:
        if part.keys is None:
            return accept(comparison)
        keys.update(part.keys)
    return accept(comparison, frozenset(keys))


def _only_new(part: Part) -> bool:
    comparison = part.comparison
    return comparison is not None and comparison.only_new


def _header_lines(comparison: Comparison) -> tuple[str, ...]:
    assert comparison.expected is not None, "there is a header to compare with"
    old, new = comparison.expected.header(), comparison.found.header()
    lines: list[str] = []
    for name in comparison.fields:
        lines += (f"{name}:", *diff([*old[name]], [*new[name]]))
    return tuple(lines)
