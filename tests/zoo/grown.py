"""Registries as they are grown, not built around a memory: code and model by hand.

A `Grown` is one registry in two versions of the truth: `model` says what it does,
`source` does it.  The module's source defines `create()`, whose registries have
`add(name)`, which returns what undoes it, `show()`, and what the uses call.

`Memory` is the shape of these models: a state is (active steps, memory), and a model
overrides what becomes of the memory and what is shown of it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from tests.zoo.entry import Entry, Living
from tests.zoo.model import (
    DONE,
    NAMES,
    Model,
    Reply,
    State,
    error,
    with_step,
    without_step,
)
from tests.zoo.places import Seal
from tests.zoo.sources import load_module

Steps = tuple[int, ...]


class Fails(Exception):
    """A step that fails: the error's class and text, and the memory after it."""

    def __init__(self, kind: str, text: str, memory: Any) -> None:
        super().__init__(kind, text)
        self.kind, self.text, self.memory = kind, text, memory


class Memory(Model):
    """A model whose steps, uses and looks are functions of a memory."""

    def start(self) -> Any:
        """The memory of a fresh registry."""
        return ()

    def made(self, memory: Any, active: Steps, step: int) -> Any:
        """The memory after making a step beside the active ones; may raise `Fails`."""
        return memory

    def undone(self, memory: Any, active: Steps, step: int) -> Any:
        """The memory after undoing a step; `active` are those that stay."""
        return memory

    def asked(self, memory: Any, active: Steps, use: int) -> tuple[Any, str]:
        """The memory after a use, and the answer: by default whether it is active."""
        return memory, "on" if use % self.steps in active else "off"

    def shown(self, memory: Any, active: Steps) -> tuple[Any, str]:
        """The memory after a look, and what is seen."""
        raise NotImplementedError

    def fresh(self) -> State:
        return ((), self.start())

    def do(self, state: State, step: int) -> Reply:
        active, memory = state
        try:
            memory = self.made(memory, active, step)
        except Fails as failure:
            failed = error(failure.kind, failure.text)
            return Reply((active, failure.memory), failed)
        return Reply((with_step(active, step), memory), DONE)

    def undo(self, state: State, step: int) -> Reply:
        active, memory = state
        active = without_step(active, step)
        try:
            return Reply((active, self.undone(memory, active, step)), DONE)
        except Fails as failure:
            failed = error(failure.kind, failure.text)
            return Reply((active, failure.memory), failed)

    def use(self, state: State, use: int) -> Reply:
        memory, answer = self.asked(state[1], state[0], use)
        return Reply((state[0], memory), answer)

    def look(self, state: State) -> Reply:
        memory, seen = self.shown(state[1], state[0])
        return Reply((state[0], memory), seen)


@dataclass(frozen=True)
class Grown:
    """A registry drawn from a seed; each use is the name of a method that takes one."""

    name: str
    model: Model
    source: str
    uses: tuple[str, ...] = ()
    seal: Seal = ""
    rate: float = 0.0


Draw = Callable[[Random], Grown]


def grown_entry(
    kind: str, faulty: tuple[Draw, ...], sound: tuple[Draw, ...], seed: int
) -> Entry:
    """Two of three entries are faulty, one is sound; the kinds of each by turns."""
    random = Random(f"{kind}/{seed}")
    block, rest = divmod(seed, 3)
    if not sound or (faulty and rest != 2):
        drawn = faulty[(2 * block + rest) % len(faulty)](random)
    else:
        drawn = sound[block % len(sound)](random)
    return Entry(
        kind=kind,
        seed=seed,
        variant=f"{drawn.name}; {drawn.model.steps} steps, {drawn.uses}",
        model=drawn.model,
        build=partial(_living, drawn),
        seal=drawn.seal,
        rate=drawn.rate,
    )


def _living(drawn: Grown, name: str) -> Living:
    module = load_module(name, drawn.source)
    steps = drawn.model.steps
    return Living(
        create=module.create,
        observe=lambda registry: registry.show(),
        steps=tuple((f"registry.add({n!r})", _adding(n)) for n in NAMES[:steps]),
        uses=tuple(
            (f"registry.{method}({NAMES[at % steps]!r})", _using(method, at % steps))
            for at, method in enumerate(drawn.uses)
        ),
    )


def _adding(name: str) -> Callable[[Any], Any]:
    return lambda registry: registry.add(name)


def _using(method: str, step: int) -> Callable[[Any], Any]:
    name = NAMES[step]
    return lambda registry: getattr(registry, method)(name)


def some_steps(random: Random) -> int:
    """Two to four steps, mostly three."""
    return random.choice((2, 3, 3, 4))


def some_uses(random: Random, method: str = "has") -> tuple[str, ...]:
    """No use, one or two of the same method."""
    return (method,) * random.randrange(3)
