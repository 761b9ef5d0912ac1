"""What all tests need: pytester, what legs have, and the project's own plugin.

True only here: an installed project brings its plugin by its entry point; from a bare
checkout it is named here, and never twice.  Tests that take long, or longest, are
skipped, with the reason, unless `-m` speaks of them.  Of tests that repeat one claim
over every operator, dtype, layout or registry, `--thin` runs one in so many, always the
same ones, and `--thinned` the others: `make test` and `make test-long`.  Whoever says
neither runs them all.  Long ones are in no share: `-m` alone decides about them.  Of
the scenarios of the catalogue `--thin` explores one in so many, and `--thinned` none:
beside it `everyorder gate` explores them all.  `--both` runs both shares in one
process, which coverage, where it is measured, watches at `--thin`'s alone, and few of
the scenarios, as the gate stands beside it: `make test LONG=1`.
"""

import signal
from importlib.metadata import entry_points
from pathlib import Path
from zlib import crc32

import pytest

pytest_plugins = ["pytester", "tests.legs"]

if not any(point.name == "everyorder" for point in entry_points(group="pytest11")):
    pytest_plugins.append("everyorder.harness.pytest_plugin")

# Folder or file -> one in how many of its parametrised tests `--thin` keeps.
# What compiles, runs every operator or explores every registry counts most.
THINNED = {
    "tests/": 4,
    "tests/kernels/": 12,
    "tests/operators/": 8,
    "tests/opinfo/": 16,
    "tests/opinfo/test_mixed_dtypes.py": 64,
    "tests/zoo/": 5,
}

# The catalogue; one in how many of its scenarios `--thin` keeps, and `--both`.
CATALOGUE, SCENARIOS, FEW_SCENARIOS = "tests/scenarios/", 4, 16

LONG = pytest.mark.skip(reason="takes long: make test-long, or -m long")
WHOLE = pytest.mark.skip(reason="takes longest: make test-whole, or -m whole")


def pytest_configure() -> None:
    """Hear Ctrl-C, which a shell has its background jobs ignore: tests send it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_pycollect_makemodule(module_path: Path) -> None:
    """Have Hypothesis measure no time: what compiles a kernel at first takes longer.

    Before the module is imported, which takes the settings over; other modules do
    without Hypothesis, as what explores looks through all that is loaded.
    """
    if b"hypothesis" in module_path.read_bytes():
        from hypothesis import settings

        if settings.default.deadline is not None:
            settings.register_profile("untimed", settings(), deadline=None)
            settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Which of the tests that repeat one claim are run."""
    group = parser.getgroup("everyorder's own tests")
    group.addoption("--thin", action="store_true", help="one in so many of them")
    group.addoption("--thinned", action="store_true", help="those that --thin leaves")
    group.addoption("--both", action="store_true", help="what both of them run")


def pytest_report_header(config: pytest.Config) -> str | None:
    """What is left out, which deselecting in workers does not say."""
    kept = ", ".join(f"1 in {many} of {where}" for where, many in THINNED.items())
    kept += f", 1 in {SCENARIOS} of the scenarios"
    if config.getoption("thin"):
        return f"thin: of parametrised tests {kept}; the others: make test-long"
    if config.getoption("thinned"):
        return (
            f"thinned: the others of what --thin runs {kept}; all scenarios: "
            "everyorder gate"
        )
    if config.getoption("both"):
        return (
            f"both: coverage watches {kept}; 1 in {FEW_SCENARIOS} scenarios is run; "
            "all scenarios: everyorder gate"
        )
    return None


def is_left_out(item: pytest.Item, seen: set[str]) -> bool:
    """Whether `--thin` leaves a test out; of each function it keeps the first one."""
    path, _, name = item.nodeid.partition("::")
    explored = is_explored(item)
    function = path if explored else f"{path}::{name.partition('[')[0]}"
    first = function not in seen
    seen.add(function)
    if first or not (explored or "[" in name):
        return False
    names = [folder for folder in THINNED if path.startswith(folder)]
    many = THINNED[max(names, key=len)] if names else 1
    return _number(item) % (SCENARIOS if explored else many) > 0


def _number(item: pytest.Item) -> int:
    return crc32(item.nodeid.encode())


def is_explored(item: pytest.Item) -> bool:
    """Whether it is a scenario of the catalogue, which the gate explores."""
    return item.nodeid.startswith(CATALOGUE) and hasattr(item, "scenario")


def is_long(item: pytest.Item) -> bool:
    """Whether a test takes long, and not too long to be run with these."""
    return item.get_closest_marker("long") is not None and not is_whole(item)


def is_whole(item: pytest.Item) -> bool:
    """Whether a test takes too long to be run with the others that take long."""
    return item.get_closest_marker("whole") is not None


def _thin(config: pytest.Config, items: list[pytest.Item]) -> None:
    thin, rest, both = map(config.getoption, ("thin", "thinned", "both"))
    if thin is rest and not both:
        return
    seen: set[str] = set()
    kept: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        left, long = is_left_out(item, seen), is_long(item)
        if both:
            out = is_explored(item) and _number(item) % FEW_SCENARIOS > 0
            if left or long:
                item.add_marker("unwatched")
        else:
            out = left is thin and not long
            out = out or (rest and is_explored(item))
        (others if out else kept).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = kept


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Thin out, and leave the long legs to who asks for them."""
    _thin(config, items)
    asked = config.getoption("markexpr")
    if "whole" not in asked:
        for item in filter(is_whole, items):
            item.add_marker(WHOLE)
    if "long" not in asked:
        for item in filter(is_long, items):
            item.add_marker(LONG)
