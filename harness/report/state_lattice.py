"""The states of one scenario on the page: drawn as a lattice, and their observations.

In the drawing each row holds the states of one size, the empty state on top; a line
joins two states that one step separates. It is inline SVG without any external
reference; its colours are classes that the page's style defines. Below it each state
has its observation and links to the neighbouring states.

Rules:
- above `MOST` states there is no drawing, and below it only the corners are listed
  (the empty state, single steps, pairs, all steps);
- every state of the drawing is a link to its dump, so the keyboard reaches the same
  places as the mouse; the failing square's lines, and states at which a step fails,
  are marked;
- a page stays below ten megabytes, so dumps have an `Allowance` that all scenarios
  share; equal bodies of a scenario are written once;
- omitted states are counted.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from html import escape
from shlex import quote

from everyorder.harness.engine.protocol import State, state_of
from everyorder.harness.report.observation import sections, whole_text
from everyorder.harness.report.verdict import Report

# Six steps that never fail: the widest row then has 20 states.
MOST = 64

# Pixels: the height of a row, and the width of a character of 12 px monospace.
ROW = 66
CHARACTER = 7.4
HEIGHT = 26
GAPS = (34, 12)  # of a row of at most SPARSE states, and of a longer one
SPARSE = 6
MARGIN = 14


@dataclass(frozen=True, slots=True)
class StateBox:
    """A state and the middle of its box."""

    state: State
    label: str
    x: float
    y: float
    width: float


def draw(report: Report, target: Callable[[State], str]) -> str:
    """Return the SVG drawing, each state a link to `target`; "" above `MOST` states."""
    states = tuple(report.exploration.states)
    if len(states) > MOST:
        return ""
    nodes, width, height = layout(states, report.state_name)
    failing = _failing(report)
    marked = {frozenset(line) for line in _marked(report)}
    parts = [
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="group" aria-label="'
        f'{len(states)} states of {escape(report.scenario)}, by size">'
    ]
    for upper, lower, step in _lines(report, nodes):
        bad = frozenset((upper.state, lower.state)) in marked
        parts.append(
            f'<line class="transition{" bad" if bad else ""}" '
            f'data-a="{target(upper.state)}" data-b="{target(lower.state)}" '
            f'x1="{upper.x:.1f}" y1="{upper.y + HEIGHT / 2:.1f}" '
            f'x2="{lower.x:.1f}" y2="{lower.y - HEIGHT / 2:.1f}">'
            f"<title>step {step + 1}</title></line>"
        )
    bad_states = {state for line in marked for state in line}
    for node in nodes.values():
        kind = "node bad" if node.state in bad_states else "node"
        parts.append(
            _box(node, kind, target(node.state), len(failing.get(node.state, ())))
        )
    return "".join([*parts, "</svg>"])


def layout(
    states: Iterable[State], name: Callable[[State], str]
) -> tuple[dict[State, StateBox], float, float]:
    """Return the place of every state, and the width and height of the drawing."""
    rows: dict[int, list[State]] = {}
    for state in states:
        rows.setdefault(len(state), []).append(state)
    label = {s: _short(name(s)) for row in rows.values() for s in row}
    widths = {s: max(HEIGHT, len(text) * CHARACTER + 14) for s, text in label.items()}
    gap = GAPS[max(map(len, rows.values()), default=0) > SPARSE]
    extent = {
        size: sum(widths[s] for s in row) + gap * (len(row) - 1)
        for size, row in rows.items()
    }
    width = max(extent.values(), default=0) + 2 * MARGIN
    nodes = {}
    for level, size in enumerate(sorted(rows)):
        left = (width - extent[size]) / 2
        y = MARGIN + HEIGHT / 2 + level * ROW
        for s in sorted(rows[size]):
            nodes[s] = StateBox(s, label[s], left + widths[s] / 2, y, widths[s])
            left += widths[s] + gap
    height = 2 * MARGIN + HEIGHT + ROW * max(len(rows) - 1, 0)
    return nodes, width, height


def _short(name: str) -> str:
    """Return `{1 3}` as `13`, `3 then 1` as `3→1`; steps above 9 keep their spaces."""
    numbers = name.strip("{}").replace(" then ", "→").split()
    return ("" if len(max(numbers, key=len, default="")) < 2 else " ").join(
        numbers
    ) or "{}"


def _lines(
    report: Report, nodes: dict[State, StateBox]
) -> Iterable[tuple[StateBox, StateBox, int]]:
    """Yield pairs of states of which the second one has one more step, and the step."""
    ordering = report.ordering
    for lower in nodes.values():
        for step in lower.state:
            less = state_of(ordering.toggled(ordering.key(lower.state), step))
            if less in nodes:
                yield nodes[less], lower, step


def _marked(report: Report) -> Iterable[tuple[State, State]]:
    """Yield the lines of the failing squares as pairs of states."""
    ordering = report.ordering

    def plus(state: State, step: int) -> State:
        if step in state:
            return state
        return state_of(report.after(ordering.key(state), step))

    for violation in report.exploration.violations:
        square = violation.square
        if square is None:
            continue
        for step, other in (
            (square.first, square.second),
            (square.second, square.first),
        ):
            middle = plus(square.state, step)
            yield square.state, middle
            if step != other:
                yield middle, plus(middle, other)


def _box(node: StateBox, kind: str, target: str, failing: int) -> str:
    left, top = node.x - node.width / 2, node.y - HEIGHT / 2
    note = f", {failing} failing" if failing else ""
    badge = ""
    if failing:
        badge = (
            f'<circle class="fails" cx="{left + node.width - 2:.1f}" '
            f'cy="{top + 2:.1f}" r="4"/>'
        )
    return (
        f'<a href="#{target}" class="{kind}" data-state="{target}">'
        f"<title>{escape(node.label)}{note}</title>"
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{node.width:.1f}" '
        f'height="{HEIGHT}" rx="6"/>'
        f'<text x="{node.x:.1f}" y="{node.y + 4:.1f}">{escape(node.label)}</text>'
        f"{badge}</a>"
    )


# Characters of dumps on one page, after escaping; the rest of a page is far smaller.
ALLOWED = 8_000_000

# Limit on the listed corners of a large scenario (n=30 has 466 pairs and singles).
MOST_CORNERS = 500


class Allowance:
    """The number of characters of dumps that still fit on the page."""

    __slots__ = ("left",)

    def __init__(self, left: int = ALLOWED) -> None:
        self.left = left

    def take(self, text: str) -> bool:
        """Return True and count the text if it still fits."""
        if len(text) > self.left:
            return False
        self.left -= len(text)
        return True


def state_id(scenario: str, state: State) -> str:
    """Return the anchor of a state: unique on the page, safe in an address."""
    return f"{scenario}-{'.'.join(str(step + 1) for step in state) or '0'}"


def states_html(report: Report, scenario: str, allowance: Allowance) -> str:
    """Return every listed state as a foldable element; `scenario` is its anchor."""
    states = report.exploration.states
    failing = _failing(report)
    listed = [state for state in states if _is_shown(report, state)][:MOST_CORNERS]
    bodies: dict[Hashable, State] = {}
    parts = []
    omitted = len(states) - len(listed)
    for state in listed:
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
        command = f"everyorder show {quote(report.scenario)} --state 1,2"
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
    note = f' <span class="soft">{_steps_fail(failing)}</span>' if failing else ""
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
    """Return links to the states that differ in one step."""
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
    text = whole_text(fields)
    refused = step in state and step not in report.again
    line = escape(report.line(step, active=True) if refused else report.steps[step])
    what = "is not undone" if refused else "fails"
    return (
        f"<h4>step {step + 1} {what}: <code>{line}</code></h4>"
        f'<pre tabindex="0">{escape(text)}</pre>'
    )


def _failing(report: Report) -> dict[State, list[tuple[int, Hashable]]]:
    failing_steps: dict[State, list[tuple[int, Hashable]]] = {}
    exploration = report.exploration
    for failing in (exploration.failures, exploration.refusals):
        for (state, step), fields in failing.items():
            failing_steps.setdefault(state, []).append((step, fields))
    return failing_steps


def _steps_fail(failing: list[tuple[int, Hashable]]) -> str:
    return "1 step fails" if len(failing) == 1 else f"{len(failing)} steps fail"


def _link(report: Report, scenario: str, state: State) -> str:
    name = escape(report.state_name(state))
    return f'<a href="#{state_id(scenario, state)}"><code>{name}</code></a>'
