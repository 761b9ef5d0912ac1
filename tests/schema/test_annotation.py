"""Which Python annotation means which schema type."""

import typing
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, Generic, Literal, Optional, TypeVar, Union

import pytest

from runtime.errors.schema import SchemaError
from runtime.schema.annotation import (
    TensorStandIn,
    annotated_type,
    register_annotation,
    register_wrapper,
    result_types,
)
from runtime.schema.parser import parse_type
from runtime.schema.types import (
    AnyType,
    AwaitType,
    FloatType,
    FutureType,
    IntType,
    RRefType,
    StrType,
    Type,
)
from tests.coded import coded

AnnotationTaken = coded(SchemaError, "AnnotationTaken")

T = TypeVar("T")


class Tensor:
    """Only a name for the type checker: annotations in quotes are never evaluated."""


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (int, "int"),
        (float, "float"),
        (bool, "bool"),
        (complex, "complex"),
        (str, "str"),
        (None, "NoneType"),
        (type(None), "NoneType"),
        (Any, "Any"),
        ("Tensor", "Tensor"),
        ("int", "int"),
        (TensorStandIn, "Tensor"),
        (list[int], "int[]"),
        (typing.List[int], "int[]"),  # noqa: UP006  # the old spelling is read too
        (Sequence["Tensor"], "Tensor[]"),
        (typing.Sequence[float], "float[]"),
        (tuple[int, ...], "int[]"),
        (tuple[int, str], "(int, str)"),
        (dict[str, int], "Dict(str, int)"),
        (Optional["Tensor"], "Tensor?"),
        (list["Tensor | None"], None),
        (list[Optional["Tensor"]], "Tensor?[]"),
        (int | None, "int?"),
        (Union[int, str], "Union(int, str)"),  # noqa: UP007  # as above
        (int | float, "Scalar"),
        (int | float | bool | complex, "Scalar"),
        (int | float | None, "Scalar?"),
        (int | bool, "Union(int, bool)"),
        (Annotated[int, "note"], "int"),
        (IntType, "int"),
        (object, None),
        (list, None),
        (typing.List, None),  # noqa: UP006  # as above
        (tuple[()], None),
        (set[int], None),
        (Literal["Tensor"], None),
        (Callable[[int], int], None),
        (list[object], None),
        (int | object, None),
        ("Elsewhere", None),
        (3, None),
    ],
)
def test_types(annotation: Any, text: str | None) -> None:
    found = annotated_type(annotation)
    assert (None if found is None else str(found)) == text


@pytest.mark.parametrize(
    ("annotation", "texts"),
    [
        (None, []),
        (int, ["int"]),
        (tuple[int, str], ["int", "str"]),
        (tuple[int, ...], ["int[]"]),
        (list[tuple[int, str]], ["(int, str)[]"]),
        (tuple[int, str] | None, ["(int, str)?"]),
        (object, None),
    ],
)
def test_results(annotation: Any, texts: list[str] | None) -> None:
    found = result_types(annotation)
    assert (None if found is None else list(map(str, found))) == texts


class Promise(Generic[T]):
    """Stands for the futures of a higher area."""


class Lazy(Generic[T]):
    """Stands for the awaits of a higher area."""


register_wrapper(Promise, FutureType)
register_wrapper(Lazy, AwaitType, AnyType)


class Program:
    """Says what names in quotes and classes mean, and nothing else."""

    def written(self, text: str) -> Type | None:
        return parse_type(text)

    def declared(self, python: type) -> Type | None:
        return StrType if python is Tensor else None


@pytest.mark.parametrize(
    ("annotation", "alone", "in_a_program"),
    [
        (Promise[int], "Future(int)", "Future(int)"),
        (Promise, None, None),
        (Lazy, "Await(Any)", "Await(Any)"),
        (Lazy[Lazy[int]], "Await(Await(int))", "Await(Await(int))"),
        (list[Lazy], "Await(Any)[]", "Await(Any)[]"),  # type: ignore[type-arg]  # bare
        (int | float, "Scalar", "Union(float, int)"),
        (int | float | None, "Scalar?", "Union(float, int)?"),
        (int | float | complex, "Scalar", "Scalar"),
        (tuple[int, ...], "int[]", None),
        (tuple[()], None, "()"),
        (dict[str, int], "Dict(str, int)", "Dict(str, int)"),
        (dict[None, int], "Dict(NoneType, int)", None),
        (Final[int], "int", "int"),
        ("Dict(str, int)", None, "Dict(str, int)"),
        (Optional["t"], None, "t?"),  # noqa: F821  # a name of schemas
        (Tensor, None, "str"),
        (list[Tensor], None, "str[]"),
        (object, None, None),
    ],
)
def test_a_resolver_says_what_annotations_of_a_program_mean(
    annotation: Any, alone: str | None, in_a_program: str | None
) -> None:
    for resolver, text in ((None, alone), (Program(), in_a_program)):
        found = annotated_type(annotation, resolver)
        assert (None if found is None else str(found)) == text


def test_a_wrapper_means_one_thing() -> None:
    register_wrapper(Lazy, AwaitType, AnyType)
    with pytest.raises(AnnotationTaken) as caught:
        register_wrapper(Lazy, AwaitType)
    assert (caught.value.name, caught.value.known) == ("Lazy", "Await(Any)")
    with pytest.raises(AnnotationTaken) as caught:
        register_wrapper(Lazy, RRefType, IntType)
    assert (caught.value.name, caught.value.wanted) == ("Lazy", "RRef(int)")


def test_registered_classes_and_their_subclasses() -> None:
    class Base: ...

    class Derived(Base): ...

    assert annotated_type(Derived) is None
    register_annotation(Base, StrType)
    register_annotation(Base, StrType)
    assert annotated_type(Derived) == StrType
    with pytest.raises(AnnotationTaken) as caught:
        register_annotation(Base, FloatType)
    assert str(caught.value) == (
        "The annotation Base means str in schemas already; it cannot also mean float."
    )
    with pytest.raises(AnnotationTaken) as caught:
        register_annotation(int, FloatType)
    assert (caught.value.name, caught.value.known) == ("int", "int")
