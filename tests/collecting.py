"""Scenarios and listings of files, in this process, as the commands collect them."""

from everyorder.harness.collection.here import listing_here
from everyorder.harness.collection.listing import items_of, listing_of
from everyorder.harness.collection.session import CommandSession
from everyorder.harness.collection.tasks import ExploreOptions, Listing, Selection
from everyorder.harness.pytest_plugin.plugin import ScenarioItem
from everyorder.harness.scenario import Scenario


def listing(*paths: str) -> Listing:
    """The listing of these paths."""
    return listing_here(Selection(paths), ExploreOptions())


def scenarios(*paths: str) -> dict[str, Scenario]:
    """The module-level scenarios of these paths, by their own paths."""
    session = CommandSession(Selection(paths), ExploreOptions())
    found: dict[str, Scenario] = {}

    def look() -> None:
        chosen = {task.node for task in listing_of(session).tasks}
        for node, item in items_of(session).items():
            if isinstance(item, ScenarioItem) and node in chosen:
                found[item.scenario.path] = item.scenario

    session.run(look)
    return found
