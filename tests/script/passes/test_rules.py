"""Every rule of the peephole, run on values before and after."""

import math
from itertools import product
from typing import Any

import pytest

from runtime.schema.types import BoolType, FloatType, IntType, StrType
from runtime.script.passes import RULES
from runtime.script.passes.peephole import Call, Known, Rule, Term
from runtime.script.primitives import by_name

VALUES: dict[Any, tuple[Any, ...]] = {
    BoolType: (True, False),
    IntType: (0, 1, -1, 2, 63, 64, 7, -8, 2**62, 2**63 - 1, -(2**63)),
    FloatType: (0.0, -0.0, 1.0, -1.5, 5e-324, 1e308, math.inf, -math.inf, math.nan),
    StrType: ("", "a", "é\x00b"),
}


def words(term: Term) -> str:
    if isinstance(term, str):
        return term
    if isinstance(term, Known):
        return repr(term.value)
    name = term.kind.removeprefix("script::")
    return f"{name}({', '.join(map(words, term.inputs))})"


def run(term: Term, values: dict[str, Any]) -> Any:
    if isinstance(term, str):
        return values[term]
    if isinstance(term, Known):
        return term.value
    row = by_name(term.kind)
    assert row is not None, term.kind
    return row.function(*(run(each, values) for each in term.inputs))


def told(term: Term, values: dict[str, Any]) -> tuple[type, str]:
    try:
        value = run(term, values)
    except Exception as error:
        return type(error), str(error)
    return type(value), repr(value)


def differs(rule: Rule) -> list[dict[str, Any]]:
    """The values for which before and after are not the same."""
    names = [*rule.types]
    return [
        values
        for each in product(*(VALUES[rule.types[name]] for name in names))
        for values in [dict(zip(names, each, strict=True))]
        if told(rule.before, values) != told(rule.after, values)
    ]


@pytest.mark.parametrize(
    "rule", RULES, ids=lambda rule: f"{words(rule.before)} is {words(rule.after)}"
)
def test_before_and_after_are_the_same_for_all_values(rule: Rule) -> None:
    assert differs(rule) == []


def test_no_rule_is_there_twice() -> None:
    befores = [words(rule.before) for rule in RULES]
    assert len(set(befores)) == len(befores)


@pytest.mark.parametrize(
    ("before", "after", "type_"),
    [
        (Call("script::add.float", ("x", Known(0.0))), "x", FloatType),
        (Call("script::mul.float", ("x", Known(0.0))), Known(0.0), FloatType),
        (Call("script::eq.float", ("x", "x")), Known(True), FloatType),
        (
            Call("script::neg.int", (Call("script::neg.int", ("x",)),)),
            "x",
            IntType,
        ),
        (Call("script::floordiv.int", ("x", "x")), Known(1), IntType),
    ],
)
def test_rules_that_look_right_and_are_not_are_found(
    before: Call, after: Term, type_: Any
) -> None:
    assert differs(Rule({"x": type_}, before, after))
