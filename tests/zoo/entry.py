"""An entry of the zoo: a model, and the real registry that is to behave like it.

`Entry.build()` makes the registry's module and returns it as a `Living`: functions
that make, observe, step and use it, as anybody would write them; `Living.scenario()`
hands them to the harness, with nothing else.  `Player` plays histories on it with no
harness at all, to be compared with the model.
"""

import asyncio
import gc
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from everyorder.harness import Scenario, step, use
from tests.zoo.model import DONE, Answer, Model, error
from tests.zoo.oracle import Truth, truth
from tests.zoo.places import Seal
from tests.zoo.sources import forget_module

Seen = tuple[Any, ...]


@dataclass(frozen=True)
class Living:
    """A real registry: what a scenario of it is made of."""

    create: Callable[[], Any]
    observe: Callable[[Any], Any]
    steps: tuple[tuple[str, Callable[[Any], Any]], ...]
    uses: tuple[tuple[str, Callable[[Any], Any]], ...]

    def scenario(self, name: str) -> Scenario:
        """The scenario that the harness is asked about."""
        return Scenario(
            *(step(text, do) for text, do in self.steps),
            # A drawn registry may have a use twice.
            uses=[use(text, perform) for text, perform in dict(self.uses).items()],
            create=self.create,
            observe=self.observe,
            name=name,
        )


@dataclass(frozen=True, eq=False)
class Entry:
    """One registry of the zoo.

    `seal` says what no form of its objects can show (see `tests.zoo.places`), and
    `rate` how often a flaky one fails.
    """

    kind: str
    seed: int
    variant: str
    model: Model
    build: Callable[[str], Living]
    seal: Seal = ""
    rate: float = 0.0

    @property
    def module(self) -> str:
        """The name of the registry's own module."""
        letters = "".join(c if c.isalnum() else "_" for c in self.kind)
        return f"zoo_{letters.strip('_')}_{self.seed}"

    @property
    def name(self) -> str:
        """How it is called in tables: class and seed."""
        return f"{self.kind}/{self.seed}"

    def truth(self, chosen: tuple[int, ...] | None = None) -> Truth:
        """What the oracle knows of it, over some operations or all."""
        return _all_truth(self) if chosen is None else truth(self.model, chosen)

    @contextmanager
    def living(self) -> Iterator[Living]:
        """The registry, for as long as it is looked at."""
        living = self.build(self.module)
        try:
            yield living
        finally:
            if self.seal == "outside":
                # What it left in the interpreter is put back by its own create.
                living.create()
            forget_module(self.module)


# One at a time: what is kept is in the way of whoever scans the process for changes.
@lru_cache(maxsize=1)
def _all_truth(entry: Entry) -> Truth:
    return truth(entry.model)


class Player:
    """Plays operations on a real registry and tells what each answered.

    The garbage collector is to be off meanwhile, as collecting is an operation.
    """

    def __init__(self, living: Living) -> None:
        assert not gc.isenabled(), "collecting garbage is an operation"
        self.living = living
        self.loop: asyncio.AbstractEventLoop | None = None
        self.registry = self.settled(living.create())
        self.handles: dict[int, Callable[[], object]] = {}

    def close(self) -> None:
        """Close the event loop, if there was need of one."""
        if self.loop is not None:
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()

    def play(self, operation: int) -> Answer | None:
        """One operation by its number, as in the oracle."""
        steps, uses = self.living.steps, self.living.uses
        try:
            if operation in self.handles:
                self.settled(self.handles.pop(operation)())
                return DONE
            if operation < len(steps):
                self.handles[operation] = self.made(steps[operation][1])
                return DONE
            if operation < len(steps) + len(uses):
                perform = uses[operation - len(steps)][1]
                return self.settled(perform(self.registry))  # type: ignore[no-any-return]  # an answer
        except Exception as caught:
            return error(type(caught).__name__, str(caught))
        if operation == len(steps) + len(uses):
            return self.settled(self.living.observe(self.registry))  # type: ignore[no-any-return]  # an answer
        gc.collect()
        return None

    def made(self, do: Callable[[Any], Any]) -> Callable[[], object]:
        """Make a step of any kind and return what undoes it."""
        result = self.settled(do(self.registry))
        if hasattr(result, "__aenter__"):
            self.settled(result.__aenter__())
            return lambda: result.__aexit__(None, None, None)
        if hasattr(result, "__enter__"):
            result.__enter__()
            return lambda: result.__exit__(None, None, None)
        if inspect.isasyncgen(result):
            self.settled(anext(result))
            return lambda: anext(result, None)
        if inspect.isgenerator(result):
            next(result)
            return lambda: next(result, None)
        return getattr(result, "close", result)  # type: ignore[no-any-return]  # undoes

    def settled(self, result: Any) -> Any:
        """The result itself, or what it gives when awaited."""
        if not inspect.isawaitable(result):
            return result
        if self.loop is None:
            self.loop = asyncio.new_event_loop()

        async def wait() -> Any:
            return await result

        return self.loop.run_until_complete(wait())
