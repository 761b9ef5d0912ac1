"""A table of judgements: one line for each class of the zoo."""

from collections.abc import Sequence
from statistics import median

from tests.zoo.verdicts import Judgement

HEAD = ("class", "registries", "correct", "wrong", "open", "operations", "seconds")


def table(judgements: Sequence[Judgement]) -> str:
    """The table as text, with a line for all of them at its end."""
    kinds = list(dict.fromkeys(each.entry.kind for each in judgements))
    rows: list[tuple[str, ...]] = [HEAD]
    rows += [
        _row(k, [each for each in judgements if each.entry.kind == k]) for k in kinds
    ]
    if len(kinds) > 1:
        rows.append(_row("all", judgements))
    return aligned(rows)


def counts(judgements: Sequence[Judgement], seeds: Sequence[int], strategy: str) -> str:
    """The counts of all verdicts, with the seeds and the strategy, as a line."""
    correct, wrong, left = _verdicts(judgements)
    return (
        f"{len(judgements)} registries of seeds {seeds[0]} to {seeds[-1]} by "
        f"{strategy}: {correct} correct, {wrong} wrong, {left} open"
    )


def aligned(rows: Sequence[tuple[str, ...]]) -> str:
    """Rows as text: the first column begins, and all others end, at one place."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def _verdicts(judgements: Sequence[Judgement]) -> tuple[int, int, int]:
    """The numbers of correct, wrong and open verdicts."""
    wrong = sum(each.has("wrong") for each in judgements)
    left = sum(each.has("open") and not each.has("wrong") for each in judgements)
    return len(judgements) - wrong - left, wrong, left


def _row(kind: str, judgements: Sequence[Judgement]) -> tuple[str, ...]:
    return (
        kind,
        str(len(judgements)),
        *map(str, _verdicts(judgements)),
        f"{median(each.operations for each in judgements):,.0f}",
        f"{median(each.seconds for each in judgements):.2f}",
    )
