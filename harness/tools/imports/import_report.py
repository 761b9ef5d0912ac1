"""The report on the orders of some imports, as data and as text.

A refutation shows two orders as lines that can be run, all that differs between them,
and the command that plays just these two.  Beside the verdict stands what came to
nothing in every order, what was compared, and what was left out of that, because it
differs each time.
"""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Literal, TypeAlias

from everyorder.harness.report.text import WIDTH, plural, wrap_words
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
    """One thing that is wrong: with one order, or between two orders of one set."""

    verdict: Verdict
    orders: tuple[Order, ...]
    claim: str
    differences: tuple[OrderDifference, ...] = ()
    printed: str = ""


@dataclass(frozen=True, slots=True)
class SizeRow:
    """The sets of one size: how many, their orders, how many sets are refuted."""

    size: int
    sets: int
    orders: int
    possible: int
    refuted: int
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The outcome; `options` are those of the command that asks the same.

    `possible` counts the orders of all subsets, whether they were played or not.
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
        """The most severe of the findings."""
        found = {finding.verdict for finding in self.findings}
        return next((each for each in VERDICTS if each in found), "holds")

    @property
    def passed(self) -> bool:
        """Whether no order made a difference and something could have."""
        return self.verdict == "holds"

    def render(self, *, width: int = WIDTH) -> str:
        """All but the table, without a newline at its end."""
        title = f"{', '.join(self.modules)}: {SENTENCES[self.verdict]}"
        lines = wrap(title, width, break_on_hyphens=False)
        for finding in self.findings:
            lines += ("", *_found(finding, self, width))
        lines.append("")
        for name, text in self.notes:
            head = f"  {name:<10}"
            lines += wrap_words(text, width, head, " " * len(head))
        return "\n".join(lines)

    def summary(self) -> str:
        """One line with the counts."""
        played = sum(row.orders for row in self.rows)
        sets = sum(row.sets for row in self.rows)
        refuted = sum(row.refuted for row in self.rows)
        count = f"{played:,} of {plural(self.possible, 'order')}"
        said = f"{refuted:,} refuted" if refuted else self.verdict
        modules = plural(len(self.modules), "module")
        return f"{plural(sets, 'set')} of {modules}, {count}: {said}"

    def command(self, orders: Sequence[Order]) -> str:
        """The command that plays just these orders."""
        words = ["everyorder", "imports"]
        for order in orders:
            words += ("--order", ",".join(order))
        return shlex.join((*words, *self.options))


def _found(finding: OrderFinding, report: ImportReport, width: int) -> Iterator[str]:
    yield from wrap(finding.claim, width, break_on_hyphens=False)
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


# Errors of a use that is mistyped, or asks for what is not there.
MISTYPED = frozenset({"NameError", "AttributeError", "TypeError"})

# Paths and types that are told of what is left out; nobody reads more.
MOST_TOLD = 8

MEANS = {
    "fork": "a child forked before anything of theirs is imported",
    "spawn": "an interpreter of its own",
}


class ImportRecord:
    """The observations so far; `modules` are all that are imported, by `request`."""

    def __init__(self, request: OrderRequest, modules: Order) -> None:
        self._noise: set[str] = set()
        # Dicts of which nothing but the order differs.
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
        """The number of paths known to differ between two plays of one order."""
        return len(self._noise)

    def is_noise(self, path: str) -> bool:
        """Whether a path, or all places of a list on it, differ between two plays."""
        return normal(path) in self._noise or any(
            each in self._noise for each in _opened(normal(path))
        )

    def note_noise(self, differences: Iterable[OrderDifference]) -> None:
        """Remember what differs in the states of two plays of one order.

        Of a list in which the same values stand in another order, no place is compared
        from then on: two plays may well agree on some of them.
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

    def note(self, order: Order, seen: Observation) -> None:
        """Remember what was seen after an order."""
        failed = {each.module: each.sentence for each in seen.raised}
        self._failed.update(failed)
        self._imported.update(set(order) - set(failed))
        self._packages.update(seen.packages)
        for text in seen.opaque:
            self._opaque[text.partition(" (")[0]] = text
        if len(order) == len(self._modules):
            for use, answer in enumerate(seen.answers):
                if answer.kind in MISTYPED:
                    self._mistyped[use] = answer.text
                else:
                    self._answered.add(use)

    def vacuous(self) -> list[OrderFinding]:
        """Imports and uses that failed in every order, so that they show nothing."""
        told = [
            f"import {module} raises in every order, so nothing is shown of it: {said}"
            for module, said in self._failed.items()
            if module not in self._imported
        ]
        told += [
            f"{self._request.uses[use]} raises in every order with all imported: {said}"
            for use, said in self._mistyped.items()
            if use not in self._answered
        ]
        return [OrderFinding("vacuous", (), claim) for claim in told]

    def notes(self, plan: OrderPlan, *, given: bool) -> tuple[tuple[str, str], ...]:
        """Notes on the orders played, and on what was compared and left out."""
        request, count = self._request, len(self._modules)
        every = f"{plural(plan.orders, 'order')} of {plan.possible:,}"
        if plan.every:
            scope = f"{every}: every subset in every order"
        elif given:
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
            told = sorted(self._opaque.values())
            rest = len(told) - MOST_TOLD
            more = [f"and of {rest} more types"] if rest > 0 else []
            notes.append(("unseen", "; ".join(told[:MOST_TOLD] + more)))
        return tuple(notes)


def normal(path: str) -> str:
    """A path with what may be an address in it left open."""
    return re.sub(r"\[\d{6,}\]", "[...]", path)


def _opened(path: str) -> list[str]:
    """A path once for each number in brackets on it, with that left open."""
    return [
        f"{path[: place.start()]}[...]{path[place.end() :]}"
        for place in re.finditer(r"\[\d+\]", path)
    ]


def _paths(paths: Iterable[str]) -> str:
    """Paths in a sentence, those alike but for a key or a place told once."""
    kept = list(paths)
    opened = [re.sub(r"\[[^\[\]]*\]", "[...]", path) for path in kept]
    counts, alone = Counter(opened), dict(zip(opened, kept, strict=True))
    told = [alone[each] if count == 1 else each for each, count in counts.items()]
    shown = sorted(told)[:MOST_TOLD]
    rest = len(told) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")
