"""Routers: paths with parameters, the more specific route first.

`match(path)` returns the endpoint and its parameters; `url(name)` reverses a name.  The
routes are compiled to one list of patterns when a path is first matched.
"""

import re
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
class Route:
    """A path with parameters in braces, and the name of its endpoint."""

    name: str
    path: str

    def pattern(self) -> str:
        return re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", self.path)

    def rank(self) -> tuple[int, str]:
        return (self.path.count("{"), self.path)


USER = Route("user", "/users/{id}")
ME = Route("me", "/users/me")
ANY = Route("any", "/{section}/{id}")


class Router:
    """Compiles the sorted routes lazily."""

    def __init__(self) -> None:
        self._routes: dict[str, Route] = {}
        self._compiled: list[tuple[re.Pattern[str], Route]] | None = None

    def add(self, route: Route) -> Callable[[], None]:
        self._routes[route.name] = route
        self._changed(route)
        return lambda: self._remove(route)

    def _remove(self, route: Route) -> None:
        del self._routes[route.name]
        self._changed(route)

    def _changed(self, route: Route) -> None:
        self._compiled = None

    def _sorted(self) -> list[Route]:
        return sorted(self._routes.values(), key=Route.rank)

    def _patterns(self) -> list[tuple[re.Pattern[str], Route]]:
        if self._compiled is None:
            self._compiled = [(re.compile(r.pattern()), r) for r in self._sorted()]
        return self._compiled

    def match(self, path: str) -> str:
        for pattern, route in self._patterns():
            match = pattern.fullmatch(path)
            if match is not None:
                return f"{route.name}{sorted(match.groupdict().items())}"
        return "404"

    def url(self, name: str) -> str:
        route = self._routes.get(name)
        return "no route" if route is None else route.path


class TrieRouter(Router):
    """Stores the routes by segment; an empty node is pruned on the way back."""

    def __init__(self) -> None:
        super().__init__()
        self._root: dict[str, Any] = {}

    def add(self, route: Route) -> Callable[[], None]:
        node = self._root
        for segment in self._segments(route):
            node = node.setdefault(segment, {})
        node["route"] = route
        return super().add(route)

    def _segments(self, route: Route) -> list[str]:
        return ["{}" if "{" in each else each for each in route.path.split("/")[1:]]

    def _remove(self, route: Route) -> None:
        super()._remove(route)
        node, parents = self._root, []
        for segment in self._segments(route):
            parents.append((node, segment))
            node = node[segment]
        del node["route"]
        self._prune(parents)

    def _prune(self, parents: list[tuple[dict[str, Any], str]]) -> None:
        for node, segment in reversed(parents):
            if not node[segment]:
                del node[segment]

    def match(self, path: str) -> str:
        route = self._find(self._root, path.split("/")[1:])
        return "404" if route is None else route.name

    def _find(self, node: dict[str, Any], segments: list[str]) -> Route | None:
        if not segments:
            return node.get("route")
        for segment in (segments[0], "{}"):
            if segment in node:
                route = self._find(node[segment], segments[1:])
                if route is not None:
                    return route
        return None


class MatchCacheRouter(Router):
    """Caches the last two matches, hits and misses, until a route changes."""

    def __init__(self) -> None:
        super().__init__()
        self._recent: dict[str, str] = {}

    def _changed(self, route: Route) -> None:
        super()._changed(route)
        self._recent.clear()

    def match(self, path: str) -> str:
        if path not in self._recent:
            self._recent[path] = super().match(path)
            while len(self._recent) > 2:
                self._recent.pop(next(iter(self._recent)))
        return self._recent[path]


class UnionRouter(Router):
    """Compiles one pattern of all routes, and knows the route by its group."""

    def __init__(self) -> None:
        super().__init__()
        self._union: re.Pattern[str] | None = None

    def _changed(self, route: Route) -> None:
        self._union = None

    def match(self, path: str) -> str:
        if self._union is None:
            parts = [
                f"(?P<route_{each.name}>{re.sub(r'{.*?}', '[^/]+', each.path)})"
                for each in self._sorted()
            ]
            self._union = re.compile("|".join(parts) or "(?!)")
        match = self._union.fullmatch(path)
        return "404" if match is None else str(match.lastgroup)


class ImmutableRouter(Router):
    """Holds one sorted tuple that each change replaces."""

    def __init__(self) -> None:
        super().__init__()
        self._table: tuple[Route, ...] = ()

    def _changed(self, route: Route) -> None:
        self._table = tuple(self._sorted())

    def _patterns(self) -> list[tuple[re.Pattern[str], Route]]:
        return [(re.compile(route.pattern()), route) for route in self._table]


class LatestRouter(Router):
    """Moves a route of one parameter to the front, where no other one matched."""

    def match(self, path: str) -> str:
        answer = super().match(path)
        if answer.startswith("user"):
            # Move to front: the next match is faster.
            patterns = self._patterns()
            patterns.sort(key=lambda pair: pair[1].name != "user")
        return answer


class ConflictRouter(Router):
    """Refuses a route that another one hides, whose order then does not show."""

    def add(self, route: Route) -> Callable[[], None]:
        for other in self._routes.values():
            if re.fullmatch(other.pattern(), route.path):
                raise ValueError(f"{route.name} is hidden by {other.name}")
        return super().add(route)


class StaleRouter(Router):
    def _remove(self, route: Route) -> None:
        del self._routes[route.name]


class InsertionOrderRouter(Router):
    def _sorted(self) -> list[Route]:
        return list(self._routes.values())


class AppendingRouter(Router):
    def _changed(self, route: Route) -> None:
        if self._compiled is not None and route.name in self._routes:
            self._compiled.append((re.compile(route.pattern()), route))
        else:
            self._compiled = None


class UnprunedRouter(TrieRouter):
    def _find(self, node: dict[str, Any], segments: list[str]) -> Route | None:
        if not segments:
            return node.get("route")
        chosen = segments[0] if segments[0] in node else "{}"
        return self._find(node[chosen], segments[1:]) if chosen in node else None

    def _prune(self, parents: list[tuple[dict[str, Any], str]]) -> None:
        """Leave empty nodes, which hide the node of a parameter."""


class PruningTooMuchRouter(TrieRouter):
    def _prune(self, parents: list[tuple[dict[str, Any], str]]) -> None:
        node, segment = parents[0]
        del node[segment]


class MissCacheRouter(MatchCacheRouter):
    def _changed(self, route: Route) -> None:
        Router._changed(self, route)
        self._recent = {p: each for p, each in self._recent.items() if each == "404"}


class PrefixInvalidationRouter(MatchCacheRouter):
    def _changed(self, route: Route) -> None:
        Router._changed(self, route)
        prefix = route.path.partition("{")[0]
        if prefix != "/":
            stale = [path for path in self._recent if path.startswith(prefix)]
            for path in stale:
                del self._recent[path]


class ReverseIndexRouter(Router):
    def __init__(self) -> None:
        super().__init__()
        self._paths: dict[str, str] = {}

    def _changed(self, route: Route) -> None:
        super()._changed(route)
        if len(self._routes) != 1:
            self._paths.clear()

    def url(self, name: str) -> str:
        if name not in self._paths:
            self._paths[name] = super().url(name)
        return self._paths[name]


class RestoringRouter(Router):
    def add(self, route: Route) -> Callable[[], None]:
        before = self._compiled
        self._routes[route.name] = route
        self._compiled = None

        def undo() -> None:
            del self._routes[route.name]
            self._compiled = before

        return undo


def added(route: Route) -> Callable[[Any], Callable[[], None]]:
    return lambda router: router.add(route)


ROUTER = Interface(
    "router",
    (
        Registration("router.add(USER)", added(USER)),
        Registration("router.add(ME)", added(ME)),
        Registration("router.add(ANY)", added(ANY)),
    ),
    (
        ('router.match("/users/me")', lambda router: router.match("/users/me")),
        ('router.url("me")', lambda router: router.url("me")),
    ),
    lambda router: " ".join(sorted(router._routes)),
)


def specimens() -> Iterator[Specimen]:
    """Yield all routers."""
    yield from specimens_of(
        ROUTER,
        (
            Router,
            TrieRouter,
            MatchCacheRouter,
            UnionRouter,
            ImmutableRouter,
            LatestRouter,
            ConflictRouter,
        ),
        {
            StaleRouter: "a removed route stays compiled",
            InsertionOrderRouter: "routes are tried in the order of adding",
            AppendingRouter: "a new route is appended to the compiled ones",
            UnprunedRouter: "an empty node of the trie hides a parameter",
            PruningTooMuchRouter: "pruning removes the siblings of a route",
            MissCacheRouter: "a cached miss survives a change",
            PrefixInvalidationRouter: "a route of parameters only invalidates nothing",
            ReverseIndexRouter: "the index by name survives a change to one route",
            RestoringRouter: "removing restores the patterns before the route",
        },
    )
