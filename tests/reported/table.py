"""The scenarios of public reports, each with its verdict and shortest history.

A verdict is `order` where the state shows the difference, and `hidden` where memory of
the interpreter that cannot be read decides: the cache of `typing`, the functions of
`atexit`, the version of the filters of warnings.  A mended twin is proven.
"""

from importlib import import_module
from typing import NamedTuple

from everyorder import Scenario


class ReportedScenario(NamedTuple):
    """A scenario by its name, which a function of its name in `module` creates.

    `report` names the public report, as owner/repository#number; it is empty for the
    mended twin of another scenario.  `history` has the lines of the shortest history.
    """

    name: str
    module: str
    report: str = ""
    verdict: str = "proven"
    history: tuple[str, ...] = ()

    def load(self) -> Scenario:
        """Return the scenario under its name."""
        module = import_module(f"tests.reported.{self.module}")
        scenario: Scenario = getattr(module, self.name)()
        return scenario.named(self.name)


REPORTED = (
    ReportedScenario(
        "typing_cached_unions",
        "standard_library",
        "python/cpython#103749",
        "hidden",
        ("step_2 = annotate('str, int')", "step_1 = annotate('int, str')"),
    ),
    ReportedScenario("typing_cached_unions_mended", "standard_library"),
    ReportedScenario(
        "warnings_shown_once",
        "standard_library",
        "python/cpython#153128",
        "hidden",
        ("step_3 = filterwarnings", "step_1 = warn(1)", "step_2 = warn(2)"),
    ),
    ReportedScenario(
        "argparse_parents",
        "standard_library",
        "ThomasWaldmann/argparse#61",
        "order",
        ("step_2 = derive", "step_1 = add_argument", "parse"),
    ),
    ReportedScenario(
        "atexit_of_two_owners",
        "standard_library",
        "spatialaudio/python-sounddevice#48",
        "hidden",
        (
            "step_1 = initialize('one')",
            "step_2 = initialize('other')",
            "step_2.close()",
            "registered",
        ),
    ),
    ReportedScenario(
        "mock_stopped_in_order",
        "standard_library",
        "anishathalye/dotbot#370",
        "order",
        (
            "step_1 = patch('one')",
            "step_2 = patch('other')",
            "step_1.close()",
            "is patched",
        ),
    ),
    ReportedScenario(
        "logging_level_names",
        "standard_library",
        "lsst/daf_butler#527",
        "order",
        (
            "step_2 = addLevelName('TRACE')",
            "step_1 = addLevelName('VERBOSE')",
            "level 15",
        ),
    ),
    ReportedScenario(
        "logging_removed_in_a_loop",
        "standard_library",
        "vatlab/sos#182",
        "order",
        (
            "step_1 = addHandler('file')",
            "step_2 = addHandler('stream')",
            "reset",
            "handlers",
        ),
    ),
    ReportedScenario("logging_removed_in_a_loop_mended", "standard_library"),
    ReportedScenario(
        "import_path_hooks",
        "standard_library",
        "python/mypy#4811",
        "order",
        ("find", "step_1 = hook", "find"),
    ),
    ReportedScenario("import_path_hooks_mended", "standard_library"),
    ReportedScenario(
        "encodings_not_found",
        "standard_library",
        "python/cpython#146054",
        "order",
        ("find", "step_1 = alias", "find"),
    ),
    ReportedScenario(
        "mimetypes_first_extension",
        "standard_library",
        "python/cpython#6288",
        "order",
        ("step_2 = add_type('.drw')", "step_1 = add_type('.drawn')", "guess_extension"),
    ),
    ReportedScenario(
        "pytest_patches_of_a_fixture",
        "standard_library",
        "pytest-dev/pytest#981",
        "order",
        ("step_1 = patch(fixture)", "step_2 = patch(test)", "step_1.close()", "values"),
    ),
    ReportedScenario(
        "emitter_skips_the_next",
        "calls",
        "mnot/thor#95",
        "order",
        ("step_2 = once('save')", "step_1 = once('log')", "emit"),
    ),
    ReportedScenario("emitter_skips_the_next_mended", "calls"),
    ReportedScenario(
        "hooks_of_a_folder",
        "calls",
        "pytest-dev/pytest#732",
        "order",
        ("call", "step_1 = register('cover')", "call"),
    ),
    ReportedScenario("hooks_of_a_folder_mended", "calls"),
    ReportedScenario(
        "bus_is_started_again",
        "calls",
        "cherrypy/cherrypy#1274",
        "order",
        ("step_1 = start", "step_1.close()", "at exit"),
    ),
    ReportedScenario("bus_is_started_again_mended", "calls"),
    ReportedScenario(
        "widget_loses_all_bindings",
        "calls",
        "python/cpython#75666",
        "order",
        ("step_1 = bind('beep')", "step_2 = bind('save')", "step_1.close()", "press"),
    ),
    ReportedScenario("widget_loses_all_bindings_mended", "calls"),
    ReportedScenario(
        "handlers_never_removed",
        "calls",
        "pyglet/pyglet#869",
        "order",
        ("step_1 = set_handler", "step_1.close()", "dispatch"),
    ),
    ReportedScenario(
        "ending_by_function",
        "calls",
        "Gallopsled/pwntools#120",
        "order",
        ("step_2 = register('/b')", "step_1 = register('/a')", "at exit"),
    ),
    ReportedScenario("ending_by_function_mended", "calls"),
    ReportedScenario(
        "filler_keeps_handlers",
        "look_ups",
        "bluesky/event-model#114",
        "order",
        ("step_1 = register(old)", "fill", "step_1.close()", "fill"),
    ),
    ReportedScenario("filler_keeps_handlers_mended", "look_ups"),
    ReportedScenario(
        "container_keeps_instances",
        "look_ups",
        "python-anydi/anydi#95",
        "order",
        ("step_1 = register('books')", "resolve", "step_1.close()", "resolve"),
    ),
    ReportedScenario("container_keeps_instances_mended", "look_ups"),
    ReportedScenario(
        "converter_of_equal_types",
        "look_ups",
        "konradhalas/dacite#294",
        "order",
        ("step_2 = add(size)", "convert", "step_1 = add(id)", "convert"),
    ),
    ReportedScenario("converter_of_equal_types_mended", "look_ups"),
    ReportedScenario(
        "method_of_equal_rows",
        "look_ups",
        "python/cpython#127750",
        "order",
        ("step_2 = load('final')", "call", "step_1 = load('draft')", "call"),
    ),
    ReportedScenario(
        "signal_by_address",
        "look_ups",
        "django/django#19093",
        "order",
        (
            "step_1 = open('books')",
            "send",
            "step_1.close()",
            "step_2 = open('users')",
            "send",
        ),
    ),
    ReportedScenario("signal_by_address_mended", "look_ups"),
    ReportedScenario(
        "dispatch_by_definition",
        "look_ups",
        "mrocklin/multipledispatch#118",
        "order",
        ("step_2 = add(Right)", "step_1 = add(Left)", "call"),
    ),
    ReportedScenario("dispatch_by_definition_mended", "look_ups"),
)
