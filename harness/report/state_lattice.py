"""The states of one scenario on the page: drawn as a lattice, and their observations.

In the drawing each row holds the states of one size, the empty state on top; a line
joins two states that one step separates. Below it each state has its observation and
links to the neighbouring states. Everything here is plain data, which the page's
templates place.

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
from typing import TypeAlias

from everyorder.harness.engine.protocol import State, state_of
from everyorder.harness.report.observation import (
    Section,
    sections,
    visible,
    whole_text,
)
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


Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class StateBox:
    """A state and the middle of its box."""

    state: State
    label: str
    x: float
    y: float
    width: float


@dataclass(frozen=True, slots=True)
class LatticeLine:
    """A line between the anchors of two states; the lower one has one more step."""

    upper: str
    lower: str
    step: int
    marked: bool
    start: Point
    end: Point


@dataclass(frozen=True, slots=True)
class LatticeBox:
    """The box of a state; `failing` counts the steps that fail there."""

    id: str
    label: str
    failing: int
    marked: bool
    left: float
    top: float
    width: float
    height: int
    text: Point
    dot: Point


@dataclass(frozen=True, slots=True)
class Lattice:
    """The drawing of all states, in pixels."""

    width: int
    height: int
    lines: tuple[LatticeLine, ...]
    boxes: tuple[LatticeBox, ...]

    @property
    def dotted(self) -> bool:
        """Return True if a step fails at a state."""
        return any(box.failing for box in self.boxes)

    @property
    def marked(self) -> bool:
        """Return True if a line belongs to a failing square."""
        return any(line.marked for line in self.lines)


def lattice(report: Report, anchor: str) -> Lattice | None:
    """Return the drawing, each state a link to its dump; None above `MOST` states."""
    states = tuple(report.exploration.states)
    if len(states) > MOST:
        return None
    boxes, width, height = layout(states, report.state_name)
    failing = _failing(report)
    marked = {frozenset(line) for line in _marked(report)}
    lines = tuple(
        LatticeLine(
            state_id(anchor, upper.state),
            state_id(anchor, lower.state),
            step + 1,
            frozenset((upper.state, lower.state)) in marked,
            _point(upper.x, upper.y + HEIGHT / 2),
            _point(lower.x, lower.y - HEIGHT / 2),
        )
        for upper, lower, step in _lines(report, boxes)
    )
    marked_states = {state for line in marked for state in line}
    return Lattice(
        round(width),
        round(height),
        lines,
        tuple(
            _box(
                box,
                state_id(anchor, box.state),
                len(failing.get(box.state, ())),
                marked=box.state in marked_states,
            )
            for box in boxes.values()
        ),
    )


def _box(box: StateBox, anchor: str, failing: int, *, marked: bool) -> LatticeBox:
    left, top = _point(box.x - box.width / 2, box.y - HEIGHT / 2)
    return LatticeBox(
        anchor,
        box.label,
        failing,
        marked,
        left,
        top,
        round(box.width, 1),
        HEIGHT,
        text=_point(box.x, box.y + 4),
        dot=_point(left + box.width - 2, top + 2),
    )


def _point(x: float, y: float) -> Point:
    return round(x, 1), round(y, 1)


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


# Bytes of dumps on one page, after escaping; the rest of a page is far smaller.
ALLOWED = 8_000_000

# Limit on the listed corners of a large scenario (n=30 has 466 pairs and singles).
MOST_CORNERS = 500


class Allowance:
    """The number of bytes of dumps that still fit on the page."""

    __slots__ = ("left",)

    def __init__(self, left: int = ALLOWED) -> None:
        self.left = left

    def take(self, pairs: Iterable[Section]) -> bool:
        """Return True and count the texts if they still fit."""
        size = sum(
            len(escape(visible(text)).encode()) for pair in pairs for text in pair
        )
        if size > self.left:
            return False
        self.left -= size
        return True


@dataclass(frozen=True, slots=True)
class StateLink:
    """The anchor of a state, and its name."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class FailingStep:
    """A step that fails at a state; `what` says whether it or its undo does."""

    step: int
    what: str
    line: str
    text: str


@dataclass(frozen=True, slots=True)
class StateEntry:
    """A state with its observation, or with a link to the first with an equal one.

    `ways` has "with" or "without", a step, and the state that differs in it.
    """

    link: StateLink
    ways: tuple[tuple[str, int, StateLink], ...]
    failures: tuple[FailingStep, ...]
    same: StateLink | None
    sections: tuple[Section, ...]


@dataclass(frozen=True, slots=True)
class StateListing:
    """The listed states, the number of the others, and the command that prints one."""

    entries: tuple[StateEntry, ...]
    omitted: str
    command: str


def state_id(anchor: str, state: State) -> str:
    """Return the anchor of a state: unique on the page, safe in an address."""
    return f"{anchor}-{'.'.join(str(step + 1) for step in state) or '0'}"


def listing(report: Report, anchor: str, allowance: Allowance) -> StateListing:
    """Return the states of a scenario, as many as fit; `anchor` is the scenario's."""
    states = report.exploration.states
    failing = _failing(report)
    listed = [state for state in states if _is_shown(report, state)][:MOST_CORNERS]
    first: dict[Hashable, StateLink] = {}
    entries = []
    for state in listed:
        observation = states[state]
        link = _link(report, anchor, state)
        same = first.get(observation)
        pairs = () if same else sections(observation)
        if not allowance.take(pairs):
            continue
        first.setdefault(observation, link)
        failures = tuple(
            _failure(report, state, *each) for each in failing.get(state, ())
        )
        ways = _ways(report, anchor, state)
        entries.append(StateEntry(link, ways, failures, same, pairs))
    omitted = len(states) - len(entries)
    return StateListing(
        tuple(entries),
        f"{omitted:,}" if omitted else "",
        f"everyorder show {quote(report.scenario)} --state 1,2",
    )


def _is_shown(report: Report, state: State) -> bool:
    few = len(report.exploration.states) <= MOST
    return few or len(state) <= 2 or len(state) == len(report.steps)


def _ways(
    report: Report, anchor: str, state: State
) -> tuple[tuple[str, int, StateLink], ...]:
    """Return links to the states that differ in one step."""
    ordering = report.ordering
    key = ordering.key(state)
    ways = []
    for step in range(len(report.steps)):
        verb = "without" if step in state else "with"
        other = state_of(ordering.toggled(key, step))
        if other in report.exploration.states and _is_shown(report, other):
            ways.append((verb, step + 1, _link(report, anchor, other)))
    return tuple(ways)


def _failure(report: Report, state: State, step: int, fields: Hashable) -> FailingStep:
    refused = step in state and step not in report.again
    line = report.line(step, active=True) if refused else report.steps[step]
    what = "is not undone" if refused else "fails"
    return FailingStep(step + 1, what, line, whole_text(fields))


def _failing(report: Report) -> dict[State, list[tuple[int, Hashable]]]:
    failing_steps: dict[State, list[tuple[int, Hashable]]] = {}
    exploration = report.exploration
    for failing in (exploration.failures, exploration.refusals):
        for (state, step), fields in failing.items():
            failing_steps.setdefault(state, []).append((step, fields))
    return failing_steps


def _link(report: Report, anchor: str, state: State) -> StateLink:
    return StateLink(state_id(anchor, state), report.state_name(state))
