"""Grown registries with attempts that leave something, and with numbers that grow."""

from random import Random
from typing import Any

from tests.zoo.grown import Draw, Fails, Grown, Memory, Steps, some_steps, some_uses
from tests.zoo.grown_orders import source
from tests.zoo.model import NAMES, listed


class Reserved(Memory):
    """Memory: names that are reserved; a step that conflicts may leave its name."""

    def __init__(self, steps: int, uses: int, pair: Steps, releases: bool) -> None:
        super().__init__(steps, uses)
        self.pair, self.releases = pair, releases

    def start(self) -> Any:
        return frozenset()

    def made(self, memory: Any, active: Steps, step: int) -> Any:
        if step in memory:
            raise Fails("Refused", NAMES[step] + " is reserved", memory)
        if step in self.pair and any(s in active for s in self.pair):
            left = memory if self.releases else memory | {step}
            raise Fails("Refused", NAMES[step] + " conflicts", left)
        return memory | {step}

    def undone(self, memory: Any, active: Steps, step: int) -> Any:
        return memory - {step}

    def shown(self, memory: Any, active: Steps) -> tuple[Any, str]:
        return memory, listed(active)


def _reserved(random: Random, *, releases: bool) -> Grown:
    steps, uses = some_steps(random), some_uses(random)
    pair = tuple(random.sample(range(steps), 2))
    names = "".join(NAMES[step] for step in pair)
    release = "self.reserved.remove(name)" if releases else "pass"
    return Grown(
        "reservation released" if releases else "reservation kept",
        Reserved(steps, len(uses), pair, releases),
        source(
            init="self.reserved = set()",
            add=f"""
if name in self.reserved:
    raise Refused(f"{{name}} is reserved")
self.reserved.add(name)
if name in "{names}" and any(other in "{names}" for other in self.items):
    {release}
    raise Refused(f"{{name}} conflicts")
self.items.append(name)
""",
            undo="self.items.remove(name)\nself.reserved.remove(name)",
        ),
        uses,
    )


def reservation_kept(random: Random) -> Grown:
    return _reserved(random, releases=False)


def reservation_released(random: Random) -> Grown:
    return _reserved(random, releases=True)


class Busy(Memory):
    """Memory: whether it is busy; a step too many may leave it so."""

    def __init__(self, steps: int, uses: int, room: int, leaves: bool) -> None:
        super().__init__(steps, uses)
        self.room, self.leaves = room, leaves

    def start(self) -> Any:
        return False

    def made(self, memory: Any, active: Steps, step: int) -> Any:
        if memory:
            raise Fails("Refused", "busy", True)
        if len(active) >= self.room:
            raise Fails("Refused", "full", self.leaves)
        return False

    def shown(self, memory: Any, active: Steps) -> tuple[Any, str]:
        return memory, listed(active)


def _busy(random: Random, *, leaves: bool) -> Grown:
    steps, uses = some_steps(random), some_uses(random)
    room = random.randrange(1, steps)
    ready = "pass" if leaves else "self.busy = False"
    return Grown(
        f"room for {room}, {'busy for ever' if leaves else 'ready again'}",
        Busy(steps, len(uses), room, leaves),
        source(
            init="self.busy = False",
            add=f"""
if self.busy:
    raise Refused("busy")
self.busy = True
if len(self.items) >= {room}:
    {ready}
    raise Refused("full")
self.items.append(name)
self.busy = False
""",
        ),
        uses,
    )


def busy(random: Random) -> Grown:
    return _busy(random, leaves=True)


def ready(random: Random) -> Grown:
    return _busy(random, leaves=False)


class Aliases(Memory):
    """Memory: who owns the alias that two steps want; the second one is refused.

    It may have entered its name by then, and that may show.
    """

    def __init__(self, steps: int, uses: int, pair: Steps, late: bool) -> None:
        super().__init__(steps, uses)
        self.pair, self.late = pair, late

    def start(self) -> Any:
        return None, ()

    def made(self, memory: Any, active: Steps, step: int) -> Any:
        owner, left = memory
        if step not in self.pair:
            return owner, left
        if owner is not None:
            after = tuple(sorted({*left, step})) if self.late else left
            raise Fails("Refused", "alias of " + NAMES[owner], (owner, after))
        return step, tuple(each for each in left if each != step)

    def undone(self, memory: Any, active: Steps, step: int) -> Any:
        owner, left = memory
        return None if owner == step else owner, left

    def shown(self, memory: Any, active: Steps) -> tuple[Any, str]:
        return memory, listed(tuple(sorted((*active, *memory[1]))))

    def asked(self, memory: Any, active: Steps, use: int) -> tuple[Any, str]:
        there = use % self.steps in (*active, *memory[1])
        return memory, "on" if there else "off"


def _aliases(random: Random, *, late: bool) -> Grown:
    steps, uses = some_steps(random), some_uses(random)
    pair = tuple(random.sample(range(steps), 2))
    names = "".join(NAMES[step] for step in pair)
    enter = "if name not in self.items:\n    self.items.append(name)"
    check = f'''\
if name in "{names}":
    owner = self.aliases.setdefault("alias", name)
    if owner != name:
        raise Refused("alias of " + owner)'''
    return Grown(
        "entered before the check" if late else "checked before it is entered",
        Aliases(steps, len(uses), pair, late),
        source(
            init="self.aliases = {}",
            add=f"{enter}\n{check}" if late else f"{check}\n{enter}",
            undo="""
self.items.remove(name)
if self.aliases.get("alias") == name:
    del self.aliases["alias"]
""",
        ),
        uses,
    )


def entered_early(random: Random) -> Grown:
    return _aliases(random, late=True)


def checked_early(random: Random) -> Grown:
    return _aliases(random, late=False)


class Counter(Memory):
    """Memory: how many steps were ever made, modulo `modulus` if there is one."""

    def __init__(
        self, steps: int, uses: int, limit: int | None, modulus: int | None
    ) -> None:
        super().__init__(steps, uses)
        self.limit, self.modulus = limit, modulus

    def start(self) -> Any:
        return 0

    def made(self, memory: Any, active: Steps, step: int) -> Any:
        return (memory + 1) % self.modulus if self.modulus else memory + 1

    def shown(self, memory: Any, active: Steps) -> tuple[Any, str]:
        worn = self.limit is not None and memory >= self.limit
        return memory, listed(active) + (" worn" if worn else "")


def _counter(
    name: str, init: str, count: str, number: str, *, harmful: bool, modulus: bool
) -> Draw:
    def draw(random: Random) -> Grown:
        uses = some_uses(random)
        limit = random.randrange(2, 6) if harmful else None
        turn = random.randrange(6, 9) if modulus else None
        shown = f'(" worn" if {number} >= {limit} else "")' if limit else '""'
        return Grown(
            f"{name}, {f'harmful from {limit}' if limit else 'harmless'}",
            Counter(some_steps(random), len(uses), limit, turn),
            source(
                init=init,
                add=f"self.items.append(name)\n{count.format(turn)}",
                show=f"return self.names() + {shown}",
            ),
            uses,
        )

    return draw


_ID = ("number", "self.next_id = 0", "self.next_id += 1", "self.next_id")
_LOG = ("log", "self.log = []", "self.log.append(name)", "len(self.log)")
_RING = (
    "number that turns",
    "self.next_id = 0",
    "self.next_id = (self.next_id + 1) % {}",
    "self.next_id",
)

FAILED_FAULTY: tuple[Draw, ...] = (reservation_kept, busy, entered_early)
FAILED_SOUND: tuple[Draw, ...] = (reservation_released, ready, checked_early)

COUNTER_FAULTY: tuple[Draw, ...] = (
    _counter(*_ID, harmful=True, modulus=False),
    _counter(*_RING, harmful=True, modulus=True),
    _counter(*_LOG, harmful=True, modulus=False),
)
COUNTER_SOUND: tuple[Draw, ...] = (
    _counter(*_RING, harmful=False, modulus=True),
    _counter(*_ID, harmful=False, modulus=False),
    _counter(*_LOG, harmful=False, modulus=False),
)
