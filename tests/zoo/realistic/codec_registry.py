"""Codecs: by canonical name and by aliases, found through normalised spellings.

`lookup(spelling)` returns the codec's name; the answers are cached by spelling.  One
alias is claimed by two codecs: the one that is first by name has it.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.zoo.realistic.specimen import (
    Interface,
    Registration,
    Specimen,
    specimens_of,
)


@dataclass(frozen=True)
class Codec:
    """A codec with its aliases, already normalised."""

    name: str
    aliases: tuple[str, ...]


LATIN = Codec("latin1", ("l1", "western"))
WINDOWS = Codec("cp1252", ("win", "western"))
UTF = Codec("utf8", ("u8",))


class CodecRegistry:
    """Resolves aliases by the codecs that are registered; caches by spelling."""

    def __init__(self) -> None:
        self._codecs: dict[str, Codec] = {}
        self._cache: dict[str, str] = {}

    def register(self, codec: Codec) -> Callable[[], None]:
        self._codecs[codec.name] = codec
        self._changed(codec)
        return lambda: self._unregister(codec)

    def _unregister(self, codec: Codec) -> None:
        del self._codecs[codec.name]
        self._changed(codec)

    def _changed(self, codec: Codec) -> None:
        self._cache.clear()

    def _resolve(self, name: str) -> str:
        for codec in sorted(self._codecs.values(), key=lambda each: each.name):
            if name == codec.name or name in codec.aliases:
                return codec.name
        raise LookupError(f"unknown encoding: {name}")

    def lookup(self, spelling: str) -> str:
        if spelling not in self._cache:
            self._cache[spelling] = self._resolve(spelling.lower().replace("-", ""))
        return self._cache[spelling]

    def names(self) -> list[str]:
        return sorted(self._codecs)


class AliasListCodecs(CodecRegistry):
    """Keeps the sorted claimants of each alias."""

    def __init__(self) -> None:
        super().__init__()
        self._claimants: dict[str, list[str]] = {}

    def register(self, codec: Codec) -> Callable[[], None]:
        for name in (codec.name, *codec.aliases):
            self._claimants.setdefault(name, []).append(codec.name)
            self._claimants[name].sort()
        return super().register(codec)

    def _unregister(self, codec: Codec) -> None:
        super()._unregister(codec)
        for name in (codec.name, *codec.aliases):
            self._claimants[name].remove(codec.name)
            if not self._claimants[name]:
                del self._claimants[name]

    def _resolve(self, name: str) -> str:
        if name not in self._claimants:
            raise LookupError(f"unknown encoding: {name}")
        return self._claimants[name][0]


class CountingCodecs(AliasListCodecs):
    """Counts the claims of each alias beside the list."""

    def __init__(self) -> None:
        super().__init__()
        self._claims: Counter[str] = Counter()

    def register(self, codec: Codec) -> Callable[[], None]:
        self._claims.update(codec.aliases)
        return super().register(codec)

    def _unregister(self, codec: Codec) -> None:
        super()._unregister(codec)
        self._claims.subtract(codec.aliases)
        self._claims = +self._claims

    def _resolve(self, name: str) -> str:
        if self._claims[name] > 1:
            return f"{super()._resolve(name)} of {self._claims[name]}"
        return super()._resolve(name)


class SearchCodecs(CodecRegistry):
    """Has a search function for each codec, sorted by name for a look-up."""

    def __init__(self) -> None:
        super().__init__()
        self._searches: list[tuple[str, Callable[[str], str | None]]] = []

    def register(self, codec: Codec) -> Callable[[], None]:
        def search(name: str) -> str | None:
            return codec.name if name in (codec.name, *codec.aliases) else None

        entry = (codec.name, search)
        self._searches.append(entry)
        undo = super().register(codec)

        def unregister() -> None:
            self._searches.remove(entry)
            undo()

        return unregister

    def _resolve(self, name: str) -> str:
        for _, search in sorted(self._searches, key=lambda each: each[0]):
            codec = search(name)
            if codec is not None:
                return codec
        raise LookupError(f"unknown encoding: {name}")


class SelectiveCodecs(CodecRegistry):
    """Drops only the cached spellings of the codec's names."""

    def _changed(self, codec: Codec) -> None:
        names = {codec.name, *codec.aliases}
        for spelling in list(self._cache):
            if spelling.lower().replace("-", "") in names:
                del self._cache[spelling]


class RebuiltCodecs(CodecRegistry):
    """Rebuilds the table of aliases from the codecs after a change, when needed."""

    def __init__(self) -> None:
        super().__init__()
        self._table: dict[str, str] | None = None

    def _changed(self, codec: Codec) -> None:
        super()._changed(codec)
        self._table = None

    def _resolve(self, name: str) -> str:
        if self._table is None:
            self._table = {}
            for codec in sorted(self._codecs.values(), key=lambda each: each.name):
                for alias in (codec.name, *codec.aliases):
                    self._table.setdefault(alias, codec.name)
        if name not in self._table:
            raise LookupError(f"unknown encoding: {name}")
        return self._table[name]


class LastAliasCodecs(CodecRegistry):
    def __init__(self) -> None:
        super().__init__()
        self._aliases: dict[str, str] = {}

    def register(self, codec: Codec) -> Callable[[], None]:
        for name in (codec.name, *codec.aliases):
            self._aliases[name] = codec.name
        return super().register(codec)

    def _unregister(self, codec: Codec) -> None:
        super()._unregister(codec)
        for name in (codec.name, *codec.aliases):
            if self._aliases.get(name) == codec.name:
                del self._aliases[name]

    def _resolve(self, name: str) -> str:
        if name not in self._aliases:
            raise LookupError(f"unknown encoding: {name}")
        return self._aliases[name]


class LeftAliasCodecs(LastAliasCodecs):
    def _unregister(self, codec: Codec) -> None:
        CodecRegistry._unregister(self, codec)
        self._aliases.pop(codec.name)


class TakenAliasCodecs(AliasListCodecs):
    def _unregister(self, codec: Codec) -> None:
        CodecRegistry._unregister(self, codec)
        for name in (codec.name, *codec.aliases):
            self._claimants.pop(name, None)


class RawSpellingCodecs(CodecRegistry):
    def _changed(self, codec: Codec) -> None:
        for name in (codec.name, *codec.aliases):
            self._cache.pop(name, None)


class FirstAliasCodecs(CodecRegistry):
    def _changed(self, codec: Codec) -> None:
        for spelling in list(self._cache):
            if self._cache[spelling] == codec.name:
                del self._cache[spelling]


class UnderflowCodecs(CountingCodecs):
    def _unregister(self, codec: Codec) -> None:
        AliasListCodecs._unregister(self, codec)
        self._claims.subtract(set(codec.aliases) - {"western"})


class DuplicateClaimCodecs(AliasListCodecs):
    def _unregister(self, codec: Codec) -> None:
        CodecRegistry._unregister(self, codec)
        for name in (codec.name, *codec.aliases):
            claimants = self._claimants[name]
            del claimants[0 if len(claimants) > 1 else -1]
            if not claimants:
                del self._claimants[name]


class CachedErrorCodecs(RebuiltCodecs):
    def __init__(self) -> None:
        super().__init__()
        self._unknown: set[str] = set()

    def _changed(self, codec: Codec) -> None:
        super()._changed(codec)
        if len(self._codecs) < 2:
            self._unknown.clear()

    def _resolve(self, name: str) -> str:
        if name in self._unknown:
            raise LookupError(f"unknown encoding: {name}")
        try:
            return super()._resolve(name)
        except LookupError:
            self._unknown.add(name)
            raise


class KeptTableCodecs(RebuiltCodecs):
    def _changed(self, codec: Codec) -> None:
        self._cache.clear()
        if self._table is not None and codec.name not in self._codecs:
            self._table = {a: n for a, n in self._table.items() if n != codec.name}
        else:
            self._table = None


def registered(codec: Codec) -> Callable[[Any], Callable[[], None]]:
    return lambda codecs: codecs.register(codec)


CODECS = Interface(
    "codecs",
    (
        Registration("codecs.register(LATIN)", registered(LATIN)),
        Registration("codecs.register(WINDOWS)", registered(WINDOWS)),
        Registration("codecs.register(UTF)", registered(UTF)),
    ),
    (
        ('codecs.lookup("Western")', lambda codecs: codecs.lookup("Western")),
        ('codecs.lookup("UTF-8")', lambda codecs: codecs.lookup("UTF-8")),
    ),
    lambda codecs: " ".join(codecs.names()),
)


def specimens() -> Iterator[Specimen]:
    """Yield all registries of codecs."""
    yield from specimens_of(
        CODECS,
        (
            CodecRegistry,
            AliasListCodecs,
            CountingCodecs,
            SearchCodecs,
            SelectiveCodecs,
            RebuiltCodecs,
        ),
        {
            LastAliasCodecs: "the codec that is registered last has a shared alias",
            LeftAliasCodecs: "aliases stay when their codec leaves",
            TakenAliasCodecs: "an alias is removed that another codec has, too",
            RawSpellingCodecs: "cached spellings are dropped by their normalised form",
            FirstAliasCodecs: "a cached answer is dropped by its codec only",
            UnderflowCodecs: "claims of a shared alias are counted up only",
            DuplicateClaimCodecs: "the first claimant is removed, whichever leaves",
            CachedErrorCodecs: "an unknown name stays unknown while codecs are many",
            KeptTableCodecs: "a removed codec's names leave the table for all",
        },
    )
