"""Grown registries with caches: some forget too little, some forget enough."""

from collections.abc import Callable
from random import Random
from typing import Any

from tests.zoo.grown import Draw, Grown, Memory, Steps, some_steps
from tests.zoo.model import NAMES, listed

# What the registry knows; `{cache}` makes the cache, `{added}` and `{removed}` forget.
REGISTRY = """\
import functools

{head}

class Registry:
    def __init__(self):
        self.names = set()
        {cache}

    def add(self, name):
        self.names.add(name)
        {added}

        def undo():
            self.names.remove(name)
            {removed}

        return undo

    def answer(self, name):
        {answer}

{find}

    def show(self):
        return "[" + ", ".join(sorted(self.names)) + "]"


def create():
    {create}
    return Registry()
"""

IS_ON = 'return "on" if name in self.names else "off"'
NEXT_ON = '''\
later = [each for each in sorted(self.names) if each >= name]
        return later[0] if later else "none"'''

DICT = """\
    def find(self, name):
        if name not in self.cache:
            self.cache[name] = self.answer(name)
        return self.cache[name]"""

Answer = Callable[[Steps, int], str]
Forgets = Callable[[int, bool, int], bool]


def is_on(active: Steps, asked: int) -> str:
    return "on" if asked in active else "off"


def next_on(active: Steps, asked: int) -> str:
    return next((NAMES[step] for step in active if step >= asked), "none")


class Cached(Memory):
    """Memory: the answer kept for each use, or None."""

    def __init__(self, steps: int, uses: int, answer: Answer, forgets: Forgets) -> None:
        super().__init__(steps, uses)
        self.answer, self.forgets = answer, forgets

    def start(self) -> Any:
        return (None,) * self.uses

    def made(self, memory: Any, active: Steps, step: int) -> Any:
        return self.forgotten(memory, step, True)

    def undone(self, memory: Any, active: Steps, step: int) -> Any:
        return self.forgotten(memory, step, False)

    def forgotten(self, memory: Any, step: int, made: bool) -> Any:
        return tuple(
            None if self.forgets(step, made, use) else kept
            for use, kept in enumerate(memory)
        )

    def asked(self, memory: Any, active: Steps, use: int) -> tuple[Any, str]:
        kept = memory[use] or self.answer(active, use)
        return (*memory[:use], kept, *memory[use + 1 :]), kept

    def shown(self, memory: Any, active: Steps) -> tuple[Any, str]:
        return memory, listed(active)


def _cache(
    name: str,
    forgets: Forgets,
    added: str,
    removed: str,
    *,
    nearest: bool = False,
    find: str = DICT,
    cache: str = "self.cache = {}",
    head: str = "",
    create: str = "pass",
) -> Draw:
    def draw(random: Random) -> Grown:
        steps, uses = some_steps(random), random.randrange(1, 3)
        source = REGISTRY.format(
            head=head,
            cache=cache,
            added=added,
            removed=removed,
            answer=NEXT_ON if nearest else IS_ON,
            find=find,
            create=create,
        )
        model = Cached(steps, uses, next_on if nearest else is_on, forgets)
        return Grown(name, model, source, ("find",) * uses)

    return draw


LRU = """\
    @functools.lru_cache(maxsize=None)
    def find(self, name):
        return self.answer(name)"""
LRU_CLEAR = "Registry.find.cache_clear()"

MODULE = """\
    def find(self, name):
        try:
            return _found[name]
        except KeyError:
            return _found.setdefault(name, self.answer(name))"""

NEGATIVE = """\
    def find(self, name):
        if name in self.cache:
            return "off"
        answer = self.answer(name)
        if answer == "off":
            self.cache[name] = True
        return answer"""


class Negative(Cached):
    """Only "off" is kept."""

    def asked(self, memory: Any, active: Steps, use: int) -> tuple[Any, str]:
        after, kept = super().asked(memory, active, use)
        return (memory if kept == "on" else after), kept


def _negative(name: str, forgets: Forgets, added: str, removed: str) -> Draw:
    plain = _cache(name, forgets, added, removed, find=NEGATIVE)

    def draw(random: Random) -> Grown:
        drawn = plain(random)
        model = Negative(drawn.model.steps, drawn.model.uses, is_on, forgets)
        return Grown(name, model, drawn.source, drawn.uses)

    return draw


class Stamped(Memory):
    """Memory: for each use the stamp and the answer; good while the stamp fits."""

    def __init__(self, steps: int, uses: int, stamp: Callable[[Steps], Any]) -> None:
        super().__init__(steps, uses)
        self.stamp = stamp

    def start(self) -> Any:
        return (None,) * self.uses

    def asked(self, memory: Any, active: Steps, use: int) -> tuple[Any, str]:
        kept, now = memory[use], self.stamp(active)
        if kept is None or kept[0] != now:
            kept = (now, is_on(active, use))
        return (*memory[:use], kept, *memory[use + 1 :]), kept[1]

    def shown(self, memory: Any, active: Steps) -> tuple[Any, str]:
        return memory, listed(active)


def _stamped(name: str, code: str, stamp: Callable[[Steps], Any]) -> Draw:
    find = f"""\
    def find(self, name):
        stamp = {code}
        kept = self.cache.get(name)
        if kept is None or kept[0] != stamp:
            kept = self.cache[name] = stamp, self.answer(name)
        return kept[1]"""
    plain = _cache(name, lambda step, made, use: False, "pass", "pass", find=find)

    def draw(random: Random) -> Grown:
        drawn = plain(random)
        model = Stamped(drawn.model.steps, drawn.model.uses, stamp)
        return Grown(name, model, drawn.source, drawn.uses)

    return draw


class Listing(Memory):
    """Memory: the listing that a look made, until a change that forgets it."""

    def __init__(self, steps: int, uses: int, forgets: tuple[bool, bool]) -> None:
        super().__init__(steps, uses)
        self.forgets = forgets

    def start(self) -> Any:
        return None

    def made(self, memory: Any, active: Steps, step: int) -> Any:
        return None if self.forgets[0] else memory

    def undone(self, memory: Any, active: Steps, step: int) -> Any:
        return None if self.forgets[1] else memory

    def shown(self, memory: Any, active: Steps) -> tuple[Any, str]:
        kept = memory or listed(active)
        return kept, kept


def _listing(name: str, added: bool, removed: bool) -> Draw:
    forget = 'vars(self).pop("listing", None)'

    def draw(random: Random) -> Grown:
        uses = ("answer",) * random.randrange(3)
        source = REGISTRY.format(
            head="",
            cache="pass",
            added=forget if added else "pass",
            removed=forget if removed else "pass",
            answer=IS_ON,
            find='''\
    @functools.cached_property
    def listing(self):
        return "[" + ", ".join(sorted(self.names)) + "]"''',
            create="pass",
        ).replace(
            '        return "[" + ", ".join(sorted(self.names)) + "]"\n\n\ndef create',
            "        return self.listing\n\n\ndef create",
        )
        model = Listing(some_steps(random), len(uses), (added, removed))
        return Grown(name, model, source, uses)

    return draw


CLEAR, POP = "self.cache.clear()", "self.cache.pop(name, None)"

FAULTY: tuple[Draw, ...] = (
    _cache("never forgotten", lambda step, made, use: False, "pass", "pass"),
    _cache("forgotten when added", lambda step, made, use: made, CLEAR, "pass"),
    _cache("forgotten when removed", lambda step, made, use: not made, "pass", CLEAR),
    _cache(
        "only one's own forgotten",
        lambda step, made, use: step == use,
        POP,
        POP,
        nearest=True,
    ),
    _cache(
        "lru_cache of a method, cleared when added",
        lambda step, made, use: made,
        LRU_CLEAR,
        "pass",
        find=LRU,
        cache="pass",
        create=LRU_CLEAR,
    ),
    _cache(
        "module's cache, cleared when removed",
        lambda step, made, use: not made,
        "pass",
        "_found.clear()",
        find=MODULE,
        cache="pass",
        head="_found = {}\n",
        create="_found.clear()",
    ),
    _negative("misses kept", lambda step, made, use: not made, "pass", CLEAR),
    _stamped("stamp: how many", "len(self.names)", len),
    _listing("listing kept when removed", True, False),
    _listing("listing never forgotten", False, False),
)

SOUND: tuple[Draw, ...] = (
    _cache("always forgotten", lambda step, made, use: True, CLEAR, CLEAR),
    _cache("one's own forgotten", lambda step, made, use: step == use, POP, POP),
    _cache(
        "lru_cache of a method, always cleared",
        lambda step, made, use: True,
        LRU_CLEAR,
        LRU_CLEAR,
        find=LRU,
        cache="pass",
        create=LRU_CLEAR,
    ),
    _negative(
        "misses forgotten",
        lambda step, made, use: made and step == use,
        POP,
        "pass",
    ),
    _stamped("stamp: the names", "frozenset(self.names)", frozenset),
    _listing("listing always forgotten", True, True),
    _cache(
        "module's cache, always cleared",
        lambda step, made, use: True,
        "_found.clear()",
        "_found.clear()",
        find=MODULE,
        cache="pass",
        head="_found = {}\n",
        create="_found.clear()",
        nearest=True,
    ),
)
