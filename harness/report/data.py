"""All reports as one JSON document, for programs.

True only here: the fields and their names.  The document holds verdicts, guarantees,
counts and violations; dumps are left to the expect files, which are their store.

When you change a field, change `FORMAT`.
"""

import json
from collections.abc import Sequence
from typing import Any

from harness.engine.result import Violation
from harness.outcome import Report
from harness.report.label import square_sentence
from harness.report.text import explanation, vacuous
from harness.report.unexplored import Unexplored

FORMAT = 3


def document(reports: Sequence[Report], unexplored: Sequence[Unexplored] = ()) -> str:
    """The document as text, keys in a fixed order, ending with a newline."""
    value = {
        "format": FORMAT,
        "scenarios": [_scenario(report) for report in reports],
        "unexplored": [each.data() for each in unexplored],
    }
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def _scenario(report: Report) -> dict[str, Any]:
    found = report.exploration
    executed = found.executed
    return {
        "scenario": report.scenario,
        "digest": report.digest,
        "verdict": report.verdict,
        "passed": report.passed,
        "steps": report.steps,
        "uses": report.uses,
        "order_dependent": report.order_dependent,
        "ordered": [
            [report.steps[one], report.steps[two]] for one, two in report.pairs
        ],
        "strategy": found.strategy,
        "guarantee": found.guarantee,
        "assumptions": found.assumptions,
        "assumed": report.assumes,
        "open": report.bounds,
        "skipped": found.skipped,
        "vacuous": vacuous(report),
        "proven": found.proven,
        "closure": None
        if found.closure is None
        else {
            name: getattr(found.closure, name) for name in type(found.closure).__slots__
        },
        "spent": dict(found.spent),
        "complete": found.complete,
        "planned": found.planned,
        "seconds": round(found.seconds, 6),
        "states": len(found.states),
        "failing": len(found.failures),
        "refused": len(found.refusals),
        "executed": {
            name: getattr(executed, name) for name in type(executed).__slots__
        },
        "violations": [_violation(report, each) for each in found.violations],
    }


def _violation(report: Report, violation: Violation) -> dict[str, Any]:
    square = violation.square
    return {
        "kind": violation.kind,
        "state": report.state_name(violation.state),
        "lines": report.lines(violation.shortest or violation.history),
        "other": None if violation.other is None else report.lines(violation.other),
        "shortest": violation.shortest is not None,
        "proven_shortest": violation.proven_shortest,
        "square": None if square is None else square_sentence(report, square),
        "difference": explanation(violation, whole=True),
        "paths": violation.paths,
        "replayed": violation.replayed,
        "frequency": violation.frequency,
        "more": violation.more,
        "replay_id": report.replay_id(violation),
    }
