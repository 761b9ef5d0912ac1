"""Feature flags: a default by definition, overrides by layers, a cache of decisions.

`enabled(name)` is the value of the highest layer that has one: user, environment,
default.  An override may be made of a flag that is not defined yet.
"""

from collections import ChainMap
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

from tests.zoo.realistic.specimen import (
    Interface,
    Registration,
    Specimen,
    specimens_of,
)

LAYERS = ("user", "environment", "default")


class Flags:
    """Has a dict for each layer and caches decisions until one changes."""

    def __init__(self) -> None:
        self._layers: dict[str, dict[str, bool]] = {layer: {} for layer in LAYERS}
        self._decisions: dict[str, bool] = {}

    @contextmanager
    def override(self, layer: str, name: str, value: bool) -> Iterator[None]:
        self._layers[layer][name] = value
        self._changed(name)
        yield
        del self._layers[layer][name]
        self._changed(name)

    def _changed(self, name: str) -> None:
        self._decisions.pop(name, None)

    def _decide(self, name: str) -> bool:
        for layer in LAYERS:
            if name in self._layers[layer]:
                return self._layers[layer][name]
        return False

    def enabled(self, name: str) -> bool:
        if name not in self._decisions:
            self._decisions[name] = self._decide(name)
        return self._decisions[name]

    def names(self) -> list[str]:
        return sorted({name for layer in self._layers.values() for name in layer})


class ChainedFlags(Flags):
    """Looks through a chain of the three dicts."""

    def __init__(self) -> None:
        super().__init__()
        self._chain = ChainMap(*self._layers.values())

    def enabled(self, name: str) -> bool:
        return self._chain.get(name, False)


class LazyFlags(Flags):
    """Creates an attribute for a flag that is asked for."""

    def __getattr__(self, attribute: str) -> bool:
        name = attribute.removeprefix("is_")
        if name == attribute:
            raise AttributeError(attribute)
        value = self.__dict__[attribute] = self._decide(name)
        return value

    def _changed(self, name: str) -> None:
        self.__dict__.pop(f"is_{name}", None)

    def enabled(self, name: str) -> bool:
        return bool(getattr(self, f"is_{name}"))


class TrueFlags(Flags):
    """Keeps the set of names that are on, and mends it after each change."""

    def __init__(self) -> None:
        super().__init__()
        self._on: set[str] = set()

    def _changed(self, name: str) -> None:
        if self._decide(name):
            self._on.add(name)
        else:
            self._on.discard(name)

    def enabled(self, name: str) -> bool:
        return name in self._on


class TokenFlags(Flags):
    """Keeps the overrides as tokens with ranks; the lowest rank decides."""

    def __init__(self) -> None:
        super().__init__()
        self._tokens: dict[str, list[tuple[int, bool]]] = {}

    @contextmanager
    def override(self, layer: str, name: str, value: bool) -> Iterator[None]:
        token = (LAYERS.index(layer), value)
        self._tokens.setdefault(name, []).append(token)
        try:
            yield
        finally:
            self._tokens[name].remove(token)
            if not self._tokens[name]:
                del self._tokens[name]

    def enabled(self, name: str) -> bool:
        return min(self._tokens.get(name, [(9, False)]))[1]

    def names(self) -> list[str]:
        return sorted(self._tokens)


class SnapshotFlags(Flags):
    """Publishes a frozen copy of all decisions with each change."""

    def __init__(self) -> None:
        super().__init__()
        self._snapshot: tuple[tuple[str, bool], ...] = ()

    def _changed(self, name: str) -> None:
        self._snapshot = tuple((each, self._decide(each)) for each in self.names())

    def enabled(self, name: str) -> bool:
        return dict(self._snapshot).get(name, False)


class StaleDecisionFlags(Flags):
    @contextmanager
    def override(self, layer: str, name: str, value: bool) -> Iterator[None]:
        self._layers[layer][name] = value
        self._changed(name)
        yield
        del self._layers[layer][name]


class RestoredFlags(Flags):
    @contextmanager
    def override(self, layer: str, name: str, value: bool) -> Iterator[None]:
        before = self.enabled(name)
        self._layers[layer][name] = value
        self._changed(name)
        yield
        del self._layers[layer][name]
        self._decisions[name] = before


class OneLayerFlags(Flags):
    @contextmanager
    def override(self, layer: str, name: str, value: bool) -> Iterator[None]:
        before = self._layers["user"].get(name)
        self._layers["user"][name] = value
        self._changed(name)
        yield
        if before is None:
            self._layers["user"].pop(name, None)
        else:
            self._layers["user"][name] = before
        self._changed(name)


class LatestFlags(TokenFlags):
    def enabled(self, name: str) -> bool:
        return self._tokens.get(name, [(9, False)])[-1][1]


class TruthyFlags(Flags):
    def _changed(self, name: str) -> None:
        if self._decisions.get(name):
            del self._decisions[name]


class StickyFlags(Flags):
    def __init__(self) -> None:
        super().__init__()
        self._seen = 0

    def enabled(self, name: str) -> bool:
        value = super().enabled(name)
        self._seen = min(self._seen + value, 3)
        # After three decisions the rollout is held to be complete.
        return value or self._seen == 3


class DefaultLayerFlags(Flags):
    @contextmanager
    def override(self, layer: str, name: str, value: bool) -> Iterator[None]:
        self._layers[layer].setdefault(name, value)
        self._changed(name)
        yield
        if layer == "environment":
            self._layers["user"].pop(name, None)
        self._layers[layer].pop(name, None)
        self._changed(name)


class RefusingFlags(Flags):
    """Refuses a layer where a user has a flag that is not defined."""

    @contextmanager
    def override(self, layer: str, name: str, value: bool) -> Iterator[None]:
        if self._layers["user"] and not self._layers["default"]:
            raise LookupError(f"{name} is not defined")
        self._layers[layer][name] = value
        self._changed(name)
        yield
        del self._layers[layer][name]
        self._changed(name)


class PartialSnapshotFlags(SnapshotFlags):
    def _changed(self, name: str) -> None:
        kept = tuple(pair for pair in self._snapshot if pair[0] != name)
        layers = sum(name in layer for layer in self._layers.values())
        if layers:
            self._snapshot = (*kept, (name, self._decide(name)))
        elif len(kept) < 1:
            self._snapshot = kept


class CountedFlags(Flags):
    """Counts the overrides that turn a flag on, and those that turn it off."""

    def __init__(self) -> None:
        super().__init__()
        self._score: dict[str, int] = {}

    @contextmanager
    def override(self, layer: str, name: str, value: bool) -> Iterator[None]:
        self._layers[layer][name] = value
        self._score[name] = max(self._score.get(name, 0) + (1 if value else -1), 0)
        yield
        del self._layers[layer][name]
        self._score[name] = max(self._score[name] - (1 if value else -1), 0)

    def enabled(self, name: str) -> bool:
        return self._score.get(name, 0) > 0


class TwoFlagCache(Flags):
    """Caches the last flag only, with the number of overrides as its stamp."""

    def enabled(self, name: str) -> bool:
        stamp = sum(map(len, self._layers.values()))
        last = self.__dict__.get("_last")
        if last is None or last[:2] != (name, stamp):
            last = self.__dict__["_last"] = (name, stamp, self._decide(name))
        return bool(last[2])


class PermanentFlags(Flags):
    """Has definitions that last."""


class PermanentTruthyFlags(TruthyFlags):
    pass


class PermanentTrueFlags(TrueFlags):
    """Has definitions that last, and the set of names that are on."""


class PermanentLatestFlags(LatestFlags):
    def enabled(self, name: str) -> bool:
        tokens = self._tokens.get(name, [(9, False)])
        return tokens[-1][1] if len(tokens) > 2 else min(tokens)[1]


def overridden(layer: str, name: str, value: bool) -> Callable[[Any], Any]:
    return lambda flags: flags.override(layer, name, value)


def both(name: str) -> Callable[[Any], Generator[None, None, None]]:
    def define(flags: Any) -> Generator[None, None, None]:
        with flags.override("default", name, True):
            yield

    return define


FLAGS = Interface(
    "feature flags",
    (
        Registration('flags.define("search", True)', both("search")),
        Registration(
            'flags.override("user", "search", False)',
            overridden("user", "search", False),
        ),
        Registration(
            'flags.override("environment", "search", True)',
            overridden("environment", "search", True),
        ),
        Registration('flags.define("dark", True)', both("dark")),
    ),
    (('flags.enabled("search")', lambda flags: flags.enabled("search")),),
    lambda flags: " ".join(flags.names()),
)


def defined(name: str) -> Callable[[Any], None]:
    def define(flags: Any) -> None:
        block = flags.override("default", name, True)
        block.__enter__()
        # A block that nothing refers to would end.
        flags.__dict__.setdefault("permanent", []).append(block)

    return define


PERMANENT = Interface(
    "feature flags",
    (
        Registration('flags.define("search", True)', defined("search"), lasting=True),
        Registration('flags.define("dark", True)', defined("dark"), lasting=True),
        *FLAGS.steps[1:3],
        Registration(
            'flags.override("user", "dark", False)', overridden("user", "dark", False)
        ),
    ),
    (
        *FLAGS.uses,
        ('flags.enabled("dark")', lambda flags: flags.enabled("dark")),
        (
            "sorted(on)",
            lambda flags: [each for each in ("dark", "search") if flags.enabled(each)],
        ),
    ),
    FLAGS.observe,
)


def specimens() -> Iterator[Specimen]:
    """Yield all registries of flags."""
    yield from specimens_of(
        FLAGS,
        (
            Flags,
            ChainedFlags,
            LazyFlags,
            TrueFlags,
            TokenFlags,
            SnapshotFlags,
            RefusingFlags,
        ),
        {
            StaleDecisionFlags: "a decision survives the end of an override",
            RestoredFlags: "the end of an override restores the decision before it",
            OneLayerFlags: "all overrides share a layer, and restore it",
            LatestFlags: "the override that was made last decides",
            TruthyFlags: "a decision against a flag is never dropped",
            StickyFlags: "after three decisions for a flag it stays on",
            DefaultLayerFlags: "the end of one layer removes another one",
            PartialSnapshotFlags: "a flag stays in the snapshot beside another one",
            CountedFlags: "the score of a flag is cut at zero",
            TwoFlagCache: "the stamp is the number of overrides only",
        },
    )
    yield from specimens_of(
        PERMANENT,
        (PermanentFlags, PermanentTrueFlags),
        {
            PermanentTruthyFlags: "a decision against a flag is never dropped",
            PermanentLatestFlags: "of three values, the last one decides",
        },
    )
