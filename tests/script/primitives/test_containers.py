"""Lists and dictionaries: random programs on shared ones, beside Python's own."""

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everyorder.runtime.errors.tensor import ArithmeticRefused
from everyorder.runtime.script.primitives import ROWS, PrimitiveRow
from tests.coded import code
from tests.script.primitives.trial import canonical, declared, outcome

PLACES = st.integers(-5, 5)
BOUNDS = st.one_of(st.none(), PLACES)
VALUES = st.integers(-2, 3)
RANGE_STEP = st.one_of(PLACES, st.sampled_from([2**62, -(2**63)]))
NAMED = {row.name: row for row in ROWS}
LISTS = tuple(
    row
    for row in ROWS
    if row.schema.arguments
    and str(row.schema.arguments[0].type) == "t[]"
    and row.way.kind in ("operator", "method")
)
DICTS = tuple(
    row
    for row in ROWS
    if row.schema.arguments
    and str(row.schema.arguments[0].type) == "Dict(int, t)"
    and row.way.kind in ("operator", "method")
)


def operand(draw: Any, formal: str, lists: int, dicts: int) -> Any:
    """A value for an argument, or the place of a list or a dictionary."""
    if formal == "t[]":
        return ("list", draw(st.integers(0, lists - 1)))
    if formal == "Dict(int, t)":
        return ("dict", draw(st.integers(0, dicts - 1)))
    if formal == "int?":
        return draw(BOUNDS)
    if formal == "bool":
        return draw(st.booleans())
    return draw(PLACES if formal == "int" else VALUES)


def python(row: PrimitiveRow, values: list[Any]) -> Any:
    """What Python's own expression does with these very objects."""
    names = [f"a{place}" for place in range(len(values))]
    space: dict[str, Any] = dict(zip(names, values, strict=True))
    named = {
        formal.name: name
        for formal, name in zip(row.schema.arguments, names, strict=True)
        if formal.kwarg_only
    }
    text = row.way.expression(names[: len(names) - len(named)], named)
    if row.name == "script::index.t" and values[3] is None:  # it has no None there
        text = "a0.index(a1, a2)"
    try:
        code = compile(text, "<row>", "eval")
    except SyntaxError:
        exec(text, space)
        return space["a0"] if row.schema.returns else None
    return eval(code, space)


def resolved(operands: list[Any], objects: dict[str, list[Any]]) -> list[Any]:
    return [
        objects[each[0]][each[1]] if isinstance(each, tuple) else each
        for each in operands
    ]


@given(st.data())
def test_programs_on_shared_containers(data: st.DataObject) -> None:
    """Two names stand for one object: each change is seen by both."""
    first = data.draw(st.lists(VALUES, max_size=4))
    other = data.draw(st.lists(VALUES, max_size=4))
    table = data.draw(st.dictionaries(VALUES, VALUES, max_size=4))

    def made() -> dict[str, list[Any]]:
        shared, keyed = [*first], {**table}
        return {"list": [shared, [*other], shared], "dict": [keyed, {1: 1}, keyed]}

    ours, theirs = made(), made()
    for _ in range(data.draw(st.integers(1, 8))):
        row = data.draw(st.sampled_from((*LISTS, *DICTS)))
        operands = [
            operand(data.draw, str(each.type), 3, 3) for each in row.schema.arguments
        ]
        own, wanted = resolved(operands, ours), resolved(operands, theirs)
        came = outcome(partial(row.function, *own))
        due = outcome(partial(python, row, wanted))
        assert (row.name, came) == (row.name, due)
        assert canonical(ours["list"]) == canonical(theirs["list"])
        assert canonical(ours["dict"]) == canonical(theirs["dict"])
        assert ours["list"][0] is ours["list"][2]


@given(BOUNDS, BOUNDS, BOUNDS, st.lists(VALUES, max_size=6), st.lists(VALUES))
def test_slices(
    start: Any, stop: Any, step: Any, values: list[int], more: list[int]
) -> None:
    came = outcome(lambda: NAMED["script::slice.t"].function(values, start, stop, step))
    assert came == outcome(lambda: values[start:stop:step])
    ours, theirs = [*values], [*values]
    store = NAMED["script::setslice.t"].function
    came = outcome(lambda: store(ours, start, stop, step, more))
    due = outcome(lambda: theirs.__setitem__(slice(start, stop, step), more))
    assert (came, ours) == (due, theirs)
    remove = NAMED["script::delslice.t"].function
    came = outcome(lambda: remove(ours, start, stop, step))
    due = outcome(lambda: theirs.__delitem__(slice(start, stop, step)))
    assert (came, ours) == (due, theirs)


@given(PLACES, st.one_of(PLACES, st.just(2**63 - 1)), RANGE_STEP, PLACES)
def test_ranges(start: int, stop: int, step: int, index: int) -> None:
    def numbers() -> range:
        return range(start, stop, step)

    length = NAMED["script::range_length.int"]
    came = outcome(lambda: length.function(start, stop, step))
    if step:
        span = range(start, stop, step)
        whole = 0 if not span else (span[-1] - start) // step + 1
        assert came == declared(length, whole)
    else:
        assert came == outcome(numbers)
    item = NAMED["script::range_item.int"]
    came = outcome(lambda: item.function(start, stop, step, index))
    assert came == outcome(lambda: numbers()[index])
    within = NAMED["script::range_contains.int"]
    came = outcome(lambda: within.function(start, stop, step, index))
    assert came == outcome(lambda: index in numbers())


def test_the_length_of_a_range_that_no_list_could_have() -> None:
    length = NAMED["script::range_length.int"]
    assert length.function(-1, 2**63 - 2, 1) == 2**63 - 1
    assert outcome(lambda: length.function(-1, 2**63 - 1, 1)).error is not None


def test_a_product_that_is_too_large_is_not_computed() -> None:
    most = 2**63 - 1
    # Python needs a minute for a number of so many digits.
    with pytest.raises(ArithmeticRefused, check=code("IntegerOverflow")):
        NAMED["script::prod.int"].function([most] * 100_000)
