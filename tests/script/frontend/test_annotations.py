"""The types that a function is written with: whose names its annotations may use."""

from __future__ import annotations

import ast
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from everyorder.runtime.errors.schema import AnnotationError
from everyorder.runtime.schema.declared import Namespace
from everyorder.runtime.schema.types import Type
from everyorder.runtime.script.frontend import (
    Annotations,
    SourceDefinition,
    read_function,
    read_text,
    scope_of,
)
from everyorder.runtime.script.types.python_classes import PythonClasses
from tests.script.frontend import evaluated
from tests.script.frontend.written import commented, commented_one_by_one, postponed


class Point(NamedTuple):
    x: int
    y: float


POINT = "NamedTuple(__torch__.tests.script.frontend.{}.Point, x: int, y: float)"
Texts = tuple[dict[str, str], str]


def types_of(function: Any, names: Any = None) -> Texts:
    """The types of a function as text, and that of its result."""
    one = read_function(function)
    classes = PythonClasses(Namespace())
    found = Annotations(one, scope_of(function, one, classes, names or {})).signature()
    return (
        {name: str(each) for name, each in found.arguments.items()},
        str(found.returns),
    )


@pytest.mark.spec("script 0.7", "names of annotations")
def test_annotations_are_read_where_they_are_written() -> None:
    assert types_of(postponed) == (
        {
            "a": "int",
            "b": "int[]",
            "c": f"Dict(str, {POINT.format('written')})",
            "d": "Await(Tensor)",
            "e": "int?",
            "f": "Tensor",
        },
        f"(int, {POINT.format('written')})",
    )


@pytest.mark.spec("script 6.2", "type comments")
def test_comments_are_read_as_annotations() -> None:
    typed = {"List": typing.List, "Optional": typing.Optional}  # noqa: UP006  # as above
    assert types_of(commented, typed) == (
        {"a": "int", "b": "str[]", "c": "Tensor"},
        POINT.format("written"),
    )
    arguments, result = types_of(commented_one_by_one, typed)
    assert arguments == {"a": "int", "b": "Tensor", "c": "Tensor?"}
    assert result == "None"


def test_comments_and_annotations_of_variables() -> None:
    one = read_function(commented)
    found = Annotations(one, scope_of(commented, one, PythonClasses(), vars(typing)))
    kinds = [
        str(found.assignment(each)) for each in one.tree.body if is_assignment(each)
    ]
    assert kinds == ["int[]", "None", "None"]


def is_assignment(node: ast.stmt) -> typing.TypeGuard[ast.Assign]:
    return isinstance(node, ast.Assign)


def test_the_first_parameter_says_nothing_for_itself() -> None:
    one = read_function(Method.method)
    found = Annotations(one, scope_of(Method.method, one, PythonClasses())).signature()
    assert found.arguments["self"] is None
    assert types_of(Method().method)[0] == {"self": "None", "x": "Tensor", "y": "int"}


class Method:
    def method(self, x, y: int):  # type: ignore[no-untyped-def]  # as people write them
        return x + y


def maker() -> tuple[Callable[..., Any], Callable[..., Any]]:
    class Point(NamedTuple):
        x: int
        y: float

    number = int

    def used(a: Point, b: number) -> Point:  # type: ignore[valid-type]  # a variable
        return Point(a.x, number(b))

    def postponed(a: Point) -> int:
        return 1

    return used, postponed


@pytest.mark.spec("script 6.4", "names of the function")
def test_names_of_the_function_around_are_known_if_they_are_used() -> None:
    used, unused = maker()
    here = POINT.format("test_annotations")
    assert types_of(used) == ({"a": here, "b": "int"}, here)
    # A variable around it that it does not use is not kept by Python; here it is
    # another class of this name, of the module.
    assert types_of(unused)[0] == {"a": here}
    assert types_of(unused, {"Point": int})[0] == {"a": "int"}


def test_a_variable_around_that_has_no_value_yet_is_unknown() -> None:
    def early(a: Later) -> Any:  # type: ignore[valid-type]  # a variable
        return Later(a)

    with pytest.raises(AnnotationError, match="`Later` is not defined here"):
        types_of(early)
    Later = str  # noqa: N806  # a class
    assert types_of(early)[0] == {"a": "str"}


def test_what_python_has_evaluated_is_known() -> None:
    here = POINT.format("evaluated")
    found = [types_of(each) for each in evaluated.functions()]
    assert [arguments["a"] for arguments, _ in found] == [
        here,
        f"{here}[]",
        f"Dict(str, {here}[])",
        f"{here}?",
        f"Union({here}, int)?",
        here,
    ]
    assert found[-1][1] == f"(int, {here})"


def test_an_alias_means_the_same_everywhere_in_a_function() -> None:
    one = read_function(evaluated.of_alias)
    scope = scope_of(evaluated.of_alias, one, PythonClasses())
    assert scope.find("Text") is evaluated.Text
    assert scope.find("Numbers") is evaluated.Numbers


def test_a_class_in_a_union_hides_what_the_module_has_of_its_name() -> None:
    own = POINT.replace("Point, x: int, y: float", "Text, x: int").format("evaluated")
    found, _ = types_of(evaluated.hidden())
    assert found == {"a": f"{own}?", "b": f"Union({own}, int)"}


def test_names_of_the_class_around_are_known_where_python_knew_them() -> None:
    arguments, _ = types_of(evaluated.Outer.evaluated)
    assert arguments["a"].endswith(".evaluated.Inner, x: int)")
    # Python does not find it there, either, and it is in quotes.
    with pytest.raises(AnnotationError) as caught:
        types_of(evaluated.Outer.quoted)
    text = caught.value.source.text
    assert text[slice(*caught.value.span)] == "Inner"


@pytest.mark.spec("script 0.7", "names of annotations")
@pytest.mark.spec("script 6.4", "unknown names")
def test_what_is_unknown_is_told_at_its_place() -> None:
    def wrong(
        a: int,
        b: typing.List[  # noqa: UP006  # as above
            Pont  # type: ignore[name-defined]  # noqa: F821
        ],
    ) -> int:
        return a

    line = wrong.__code__.co_firstlineno
    with pytest.raises(AnnotationError) as caught:
        types_of(wrong)
    assert str(caught.value) == (
        f"""\
`Pont` is not defined here:
  {__file__}:{line + 3}:13
        a: int,
        b: typing.List[  # noqa: UP006  # as above
            Pont  # type: ignore[name-defined]  # noqa: F821
            ~~~~ <--- HERE
        ],
    ) -> int:
Did you mean Point?"""
    )


def test_any_expression_may_be_a_type() -> None:
    one = read_text("isinstance(x, List[int])", "p.py")
    statement = one.tree.body[0]
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Call)
    definition: SourceDefinition[Any] = SourceDefinition(one.source, one.tree)
    from everyorder.runtime.script.types.annotations import TypeScope

    found: Type = Annotations(definition, TypeScope(vars(typing))).type(
        statement.value.args[1]
    )
    assert str(found) == "int[]"
