"""The states of one scenario as HTML: what was observed at each, and the ways on.

True only here: what is left out of a page.  A page stays below ten megabytes, so dumps
have an `Allowance` that all scenarios share; equal bodies of a scenario are written
once; of more than `MOST` states only the corners are shown (nothing, single steps,
pairs, everything).  What is left out is counted, never silent.
"""

from collections.abc import Hashable
from html import escape

from harness.engine.operations import state_of
from harness.engine.protocol import State
from harness.outcome import Report
from harness.report.lattice import MOST
from harness.report.observation import sections

# Characters of dumps on one page, after escaping; the rest of a page is far smaller.
ALLOWED = 8_000_000

# Corners of a large scenario that are listed at most (n=30 has 466 pairs and singles).
MOST_CORNERS = 500


class Allowance:
    """How many characters of dumps the page still has room for."""

    __slots__ = ("left",)

    def __init__(self, left: int = ALLOWED) -> None:
        self.left = left

    def take(self, text: str) -> bool:
        """Whether the text still fits; it is counted if so."""
        if len(text) > self.left:
            return False
        self.left -= len(text)
        return True


def state_id(scenario: str, state: State) -> str:
    """The anchor of a state: unique on the page, safe in an address."""
    return f"{scenario}-{'.'.join(str(step + 1) for step in state) or '0'}"


def states_html(report: Report, scenario: str, allowance: Allowance) -> str:
    """Every state that is shown, each foldable; `scenario` is its anchor."""
    states = report.exploration.states
    failing = _failing(report)
    shown = [state for state in states if _is_shown(report, state)][:MOST_CORNERS]
    bodies: dict[Hashable, State] = {}
    parts = []
    omitted = len(states) - len(shown)
    for state in shown:
        observation = states[state]
        first = bodies.get(observation)
        if first is None:
            body = _dump(observation)
            if not allowance.take(body):
                omitted += 1
                continue
            bodies[observation] = state
        else:
            body = f"<p>as {_link(report, scenario, first)}</p>"
        parts.append(_state(report, scenario, state, body, failing.get(state, [])))
    if omitted:
        command = f"everyorder show {report.scenario} --state 1,2"
        parts.append(
            f'<p class="soft">{omitted:,} more states were explored and are not on '
            f"this page; <code>{escape(command)}</code> prints one.</p>"
        )
    return "".join(parts)


def _is_shown(report: Report, state: State) -> bool:
    few = len(report.exploration.states) <= MOST
    return few or len(state) <= 2 or len(state) == len(report.steps)


def _state(
    report: Report,
    scenario: str,
    state: State,
    body: str,
    failing: list[tuple[int, Hashable]],
) -> str:
    name = escape(report.state_name(state))
    note = f' <span class="soft">{_count(failing)}</span>' if failing else ""
    return (
        f'<details class="state" id="{state_id(scenario, state)}">'
        f"<summary><code>{name}</code>{note}</summary>"
        f'<div class="body">{_ways(report, scenario, state)}'
        f"{''.join(_failure(report, state, *each) for each in failing)}{body}"
        "</div></details>"
    )


def _dump(observation: Hashable) -> str:
    return "".join(
        f"{f'<h4>{escape(title)}</h4>' if title else ''}"
        f'<pre tabindex="0">{escape(text) or "(nothing)"}</pre>'
        for title, text in sections(observation)
    )


def _ways(report: Report, scenario: str, state: State) -> str:
    """Links to the states that one step leads to, or comes from."""
    ordering = report.ordering
    key = ordering.key(state)
    ways = []
    for step in range(len(report.steps)):
        verb = "without" if step in state else "with"
        other = state_of(ordering.toggled(key, step))
        if other in report.exploration.states and _is_shown(report, other):
            ways.append(f"{verb} {step + 1}: {_link(report, scenario, other)}")
    return f'<p class="soft">{", ".join(ways)}</p>' if ways else ""


def _failure(report: Report, state: State, step: int, fields: Hashable) -> str:
    text = "\n".join(
        f"{title}: {text}" if title else text for title, text in sections(fields)
    )
    refused = step in state and step not in report.again
    line = escape(report.line(step, active=True) if refused else report.steps[step])
    what = "is not undone" if refused else "fails"
    return (
        f"<h4>step {step + 1} {what}: <code>{line}</code></h4>"
        f'<pre tabindex="0">{escape(text)}</pre>'
    )


def _failing(report: Report) -> dict[State, list[tuple[int, Hashable]]]:
    found: dict[State, list[tuple[int, Hashable]]] = {}
    exploration = report.exploration
    for failing in (exploration.failures, exploration.refusals):
        for (state, step), fields in failing.items():
            found.setdefault(state, []).append((step, fields))
    return found


def _count(failing: list[tuple[int, Hashable]]) -> str:
    return "1 step fails" if len(failing) == 1 else f"{len(failing)} steps fail"


def _link(report: Report, scenario: str, state: State) -> str:
    name = escape(report.state_name(state))
    return f'<a href="#{state_id(scenario, state)}"><code>{name}</code></a>'
