"""Every row on its samples: Python's value, type and exception; what it writes.

The oracle is Python's own expression for the row (`Way.expression`), on objects of its
own; where a script has no such value, an error of ours is due (`trial.declared`).
"""

from collections.abc import Iterator
from typing import Any

import pytest

from everyorder.runtime.schema.schema import may_alias, may_contain_alias
from everyorder.runtime.schema.signature import Argument
from everyorder.runtime.script.primitives import ROWS, PrimitiveRow
from tests.script.primitives.trial import (
    canonical,
    in_order,
    ours,
    python,
    sample_arguments,
)

ALL = [pytest.param(row, id=row.name) for row in ROWS]


@pytest.mark.spec("script 6.8", "control, numbers and containers")
@pytest.mark.parametrize("row", ALL)
def test_a_primitive_does_what_python_does(row: PrimitiveRow) -> None:
    for sample in row.samples:
        assert (sample, ours(row, sample)) == (sample, python(row, sample))


@pytest.mark.parametrize("row", ALL)
def test_a_row_is_sampled_and_raises_as_it_says(row: PrimitiveRow) -> None:
    came = [ours(row, sample)[0].error for sample in row.samples]
    assert any(error is None for error in came)
    assert any(error is not None for error in came) == row.raises


def mutable(value: Any) -> bool:
    return isinstance(value, list | dict) or hasattr(value, "key_bits")


def inside(value: Any) -> Iterator[Any]:
    """What a value holds, at any depth, without itself."""
    parts: list[Any] = []
    if isinstance(value, list | tuple):
        parts = list(value)
    elif isinstance(value, dict):
        parts = [*value.keys(), *value.values()]
    for part in parts:
        yield part
        yield from inside(part)


def shares(left: Any, right: Any) -> tuple[bool, bool]:
    """Whether two values are one, and whether one holds what the other is or holds.

    Tensors are one where they have one memory.
    """
    same = mutable(left) and left is right
    if all(hasattr(each, "untyped_storage") for each in (left, right)):
        same = left.untyped_storage() is right.untyped_storage()
        # `x.data` has a storage of its own on the same memory.
        same = same or (left.numel() > 0 and left.data_ptr() == right.data_ptr() > 0)
    within = [*filter(mutable, inside(left))]
    other = [*filter(mutable, inside(right))]
    met = any(a is b for a in [left, *within] for b in [right, *other] if mutable(a))
    return same, met


def results(row: PrimitiveRow, result: Any) -> list[tuple[Argument, Any]]:
    if len(row.schema.returns) == 1:
        return [(row.schema.returns[0], result)]
    return list(zip(row.schema.returns, result or (), strict=True))


def told(row: PrimitiveRow, sample: str) -> Iterator[tuple[str, bool, bool]]:
    """Facts of sharing and writing: the name, whether it is told, whether it is so."""
    bound = in_order(row, *sample_arguments(sample))
    before = [canonical(value) for value in bound]
    held = [[*filter(mutable, inside(value))] for value in bound]
    try:
        result = row.function(*bound)
    except Exception:
        result = None
        assert [canonical(value) for value in bound] == before, "wrote, and then raised"
        return
    formals = list(row.schema.arguments)
    pairs = list(zip(formals, bound, strict=False))
    for (formal, value), old in zip(pairs, before, strict=False):
        yield f"writes {formal.name}", formal.is_write, canonical(value) != old
        for returned, each in results(row, result):
            same, met = shares(value, each)
            yield f"{formal.name} is the result", may_alias(formal, returned), same
            contained = may_contain_alias(formal, returned)
            yield f"{formal.name} meets the result", contained, met
    apart = [part for parts in held for part in parts]
    for place, (returned, each) in enumerate(results(row, result)):
        alias = returned.alias
        wild = alias is not None and alias.is_wildcard_after
        shown = mutable(each) and any(each is part for part in apart)
        given = mutable(each) and any(each is value for value in bound)
        if shown or wild:
            yield f"result {place} is any element", wild, shown or given
    for formal, value in pairs:
        for (other, inner), parts in zip(pairs, held, strict=False):
            if inner is value or not formal.is_write or not mutable(inner):
                continue
            kept = any(each is inner for each in inside(value))
            wild = other.alias is not None and other.alias.is_wildcard_after
            # What may be the result is a wildcard for that.
            given = any(may_alias(other, each) for each in row.schema.returns)
            if kept or not given:
                yield f"{formal.name} keeps {other.name}", wild, kept
            some = any(a is b for a in inside(value) for b in parts)
            yield (
                f"{formal.name} meets {other.name}",
                may_contain_alias(other, formal),
                some,
            )


@pytest.mark.parametrize("row", ALL)
def test_what_is_written_and_shared_is_told(row: PrimitiveRow) -> None:
    untold = [
        (sample, name)
        for sample in row.samples
        for name, known, so in told(row, sample)
        if so and not known
    ]
    assert not untold


@pytest.mark.parametrize("row", ALL)
def test_nothing_is_told_that_no_sample_shows(row: PrimitiveRow) -> None:
    facts: dict[str, list[tuple[bool, bool]]] = {}
    for sample in row.samples:
        for name, known, so in told(row, sample):
            facts.setdefault(name, []).append((known, so))
    # What elements share is told by types alone, whatever the function does.
    idle = [
        name
        for name, seen in facts.items()
        if " meets " not in name
        and any(known for known, _ in seen)
        and not any(so for _, so in seen)
    ]
    assert not idle
