"""The reached states of one scenario, drawn as a lattice.

True only here: geometry.  Each row holds the states of one size, the empty state on
top; a line joins two states that one step separates.  A drawing is inline SVG without
any reference to the outside; its colours are classes that the page's style defines.

Rules:
- above `MOST` states there is no drawing: a list says more;
- every state is a link to its dump, so the keyboard reaches what the mouse reaches;
- the failing square's lines, and states at which a step fails, are marked.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape

from harness.engine.operations import state_of
from harness.engine.protocol import State
from harness.outcome import Report

# Six steps that never fail: the widest row then has 20 states.
MOST = 64

# Pixels: what a row and a character of 12 px monospace need.
ROW = 66
CHARACTER = 7.4
HEIGHT = 26
GAPS = (34, 12)  # of a row of at most SPARSE states, and of a longer one
SPARSE = 6
MARGIN = 14


@dataclass(frozen=True, slots=True)
class Node:
    """A state and the middle of its box."""

    state: State
    label: str
    x: float
    y: float
    width: float


def draw(report: Report, target: Callable[[State], str]) -> str:
    """The drawing as SVG, each state a link to `target`; "" above `MOST` states."""
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
        parts.append(_box(node, kind, target(node.state), failing.get(node.state, 0)))
    return "".join([*parts, "</svg>"])


def layout(
    states: Iterable[State], name: Callable[[State], str]
) -> tuple[dict[State, Node], float, float]:
    """Where every state stands, and the size of the whole."""
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
            nodes[s] = Node(s, label[s], left + widths[s] / 2, y, widths[s])
            left += widths[s] + gap
    height = 2 * MARGIN + HEIGHT + ROW * max(len(rows) - 1, 0)
    return nodes, width, height


def _short(name: str) -> str:
    """`{1 3}` as `13`, `3 then 1` as `3→1`; steps above 9 keep their spaces."""
    numbers = name.strip("{}").replace(" then ", "→").split()
    return ("" if len(max(numbers, key=len, default="")) < 2 else " ").join(
        numbers
    ) or "{}"


def _lines(
    report: Report, nodes: dict[State, Node]
) -> Iterable[tuple[Node, Node, int]]:
    """Pairs of states of which the lower one has one step more."""
    ordering = report.ordering
    for lower in nodes.values():
        for step in lower.state:
            less = state_of(ordering.toggled(ordering.key(lower.state), step))
            if less in nodes:
                yield nodes[less], lower, step


def _marked(report: Report) -> Iterable[tuple[State, State]]:
    """The lines of the failing squares, with the second step of a pair at both ends."""
    ordering = report.ordering

    def plus(state: State, step: int) -> State:
        if step in state:
            return state
        return state_of(ordering.toggled(ordering.key(state), step))

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


def _failing(report: Report) -> dict[State, int]:
    counts: dict[State, int] = {}
    found = report.exploration
    for state, _ in (*found.failures, *found.refusals):
        counts[state] = counts.get(state, 0) + 1
    return counts


def _box(node: Node, kind: str, target: str, failing: int) -> str:
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
