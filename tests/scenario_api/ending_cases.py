"""Scenarios of registries that forget several registrations at once.

True only here: `Case.truth` plays every history of a few operations on fresh registries
and compares all results, by rules of its own and not by those of the engine.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from operator import methodcaller
from typing import Any, Literal

from everyorder.harness.scenario import Scenario, step, use
from tests.scenario_api.ending_registries import (
    Aliases,
    AliasesStay,
    Bus,
    CacheBySize,
    Cached,
    CacheStays,
    ClearsHalf,
    ClosesAll,
    ClosesOne,
    ClosesTwice,
    Counted,
    CountStays,
    Defaulted,
    DefaultStays,
    ForgetsLast,
    Indexed,
    IndexStays,
    Locked,
    LocksForEver,
    MuteStays,
    NoNewAfterOld,
    OldStays,
    Once,
    OnceForEver,
    OnlyFirst,
    Open,
    Places,
    PlacesShift,
    Restores,
    Table,
    Theme,
    Versions,
)

ALL: Literal["all"] = "all"


@dataclass(frozen=True)
class Doing:
    """A step: it lasts if `do` returns nothing."""

    do: Callable[[Any], Any]
    lasts: bool = False
    requires: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    ends: Any = ()


@dataclass(frozen=True)
class Asking:
    """A use."""

    perform: Callable[[Any], Any]
    ends: Any = ()


@dataclass(frozen=True)
class Case:
    """A right registry and its faulty twins, with what is done to them."""

    right: Callable[[], Any]
    faulty: dict[str, Callable[[], Any]]
    steps: dict[str, Doing]
    uses: dict[str, Asking] = field(default_factory=dict)
    observe: Callable[[Any], str] | None = None

    def scenario(self, create: Callable[[], Any], **options: Any) -> Scenario:
        """Return the scenario of one of the registries."""
        return Scenario(
            *(
                step(
                    text,
                    each.do,
                    undo=None if each.lasts else ...,
                    requires=each.requires,
                    after=each.after,
                    ends=each.ends,
                )
                for text, each in self.steps.items()
            ),
            uses=[
                use(text, each.perform, ends=each.ends)
                for text, each in self.uses.items()
            ],
            create=create,
            observe=self.observe,
            name="case",
            **options,
        )

    def lines(self) -> dict[str, str]:
        """Return what a printed line does, by the operation's text."""
        lines = {text: text for text in self.uses}
        for number, text in enumerate(self.steps, 1):
            lines[f"step_{number} = {text}"] = text
            lines[f"step_{number}.close()"] = text
        return lines

    def played(
        self, create: Callable[[], Any], history: tuple[str, ...]
    ) -> Iterator[tuple[tuple[str, frozenset[str]], Any]]:
        """Yield what each operation gave, with the steps that were active before it.

        What makes no sense at some place ends the history there.
        """
        registry = create()
        active: dict[str, Any] = {}
        for text in history:
            now = frozenset(active)
            doing = self.steps.get(text)
            if doing is not None and text in active:
                blocked = any(text in self.steps[each].requires for each in active)
                if doing.lasts or blocked:
                    return
                error, _ = _result(active[text])
                if error is None:
                    del active[text]
                yield (f"undo {text}", now), error
                continue
            operation = doing or self.uses[text]
            if doing is not None and not {*doing.requires, *doing.after} <= now:
                return
            left = set() if operation.ends == ALL else now - {*_several(operation.ends)}
            if any(not {*self.steps[each].requires} <= left for each in left):
                return
            perform = self.uses[text].perform if doing is None else doing.do
            error, result = _result(perform, registry)
            if error is None:
                for each in now - left:
                    del active[each]
                if doing is not None:
                    active[text] = result
            yield (text, now), error or (repr(result) if doing is None else "done")
        if self.observe is not None:
            yield ("observe", frozenset(active)), self.observe(registry)

    def truth(self, create: Callable[[], Any], longest: int) -> int | None:
        """Return the length of the first history that contradicts others, or None.

        All histories of at most so many operations are played.
        """
        known: dict[Any, Any] = {}
        operations = (*self.steps, *self.uses)
        for length in range(longest + 1):
            for history in product(operations, repeat=length):
                for place, result in self.played(create, history):
                    if known.setdefault(place, result) != result:
                        return length
        return None


def _several(ends: Any) -> tuple[str, ...]:
    return (ends,) if isinstance(ends, str) else tuple(ends)


def _result(function: Callable[..., Any], *arguments: Any) -> tuple[str | None, Any]:
    """Return what a function raised, or None and its result."""
    try:
        return None, function(*arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}", None


def adding(*names: str, **options: Any) -> dict[str, Doing]:
    """Return a step for each name."""
    return {
        f"add {name}": Doing(methodcaller("add", name), **options) for name in names
    }


CLEAR = {"clear": Asking(lambda table: table.clear(), ALL)}


CASES = {
    "a table": Case(
        Table,
        {"one stays": ForgetsLast},
        adding("a", "b"),
        {**CLEAR, "get a": Asking(lambda table: table.get("a"))},
        Table.shown,
    ),
    "a counter": Case(
        Counted,
        {"the count stays": CountStays},
        adding("a", "b"),
        CLEAR,
        Counted.shown,
    ),
    "a cache": Case(
        Cached,
        {"the cache stays": CacheStays, "it stays for one": CacheBySize},
        adding("a", "b"),
        {
            **CLEAR,
            "get a": Asking(lambda table: table.get("a")),
            "get b": Asking(lambda table: table.get("b")),
        },
    ),
    "an index": Case(
        Indexed,
        {"the index stays": IndexStays},
        adding("a1", "a2", "b1"),
        {**CLEAR, "all a": Asking(lambda table: table.of_kind("a"))},
        Table.shown,
    ),
    "close one kind": Case(
        Indexed,
        {"one stays": ClosesOne, "all are gone": ClosesAll},
        adding("a1", "a2", "b1"),
        {
            "close a": Asking(lambda table: table.close("a"), ["add a1", "add a2"]),
            "close b": Asking(lambda table: table.close("b"), "add b1"),
        },
        Table.shown,
    ),
    "places": Case(
        Places,
        {"places are shifted": PlacesShift},
        adding("a", "b"),
        CLEAR,
        Places.shown,
    ),
    "a stack of what is open": Case(
        Open,
        {"it is closed twice": ClosesTwice},
        adding("a", "b"),
        CLEAR,
        Open.shown,
    ),
    "one of several": Case(
        Theme,
        {"the undo restores": Restores, "the first one stays": OnlyFirst},
        {
            name: Doing(methodcaller("choose", name), ends=ALL)
            for name in ("dark", "light", "blue")
        },
        {},
        Theme.shown,
    ),
    "what lasts": Case(
        Once,
        {"once for ever": OnceForEver},
        adding("a", "b", lasts=True),
        CLEAR,
        Table.shown,
    ),
    "a lock": Case(
        Locked,
        {"half is cleared": ClearsHalf, "it stays locked": LocksForEver},
        {**adding("a", "b"), "lock": Doing(lambda table: table.lock())},
        {"clear": Asking(lambda table: table.clear(), ["add a", "add b"])},
        Table.shown,
    ),
    "a default": Case(
        Defaulted,
        {"the default stays": DefaultStays},
        adding("a", "b"),
        {**CLEAR, "default": Asking(lambda table: table.default)},
    ),
    "aliases": Case(
        Aliases,
        {"aliases stay": AliasesStay},
        {
            **adding("a", "b"),
            "alias c": Doing(lambda table: table.alias("c", "a"), requires=("add a",)),
        },
        {
            "drop a": Asking(lambda table: table.drop("a"), ["add a", "alias c"]),
            "drop b": Asking(lambda table: table.drop("b"), "add b"),
        },
        Aliases.shown,
    ),
    "versions": Case(
        Versions,
        {"the old one stays": OldStays, "the next old one goes": NoNewAfterOld},
        {
            **adding("a1", "b"),
            "upgrade a": Doing(
                lambda table: table.upgrade("a1", "a2"),
                after=("add a1",),
                ends="add a1",
            ),
        },
        {"get a1": Asking(lambda table: table.get("a1"))},
        Table.shown,
    ),
    "a bus": Case(
        Bus,
        {"it stays muted": MuteStays},
        {
            "on x": Doing(lambda bus: bus.on("x", "heard")),
            "mute x": Doing(lambda bus: bus.mute("x")),
        },
        {
            "emit x": Asking(lambda bus: bus.emit("x")),
            "off x": Asking(lambda bus: bus.off("x"), ALL),
        },
    ),
}
