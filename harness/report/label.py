"""Verdicts, squares and guarantees in a few words.

True only here: every word that a report abbreviates is abbreviated by a table of this
file, so that the terminal, the page and the tests agree on it.
"""

from collections.abc import Mapping

from harness.engine.result import Square
from harness.engine.theory import OPEN
from harness.outcome import Report, Verdict

# Verdicts as table cells: at most seven letters, so that a row fits 80 columns.
VERDICTS: Mapping[Verdict, str] = {
    "not fresh": "UNFRESH",
    "nondeterminism": "FLAKY",
    "law": "LAW",
    "hidden": "HIDDEN",
    "order": "ORDER",
    "unpinned": "NO PIN",
    "cut short": "CUT",
    "vacuous": "VACUOUS",
    "pinned": "pinned",
    "holds": "holds",
    "proven": "proven",
}

# The same after a number, in a summary.
COUNTED: Mapping[Verdict, str] = {
    "not fresh": "without a fresh start",
    "nondeterminism": "flaky",
    "law": "with a broken law",
    "hidden": "with hidden state",
    "order": "dependent on order",
    "unpinned": "pinned for nothing",
    "cut short": "cut short",
    "vacuous": "vacuous",
    "pinned": "pinned",
    "holds": "holding",
    "proven": "proven",
}

# What each verdict says, as the first line of a scenario's text.
SENTENCES: Mapping[Verdict, str] = {
    "proven": "proven: no history of any length makes a difference",
    "holds": "holds: no difference within what was explored",
    "pinned": "pinned: depends on the order, as the scenario says, and on nothing else",
    "law": "a law is broken",
    "order": "depends on more than the active steps",
    "unpinned": "the order was said to matter, and nothing that was played shows it",
    "not fresh": "what create makes is not fresh: nothing else can be said",
    "nondeterminism": "flaky: the same history gave two results",
    "hidden": "hidden state: equal states, the same operation, and two futures",
    "vacuous": "vacuous: something in it could not have shown a fault",
    "cut short": "cut short: the budget was spent before everything was executed",
}

# The guarantee of each family of strategies as a table cell, strongest first.
GUARANTEES: Mapping[str, str] = {
    "graph": "any length",
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
    """What a report's verdict says, in full."""
    text = SENTENCES[report.verdict]
    if report.pairs and report.verdict in ("proven", "holds"):
        text += ", but for the order that is pinned"
    return text


def square_sentence(report: Report, square: Square) -> str:
    """The failing square in words; steps are counted from 1."""
    start = report.state_name(square.state)
    first, second = square.first + 1, square.second + 1
    if first == second:
        return f"from {start}, {first} and its undo do not lead back: it is no inverse"
    return f"from {start}, {first} then {second} differs from {second} then {first}"


def short_guarantee(report: Report) -> str:
    """The strongest guarantee of a report in two words; "none" where it failed."""
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
