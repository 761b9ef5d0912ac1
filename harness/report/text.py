"""The words of reports: verdicts, guarantees, assumptions, counts.

The verdicts in words, the named facts of an exploration, and what all texts share: the
width, plurals, wrapped lines.  `failure.py` makes the text of a whole report of them.

Rules:
- every word that a report abbreviates is abbreviated by a table of this file, so that
  the terminal, the page and the tests agree on it;
- this file prints nothing and uses no colour;
- "exhaustive" does not occur: the guarantee is printed in the engine's words, and only
  if everything planned was executed and nothing was violated.
"""

import re
from collections.abc import Iterable, Mapping

from everyorder.harness.base.columns import WIDTH, columns, wrap_words
from everyorder.harness.engine.result import Counts, Square
from everyorder.harness.engine.strategy import OPEN
from everyorder.harness.engine.vacuity import ALWAYS
from everyorder.harness.report.observation import (
    sections,
)
from everyorder.harness.report.raised import typo_lines, vacuity_lines, vacuous_lines
from everyorder.harness.report.verdict import Report, Verdict

# Verdicts as table cells: at most seven letters, so that a row fits 80 columns.
VERDICTS: Mapping[Verdict, str] = {
    "not fresh": "UNFRESH",
    "nondeterminism": "FLAKY",
    "law": "LAW",
    "hidden": "HIDDEN",
    "order": "ORDER",
    "unpinned": "NO PIN",
    "cut short": "CUT",
    "typo": "TYPO",
    "vacuous": "VACUOUS",
    "pinned": "pinned",
    "holds": "holds",
    "proven": "proven",
}

# Verdicts after a number, in a summary.
COUNTED: Mapping[Verdict, str] = {
    "not fresh": "without a fresh start",
    "nondeterminism": "flaky",
    "law": "with a broken law",
    "hidden": "with hidden state",
    "order": "dependent on order",
    "unpinned": "pinned for nothing",
    "cut short": "cut short",
    "typo": "with a typing error",
    "vacuous": "vacuous",
    "pinned": "pinned",
    "holds": "holding",
    "proven": "proven",
}

# Verdicts as sentences, for the first line of a scenario's text.
SENTENCES: Mapping[Verdict, str] = {
    "proven": "proven: no history of any length makes a difference",
    "holds": "holds: no difference within what was explored",
    "pinned": "pinned: depends on the declared order and on nothing else",
    "law": "a law is broken",
    "order": "depends on more than the active steps",
    "unpinned": "the order was declared to matter, and no history shows it",
    "not fresh": "what create makes is not fresh: nothing else can be said",
    "nondeterminism": "flaky: the same history gave two results",
    "hidden": "hidden state: equal states, the same operation, and two futures",
    "typo": "a typing error in the scenario, as it seems; mend it first",
    "vacuous": "something in the scenario could not have shown any fault",
    "cut short": "cut short: the budget was spent before everything was executed",
}

# The guarantee of each family of strategies as a table cell, strongest first.
GUARANTEES: Mapping[str, str] = {
    "graph": "any length",
    "parts": "any length",
    "walk": "last {k}",
    "groups": "groups apart",
    "stale": "no stale",
    "kA": "{k} hidden",
    "arrangements": "add orders",
    "histories": "{k} on fresh",
    "full": "add, remove",
    "sca": "any {k} steps",
    "random": "as played",
}


def sentence(report: Report) -> str:
    """Return a report's verdict as a sentence."""
    text = SENTENCES[report.verdict]
    if report.pairs and report.verdict in ("proven", "holds"):
        text += ", but for the order that is pinned"
    return text


def square_sentence(report: Report, square: Square) -> str:
    """Return the failing square in words; steps are counted from 1."""
    start = report.state_name(square.state)
    first, second = square.first + 1, square.second + 1
    if first == second:
        return (
            f"from {start}, {first} and its undo do not lead back: it is not an inverse"
        )
    return f"from {start}, {first} then {second} differs from {second} then {first}"


def short_guarantee(report: Report) -> str:
    """Return the strongest guarantee of a report in two words; "none" if it failed."""
    if not report.passed:
        return "none"
    strategy = report.exploration.strategy
    if report.exploration.proven:
        return GUARANTEES["graph"]
    if report.exploration.guarantee.endswith(OPEN):
        return GUARANTEES["random"]
    parts = {}
    for part in strategy.split("+"):
        family, _, parameter = part.strip().partition(":")
        parts[family] = parameter
    for family, text in GUARANTEES.items():
        if family in parts and family != "graph":
            return text.format(k=parts[family])
    return GUARANTEES["random"] if "graph" in parts else strategy


def facts(report: Report) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return named texts: the executed operations, and the results if it passed."""
    exploration = report.exploration
    pinned = () if report.pinned is None else (report.pinned,)
    return (
        ("pinned", pinned),
        ("fails", tuple(f"{text}, {ALWAYS}" for text in _failing_steps(report))),
        ("strategy", (exploration.strategy,)),
        ("typo", tuple(typo_lines(report))),
        ("vacuous", tuple(vacuity_lines(report))),
        ("states", _closure(report)),
        ("guarantee", guarantees(report)),
        ("assumes", assumptions(report)),
        ("suspects", suspects(report)),
        ("open", report.bounds),
        ("skipped", exploration.skipped),
        ("spent", _effort_shares(report)),
    )


def guarantees(report: Report) -> tuple[str, ...]:
    """Return the guarantees, a text for each strategy; none if the scenario failed."""
    claims = report.exploration.guarantee.split("; ") if report.passed else []
    return tuple(_singular(claim) for claim in claims if claim)


def assumptions(report: Report) -> tuple[str, ...]:
    """Return the assumptions of the guarantees; none if the scenario failed."""
    if not report.passed:
        return ()
    exploration = report.exploration
    caveats = (each.text for each in exploration.caveats if each.kind == "assumed")
    return tuple(map(_singular, (*exploration.assumptions, *caveats)))


def suspects(report: Report) -> tuple[str, ...]:
    """Return the places that may hold hidden state because the states omit them."""
    if report.verdict != "hidden":
        return ()
    return tuple(dict.fromkeys(each.text for each in report.exploration.caveats))


def reasons(report: Report, *, width: int = WIDTH) -> list[str]:
    """Return the reasons of a failure without a violation, as wrapped lines."""
    if report.verdict in ("typo", "vacuous"):
        return vacuous_lines(report, width)
    if report.verdict != "cut short":
        return []
    texts = {**dict(facts(report)), "executed": (counts_text(report),)}
    return [
        line
        for name in ("strategy", "skipped", "executed")
        for text in texts[name]
        for line in prose(name, text, width)
    ]


def _closure(report: Report) -> tuple[str, ...]:
    closure = report.exploration.closure
    if closure is None or not closure.closed:
        return ()
    if closure.histories == 1:
        histories = "1 history"
    else:
        histories = f"up to {closure.histories} different histories"
    text = (
        f"{plural(closure.states, 'complete state')}, "
        f"{plural(closure.transitions, 'transition')}, each taken from {histories}"
    )
    if closure.walked:
        text += f"; {closure.walked:,} operations drawn at random agree"
    if closure.order_read:
        text += "; the order of some dict is read, and is part of them"
    return (text,)


def _effort_shares(report: Report) -> tuple[str, ...]:
    """Return the share of the operations that each strategy executed."""
    parts = report.exploration.spent
    total = sum(count for _, count in parts)
    if not total or len(parts) < 2:
        return ()
    shares = (f"{name} {100 * count / total:.0f} %" for name, count in parts)
    return (", ".join(shares),)


def silent_step_lines(report: Report) -> list[str]:
    """Return a line for each step that always failed, with its first error.

    A typing error in a key causes such a step, and the result for the scenario then
    does not cover it.
    """
    return [f"{report.scenario} {text}" for text in _failing_steps(report)]


def silent_steps(reports: Iterable[Report], *, width: int = WIDTH) -> list[str]:
    """Return the silent steps of passed reports, wrapped below a title, or nothing."""
    return titled_silent_steps(
        (line for each in reports if each.passed for line in silent_step_lines(each)),
        width=width,
    )


def titled_silent_steps(lines: Iterable[str], *, width: int = WIDTH) -> list[str]:
    """Return wrapped lines of `silent_step_lines` below a title, or nothing."""
    wrapped = [
        each for line in lines for each in wrap_words(line, width, "  ", "      ")
    ]
    title = f"steps that fail {ALWAYS}, so only their failure is shown:"
    return [title, *wrapped] if wrapped else []


def _failing_steps(report: Report) -> list[str]:
    exploration = report.exploration
    done = {step for state in exploration.states for step in state}
    errors: dict[int, str] = {}
    for (_, step), fields in exploration.failures.items():
        if step not in done and step not in errors:
            fields_text = " ".join(text for _, text in sections(fields)[:2])
            errors[step] = f"step {step + 1}: {' '.join(fields_text.split())}"
    return [text for _, text in sorted(errors.items())]


def counts_text(report: Report) -> str:
    """Return the executed operations, in words."""
    counts, exploration = report.exploration.executed, report.exploration
    planned = (
        f" of {exploration.planned:,}"
        if exploration.planned > counts.transitions
        else ""
    )
    texts = (
        f"{plural(len(exploration.states), 'state')}, "
        f"{counts.transitions:,}{planned} transitions",
        _calls(counts),
        f"{exploration.seconds:.2f} s",
    )
    return "; ".join(filter(None, texts))


def plural(count: int, noun: str) -> str:
    """Return `1 state`, `2 states`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _calls(counts: Counts) -> str:
    parts = (
        (counts.adds, "add"),
        (counts.removes, "remove"),
        (counts.failing, "failing step"),
        (counts.uses, "use"),
        (counts.observations, "look"),
        (counts.resets, "fresh system"),
    )
    return ", ".join(plural(count, noun) for count, noun in parts if count)


def _singular(claim: str) -> str:
    """Return the claim with one operation in the singular.

    Expect files keep the engine's words.
    """
    return re.sub(r"\b1 (hidden )?operations\b", r"1 \1operation", claim)


def prose(name: str, text: str, width: int) -> list[str]:
    """Return a named text as wrapped lines, the name in a separate column."""
    head = f"  {name:<10}"
    return wrap_words(text, width, head, " " * columns(head)) or [head.rstrip()]
