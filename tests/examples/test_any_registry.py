"""A registry that knows nothing of everyorder, explored from outside.

`plugins` is part of the catalogue; the stale version must be found, with the shortest
history that shows it.
"""

from collections.abc import Callable

from everyorder.harness import Scenario, explore, step, use
from tests.examples.plugins import Plugins, StalePlugins


def as_json() -> str:
    return "json"


def as_text() -> str:
    return "text"


def scenario(registry: Callable[[], StalePlugins]) -> Scenario:
    def found(plugins: StalePlugins) -> str:
        plugin = plugins.find("json")
        return "none" if plugin is None else plugin()

    return Scenario(
        step('plugins.add("json", as_json)', lambda p: p.add("json", as_json)),
        step('plugins.add("text", as_text)', lambda p: p.add("text", as_text)),
        uses=[use('plugins.find("json")', found)],
        create=registry,
        observe=lambda p: f"names: {p.names()}\n",
        name="plugins",
    )


plugins = scenario(Plugins)


def test_the_mended_registry_does_not_care_about_order() -> None:
    assert explore(plugins).passed


def test_the_stale_cache_is_found_with_the_shortest_history() -> None:
    report = explore(scenario(StalePlugins))
    (violation,) = report.exploration.violations
    assert violation.kind == "use"
    assert violation.shortest is not None
    assert report.lines(violation.shortest) == (
        'step_1 = plugins.add("json", as_json)',
        'plugins.find("json")',
        "step_1.close()",
        'plugins.find("json")',
    )
    assert violation.proven_shortest


def test_without_the_call_as_a_step_nothing_is_seen() -> None:
    blind = scenario(StalePlugins)
    assert blind.observe is not None
    silent = Scenario(*blind.steps, create=StalePlugins, observe=blind.observe)
    assert explore(silent, "full").passed
