# What is done with tensors gives Any.
# mypy: disable-error-code=no-any-return
"""Schemas of functions: spec 3.13.2, `infer_schema`."""

from collections.abc import Callable, Sequence
from typing import Any, Optional

import pytest

from everyorder.runtime import Device, DType, Tensor
from everyorder.runtime.errors.custom import DefinitionRefused
from everyorder.runtime.errors.schema import InferenceError
from everyorder.runtime.library import infer_schema
from everyorder.runtime.schema.parser import parse_schema
from tests.coded import code
from tests.custom.functions import add_one, double, scale


def numbers(i: int, f: float, b: bool, s: str, n: int | float) -> int:
    return i


def objects(t: DType, d: Device, x: Tensor) -> Tensor:
    return x


def optionals(x: Tensor | None, n: Optional[int], s: str | None = None) -> Tensor:  # noqa: UP045  # both spellings
    raise NotImplementedError


def lists(xs: list[Tensor], ys: Sequence[Tensor | None], ns: list[int]) -> list[Tensor]:
    return xs


def several(x: Tensor) -> tuple[Tensor, int]:
    return x, 1


def defaults(
    x: Tensor, i: int = 3, f: float = 1.5, b: bool = True, s: str = "a"
) -> Tensor:
    return x


def by_name(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return x


def quoted(x: "Tensor", n: "int") -> "Tensor":
    return x


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (numbers, "(SymInt i, float f, bool b, str s, Scalar n) -> SymInt"),
        (objects, "(ScalarType t, Device d, Tensor x) -> Tensor"),
        (optionals, "(Tensor? x, SymInt? n, str? s=None) -> Tensor"),
        (lists, "(Tensor[] xs, Tensor?[] ys, SymInt[] ns) -> Tensor[]"),
        (several, "(Tensor x) -> (Tensor, SymInt)"),
        (
            defaults,
            '(Tensor x, SymInt i=3, float f=1.5, bool b=True, str s="a") -> Tensor',
        ),
        (by_name, "(Tensor x, *, float alpha=1.) -> Tensor"),
        (quoted, "(Tensor x, SymInt n) -> Tensor"),
        (add_one, "(Tensor x) -> ()"),
    ],
)
def test_annotations(function: Callable[..., Any], text: str) -> None:
    assert infer_schema(function, mutates_args=()) == text


def test_defaults_that_are_objects() -> None:
    def made(x: Tensor, t: DType = DType.named("float32"), d: Device = CPU) -> Tensor:  # noqa: B008  # frozen values
        return x

    text = infer_schema(made, mutates_args=(), op_name="made")
    assert text == "made(Tensor x, ScalarType t=6, Device d=cpu) -> Tensor"


CPU = Device.parse("cpu")


def test_the_name_stands_first() -> None:
    assert infer_schema(scale, mutates_args=(), op_name="f").startswith("f(Tensor x, ")


def written(
    x: Tensor, n: int, xs: list[Tensor], maybe: Tensor | None, ys: list[Tensor | None]
) -> None:
    """Writes to any of them."""


@pytest.mark.parametrize(
    ("mutates", "text"),
    [
        (
            (),
            "(Tensor x, SymInt n, Tensor[] xs, Tensor? maybe, Tensor?[] ys) -> ()",
        ),
        (
            ("x", "maybe"),
            "(Tensor(a0!) x, SymInt n, Tensor[] xs, Tensor(a3!)? maybe, "
            "Tensor?[] ys) -> ()",
        ),
        (
            "unknown",
            "(Tensor(a0!) x, SymInt n, Tensor(a2!)[] xs, Tensor(a3!)? maybe, "
            "Tensor(a4!)?[] ys) -> ()",
        ),
    ],
)
def test_mutation(mutates: Any, text: str) -> None:
    found = infer_schema(written, mutates_args=mutates)
    assert found == text
    parsed = parse_schema(f"f{found}")
    marked = {argument.name for argument in parsed.arguments if argument.is_write}
    everything = {"x", "xs", "maybe", "ys"}
    assert marked == (everything if mutates == "unknown" else {*mutates})


def into(x: Tensor, y: Tensor) -> Tensor:
    return x.add_(y)


def out_form(x: Tensor, *, out: Tensor) -> Tensor:
    return out.copy_(x)


def two_outs(x: Tensor, *, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    return a, b


@pytest.mark.parametrize(
    ("function", "mutates", "tags", "text"),
    [
        (into, ("x",), "inplace", "(Tensor(a0!) x, Tensor y) -> Tensor(a0!)"),
        (out_form, ["out"], "out", "(Tensor x, *, Tensor(a1!) out) -> Tensor(a1!)"),
        (
            two_outs,
            {"a", "b"},
            ("out", "pointwise"),
            "(Tensor x, *, Tensor(a1!) a, Tensor(a2!) b) -> (Tensor(a1!), Tensor(a2!))",
        ),
        (into, ("x",), None, "(Tensor(a0!) x, Tensor y) -> Tensor"),
    ],
)
def test_tags(function: Any, mutates: Any, tags: Any, text: str) -> None:
    assert infer_schema(function, mutates_args=mutates, tags=tags) == text


def unannotated(x, n: int) -> Tensor:  # type: ignore[no-untyped-def]  # on purpose
    return x


def nothing_said(x):  # type: ignore[no-untyped-def]  # on purpose
    return x


def no_result(x: Tensor):  # type: ignore[no-untyped-def]  # on purpose
    return x


def any_number(*xs: Tensor) -> Tensor:
    return xs[0]


def odd(x: Tensor, how: complex | bytes) -> Tensor:
    return x


def odd_default(x: Tensor, ns: list[int] = [1]) -> Tensor:  # noqa: B006  # the fault
    return x


def odd_result(x: Tensor) -> bytes:
    return b""


ANNOTATE = "Annotate every parameter and the result, or write the schema yourself."
TYPES = "Use Tensor, int, float, bool, str, or a list, tuple or union of them."


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (
            unannotated,
            "Cannot infer a schema from unannotated: `x` has no annotation, but others "
            f"have.\n{ANNOTATE}",
        ),
        (
            nothing_said,
            "Cannot infer a schema from nothing_said: its result has no annotation.\n"
            f"{ANNOTATE}",
        ),
        (
            no_result,
            "Cannot infer a schema from no_result: its result has no annotation, but "
            f"others have.\n{ANNOTATE}",
        ),
        (
            any_number,
            "Cannot infer a schema from any_number: `xs` takes any number of values.\n"
            "Name each argument.",
        ),
        (
            odd,
            "Cannot infer a schema from odd: `how` (complex | bytes) has an "
            f"annotation without schema type.\n{TYPES}",
        ),
        (
            odd_default,
            "Cannot infer a schema from odd_default: `ns` (list) has a default no "
            "schema has.\nUse None, and fill it in inside.",
        ),
        (
            odd_result,
            "Cannot infer a schema from odd_result: its result (bytes) has an "
            f"annotation without schema type.\n{TYPES}",
        ),
    ],
)
def test_what_has_no_schema(function: Any, text: str) -> None:
    with pytest.raises(InferenceError) as refused:
        infer_schema(function, mutates_args=())
    assert str(refused.value) == text
    assert isinstance(refused.value, ValueError)


@pytest.mark.parametrize(
    ("mutates", "found"),
    [
        ("x", "the text 'x'"),
        (3, "an int"),
        (None, "None"),
        ((1,), "a list with an int"),
    ],
)
def test_what_mutates_args_cannot_be(mutates: Any, found: str) -> None:
    with pytest.raises(DefinitionRefused, check=code("BadMutatesArgs")) as refused:
        infer_schema(double, mutates_args=mutates)
    assert refused.value.fields() == {"found": found}


def test_the_text_of_bad_mutates_args() -> None:
    with pytest.raises(TypeError) as refused:
        infer_schema(double, mutates_args="x")
    assert str(refused.value) == (
        "`mutates_args` is the text 'x', but should be the names of the arguments "
        "that\nthe function writes to.\n"
        "  write: mutates_args=('x',), () for none, or 'unknown' for any tensor"
    )


def test_a_name_that_is_no_parameter() -> None:
    with pytest.raises(DefinitionRefused, check=code("UnknownMutated")) as refused:
        infer_schema(scale, mutates_args=("facto",))
    assert str(refused.value) == (
        "`mutates_args` names `facto`, which is not a parameter of `scale`.\n"
        "  near:       factor\n"
        "  parameters: x, factor"
    )


def test_a_name_that_is_near_nothing() -> None:
    def none() -> None: ...

    with pytest.raises(DefinitionRefused, check=code("UnknownMutated")) as refused:
        infer_schema(none, mutates_args=("self",))
    assert str(refused.value) == (
        "`mutates_args` names `self`, which is not a parameter of `none`.\n"
        "  parameters: none"
    )


def test_a_parameter_that_holds_no_tensors() -> None:
    with pytest.raises(DefinitionRefused, check=code("NotMutable")) as refused:
        infer_schema(scale, mutates_args=("factor",))
    assert str(refused.value) == (
        "`mutates_args` names `factor` of `scale`, which is of type float: only "
        "tensors,\n"
        "and lists of them, are written to.\n"
        "  to do: remove 'factor' from mutates_args"
    )


def lists_out(x: Tensor, *, out: list[Tensor]) -> list[Tensor]:
    return out


@pytest.mark.parametrize(
    ("function", "mutates", "tags", "fault"),
    [
        (
            into,
            ("x",),
            ("inplace", "out"),
            "it has the tag out as well, and an operator is one of the two",
        ),
        (
            into,
            ("x", "y"),
            ("inplace",),
            "an in-place function writes to its first parameter alone",
        ),
        (
            into,
            (),
            ("inplace",),
            "an in-place function writes to its first parameter alone",
        ),
        (
            out_form,
            (),
            ("out",),
            "an out= form writes to keyword-only parameters alone",
        ),
        (
            into,
            ("x",),
            ("out",),
            "an out= form writes to keyword-only parameters alone",
        ),
        (
            lists_out,
            ("out",),
            ("out",),
            "what it writes to and returns must be of type Tensor",
        ),
        (
            add_one,
            ("x",),
            ("inplace",),
            "it should return `x`, and its annotation says otherwise",
        ),
    ],
)
def test_what_is_not_as_its_tag_says(
    function: Any, mutates: Any, tags: Any, fault: str
) -> None:
    with pytest.raises(DefinitionRefused, check=code("TagRefused")) as refused:
        infer_schema(function, mutates_args=mutates, tags=tags)
    assert refused.value.fault == fault


def test_the_text_of_a_refused_tag() -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the text says which
        infer_schema(add_one, mutates_args=("x",), tags="inplace")
    assert str(refused.value) == (
        "`add_one` cannot have the tag inplace: it should return `x`, and its "
        "annotation\nsays otherwise."
    )
