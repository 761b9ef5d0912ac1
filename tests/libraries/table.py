"""The scenarios of real libraries, each with the package that it needs.

Not all of them are right.  The pattern of an `AdminSite` lists the labels of its
applications in the order in which their models were registered first.  Plum keeps each
function in a list of its class, and click each stream of a runner in a cache, whose
weak key its value keeps alive: their fresh systems are not fresh.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from everyorder.harness import Scenario


class LibraryScenario(NamedTuple):
    """A scenario by its name, and the package that it needs.

    It is that of the module of its name here, or made by a function of its name in
    `module`.  If it is not `right`, it is refuted.
    """

    name: str
    package: str
    module: str = ""
    right: bool = True

    @property
    def is_installed(self) -> bool:
        try:
            return find_spec(self.package) is not None
        except ModuleNotFoundError:  # not even the package that it is part of
            return False

    def load(self) -> Scenario:
        """Import the library, and return its scenario under its name."""
        module = import_module(f"tests.libraries.{self.module or self.name}")
        scenario: Scenario = (
            getattr(module, self.name)() if self.module else module.scenario
        )
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
    LibraryScenario("blinker_signal", "blinker", "signals"),
    LibraryScenario("pydispatch_dispatcher", "pydispatch", "signals"),
    LibraryScenario("pyee_emitter", "pyee", "signals"),
    LibraryScenario("zope_event_subscribers", "zope.event", "signals"),
    LibraryScenario("traitlets_observers", "traitlets", "signals"),
    LibraryScenario("kombu_serializers", "kombu", "signals"),
    LibraryScenario("werkzeug_map", "werkzeug", "routes"),
    LibraryScenario("flask_rules", "flask", "routes"),
    LibraryScenario("starlette_router", "starlette", "routes"),
    LibraryScenario("falcon_router", "falcon", "routes"),
    LibraryScenario("bottle_router", "bottle", "routes"),
    LibraryScenario("tornado_rules", "tornado", "routes"),
    LibraryScenario("pyramid_routes", "pyramid", "routes"),
    LibraryScenario("multipledispatch_dispatcher", "multipledispatch", "dispatching"),
    LibraryScenario("plum_function", "plum", "dispatching", right=False),
    LibraryScenario("zope_adapters", "zope.interface", "dispatching"),
    LibraryScenario("cattrs_hooks", "cattrs", "dispatching"),
    LibraryScenario("yaml_constructors", "yaml", "dispatching"),
    LibraryScenario("punq_container", "punq", "dispatching"),
    LibraryScenario("lagom_container", "lagom", "dispatching"),
    LibraryScenario("injector_binder", "injector", "dispatching"),
    LibraryScenario("jsonschema_formats", "jsonschema", "dispatching"),
    LibraryScenario("pint_units", "pint", "dispatching"),
    LibraryScenario("jinja2_filters", "jinja2", "texts"),
    LibraryScenario("markdown_preprocessors", "markdown", "texts"),
    LibraryScenario("markdown_it_rules", "markdown_it", "texts"),
    LibraryScenario("mistune_rules", "mistune", "texts"),
    LibraryScenario("docutils_directives", "docutils", "texts"),
    LibraryScenario("pluggy_manager", "pluggy", "tasks"),
    LibraryScenario("fsspec_implementations", "fsspec", "tasks"),
    LibraryScenario("dramatiq_actors", "dramatiq", "tasks"),
    LibraryScenario("huey_tasks", "huey", "tasks"),
    LibraryScenario("schedule_jobs", "schedule", "tasks"),
    LibraryScenario("apscheduler_jobs", "apscheduler", "tasks"),
    LibraryScenario("transitions_machine", "transitions", "tasks"),
    LibraryScenario("click_commands", "click", "tasks", right=False),
    LibraryScenario("typer_commands", "typer", "tasks"),
    LibraryScenario("loguru_handlers", "loguru", "tasks"),
)
