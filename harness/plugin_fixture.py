"""The fixture `explore`: a scenario inside of a test function.

True only here: how a test's scenarios are named.  The first one is named after the
test, the next ones get `-2`, `-3`, or a name of their own below the test's.
"""

from collections.abc import Callable
from typing import Any

import pytest

from harness.engine import Budget
from harness.errors import HarnessError
from harness.outcome import Report
from harness.plugin_path import source_and_name
from harness.plugin_run import Run
from harness.scenario import Scenario, Step


class Explore:
    """Explores scenarios for one test; the test fails where one does not hold."""

    def __init__(self, run: Run, item: pytest.Item) -> None:
        self._run = run
        self._item = item
        self._calls = 0

    def __call__(
        self,
        *what: Scenario | Step,
        name: str | None = None,
        strategy: str | None = None,
        budget: Budget | None = None,
        check: bool = True,
        **given: Any,
    ) -> Report:
        """Explore one scenario, or the steps of one, and return the report.

        Args:
            what: a `Scenario`, or steps; then `given` is as for `Scenario`.
            name: its name below the test's, where a test explores several.
            strategy: as for `harness.explore`; the flag and the ini file if None.
            budget: likewise.
            check: whether the test fails if the scenario does not hold or is not as
                expected; if not, whoever called looks at the report.
            given: `uses`, `order_dependent` and so on.

        Raises:
            NotAScenario: `what` is neither a scenario nor steps.
            pytest.fail.Exception: it does not hold, or is not as expected.
            pytest.skip.Exception: one of its functions skips it.
        """
        __tracebackhide__ = True
        self._calls += 1
        source, base = source_and_name(self._item.nodeid)
        if name is not None:
            base = f"{base}/{name}"
        elif self._calls > 1:
            base = f"{base}-{self._calls}"
        try:
            scenario = _scenario(what, given).named(base, source)
        except HarnessError as error:
            # Where in the harness that was seen says nothing to who called.
            raise error.with_traceback(None) from None
        return self._run.verify(
            scenario, self._item, strategy=strategy, budget=budget, check=check
        )


def _scenario(what: tuple[Any, ...], given: dict[str, Any]) -> Scenario:
    make: Callable[..., Scenario] = Scenario
    if len(what) == 1 and isinstance(what[0], Scenario) and not given:
        return what[0]
    return make(*what, **given)
