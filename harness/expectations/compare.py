"""What was expected against what was found: three verdicts, by key.

True only here: when something counts as missing, changed or stale.

- missing: found, but nothing is expected there (or there is no file at all);
- changed: expected and found differ, in an entry or in a field of the header;
- stale: expected, but no longer there to be found.

Rules:
- a digest agrees with the body that it is the digest of;
- `effort=False` leaves out strategy, guarantee and size, for runs whose strategy or
  budget somebody chose by hand;
- a comparison is data; `difference.py` puts it into words, `accept` into a document.
"""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from harness.expectations.body import same
from harness.expectations.document import Document, document_of
from harness.expectations.key import Key
from harness.outcome import Report

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
    """What to expect from now on: everything found, or only some keys of it.

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
