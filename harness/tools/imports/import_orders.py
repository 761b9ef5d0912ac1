"""`of_imports`: explore whether the order of imports makes a difference.

    from everyorder import Scenario

    def test_imports_in_any_order() -> None:
        question = Scenario.of_imports("shop.json", "shop.yaml", use="shop.formats()")
        report = question.explore()
        assert report.passed, report.render()

All orders of one set of modules must give the same observation. If two do not, both are
played several more times with their whole states, later and at other addresses; a
difference between two plays of the same order (a seed, a time, the order of a set of
objects) is not a difference between orders.

Rules:
- if orders differ, the reported pair differs in two neighbouring modules; if not every
  order was played, modules are removed as long as the difference remains;
- supersets of a refuted set are played, but not explained;
- a process that ended or hung is reported with its order, even if only one did;
- imports and uses that could not have differed are reported: an import that fails in
  every order, a mistyped use.
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

# Called with the number of orders that were played, and the number of all orders.
ProgressCallback: TypeAlias = Callable[[int, int], None]

# A large package takes some seconds the first time; a longer import hangs.
SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ImportOrders:
    """The question whether the order of imports matters.

    Args:
        modules: the modules to import, written as after `import`.
        uses: expressions that are evaluated after the imports, with the names that the
            imports bind.
        watch: additional modules whose globals are compared, from the standard library
            or imported when Python started.
        path: the first folder of the path of imports.
        seconds: time limit for one order.
        isolation: a forked child or a new interpreter for each order.
        orders: the orders to play; the planned ones (`order_processes.py`) if empty.
    """

    modules: Order
    uses: tuple[str, ...] = ()
    watch: tuple[str, ...] = ()
    path: Path = Path()
    seconds: float = SECONDS
    isolation: Isolation = "fork"
    orders: tuple[Order, ...] = ()

    def only(self, orders: Sequence[Order]) -> "ImportOrders":
        """Return the question for these orders only.

        Raises:
            BadArgument: the orders have different modules.
        """
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
        """Play the orders, each in a separate process, and compare them.

        Uses `jobs` processes at a time, by default one for each core; `tell` is called
        with the number of played orders and of all orders.

        Raises:
            NotFound: one of the modules cannot be found in any order, or none of them
                imports a module to watch.
            BadStrategy: there are too many modules for a covering array.
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
            judge = _Judge(
                request, self.modules, processes, sets, tell, has_explicit_orders=named
            )
            judge.begin()
            rows = judge.rows()
        return ImportReport(
            modules=self.modules,
            uses=self.uses,
            options=self.options,
            possible=sets.possible,
            rows=rows,
            findings=(*judge.findings, *judge.record.vacuous()),
            notes=judge.record.notes(sets, has_explicit_orders=named),
            seconds=monotonic() - began,
        )

    @property
    def options(self) -> tuple[str, ...]:
        """Return the options of the command that asks the same question."""
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
    """Return the question whether the order of imports makes a difference.

    Its `explore()` answers the question.

    Raises:
        BadArgument: fewer than two modules, a repeated or hidden one, or a use that
            cannot be compiled.
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


# Number of plays of two orders that differ before the difference is reported: a random
# choice of two values stays the same in all plays of each order once in 128 times.
PLAYS = 4

# Limit on the plays of a set; each omits the differences found so far.
MOST_ROUNDS = 8

# Pause after the first play; the clocks that modules read at import tick in seconds.
PAUSE_SECONDS = 1.1

# Lines at the end of the output of a process; it includes the stack if it hung.
MOST_LINES = 12


class _Judge:
    """Plays sets of orders, and stores observations and findings."""

    def __init__(
        self,
        request: OrderRequest,
        modules: Order,
        processes: Processes,
        sets: OrderPlan,
        tell: ProgressCallback,
        *,
        has_explicit_orders: bool,
    ) -> None:
        self.findings: list[OrderFinding] = []
        self._request = request
        self._modules = modules
        self._processes = processes
        self._plan = sets
        self._tell = tell
        self._has_explicit_orders = has_explicit_orders
        self._played = 0
        self._refuted: list[frozenset[str]] = []
        self.record = ImportRecord(request, modules)

    @property
    def _whole(self) -> bool:
        return bool(self.record.noise)

    def begin(self) -> None:
        """Play one order twice, and its reverse.

        Raises:
            NotFound: a module does not exist, or a watched module was never imported.
        """
        forwards, backwards = self._modules, self._modules[::-1]
        play = self._processes.play
        outcomes = play((forwards, backwards), whole=True)
        outcomes += play((forwards,), whole=True, disturbance=1)
        observations = [each for each in outcomes if isinstance(each, Observation)]
        folder = self._request.path
        for name in self._modules if len(observations) == len(outcomes) else ():
            raised = [error for each in observations for error in each.raised]
            if sum(each.module == name and each.missing for each in raised) == 3:
                near = near_modules(name, folder)
                raise NotFound(
                    code="NoSuchModule", wanted=name, where=folder, near=near
                )
        for name in self._request.watch:
            if observations and not any(name in each.loaded for each in observations):
                near = near_modules(name, folder)
                raise NotFound(code="NeverImported", wanted=name, near=near)
        flaky = self._nondeterminism(outcomes[0], outcomes[2], forwards)
        if flaky is not None:
            self.findings.append(flaky)

    def rows(self) -> tuple[SizeRow, ...]:
        """Play and judge every set of the plan; return one row for each size."""
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
                possible=judged[0][0]
                if self._has_explicit_orders
                else perm(count, size),
                refuted=sum(verdict != "holds" for _, verdict in judged),
                verdict=min((verdict for _, verdict in judged), key=VERDICTS.index),
            )
            for size, judged in rows.items()
        )

    def _verdict(self, orders: Sequence[Order]) -> Verdict:
        """Play the orders of one set; return the verdict and store the finding."""
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
        """Play the orders, with whole states if some observations differ."""
        planned = self._plan.orders

        def tell() -> None:
            self._played += 1
            self._tell(min(self._played, planned), planned)

        outcomes = self._processes.play(orders, whole=self._whole, tell=tell)
        observations = [each for each in outcomes if isinstance(each, Observation)]
        for order, outcome in zip(orders, outcomes, strict=True):
            if isinstance(outcome, Observation):
                self.record.note(order, outcome)
        keys = {each.key for each in observations}
        if len(keys) == 1 and len({each.exact for each in observations}) > 1:
            self._orders_of_dicts(orders, outcomes)
        if len(keys) > 1 and not self._whole and len(observations) == len(outcomes):
            outcomes = self._processes.play(orders, whole=True)
        return outcomes

    def _orders_of_dicts(
        self, orders: Sequence[Order], outcomes: Sequence[Outcome]
    ) -> None:
        """Store the dicts that differ only in their order."""
        exact = [each.exact for each in outcomes if isinstance(each, Observation)]
        other = next(place for place, each in enumerate(exact) if each != exact[0])
        pair = self._processes.play((orders[0], orders[other]), whole=True)
        if isinstance(pair[0], Observation) and isinstance(pair[1], Observation):
            self.record.reordered.update(reordered_dicts(pair[0], pair[1]))

    def _process_failure(
        self, orders: Sequence[Order], outcomes: Sequence[Outcome]
    ) -> OrderFinding | None:
        """Return the finding for the first order whose process ended."""
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
        """Return the differences between two orders, with as few modules as show them.

        None if they are only differences between plays of one order, which are stored.
        """
        noise = self.record.noise
        if not self._plan.every:
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
            claim += "; the order of fewer of them does not"
        return OrderFinding("order", (first, second), f"{claim}:", differences)

    def _pair(
        self, orders: Sequence[Order], outcomes: Sequence[Outcome]
    ) -> tuple[Order, Order] | None:
        """Return two orders with different observations, neighbours if possible."""
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
        """Return two orders of fewer modules that differ, neighbours if possible."""
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
        """Return the finding on two plays of one order, except for state differences.

        State differences are stored and not compared from then on.
        """
        if isinstance(first, ProcessEnd) or isinstance(second, ProcessEnd):
            return None
        all_differences = compare(first, second, self._request.uses)
        self.record.note_noise(each for each in all_differences if each.of_state)
        differences = tuple(each for each in all_differences if not each.of_state)
        if not differences:
            return None
        claim = "one order, played twice, gave two results:"
        return OrderFinding("flaky", (order,), claim, differences)

    def _differences(
        self, first: Outcome, second: Outcome
    ) -> tuple[OrderDifference, ...]:
        """Return all differences except those between plays of one order."""
        if isinstance(first, ProcessEnd) or isinstance(second, ProcessEnd):
            return ()
        all_differences = compare(first, second, self._request.uses)
        return tuple(
            each for each in all_differences if not self.record.is_noise(each.title)
        )


def _without_frames(printed: str) -> list[str]:
    """Return the output of a process without the frames of imports and the zygote."""
    return [
        line
        for line in printed.splitlines()
        if not line.startswith(("Timeout (", "Thread 0x", '  File "<frozen importlib'))
        and str(SCRIPT) not in line
    ]


def _sentence(order: Order) -> str:
    """Return the names, as in a sentence."""
    return f"{', '.join(order[:-1])} and {order[-1]}"
