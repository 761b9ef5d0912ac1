"""The default run beside a mutant of `runtime.dispatch`: that of `everyorder gate`.

True only here: what is explored, and what counts as a failure.  Every scenario of the
catalogue is explored, its laws are checked, its expect file is compared.  A scenario
kills by a law, an order or another violation, an expectation that differs, a state that
is seen not to be complete, or an exception out of the mutated package.
"""

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from tests.mutants.target import DISPATCH, ROOT
from tests.mutants.trial import Order, told_briefly

CATALOGUE = "tests/scenarios"
FOLDER = DISPATCH.folder


class DefaultRun:
    """The harness, as far as it is needed here."""

    def __init__(self) -> None:
        self._scenarios: dict[str, Any] = {}

    def begin(self, order: Order) -> None:
        """Import what is built on the package, and load what is asked for."""
        self._imports()
        if order.known or not order.everything:
            self._loads(sorted({_file(path) for path in order.first}))
        else:
            self._loads([CATALOGUE])

    def _imports(self) -> None:
        """Import all of the package, and what is built on it."""
        for file in sorted(FOLDER.glob("*.py")):
            import_module(f"{DISPATCH.package}.{file.stem}".removesuffix(".__init__"))
        import_module("everyorder.runtime.bootstrap")

    def _loads(self, paths: Sequence[str]) -> None:
        """Load scenarios."""
        from tests.scenarios.of_files import scenarios_of

        files = [
            file
            for path in paths
            for file in (sorted((ROOT / path).glob("test_*.py")) or [ROOT / path])
        ]
        self._scenarios.update(scenarios_of(files))

    def paths(self, order: Order) -> Iterator[str]:
        """What to explore, one after the other."""
        first = [path for path in order.first if path not in order.without]
        yield from (path for path in first if path in self._scenarios)
        if order.everything:
            self._loads([CATALOGUE])
            others = set(self._scenarios).difference(first, order.without)
            yield from sorted(others, key=lambda path: _size(self._scenarios[path]))

    def fails(self, path: str) -> str:
        """How a scenario fails; "" where it passes."""
        from everyorder.harness.expectations import Store, compare
        from everyorder.harness.exploration.explore_scenario import (
            explore,
        )

        try:
            report = explore(self._scenarios[path], stop_after=1)
        except Exception as error:
            if getattr(error, "code", "") == "BadFingerprint":
                # The state that the package tells is not the whole one: the gate fails.
                return told_briefly(error)
            # What the harness itself refuses is a wrong question, and no kill.
            return f"raised {told_briefly(error)}" if _is_ours(error) else ""
        if not report.passed:
            kinds = [each.kind for each in report.exploration.violations]
            return ", ".join(dict.fromkeys(kinds)) or report.verdict
        expected = Store(ROOT).read(path)
        if expected is None:
            return ""
        found = compare(expected, report, partial=True)
        return "" if found.passed else f"expectation {found.verdict}"


def _file(path: str) -> str:
    """The file of a scenario, from the root."""
    return f"tests/{path.rpartition('/')[0]}.py"


def _size(scenario: Any) -> tuple[int, str]:
    """The small ones first: nearly all mutants die of one."""
    return len(scenario.steps) + len(scenario.uses), scenario.path


def _is_ours(error: BaseException | None) -> bool:
    """Whether an exception comes out of the package under mutation."""
    while error is not None:
        frame = error.__traceback__
        while frame is not None:
            if frame.tb_frame.f_code.co_filename.startswith(str(FOLDER)):
                return True
            frame = frame.tb_next
        error = error.__cause__ or error.__context__
    return False
