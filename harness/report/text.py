"""The report on one scenario as text.

The verdict; for each violation the claim, the shortest order as runnable lines, the
failing square, the first divergence as a diff, the replay id and the command that plays
it; then the explored steps and the result.

Rules:
- every word that a report abbreviates is abbreviated by a table of this file, so that
  the terminal, the page and the tests agree on it;
- prose is wrapped to the width; runnable lines and diffs never are;
- this file prints nothing and uses no colour;
- "exhaustive" does not occur: the guarantee is printed in the engine's words, and only
  if everything planned was executed and nothing was violated.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import takewhile
from textwrap import wrap
from typing import TypeAlias

from everyorder.harness.engine.result import Counts, Square, Violation
from everyorder.harness.engine.strategy import OPEN
from everyorder.harness.engine.vacuity import ALWAYS
from everyorder.harness.report.observation import (
    Divergence,
    divergence,
    law_text,
    readable_lines,
    sections,
    whole_text,
)
from everyorder.harness.report.raised import raised_lines, typo_lines, vacuity_lines
from everyorder.harness.report.verdict import Report, Verdict
from everyorder.harness.state import ValueSnapshot

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
    "typo": "a typing error in the scenario: nothing else can be said",
    "vacuous": "vacuous: something in it could not have shown a fault",
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


# Printed with a history that was played again and did not show the fault.
UNCONFIRMED = (
    "played again from these lines, it did not show: what came before them, or chance, "
    "has a part in it"
)

# Selects the lines to show: all, or as many and as much as can be read.
Selection: TypeAlias = Callable[[Sequence[str]], list[str]]

# The usual width of terminals, logs and mails.
WIDTH = 80


def render(report: Report, *, width: int = WIDTH) -> str:
    """Return the whole outcome of one scenario, without a newline at the end."""
    exploration = report.exploration
    lines = wrap(f"{report.scenario}: {sentence(report)}", width)
    for violation in exploration.violations:
        lines += (render_violation(report, violation, width=width), "")
    lines += _numbered("steps", report.steps)
    lines += _numbered("uses", report.uses)
    for name, texts in facts(report):
        for text in texts:
            lines += _prose(name, text, width)
    lines += _prose("executed", counts_text(report), width)
    return "\n".join(lines)


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
    facts_by_verdict = {
        "typo": ("typo", "vacuous"),
        "vacuous": ("vacuous",),
        "cut short": ("strategy", "skipped"),
    }
    names = facts_by_verdict.get(report.verdict, ())
    lines = [
        line
        for name, texts in facts(report)
        if name in names
        for text in texts
        for line in _prose(name, text, width)
    ]
    if report.verdict == "cut short":
        lines += _prose("executed", counts_text(report), width)
    return lines


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


def wrap_words(text: str, width: int, head: str = "", indent: str = "") -> list[str]:
    """Return the text as lines that do not break names.

    `head` precedes the first line, `indent` the others.
    """
    return wrap(
        text,
        width,
        initial_indent=head,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


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


def render_violation(
    report: Report, violation: Violation, *, width: int = WIDTH, has_replay: bool = True
) -> str:
    """Return one violation: claim, runnable order, square, divergence, replay command.

    Pass `has_replay=False` for a scenario inside a test, which the command cannot find.
    """
    history = violation.shown
    lines = wrap(f"{violation.kind}: {violation.claim}", width)
    where = report.state_name(violation.state)
    lines += wrap(f"at {where}, {extent(violation, len(history))}:", width)
    lines += [f"    {line}" for line in report.violation_lines(violation)]
    if violation.square is not None:
        lines.append("square: " + square_sentence(report, violation.square))
    lines += inverse_lines(report, violation)
    lines += other_history_lines(report, violation)
    lines += explanation(violation)
    lines += raised_lines(report, violation)
    if not violation.confirmed:
        lines += wrap(UNCONFIRMED, width)
    lines += recurrence_lines(violation)
    if has_replay:
        lines.append(f"replay id: {report.replay_id(violation)}")
        lines += (f"    {command}" for command in replay_commands(report, violation))
    return "\n".join(lines)


def inverse_lines(report: Report, violation: Violation) -> list[str]:
    """Return the line on a step whose undo is not an inverse, which no square shows."""
    history = violation.shown
    if violation.kind != "use" or len(history) != 3 or history[0] != history[1]:
        return []
    step, (_, undo, _) = history[0] + 1, report.violation_lines(violation)
    if undo != f"step_{step}.close()":
        return []
    return [f"{step} and its undo do not lead back: it is not an inverse"]


def recurrence_lines(violation: Violation) -> list[str]:
    """Return a line with the number of longer histories of the same fault."""
    if not violation.more:
        return []
    return [f"longer histories show it {plural(violation.more, 'time')} more"]


def other_history_lines(report: Report, violation: Violation) -> list[str]:
    """Return the second history of hidden state, and the point where the two part."""
    other = violation.other
    if other is None:
        return []
    history = violation.shown
    pairs = zip(history, other, strict=False)
    same = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
    first = "first operation" if same == 1 else f"first {same:,} operations"
    where = f"after their {first}" if same else "at once"
    if not other:
        return ["expected, from an equal state, before any operation"]
    return [
        f"expected, from an equal state, after {plural(len(other), 'operation')}:",
        *(f"    {line}" for line in report.other_lines(violation)),
        f"the two histories part {where}",
    ]


def replay_commands(report: Report, violation: Violation) -> list[str]:
    """Return the exact commands; the path distinguishes scenarios of the same steps."""
    histories = [violation.shown]
    if violation.other is not None:
        histories.append(violation.other)
    return [
        f"everyorder replay {report.history_id(history)} {report.scenario}"
        for history in histories
    ]


def explanation(violation: Violation, *, whole: bool = False) -> list[str]:
    """Return the expected and the found value of a violation, according to its kind.

    `whole` is for programs: long texts are not cut.
    """
    select: Selection = list if whole else readable_lines
    if violation.kind == "law":
        return _laws(violation.found, select)
    if violation.kind == "leak":
        return [f"still alive after its step ended: {violation.found}"]
    if violation.kind == "undo":
        details = _indented(law_text(violation.found), select)
        return ["the undo raised:", *details, *_paths(violation)]
    if violation.kind == "error" and violation.expected is None:
        details = _indented(law_text(violation.found), select)
        return ["succeeded elsewhere, here:", *details, *_paths(violation)]
    if violation.kind == "error" and violation.found is None:
        details = _indented(law_text(violation.expected), select)
        return ["succeeds here, elsewhere:", *details, *_paths(violation)]
    if violation.kind == "unpinned":
        details = _indented(whole_text(violation.found), select)
        return [f"expected {violation.expected}; all show:", *details]
    lines: list[str] = []
    if (violation.expected, violation.found) != (None, None):
        difference = divergence(violation.expected, violation.found)
        if difference is None:
            cut = _is_cut(violation.expected) or _is_cut(violation.found)
            rest = ", as far as they are" if cut else ""
            lines.append(f"expected and found are printed alike{rest}")
        else:
            lines += diff_lines(difference, select, hidden=violation.hidden)
    if violation.frequency is not None:
        rare, times = violation.frequency
        lines.append(f"found in {rare} of {times} replays of this history")
    lines += _paths(violation)
    # Two states without visible parts have no difference to print.
    return lines or ["the difference is not visible from outside"]


def _is_cut(value: object) -> bool:
    """Return True if an answer, or a part of an observation, was cut."""
    if isinstance(value, tuple):
        return any(map(_is_cut, value))
    return isinstance(value, ValueSnapshot) and value.cut


def _paths(violation: Violation) -> list[str]:
    """Return the paths at which states differ before the operation that shows it."""
    if violation.kind == "not fresh":
        head = "differs from the first fresh system (first / now):"
        advice = [
            "create all of it in create=, undo it in reset= (empty caches there), or",
            'explore with isolation="fork"; ignore= varying values, such as ids of',
            "processes and seeds of random numbers, which differ in each child",
        ]
        listed = _indented("\n".join(violation.paths)) if violation.paths else []
        lines = [head, *listed] if listed else []
        return lines + _cache_advice(violation.paths) + advice
    if not violation.paths:
        return []
    if violation.kind == "nondeterminism":
        return [
            "differs between two plays of it (one / the other):",
            *_indented("\n".join(violation.paths)),
            "ignore= it if it may differ: a time, a random number",
        ]
    return [
        "where the history hides (expected / found):",
        *_indented("\n".join(violation.paths)),
    ]


def _cache_advice(paths: Sequence[str]) -> list[str]:
    """Return the advice for the paths that belong to a `functools.lru_cache`."""
    sizes = (path.partition(": ")[0] for path in paths)
    end = ".currsize"
    names = [name.removesuffix(end) for name in sizes if name.endswith(end)]
    return [
        line
        for name in names
        for line in (
            f"{name} is a functools.lru_cache; to empty it:",
            f"    reset=lambda registry: {name}.cache_clear()",
        )
    ]


def diff_lines(
    difference: Divergence, select: Selection, *, hidden: bool = False
) -> list[str]:
    """Return the first divergence as the lines of a diff, reduced by `select`."""
    title = " of the fingerprints" if hidden else ""
    title += f" in {difference.title!r}" if difference.title else ""
    return [f"first divergence{title} (- expected, + found):"] + [
        f"    {line}" for line in select(difference.lines)
    ]


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


def extent(violation: Violation, length: int) -> str:
    """Return the length of the shown order; says so if no shorter one exists."""
    operations = plural(length, "operation")
    if not length:
        return "before any operation"
    if violation.shortest is None:
        return f"after {operations}"
    if violation.proven_shortest:
        return f"after {operations}; no shorter history of these shows it"
    return f"after {operations}"


def _laws(violation: Hashable, select: Selection) -> list[str]:
    broken: Sequence[Hashable] = (
        violation if isinstance(violation, tuple) else (violation,)
    )
    lines: list[str] = []
    for law in broken:
        lines += _indented(law_text(law), select)
    return [f"{plural(len(broken), 'broken law')}:", *lines]


def _singular(claim: str) -> str:
    """Return the claim with one operation in the singular.

    Expect files keep the engine's words.
    """
    return re.sub(r"\b1 (hidden )?operations\b", r"1 \1operation", claim)


def _indented(text: str, select: Selection = list) -> list[str]:
    return [f"    {line}" for line in select(text.splitlines())]


def _numbered(title: str, texts: Sequence[str]) -> list[str]:
    if not texts:
        return []
    return [f"  {title}", *(f"  {i:>3}  {text}" for i, text in enumerate(texts, 1))]


def _prose(name: str, text: str, width: int) -> list[str]:
    head = f"  {name:<10}"
    return wrap(
        text, width, initial_indent=head, subsequent_indent=" " * len(head)
    ) or [head.rstrip()]
