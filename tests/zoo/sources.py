"""Real code for what `tests.zoo.behaviours` describes: the source of a registry.

A registry's module is put together from three texts: the behaviour's functions, the
frame (a registry of names that asks `load` and `store` for its memory), and a place,
which defines `Registry(Frame)` with these two and `create()`, which makes a fresh one
whatever was done before.  The places are in `tests.zoo.places_*`.

Each registry has a module of its own, so that what is global to one is none of the
others' business; it is in `sys.modules` from `load_module` until `forget_module`.
"""

import linecache
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import CodeType, ModuleType
from typing import Any

from tests.zoo.behaviours import (
    Again,
    Behaviour,
    CellModel,
    Mirror,
    Partial,
    Pattern,
    Stale,
    Wedge,
)
from tests.zoo.model import NAMES

# What a behaviour is asked, and the answer of one that does not care.
DEFAULTS = {
    "refuses": "def refuses(value, on, step):\n    return False\n",
    "after_refusal": "def after_refusal(value, on, step):\n    return value\n",
    "moved": "def moved(value, on, step, made):\n    return value\n",
    "told": 'def told(value, on):\n    return ""\n',
    "answers": "answers = None\n",
}

FRAME = '''\
class Refused(Exception):
    """A step that cannot be made now."""


class Frame:
    """Names that are on; `load` and `store` keep what else is remembered."""

    def __init__(self):
        self.names = {container}

    def keep(self, value):
        if value != self.load():
            self.store(value)

    def add(self, name):
        step = NAMES.index(name)
        value = self.load()
        if refuses(value, self.on(), step):
            self.keep(after_refusal(value, self.on(), step))
            raise Refused(name)
        {put}
        self.keep(moved(value, self.on(), step, True))
        return {handle}

    def remove(self, name):
        {drop}
        self.keep(moved(self.load(), self.on(), NAMES.index(name), False))

    def on(self):
        return {listing}

    def has(self, name):
        answer = "on" if NAMES.index(name) in self.on() else "off"
        return answer + {told_in_uses}

    def count(self):
        answer, value = answers(self.load(), self.on())
        self.keep(value)
        return answer

    def show(self):
        names = ", ".join(NAMES[step] for step in self.on())
        return "[" + names + "]" + {told_in_looks}
'''

# How the names themselves are kept: container, put, drop, listing.
CONTAINERS = {
    "flags": (
        "[False] * len(NAMES)",
        "self.names[step] = True",
        "self.names[NAMES.index(name)] = False",
        "[step for step, there in enumerate(self.names) if there]",
    ),
    "set": (
        "set()",
        "self.names.add(name)",
        "self.names.discard(name)",
        "sorted(NAMES.index(name) for name in self.names)",
    ),
    "dict": (
        "{}",
        "self.names[name] = step",
        "del self.names[name]",
        "sorted(self.names.values())",
    ),
    "list": (
        "[]",
        "self.names.append(name)",
        "self.names.remove(name)",
        "sorted(NAMES.index(name) for name in self.names)",
    ),
}

# What a step returns: text before the frame, and the expression in `add`.
HANDLES = {
    "closure": ("", "lambda: self.remove(name)"),
    "method": ("import functools\n", "functools.partial(self.remove, name)"),
    "object": (
        """\
class Handle:
    def __init__(self, registry, name):
        self.registry, self.name = registry, name

    def close(self):
        self.registry.remove(self.name)
""",
        "Handle(self, name)",
    ),
}


# Steps that are more than functions: `do_NAME(registry)`, made of what `add` does.
STEPS = {
    "coroutine": """\
async def do_{name}(registry):
    await asyncio.sleep(0)
    undo = registry.add("{name}")
    await asyncio.sleep(0)
    return undo
""",
    "coroutine, undone by one": """\
async def do_{name}(registry):
    undo = registry.add("{name}")
    await asyncio.sleep(0)

    async def end():
        await asyncio.sleep(0)
        undo()

    return end
""",
    "async generator": """\
async def do_{name}(registry):
    await asyncio.sleep(0)
    undo = registry.add("{name}")
    yield undo
    await asyncio.sleep(0)
    undo()
""",
    "async context manager": """\
@contextlib.asynccontextmanager
async def do_{name}(registry):
    undo = registry.add("{name}")
    await asyncio.sleep(0)
    try:
        yield
    finally:
        await asyncio.sleep(0)
        undo()
""",
    "generator": """\
def do_{name}(registry):
    undo = registry.add("{name}")
    yield undo
    undo()
""",
    "context manager": """\
@contextlib.contextmanager
def do_{name}(registry):
    undo = registry.add("{name}")
    try:
        yield
    finally:
        undo()
""",
    "object with __enter__": """\
class do_{name}:
    def __init__(self, registry):
        self.registry = registry

    def __enter__(self):
        self.undo = self.registry.add("{name}")

    def __exit__(self, *error):
        self.undo()
""",
}

# Functions that wait before they do what the registry does.
WAITING = """\
async def create_async():
    await asyncio.sleep(0)
    return create()


async def show(registry):
    await asyncio.sleep(0)
    return registry.show()


async def count(registry):
    await asyncio.sleep(0)
    return registry.count()


def has(name):
    async def ask(registry):
        answer = registry.has(name)
        await asyncio.sleep(0)
        return answer

    return ask
"""


def steps_source(kinds: Sequence[str]) -> str:
    """The steps `do_a`, `do_b`, ..., each of its kind, and `WAITING`."""
    steps = [
        STEPS[kind].format(name=name) for kind, name in zip(kinds, NAMES, strict=False)
    ]
    return "\n\n".join(("import asyncio\nimport contextlib\n", *steps, WAITING))


def behaviour_source(behaviour: Behaviour) -> str:
    """The behaviour's functions, and the defaults of those that it does not have."""
    written = _WRITERS[type(behaviour)](behaviour)
    missing = [t for name, t in DEFAULTS.items() if f"def {name}(" not in written]
    return "\n\n".join((*missing, written))


def registry_source(
    model: CellModel, place: str, container: str, handle: str, head: str = ""
) -> str:
    """The source of a module: `create()` makes a fresh registry of this model."""
    make, put, drop, listing = CONTAINERS[container]
    before, returned = HANDLES[handle]
    told = "told(self.load(), self.on())"
    frame = FRAME.format(
        container=make,
        put=put,
        drop=drop,
        listing=listing,
        handle=returned,
        told_in_uses=told if model.shows in ("uses", "both") else '""',
        told_in_looks=told if model.shows in ("look", "both") else '""',
    )
    names = f"NAMES = {NAMES[: model.steps]!r}\nSIZE = {model.behaviour.size}\n"
    parts = (head, names, behaviour_source(model.behaviour), before, frame, place)
    return "\n\n".join(part for part in parts if part)


def load_module(name: str, source: str) -> ModuleType:
    """A fresh module of this source under this name."""
    module = ModuleType(name, "A registry of the zoo.")
    file = f"<{name}>"
    module.__file__ = file
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    sys.modules[name] = module
    exec(_compiled(source, file), module.__dict__)
    return module


@lru_cache(maxsize=1)
def _compiled(source: str, file: str) -> CodeType:
    return compile(source, file, "exec")


def forget_module(name: str) -> None:
    """Take the module, and what it made of its own, out of `sys.modules`."""
    for each in [n for n in sys.modules if n == name or n.startswith(f"{name}.")]:
        del sys.modules[each]
    linecache.cache.pop(f"<{name}>", None)


def _again(this: Again) -> str:
    removed = "0" if this.forgets else "value"
    return f"""\
def moved(value, on, step, made):
    if step == {this.step}:
        return min(value + 1, {this.limit}) if made else {removed}
    return value


def told(value, on):
    return "!" if value >= {this.limit} else ""
"""


def _pattern(this: Pattern) -> str:
    """The automaton as a table, found by trying all continuations."""
    changes = sorted({*this.pattern})
    length = len(this.pattern)
    rows = []
    for at in range(length + 1):
        row = {}
        for change in changes:
            past = [*this.pattern[:at], change]
            best = min(len(past), length)
            while past[len(past) - best :] != list(this.pattern[:best]):
                best -= 1
            row[change] = best
        rows.append(row)
    if this.sticks:
        rows[length] = {}
    stay = f" if value != {length} else {length}" if this.sticks else ""
    hidden = "" if this.unless is None else f" and {this.unless} not in on"
    return f"""\
NEXT = {rows!r}


def moved(value, on, step, made):
    return NEXT[value].get((step, made), 0){stay}


def told(value, on):
    return "!" if value == {length}{hidden} else ""
"""


def _mirror(this: Mirror) -> str:
    return f"""\
WEIGHTS = {this.weights!r}


def moved(value, on, step, made):
    change = WEIGHTS[step] if made else -WEIGHTS[step]
    return (value + change) % {this.modulus}


def told(value, on):
    return "+" + str(value)
"""


def _stale(this: Stale) -> str:
    return f"""\
FORGET = {sorted(this.forget)!r}


def moved(value, on, step, made):
    return 0 if (step, made) in FORGET else value


def answers(value, on):
    if value == 0:
        value = len([step for step in on if step in {this.among!r}]) + 1
    return str(value - 1), value
"""


def _wedge(this: Wedge) -> str:
    left = "1" if this.leaves else "value"
    blocked = f"{this.beside} in on"
    if this.blocks:
        blocked += " or value == 1"
    healed = f"(step, made) == ({this.beside}, False)" if this.heals else "False"
    shown = '""' if this.blocks else '"!" if value else ""'
    return f"""\
def refuses(value, on, step):
    return step == {this.step} and ({blocked})


def after_refusal(value, on, step):
    return {left} if {this.beside} in on else value


def moved(value, on, step, made):
    return 0 if {healed} else value


def told(value, on):
    return {shown}
"""


def _partial(this: Partial) -> str:
    mended = f"if made and step == {this.step}:\n        return 0"
    shown = f'"!" if value and {this.step} not in on else ""' if this.shows else '""'
    return f"""\
def moved(value, on, step, made):
    if not made and step == {this.step} and {this.beside} in on:
        return 1
    {mended if this.mends else "pass"}
    return value


def told(value, on):
    return {shown}
"""


_WRITERS: dict[type[Behaviour], Callable[[Any], str]] = {
    Again: _again,
    Pattern: _pattern,
    Mirror: _mirror,
    Stale: _stale,
    Wedge: _wedge,
    Partial: _partial,
}
