"""The end of a leg: every operation that was interrupted, if all places were tried."""

from typing import Any

import pytest

from tests.injection.telling import kept, total


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Reports come from all processes; a test that failed says it as well."""
    found = [
        told
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, ())
        for told in kept(report.user_properties)
    ]
    if not found:
        return
    terminalreporter.section("interruptions")
    if "slow" in config.getoption("markexpr"):
        for told in sorted(map(str, found)):
            terminalreporter.line(told)
    terminalreporter.line(total(found))
