"""Changes: the decisions of a review, each with the content that it is about.

A *change* is one decision: the entries of all scenarios that differ alike. Changed
entries differ alike if their diffs make the same replacements (`expectations.edits`),
so that a changed separator is decided once, although each entry has other lines. New or
obsolete entries differ alike if their texts are equal.

If a scenario lacks an expect file, or its old numbers now mean other steps, only the
whole can be accepted; new scenarios together are one change, as are expect files
without a scenario. A damaged expect file is a separate change, and never new: accepting
it discards its old content.

The id of a change is a digest of its whole content: an id that was printed earlier
accepts exactly what was shown then, or nothing.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from everyorder.harness.cli.judgement import Judgement
from everyorder.harness.expectations import (
    FORMAT,
    Comparison,
    DiffClass,
    Document,
    Edit,
    InlineEdit,
    Key,
    accept,
    classes,
    edit_of,
    edits_of,
    render,
)
from everyorder.harness.expectations.compare import header_diffs
from everyorder.harness.report.observation import readable_lines
from everyorder.harness.report.text import plural

# Number of names in a headline; more would push the rest off the line.
NAMED = 3

# Limit on the printed lines of a change, unless all of them are requested.
MOST_LINES = 40

# 32 bits: a review has few changes, and a false id must be typed by chance.
ID_BYTES = 4


@dataclass(frozen=True, slots=True)
class ChangedScenario:
    """The part of one scenario in a change: some keys, or None for all of it."""

    scenario: str
    comparison: Comparison | None
    keys: tuple[Key, ...] | None


@dataclass(frozen=True, slots=True)
class Passage:
    """Lines to show, and the entries that they are about."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReviewChange:
    """One decision; `edits` are the replacements that all its passages share."""

    verdict: str
    parts: tuple[ChangedScenario, ...]
    passages: tuple[Passage, ...] = ()
    only_new: bool = False
    edits: tuple[Edit, ...] = ()

    @property
    def scenarios(self) -> tuple[str, ...]:
        """Return the scenarios of the change, each once."""
        return tuple(dict.fromkeys(part.scenario for part in self.parts))

    @property
    def id(self) -> str:
        """Return the digits that accept exactly this change."""
        parts = [
            (part.scenario, part.keys and [(key.state, key.fails) for key in part.keys])
            for part in self.parts
        ]
        passages = [(each.title, each.lines) for each in self.passages]
        text = repr((self.verdict, parts, passages))
        data = text.encode(errors="backslashreplace")
        return blake2b(data, digest_size=ID_BYTES).hexdigest()

    def restricted_to(self, scenarios: Collection[str]) -> "ReviewChange":
        """Return the part of the change that belongs to these scenarios."""
        parts = tuple(part for part in self.parts if part.scenario in scenarios)
        return replace(self, parts=parts)

    def headline(self) -> str:
        """Return the change in one line."""
        scenarios = self.scenarios
        first = list(scenarios[:NAMED])
        rest = len(scenarios) - NAMED
        names = ", ".join(first) + (f" and {rest} more" if rest > 0 else "")
        entries = sum(len(part.keys or ()) for part in self.parts)
        if not entries:
            return f"{self.verdict}: {names}"
        count = "1 entry" if entries == 1 else f"{entries} entries"
        return f"{self.verdict}: {count} of {names}"

    def text_lines(self, *, whole: bool = False) -> list[str]:
        """Return the content of the change: an example of each kind, or all of it."""
        if whole:
            return [line for each in self.passages for line in _titled(each)]
        if len(self.passages) > 1 and self.edits:
            replaced = ", ".join(map(_edit_text, self.edits))
            others = plural(len(self.passages) - 1, "other diff")
            example = self.passages[0]
            return [
                f"everywhere the same: {replaced}",
                *readable_lines(_titled(example), MOST_LINES),
                f"... and {others} with only these replacements",
            ]
        lines = [line for each in self.passages for line in _titled(each)]
        return list(readable_lines(lines, MOST_LINES))


def _titled(passage: Passage) -> list[str]:
    return [*([f"@@ {passage.title}"] if passage.title else []), *passage.lines]


def _edit_text(edit: Edit) -> str:
    removed, added = edit
    if not added:
        return f"{removed!r} removed"
    return f"{removed!r} replaced by {added!r}" if removed else f"{added!r} added"


class _Groups:
    """Collects entries that differ alike, in the order in which they appear."""

    def __init__(self) -> None:
        self._groups: dict[object, list[tuple[ChangedScenario, Passage]]] = {}
        self._heads: dict[object, tuple[str, tuple[Edit, ...]]] = {}

    def add(
        self,
        verdict: str,
        part: ChangedScenario,
        lines: tuple[str, ...],
        edits: tuple[Edit, ...] = (),
        *,
        like: object = None,
    ) -> None:
        likeness = verdict, like or edits or lines
        self._heads[likeness] = verdict, edits
        self._groups.setdefault(likeness, []).append((part, Passage("", lines)))

    def changes(self) -> Iterator[ReviewChange]:
        for likeness, entries in self._groups.items():
            verdict, edits = self._heads[likeness]
            parts = tuple(part for part, _ in entries)
            texts: dict[tuple[str, ...], list[ChangedScenario]] = {}
            for part, passage in entries:
                texts.setdefault(passage.lines, []).append(part)
            passages = tuple(
                Passage(_title(where) if len(texts) > 1 else "", lines)
                for lines, where in texts.items()
            )
            only_new = all(
                part.comparison is not None and part.comparison.only_new
                for part in parts
            )
            yield ReviewChange(verdict, _joined(parts), passages, only_new, edits)


def _joined(parts: Sequence[ChangedScenario]) -> tuple[ChangedScenario, ...]:
    """Return the parts with those of one scenario as one."""
    joined: dict[str, ChangedScenario] = {}
    for part in parts:
        before = joined.get(part.scenario)
        if before is not None:
            keys = sorted(
                {*(before.keys or ()), *(part.keys or ())}, key=lambda k: k.rank
            )
            part = replace(part, keys=tuple(keys))
        joined[part.scenario] = part
    return tuple(joined.values())


def _title(parts: Sequence[ChangedScenario]) -> str:
    names = []
    for part in parts:
        comparison = part.comparison
        ordered = comparison is not None and comparison.found.ordered
        keys = ", ".join(key.text(ordered=ordered) for key in (part.keys or ())[:NAMED])
        names.append(f"{part.scenario} {keys}".rstrip())
    rest = len(names) - NAMED
    return "; ".join(names[:NAMED]) + (f" and {rest} more" if rest > 0 else "")


def changes(
    judgements: Sequence[Judgement], stale: Sequence[str]
) -> list[ReviewChange]:
    """Return every necessary decision, differences that are alike merged."""
    new: list[ChangedScenario] = []
    single: list[ReviewChange] = []
    groups = _Groups()
    for each in judgements:
        comparison = each.comparison
        if comparison is None or (comparison.passed and not comparison.is_old):
            continue
        part = ChangedScenario(each.scenario, comparison, None)
        if each.damage:
            passage = Passage("", (each.damage, *_content(comparison.found)))
            single.append(ReviewChange("damaged file", (part,), (passage,)))
        elif comparison.expected is None:
            new.append(part)
        elif comparison.passed:
            older = (f"-format {comparison.expected.format}", f"+format {FORMAT}")
            groups.add("older format", replace(part, keys=()), older)
        elif comparison.cause:
            # One cause, one decision, whatever its effects.
            whole = (comparison.cause, *_class_lines(classes(comparison)))
            groups.add("other normalisers", part, whole, like=comparison.cause)
        elif not comparison.divisible:
            lines = (*_header_lines(comparison), *_class_lines(classes(comparison)))
            passage = Passage("", lines)
            single.append(ReviewChange("another scenario", (part,), (passage,)))
        elif comparison.fields and not classes(comparison):
            groups.add(
                "changed header", replace(part, keys=()), _header_lines(comparison)
            )
        else:
            for group in classes(comparison):
                edits = edits_of(group.lines) if group.verdict == "changed" else ()
                groups.add(
                    group.verdict, replace(part, keys=group.keys), group.lines, edits
                )
    decisions = list(groups.changes())
    if new:
        count = plural(len(new), "scenario")
        passages = tuple(
            Passage(part.scenario, _content(part.comparison.found))
            for part in new
            if part.comparison is not None
        )
        verdict = f"new, {count}"
        decisions.insert(0, ReviewChange(verdict, tuple(new), passages, only_new=True))
    if stale:
        obsolete = tuple(ChangedScenario(name, None, None) for name in stale)
        decisions.append(ReviewChange("stale, no scenario", obsolete))
    return single + decisions


def documents(accepted: Sequence[ReviewChange]) -> Mapping[str, Document | None]:
    """Return the documents to write for accepted changes; None for a file to delete."""
    return {
        scenario: None if comparison is None else _document(comparison, parts)
        for scenario, comparison, parts in _accepted(accepted)
        if comparison is None or comparison.place is None
    }


def inline_edits(accepted: Sequence[ReviewChange]) -> list[InlineEdit]:
    """Return the arguments `expect=` to rewrite for accepted changes."""
    edits = [
        edit_of(comparison, _document(comparison, parts))
        for _, comparison, parts in _accepted(accepted)
        if comparison is not None
    ]
    return [edit for edit in edits if edit is not None]


def _accepted(
    accepted: Sequence[ReviewChange],
) -> Iterator[tuple[str, Comparison | None, list[ChangedScenario]]]:
    """Yield the parts of each scenario; those of an obsolete file are separate."""
    parts: dict[tuple[str, bool], list[ChangedScenario]] = {}
    for change in accepted:
        for part in change.parts:
            key = part.scenario, part.comparison is None
            parts.setdefault(key, []).append(part)
    for (scenario, _), each in parts.items():
        yield scenario, each[0].comparison, each


def _document(comparison: Comparison, parts: Sequence[ChangedScenario]) -> Document:
    keys: set[Key] = set()
    for part in parts:
        if part.keys is None:
            return accept(comparison)
        keys.update(part.keys)
    return accept(comparison, frozenset(keys))


def _content(document: Document) -> tuple[str, ...]:
    """Return the content of a file to write, as added lines."""
    lines = render(document).splitlines()
    # The first two lines are the format and the scenario, which the title names.
    return tuple(f"+{line}".rstrip() for line in lines[2:])


def _class_lines(groups: Sequence[DiffClass]) -> tuple[str, ...]:
    return tuple(line for group in groups for line in group.lines)


def _header_lines(comparison: Comparison) -> tuple[str, ...]:
    return tuple(
        line
        for name, lines in header_diffs(comparison)
        for line in (f"{name}:", *lines)
    )
