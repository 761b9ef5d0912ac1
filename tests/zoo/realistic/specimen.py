"""A specimen: one realistic registry, and the functions that a scenario is made of.

`Interface` holds what the registries of one kind have in common: steps, uses, and the
text that must depend on the active steps only.  These are raw functions of a registry.
`scenario_of` in `tests.zoo.realistic.judge` hands them to the harness by its public
interface; the oracle plays the same functions without it.  Nothing that the oracle
imports imports the harness.

A specimen with a `fault` is declared faulty, in a sentence, and one without is declared
right.  The declaration decides nothing: the oracle does, and a test compares the two.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Function = Callable[[Any], Any]


@dataclass(frozen=True)
class Registration:
    """A step; `do(registry)` returns its undo.  `requires` and `after` are texts."""

    text: str
    do: Function
    requires: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    lasting: bool = False


@dataclass(frozen=True)
class Interface:
    """The operations of a kind of registries.

    The order of the pairs in `ordered` may show.  With `collects`, collecting garbage
    is an operation: something of the registry is only collected with its cycle.
    """

    kind: str
    steps: tuple[Registration, ...]
    uses: tuple[tuple[str, Function], ...]
    observe: Callable[[Any], str]
    ordered: tuple[tuple[str, str], ...] = ()
    collects: bool = False


@dataclass(frozen=True, eq=False)
class Specimen:
    """A registry of an interface, by the function that makes a fresh one."""

    interface: Interface
    create: Callable[[], Any]
    fault: str = ""

    @property
    def name(self) -> str:
        """The kind and the class: `event bus/StaleOrder`."""
        return f"{self.interface.kind}/{self.create.__name__}"


def specimens_of(
    interface: Interface,
    right: tuple[Callable[[], Any], ...],
    faulty: Mapping[Callable[[], Any], str],
) -> Iterator[Specimen]:
    """Yield the specimens of one interface: right ones, then faulty ones."""
    for create in right:
        yield Specimen(interface, create)
    for create, fault in faulty.items():
        yield Specimen(interface, create, fault)
