"""`of_imports`: modules, and whether the order of their imports makes a difference.

True only here: what can be asked, and what cannot.

    from everyorder import Scenario

    def test_imports_in_any_order() -> None:
        question = Scenario.of_imports("shop.json", "shop.yaml", use="shop.formats()")
        report = question.explore()
        assert report.passed, report.render()
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.imports.errors import NotAnExpression, NothingToOrder, OtherOrder
from harness.imports.exploring import Tell, explore
from harness.imports.processes import Isolation, Order, Request, usual_isolation
from harness.imports.report import ImportReport

# A large package takes some seconds the first time, and who waits longer hangs.
SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ImportOrders:
    """The question whether the order of imports matters.

    Args:
        modules: what is imported, as after `import`.
        uses: expressions that are evaluated in the end, with the names that the
            imports bind.
        watch: modules whose globals are compared although nobody named them and they
            are of the standard library, or were imported when Python started.
        path: the first folder of the path of imports.
        seconds: how long one order may take.
        isolation: a forked child or an interpreter of its own for each order.
        orders: just these; all that are planned (`processes.py`) if empty.
    """

    modules: Order
    uses: tuple[str, ...] = ()
    watch: tuple[str, ...] = ()
    path: Path = Path()
    seconds: float = SECONDS
    isolation: Isolation = "fork"
    orders: tuple[Order, ...] = ()

    def only(self, orders: Sequence[Order]) -> "ImportOrders":
        """The same of these orders alone.  Raises `OtherOrder`."""
        for each in orders:
            if sorted(each) != sorted(orders[0]):
                raise OtherOrder(first=orders[0], other=each)
        return replace(self, orders=tuple(orders))

    def explore(
        self, *, jobs: int | None = None, tell: Tell = lambda done, planned: None
    ) -> ImportReport:
        """Play the orders, each in a process of its own, and compare them.

        `jobs` processes at a time, by default one for each core; `tell` is called with
        how many orders are played of how many.

        Raises:
            NoSuchModule: one of the modules cannot be found in any order.
            NeverImported: none of these imports what was to be watched.
            TooLarge: there are more modules than rows can be made of.
        """
        request = Request(
            uses=self.uses,
            watch=self.watch,
            path=str(self.path.resolve()),
            seconds=self.seconds,
            isolation=self.isolation,
        )
        jobs = jobs or os.cpu_count() or 1
        return explore(request, self.modules, self.orders, self.options, jobs, tell)

    @property
    def options(self) -> tuple[str, ...]:
        """The options of the command that asks the same."""
        return tuple(self._options())

    def _options(self) -> Iterator[str]:
        for use in self.uses:
            yield from ("--use", use)
        for name in self.watch:
            yield from ("--watch", name)
        if self.path != Path():
            yield from ("--path", str(self.path))
        if self.seconds != SECONDS:
            yield from ("--timeout", f"{self.seconds:g}")
        if self.isolation != usual_isolation():
            yield from ("--isolation", self.isolation)


def of_imports(
    *modules: str,
    use: Iterable[str] = (),
    watch: Iterable[str] = (),
    path: str | Path = ".",
    timeout: float = SECONDS,
    isolation: Isolation | None = None,
) -> ImportOrders:
    """Ask whether the order of imports makes a difference; `explore()` answers.

    Raises:
        NothingToOrder: fewer than two modules, or one twice.
        NotAnExpression: a use that cannot be compiled.
    """
    if len(modules) < 2 or len(set(modules)) < len(modules):
        raise NothingToOrder(modules=modules)
    uses = (use,) if isinstance(use, str) else tuple(use)
    for each in uses:
        try:
            compile(each, "<use>", "eval")
        except (SyntaxError, ValueError) as error:
            reason = error.msg if isinstance(error, SyntaxError) else str(error)
            raise NotAnExpression(text=each, reason=reason) from None
    return ImportOrders(
        modules,
        uses,
        (watch,) if isinstance(watch, str) else tuple(watch),
        Path(path),
        timeout,
        isolation or usual_isolation(),
    )
