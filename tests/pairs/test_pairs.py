"""Every pair of all keys, in every order of adding and removing.

10,153 pairs (a key with itself included), two orders of adding, two of removing, four
steps each: 162,448 steps, each followed by the laws and by both dumps.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations_with_replacement, product
from typing import Any

import pytest

from everyorder.invariants import forget
from everyorder.runtime.dispatch import transition
from everyorder.runtime.dispatch.dispatch_table import Recipe, Table, slots_of, table_of
from everyorder.runtime.keys import DispatchKey, members
from tests.pairs.board import KEYS, Board

ORDERS = ((0, 1), (1, 0))


def words(keys: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    for pair in combinations_with_replacement(keys, 2):
        for adds, removes in product(ORDERS, ORDERS):
            yield pair, adds, removes


def failing(board: Board, keys: tuple[str, ...]) -> dict[tuple[str, str], str]:
    """The pairs for which some order goes wrong, with the first thing wrong."""
    found: dict[tuple[str, str], str] = {}
    for pair, adds, removes in words(keys):
        wrong = board.play(pair, adds, removes)
        if wrong:
            found.setdefault(pair, wrong)
    assert board.at_rest()
    return found


def test_there_are_142_keys() -> None:
    assert len(KEYS) == len(set(KEYS)) == 142
    assert sum(DispatchKey.parse(key).is_alias for key in KEYS) == 6


@pytest.mark.parametrize(
    ("builtin", "defined"),
    [
        pytest.param(True, True, id="full", marks=pytest.mark.slow),
        pytest.param(False, False, id="bare", marks=pytest.mark.slow),
    ],
)
def test_no_order_matters_to_any_pair(builtin: bool, defined: bool) -> None:
    board = Board(builtin=builtin, defined=defined)
    assert list(failing(board, KEYS).values()) == []
    assert board.steps == 142 * 143 // 2 * 4 * 4


def stale_after(change: Any) -> Any:
    """Upstream's way: refresh only the slots that it thinks a key has to do with."""

    def with_kernels(state: Any, place: Any, entry: Any, kernels: Any, by: int) -> Any:
        after = change(state, place, entry, kernels, by)
        held = after.entry(entry.name)
        if held is None:
            return after
        before = dict(entry.implementations)
        (key,) = [
            each
            for each in {**before, **kernels}
            if before.get(each) is not kernels.get(each)
        ]
        table = _mixed(entry.table, table_of(kernels, state.fallbacks), refreshed(key))
        return transition._replace(state, place, held._replace(table=table))

    return with_kernels


def refreshed(key: DispatchKey) -> int:
    """The slots that upstream recomputes after a change at `key`."""
    slots = slots_of(members(key))
    if key.name.startswith("Composite") and not key.name.endswith("NestedTensor"):
        slots |= 1
    if key in members(DispatchKey.CompositeExplicitAutograd):
        with_own_key = key.backend not in (None, "HIP", "VE")
        name = f"Autograd{key.backend}" if with_own_key else "AutogradOther"
        slots |= slots_of([DispatchKey.parse(name)])
    return slots


def _mixed(old: Table, new: Table, slots: int) -> Table:
    """The new table at `slots`, the old one everywhere else."""
    lines, kernels, sources = [], [], []
    for table, own in ((old, ~slots), (new, slots)):
        for line, kernel in zip(table.recipe.lines, table.kernels, strict=True):
            if line.slots & own:
                lines.append(replace(line, slots=line.slots & own))
                kernels.append(kernel)
                sources.append((line.source, line.slots & own))
    rest = (old.recipe.rest & ~slots) | (new.recipe.rest & slots)
    recipe = Recipe(new.recipe.number, tuple(lines), rest, tuple(sources))
    return Table(recipe, tuple(kernels), new.fallbacks, new.masks)


def test_the_fault_of_upstream_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    forget()
    stale = stale_after(transition._with_kernels)
    monkeypatch.setattr(transition, "_with_kernels", stale)
    keys = tuple(key for key in KEYS if _matters(DispatchKey.parse(key)))
    implicit = "CompositeImplicitAutograd"
    # By accident: a backend without an own key sends its refresh to AutogradOther.
    lucky = {
        f"{functionality}{backend}"
        for functionality in ("Quantized", "Sparse", "SparseCsr")
        for backend in ("HIP", "VE")
    }
    expected = {
        key
        for key in keys
        if DispatchKey.parse(key).functionality in BEHIND
        or key in ("CompositeExplicitAutograd", "HIP", "VE")
    } - lucky
    assert len(expected) == 13
    found = failing(Board(builtin=True, defined=True), keys)
    forget()
    assert set(found) == {
        pair
        for pair in combinations_with_replacement(keys, 2)
        if implicit in pair and expected & set(pair)
    }


# Functionalities whose kernels guard an autograd key of another name.
BEHIND = ("Quantized", "Sparse", "SparseCsr", "NestedTensor")


def _matters(key: DispatchKey) -> bool:
    """A sample that the fault shows on: some backends, all rows of the rules."""
    if key.backend is None:
        return key.is_alias or key.name in ("FPGA", "AutogradOther", "Tracer")
    return key.backend in ("CPU", "HIP", "VE", "MTIA")
