"""What all tests need: pytester, and the project's own plugin.

True only here: an installed project brings its plugin by its entry point; from a bare
checkout it is named here, and never twice.
"""

from importlib.metadata import entry_points

pytest_plugins = ["pytester"]

if not any(point.value == "harness.plugin" for point in entry_points(group="pytest11")):
    pytest_plugins.append("harness.plugin")
