"""Which Python annotation means which schema type."""

import typing
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, Optional, Union

import pytest

from runtime.errors.schema import AnnotationTaken
from runtime.schema.annotation import (
    annotated_type,
    register_annotation,
    result_types,
    tensor_stand_in,
)
from runtime.schema.types import FloatType, IntType, StrType


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
        (tensor_stand_in(), "Tensor"),
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
