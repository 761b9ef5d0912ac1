"""Parameters and defaults of functions, as schemas."""

import enum
from typing import Any, Optional, Union

import pytest

from everyorder.runtime.errors.script import MalformedProgram
from everyorder.runtime.schema.declared import Namespace
from everyorder.runtime.schema.types import AnyType, IntType, NoneType_
from everyorder.runtime.script.frontend import (
    Annotations,
    FunctionSignature,
    read_function,
    read_signature,
    scope_of,
)
from everyorder.runtime.script.types.python_classes import PythonClasses
from everyorder.runtime.tensors import Tensor, tensor
from tests.coded import coded
from tests.script.frontend.programs import frontend

UnfitParameter = coded(MalformedProgram, "UnfitParameter")


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


def signature_of(function: Any, owner: Any = None) -> FunctionSignature:
    one = read_function(function)
    scope = scope_of(function, one, PythonClasses(Namespace()))
    return read_signature(Annotations(one, scope), function, owner)


COUNT = 2
WEIGHTS = tensor([2, 2])


def several(
    x: Tensor,
    n: int = COUNT,
    f: float = 3,
    o: Optional[int] = None,  # noqa: UP045  # as programs do
    s: str = "a" * 2,
    xs: list[float] = [1, 2.5],  # noqa: B006  # as above
    t: tuple[int, list[bool]] = (1, [True]),
    u: Union[str, int, None] = 3,  # noqa: UP007  # as above
    c: complex = 2j,
    a: Any = None,
    colour: Colour = Colour.GREEN,
    *,
    last: bool,
) -> None:
    pass


def weighted(x: Tensor, w: Tensor = WEIGHTS):  # type: ignore[no-untyped-def]  # as people write them
    return x


@pytest.mark.spec("script 6.2", "parameters and defaults")
def test_a_signature_is_a_schema() -> None:
    found = signature_of(several)
    assert str(found.schema()) == (
        'several(Tensor x, int n=2, float f=3., int? o=None, str s="aa", '
        "float[] xs=[1., 2.5], (int, bool[]) t=[1, [True]], Union(int, str)? u=3, "
        "complex c=0.+2.j, Any a=None, "
        "__torch__.tests.script.frontend.test_signature.Colour colour=Colour.GREEN, "
        "*, bool last) -> NoneType"
    )
    values = [each.default for each in found.arguments]
    assert (type(values[2]), values[5], values[6]) == (float, (1.0, 2.5), (1, (True,)))
    assert found.returns is NoneType_


def test_a_tensor_is_a_default_that_is_itself() -> None:
    found = signature_of(weighted)
    assert found.arguments[1].default is WEIGHTS
    assert found.returns is None
    assert str(found.schema(IntType)) == "weighted(Tensor x, Tensor w=<Tensor>) -> int"
    other = tensor([2, 2])
    again = weighted.__defaults__
    try:
        weighted.__defaults__ = (other,)
        assert signature_of(weighted).arguments != found.arguments
    finally:
        weighted.__defaults__ = again
    assert signature_of(weighted).arguments == found.arguments


def test_defaults_are_those_that_the_function_has_now() -> None:
    def f(x: int, y: int = 1) -> int:
        return x

    f.__defaults__ = (5, 7)
    assert str(signature_of(f).schema()) == "f(int x=5, int y=7) -> int"
    f.__defaults__ = ("a", 7)
    with pytest.raises(UnfitParameter) as caught:
        signature_of(f)
    error = caught.value
    assert error.source.text[slice(*error.span)] == "x: int"
    f.__defaults__ = None
    assert str(signature_of(f).schema()) == "f(int x, int y) -> int"


def test_the_object_of_a_method_has_the_type_that_is_given() -> None:
    class C:
        def method(self, x):  # type: ignore[no-untyped-def]  # as people write them
            return x

        def without() -> int:  # type: ignore[misc]  # as people forget
            return 1

    assert str(signature_of(C.method, AnyType).schema(IntType)) == (
        "method(Any self, Tensor x) -> int"
    )
    assert str(signature_of(C().method).schema(IntType)) == (
        "method(Tensor self, Tensor x) -> int"
    )
    with pytest.raises(UnfitParameter) as caught:
        signature_of(C.without, AnyType)
    assert "the parameter `self` is missing" in str(caught.value)
    assert str(caught.value).endswith("Write `def without(self)`.")


@pytest.mark.parametrize(
    ("written", "schema"),
    [
        ("x, /, y: int = -3", "Tensor x, int y=-3"),
        ("x: float = 3", "float x=3."),
        ("x: List[int] = []", "int[] x=[]"),
        ("x: Tuple[int, str] = (1, 'a')", '(int, str) x=[1, "a"]'),
        ("x: Optional[Dict[str, int]] = None", "Dict(str, int)? x=None"),
        ("x: complex = 1 + 2j", "complex x=1.+2.j"),
        ("x: None = None", "NoneType x=None"),
        ("x: Any = 'a'", 'Any x="a"'),
        ("x: Optional[Tensor] = None, *, y", "Tensor? x=None, *, Tensor y"),
    ],
)
def test_defaults_in_a_text_are_constants(written: str, schema: str) -> None:
    (found,) = frontend(f"def f({written}) -> int:\n    return 1\n")
    assert str(found.schema()) == f"f({schema}) -> int"


@pytest.mark.spec("script 6.2", "parameters and defaults")
@pytest.mark.parametrize(
    "written",
    [
        "x: bool = 1",
        "x: int = False",
        "x: float = None",
        "x: str = 3",
        "x: Tensor = None",
        "x: Tensor = 1.5",
        "x: List[int] = 3",
        "x: List[int] = [1.5]",
        "x: Tuple[int, int] = (1,)",
        "x: Tuple[int] = [1]",
        "x: Union[int, str] = 2.5",
        "x: int = {1}",
        "x: List[Dict[str, int]] = [{}]",
        "x: int = -y",
    ],
)
def test_other_defaults_are_refused(written: str) -> None:
    with pytest.raises(UnfitParameter) as caught:
        frontend(f"def f({written}):\n    return 1\n")
    assert caught.value.parameter == "x"
    place = slice(*caught.value.span)
    assert caught.value.source.text[place] == written.split(" = ")[1]


def test_a_default_of_a_union_is_converted_only_if_no_member_has_it() -> None:
    def whole(x: Union[float, int] = 1, y: Union[float, str] = 1) -> None:  # noqa: UP007  # as programs do
        pass

    values = [each.default for each in signature_of(whole).arguments]
    assert [(type(each), each) for each in values] == [(int, 1), (float, 1.0)]


def test_a_default_that_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)

    def holds(x: list[int] = endless) -> None:
        pass

    with pytest.raises(UnfitParameter, match="which no schema has"):
        signature_of(holds)


def test_more_defaults_than_parameters_are_the_last_ones() -> None:
    def f(x: int, y: int = 0) -> None:
        pass

    f.__defaults__ = (1, 2, 3)
    assert [each.default for each in signature_of(f).arguments] == [2, 3]
