"""The table: every row is found by its ways, in the order in which rows are tried."""

import cmath
import math
from typing import Any

import pytest

from everyorder.runtime.schema.parser import parse_type
from everyorder.runtime.schema.types import AnyType, Type
from everyorder.runtime.script.primitives import (
    ROWS,
    PrimitiveRow,
    by_attribute,
    by_form,
    by_function,
    by_method,
    by_name,
    by_operator,
    methods_of,
    widened,
)
from tests.script.primitives.trial import choose, sample_arguments, type_of


def typed(text: str) -> Type:
    return parse_type(text)


def found(row: PrimitiveRow) -> tuple[PrimitiveRow, ...]:
    """The rows that emission finds by the way of this one."""
    kind, key, _ = row.way
    first = row.schema.arguments[0].type if row.schema.arguments else AnyType
    looks: dict[str, Any] = {
        "operator": lambda: by_operator(key),
        "function": lambda: by_function(key),
        "method": lambda: by_method(key, first),
        "attribute": lambda: by_attribute(key, first),
        "form": lambda: by_form(key),
    }
    rows: tuple[PrimitiveRow, ...] = looks[kind]()
    return rows


@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in ROWS])
def test_a_row_is_found_by_its_name_and_by_its_way(row: PrimitiveRow) -> None:
    assert by_name(row.name) is row
    assert row in found(row)


@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in ROWS])
def test_its_own_types_choose_a_row(row: PrimitiveRow) -> None:
    """No row stands behind one that takes all that it takes."""
    required = [a for a in row.schema.arguments if not a.kwarg_only]
    choice = choose(found(row), [each.type for each in required])
    assert choice is not None
    assert choice.row is row
    assert not any(choice.conversions)


def test_names_are_unique_and_in_the_namespace() -> None:
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)
    assert all(name.startswith("script::") for name in names)


def test_what_is_no_primitive_is_not_found() -> None:
    assert by_name("script::nothing") is None
    assert by_operator("@") == ()
    assert by_form("zip({0})") == ()
    assert by_function(print) == ()
    assert by_function([].append) == ()

    class Unhashable:
        __hash__ = None  # type: ignore[assignment]  # as lists have it

        def __call__(self) -> None: ...

    assert by_function(Unhashable()) == ()
    assert by_method("append", typed("str")) == ()
    assert by_method("upper", typed("int[]")) == ()
    assert by_method("upper", typed("str?")) == ()
    assert by_attribute("mH", typed("Tensor")) == ()


def test_functions_are_found_by_identity() -> None:
    def sqrt(x: float) -> float:
        return x

    assert by_function(sqrt) == ()
    assert [row.name for row in by_function(math.sqrt)] == [
        "script::sqrt.float",
        "script::sqrt.Scalar",
    ]
    assert [row.name for row in by_function(cmath.sqrt)] == ["script::sqrt.complex"]
    assert by_function(pow) == by_operator("**")


def test_methods_of_a_type() -> None:
    assert methods_of(typed("int[]")) == (
        *("append", "clear", "copy", "count", "extend", "index", "insert", "pop"),
        *("remove", "reverse", "sort"),
    )
    assert methods_of(typed("Dict(str, Tensor)")) == (
        *("clear", "copy", "get", "items", "keys", "pop", "popitem", "setdefault"),
        *("update", "values"),
    )
    assert set(methods_of(typed("str"))) >= {
        name
        for name in dir(str)
        if not name.startswith("_")
        and name not in ("encode", "format_map", "maketrans", "translate")
    }
    assert methods_of(typed("bool")) == methods_of(typed("int"))
    assert methods_of(typed("Tensor")) == (
        *("backward", "detach_", "dim", "element_size", "is_complex"),
        *("is_contiguous", "is_floating_point", "is_inference", "is_nonzero"),
        *("is_signed", "item", "numel", "requires_grad_", "retain_grad", "size"),
        *("storage_offset", "stride", "tolist", "type"),
    )


def test_the_narrowest_row_is_chosen() -> None:
    kinds = ("bool", "int", "float", "complex")
    rows = by_operator("+")
    for place, left in enumerate(kinds):
        for other, right in enumerate(kinds):
            widest = kinds[max(place, other, 1)]
            choice = choose(rows, [typed(left), typed(right)])
            assert choice is not None
            assert choice.row.name == f"script::add.{widest}"
            assert choice.conversions == tuple(
                None if kind == widest else f"script::{widest}.{kind}"
                for kind in (left, right)
            )
    choice = choose(rows, [typed("Scalar"), typed("int")])
    assert choice is not None
    assert choice.row.name == "script::add.Scalar"


def test_variables_are_bound() -> None:
    choice = choose(by_method("append", typed("str[]")), [typed("str[]"), typed("str")])
    assert choice is not None
    assert choice.bound == {"t": typed("str")}
    assert choose(by_operator("+"), [typed("int[]"), typed("str[]")]) is None
    assert choose(by_operator("+"), [typed("Tensor"), typed("int")]) is None


def test_the_number_of_operands_counts() -> None:
    rows = by_function(round)
    names = [
        choice.row.name if (choice := choose(rows, types)) else None
        for types in (
            [typed("float")],
            [typed("float"), typed("int")],
            [],
            [typed("int")] * 3,
        )
    ]
    assert names == ["script::round.float", "script::round.float_digits", None, None]
    rows = by_method("format", typed("str"))
    assert choose(rows, [typed("str")] * 5) is not None


def test_each_widening_is_a_primitive() -> None:
    kinds = [typed(name) for name in ("bool", "int", "float", "complex")]
    for place, narrow in enumerate(kinds):
        for other, wide in enumerate(kinds):
            name = widened(narrow, wide)
            assert (name is not None) == (place < other)
            if name is not None:
                row = by_name(name)
                assert row is not None
                assert not row.raises
                assert row.schema.arguments[0].type is narrow
                assert row.schema.returns[0].type is wide
    assert widened(typed("str"), typed("int")) is None
    assert widened(typed("int"), typed("str")) is None


def test_samples_are_of_the_types_of_the_schema() -> None:
    """The first argument of most samples says its type by itself."""
    for row in ROWS:
        formal = row.schema.arguments[0].type if row.schema.arguments else AnyType
        if str(formal) in ("int", "float", "complex", "bool", "str", "Tensor"):
            for sample in row.samples:
                args, _ = sample_arguments(sample)
                assert type_of(args[0]) is formal, (row.name, sample)
