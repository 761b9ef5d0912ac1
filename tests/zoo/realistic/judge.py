"""The harness's verdict on a specimen, held against the oracle's.

`complaints_of` lists what is wrong; each complaint begins with its kind:

- `wrong`: a right registry that is refuted, flaky, not fresh or vacuous; a faulty one
  that is proven, that the default strategy does not refute, or that `histories:k` does
  not although k operations show it; a history that shows nothing; "no shorter history"
  where a shorter one of the same operations violates; systems that are not fresh
  without a difference;
- `open`: a right registry that the default strategy does not prove, with the reasons
  that the report gives.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from time import process_time

from everyorder import Budget, Report, Scenario, Step, Violation, explore, step, use
from everyorder.harness.base.errors import HarnessError
from tests.zoo.realistic.oracle import Truth, operations_of, shows, truth
from tests.zoo.realistic.specimen import Registration, Specimen
from tests.zoo.table import aligned

DEFAULT = "auto"
# Every strategy that can be named; `arrangements` and `full` take the orders of adding.
STRATEGIES = (
    "graph",
    "stale",
    "histories:3",
    "walk:2",
    "kA:1",
    "arrangements",
    "sca:2",
    "random:1",
    "groups",
    "parts",
    "full",
)
# Enough for each of them to end by itself, or to find a fault on the way.
EXPLICIT_BUDGET = Budget(steps=20_000)

REFUTED = ("order", "law", "hidden")
HELD = ("proven", "holds", "cut short")


def scenario_of(specimen: Specimen) -> Scenario:
    """The scenario of a specimen, by the public interface."""
    interface = specimen.interface
    return Scenario(
        *map(_step_of, interface.steps),
        uses=[use(text, perform) for text, perform in interface.uses],
        create=specimen.create,
        observe=interface.observe,
        ordered=interface.ordered,
        name=specimen.create.__name__,
    )


def _step_of(registration: Registration) -> Step:
    text, do = registration.text, registration.do
    requires, after = registration.requires, registration.after
    if registration.lasting:
        return step(text, do, undo=None, requires=requires, after=after)
    return step(text, do, requires=requires, after=after)


@dataclass(frozen=True)
class Judgement:
    """A verdict of the harness on a specimen, and the complaints about it.

    `excess` is the length of the shortest history shown, less that of the oracle's, if
    that is known; `seconds` are of this process, since others share the machine.
    """

    specimen: Specimen
    strategy: str
    faulty: bool
    verdict: str
    complaints: tuple[str, ...]
    excess: int | None
    seconds: float

    def has(self, kind: str) -> bool:
        """Return True if there is a complaint of this kind."""
        return any(complaint.startswith(kind) for complaint in self.complaints)

    def line(self) -> str:
        """The specimen, the strategy and the complaints as text."""
        head = f"{self.specimen.name} by {self.strategy}: {self.verdict}"
        if self.excess:
            head += f", by {self.excess} operations more than needed"
        return "\n    ".join((head, *self.complaints))


def judge(specimen: Specimen, known: Truth, strategy: str = DEFAULT) -> Judgement:
    """Explore a specimen and compare the report with the truth."""
    start = process_time()
    budget = None if strategy == DEFAULT else EXPLICIT_BUDGET
    try:
        report = explore(scenario_of(specimen), strategy, budget=budget)
    except HarnessError as refusal:
        seconds = process_time() - start
        complaint = f"refused: {type(refusal).__name__}: {refusal}"
        return Judgement(
            specimen, strategy, known.faulty, "refused", (complaint,), None, seconds
        )
    except Exception as crash:
        seconds = process_time() - start
        complaint = f"wrong: died with {type(crash).__name__}: {crash}"
        return Judgement(
            specimen, strategy, known.faulty, "died", (complaint,), None, seconds
        )
    seconds = process_time() - start
    violations = report.exploration.violations
    excess = None
    if known.length is not None and violations:
        shown = min(len(each.shown) for each in violations)
        excess = shown - known.length
    return Judgement(
        specimen,
        strategy,
        known.faulty,
        report.verdict,
        tuple(complaints_of(specimen, known, report, strategy)),
        excess,
        seconds,
    )


def complaints_of(
    specimen: Specimen, known: Truth, report: Report, strategy: str
) -> list[str]:
    """List what is wrong or open in a report."""
    verdict = report.verdict
    complaints = []
    if known.faulty:
        if verdict in REFUTED:
            for violation in report.exploration.violations:
                complaints += _of_violation(specimen, known, violation)
        elif verdict not in ("holds", "cut short") or _must_find(known, strategy):
            complaints.append(
                f"wrong: faulty after {known.length} operations, called {verdict}"
            )
    elif verdict not in HELD:
        shown = [
            f"{each.kind} after {each.shown}" for each in report.exploration.violations
        ]
        complaints.append(f"wrong: right, called {verdict} {shown}")
    elif strategy == DEFAULT and verdict != "proven":
        skipped = report.exploration.skipped
        reasons = "; ".join(map(str, (*report.bounds, *skipped)))
        complaints.append(f"open: right, called {verdict}: {reasons}")
    for violation in report.exploration.violations:
        if violation.kind == "not fresh" and not violation.paths:
            complaints.append("wrong: called not fresh, without a difference")
    return complaints


def _must_find(known: Truth, strategy: str) -> bool:
    """Return True if this strategy promises to find the fault."""
    name, _, depth = strategy.partition(":")
    if name == "histories":
        return known.length is not None and known.length <= int(depth)
    return strategy == DEFAULT


def _of_violation(specimen: Specimen, known: Truth, violation: Violation) -> list[str]:
    """List what is wrong about the history shown."""
    shown = violation.shown
    complaints = []
    if not violation.hidden and not shows(specimen, shown, known.events):
        complaints.append(f"wrong: {violation.kind} after {shown}, which shows nothing")
    if violation.proven_shortest and violation.shortest is not None:
        look = operations_of(specimen)[-1 - specimen.interface.collects]
        least = truth(specimen, sorted({*shown, look}))
        if least.length is not None and least.length < len(shown):
            complaints.append(
                f"wrong: {shown} is called shortest, and {least.history} is shorter"
            )
    return complaints


HEAD = (
    *("kind", "right", "proven", "holds", "cut", "faulty", "refuted", "shortest"),
    *("wrong", "seconds"),
)


def table(judgements: Sequence[Judgement]) -> str:
    """Count the verdicts of one strategy by kind, as text."""
    kinds = list(dict.fromkeys(each.specimen.interface.kind for each in judgements))
    rows = [
        HEAD,
        *(
            _row(kind, [j for j in judgements if j.specimen.interface.kind == kind])
            for kind in kinds
        ),
        _row("all", judgements),
    ]
    return aligned(rows)


def _row(kind: str, judgements: Sequence[Judgement]) -> tuple[str, ...]:
    right = [each for each in judgements if not each.faulty]
    faulty = [each for each in judgements if each.faulty]
    return (
        kind,
        str(len(right)),
        *(str(sum(each.verdict == verdict for each in right)) for verdict in HELD),
        str(len(faulty)),
        str(sum(each.verdict in REFUTED for each in faulty)),
        str(sum(each.excess == 0 for each in faulty)),
        str(sum(each.has("wrong") for each in judgements)),
        f"{sum(each.seconds for each in judgements):.1f}",
    )
