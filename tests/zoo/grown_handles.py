"""Grown registries whose fault is in the undo handle, and sound ones like them."""

from random import Random
from typing import Any

from tests.zoo.grown import Draw, Fails, Grown, Memory, Steps, some_steps, some_uses
from tests.zoo.model import NAMES

# Items in a list, shown sorted; `{keep}` says what the handle keeps and does.
LIST = """\
class Registry:
    def __init__(self):
        self.items = []

    def add(self, name):
{add}

    def has(self, name):
        return "on" if name in self.items else "off"

    def show(self):
        return "items: " + ", ".join(sorted(item for item in self.items if item))


def create():
    return Registry()
"""


class Items(Memory):
    """Memory: the items in order, and for each step what its handle holds."""

    def start(self) -> Any:
        return (), (None,) * self.steps

    def made(self, memory: Any, active: Steps, step: int) -> Any:
        items, handles = memory
        return self.added(items, step), _with(handles, step, self.kept(items, step))

    def undone(self, memory: Any, active: Steps, step: int) -> Any:
        items, handles = memory
        rest = _with(handles, step, None)
        return self.removed(items, step, handles[step], rest), rest

    def added(self, items: Any, step: int) -> Any:
        return (*items, step)

    def kept(self, items: Any, step: int) -> Any:
        """What the handle holds, from the items before."""
        return None

    def removed(self, items: Any, step: int, handle: Any, rest: Any) -> Any:
        """The items after an undo."""
        return tuple(item for item in items if item != step)

    def asked(self, memory: Any, active: Steps, use: int) -> tuple[Any, str]:
        return memory, "on" if use % self.steps in memory[0] else "off"

    def shown(self, memory: Any, active: Steps) -> tuple[Any, str]:
        there = sorted(item for item in memory[0] if item is not None)
        return memory, "items: " + ", ".join(NAMES[item] for item in there)


def _with(values: Any, at: int, value: Any) -> Any:
    return (*values[:at], value, *values[at + 1 :])


def _without(values: Any, at: int) -> Any:
    return (*values[:at], *values[at + 1 :])


class Index(Items):
    def kept(self, items: Any, step: int) -> Any:
        return len(items)

    def removed(self, items: Any, step: int, handle: Any, rest: Any) -> Any:
        if not items:
            raise Fails("IndexError", "pop from empty list", (items, rest))
        if handle >= len(items):
            raise Fails("IndexError", "pop index out of range", (items, rest))
        return _without(items, handle)


class Once(Items):
    """An item is never there twice; the newest is the last one."""

    def added(self, items: Any, step: int) -> Any:
        return (*self.others(items, step), step)

    def others(self, items: Any, step: int) -> Any:
        return tuple(item for item in items if item != step)


class Slice(Once):
    def kept(self, items: Any, step: int) -> Any:
        return len(self.others(items, step))

    def removed(self, items: Any, step: int, handle: Any, rest: Any) -> Any:
        return _without(items, handle) if handle < len(items) else items


class Front(Items):
    def added(self, items: Any, step: int) -> Any:
        return (step, *items)

    def kept(self, items: Any, step: int) -> Any:
        return 0

    def removed(self, items: Any, step: int, handle: Any, rest: Any) -> Any:
        return items[1:]


class Snapshot(Once):
    def kept(self, items: Any, step: int) -> Any:
        return items

    def removed(self, items: Any, step: int, handle: Any, rest: Any) -> Any:
        return handle


class LastOnly(Once):
    def removed(self, items: Any, step: int, handle: Any, rest: Any) -> Any:
        return items[:-1] if items and items[-1] == step else items


class FreeSlot(Items):
    """Sound: a handle holds the first slot that was free, and no two hold one."""

    def added(self, items: Any, step: int) -> Any:
        at = self.kept(items, step)
        return _with(items, at, step) if at < len(items) else (*items, step)

    def kept(self, items: Any, step: int) -> Any:
        return items.index(None) if None in items else len(items)

    def removed(self, items: Any, step: int, handle: Any, rest: Any) -> Any:
        return _with(items, handle, None)


def _items(name: str, model: type[Items], add: str) -> Draw:
    def draw(random: Random) -> Grown:
        uses, steps = some_uses(random), some_steps(random)
        if model is Snapshot:
            # With four steps its handles hold too many lists for the oracle.
            steps = min(steps, 3)
        code = "\n".join(f"        {line}" for line in add.strip().splitlines())
        source = LIST.format(add=code)
        return Grown(name, model(steps, len(uses)), source, uses)

    return draw


class Mask(Memory):
    """Memory: bits that are set, and the bits that each handle puts back."""

    def start(self) -> Any:
        return 0, (None,) * self.steps

    def made(self, memory: Any, active: Steps, step: int) -> Any:
        bits, handles = memory
        return bits | 1 << step, _with(handles, step, bits)

    def undone(self, memory: Any, active: Steps, step: int) -> Any:
        _, handles = memory
        return handles[step], _with(handles, step, None)

    def shown(self, memory: Any, active: Steps) -> tuple[Any, str]:
        return memory, f"bits {memory[0]:04b}"

    def asked(self, memory: Any, active: Steps, use: int) -> tuple[Any, str]:
        return memory, "on" if memory[0] >> use % self.steps & 1 else "off"


class CleanMask(Mask):
    """Sound, and its handles need no more than the step."""

    def made(self, memory: Any, active: Steps, step: int) -> Any:
        return memory[0] | 1 << step, memory[1]

    def undone(self, memory: Any, active: Steps, step: int) -> Any:
        bits, handles = memory
        return bits & ~(1 << step), _with(handles, step, None)


def _mask(name: str, model: type[Mask], undo: str) -> Draw:
    def draw(random: Random) -> Grown:
        uses = some_uses(random)
        source = f"""\
class Registry:
    def __init__(self):
        self.bits = 0

    def add(self, name):
        before, bit = self.bits, 1 << "abcd".index(name)
        self.bits |= bit

        def undo():
            {undo}

        return undo

    def has(self, name):
        return "on" if self.bits >> "abcd".index(name) & 1 else "off"

    def show(self):
        return f"bits {{self.bits:04b}}"


def create():
    return Registry()
"""
        return Grown(name, model(some_steps(random), len(uses)), source, uses)

    return draw


class Existed(Memory):
    """Memory: whether the shared item is there, and what each handle remembers."""

    def start(self) -> Any:
        return False, (None,) * self.steps

    def made(self, memory: Any, active: Steps, step: int) -> Any:
        there, handles = memory
        return True, _with(handles, step, there)

    def undone(self, memory: Any, active: Steps, step: int) -> Any:
        there, handles = memory
        return there and handles[step], _with(handles, step, None)

    def shown(self, memory: Any, active: Steps) -> tuple[Any, str]:
        names = [NAMES[step] for step in active] + ["shared"] * memory[0]
        return memory, ", ".join(names)


class Counted(Memory):
    """Sound: the shared item is there as long as anybody is."""

    def shown(self, memory: Any, active: Steps) -> tuple[Any, str]:
        names = [NAMES[step] for step in active] + ["shared"] * bool(active)
        return memory, ", ".join(names)


def _shared(name: str, model: type[Memory], add: str, undo: str) -> Draw:
    def draw(random: Random) -> Grown:
        uses = some_uses(random)
        source = f"""\
class Registry:
    def __init__(self):
        self.names, self.users = set(), 0

    def add(self, name):
        existed = "shared" in self.names
        self.names |= {{name, "shared"}}
        {add}

        def undo():
            self.names.remove(name)
            {undo}

        return undo

    def has(self, name):
        return "on" if name in self.names else "off"

    def show(self):
        return ", ".join(sorted(self.names))


def create():
    return Registry()
"""
        return Grown(name, model(some_steps(random), len(uses)), source, uses)

    return draw


FAULTY: tuple[Draw, ...] = (
    _items(
        "index captured",
        Index,
        """
index = len(self.items)
self.items.append(name)
return lambda: self.items.pop(index)
""",
    ),
    _items(
        "snapshot restored",
        Snapshot,
        """
saved = list(self.items)
self.items = [item for item in saved if item != name] + [name]

def undo():
    self.items = saved

return undo
""",
    ),
    _items(
        "slice captured",
        Slice,
        """
if name in self.items:
    self.items.remove(name)
at = slice(len(self.items), len(self.items) + 1)
self.items.append(name)

def undo():
    del self.items[at]

return undo
""",
    ),
    _items(
        "front popped",
        Front,
        """
self.items.insert(0, name)
return lambda: self.items.pop(0)
""",
    ),
    _items(
        "removed only from the end",
        LastOnly,
        """
if name in self.items:
    self.items.remove(name)
self.items.append(name)

def undo():
    if self.items and self.items[-1] == name:
        self.items.pop()

return undo
""",
    ),
    _mask("bits restored", Mask, "self.bits = before"),
    _shared(
        "shared item that existed",
        Existed,
        "pass",
        "if not existed:\n                self.names.discard('shared')",
    ),
)

SOUND: tuple[Draw, ...] = (
    _items(
        "removed by name",
        Items,
        "self.items.append(name)\nreturn lambda: self.items.remove(name)",
    ),
    _items(
        "free slot captured",
        FreeSlot,
        """
index = self.items.index(None) if None in self.items else len(self.items)
self.items[index : index + 1] = [name]

def undo():
    self.items[index] = None

return undo
""",
    ),
    _mask("bits cleared", CleanMask, "self.bits &= ~bit"),
    _shared(
        "shared item counted",
        Counted,
        "self.users += 1",
        "self.users -= 1\n            if not self.users:\n"
        "                self.names.remove('shared')",
    ),
)
