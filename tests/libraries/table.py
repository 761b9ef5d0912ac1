"""The scenarios of real libraries, each with the package that it needs.

Not all of them are right.  The pattern of an `AdminSite` lists the labels of its
applications in the order in which their models were registered first.  Plum keeps each
function in a list of its class, and click each stream of a runner in a cache, whose
weak key its value keeps alive: their fresh systems are not fresh.  Those of `reported`
have faults from public reports, and each of its libraries has a right scenario, too.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from everyorder.harness import Scenario


class Ceiling(NamedTuple):
    """Seconds of processor time that the first operation and the verdict may take.

    They are those of a machine on which the fixed work of `tests.bench.row` takes
    `FIXED_WORK` seconds.
    """

    first: float
    verdict: float


# Three times what the slowest of each class took: most noise of a machine is less.
# `pyramid_routes` and `pint_units` took 0.6 and 13.5 seconds, `sqlalchemy_events` 2.3
# and 32.  Those that are huge take minutes, and their ceiling is only an end.
USUAL = Ceiling(2, 45)
LARGE = Ceiling(8, 100)
HUGE = Ceiling(60, 900)
CEILINGS = (USUAL, LARGE, HUGE)


class LibraryScenario(NamedTuple):
    """A scenario by its name, and the package that it needs.

    It is that of the module of its name here, or made by a function of its name in
    `module`.  If it is faulty, `fault` is its verdict, and `history` the lines of the
    shortest history that shows it.  It takes at most the seconds of its `ceiling`.
    """

    name: str
    package: str
    module: str = ""
    fault: str = ""
    history: tuple[str, ...] = ()
    ceiling: Ceiling = USUAL

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
    LibraryScenario("sqlalchemy_events", "sqlalchemy", ceiling=LARGE),
    LibraryScenario("django_signals", "django"),
    LibraryScenario(
        "django_admin",
        "django",
        fault="order",
        history=(
            "step_3 = register('LogEntry')",
            "step_2 = register('Group')",
            "get_urls",
        ),
        ceiling=HUGE,
    ),
    LibraryScenario("discord_commands", "discord", ceiling=LARGE),
    LibraryScenario("npe2_plugins", "npe2", ceiling=LARGE),
    LibraryScenario("structlog_context", "structlog"),
    LibraryScenario("omegaconf_resolvers", "omegaconf", ceiling=HUGE),
    LibraryScenario("pyparsing_keywords", "pyparsing"),
    LibraryScenario("torch_library", "torch", ceiling=HUGE),
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
    LibraryScenario("plum_function", "plum", "dispatching", "not fresh"),
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
    LibraryScenario("click_commands", "click", "tasks", "not fresh"),
    LibraryScenario("typer_commands", "typer", "tasks"),
    LibraryScenario("loguru_handlers", "loguru", "tasks"),
    LibraryScenario(
        "omegaconf_cached_resolver",
        "omegaconf",
        "reported",
        "order",
        (
            "step_1 = register(1)",
            "x",
            "step_1.close()",
            "step_2 = register(2)",
            "x",
        ),
    ),
    LibraryScenario(
        "pint_defined_after_use",
        "pint",
        "reported",
        "order",
        ("kilometer", "step_1 = define", "kilometer"),
    ),
    LibraryScenario(
        "cattrs_generated_hooks",
        "cattrs",
        "reported",
        "order",
        ("step_2 = register(Outer)", "step_1 = register(Inner)", "unstructure"),
    ),
    LibraryScenario(
        "markdown_footnotes",
        "markdown",
        "reported",
        "order",
        ("footnote", "plain"),
    ),
    LibraryScenario(
        "structlog_cached_logger",
        "structlog",
        "reported",
        "order",
        ("info", "step_1 = configure", "info"),
    ),
    LibraryScenario(
        "flask_refused_rule",
        "flask",
        "reported",
        "order",
        ("step_1 = add_url_rule('/a')", "step_2 = add_url_rule('/b')", "rules"),
    ),
    LibraryScenario(
        "werkzeug_same_rule",
        "werkzeug",
        "reported",
        "order",
        ("step_2 = add('second')", "step_1 = add('first')", "match"),
    ),
    LibraryScenario(
        "multipledispatch_ambiguity",
        "multipledispatch",
        "reported",
        "order",
        ("step_2 = add('right')", "step_1 = add('left')", "call"),
    ),
    LibraryScenario(
        "jinja2_constant_filter",
        "jinja2",
        "reported",
        "order",
        ("step_1 = add", "render", "step_1.close()", "render"),
    ),
    LibraryScenario(
        "yaml_derived_loader",
        "yaml",
        "reported",
        "order",
        ("step_2 = add(derived)", "step_1 = add(base)", "load"),
    ),
)
