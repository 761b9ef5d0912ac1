"""Tags: which exist, and what two of them demand."""

import pytest

from runtime.errors.schema import SchemaError
from runtime.schema.parser import parse_schema
from runtime.schema.schema import TAGS, check_tags
from tests.coded import code, coded

TagMismatch = coded(SchemaError, "TagMismatch")


def test_tags_are_sorted_and_each_is_accepted_by_some_schema() -> None:
    assert list(TAGS) == sorted(TAGS)
    assert len(TAGS) == 24
    out = parse_schema("f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")
    check_tags(out, tuple(tag for tag in TAGS if tag != "inplace"))
    check_tags(parse_schema("f(Tensor(a!) x) -> Tensor(a!)"), ("inplace",))


def test_an_unknown_tag() -> None:
    with pytest.raises(SchemaError, check=code("UnknownTag")) as caught:
        check_tags(parse_schema("f() -> ()"), ("core", "pointwize"))
    assert str(caught.value) == ("There is no tag 'pointwize'. Did you mean pointwise?")
    with pytest.raises(SchemaError, check=code("UnknownTag")) as caught:
        check_tags(parse_schema("f() -> ()"), ("?",))
    assert str(caught.value) == "There is no tag '?'."


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("f(Tensor x) -> Tensor", "it writes to no argument"),
        (
            "f(Tensor(a!) x) -> Tensor(a!)",
            "it writes to `Tensor(a!) x`, which is no keyword-only Tensor",
        ),
        (
            "f(*, Tensor(a!)[] x) -> ()",
            "it writes to `Tensor(a!)[] x`, which is no keyword-only Tensor",
        ),
        ("f(*, Tensor(a!) x) -> ()", "it writes to 1 but returns 0"),
        (
            "f(*, Tensor(a!) x, Tensor(b!) y) -> (Tensor(b!), Tensor(a!))",
            "result 1 is `Tensor(b!)`, not the written `Tensor(a!) x`",
        ),
    ],
)
def test_out(text: str, fault: str) -> None:
    with pytest.raises(TagMismatch) as caught:
        check_tags(parse_schema(text), ("out",))
    assert caught.value.fields() == {
        "tag": "out",
        "schema": str(parse_schema(text)),
        "fault": fault,
    }


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("f() -> ()", "its first argument is no positional Tensor"),
        (
            "f(*, Tensor(a!) x) -> Tensor(a!)",
            "its first argument is no positional Tensor",
        ),
        ("f(int x) -> ()", "its first argument is no positional Tensor"),
        ("f(Tensor x) -> Tensor", "it does not write to its first argument `Tensor x`"),
        (
            "f(Tensor(a!) x, Tensor(b!) y) -> Tensor(a!)",
            "it also writes to `Tensor(b!) y`",
        ),
        ("f(Tensor(a!) x) -> ()", "its one result is not the written `Tensor(a!) x`"),
        (
            "f(Tensor(a!) x, int y) -> Tensor",
            "its one result is not the written `Tensor(a!) x`",
        ),
    ],
)
def test_inplace(text: str, fault: str) -> None:
    with pytest.raises(TagMismatch) as caught:
        check_tags(parse_schema(text), ("inplace",))
    assert caught.value.fault == fault


def test_the_whole_text() -> None:
    with pytest.raises(TagMismatch) as caught:
        check_tags(parse_schema("f(Tensor x) -> Tensor"), ("out",))
    assert (
        str(caught.value)
        == """\
This schema does not fit the tag out: it writes to no argument.
    f(Tensor x) -> Tensor
An out operator writes to keyword-only Tensors and returns exactly those,
in order, with the same annotation: f(*, Tensor(a!) out) -> Tensor(a!)"""
    )
    with pytest.raises(TagMismatch) as caught:
        check_tags(parse_schema("f(Tensor x) -> Tensor"), ("inplace",))
    assert str(caught.value).endswith(
        "\nAn in-place operator writes to its first argument only and returns it,\n"
        "with the same annotation: f(Tensor(a!) self) -> Tensor(a!)"
    )
