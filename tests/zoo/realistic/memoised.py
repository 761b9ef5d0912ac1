"""Memoised look-ups: registries of units whose conversions are computed once.

A unit is defined by a factor of another unit; `convert(name)` follows the definitions
to the base unit.  The memo is an `lru_cache`, a dict, or a cached property.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import Any

from tests.zoo.realistic.specimen import (
    Interface,
    Registration,
    Specimen,
    specimens_of,
)

Definition = tuple[int, str]


class Units:
    """Clears the memo with each change."""

    def __init__(self) -> None:
        self._definitions: dict[str, Definition] = {}
        self._memo: dict[str, int] = {}

    def define(self, name: str, factor: int, unit: str) -> Callable[[], None]:
        self._definitions[name] = (factor, unit)
        self._changed(name)
        return lambda: self._forget(name)

    def _forget(self, name: str) -> None:
        del self._definitions[name]
        self._changed(name)

    def _changed(self, name: str) -> None:
        self._memo.clear()

    def _compute(self, name: str) -> int:
        if name == "m":
            return 1
        if name not in self._definitions:
            raise LookupError(name)
        factor, unit = self._definitions[name]
        return factor * self.convert(unit)

    def convert(self, name: str) -> int:
        if name not in self._memo:
            self._memo[name] = self._compute(name)
        return self._memo[name]

    def names(self) -> list[str]:
        return sorted(self._definitions)


class LruUnits(Units):
    """Wraps the computation of each registry in an `lru_cache`."""

    def __init__(self) -> None:
        super().__init__()
        self._cached = lru_cache(maxsize=8)(self._compute)

    def _changed(self, name: str) -> None:
        self._cached.cache_clear()

    def convert(self, name: str) -> int:
        return self._cached(name)


class PropertyUnits(Units):
    """Has a cached property with all conversions that are possible."""

    @cached_property
    def _table(self) -> dict[str, int]:
        table = {"m": 1}
        for _ in self._definitions:
            for name, (factor, unit) in self._definitions.items():
                if unit in table:
                    table[name] = factor * table[unit]
        return table

    def _changed(self, name: str) -> None:
        self.__dict__.pop("_table", None)

    def convert(self, name: str) -> int:
        if name not in self._table:
            raise LookupError(name if name in self._definitions else f"no {name}")
        return self._table[name]


class BoundedUnits(Units):
    """Keeps the two conversions that were used last."""

    def __init__(self) -> None:
        super().__init__()
        self._recent: OrderedDict[str, int] = OrderedDict()

    def _changed(self, name: str) -> None:
        self._recent.clear()

    def convert(self, name: str) -> int:
        if name not in self._recent:
            self._recent[name] = self._compute(name)
        self._recent.move_to_end(name)
        while len(self._recent) > 2:
            self._recent.popitem(last=False)
        return self._recent[name]


class GraphUnits(Units):
    """Drops a conversion and those that follow from it."""

    def _changed(self, name: str) -> None:
        self._memo.pop(name, None)
        for other, (_, unit) in self._definitions.items():
            if unit == name and other in self._memo:
                self._changed(other)


class KeyedUnits(Units):
    """Keys the memo by all definitions that a conversion was computed from."""

    def convert(self, name: str) -> int:
        chain = [name]
        while chain[-1] in self._definitions:
            chain.append(self._definitions[chain[-1]][1])
        key = "/".join(f"{each}{self._definitions.get(each)}" for each in chain)
        if chain[-1] != "m":
            raise LookupError(chain[-1])
        if key not in self._memo:
            value = 1
            for each in chain[:-1]:
                value *= self._definitions[each][0]
            self._memo = {key: value}
        return self._memo[key]


class SingleMemoUnits(Units):
    def _changed(self, name: str) -> None:
        self._memo.pop(name, None)


class HalfClearedUnits(LruUnits):
    def _forget(self, name: str) -> None:
        del self._definitions[name]


class StalePropertyUnits(PropertyUnits):
    def _changed(self, name: str) -> None:
        if name in self._definitions:
            self.__dict__.pop("_table", None)


class ExtendedPropertyUnits(PropertyUnits):
    def _changed(self, name: str) -> None:
        if "_table" not in self.__dict__:
            return
        if name in self._definitions:
            factor, unit = self._definitions[name]
            if unit in self._table:
                self._table[name] = factor * self._table[unit]
        else:
            del self.__dict__["_table"]


class OrderedGraphUnits(GraphUnits):
    def _changed(self, name: str) -> None:
        self._memo.pop(name, None)
        for other in self._definitions:
            if self._definitions[other][1] == name:
                self._memo.pop(other, None)


class RecentOnlyUnits(BoundedUnits):
    def _changed(self, name: str) -> None:
        while len(self._recent) > 1:
            self._recent.popitem()


class EagerUnits(Units):
    def define(self, name: str, factor: int, unit: str) -> Callable[[], None]:
        undo = super().define(name, factor, unit)
        if unit in self._definitions:
            # The unit itself need not be known any longer.
            inner = self._definitions[unit]
            self._definitions[name] = (factor * inner[0], inner[1])
        return undo


class LengthKeyedUnits(Units):
    def _changed(self, name: str) -> None:
        """Leave it to the number of definitions."""

    def convert(self, name: str) -> int:
        if self._memo.get("size") != len(self._definitions):
            self._memo = {"size": len(self._definitions)}
        return super().convert(name)


class PartialFailureUnits(Units):
    def __init__(self) -> None:
        super().__init__()
        self._running: set[str] = set()

    def _compute(self, name: str) -> int:
        if name in self._running:
            raise RecursionError(name)
        self._running.add(name)
        value = super()._compute(name)
        self._running.discard(name)
        return value


class SwappedMemoUnits(Units):
    def define(self, name: str, factor: int, unit: str) -> Callable[[], None]:
        before = self._memo
        self._memo = {}
        self._definitions[name] = (factor, unit)

        def undo() -> None:
            del self._definitions[name]
            self._memo = before

        return undo


def defined(name: str, factor: int, unit: str) -> Callable[[Any], Callable[[], None]]:
    return lambda units: units.define(name, factor, unit)


UNITS = Interface(
    "memoised",
    (
        Registration('units.define("km", 1000, "m")', defined("km", 1000, "m")),
        Registration('units.define("mile", 2, "km")', defined("mile", 2, "km")),
        Registration('units.define("league", 3, "mile")', defined("league", 3, "mile")),
    ),
    (
        ('units.convert("league")', lambda units: units.convert("league")),
        ('units.convert("km")', lambda units: units.convert("km")),
    ),
    lambda units: " ".join(units.names()),
)


def specimens() -> Iterator[Specimen]:
    """Yield all registries of units."""
    yield from specimens_of(
        UNITS,
        (
            Units,
            LruUnits,
            PropertyUnits,
            BoundedUnits,
            GraphUnits,
            KeyedUnits,
        ),
        {
            SingleMemoUnits: "what follows from a changed unit stays in the memo",
            HalfClearedUnits: "the cache survives that a definition is removed",
            StalePropertyUnits: "the cached property survives a removal",
            ExtendedPropertyUnits: "the cached table gets one new unit only",
            OrderedGraphUnits: "what follows from a unit in two steps is kept",
            RecentOnlyUnits: "the oldest conversion is never dropped",
            EagerUnits: "a definition copies another one, if that is there",
            LengthKeyedUnits: "the memo is keyed by the number of definitions",
            PartialFailureUnits: "a failed conversion is held to be running for ever",
            SwappedMemoUnits: "removing a definition restores the memo before it",
        },
    )
