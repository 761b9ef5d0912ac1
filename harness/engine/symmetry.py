"""Symmetric steps: declared by the scenario, checked here, and then used.

Two steps that "differ only in their parameter" are exchangeable: a history and its
twin, in which the two steps are exchanged, have the same results, with the two
parameters exchanged.  States that differ only by such an exchange need not be explored
twice (symmetry reduction: Ip and Dill, "Better verification through symmetry", 1996),
which turns the 2^m sets of m steps into m + 1.

How it works:
- *Check*: the first step of a class is compared with each of the others, in every
  history of at most `DEPTH` operations over both, a third one, all uses and looks, and
  in those that begin with any one other step; each is played on a fresh system, and all
  results are compared.  The relations of the two must be the same.
- *Exchange*: results are compared as texts, in which the parameter is one or several
  whole words.  Items that are sorted by name move when the name changes, so the order
  of lines, and of words in a line, is ignored; the same steps in two orders are played
  as well, and compared exactly by the strategies that compare all histories.
- *Use*: at a state, two steps of a class represent each other if its history contains
  neither, or if the twin of its history leads to the same state; the lowest of those
  that can be done is played, and the highest of those that can be undone.  If only the
  order of dicts differs then, later results are compared, and the proof assumes that
  the order is not read.

Rule: the claim is an assumption of every state that it skipped, and is reported.
"""

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import islice, product
from typing import NamedTuple

from everyorder.harness.base.errors import BadScenario
from everyorder.harness.engine.protocol import (
    Caveat,
    History,
    Key,
    Operations,
    Relations,
    StateForm,
    Symmetry,
)
from everyorder.harness.engine.session import ExplorationSession

# Operations of the longest histories of the check; one less if there would be too many.
DEPTH = 3
MOST_CHECKED = 20_000

# Twins that are tried at any rate; later ones only if one of four was equal so far.
MOST_FUTILE = 50

_WORD = re.compile(r"\w+|[^\w\s]")


def check(session: ExplorationSession) -> None:
    """Check the declared symmetries, and allow their use from then on.

    Sets `session.symmetries`.

    Raises:
        BadScenario: a symmetry is refuted, unless a fault was found, which has
            priority.
    """
    declared = session.operations.relations.symmetric
    _Check(session).run(declared)
    if not session.findings:
        session.symmetries = declared


def caveats(session: ExplorationSession) -> Iterator[Caveat]:
    """Yield the claims that were used, as assumptions."""
    for symmetry in session.symmetries if session.symmetry_used else ():
        names = [symmetry.text(member) for member in sorted(symmetry.members)]
        if len(names) > 3:
            names[1:-1] = ["..."]
        yield Caveat(
            "assumed",
            f"{', '.join(names)} are interchangeable, as declared; this was checked by "
            f"{session.symmetry_checks:,} histories",
        )


class Reduction(NamedTuple):
    """The steps that need not be played at a state.

    For each of the `redundant` steps another one of its class is played.  `twins` are
    histories to the same state with dicts in another order, and `order_read` means that
    one of them has other results after it.  `moved` means that the check played other
    histories, so that the system is not at the state any more.
    """

    redundant: frozenset[int]
    twins: tuple[History, ...]
    order_read: bool
    moved: bool


class Orbits:
    """The interchangeable steps at the states of one search."""

    def __init__(
        self, session: ExplorationSession, steps: frozenset[int], *, exact: bool
    ) -> None:
        self._session = session
        self._steps = steps
        self._exact = exact
        self._tried = 0
        self._alike = 0

    def reduction(self, history: History) -> Reduction:
        """Return the reduction at the current state, which `history` reached."""
        before = self._tried
        here = self._state()
        mask = self._session.player.mask
        redundant: set[int] = set()
        twins: list[History] = []
        for symmetry in self._session.symmetries:
            members = sorted(symmetry.members.keys() & self._steps)
            for active in (0, 1):
                there = [each for each in members if mask >> each & 1 == active]
                orbits: list[list[int]] = []
                for member in there:
                    for orbit in orbits:
                        twin = swap(history, orbit[0], member)
                        if twin != history:
                            state = self._tried_twin(twin)
                            if state is None or state[:2] != here[:2]:
                                continue
                            self._alike += 1
                            if state != here:
                                twins.append(twin)
                                both = (orbit[0], member)
                                if self._is_order_read(history, twin, both, members):
                                    return Reduction(
                                        frozenset(), (), order_read=True, moved=True
                                    )
                        orbit.append(member)
                        break
                    else:
                        orbits.append([member])
                for orbit in orbits:
                    redundant.update(orbit[:-1] if active else orbit[1:])
        moved = self._tried > before
        return Reduction(
            frozenset(redundant), tuple(twins), order_read=False, moved=moved
        )

    def _state(self) -> tuple[Key, bytes, bytes]:
        """Return the key, the form that identifies the state, and the exact form."""
        player = self._session.player
        form = player.state()
        assert isinstance(form, StateForm), "complete states are explored"
        name = form.exact if self._exact else form.blind
        return player.key, name, form.exact

    def _tried_twin(self, twin: History) -> tuple[Key, bytes, bytes] | None:
        """Return the state after a twin; None if trying twins does not pay any more."""
        if self._tried >= MOST_FUTILE and self._alike * 4 < self._tried:
            return None
        self._tried += 1
        _play(self._session, twin)
        return self._state()

    def _is_order_read(
        self, history: History, twin: History, both: Sequence[int], members: list[int]
    ) -> bool:
        """Return True if the results after the twin differ; looks are compared by key.

        Of the class, the two steps are played, and the first one that is not active.
        """
        operations, mask = self._session.operations, self._session.player.mask
        first = [each for each in members if not mask >> each & 1][:1]
        following = sorted(
            {*both, *first, *self._steps.difference(members)}
            | {*range(operations.steps, operations.look + 1)}
        )
        for operation in following:
            ends = []
            for each in (history, twin):
                value = _play(self._session, (*each, operation))[-1]
                ends.append((value, self._state()[:2]))
            if ends[0] != ends[1]:
                return True
        return False


def swap(history: History, one: int, other: int) -> History:
    """Return the twin: the history with two steps exchanged."""
    turn = {one: other, other: one}
    return tuple(turn.get(operation, operation) for operation in history)


def _play(session: ExplorationSession, history: History) -> list[Hashable]:
    """Return the results of a history on a fresh system, outside of the plan."""
    session.meter.check_time()
    session.player.reset()
    return [session.player.play(operation) for operation in history]


class _Check:
    """Plays each history once, and compares it with its twin."""

    def __init__(self, session: ExplorationSession) -> None:
        self._session = session
        self._operations = session.operations
        self._known: dict[History, list[Hashable]] = {}

    def run(self, declared: Sequence[Symmetry]) -> None:
        for symmetry in declared:
            first, *others = sorted(symmetry.members)
            for other in others:
                if not _are_related_alike(self._operations.relations, first, other):
                    raise BadScenario(
                        code="NotSymmetric",
                        one=symmetry.text(first),
                        other=symmetry.text(other),
                        reason="their relations to other steps differ",
                    )
            for depth in (DEPTH, DEPTH - 1):
                checks = [
                    (other, self._histories((first, other, third), depth))
                    for other, third in zip(
                        others, others[1:] + others[:1], strict=True
                    )
                ]
                if sum(len(each) for _, each in checks) <= MOST_CHECKED:
                    break
            for other, histories in checks:
                for history in histories:
                    self._compare(symmetry, history, first, other)
        self._session.symmetry_checks = len(self._known)

    def _compare(
        self, symmetry: Symmetry, history: History, one: int, other: int
    ) -> None:
        twin = swap(history, one, other)
        exchange = Exchange(symmetry.members[one], symmetry.members[other])
        left, right = self._results(history), self._results(twin)
        if self._session.findings:
            return
        history, twin = ((*each, self._operations.look) for each in (history, twin))
        for at, (value, theirs) in enumerate(zip(left, right, strict=True)):
            if exchange.words(value) != Exchange((), ()).words(theirs):
                ends = [(history[: at + 1], value), (twin[: at + 1], theirs)]
                raise BadScenario(
                    code="NotSymmetric",
                    one=symmetry.text(one),
                    other=symmetry.text(other),
                    reason=self._confusion(symmetry, (one, other), ends)
                    or "; ".join(self._line(symmetry, *end) for end in ends),
                )

    def _confusion(
        self,
        symmetry: Symmetry,
        steps: tuple[int, int],
        ends: list[tuple[History, Hashable]],
    ) -> str:
        """Return the line where a parameter occurs without its step, or ""."""
        for step in steps:
            for history, value in ends:
                if step not in history and any(
                    occurs_in(text, line)
                    for text in symmetry.members[step]
                    for line in lines_of(value)
                ):
                    return (
                        f"{symmetry.members[step][0]} occurs without "
                        f"{symmetry.text(step)}, so its meaning is ambiguous "
                        f"({self._line(symmetry, history, value)})"
                    )
        return ""

    def _results(self, history: History) -> list[Hashable]:
        results = self._known.get(history)
        if results is None:
            played = _play(self._session, (*history, self._operations.look))
            results = self._known[history] = played
        return results

    def _histories(self, steps: tuple[int, int, int], depth: int) -> list[History]:
        histories = _histories(self._operations, *steps, depth=depth)
        return list(islice(histories, MOST_CHECKED + 1))

    def _line(self, symmetry: Symmetry, history: History, value: Hashable) -> str:
        """Return a history and the result of its last operation, as text."""
        operations = self._operations
        words = []
        for operation in history:
            if operation in symmetry.members:
                words.append(symmetry.text(operation))
            elif operation < operations.steps:
                words.append(f"step {operation + 1}")
            elif operation < operations.actions:
                words.append(f"use {operation - operations.steps + 1}")
            else:
                words.append("observe()")
        result = " / ".join(lines_of(value)) or "nothing"
        return f"{', '.join(words)} gives {result}"


class Exchange:
    """Exchanges two parameters in a result."""

    def __init__(self, one: Sequence[str], other: Sequence[str]) -> None:
        pairs = list(zip(one, other, strict=True))
        self._partners = dict(pairs) | {right: left for left, right in pairs}
        self._pattern = _word_pattern(self._partners)

    def words(self, value: Hashable) -> list[list[str]]:
        """Return the sorted words of each line, with the parameters exchanged."""
        lines = lines_of(value)
        if self._partners:
            lines = [self._pattern.sub(self._partner, line) for line in lines]
        return sorted(sorted(_WORD.findall(line)) for line in lines)

    def _partner(self, match: re.Match[str]) -> str:
        return self._partners[match[0]]


def occurs_in(text: str, other: str) -> bool:
    """Return True if a text occurs in another one as whole words; an empty one does."""
    return not text or _word_pattern([text]).search(other) is not None


def _word_pattern(texts: Iterable[str]) -> re.Pattern[str]:
    """Return the pattern that finds texts as whole words, the longest first."""
    longest = sorted(map(re.escape, texts), key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(longest)})(?!\w)")


def lines_of(value: Hashable) -> list[str]:
    """Return the lines of a result; no lines for None."""
    if isinstance(value, tuple):
        return [line for each in value for line in lines_of(each)]
    if value is None:
        return []
    if isinstance(value, str):
        return value.splitlines()
    return [f"{type(value).__name__} {line}" for line in str(value).splitlines()]


def _histories(
    operations: Operations, one: int, other: int, third: int, *, depth: int
) -> Iterator[History]:
    """Yield the histories of the check, which contain one of the two steps."""
    uses = range(operations.steps, operations.look + 1)
    members = dict.fromkeys((one, other, third))
    both = {one, other}
    besides = [step for step in range(operations.steps) if step not in members]
    for length in range(1, depth + 1):
        for history in product((*members, *uses), repeat=length):
            if both.intersection(history):
                yield history
        for history in product((one, other, *uses), repeat=length - 1):
            if both.intersection(history):
                yield from ((step, *history) for step in besides)


def _are_related_alike(relations: Relations, one: int, other: int) -> bool:
    """Return True if the relations of one step are those of the other."""

    def turned(steps: Iterable[int]) -> frozenset[int]:
        return frozenset(swap(tuple(steps), one, other))

    return (
        all(
            turned(each) == each
            for each in (
                relations.lasting,
                relations.again,
                relations.refusable,
                relations.declared,
            )
        )
        and all(
            {swap((step,), one, other)[0]: turned(each) for step, each in of.items()}
            == dict(of)
            for of in (
                relations.requires,
                relations.after,
                relations.excludes,
                relations.ends,
            )
        )
        and {turned(pair) for pair in relations.pairs}
        == {frozenset(pair) for pair in relations.pairs}
    )
