"""Python annotations as schema types, and annotated functions as schemas."""

# The functions that are inferred from are only looked at, so they have no bodies.
# mypy: disable-error-code="empty-body"

from __future__ import annotations

import functools
import gc
import typing
import weakref
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, Generic, Literal, Optional, TypeVar, Union

import pytest

from everyorder.runtime.errors.schema import InferenceError, SchemaError
from everyorder.runtime.keys.keyset import KeySet
from everyorder.runtime.schema.annotation import (
    TensorStandIn,
    annotated_type,
    infer_named_schema,
    kernel_signature,
    register_annotation,
    register_wrapper,
    result_types,
)
from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.schema.parser import parse_type
from everyorder.runtime.schema.signature import Argument
from everyorder.runtime.schema.types import (
    AnyType,
    AwaitType,
    DeviceType,
    FloatType,
    FutureType,
    IntType,
    RRefType,
    ScalarTypeType,
    StrType,
    Type,
)
from tests.coded import coded

AnnotationTaken = coded(SchemaError, "AnnotationTaken")

T = TypeVar("T")


class Unregistered:
    """A class that only the resolver of a program knows."""


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
        return StrType if python is Unregistered else None


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
        (Unregistered, None, "str"),
        (list[Unregistered], None, "str[]"),
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


def test_an_annotation_lasts_until_all_of_its_handles_are_closed() -> None:
    class Base: ...

    first, second = (register_annotation(Base, StrType) for _ in range(2))
    first.close()
    first.close()
    assert annotated_type(Base) == StrType
    second.close()
    assert annotated_type(Base) is None


register_annotation(Device, DeviceType)
register_annotation(DType, ScalarTypeType)

Tensor = Any  # annotations in quotes must not be led astray by it


def _text(fn: Callable[..., Any]) -> str | None:
    schema = kernel_signature(fn).schema
    return None if schema is None else str(schema)


def test_arguments_and_results_are_numbered() -> None:
    def one(x: Tensor, n: int) -> Tensor: ...

    def two(x: Tensor) -> tuple[Tensor, list[int]]: ...

    def none() -> None: ...

    assert _text(one) == "(Tensor _0, int _1) -> Tensor _0"
    assert _text(two) == "(Tensor _0) -> (Tensor _0, int[] _1)"
    assert _text(none) == "() -> ()"


def test_a_leading_keyset_is_no_argument() -> None:
    def kernel(ks: KeySet, x: Tensor) -> Tensor: ...

    def later(x: Tensor, ks: KeySet) -> Tensor: ...

    assert _text(kernel) == "(Tensor _0) -> Tensor _0"
    with pytest.raises(InferenceError) as caught:
        kernel_signature(later)
    assert caught.value.fields() == {
        "function": "later",
        "place": "ks",
        "found": "KeySet",
        "reason": "has an annotation without schema type",
        "remedy": "Use Tensor, int, float, bool, str, or a list, tuple or union of"
        " them.",
    }


def test_what_is_not_annotated_has_no_schema() -> None:
    def plain(x, *args, **kwargs):  # type: ignore[no-untyped-def]  # the point
        ...

    assert kernel_signature(plain).schema is None
    assert kernel_signature(lambda x: x).schema is None
    assert kernel_signature(print).schema is None
    assert kernel_signature(int.__add__).schema is None
    assert kernel_signature(dict).schema is None


def test_other_callables() -> None:
    class Kernel:
        def __call__(self, x: Tensor) -> Tensor: ...

        def method(self, x: Tensor, n: int) -> None: ...

    def two(x: Tensor, n: int) -> None: ...

    @functools.wraps(two)
    def wrapper(*args: Any) -> None: ...

    assert _text(Kernel()) == "(Tensor _0) -> Tensor _0"
    assert _text(Kernel().method) == "(Tensor _0, int _1) -> ()"
    assert _text(functools.partial(two, None)) == "(int _0) -> ()"
    assert _text(wrapper) == "(Tensor _0, int _1) -> ()"


def test_annotated_in_part() -> None:
    def parameter(x: Tensor, n) -> Tensor:  # type: ignore[no-untyped-def]  # the point
        ...

    def result(x: Tensor):  # type: ignore[no-untyped-def]  # the point
        ...

    def many(*values: int) -> int: ...

    def anything(x: Tensor, n: Any) -> Tensor: ...

    def keyset_first(keyset: KeySet, x, n):  # type: ignore[no-untyped-def]  # the point
        ...

    # A kernel that says less than all says nothing; an operator needs to know.
    for each in (parameter, result, many, anything, keyset_first):
        assert kernel_signature(each).schema is None
    assert kernel_signature(keyset_first) == (None, True, ())
    with pytest.raises(InferenceError) as caught:
        infer_named_schema(parameter)
    assert str(caught.value) == (
        "Cannot infer a schema from parameter: `n` has no annotation, but others "
        "have.\n"
        "Annotate every parameter and the result, or nothing at all."
    )
    with pytest.raises(InferenceError) as caught:
        infer_named_schema(result)
    assert str(caught.value) == (
        "Cannot infer a schema from result: its result has no annotation, but "
        "others have.\n"
        "Annotate every parameter and the result, or nothing at all."
    )
    with pytest.raises(InferenceError) as caught:
        infer_named_schema(many)
    assert (caught.value.place, caught.value.reason) == (
        "values",
        "takes any number of values",
    )


def test_annotations_without_schema_type() -> None:
    def parameter(x: set[int]) -> int: ...

    def result(x: int) -> object: ...

    with pytest.raises(InferenceError) as caught:
        kernel_signature(parameter)
    assert (caught.value.place, caught.value.found) == ("x", "set[int]")
    with pytest.raises(InferenceError) as caught:
        kernel_signature(result)
    assert (caught.value.place, caught.value.found) == ("return", "object")


def test_a_quoted_annotation_that_cannot_be_read() -> None:
    def parameter(x: int, y: Missing) -> int: ...  # type: ignore[name-defined]  # noqa: F821  # the point

    def result(x: int) -> 1 / 0: ...  # type: ignore[valid-type]  # the point

    with pytest.raises(InferenceError) as caught:
        kernel_signature(parameter)
    assert caught.value.place == "y"
    assert caught.value.reason == (
        "has an annotation that cannot be read: name 'Missing' is not defined"
    )
    with pytest.raises(InferenceError) as caught:
        kernel_signature(result)
    assert caught.value.place == "return"


def test_the_answer_does_not_keep_the_function() -> None:
    def kernel(x: int) -> int: ...

    schema = kernel_signature(kernel).schema
    assert kernel_signature(kernel).schema == schema
    alive = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert alive() is None


def test_named_schema() -> None:
    def sort(
        x: Tensor,
        sizes: Sequence[int],
        dim: int = -1,
        *,
        dtype: DType = DType.named("float32"),  # noqa: B008  # a default under test
        device: Device | None = None,
        eps: float = 1e-5,
    ) -> tuple[Tensor, int]: ...

    assert str(infer_named_schema(sort)) == (
        "(Tensor x, SymInt[] sizes, SymInt dim=-1, *, ScalarType dtype=6,"
        " Device? device=None, float eps=1.0000000000000001e-05) -> (Tensor, SymInt)"
    )


def test_written_arguments() -> None:
    def fill(
        n: int, x: Tensor, y: Tensor | None, zs: list[Tensor], k: int | None
    ) -> None: ...

    assert str(infer_named_schema(fill, mutates=("x",))) == (
        "(SymInt n, Tensor(a1!) x, Tensor? y, Tensor[] zs, SymInt? k) -> ()"
    )
    unknown = infer_named_schema(fill, mutates="unknown")
    assert str(unknown) == (
        "(SymInt n, Tensor(a1!) x, Tensor(a2!)? y, Tensor(a3!)[] zs, SymInt? k) -> ()"
    )
    assert [argument.is_write for argument in unknown.arguments] == [
        False,
        True,
        True,
        True,
        False,
    ]
    with pytest.raises(InferenceError) as caught:
        infer_named_schema(fill, mutates=("q",))
    assert str(caught.value) == (
        "Cannot infer a schema from fill: `q` is not a parameter.\n"
        "Name parameters in `mutates`."
    )
    with pytest.raises(InferenceError) as caught:
        infer_named_schema(fill, mutates=["n"])
    assert str(caught.value) == (
        "Cannot infer a schema from fill: `n` (SymInt) is written to, but is not a "
        "tensor.\n"
        "Remove it from `mutates`."
    )


@pytest.mark.parametrize("default", [(), float("inf"), 2**63, object()])
def test_defaults_that_no_schema_has(default: object) -> None:
    def fn(x: int = default) -> int: ...  # type: ignore[assignment]  # the point

    with pytest.raises(InferenceError) as caught:
        infer_named_schema(fn)
    assert caught.value.found == type(default).__name__
    assert caught.value.reason == "has a default no schema has"


def test_an_operator_needs_annotations() -> None:
    with pytest.raises(InferenceError) as caught:
        infer_named_schema(lambda x: x)
    assert caught.value.reason == "has no annotation"
    with pytest.raises(InferenceError) as caught:
        infer_named_schema(print)
    assert caught.value.function == "print"


def test_kernels_have_plain_integers_and_no_defaults() -> None:
    def kernel(x: int = 3, *, y: int) -> int: ...

    schema = kernel_signature(kernel).schema
    assert schema is not None
    assert schema.arguments == (Argument("_0", IntType), Argument("_1", IntType))
