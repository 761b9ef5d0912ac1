"""One scenario's outcome as text: what a person reads first when something fails.

True only here: the order of the facts.  The verdict; for each violation the claim, the
shortest order as runnable lines, the failing square, the first divergence as a diff,
the replay id and the command that plays it; then what was explored and what it shows.

Rules:
- prose is wrapped to the width; runnable lines and diffs never are;
- nothing is printed and no colour is used here: whoever prints decides on both;
- "exhaustive" does not occur: the guarantee is printed in the engine's words, and
  only where everything planned was executed and nothing was violated.
"""

import re
from collections.abc import Hashable, Iterable, Sequence
from textwrap import wrap

from harness.engine.result import Counts, Violation
from harness.outcome import Report
from harness.report.label import SENTENCES, square_sentence
from harness.report.observation import Divergence, divergence, law_text, sections

# The width that terminals, logs and mails agree on.
WIDTH = 80

# A longer diff does not explain more; the rest is in the replay.
MOST_LINES = 40


def render(report: Report, *, width: int = WIDTH) -> str:
    """The whole outcome of one scenario, without a newline at the end."""
    found = report.exploration
    lines = wrap(f"{report.scenario}: {SENTENCES[report.verdict]}", width)
    for violation in found.violations:
        lines += (render_violation(report, violation, width=width), "")
    lines += _numbered("steps", report.steps)
    lines += _numbered("uses", report.uses)
    for name, texts in facts(report):
        for text in texts:
            lines += _prose(name, text, width)
    lines += _prose("executed", counts_text(report), width)
    return "\n".join(lines)


def facts(report: Report) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Named texts: what was done, and what follows from it where it succeeded."""
    found = report.exploration
    pinned = () if report.order_dependent is None else (report.order_dependent,)
    claims = found.guarantee.split("; ") if report.passed else ()
    assumptions = found.assumptions if report.passed else ()
    return (
        ("pinned", pinned),
        ("fails", tuple(f"{text}, at every set" for text in _failing_steps(report))),
        ("strategy", (found.strategy,)),
        ("guarantee", tuple(map(_numbered_well, claims))),
        ("assumes", tuple(map(_numbered_well, assumptions))),
        ("skipped", found.skipped),
    )


def never_done(report: Report) -> list[str]:
    """A line for each step that failed wherever it was tried, with its first error.

    A typing error in a key makes such a step, and whatever holds of the scenario then
    says nothing of it.
    """
    return [f"{report.scenario} {text}" for text in _failing_steps(report)]


def silent_steps(reports: Iterable[Report], *, width: int = WIDTH) -> list[str]:
    """Those steps of all that passed, below a title and wrapped; empty without any."""
    return told_silent(
        (line for each in reports if each.passed for line in never_done(each)),
        width=width,
    )


def told_silent(lines: Iterable[str], *, width: int = WIDTH) -> list[str]:
    """Lines of `never_done` below a title and wrapped; empty without any."""
    told: list[str] = []
    for line in lines:
        told += wrap(
            line,
            width,
            initial_indent="  ",
            subsequent_indent="      ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    title = "steps that fail at every set, so nothing is shown but that:"
    return [title, *told] if told else []


def _failing_steps(report: Report) -> list[str]:
    found = report.exploration
    done = {step for state in found.states for step in state}
    errors: dict[int, str] = {}
    for (_, step), fields in found.failures.items():
        if step not in done and step not in errors:
            told = " ".join(text for _, text in sections(fields)[:2])
            errors[step] = f"step {step + 1}: {' '.join(told.split())}"
    return [text for _, text in sorted(errors.items())]


def render_violation(
    report: Report, violation: Violation, *, width: int = WIDTH
) -> str:
    """One violation: claim, runnable order, square, divergence, replay command."""
    word = violation.shortest or violation.word
    lines = wrap(f"{violation.kind}: {violation.claim}", width)
    where = report.state_name(violation.state)
    lines += wrap(f"at {where}, {how(violation, len(word))}:", width)
    lines += [f"    {line}" for line in report.lines(word)]
    if violation.square is not None:
        lines.append("square: " + square_sentence(report, violation.square))
    lines += explanation(violation)
    lines += (f"replay id: {report.replay_id(violation)}",)
    lines.append(f"    {replay_command(report, violation)}")
    return "\n".join(lines)


def replay_command(report: Report, violation: Violation) -> str:
    """The exact command; the path tells scenarios of the same steps apart."""
    return f"everyorder replay {report.replay_id(violation)} {report.scenario}"


def explanation(violation: Violation) -> list[str]:
    """What was expected and what was found, where a violation of its kind has it."""
    if violation.kind == "law":
        return _laws(violation.found)
    if violation.kind == "leak":
        return [f"still alive after its undo: {violation.found}"]
    if violation.kind == "undo":
        return ["the undo raised:", *_indented(law_text(violation.found))]
    if violation.kind == "error" and violation.expected is None:
        return ["succeeded elsewhere, here:", *_indented(law_text(violation.found))]
    if violation.kind == "error" and violation.found is None:
        return ["succeeds here, elsewhere:", *_indented(law_text(violation.expected))]
    difference = divergence(violation.expected, violation.found)
    if difference is None:
        return ["expected and found are printed alike"]
    return diff_lines(difference, hidden=violation.hidden)


def diff_lines(difference: Divergence, *, hidden: bool = False) -> list[str]:
    """The first divergence as the lines of a diff, shortened where it is very long."""
    title = " of the fingerprints" if hidden else ""
    title += f" in {difference.title!r}" if difference.title else ""
    shown = list(difference.lines[:MOST_LINES])
    rest = len(difference.lines) - len(shown)
    if rest:
        shown.append(f"... and {rest} more lines")
    return [f"first divergence{title} (- expected, + found):"] + [
        f"    {line}" for line in shown
    ]


def counts_text(report: Report) -> str:
    """What was executed, in words."""
    counts, found = report.exploration.executed, report.exploration
    planned = f" of {found.planned:,}" if found.planned != counts.edges else ""
    texts = (
        f"{plural(len(found.states), 'state')}, {counts.edges:,}{planned} edges",
        _calls(counts),
        f"{found.seconds:.2f} s",
    )
    return "; ".join(filter(None, texts))


def plural(count: int, noun: str) -> str:
    """`1 state`, `2 states`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def shortened(line: str, width: int = WIDTH) -> str:
    """The line, its end left out where it is wider."""
    return line if len(line) <= width else f"{line[: width - 1]}…"


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


def how(violation: Violation, length: int) -> str:
    """How long the shown order is, and whether a shorter one may exist."""
    letters = plural(length, "letter")
    if violation.shortest is None:
        return f"after {letters}"
    if violation.proven_shortest:
        return f"after {letters}; no shorter order of these steps shows it"
    return f"after {letters}; a shorter order may exist"


def _laws(found: Hashable) -> list[str]:
    broken: Sequence[Hashable] = found if isinstance(found, tuple) else (found,)
    lines: list[str] = []
    for law in broken:
        lines += _indented(law_text(law))
    return [f"{plural(len(broken), 'broken law')}:", *lines]


def _numbered_well(claim: str) -> str:
    """The claim with one letter as one; expect files have it as the engine says it."""
    return re.sub(r"\b1 (hidden )?letters\b", r"1 \1letter", claim)


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in text.splitlines()]


def _numbered(title: str, texts: Sequence[str]) -> list[str]:
    if not texts:
        return []
    return [f"  {title}", *(f"  {i:>3}  {text}" for i, text in enumerate(texts, 1))]


def _prose(name: str, text: str, width: int) -> list[str]:
    head = f"  {name:<10}"
    return wrap(
        text, width, initial_indent=head, subsequent_indent=" " * len(head)
    ) or [head.rstrip()]
