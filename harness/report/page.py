"""All reports as one page that needs no network, and as a JSON document.

The page is one file made from `templates/`: it contains a style sheet and a small
script, its content policy allows these two by their digests and nothing else, and it
stays below ten megabytes (`state_lattice.py` lists the omitted parts). Without the
script everything can be read; the script adds the filter, the copy buttons, and opens
the sections around the target of a link to a state. A scenario's facts are in the order
of its text. The JSON document, for programs, holds verdicts, guarantees, counts and
violations; dumps are stored in the expect files only. Both depend on the reports only,
not on time or place.

Rules:
- Python computes plain data, a template only places it: no markup here;
- every value is text, also one whose class has `__html__`: it is escaped, and its
  control and bidirectional characters are visible. Templates therefore do not use
  macros, as their results would be escaped, too;
- Jinja2 is imported when a page is written, since most runs write none;
- no external addresses.

When you change a field of the document, change `FORMAT`.
"""

import json
import os
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from everyorder.harness.engine.result import Violation
from everyorder.harness.report.evidence import (
    explanation,
    extent,
    other_history_lines,
    recurrence_lines,
    replay_commands,
)
from everyorder.harness.report.observation import visible
from everyorder.harness.report.raised import raised_lines, typo_lines, vacuity_lines
from everyorder.harness.report.state_lattice import (
    Allowance,
    Lattice,
    StateListing,
    lattice,
    listing,
)
from everyorder.harness.report.summary_table import COMMON, duration, note_texts
from everyorder.harness.report.text import (
    counts_text,
    facts,
    plural,
    sentence,
    short_guarantee,
    square_sentence,
)
from everyorder.harness.report.verdict import Report, Unexplored

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True, slots=True)
class UnexploredBox:
    """A scenario that was not explored; `kind` is the class of its badge."""

    kind: str
    sentence: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class ViolationBox:
    """One violation; `detail` has parts of a diff, each with its class or ""."""

    claim: str
    state: str
    extent: str
    history: str
    square: str
    other: str
    head: str
    detail: tuple[tuple[str, str], ...]
    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScenarioSection:
    """One scenario: a row of the table, and a section.

    `label` is the end of its name, `kind` the class of its badge, `searched` the text
    that the filter searches.
    """

    anchor: str
    name: str
    label: str
    kind: str
    badge: str
    searched: str
    passed: bool
    facts: str
    sentence: str
    steps: tuple[str, ...]
    uses: tuple[str, ...]
    states: str
    transitions: str
    strategy: str
    guarantee: str
    time: str
    violations: tuple[ViolationBox, ...]
    claims: tuple[tuple[str, tuple[str, ...]], ...]
    counts: str
    lattice: Lattice | None
    listing: StateListing


@dataclass(frozen=True, slots=True)
class ScenarioGroup:
    """The scenarios of one file."""

    file: str
    scenarios: tuple[ScenarioSection, ...]


@dataclass(frozen=True, slots=True)
class PageData:
    """The data of `templates/page.html.j2`."""

    title: str
    totals: tuple[tuple[str, str], ...]
    unexplored: tuple[UnexploredBox, ...]
    groups: tuple[ScenarioGroup, ...]
    scenarios: tuple[ScenarioSection, ...]
    notes: tuple[str, ...]


def write(
    folder: Path, reports: Sequence[Report], unexplored: Sequence[Unexplored] = ()
) -> Path:
    """Write `index.html` and `report.json` into the folder; return the page's path.

    Each file is replaced as a whole, after both are written. Text that UTF-8 cannot
    encode (half of a surrogate pair) is written as its escape.

    Raises:
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "report.json": document(reports, unexplored),
        "index.html": page(reports, unexplored),
    }
    pending = {name: folder / f"{name}.new" for name in texts}
    try:
        for name, text in texts.items():
            pending[name].write_text(text, "utf-8", "backslashreplace")
        for name, written in pending.items():
            os.replace(written, folder / name)
    finally:
        for written in pending.values():
            written.unlink(missing_ok=True)
    return folder / "index.html"


def page(reports: Sequence[Report], unexplored: Sequence[Unexplored] = ()) -> str:
    """Return the page as text."""
    environment = _environment()
    digests = {name: _digest(environment, f"page.{name}") for name in ("css", "js")}
    template = environment.get_template("page.html.j2")
    return template.render(page=page_data(reports, unexplored), digests=digests)


def _environment() -> "Environment":
    """Return the environment of the templates."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["pre"] = _kept_line_break
    return environment


def _shown(value: object) -> object:
    """Return a text without invisible characters, and without the markup of its class.

    An observed text may be an instance of `markupsafe.Markup`, which is not escaped.
    """
    return visible(str.__str__(value)) if isinstance(value, str) else value


def _kept_line_break(text: str) -> str:
    """Return the content of a `pre` element; browsers drop its first line break."""
    return f"\n{text}" if text.startswith("\n") else text


def _digest(environment: "Environment", name: str) -> str:
    """Return the digest of an included file, as a content policy names it."""
    text = environment.get_template(name).render()
    return b64encode(sha256(text.encode()).digest()).decode()


def page_data(
    reports: Sequence[Report], unexplored: Sequence[Unexplored] = ()
) -> PageData:
    """Return the data of the page; anchors are `s1`, `s2` and so on."""
    allowance = Allowance()
    sections = tuple(
        _section(report, f"s{number}", allowance)
        for number, report in enumerate(reports, 1)
    )
    files = groupby(sections, lambda section: section.name.rpartition("/")[0])
    return PageData(
        plural(len(reports), "scenario"),
        _totals(reports, unexplored),
        tuple(
            UnexploredBox(
                "unexplored" if each.failed else "cut-short",
                each.sentence,
                each.scenario,
                each.render(),
            )
            for each in unexplored
        ),
        tuple(
            ScenarioGroup(file.removeprefix(COMMON), tuple(scenarios))
            for file, scenarios in files
        ),
        sections,
        tuple(note_texts(reports)),
    )


def _totals(
    reports: Sequence[Report], unexplored: Sequence[Unexplored]
) -> tuple[tuple[str, str], ...]:
    explorations = [report.exploration for report in reports]
    failed = sum(each.failed for each in unexplored)
    failed += sum(not report.passed for report in reports)
    number = len(reports) + len(unexplored)
    totals = (
        (number, "scenario" if number == 1 else "scenarios"),
        (failed, "failed"),
        (sum(report.verdict == "proven" for report in reports), "proven, any length"),
        (sum(len(each.states) for each in explorations), "states"),
        (
            sum(each.executed.transitions for each in explorations),
            "transitions executed",
        ),
    )
    return tuple((f"{count:,}", name) for count, name in totals)


def _section(report: Report, anchor: str, allowance: Allowance) -> ScenarioSection:
    exploration = report.exploration
    guarantee = short_guarantee(report)
    states = plural(len(exploration.states), "state")
    promise = guarantee if report.passed else "no guarantee"
    text = sentence(report).removeprefix(f"{report.verdict}: ")
    return ScenarioSection(
        anchor=anchor,
        name=report.scenario,
        label=report.scenario.rpartition("/")[2],
        kind=report.verdict.replace(" ", "-"),
        badge=f"{report.verdict}{'*' if report.assumes else ''}",
        searched=f"{report.scenario} {report.verdict} {exploration.strategy}".lower(),
        passed=report.passed,
        facts=f"{plural(len(report.steps), 'step')}, {states}, {promise}",
        sentence=f"{text[0].upper()}{text[1:]}.",
        steps=report.steps,
        uses=report.uses,
        states=f"{len(exploration.states):,}",
        transitions=f"{exploration.executed.transitions:,}",
        strategy=exploration.strategy.replace("+", " + "),
        guarantee=guarantee,
        time=duration(exploration.seconds),
        violations=tuple(_violation(report, each) for each in exploration.violations),
        claims=tuple(
            (title.capitalize(), lines) for title, lines in facts(report) if lines
        ),
        counts=counts_text(report),
        lattice=lattice(report, anchor),
        listing=listing(report, anchor, allowance),
    )


def _violation(report: Report, violation: Violation) -> ViolationBox:
    head, *rest = (
        *explanation(violation),
        *raised_lines(report, violation),
        *recurrence_lines(violation),
    )
    square = violation.square
    return ViolationBox(
        claim=violation.claim,
        state=report.state_name(violation.state),
        extent=extent(violation, len(violation.shown)),
        history="\n".join(report.violation_lines(violation)),
        square="" if square is None else square_sentence(report, square),
        other="\n".join(other_history_lines(report, violation)),
        head=head,
        detail=_diff(rest),
        commands=tuple(replay_commands(report, violation)),
    )


def _diff(lines: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return the lines of a diff, each with its class or ""."""
    texts = [line.removeprefix("    ") for line in lines]
    kinds = {"+": "plus", "-": "minus"}
    return tuple((kinds.get(text[:1], ""), text) for text in texts)


FORMAT = 3


def document(reports: Sequence[Report], unexplored: Sequence[Unexplored] = ()) -> str:
    """Return the document as text, keys in a fixed order, ending with a newline."""
    value = document_data(reports, unexplored)
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def document_data(
    reports: Sequence[Report], unexplored: Sequence[Unexplored] = ()
) -> dict[str, Any]:
    """Return the document as JSON data."""
    return {
        "format": FORMAT,
        "scenarios": [_scenario_data(report) for report in reports],
        "unexplored": [each.data() for each in unexplored],
    }


def _scenario_data(report: Report) -> dict[str, Any]:
    exploration = report.exploration
    executed = exploration.executed
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
        "strategy": exploration.strategy,
        "guarantee": exploration.guarantee,
        "assumptions": exploration.assumptions,
        "assumed": report.assumes,
        "open": report.bounds,
        "skipped": exploration.skipped,
        "typos": typo_lines(report),
        "vacuous": vacuity_lines(report),
        "proven": exploration.proven,
        "closure": None
        if exploration.closure is None
        else {
            name: getattr(exploration.closure, name)
            for name in type(exploration.closure).__slots__
        },
        "spent": dict(exploration.spent),
        "complete": exploration.complete,
        "planned": exploration.planned,
        "seconds": round(exploration.seconds, 6),
        "states": len(exploration.states),
        "failing": len(exploration.failures),
        "refused": len(exploration.refusals),
        "executed": {
            name: getattr(executed, name) for name in type(executed).__slots__
        },
        "violations": [
            _violation_data(report, each) for each in exploration.violations
        ],
    }


def _violation_data(report: Report, violation: Violation) -> dict[str, Any]:
    square = violation.square
    return {
        "kind": violation.kind,
        "state": report.state_name(violation.state),
        "lines": report.violation_lines(violation),
        "other": None if violation.other is None else report.other_lines(violation),
        "shortest": violation.shortest is not None,
        "proven_shortest": violation.proven_shortest,
        "square": None if square is None else square_sentence(report, square),
        "difference": explanation(violation, whole=True),
        "raised": raised_lines(report, violation),
        "paths": violation.paths,
        "replayed": violation.replayed,
        "frequency": violation.frequency,
        "more": violation.more,
        "replay_id": report.replay_id(violation),
    }
