"""The ladder of strategies as data, plans made of them, and what `auto` chooses.

A name is `graph` or, with a parameter, `walk:2`; several joined by '+' run one after
the other on one ledger.

What comes first where nobody says, within the budget: the proof, where the system shows
complete states; the short histories that unmask stale caches, at any n; every history
of few operations; groups of steps apart, where there are too many steps for the proof
to end; the walks; for very many steps every order of few of them, uses included.  What
is then left of the budget is drawn at random: a budget that is left over is a promise
not kept.  Each rung is a list of strategies by falling strength, and gives the first
that fits into what is left, or none; no rung leaves the uses out, and the first of a
rung that did not fit is reported with its size.

When you add a strategy: its size and its run in `suites.py`, an entry in `_TABLE`, its
claims in `theory.py`, and a place in `choose`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from harness.engine import groups
from harness.engine.covering import covering_size, drawn_size, run_covering, run_drawn
from harness.engine.proof import DOUBLED, MOST_OPERATIONS, graph_size, run_graph
from harness.engine.session import DEFAULT_BUDGET, Budget, Session
from harness.engine.states import LEAST
from harness.engine.suites import (
    arrangements_size,
    depth_measured,
    depth_size,
    full_size,
    histories_size,
    run_arrangements,
    run_depth,
    run_full,
    run_histories,
    run_stale,
    run_walk,
    stale_size,
    walk_size,
)
from harness.engine.theory import ASSUMPTIONS, GUARANTEES
from harness.errors import BadStrategy


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
        return _walked(session, 0) * (2 if steps <= DOUBLED else 1)
    if not session.mapped:
        return arrangements_size(session.operations.steps, session.operations.uses)
    lengths = (len(history) + 1 for history in session.ledger.canonical.values())
    return sum(lengths) * session.operations.actions


_TABLE: Mapping[str, Method] = {
    "graph": Method(
        lambda n, m, _, ordered: graph_size(n, m, ordered=ordered),
        lambda session, _: run_graph(session),
        measured=_graphed,
    ),
    "walk": Method(
        lambda n, m, s, _: walk_size(n, m, s), run_walk, least=0, measured=_walked
    ),
    "stale": Method(
        lambda n, m, *_: stale_size(n, m), lambda session, _: run_stale(session)
    ),
    "histories": Method(
        lambda n, m, k, _: histories_size(n, m, k), run_histories, least=0
    ),
    "groups": Method(
        lambda n, m, *_: groups.size(n, m), lambda session, _: groups.run(session)
    ),
    "arrangements": Method(
        lambda n, m, *_: arrangements_size(n, m),
        lambda session, _: run_arrangements(session),
    ),
    "kA": Method(
        lambda n, m, k, _: depth_size(n, m, k),
        run_depth,
        least=0,
        measured=lambda session, k: (
            depth_measured(session, k)
            if session.mapped
            else depth_size(session.operations.steps, session.operations.uses, k)
        ),
    ),
    "sca": Method(lambda n, m, t, _: covering_size(n, m, t), run_covering, least=1),
    "random": Method(lambda _n, _m, k, _o: drawn_size(k), run_drawn, least=1),
    "full": Method(lambda n, *_: full_size(n), lambda session, _: run_full(session)),
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

    Raises `BadStrategy`.
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
    raise BadStrategy(code="UnknownStrategy", name=text, known=KNOWN)


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

    Raises `BadStrategy`.
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


# Past these n a row of sequences does not pay to construct only to learn its size:
# n^t sequences in pure Python, about a second at 20^3 and at 12^4.
MOST_SEQUENCES = 25_000

# A complete state costs as much as some ten operations, and how many there are is not
# known before: searching for them gets a quarter of the budget to be planned with.
SHARE = 4

# Thousands of random operations beside strategies that list their histories.
MOST_DRAWN = 100


# What is planned beside a search for complete states in case they do not close.
UNPROVEN = frozenset({"groups", "arrangements", "walk", "kA", "sca", "random"})


@dataclass(slots=True)
class _Choice:
    """Strategies chosen so far, and what is left."""

    steps: int
    uses: int
    ordered: bool
    left: float
    chosen: list[Strategy] = field(default_factory=list)
    above: list[str] = field(default_factory=list)

    def take(self, *names: str) -> bool:
        """Choose the first that fits; tell of the first where it did not."""
        for name in names:
            (strategy,) = parse(name)
            sequences = self.steps**strategy.parameter
            if strategy.family == "sca" and sequences > MOST_SEQUENCES:
                continue
            size = strategy.size(self.steps, self.uses, ordered=self.ordered)
            if size <= self.left:
                self.chosen.append(strategy)
                self.left -= size
                return True
            if name == names[0]:
                self.above.append(f"{name} would take {size:,} operations")
        return False


def choose(
    steps: int,
    uses: int,
    *,
    printed: bool,
    ordered: bool,
    budget: Budget | None,
    settled: bool = True,
    reversible: bool = True,
) -> tuple[tuple[Strategy, ...], tuple[str, ...]]:
    """The strategies to run, and what was too large (texts for `skipped`).

    A system is `printed` if it shows complete states.
    """
    limit = (budget or DEFAULT_BUDGET).steps
    if limit is None and budget is not None and budget.seconds is not None:
        # Seconds end a run, but cannot be compared with a size.
        limit = DEFAULT_BUDGET.steps
    unlimited = limit is None
    plan = _Choice(steps, uses, ordered, float("inf") if limit is None else limit)
    if printed and settled:
        plan.take("graph")
    elif printed:
        plan.chosen += parse("graph")
        plan.left -= plan.left / SHARE if not unlimited else 0
    plan.take("stale")
    plan.take("histories:3", "histories:2", "histories:1")
    if printed and not settled and walk_size(steps, uses, 0) * LEAST > MOST_OPERATIONS:
        plan.take("groups")
    if ordered:
        plan.take("arrangements")
    if reversible:
        walked = plan.take("walk:2", "walk:1", "walk:0")
        if not printed and not ordered and plan.chosen[-1].name == "walk:2":
            plan.take("kA:1")
    else:
        walked = plan.take("kA:1", "kA:0")
    if not walked:
        plan.take("sca:4", "sca:3", "sca:2")
    if not walked or plan.chosen[-1].name == "walk:0":
        rest = 1 if unlimited else int(min(plan.left // 1_000, MOST_DRAWN))
        if rest and reversible:
            plan.take(f"random:{rest}")
    if not plan.chosen:
        plan.chosen += parse("sca:2")
    return tuple(plan.chosen), tuple(
        f"{text}, the budget allows {limit:,}" for text in plan.above if limit
    )
