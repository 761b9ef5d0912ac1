"""Scenarios whose use fills a memo of another package at its first performance."""

import logging
from collections.abc import Callable
from datetime import datetime
from fnmatch import filter as matching
from typing import Any

from everyorder.harness import Scenario, use
from tests.systems.lazy_registries import Base, scenario


def asking(question: Callable[[Base], Any]) -> Callable[[], Scenario]:
    """Return a function that builds the scenario of one use."""
    return lambda: scenario(Base, uses=[use("ask", question)])


MEMOS: dict[str, Callable[[], Scenario]] = {
    # It imports a module, and compiles a format.
    "strptime": asking(
        lambda registry: datetime.strptime("2020", "%Y").year + len(registry.items)
    ),
    # It registers a logger of this name.
    "logger": asking(
        lambda registry: (
            logging.getLogger("logger.of.a.memo").name,
            len(registry.items),
        )
    ),
    # It compiles a pattern.
    "fnmatch": asking(lambda registry: matching(sorted(registry.items), "a*")),
}
