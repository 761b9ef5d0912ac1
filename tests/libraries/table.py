"""The scenarios of real libraries, each with the package that it needs.

Not all of them are right: the pattern of an `AdminSite` lists the labels of its
applications in the order in which their models were registered first.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from everyorder.harness import Scenario


class LibraryScenario(NamedTuple):
    """A scenario by the name of its module here, and the package that it needs.

    The order of steps shows in an answer if it is not `right`.
    """

    name: str
    package: str
    right: bool = True

    @property
    def is_installed(self) -> bool:
        return find_spec(self.package) is not None

    def load(self) -> Scenario:
        """Import the library, and return its scenario under its name."""
        module = import_module(f"tests.libraries.{self.name}")
        scenario: Scenario = module.scenario
        return scenario.named(self.name)


LIBRARIES = (
    LibraryScenario("sqlalchemy_events", "sqlalchemy"),
    LibraryScenario("django_signals", "django"),
    LibraryScenario("django_admin", "django", right=False),
    LibraryScenario("discord_commands", "discord"),
    LibraryScenario("npe2_plugins", "npe2"),
    LibraryScenario("structlog_context", "structlog"),
    LibraryScenario("omegaconf_resolvers", "omegaconf"),
    LibraryScenario("pyparsing_keywords", "pyparsing"),
    LibraryScenario("torch_library", "torch"),
)
