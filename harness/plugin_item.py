"""A scenario of a test module as one pytest item.

True only here: which variables become items.  Every module-level `Scenario` whose name
has no leading underscore is one item, named after its variable; a second variable for
the same scenario is passed over.  One item a scenario, never one an order: a thousand
orders cost the time of one test.

Rules: ids are ASCII and in the order of the file, so that every process collects the
same.
"""

from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from harness.assigned import assigned_lines
from harness.plugin_run import Run
from harness.scenario import Scenario


class ScenarioItem(pytest.Item):
    """One scenario; it passes if every order agrees, as its expect file says."""

    def __init__(self, *, scenario: Scenario, run: Run, **given: Any) -> None:
        super().__init__(**given)
        self.variable = self.originalname = given["name"]
        self.scenario = scenario
        self.run = run

    def runtest(self) -> None:
        """Explore and compare."""
        __tracebackhide__ = True
        self.run.verify(self.scenario, self)

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **given: Any
    ) -> Any:
        """What failed; of a traceback only what is below this item and not hidden."""
        if not self.config.getoption("fulltrace"):
            below = excinfo.traceback.cut(path=__file__).filter(excinfo)
            excinfo.traceback = below or excinfo.traceback
        return super().repr_failure(excinfo, *args, **given)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The file and the line of the variable, counted from 0."""
        line = _lines(self.path).get(self.variable)
        return self.path, line and line - 1, self.name


def make_item(
    module: pytest.Module, name: str, scenario: Scenario, run: Run
) -> ScenarioItem | None:
    """The item of this variable, or None where it is none."""
    first = next(
        variable
        for variable, value in vars(module.obj).items()
        if value is scenario and (variable == name or not variable.startswith("_"))
    )
    if name.startswith("_") or name != first:
        return None
    node = name.encode("ascii", "backslashreplace").decode()
    source = module.nodeid.partition("::")[0]
    item = ScenarioItem.from_parent(
        module,
        name=node,
        scenario=scenario.named(scenario.name or name, source),
        run=run,
    )
    assert isinstance(item, ScenarioItem), "from_parent makes what it is called on"
    return item


# A module has several items.
_lines = lru_cache(maxsize=8)(assigned_lines)
