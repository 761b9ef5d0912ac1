"""`auto`: the strongest rung of the ladder that fits the budget.

True only here: the order of strength.  The proof comes first where the system shows
complete states; then the longer histories; fresh words belong to every rung that can
afford them, because they alone find what a look hides.

How it works: three ladders, one for systems with a complete fingerprint, one for
opaque systems, one for ordered ones; the first rung whose size is within the budget
is taken, and the rung above it is reported with its size as not run.
"""

from harness.engine.budget import DEFAULT, Budget
from harness.engine.strategy import Strategy, parse, plan

# By falling strength; the last rung of each is taken when nothing fits.
PROVING: tuple[str, ...] = (
    "graph+walk:2+words:3",
    "graph+walk:1+words:3",
    "graph+walk:1+words:2",
    "graph+words:2",
    "graph",
    "sca:4",
    "sca:3",
    "sca:2",
)
OPAQUE: tuple[str, ...] = (
    "walk:2+words:3+kA:1",
    "walk:2+words:3",
    "walk:1+words:3",
    "walk:1+words:2",
    "walk:0+words:2",
    "walk:0",
    "sca:4",
    "sca:3",
    "sca:2",
)
ORDERED: tuple[str, ...] = (
    "arrangements+walk:2+words:3",
    "arrangements+walk:1+words:3",
    "arrangements+walk:0+words:2",
    "walk:1+words:2",
    "walk:0",
    "sca:4",
    "sca:3",
    "sca:2",
)

# Past these n a row of sequences does not pay to construct only to learn its size:
# n^t sequences in pure Python, about a second at 20^3 and at 12^4.
MOST_SEQUENCES = 25_000


def choose(
    steps: int, uses: int, *, printed: bool, ordered: bool, budget: Budget | None
) -> tuple[tuple[Strategy, ...], tuple[str, ...]]:
    """The strategies to run, and why nothing stronger (texts for `skipped`)."""
    limit = (budget or DEFAULT).steps
    if limit is None and budget is not None and budget.seconds is not None:
        # Seconds end a run, but cannot be compared with a size.
        limit = DEFAULT.steps
    ladder = ORDERED if ordered else PROVING if printed else OPAQUE
    if ordered and printed:
        ladder = tuple(rung.replace("arrangements", "graph") for rung in ladder)
    above: tuple[str, ...] = ()
    for rung in ladder:
        if any(_unaffordable(part, steps) for part in parse(rung)):
            continue
        size = plan(steps, uses, rung, order_dependent=ordered).size
        if limit is None or size <= limit or rung is ladder[-1]:
            return parse(rung), above
        above = (
            f"{rung} would be stronger: {size:,} steps, the budget allows {limit:,}",
        )
    return parse(ladder[-1]), above


def _unaffordable(part: Strategy, steps: int) -> bool:
    return part.family == "sca" and steps**part.parameter > MOST_SEQUENCES
