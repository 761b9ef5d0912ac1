"""`of_imports`: modules, and whether the order of their imports makes a difference.

    from everyorder import Scenario

    def test_imports_in_any_order() -> None:
        question = Scenario.of_imports("shop.json", "shop.yaml", use="shop.formats()")
        report = question.explore()
        assert report.passed, report.render()

All orders of one set of modules have to be seen alike.  Where two are not, they are
asked again: both are played several times with their whole states, later and at other
addresses, and what differs between two plays of the same order (a seed, a time, the
order of a set of objects) is no difference between orders.

Rules:
- of orders that differ, two are told that differ in two neighbouring modules; where not
  every order was played, modules are left out as long as the difference stays;
- of a set that is refuted, the larger ones are played, but not explained;
- a process that ended or hung is told with its order, whether or not others did;
- what could not have differed is told: an import that fails in every order, a use that
  is mistyped.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import perm
from pathlib import Path
from time import monotonic, sleep
from typing import TypeAlias

from everyorder.harness.base.errors import (
    BadArgument,
    NotFound,
    check_not_hidden,
    near_modules,
)
from everyorder.harness.tools.imports.import_observation import (
    Observation,
    OrderDifference,
    compare,
    reordered_dicts,
)
from everyorder.harness.tools.imports.import_report import (
    VERDICTS,
    ImportRecord,
    ImportReport,
    OrderFinding,
    SizeRow,
    Verdict,
)
from everyorder.harness.tools.imports.order_processes import (
    SCRIPT,
    Isolation,
    Order,
    OrderPlan,
    OrderRequest,
    Outcome,
    ProcessEnd,
    Processes,
    neighbours,
    path,
    plan,
    usual_isolation,
)

# Called with how many orders are played, and how many will be.
ProgressCallback: TypeAlias = Callable[[int, int], None]

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
        """The question about these orders alone.  Raises `BadArgument`."""
        for each in orders:
            if sorted(each) != sorted(orders[0]):
                raise BadArgument(code="OtherModules", modules=orders[0], other=each)
        return replace(self, orders=tuple(orders))

    def explore(
        self,
        *,
        jobs: int | None = None,
        tell: ProgressCallback = lambda done, planned: None,
    ) -> ImportReport:
        """Play the orders, each in a process of its own, and compare them.

        `jobs` processes at a time, by default one for each core; `tell` is called with
        how many orders are played of how many.

        Raises:
            NotFound: one of the modules cannot be found in any order, or none of them
                imports what was to be watched.
            BadStrategy: there are more modules than rows can be made of.
        """
        request = OrderRequest(
            uses=self.uses,
            watch=self.watch,
            path=str(self.path.resolve()),
            seconds=self.seconds,
            isolation=self.isolation,
        )
        began, named = monotonic(), bool(self.orders)
        chosen = OrderPlan((self.orders,), len(self.orders), every=False)
        sets = chosen if named else plan(self.modules)
        jobs = min(jobs or os.cpu_count() or 1, sets.orders)
        with Processes(request, max(jobs, 1)) as processes:
            judge = _Judge(request, self.modules, processes, sets, tell, given=named)
            judge.begin()
            rows = judge.rows()
        return ImportReport(
            modules=self.modules,
            uses=self.uses,
            options=self.options,
            possible=sets.possible,
            rows=rows,
            findings=(*judge.findings, *judge.record.vacuous()),
            notes=judge.record.notes(sets, given=named),
            seconds=monotonic() - began,
        )

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
        BadArgument: fewer than two modules, one twice or hidden by a module of ours, a
            use that cannot be compiled.
    """
    for name in modules:
        if modules.count(name) > 1:
            raise BadArgument(code="NamedTwice", name=name)
        check_not_hidden(name, str(path))
    if len(modules) < 2:
        raise BadArgument(code="NothingToOrder", modules=modules)
    uses = (use,) if isinstance(use, str) else tuple(use)
    for each in uses:
        try:
            compile(each, "<use>", "eval")
        except (SyntaxError, ValueError) as error:
            reason = error.msg if isinstance(error, SyntaxError) else str(error)
            raise BadArgument(
                code="NotAnExpression", text=each, reason=reason
            ) from None
    return ImportOrders(
        modules,
        uses,
        (watch,) if isinstance(watch, str) else tuple(watch),
        Path(path),
        timeout,
        isolation or usual_isolation(),
    )


# How often two orders that differ are played before that is believed: of what is drawn
# at random out of two, one of 128 stays the same in all plays of each order.
PLAYS = 4

# How often a set is played again without what was found to differ each time.
MOST_ROUNDS = 8

# After the first time; the clocks that modules read at their import tick in seconds.
PAUSE_SECONDS = 1.1

# Lines at the end of what a process printed; the stack of one that hangs is there.
MOST_LINES = 12


class _Judge:
    """Plays sets of orders, and remembers what it saw and found."""

    def __init__(
        self,
        request: OrderRequest,
        modules: Order,
        processes: Processes,
        sets: OrderPlan,
        tell: ProgressCallback,
        *,
        given: bool,
    ) -> None:
        self.findings: list[OrderFinding] = []
        self._request = request
        self._modules = modules
        self._processes = processes
        self._plan = sets
        self._tell = tell
        self._given = given
        self._played = 0
        self._refuted: list[frozenset[str]] = []
        self.record = ImportRecord(request, modules)

    @property
    def _whole(self) -> bool:
        return bool(self.record.noise)

    def begin(self) -> None:
        """Play one order twice, and its reverse.

        Raises `NotFound` where a name is nobody's.
        """
        forwards, backwards = self._modules, self._modules[::-1]
        play = self._processes.play
        outcomes = play((forwards, backwards), whole=True)
        outcomes += play((forwards,), whole=True, disturbance=1)
        seen = [each for each in outcomes if isinstance(each, Observation)]
        folder = self._request.path
        for name in self._modules if len(seen) == len(outcomes) else ():
            raised = [error for each in seen for error in each.raised]
            if sum(each.module == name and each.missing for each in raised) == 3:
                near = near_modules(name, folder)
                raise NotFound(
                    code="NoSuchModule", wanted=name, where=folder, near=near
                )
        for name in self._request.watch:
            if seen and not any(name in each.loaded for each in seen):
                near = near_modules(name, folder)
                raise NotFound(code="NeverImported", wanted=name, near=near)
        flaky = self._nondeterminism(outcomes[0], outcomes[2], forwards)
        if flaky is not None:
            self.findings.append(flaky)

    def rows(self) -> tuple[SizeRow, ...]:
        """Play every set of the plan and judge it; one row for each size of sets."""
        count = len(self._modules)
        rows: dict[int, list[tuple[int, Verdict]]] = {}
        for orders in self._plan.sets:
            verdict = self._verdict(orders)
            rows.setdefault(len(orders[0]), []).append((len(orders), verdict))
        return tuple(
            SizeRow(
                size=size,
                sets=len(judged),
                orders=sum(played for played, _ in judged),
                possible=judged[0][0] if self._given else perm(count, size),
                refuted=sum(verdict != "holds" for _, verdict in judged),
                verdict=min((verdict for _, verdict in judged), key=VERDICTS.index),
            )
            for size, judged in rows.items()
        )

    def _verdict(self, orders: Sequence[Order]) -> Verdict:
        """Play the orders of one set; what is wrong with it is noted."""
        part = frozenset(orders[0])
        explained = any(each <= part for each in self._refuted)
        finding: OrderFinding | None = None
        for _ in range(MOST_ROUNDS):
            outcomes = self._play(orders)
            finding = self._process_failure(orders, outcomes)
            pair = None if finding else self._pair(orders, outcomes)
            if finding is None and pair is None:
                return "holds"
            if pair is not None:
                finding = (
                    OrderFinding("order", pair, "")
                    if explained
                    else self._explain(*pair)
                )
            if finding is not None:
                break
        else:
            claim = f"the order of {_sentence(orders[0])} never gave the same twice:"
            finding = OrderFinding("flaky", (orders[0],), claim)
        if not explained:
            self.findings.append(finding)
            self._refuted.append(part)
        return finding.verdict

    def _play(self, orders: Sequence[Order]) -> list[Outcome]:
        """Play the orders, and with whole states where some are not seen alike."""
        planned = self._plan.orders

        def tell() -> None:
            self._played += 1
            self._tell(min(self._played, planned), planned)

        outcomes = self._processes.play(orders, whole=self._whole, tell=tell)
        seen = [each for each in outcomes if isinstance(each, Observation)]
        for order, outcome in zip(orders, outcomes, strict=True):
            if isinstance(outcome, Observation):
                self.record.note(order, outcome)
        keys = {each.key for each in seen}
        if len(keys) == 1 and len({each.exact for each in seen}) > 1:
            self._orders_of_dicts(orders, outcomes)
        if len(keys) > 1 and not self._whole and len(seen) == len(outcomes):
            outcomes = self._processes.play(orders, whole=True)
        return outcomes

    def _orders_of_dicts(
        self, orders: Sequence[Order], outcomes: Sequence[Outcome]
    ) -> None:
        """Remember in which dicts nothing but the order differs."""
        exact = [each.exact for each in outcomes if isinstance(each, Observation)]
        other = next(place for place, each in enumerate(exact) if each != exact[0])
        pair = self._processes.play((orders[0], orders[other]), whole=True)
        if isinstance(pair[0], Observation) and isinstance(pair[1], Observation):
            self.record.reordered.update(reordered_dicts(pair[0], pair[1]))

    def _process_failure(
        self, orders: Sequence[Order], outcomes: Sequence[Outcome]
    ) -> OrderFinding | None:
        """The first order whose process ended."""
        ended = [
            (order, outcome)
            for order, outcome in zip(orders, outcomes, strict=True)
            if isinstance(outcome, ProcessEnd)
        ]
        if not ended:
            return None
        order, first = ended[0]
        count = f"{len(ended)} of {len(orders)}"
        claim = f"a process {first.reason}, in {count} orders of these modules:"
        printed = "\n".join(_without_frames(first.printed)[-MOST_LINES:])
        verdict: Verdict = "hung" if first.kind == "hung" else "crashed"
        return OrderFinding(verdict, (order,), claim, printed=printed)

    def _explain(self, first: Order, second: Order) -> OrderFinding | None:
        """The differences between two orders, with as few modules as show them.

        None if that is nothing but what differs each time, which is remembered.
        """
        noise = self.record.noise
        if not self._plan.every and (first, second) not in neighbours((first, second)):
            first, second = self._reduce(first, second)
        plays: list[list[Outcome]] = []
        differences: tuple[OrderDifference, ...] = ()
        for turn in range(PLAYS):
            if turn == 1:
                sleep(PAUSE_SECONDS)
            plays.append(
                self._processes.play((first, second), whole=True, disturbance=turn)
            )
            ended = self._process_failure((first, second), plays[-1])
            if ended is not None:
                return ended
            for order, before, now in zip(
                (first, second), plays[0], plays[-1], strict=True
            ):
                flaky = self._nondeterminism(before, now, order)
                if flaky is not None:
                    return flaky
            differences = self._differences(*plays[0])
            if not differences:
                break
        if not differences and self.record.noise > noise:
            return None
        if not differences:
            claim = "these orders differed when first played, not when played again:"
            return OrderFinding("flaky", (first, second), claim)
        claim = f"the order of {_sentence(first)} makes a difference"
        if self._plan.every and len(first) > 2:
            claim += "; that of fewer of them makes none"
        return OrderFinding("order", (first, second), f"{claim}:", differences)

    def _pair(
        self, orders: Sequence[Order], outcomes: Sequence[Outcome]
    ) -> tuple[Order, Order] | None:
        """Two orders that are seen otherwise, neighbours where there are such."""
        kinds: list[Outcome] = []
        kind: dict[Order, int] = {}
        for order, outcome in zip(orders, outcomes, strict=True):
            alike = (i for i, each in enumerate(kinds) if self._alike(each, outcome))
            kind[order] = next(alike, len(kinds))
            if kind[order] == len(kinds):
                kinds.append(outcome)
        if len(kinds) < 2:
            return None
        for first, second in neighbours(orders):
            if kind[first] != kind[second]:
                return first, second
        other = next(order for order in orders if kind[order])
        return orders[0], other

    def _reduce(self, first: Order, second: Order) -> tuple[Order, Order]:
        """Two orders of fewer modules, if possible neighbours, that still differ."""
        for module in first:
            fewer = [tuple(m for m in o if m != module) for o in (first, second)]
            if fewer[0] != fewer[1] and self._differ(fewer[0], fewer[1]):
                first, second = fewer
        steps = path(first, second)
        while len(steps) > 2:
            middle = len(steps) // 2
            # The ends differ, so the middle differs from one of them.
            if self._differ(steps[0], steps[middle]):
                steps = steps[: middle + 1]
            else:
                steps = steps[middle:]
        return steps[0], steps[-1]

    def _differ(self, first: Order, second: Order) -> bool:
        one, other = self._processes.play((first, second), whole=True)
        return not self._alike(one, other)

    def _alike(self, first: Outcome, second: Outcome) -> bool:
        if isinstance(first, ProcessEnd) or isinstance(second, ProcessEnd):
            return type(first) is type(second)
        return first.key == second.key or not self._differences(first, second)

    def _nondeterminism(
        self, first: Outcome, second: Outcome, order: Order
    ) -> OrderFinding | None:
        """The differences between two plays of one order that are not of the state.

        Of the state, it is remembered and left out of what is compared.
        """
        if isinstance(first, ProcessEnd) or isinstance(second, ProcessEnd):
            return None
        found = compare(first, second, self._request.uses)
        self.record.note_noise(each for each in found if each.of_state)
        differences = tuple(each for each in found if not each.of_state)
        if not differences:
            return None
        claim = "one order, played twice, did not come to the same:"
        return OrderFinding("flaky", (order,), claim, differences)

    def _differences(
        self, first: Outcome, second: Outcome
    ) -> tuple[OrderDifference, ...]:
        """All that differs but what is known to differ anyway."""
        if isinstance(first, ProcessEnd) or isinstance(second, ProcessEnd):
            return ()
        found = compare(first, second, self._request.uses)
        return tuple(each for each in found if not self.record.is_noise(each.title))


def _without_frames(printed: str) -> list[str]:
    """The output of a process without frames of the import system and of ours."""
    return [
        line
        for line in printed.splitlines()
        if not line.startswith(("Timeout (", "Thread 0x", '  File "<frozen importlib'))
        and str(SCRIPT) not in line
    ]


def _sentence(order: Order) -> str:
    """The names, as in a sentence."""
    return f"{', '.join(order[:-1])} and {order[-1]}"
