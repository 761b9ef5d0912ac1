"""Annotations as programs write them, and what is said where they mean nothing."""

import ast
import sys
import typing
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Optional, TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everyorder.runtime import tensor
from everyorder.runtime.errors.schema import AnnotationError
from everyorder.runtime.errors.source import Source
from everyorder.runtime.schema.annotation import annotated_type, register_wrapper
from everyorder.runtime.schema.declared import Namespace
from everyorder.runtime.schema.subtyping import optional, union
from everyorder.runtime.schema.types import (
    AnyType,
    AwaitType,
    DictType,
    IntType,
    ListType,
    NoneType_,
    OptionalType,
    StrType,
    TensorType,
    TupleType,
    Type,
    UnionType,
)
from everyorder.runtime.script.types.annotations import (
    DEEPEST,
    AnnotationReader,
    TypeScope,
)
from everyorder.runtime.script.types.python_classes import PythonClasses

T = TypeVar("T")


class Waiting(Generic[T]):
    """Stands for the awaits of a higher area."""


register_wrapper(Waiting, AwaitType, AnyType)


class Point(NamedTuple):
    x: int
    y: "list[float] | None"


class Plain:
    inner = Point
    items: list[int]


Int = int


def names() -> TypeScope:
    """The scope of this file, in which classes mean what they say."""
    return TypeScope(globals(), classes=PythonClasses(Namespace()))


def read(text: str, scope: TypeScope | None = None) -> Type:
    """What is written behind the colon of an annotated variable."""
    source = Source(f"x: {text}", "p.py")
    (statement,) = ast.parse(source.text).body
    assert isinstance(statement, ast.AnnAssign)
    return AnnotationReader(scope or names(), source).type(statement.annotation)


def refused(text: str, scope: TypeScope | None = None) -> str:
    with pytest.raises(AnnotationError) as caught:
        read(text, scope)
    return str(caught.value)


HERE = "__torch__.tests.script.types.test_annotations"
POINT = f"NamedTuple({HERE}.Point, x: int, y: float[]?)"


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("int", "int"),
        ("None", "NoneType"),
        ("Tensor", "Tensor"),
        ("'Tensor'", "Tensor"),
        ("Any", "Any"),
        ("typing.Any", "Any"),
        ("Optional[int]", "int?"),
        ("typing.Optional['int']", "int?"),
        ("int | None", "int?"),
        ("int | str | None", "Union(int, str)?"),
        ("int | (str | None)", "Union(int, str)?"),
        ("typing.Union[int, None, str]", "Union(int, str)?"),
        ("typing.Union[int]", "int"),
        ("int | float", "Union(float, int)"),
        ("int | float | complex", "Scalar"),
        ("list[int]", "int[]"),
        ("typing.List['Tensor']", "Tensor[]"),
        ("'list[int | None]'", "int?[]"),
        ("'typing.List[\"int\"]'", "int[]"),
        ("'''list[\n    int]'''", "int[]"),
        ("'list' '[int]'", "int[]"),
        ("'\\x69nt'", "int"),
        ("' int '", "int"),
        ("tuple[int, str]", "(int, str)"),
        ("tuple[int]", "(int)"),
        ("typing.Tuple[()]", "()"),
        ("typing.Tuple[int, typing.List[str]]", "(int, str[])"),
        ("dict[str, list[int]]", "Dict(str, int[])"),
        ("typing.Dict[int, Tensor]", "Dict(int, Tensor)"),
        ("typing.Sequence[int]", "int[]"),
        ("typing.Annotated[int, len('a'), 3]", "int"),
        ("typing.Final[int]", "int"),
        ("Waiting[int]", "Await(int)"),
        ("Waiting", "Await(Any)"),
        ("Waiting[Waiting[Tensor]]", "Await(Await(Tensor))"),
        ("Point", POINT),
        ("'Plain.inner'", POINT),
        ("list[Int]", "int[]"),
    ],
)
def test_what_is_written_is_read(text: str, printed: str) -> None:
    assert str(read(text)) == printed


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "list[Tensr]",
            """\
`Tensr` is not defined here:
  p.py:1:9
x: list[Tensr]
        ~~~~~ <--- HERE
Did you mean Tensor?""",
        ),
        (
            "Optional['list[Pont]']",
            """\
`Pont` is not defined here:
  p.py:1:19
x: Optional['list[Pont]']
                  ~~~~ <--- HERE
Did you mean Point?""",
        ),
        (
            "typing.Lst[int]",
            """\
`typing` has no `Lst`:
  p.py:1:4
x: typing.Lst[int]
   ~~~~~~~~~~ <--- HERE
Did you mean List?""",
        ),
        (
            "len",
            """\
`len` means no type:
  p.py:1:4
x: len
   ~~~ <--- HERE""",
        ),
        (
            "list",
            """\
`list` means no type:
  p.py:1:4
x: list
   ~~~~ <--- HERE
Say what it holds, as in `list[...]`.""",
        ),
        (
            "dict[str, typing.Dict]",
            """\
`typing.Dict` means no type:
  p.py:1:14
x: dict[str, typing.Dict]
             ~~~~~~~~~~~ <--- HERE
Say what it holds, as in `typing.Dict[...]`.""",
        ),
        (
            "list[int, str]",
            """\
`list` is made of one type, this gives 2:
  p.py:1:4
x: list[int, str]
   ~~~~~~~~~~~~~~ <--- HERE""",
        ),
        (
            "dict[int]",
            """\
`dict` is made of 2 types, this gives 1:
  p.py:1:4
x: dict[int]
   ~~~~~~~~~ <--- HERE""",
        ),
        (
            "dict[list[int], str]",
            """\
a int[] cannot be the key of a dictionary:
  p.py:1:9
x: dict[list[int], str]
        ~~~~~~~~~ <--- HERE
Keys are Any, Device, Tensor, bool, complex, float, int, str.""",
        ),
        (
            "tuple[int, ...]",
            """\
the length of a tuple is part of its type:
  p.py:1:4
x: tuple[int, ...]
   ~~~~~~~~~~~~~~~ <--- HERE
Write its elements one by one, or take a list.""",
        ),
        (
            "int[3]",
            """\
`int` is not made of other types:
  p.py:1:4
x: int[3]
   ~~~ <--- HERE
Such are list, dict, tuple, Optional, Union, and the like.""",
        ),
        (
            "list[3]",
            """\
`3` is not a type:
  p.py:1:9
x: list[3]
        ~ <--- HERE""",
        ),
        (
            "typing.Union[()]",
            """\
`typing.Union[()]` means no type:
  p.py:1:4
x: typing.Union[()]
   ~~~~~~~~~~~~~~~~ <--- HERE""",
        ),
        (
            "[int]",
            """\
`[int]` is not an annotation:
  p.py:1:4
x: [int]
   ~~~~~ <--- HERE
Annotations are names, `A | B`, and subscripts such as list[int].""",
        ),
        (
            "f(x).y",
            """\
`f(x)` is not an annotation:
  p.py:1:4
x: f(x).y
   ~~~~ <--- HERE
Annotations are names, `A | B`, and subscripts such as list[int].""",
        ),
        (
            "'int) | (str'",
            """\
invalid annotation: unmatched ')':
  p.py:1:5
x: 'int) | (str'
    ~~~~~~~~~~~ <--- HERE
Annotations are names, `A | B`, and subscripts such as list[int].""",
        ),
        (
            "'\\x69nt | \\x5a'",
            """\
`Z` is not defined here:
  p.py:1:4
x: '\\x69nt | \\x5a'
   ~~~~~~~~~~~~~~~ <--- HERE""",
        ),
        (
            "Plain",
            """\
`Plain` means no type:
  p.py:1:4
x: Plain
   ~~~~~ <--- HERE""",
        ),
    ],
)
def test_what_means_nothing_is_refused_with_its_place(text: str, error: str) -> None:
    assert refused(text) == error


def test_places_are_counted_in_characters() -> None:
    assert (
        refused("'dict[str, Größer]'")
        == """\
`Größer` is not defined here:
  p.py:1:15
x: 'dict[str, Größer]'
              ~~~~~~ <--- HERE"""
    )
    assert (
        refused("dict['世界', Größer]", TypeScope({"世界": str}))
        == """\
`Größer` is not defined here:
  p.py:1:15
x: dict['世界', Größer]
                ~~~~~~ <--- HERE"""
    )


def test_an_annotation_may_be_nested_as_deeply_as_a_schema() -> None:
    deep = "list[" * (DEEPEST - 1) + "int" + "]" * (DEEPEST - 1)
    assert str(read(deep)) == "int" + "[]" * (DEEPEST - 1)
    assert refused(f"list[{deep}]").startswith("this annotation is nested too deeply:")
    assert str(read(" | ".join(["int", "str"] * 400))) == "Union(int, str)"
    assert refused("'" + "(" * 5000 + "'").startswith("invalid annotation: ")
    assert "is not an annotation" in refused("-" * 80 + "1")


def test_a_name_is_looked_up_where_the_function_was_written() -> None:
    class Local(NamedTuple):
        x: "Int"

    Alias: Any = Local  # noqa: N806  # a name of the scope

    def function() -> object:
        return Alias, Late

    with pytest.raises(LookupError):
        TypeScope.of(function).find("Late")
    Late = str  # noqa: N806  # has a value only now
    scope = TypeScope.of(function, PythonClasses(Namespace()))
    assert scope.find("Int") is int
    assert (scope.find("Late"), scope.find("len")) == (str, len)
    assert str(read("Alias", scope)) == f"NamedTuple({HERE}.Local, x: int)"
    assert refused("Local", scope).startswith("`Local` is not defined here:")
    inner = scope.within({"Alias": float, "int": str})
    assert (str(read("Alias", inner)), str(read("int", inner))) == ("float", "str")
    assert str(scope.written("list[Alias]")) == f"NamedTuple({HERE}.Local, x: int)[]"


@pytest.mark.parametrize(
    ("meant", "told"),
    [
        ({"A": "A"}, "`A` means itself"),
        ({"A": "list[B]", "B": "A | None"}, "`list[B]` means itself"),
        ({"A": "list[A]"}, "`list[A]` means itself"),
    ],
)
def test_a_name_that_means_itself(meant: dict[str, str], told: str) -> None:
    assert told in refused("A", TypeScope(meant))
    assert told in refused("'A'", TypeScope(meant))


class Hostile:
    """An object of a program that answers nothing."""

    __hash__ = None  # type: ignore[assignment]  # as arrays have it

    def __getattr__(self, name: str) -> Any:
        raise ZeroDivisionError

    def __eq__(self, other: object) -> bool:
        raise ZeroDivisionError


@pytest.mark.parametrize("make", [Hostile, lambda: np.zeros(3), lambda: tensor([1, 2])])
def test_values_in_the_scope_are_not_asked(make: Callable[[], object]) -> None:
    """A program has arrays and the like beside its types."""
    scope = TypeScope({"value": make(), "Values": list})
    assert "`Value` is not defined here" in refused("Value", scope)
    assert "`value` means no type" in refused("value", scope)
    assert "`value` is not made of other types" in refused("value[int]", scope)


def test_an_object_that_is_nested_too_deeply() -> None:
    deep: Any = int
    for _ in range(3 * sys.getrecursionlimit()):
        deep = list[deep]
    assert "`Deep` is nested too deeply" in refused("Deep", TypeScope({"Deep": deep}))


def test_a_name_may_mean_another_one() -> None:
    assert str(read("A", TypeScope({"A": "list[B]", "B": "int"}))) == "int[]"
    assert str(read("tuple[A, 'A', A]", TypeScope({"A": "int"}))) == "(int, int, int)"


def test_objects_of_annotations_mean_the_same() -> None:
    scope = names()
    for annotation, text in (
        (Optional["Point"], f"{POINT}?"),
        (list[Point], f"{POINT}[]"),
        ("dict[str, Point]", f"Dict(str, {POINT})"),
        (typing.ForwardRef("Int"), "int"),
    ):
        assert str(annotated_type(annotation, scope)) == text
    with pytest.raises(AnnotationError) as caught:
        annotated_type("list[Pont]", scope)
    assert (
        str(caught.value)
        == """\
`Pont` is not defined here:
  <text>:1:6
list[Pont]
     ~~~~ <--- HERE
Did you mean Point?"""
    )
    assert (caught.value.found, caught.value.near) == ("Pont", ("Point",))


WRITABLE = st.recursive(
    st.sampled_from((IntType, StrType, NoneType_, TensorType, AnyType)),
    lambda inner: st.one_of(
        inner.map(ListType),
        inner.map(AwaitType),
        inner.filter(lambda each: each is not AnyType).map(optional),
        st.builds(DictType, st.sampled_from((IntType, StrType)), inner),
        st.lists(inner, max_size=3).map(tuple).map(TupleType),
        st.lists(inner, min_size=1, max_size=3).map(union),
    ),
    max_leaves=6,
)


def _written(of: Type, quoted: bool) -> str:
    """A type as Python writes it, its parts in quotes or not."""

    def part(of: Type) -> str:
        text = _written(of, quoted)
        # Quotes inside of quotes double their escapes each time.
        return repr(text) if quoted and len(text) < 30 else text

    if isinstance(of, OptionalType):
        return f"Optional[{part(of.element)}]"
    if isinstance(of, ListType):
        return f"list[{part(of.element)}]"
    if isinstance(of, AwaitType):
        return f"Waiting[{part(of.element)}]"
    if isinstance(of, DictType):
        return f"typing.Dict[{part(of.key)}, {part(of.value)}]"
    if isinstance(of, UnionType):
        return f"({' | '.join(map(part, of.members))})"
    if isinstance(of, TupleType):
        return f"tuple[{', '.join(map(part, of.elements)) or '()'}]"
    return "None" if of is NoneType_ else str(of)


@given(WRITABLE)
def test_what_python_writes_is_read_as_the_type_that_was_meant(of: Type) -> None:
    scope = names()
    for quoted in (False, True):
        text = _written(of, quoted)
        assert read(text, scope) is read(repr(text), scope) is of
    plain = _written(of, False)
    if "|" not in plain and "Tensor" not in plain:
        evaluated = eval(plain, dict(vars(sys.modules[__name__])))
        assert annotated_type(evaluated, scope) is of
