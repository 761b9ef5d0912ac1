"""`auto`: what is played when nobody says, within the budget.

True only here: what comes first.  The proof, where the system shows complete states;
the short histories that unmask stale caches, at any n; every history of few operations;
groups of steps apart, where there are too many steps for the proof to end; the walks;
for very many steps every order of few of them, uses included.  What is then left of the
budget is drawn at random: a budget that is left over is a promise not kept.

How it works: each rung is a list of strategies by falling strength, and gives the first
that fits into what is left, or none.  No rung leaves the uses out.
The first of a rung that did not fit is reported with its size.
"""

from dataclasses import dataclass, field

from harness.engine import walk
from harness.engine.budget import DEFAULT, Budget
from harness.engine.states import LEAST, MOST_OPERATIONS
from harness.engine.strategy import Strategy, parse

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
class _Plan:
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
    limit = (budget or DEFAULT).steps
    if limit is None and budget is not None and budget.seconds is not None:
        # Seconds end a run, but cannot be compared with a size.
        limit = DEFAULT.steps
    unlimited = limit is None
    plan = _Plan(steps, uses, ordered, float("inf") if limit is None else limit)
    if printed and settled:
        plan.take("graph")
    elif printed:
        plan.chosen += parse("graph")
        plan.left -= plan.left / SHARE if not unlimited else 0
    plan.take("stale")
    plan.take("histories:3", "histories:2", "histories:1")
    if printed and not settled and walk.size(steps, uses, 0) * LEAST > MOST_OPERATIONS:
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
