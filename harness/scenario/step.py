"""Steps and uses: the letters of a scenario, each with its text.

True only here: a step is prepared once for each fresh system and then performed any
number of times.  `prepare(target, origin)` gets the system's registry and a name for
the step ("step 2") and returns a function that performs it; what that returns ends it
by `close()`, and is owned by the engine alone.

Rules:
- performing may raise: then nothing may have changed;
- the text is one runnable line; reports print it, digests are made of it;
- a use returns its answer as text and must not change what is registered.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from harness.errors import NotAScenario


class Closable(Protocol):
    """What a performed step returns."""

    def close(self) -> None:
        """End what the step did."""


Perform = Callable[[], Closable]
Prepare = Callable[[Any, str], Perform]
Use = Callable[[Any], Hashable]

# Whose step or use it is: the dispatcher's, of a registry with `create`, or not said.
Owner: TypeAlias = Literal["dispatcher", "registry", ""]


@dataclass(frozen=True, slots=True)
class Step:
    """A registration that can be made and ended.

    `operators` are the names of the operators that it concerns, for the dispatcher;
    `kernels` describe its kernels where the scenario says how: key, operator, words.
    A step is `beside` if it does more than register in the dispatcher's state; see
    `harness.scenario.effects`.  `owner` says what it can be done to, where that is
    known.
    """

    text: str
    prepare: Prepare
    operators: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    beside: bool = False
    owner: Owner = ""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class UseStep:
    """A call or a look-up; `perform(target)` returns its answer."""

    text: str
    perform: Use
    operators: tuple[str, ...] = ()
    owner: Owner = ""

    def __str__(self) -> str:
        return self.text


class _Undo:
    """The handle of a step that gave a function to undo it."""

    __slots__ = ("__weakref__", "close")

    def __init__(self, undo: Callable[[], object]) -> None:
        self.close: Callable[[], object] = undo


def step(text: str, do: Callable[[Any], Any]) -> Step:
    """A step of any registry: `do(registry)` returns what undoes it.

    That is a function without parameters, or an object with `close()`.
    """

    def prepare(target: Any, origin: str) -> Perform:
        def perform() -> Closable:
            undo = do(target)
            if hasattr(undo, "close"):
                return undo  # type: ignore[no-any-return]  # it has close()
            if not callable(undo):
                raise NotAScenario(
                    found=f"{type(undo).__name__}, returned by {text!r}",
                    wanted="the function that undoes the step, or an object with "
                    "close()",
                )
            return _Undo(undo)  # type: ignore[return-value]  # close is a slot

        return perform

    return Step(text, prepare, owner="registry")


def use(text: str, perform: Callable[[Any], Hashable]) -> UseStep:
    """A use of any registry: `perform(registry)` returns an answer to compare."""
    return UseStep(text, perform)
