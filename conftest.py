"""Fixtures and options of all tests: which of them run.

- Tests marked `slow` or `nightly`, and tests marked `torch` where torch is missing, are
  deselected unless `-m` names them (`make test-long`, `make test-whole`, `make torch`).
- Of parametrised tests that repeat one claim over every operator, dtype, layout or
  registry, `--thin` runs a fixed share and `--thinned` the other ones; without either
  option all of them run.  `make test` and `make test-long` use these options.
- Of the functions in folders that explore or start processes, `--thin` runs a fixed
  share, and the first of each file; `--thinned` runs all others.
- Of the scenarios of the catalogue, `--thin` explores a share and `--thinned` none,
  because `everyorder gate` explores all of them.
- `--both` runs both shares in one process, of which coverage measures that of `--thin`
  (`make test LONG=1`).
- With `--thinned` or `--both`, one in `NIGHTLY` of the parametrised tests that `--thin`
  leaves is run; the others count as nightly, and `--night` says so to `make
  test-whole`.

An installed project has its pytest plugin by an entry point; a bare checkout names it
here.
"""

import signal
from importlib.metadata import entry_points
from importlib.util import find_spec
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
    # Each is a claim of its own.
    "tests/test_documents.py": 1,
    "tests/kernels/": 12,
    "tests/operators/": 8,
    "tests/opinfo/": 16,
    "tests/opinfo/test_mixed_dtypes.py": 64,
    "tests/zoo/": 5,
    "tests/zoo/realistic/": 10,
}

# Folders whose functions take longest, and one in how many of them `--thin` keeps.
LONGEST = (
    "tests/cli/",
    "tests/engine/",
    "tests/processes/",
    "tests/pytest_plugin/",
    "tests/scenario_api/",
    "tests/state/",
    "tests/systems/",
    "tests/zoo/",
)
FUNCTIONS = 4
# Files that `--thin` keeps nevertheless: what a wrong proof would show in.
KEPT = ("test_fresh", "test_fixed_", "test_lazy_state")

# One in how many parametrised tests that `--thin` leaves is run by `make test-long`.
NIGHTLY = 4

# The catalogue; one in how many of its scenarios `--thin` keeps, and `--both`.
CATALOGUE, SCENARIOS, FEW_SCENARIOS = "tests/scenarios/", 4, 16


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
    """Add the options that choose among tests that repeat one claim."""
    group = parser.getgroup("everyorder's own tests")
    group.addoption("--thin", action="store_true", help="one in so many of them")
    group.addoption("--thinned", action="store_true", help="those that --thin leaves")
    group.addoption("--both", action="store_true", help="what both of them run")
    group.addoption("--night", action="store_true", help="what neither of them runs")


def pytest_report_header(config: pytest.Config) -> str | None:
    """Return the line that reports the deselected share."""
    kept = ", ".join(f"1 in {many} of {where}" for where, many in THINNED.items())
    kept += f", 1 in {SCENARIOS} of the scenarios"
    if config.getoption("thin"):
        functions = f"1 in {FUNCTIONS} functions of {', '.join(LONGEST)}"
        return (
            f"thin: {functions}; of parametrised tests {kept}; the others: "
            "make test-long"
        )
    if config.getoption("thinned"):
        return (
            f"thinned: 1 in {NIGHTLY} of the others, --thin: {kept}; all scenarios: "
            "everyorder gate"
        )
    if config.getoption("night"):
        return f"night: what --thin leaves, but for 1 in {NIGHTLY}, is nightly"
    if config.getoption("both"):
        return (
            f"both: coverage measures {kept}; 1 in {FEW_SCENARIOS} scenarios is run; "
            "all scenarios: everyorder gate"
        )
    return None


def is_left_out(item: pytest.Item, seen: set[str]) -> bool:
    """Return True if `--thin` deselects a test; `seen` is empty for the first one."""
    path, _, name = item.nodeid.partition("::")
    first = f"first of {path}" not in seen
    seen.add(f"first of {path}")
    repeats = is_repeated(item, seen)
    if first or repeats or is_explored(item) or not path.startswith(LONGEST):
        return repeats
    if Path(path).name.startswith(KEPT):
        return False
    function = f"{path}::{name.partition('[')[0]}"
    return crc32(function.encode()) % FUNCTIONS > 0


def is_repeated(item: pytest.Item, seen: set[str]) -> bool:
    """Return True for most parametrised tests, but not for the first of a function."""
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
    """Return True for a scenario of the catalogue, which the gate explores."""
    return item.nodeid.startswith(CATALOGUE) and hasattr(item, "scenario")


def is_slow(item: pytest.Item) -> bool:
    """Return True for a slow test that is not a nightly one."""
    return item.get_closest_marker("slow") is not None and not is_nightly(item)


def is_nightly(item: pytest.Item) -> bool:
    """Return True for a test of `make test-whole`."""
    return item.get_closest_marker("nightly") is not None


def _thin(config: pytest.Config, items: list[pytest.Item]) -> None:
    thin, rest, both = map(config.getoption, ("thin", "thinned", "both"))
    if thin is rest and not both:
        return
    seen: set[str] = set()
    kept: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        left, long = is_left_out(item, seen), is_slow(item)
        if both:
            out = is_explored(item) and _number(item) % FEW_SCENARIOS > 0
            if left or long:
                item.add_marker("no_cover")
        else:
            out = left is thin and not long
            out = out or (rest and is_explored(item))
        (others if out else kept).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = kept


def _put_off(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark most of what `--thin` leaves as nightly, unless a person chose the tests."""
    if not any(map(config.getoption, ("thinned", "both", "night"))):
        return
    seen: set[str] = set()
    for item in items:
        left = is_repeated(item, seen) and not is_explored(item)
        if left and crc32(f"{item.nodeid} at night".encode()) % NIGHTLY:
            item.add_marker("nightly")


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Deselect the share and the legs that were not requested."""
    _put_off(config, items)
    _thin(config, items)
    expression = config.getoption("markexpr")
    without_torch = find_spec("torch") is None
    others = [
        item
        for item in items
        if (is_nightly(item) and "nightly" not in expression)
        or (is_slow(item) and "slow" not in expression)
        or (without_torch and item.get_closest_marker("torch") is not None)
    ]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in {*others}]
