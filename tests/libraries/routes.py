"""Routes of web frameworks: added in any order, and matched."""

from collections.abc import Callable
from typing import Any

from everyorder import Scenario, Step, steps, use
from tests.libraries.answers import answers

PATHS = ("/books", "/people", "/places")


def page(*arguments: Any, **options: Any) -> str:
    """Answer nothing: routes are matched, not called."""
    return ""


def added(add: Callable[[Any, str], object]) -> list[Step]:
    """Return a step for each path; routes of frameworks cannot be removed."""
    return steps("add", PATHS, add, undo=None)


def werkzeug_map() -> Scenario:
    from werkzeug.exceptions import NotFound
    from werkzeug.routing import Map, Rule

    def matched(rules: Any) -> tuple[str, ...]:
        adapter = rules.bind("example.org")
        return answers(NotFound, lambda path: adapter.match(path)[0], PATHS)

    return Scenario(
        *added(lambda rules, path: rules.add(Rule(path, endpoint=path))),
        uses=[
            use("match", matched),
            use("iter_rules", lambda rules: len(list(rules.iter_rules()))),
        ],
        create=Map,
    )


def flask_rules() -> Scenario:
    from flask import Flask
    from werkzeug.exceptions import NotFound

    def matched(app: Any) -> tuple[str, ...]:
        adapter = app.url_map.bind("example.org")
        return answers(NotFound, lambda path: adapter.match(path)[0], PATHS)

    return Scenario(
        *added(lambda app, path: app.add_url_rule(path, path[1:], page)),
        uses=[
            use("match", matched),
            use("view_functions", lambda app: sorted(app.view_functions)),
        ],
        create=lambda: Flask("books", static_folder=None),
    )


def starlette_router() -> Scenario:
    from starlette.routing import NoMatchFound, Router

    def reversed_(router: Any) -> tuple[str, ...]:
        return answers(NoMatchFound, lambda path: router.url_path_for(path[1:]), PATHS)

    return Scenario(
        *added(lambda router, path: router.add_route(path, page, name=path[1:])),
        uses=[
            use("url_path_for", reversed_),
            use("routes", lambda router: len(router.routes)),
        ],
        create=Router,
    )


def falcon_router() -> Scenario:
    from falcon.routing import CompiledRouter

    class Resource:
        def on_get(self, request: Any, response: Any) -> None:
            """Answer nothing."""

    def match(router: Any) -> tuple[bool, ...]:
        return tuple(router.find(path) is not None for path in PATHS)

    return Scenario(
        *added(lambda router, path: router.add_route(path, Resource())),
        uses=[
            use("find", match),
            use("roots", lambda router: len(router._roots)),
        ],
        create=CompiledRouter,
    )


def bottle_router() -> Scenario:
    from bottle import HTTPError, Router

    def match(router: Any) -> tuple[str, ...]:
        def target(path: str) -> Any:
            return router.match({"PATH_INFO": path, "REQUEST_METHOD": "GET"})[0]

        return answers(HTTPError, target, PATHS)

    def add(router: Any, path: str) -> None:
        router.add(path, "GET", f"target of {path}", name=path)

    return Scenario(
        *added(add),
        uses=[
            use("match", match),
            use("builder", lambda router: sorted(router.builder)),
        ],
        create=Router,
    )


def tornado_rules() -> Scenario:
    from tornado.routing import PathMatches, ReversibleRuleRouter, Rule

    def add(router: Any, path: str) -> None:
        router.add_rules([Rule(PathMatches(path), page, name=path)])

    def reverse(router: Any) -> tuple[Any, ...]:
        return tuple(router.reverse_url(path) for path in PATHS)

    return Scenario(
        *added(add),
        uses=[
            use("reverse_url", reverse),
            use("named_rules", lambda router: sorted(router.named_rules)),
        ],
        create=ReversibleRuleRouter,
    )


def pyramid_routes() -> Scenario:
    from pyramid.config import Configurator
    from pyramid.interfaces import IRoutesMapper

    def add(config: Any, path: str) -> None:
        config.add_route(path[1:], path)
        config.commit()

    def generated(config: Any) -> tuple[str, ...]:
        mapper = config.registry.queryUtility(IRoutesMapper)
        if mapper is None:
            return ()
        return tuple(sorted(route.path for route in mapper.get_routes()))

    return Scenario(
        *added(add),
        uses=[
            use("get_routes", generated),
            use(
                "has_routes",
                lambda config: config.registry.queryUtility(IRoutesMapper) is not None,
            ),
        ],
        create=Configurator,
    )
