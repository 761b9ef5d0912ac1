"""What the harness says of an entry, held against what is true of it.

`judge` returns complaints; each begins with its kind:

- `wrong`: a verdict that is not so: a faulty registry that is proven or holds, a sound
  one that is refuted or called vacuous, a flaky one that is called order-dependent, a
  fault that is not there in the history shown, "no shorter history shows it" where a
  shorter one does, systems that are not fresh without a difference;
- `open`: no verdict where one can be had, and no false one.

A verdict can be had (`Known.decidable`) where the oracle closed and the memory is in
something that can be seen.  Of the others a fault that shows within `SHORT` operations
must be found nevertheless.

"No shorter" is held against the oracle restricted to the operations that occur in the
history, and the look.
"""

from dataclasses import dataclass
from time import perf_counter
from typing import Literal

from everyorder.harness import Report, Violation, explore
from everyorder.harness.base.errors import HarnessError
from tests.zoo.entry import Entry
from tests.zoo.model import Model, Reply, State
from tests.zoo.oracle import Truth, ends, play, truth

Expected = Literal["correct", "faulty", "flaky", "not fresh", "harmless", "undecided"]

# Whatever else is done, histories of so many operations are to be played.
SHORT = 3

# So often a flaky one fails that not to notice is not to look.
OFTEN = 0.5

# Kinds of violations that are about the scenario's soundness, not about the law.
OF_THEIR_OWN = ("nondeterminism", "not fresh")


@dataclass(frozen=True)
class Known:
    """What is true of an entry."""

    expected: Expected
    decidable: bool
    oracle: Truth


class Restarted(Model):
    """A model that `create` does not make fresh; to make another one is an operation.

    It takes the place of collecting, which changes nothing here.
    """

    collects = True

    def __init__(self, model: Model) -> None:
        super().__init__(model.steps, model.uses)
        self.model = model

    def fresh(self) -> State:
        return self.model.fresh()

    def do(self, state: State, step: int) -> Reply:
        return self.model.do(state, step)

    def undo(self, state: State, step: int) -> Reply:
        return self.model.undo(state, step)

    def use(self, state: State, use: int) -> Reply:
        return self.model.use(state, use)

    def look(self, state: State) -> Reply:
        return self.model.look(state)

    def collect(self, state: State) -> State:
        return ((), *state[1:])


def known(entry: Entry) -> Known:
    """What is true of an entry."""
    found = entry.truth()
    if entry.rate:
        return Known("flaky", False, found)
    if entry.seal == "process":
        across = truth(Restarted(entry.model))
        seen = across.verdict == "faulty"
        return Known("not fresh" if seen else "harmless", seen, found)
    decidable = found.closed and entry.seal not in ("opaque", "outside")
    return Known(found.verdict, decidable, found)


def judge(entry: Entry, report: Report, *, bounded: bool = False) -> list[str]:
    """Complaints about a report; a `bounded` strategy may find nothing."""
    what = known(entry)
    verdict = report.verdict
    return [
        *_of_verdict(entry, what, verdict, bounded=bounded),
        *(
            complaint
            for violation in report.exploration.violations
            for complaint in _of_violation(entry, what, violation)
        ),
    ]


def _of_verdict(entry: Entry, what: Known, verdict: str, *, bounded: bool) -> list[str]:
    """Complaints about the one word."""
    called = f"{what.expected}, called {verdict}"
    refuted = verdict in ("order", "law", "hidden", "unpinned")
    held = verdict in ("holds", "proven")
    undecided = verdict in ("cut short", "holds")
    wrong, left = [f"wrong: {called}"], [f"open: {called}"]
    if verdict == "vacuous":
        return wrong
    match what.expected:
        case "flaky":
            unseen = verdict == "holds" and entry.rate >= OFTEN and not bounded
            misnamed = refuted or verdict in ("proven", "not fresh") or unseen
            return wrong if misnamed else []
        case "not fresh":
            if verdict == "not fresh" or (bounded and undecided):
                return []
            return left if verdict == "cut short" else wrong
        case "harmless":
            return wrong if refuted or verdict == "nondeterminism" else []
        case "undecided":
            return [] if undecided else wrong
        case "correct":
            if undecided:
                return left if what.decidable and not bounded else []
            return [] if held else wrong
    if refuted:
        return []
    if verdict == "proven" or not undecided:
        return wrong
    if bounded:
        return []
    length = what.oracle.length
    assert length is not None, "a faulty one has a shortest history"
    if verdict == "holds" and (what.decidable or length <= SHORT):
        return wrong
    return left if what.decidable or length <= SHORT else []


def _of_violation(entry: Entry, what: Known, violation: Violation) -> list[str]:
    """Complaints about the history shown, and about what is said of its length."""
    if violation.kind == "not fresh" and not violation.paths:
        return ["wrong: called not fresh, without a difference"]
    if what.expected in ("flaky", "not fresh") or violation.kind in OF_THEIR_OWN:
        return []
    model, shortest = entry.model, violation.shortest
    shown = violation.history if shortest is None else shortest
    complaints = []
    if not violation.hidden and not shows(model, shown, what.oracle):
        complaints.append(f"wrong: nothing is seen in {shown}")
    if shortest is not None and violation.proven_shortest:
        look = model.steps + model.uses
        chosen = tuple(sorted({*shortest, look}))
        least = truth(model, chosen)
        if least.length is not None and least.length < len(shortest):
            complaints.append(
                f"wrong: {shortest} is said to be shortest, "
                f"and {least.history} is shorter"
            )
    return complaints


def shows(model: Model, history: tuple[int, ...], oracle: Truth) -> bool:
    """Whether a history, with the look at its end, conflicts with any other one."""
    look = model.steps + model.uses
    state = model.fresh()
    for operation in (*history, look):
        active = state[0]
        after, answer = play(model, state, operation)
        if ends(model, state, operation, answer):
            return True
        if answer is not None and oracle.events[active, operation] != {answer}:
            return True
        state = after
    return False


@dataclass(frozen=True)
class Judgement:
    """One entry, judged: its complaints, and what the exploration cost."""

    entry: Entry
    verdict: str
    complaints: tuple[str, ...]
    operations: int
    seconds: float

    def has(self, kind: str) -> bool:
        """Whether there is a complaint of this kind."""
        return any(complaint.startswith(kind) for complaint in self.complaints)

    def line(self) -> str:
        """The entry and all that is to be said of it."""
        return "\n    ".join(
            (f"{self.entry.name}: {self.entry.variant}", *self.complaints)
        )


def _died(entry: Entry, how: str, error: Exception, start: float) -> Judgement:
    name = type(error).__name__
    told = f"{how} with {name}: {error}"
    return Judgement(entry, name, (told,), 0, perf_counter() - start)


def examine(entry: Entry, strategy: str = "auto") -> Judgement:
    """Explore an entry and judge the report."""
    start = perf_counter()
    with entry.living() as living:
        try:
            report = explore(living.scenario(entry.name), strategy)
        except HarnessError as refusal:
            return _died(entry, "open: refused", refusal, start)
        except Exception as crash:  # the harness's own
            return _died(entry, "wrong: died", crash, start)
    complaints = judge(entry, report, bounded=strategy != "auto")
    done = report.exploration.executed
    operations = done.adds + done.removes + done.failing + done.uses + done.observations
    seconds = perf_counter() - start
    return Judgement(entry, report.verdict, tuple(complaints), operations, seconds)
