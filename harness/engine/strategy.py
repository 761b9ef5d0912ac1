"""The ladder of strategies as data: names, sizes, runs; and plans made of them.

True only here: the table from a name to what it means.  A name is `graph` or, with a
parameter, `walk:2`; several joined by '+' run one after the other on one ledger.

When you add a strategy: a file of its own with `size` and `run`, an entry in `_TABLE`,
its claims in `theory.py`, and a place in `auto.py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.engine import (
    arrangements,
    covering,
    depth,
    drawn,
    full,
    graph,
    groups,
    histories,
    stale,
    walk,
)
from harness.engine.session import Session
from harness.engine.theory import ASSUMPTIONS, GUARANTEES
from harness.errors import UnknownStrategy


@dataclass(frozen=True, slots=True)
class Method:
    """What a family of strategies does, as functions of the parameter."""

    # (steps, uses, parameter, ordered) -> operations when no step fails.
    size: Callable[[int, int, int, bool], int]
    run: Callable[[Session, int], None]
    least: int | None = None
    # Exact operations once the reachable states are known, where that is possible.
    measured: Callable[[Session, int], int] | None = None


def _sets(session: Session) -> int:
    if session.ordered:
        return len({frozenset(key) for key in session.ledger.seen})  # type: ignore[arg-type]  # ordered keys are tuples
    return len(session.ledger.seen)


def _walked(session: Session, depth: int) -> int:
    return _sets(session) * int(session.operations.actions ** (depth + 1))


def _graphed(session: Session, _: int) -> int:
    steps = session.operations.steps
    if not session.ordered:
        return _walked(session, 0) * (2 if steps <= graph.DOUBLED else 1)
    if not session.mapped:
        return arrangements.size(session.operations.steps, session.operations.uses)
    lengths = (len(history) + 1 for history in session.ledger.canonical.values())
    return sum(lengths) * session.operations.actions


_TABLE: Mapping[str, Method] = {
    "graph": Method(
        lambda n, m, _, ordered: graph.size(n, m, ordered=ordered),
        lambda session, _: graph.run(session),
        measured=_graphed,
    ),
    "walk": Method(
        lambda n, m, s, _: walk.size(n, m, s), walk.run, least=0, measured=_walked
    ),
    "stale": Method(
        lambda n, m, *_: stale.size(n, m), lambda session, _: stale.run(session)
    ),
    "histories": Method(
        lambda n, m, k, _: histories.size(n, m, k), histories.run, least=0
    ),
    "groups": Method(
        lambda n, m, *_: groups.size(n, m), lambda session, _: groups.run(session)
    ),
    "arrangements": Method(
        lambda n, m, *_: arrangements.size(n, m),
        lambda session, _: arrangements.run(session),
    ),
    "kA": Method(
        lambda n, m, k, _: depth.size(n, m, k),
        depth.run,
        least=0,
        measured=lambda session, k: (
            depth.measured(session, k)
            if session.mapped
            else depth.size(session.operations.steps, session.operations.uses, k)
        ),
    ),
    "sca": Method(lambda n, m, t, _: covering.size(n, m, t), covering.run, least=1),
    "random": Method(lambda _n, _m, k, _o: drawn.size(k), drawn.run, least=1),
    "full": Method(lambda n, *_: full.size(n), lambda session, _: full.run(session)),
}

# The names as a person may write them, for messages and completion.
KNOWN = (
    "auto",
    *(name if m.least is None else f"{name}:N" for name, m in _TABLE.items()),
)


@dataclass(frozen=True, slots=True)
class Strategy:
    """One rung: a family and its parameter (0 where it has none)."""

    family: str
    parameter: int = 0

    @property
    def name(self) -> str:
        """The name as a person writes it."""
        if _TABLE[self.family].least is None:
            return self.family
        return f"{self.family}:{self.parameter}"

    @property
    def guarantee(self) -> str:
        """What a complete run shows."""
        return _claim(GUARANTEES, self)

    @property
    def assumption(self) -> str:
        """What that rests on."""
        return _claim(ASSUMPTIONS, self)

    def size(self, steps: int, uses: int, *, ordered: bool = False) -> int:
        """Operations of the plan when no step fails."""
        return _TABLE[self.family].size(steps, uses, self.parameter, ordered)

    def measure(self, session: Session) -> int:
        """Operations of the plan as far as the session knows what can be reached."""
        measured = _TABLE[self.family].measured
        if measured is None or not session.reached:
            operations = session.operations
            return self.size(operations.steps, operations.uses, ordered=session.ordered)
        return measured(session, self.parameter)

    def run(self, session: Session) -> None:
        """Execute the plan on the session."""
        _TABLE[self.family].run(session, self.parameter)


def _claim(claims: Mapping[str, str], strategy: Strategy) -> str:
    text = claims.get(strategy.name) or claims[strategy.family]
    return text.format(k=strategy.parameter)


def parse(text: str) -> tuple[Strategy, ...]:
    """The strategies that a name like "walk:2+graph" joins.

    Raises `UnknownStrategy`.
    """
    return tuple(_parse_one(part.strip(), text) for part in text.split("+"))


def _parse_one(part: str, text: str) -> Strategy:
    family, colon, parameter = part.partition(":")
    method = _TABLE.get(family)
    if method is not None:
        if method.least is None and not colon:
            return Strategy(family)
        digits = (
            parameter.isascii()
            and parameter.isdigit()
            and len(parameter) < 3 + (family == "random")
        )
        if method.least is not None and digits and int(parameter) >= method.least:
            return Strategy(family, int(parameter))
    raise UnknownStrategy(name=text, known=KNOWN)


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be run: its name, its exact size in operations, its guarantee.

    The size is exact when no step fails.  Otherwise it is an estimate, which an
    exploration replaces by the exact number as soon as it knows what can be reached.
    """

    strategy: str
    size: int
    guarantee: str


def plan(
    steps: int, uses: int, strategy: str, *, order_dependent: bool = False
) -> Plan:
    """The plan of a strategy for n steps and m uses; "auto" is not a plan by itself.

    Raises `UnknownStrategy`.
    """
    parts = parse(strategy)
    return Plan(
        "+".join(part.name for part in parts),
        sum(part.size(steps, uses, ordered=order_dependent) for part in parts),
        guarantee(parts),
    )


def guarantee(parts: tuple[Strategy, ...]) -> str:
    """The guarantees of several strategies as one text."""
    return "; ".join(f"{part.name}: {part.guarantee}" for part in parts)
