"""Deceitful registries: circuit breakers that hide how many misses were in a row.

A breaker opens after `LIMIT` look-ups of an unknown name without anything between: from
then on a look-up of a registered name fails.  That is a fault, because an answer then
depends on more than the active steps.  It is rare: a search that believes that a miss
leaves the state alone never plays `LIMIT` misses in a row.  The number of misses is
kept in a `Place`.

Each place has a right twin.  It does the same with the place, unless the place says
otherwise (`right`), and its answers do not depend on it.

`calls` are of another kind: the number of misses is an attribute, and only a breaker
that is open calls something that no state determines.  The twin calls something pure.
"""

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from textwrap import indent
from unittest import mock

from everyorder.harness import Budget, Report, Scenario, explore, steps, use
from everyorder.harness.engine import limits

# Misses in a row that open a breaker; fewer are played by chance while edges of the
# graph are covered from several histories.
LIMIT = 5
BUDGET = Budget(steps=20_000, seconds=60)
NAME = "planted_breaker"
ELSEWHERE = "planted_package"

# The uses of each module, and what is observed.
_USES = """
def ask_a(registry):
    return registry.ask("a")

def ask_unknown(registry):
    return registry.ask("unknown")

def names(registry):
    return " ".join(sorted(registry.items))
"""

_TEMPLATE = """
{head}

class Registry:
    def __init__(self):
        self.items = {{}}
{init}
        self.save(0)

    def load(self):
{load}

    def save(self, number):
{save}

    def right(self, number):
{right}

    def add(self, name):
        self.items[name] = name.upper()
        self.{note}(0)

        def undo():
            del self.items[name]
            self.{note}(0)

        return undo

    def ask(self, name):
        if name not in self.items:
            self.{note}(min(self.load() + 1, LIMIT))
            return None
        if {opened}:
            return "the breaker is open"
        self.{note}(0)
        return self.items[name]
"""


@dataclass(frozen=True)
class Place:
    """Where a number from 0 to `LIMIT` is hidden: statements that store and load it.

    `right` is what the twin does at a miss instead of storing the number; `elsewhere`
    is the source of a module of another package, which the code refers to by `other`.
    """

    load: str
    save: str
    init: str = "pass"
    head: str = ""
    right: str = ""
    elsewhere: str = ""
    # True if it is in an opaque object of the registry, of which nothing is proven.
    opaque: bool = False
    # What is changed while a scenario is explored is restored after it.
    restore: str = ""

    def source(self, *, faulty: bool) -> str:
        """Return the source of the module of a registry."""
        own = bool(self.right) and not faulty
        return _USES + _TEMPLATE.format(
            head=self.head,
            init=indent(self.init, "        "),
            load=indent("return 0" if own else self.load, "        "),
            save=indent("pass" if own else self.save, "        "),
            right=indent(self.right or "self.save(number)", "        "),
            note="save" if faulty else "right",
            opened="self.load() >= LIMIT" if faulty else "False",
        )


@dataclass(frozen=True)
class Call:
    """An expression that no state determines, and one like it that is pure.

    `names` are texts of which the assumptions of the faulty one have to name one.
    """

    impure: str
    pure: str
    names: tuple[str, ...]
    head: str = ""

    def source(self, *, faulty: bool) -> str:
        """Return the source of the module of a registry."""
        return _USES + _CALLING.format(
            head=self.head, expression=self.impure if faulty else self.pure
        )


_CALLING = """
{head}

class Registry:
    def __init__(self):
        self.items = {{}}
        self.misses = 0

    def add(self, name):
        self.items[name] = name.upper()

        def undo():
            del self.items[name]

        return undo

    def ask(self, name):
        if name in self.items:
            return self.items[name]
        self.misses += 1
        if self.misses < 3:
            return None
        self.misses = 0
        return self.opened()

    def opened(self):
        return bool(({expression}) == ("a value", "it never has")) or None
"""


@dataclass(frozen=True)
class Verdict:
    """What was said of one registry, and the remarks beside it."""

    word: str
    remarks: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Return True for a proof without any named assumption."""
        return self.word == "proven" and not self.remarks


# It is assumed of each of these registries, right or faulty.
USUAL = "the order of registry.items is never read"


@contextmanager
def _module(name: str, source: str, **names: object) -> Iterator[types.ModuleType]:
    module = types.ModuleType(name)
    module.__dict__.update(names)
    sys.modules[name] = module
    try:
        exec(compile(source, f"<{name}>", "exec"), module.__dict__)
        yield module
    finally:
        del sys.modules[name]


def verdict_of(
    one: Place | Call, *, faulty: bool, walks: bool = False, strategy: str = "auto"
) -> Verdict:
    """Explore a registry; without the random walk, unless `walks`."""
    report = _explored(one, faulty=faulty, walks=walks, strategy=strategy)
    texts = [each.text for each in report.exploration.caveats]
    remarks = dict.fromkeys((*report.assumes, *texts))
    return Verdict(report.verdict, tuple(each for each in remarks if each != USUAL))


def _explored(one: Place | Call, *, faulty: bool, walks: bool, strategy: str) -> Report:
    elsewhere = one.elsewhere if isinstance(one, Place) else ""
    restore = one.restore if isinstance(one, Place) else ""
    with _module(ELSEWHERE, elsewhere) as other:
        source = one.source(faulty=faulty)
        with _module(NAME, source, LIMIT=LIMIT, other=other) as module:
            scenario = Scenario(
                *steps("add", ["a", "b"], module.Registry.add),
                uses=[
                    use("ask a", module.ask_a),
                    use("ask unknown", module.ask_unknown, constant=True),
                ],
                create=module.Registry,
                observe=module.names,
                name="breaker",
            )
            without = mock.patch.object(limits, "LEAST_WALKED", 0)
            share = mock.patch.object(limits, "WALKED", 1 << 60)
            try:
                if walks:
                    return explore(scenario, strategy, budget=BUDGET)
                with without, share:
                    return explore(scenario, strategy, budget=BUDGET)
            finally:
                if faulty:
                    exec(restore, module.__dict__)
