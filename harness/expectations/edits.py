"""Edits: what a diff replaces, independent of the lines around it.

A changed separator shows in many entries, and the lines of each are different: `a, b`
and `c, d`. The edit of both is the same, `,` replaced by `;`. Entries with equal edits
are one decision of a review.

    -  a, b              removed and added runs of a diff are compared by token (a word,
    +  a; b              a number, white space, or one other character)
    {(",", ";")}         the edits: each replaced text, with the new one

Rules:
- an edit that only removes or only adds a text is one, too;
- a diff of more than `MOST_EDITS` different edits, or of very long runs, is not summed
  up: a person has to see it whole.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import TypeAlias

Edit: TypeAlias = tuple[str, str]

# A person can compare so many replacements with the purpose of a change.
MOST_EDITS = 4

# The comparison is quadratic in the tokens of a run.
MOST_TOKENS = 2000

_TOKENS = re.compile(r"\w+|\s+|[^\w\s]")


def edits_of(lines: Iterable[str]) -> tuple[Edit, ...]:
    """Return the different edits of a diff, sorted; empty if there are too many."""
    edits: set[Edit] = set()
    for removed, added in _runs(lines):
        was, now = (_TOKENS.findall("\n".join(run)) for run in (removed, added))
        if max(len(was), len(now)) > MOST_TOKENS:
            return ()
        edits.update(_edits(was, now))
        if len(edits) > MOST_EDITS:
            return ()
    return tuple(sorted(edits))


def _edits(was: Sequence[str], now: Sequence[str]) -> Iterator[Edit]:
    matcher = SequenceMatcher(None, was, now, autojunk=False)
    for kind, start, end, new_start, new_end in matcher.get_opcodes():
        if kind != "equal":
            yield "".join(was[start:end]), "".join(now[new_start:new_end])


def _runs(lines: Iterable[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield neighbouring removed and added lines, without their signs."""
    removed: list[str] = []
    added: list[str] = []
    for line in (*lines, " "):
        if line.startswith("-") and not added:
            removed.append(line[1:])
        elif line.startswith("+"):
            added.append(line[1:])
        else:
            if removed or added:
                yield removed, added
            removed = [line[1:]] if line.startswith("-") else []
            added = []
