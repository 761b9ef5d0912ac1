"""The report on the orders of some imports, as data and as text.

A refutation shows two orders as runnable lines, all differences between them, and the
command that plays just these two. The notes list the imports and uses that failed in
every order, the compared parts, and the parts that were not compared because they
differ each time.
"""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from everyorder.harness.base.columns import WIDTH, wrap_words
from everyorder.harness.report.text import plural
from everyorder.harness.tools.imports.import_observation import (
    Observation,
    OrderDifference,
)
from everyorder.harness.tools.imports.order_processes import (
    STRENGTH,
    Order,
    OrderPlan,
    OrderRequest,
)

Verdict: TypeAlias = Literal["crashed", "hung", "order", "flaky", "vacuous", "holds"]

# Most severe first.
VERDICTS: tuple[Verdict, ...] = (
    "crashed",
    "hung",
    "order",
    "flaky",
    "vacuous",
    "holds",
)

SENTENCES: dict[Verdict, str] = {
    "crashed": "a process ended while it imported",
    "hung": "an import did not come to an end",
    "order": "what these imports leave behind depends on their order",
    "flaky": "the same order, played again, gave another result",
    "vacuous": "nothing could have differed",
    "holds": "holds: the orders that were played make no difference",
}


@dataclass(frozen=True, slots=True)
class OrderFinding:
    """A fault of one order, or a difference between two orders of one set."""

    verdict: Verdict
    orders: tuple[Order, ...]
    claim: str
    differences: tuple[OrderDifference, ...] = ()
    printed: str = ""


@dataclass(frozen=True, slots=True)
class SizeRow:
    """The sets of one size: their number, their orders, and the refuted sets."""

    size: int
    sets: int
    orders: int
    possible: int
    refuted: int
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The outcome; `options` are those of the command that asks the same question.

    `possible` counts the orders of all subsets, including those that were not played.
    """

    modules: Order
    uses: tuple[str, ...]
    options: tuple[str, ...]
    possible: int
    rows: tuple[SizeRow, ...]
    findings: tuple[OrderFinding, ...]
    notes: tuple[tuple[str, str], ...]
    seconds: float

    @property
    def verdict(self) -> Verdict:
        """Return the most severe verdict of the findings."""
        verdicts = {finding.verdict for finding in self.findings}
        return next((each for each in VERDICTS if each in verdicts), "holds")

    @property
    def passed(self) -> bool:
        """Return True if no order made a difference and something could have."""
        return self.verdict == "holds"

    def render(self, *, width: int = WIDTH) -> str:
        """Return everything except the table, without a newline at its end."""
        title = f"{', '.join(self.modules)}: {SENTENCES[self.verdict]}"
        lines = wrap_words(title, width)
        for finding in self.findings:
            lines += ("", *_finding_lines(finding, self, width))
        lines.append("")
        for name, text in self.notes:
            head = f"  {name:<10}"
            lines += wrap_words(text, width, head, " " * len(head))
        return "\n".join(lines)

    def summary(self) -> str:
        """Return one line with the counts."""
        played = sum(row.orders for row in self.rows)
        sets = sum(row.sets for row in self.rows)
        refuted = sum(row.refuted for row in self.rows)
        count = f"{played:,} of {plural(self.possible, 'order')}"
        result = f"{refuted:,} refuted" if refuted else self.verdict
        modules = plural(len(self.modules), "module")
        return f"{plural(sets, 'set')} of {modules}, {count}: {result}"

    def command(self, orders: Sequence[Order]) -> str:
        """Return the command that plays just these orders."""
        words = ["everyorder", "imports"]
        for order in orders:
            words += ("--order", ",".join(order))
        return shlex.join((*words, *self.options))


def _finding_lines(
    finding: OrderFinding, report: ImportReport, width: int
) -> Iterator[str]:
    yield from wrap_words(finding.claim, width)
    for index, order in enumerate(finding.orders):
        if index:
            yield "and in this order:"
        yield from (f"    import {module}" for module in order)
    if finding.differences:
        yield "differences (- the first order, + the second):"
        for each in finding.differences:
            yield f"    {each.title}"
            yield from (f"    -{line}" for line in each.was.splitlines() or [""])
            yield from (f"    +{line}" for line in each.now.splitlines() or [""])
    if finding.printed:
        yield "it printed:"
        yield from (f"    {line}" for line in finding.printed.splitlines())
    if finding.orders:
        yield "again:"
        yield f"    {report.command(finding.orders)}"


# Errors of a use that is mistyped, or refers to something that does not exist.
MISTYPED = frozenset({"NameError", "AttributeError", "TypeError"})

# Limit on the paths and types in a note.
MOST_TOLD = 8

MEANS = {
    "fork": "a child forked before the modules are imported",
    "spawn": "a new interpreter",
}


class ImportRecord:
    """The observations so far; `request` and `modules` are those of the question."""

    def __init__(self, request: OrderRequest, modules: Order) -> None:
        self._noise: set[str] = set()
        # Dicts that differ only in their order.
        self.reordered: set[str] = set()
        self._request = request
        self._modules = modules
        self._imported: set[str] = set()
        self._failed: dict[str, str] = {}
        self._answered: set[int] = set()
        self._mistyped: dict[int, str] = {}
        self._packages: set[str] = set()
        self._opaque: dict[str, str] = {}

    @property
    def noise(self) -> int:
        """Return the number of paths that differ between two plays of one order."""
        return len(self._noise)

    def is_noise(self, path: str) -> bool:
        """Return True if a path, or a list on it, differs between two plays."""
        return normal(path) in self._noise or any(
            each in self._noise for each in _opened(normal(path))
        )

    def note_noise(self, differences: Iterable[OrderDifference]) -> None:
        """Store the differences in the states of two plays of one order.

        If a list has the same values in another order, none of its places is compared
        from then on: two plays may agree on some of them by chance.
        """
        lists: dict[str, tuple[list[str], list[str]]] = {}
        for each in differences:
            path = normal(each.title)
            self._noise.add(path)
            for opened in _opened(path):
                was, now = lists.setdefault(opened, ([], []))
                was.append(each.was)
                now.append(each.now)
        self._noise.update(
            opened
            for opened, (was, now) in lists.items()
            if len(was) > 1 and sorted(was) == sorted(now)
        )

    def note(self, order: Order, observation: Observation) -> None:
        """Store the observation after an order."""
        failed = {each.module: each.sentence for each in observation.raised}
        self._failed.update(failed)
        self._imported.update(set(order) - set(failed))
        self._packages.update(observation.packages)
        for text in observation.opaque:
            self._opaque[text.partition(" (")[0]] = text
        if len(order) == len(self._modules):
            for use, answer in enumerate(observation.answers):
                if answer.kind in MISTYPED:
                    self._mistyped[use] = answer.text
                else:
                    self._answered.add(use)

    def vacuous(self) -> list[OrderFinding]:
        """Return the imports and uses that failed in every order and prove nothing."""
        claims = [
            f"import {module} raises in every order, so its order is untested: {error}"
            for module, error in self._failed.items()
            if module not in self._imported
        ]
        claims += [
            f"{self._request.uses[use]} raises in every order with all modules "
            f"imported: {error}"
            for use, error in self._mistyped.items()
            if use not in self._answered
        ]
        return [OrderFinding("vacuous", (), claim) for claim in claims]

    def notes(
        self, plan: OrderPlan, *, has_explicit_orders: bool
    ) -> tuple[tuple[str, str], ...]:
        """Return notes on the played orders, and on the compared and omitted parts."""
        request, count = self._request, len(self._modules)
        every = f"{plural(plan.orders, 'order')} of {plan.possible:,}"
        if plan.every:
            scope = f"{every}: every subset in every order"
        elif has_explicit_orders:
            scope = f"{every}: those that were named"
        else:
            scope = (
                f"{every}: each alone, each pair in both orders, and all {count} so "
                f"that any {STRENGTH} come in each of their orders"
            )
        uses = f", {plural(len(request.uses), 'use')}" if request.uses else ""
        state = f"the globals of {', '.join(sorted(self._packages))}"
        notes = [
            ("played", f"{scope}; for each, {MEANS[request.isolation]}"),
            ("compared", f"what is raised{uses}, and {state}"),
        ]
        if self._noise:
            notes.append(("left out", f"not the same twice: {_paths(self._noise)}"))
        if self.reordered:
            paths = _paths(self.reordered)
            notes.append(("left out", f"the order of {paths}, that of the imports"))
        if self._opaque:
            texts = sorted(self._opaque.values())
            rest = len(texts) - MOST_TOLD
            more = [f"and of {rest} more types"] if rest > 0 else []
            notes.append(("unseen", "; ".join(texts[:MOST_TOLD] + more)))
        return tuple(notes)


def normal(path: str) -> str:
    """Return a path with numbers that may be addresses replaced by `[...]`."""
    return re.sub(r"\[\d{6,}\]", "[...]", path)


def _opened(path: str) -> list[str]:
    """Return a path once for each number in brackets on it, with that one replaced."""
    return [
        f"{path[: place.start()]}[...]{path[place.end() :]}"
        for place in re.finditer(r"\[\d+\]", path)
    ]


def _paths(paths: Iterable[str]) -> str:
    """Return paths in a sentence; those that differ in one key are merged."""
    originals = list(paths)
    opened = [re.sub(r"\[[^\[\]]*\]", "[...]", path) for path in originals]
    counts, by_opened = Counter(opened), dict(zip(opened, originals, strict=True))
    merged = [by_opened[each] if count == 1 else each for each, count in counts.items()]
    listed = sorted(merged)[:MOST_TOLD]
    rest = len(merged) - len(listed)
    return ", ".join(listed) + (f" and {rest} more" if rest else "")
