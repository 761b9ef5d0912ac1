"""From a fault found late in a long run to the shortest word that shows it.

True only here: a word found by a walk may be a hundred thousand letters long, while the
fault nearly always needs its last few letters and what was active before them.

How it works, each stage with the judge's verdict on fresh systems:
1. *Window*: the last 1, 2, 4, ... letters, entered by the canonical word of the state
   where they begin; looks of the walk left out first, then put back.
2. *Reduction*: delta debugging (Zeller and Hildebrandt 2002) takes out runs of letters,
   then single letters, while the word still fails.
3. *Breadth-first search* over all words by length, over the letters that the reduced
   word needs and the look.  When every shorter word passes, the word is proven shortest
   over those letters.  States of equal complete fingerprint are expanded once (T1), but
   only when the fault itself shows in the fingerprint.
4. The same search over all letters, where it is affordable.

The allowance of letters ends any stage; the best word so far stands, unproven.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from harness.engine.alphabet import Alphabet, Key, active, state_of, toggled
from harness.engine.judge import Exhausted, Judge
from harness.engine.ledger import Ledger
from harness.engine.protocol import State, Word
from harness.engine.replay import Fault
from harness.engine.result import Kind
from harness.engine.session import Finding


@dataclass(frozen=True, slots=True)
class Shrunk:
    """A short word, what it shows, and whether a shorter one is ruled out."""

    word: Word
    fault: Fault
    proven: bool


def shrink(
    judge: Judge, finding: Finding, alphabet: Alphabet, ledger: Ledger
) -> Shrunk | None:
    """Shrink a finding; None when no window of it fails on a fresh system."""
    kind = finding.kind
    try:
        word = _window(judge, finding, alphabet, ledger)
    except Exhausted:
        return None
    if word is None:
        return None
    word = _reduced(judge, word, kind)
    needed = tuple(sorted({*word, alphabet.look}))
    memo = _shows_in_fingerprint(judge, word)
    shorter, proven = _search(judge, kind, needed, len(word), memo=memo)
    word = shorter if shorter is not None else word
    whole = tuple(range(alphabet.look + 1))
    if proven and len(needed) < len(whole) and _cost(whole, len(word)) <= judge.left:
        shorter, _ = _search(judge, kind, whole, len(word), memo=memo)
        word = shorter if shorter is not None else word
    # One more replay of a word that is known to fail: the allowance is for searching.
    judge.extend(len(word))
    fault = judge.fault(word, kind)
    return None if fault is None else Shrunk(word, fault, proven)


def _window(
    judge: Judge, finding: Finding, alphabet: Alphabet, ledger: Ledger
) -> Word | None:
    root: Key = () if isinstance(finding.key, tuple) else 0
    keys = _keys(root, finding.word, alphabet, ledger)
    ends = [len(finding.word)]
    # The first visit may be the one that was wrong: a complete state is compared with
    # the first one met, not with a cold reference.
    first = keys.index(keys[-1])
    if first < ends[0]:
        ends.append(first)
    for end in ends:
        for start in _starts(end):
            way = judge.way(state_of(keys[start]))
            tail = finding.word[start:end]
            bare = tuple(letter for letter in tail if letter != alphabet.look)
            for candidate in dict.fromkeys((way + bare, way + tail)):
                if judge.fault(candidate, finding.kind) is not None:
                    return candidate
    return None


def _starts(end: int) -> Iterator[int]:
    """Where the windows begin: 1, 2, 4, ... letters before the end, then at 0."""
    length = 1
    while length < end:
        yield end - length
        length *= 2
    yield 0


def _keys(root: Key, word: Word, alphabet: Alphabet, ledger: Ledger) -> list[Key]:
    """The key before each letter and at the end, as far as failing is known."""
    key = root
    keys = [key]
    for letter in word:
        if letter < alphabet.steps and (
            active(key, letter) or (key, letter) not in ledger.failures
        ):
            key = toggled(key, letter)
        keys.append(key)
    return keys


def _reduced(judge: Judge, word: Word, kind: Kind) -> Word:
    """Take out runs of letters, halving their length, then single ones to the end."""
    chunk = max(len(word) // 2, 1)
    try:
        while True:
            before = word
            at = 0
            while at < len(word):
                trial = word[:at] + word[at + chunk :]
                if judge.fault(trial, kind) is not None:
                    word = trial
                else:
                    at += chunk
            if chunk > 1:
                chunk //= 2
            elif word == before:
                return word
    except Exhausted:
        return word


def _search(
    judge: Judge, kind: Kind, letters: Word, below: int, *, memo: bool
) -> tuple[Word | None, bool]:
    """The first failing word shorter than `below`, and whether the search ended."""
    level: list[Word] = [()]
    met: set[tuple[State, object]] = set()
    for _ in range(below):
        following: list[Word] = []
        for word in level:
            try:
                played = judge.replay(word)
                if judge.inspect(word, played, kind) is not None:
                    return word, True
            except Exhausted:
                return None, False
            if memo and played.actions:
                # Before the final look, which is no part of what is expanded.
                mark = (played.state, played.unlooked)
                if mark in met:
                    continue
                met.add(mark)
            following += [(*word, letter) for letter in letters]
        level = following
    return None, True


def _cost(letters: Word, below: int) -> int:
    return sum(int(len(letters) ** size) * (size + 1) for size in range(below))


def _shows_in_fingerprint(judge: Judge, word: Word) -> bool:
    try:
        end = judge.replay(word).actions[-1]
        other = judge.replay(judge.way(end.state)).actions[-1]
    except Exhausted:
        return False
    return end.state == other.state and end.fingerprint != other.fingerprint
