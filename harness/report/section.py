"""One scenario of the page: verdict, guarantee, violations, lattice, states.

True only here: the order of a scenario's facts on the page, which is that of its text.
"""

from collections.abc import Iterable
from html import escape

from harness.engine.result import Violation
from harness.outcome import Report
from harness.report.dumps import Allowance, state_id, states_html
from harness.report.label import sentence, short_guarantee, square_sentence
from harness.report.lattice import draw
from harness.report.text import (
    counts_text,
    explanation,
    facts,
    how,
    more_of_it,
    other_history,
    plural,
    replay_commands,
)


def section(report: Report, anchor: str, allowance: Allowance) -> str:
    """The scenario, folded unless something is wrong with it."""
    found = report.exploration
    facts = (
        f"{plural(len(report.steps), 'step')}, {plural(len(found.states), 'state')}, "
        f"{short_guarantee(report) if report.passed else 'no guarantee'}"
    )
    return (
        f'<details class="scenario" id="{anchor}"{"" if report.passed else " open"} '
        f"{search_attributes(report)}>"
        f'<summary><span class="name">{escape(report.scenario)}</span> '
        f'{badge(report)} <span class="soft">{facts}</span></summary>'
        f'<div class="body"><p>{escape(_sentence(report))}</p>'
        f"{''.join(_violation(report, each) for each in found.violations)}"
        f"{_steps(report)}{_claims(report)}{_lattice(report, anchor)}"
        f"<h3>States</h3>{states_html(report, anchor, allowance)}</div></details>"
    )


def badge(report: Report) -> str:
    """The verdict as a coloured word."""
    kind = report.verdict.replace(" ", "-")
    star = "*" if report.assumes else ""
    return f'<span class="badge {kind}">{report.verdict}{star}</span>'


def search_attributes(report: Report) -> str:
    """What the filter looks at."""
    text = f"{report.scenario} {report.verdict} {report.exploration.strategy}".lower()
    passed = "yes" if report.passed else "no"
    return f'data-search="{escape(text)}" data-passed="{passed}"'


def _sentence(report: Report) -> str:
    text = sentence(report).removeprefix(f"{report.verdict}: ")
    return f"{text[0].upper()}{text[1:]}."


def _violation(report: Report, violation: Violation) -> str:
    history = violation.shortest or violation.history
    where = report.state_name(violation.state)
    head, *rest = explanation(violation) + more_of_it(violation)
    square = ""
    if violation.square is not None:
        text = square_sentence(report, violation.square)
        square = f"<p>Failing square: {escape(text)}.</p>"
    other = other_history(report, violation)
    apart = f'<pre tabindex="0">{escape(chr(10).join(other))}</pre>' if other else ""
    commands = "".join(
        f'<p class="command"><code>{escape(command)}</code>'
        f'<button type="button" data-copy="{escape(command)}">copy</button></p>'
        for command in replay_commands(report, violation)
    )
    detail = f'<pre tabindex="0">{_diff(rest)}</pre>' if rest else ""
    return (
        f'<div class="violation"><h3>{escape(violation.claim)}</h3>'
        f"<p>At <code>{escape(where)}</code>, "
        f"{escape(how(violation, len(history)))}:</p>"
        f'<pre tabindex="0">{escape(chr(10).join(report.lines(history)))}</pre>{square}'
        f"{apart}<h4>{escape(head)}</h4>{detail}{commands}</div>"
    )


def _diff(lines: Iterable[str]) -> str:
    """Lines of a diff; added and removed ones are blocks, so need no newline."""
    parts = []
    for line in lines:
        text = escape(line.removeprefix("    "))
        kind = {"+": "plus", "-": "minus"}.get(text[:1])
        parts.append(f'<span class="{kind}">{text}</span>' if kind else f"{text}\n")
    return "".join(parts).rstrip("\n")


def _steps(report: Report) -> str:
    parts = [f"<h3>Steps</h3>{_list(report.steps)}"]
    if report.uses:
        parts.append(f"<h3>Uses</h3>{_list(report.uses)}")
    return "".join(parts)


def _list(texts: Iterable[str]) -> str:
    items = "".join(f"<li><code>{escape(text)}</code></li>" for text in texts)
    return f'<ol class="steps">{items}</ol>'


def _claims(report: Report) -> str:
    parts = []
    for title, texts in facts(report):
        items = "".join(f"<li>{escape(text)}</li>" for text in texts)
        if items:
            title = title.capitalize()
            parts.append(f'<h3>{title}</h3><ul class="plain">{items}</ul>')
    return (
        f'{"".join(parts)}<p class="soft">Executed: {escape(counts_text(report))}.</p>'
    )


def _lattice(report: Report, anchor: str) -> str:
    drawing = draw(report, lambda state: state_id(anchor, state))
    if not drawing:
        return ""
    legend = "A line is one step; a state is a link to what was observed there."
    if report.exploration.failures:
        legend += " A dot marks a state at which steps fail."
    if any(each.square for each in report.exploration.violations):
        legend += " The failing square is drawn in red."
    return (
        '<h3>Lattice</h3><div class="scroll" role="region" tabindex="0" '
        f'aria-label="lattice of states">{drawing}</div>'
        f'<p class="soft">{legend}</p>'
    )
