"""What all tests need: pytester, and the project's own plugin.

True only here: an installed project brings its plugin by its entry point; from a bare
checkout it is named here, and never twice.  Tests that take minutes are skipped, with
the reason, unless `-m` speaks of them.
"""

import gc
import signal
from importlib.metadata import entry_points

import pytest

pytest_plugins = ["pytester"]

if not any(point.value == "everyorder" for point in entry_points(group="pytest11")):
    pytest_plugins.append("everyorder")

LONG = pytest.mark.skip(reason="takes minutes: make test-long, or -m long")


def pytest_configure() -> None:
    """Hear Ctrl-C, which a shell has its background jobs ignore: tests send it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leave the long legs to who asks for them."""
    if "long" in config.getoption("markexpr"):
        return
    for item in items:
        if item.get_closest_marker("long") is not None:
            item.add_marker(LONG)


def pytest_collection_finish() -> None:
    """Have no collection look through what was loaded for all tests."""
    gc.collect()
    gc.freeze()
