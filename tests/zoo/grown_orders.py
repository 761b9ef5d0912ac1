"""Grown registries in which order counts, or what once was; and sound ones like them.

`source` is the registry that they and those of `grown_failures` have in common.
"""

from random import Random
from typing import Any

from tests.zoo.grown import Draw, Grown, Memory, Steps, some_steps, some_uses
from tests.zoo.model import NAMES, listed

REGISTRY = '''\
{head}

class Refused(Exception):
    """A step that cannot be made now."""


class Registry:
    def __init__(self):
        self.items = []
        {init}

    def add(self, name):
        {add}

        def undo():
            {undo}

        return undo

    def has(self, name):
        return "on" if name in self.items else "off"

    def names(self):
        return "[" + ", ".join(sorted(self.items)) + "]"

    def show(self):
        {show}


def create():
    return Registry()
'''


def source(
    *,
    head: str = "",
    init: str = "pass",
    add: str = "self.items.append(name)",
    undo: str = "self.items.remove(name)",
    show: str = "return self.names()",
) -> str:
    """The registry with some of its parts exchanged."""
    return REGISTRY.format(
        head=head,
        init=init,
        add=add.strip().replace("\n", "\n        "),
        undo=undo.strip().replace("\n", "\n            "),
        show=show.strip().replace("\n", "\n        "),
    )


class Ordered(Memory):
    """Memory: the active steps in order of activation; shows what `tell` says."""

    def __init__(self, steps: int, uses: int, tell: Any) -> None:
        super().__init__(steps, uses)
        self.tell = tell

    def made(self, memory: Any, active: Steps, step: int) -> Any:
        return (*memory, step)

    def undone(self, memory: Any, active: Steps, step: int) -> Any:
        return tuple(each for each in memory if each != step)

    def shown(self, memory: Any, active: Steps) -> tuple[Any, str]:
        return memory, listed(active) + self.tell(memory)


def newest_wins(random: Random) -> Grown:
    uses = some_uses(random)

    def tell(order: Steps) -> str:
        return " by " + NAMES[order[-1]] if order else ""

    return Grown(
        "the newest wins",
        Ordered(some_steps(random), len(uses), tell),
        source(
            show='return self.names() + (" by " + self.items[-1] if self.items else "")'
        ),
        uses,
    )


def _priority(random: Random, *, tie: bool) -> Grown:
    steps, uses = some_steps(random), some_uses(random)
    ranks = random.sample(range(9), steps)
    if tie:
        one, other = random.sample(range(steps), 2)
        ranks[one] = ranks[other]

    def tell(order: Steps) -> str:
        winners = sorted(order, key=lambda step: -ranks[step])[:1]
        return " by " + listed(tuple(winners))

    table = {NAMES[step]: rank for step, rank in enumerate(ranks)}
    return Grown(
        "priorities with a tie" if tie else "priorities",
        Ordered(steps, len(uses), tell),
        source(
            head=f"RANKS = {table!r}\n",
            show="""
best = max(map(RANKS.get, self.items), default=None)
first = [name for name in self.items if RANKS[name] == best][:1]
return self.names() + " by [" + ", ".join(first) + "]"
""",
        ),
        uses,
    )


def tied(random: Random) -> Grown:
    return _priority(random, tie=True)


def ranked(random: Random) -> Grown:
    return _priority(random, tie=False)


def relative_order(random: Random) -> Grown:
    """Two to four steps that are active in one order, others between or not."""
    steps, uses = random.choice((2, 3, 4, 4)), some_uses(random)
    wanted = tuple(random.sample(range(steps), random.randrange(2, steps + 1)))

    def tell(order: Steps) -> str:
        return "!" if tuple(s for s in order if s in wanted) == wanted else ""

    names = [NAMES[step] for step in wanted]
    return Grown(
        f"order of {len(wanted)}",
        Ordered(steps, len(uses), tell),
        source(
            head=f"WANTED = {names!r}\n",
            show="""
there = [name for name in self.items if name in WANTED]
return self.names() + ("!" if there == WANTED else "")
""",
        ),
        uses,
    )


def _chain(random: Random, *, commutes: bool) -> Grown:
    """Each step wraps a function; adding commutes, beside multiplying it does not."""
    steps, uses = some_steps(random), some_uses(random)
    table = [
        (1 if commutes or step else random.randrange(2, 5), random.randrange(1, 5))
        for step in range(steps)
    ]

    def tell(order: Steps) -> str:
        value = 1
        for step in order:
            value = value * table[step][0] + table[step][1]
        return f" {value}"

    return Grown(
        "chain that commutes" if commutes else "chain",
        Ordered(steps, len(uses), tell),
        source(
            head=f"""\
TABLE = {dict(zip(NAMES, table, strict=False))!r}


def wrapped(inner, factor, summand):
    return lambda value: inner(value) * factor + summand
""",
            show="""
function = lambda value: value
for name in self.items:
    function = wrapped(function, *TABLE[name])
return f"{self.names()} {function(1)}"
""",
        ),
        uses,
    )


def chain(random: Random) -> Grown:
    return _chain(random, commutes=False)


def sums(random: Random) -> Grown:
    return _chain(random, commutes=True)


class Slot(Memory):
    """Memory: who has the one slot; whoever goes empties it."""

    def start(self) -> Any:
        return None

    def made(self, memory: Any, active: Steps, step: int) -> Any:
        return step

    def undone(self, memory: Any, active: Steps, step: int) -> Any:
        return None

    def shown(self, memory: Any, active: Steps) -> tuple[Any, str]:
        return memory, listed(active) + (" taken" if memory is not None else " free")


def slot(random: Random) -> Grown:
    uses = some_uses(random)
    return Grown(
        "one slot, emptied by all",
        Slot(some_steps(random), len(uses)),
        source(
            init="self.slots = {}",
            add='self.items.append(name)\nself.slots["slot"] = name',
            undo='self.items.remove(name)\nself.slots.pop("slot", None)',
            show='return self.names() + (" taken" if self.slots else " free")',
        ),
        uses,
    )


class Default(Memory):
    """Memory: the first that came, kept after it went."""

    def start(self) -> Any:
        return None

    def made(self, memory: Any, active: Steps, step: int) -> Any:
        return step if memory is None else memory

    def shown(self, memory: Any, active: Steps) -> tuple[Any, str]:
        kept = "" if memory is None else NAMES[memory]
        return memory, f"{listed(active)} default {kept}"


def default(random: Random) -> Grown:
    uses = some_uses(random)
    return Grown(
        "default that stays",
        Default(some_steps(random), len(uses)),
        source(
            init="self.default = None",
            add="self.items.append(name)\nself.default = self.default or name",
            show="return f\"{self.names()} default {self.default or ''}\"",
        ),
        uses,
    )


class Peak(Memory):
    """Memory: whether there were ever so many at once."""

    def __init__(self, steps: int, uses: int, many: int) -> None:
        super().__init__(steps, uses)
        self.many = many

    def start(self) -> Any:
        return 0

    def made(self, memory: Any, active: Steps, step: int) -> Any:
        return max(memory, len(active) + 1)

    def shown(self, memory: Any, active: Steps) -> tuple[Any, str]:
        return memory, listed(active) + (" large" if memory >= self.many else "")


def peak(random: Random) -> Grown:
    steps, uses = some_steps(random), some_uses(random)
    many = random.randrange(1, steps + 1)
    return Grown(
        f"large since there were {many}",
        Peak(steps, len(uses), many),
        source(
            init="self.peak = 0",
            add="self.items.append(name)\nself.peak = max(self.peak, len(self.items))",
            show=f'return self.names() + (" large" if self.peak >= {many} else "")',
        ),
        uses,
    )


def smallest(random: Random) -> Grown:
    """Sound: the default is computed, though the order is kept."""
    uses = some_uses(random)

    def tell(order: Steps) -> str:
        return " default " + (NAMES[min(order)] if order else "")

    return Grown(
        "default computed",
        Ordered(some_steps(random), len(uses), tell),
        source(show='return self.names() + " default " + min(self.items, default="")'),
        uses,
    )


RESOLUTION_FAULTY: tuple[Draw, ...] = (
    newest_wins,
    relative_order,
    tied,
    slot,
    chain,
    default,
    relative_order,
    peak,
)
RESOLUTION_SOUND: tuple[Draw, ...] = (ranked, sums, smallest)
