"""Custom classes: only registered ones may be named."""

import pytest

from runtime.errors.schema import SchemaError, SchemaSyntaxError
from runtime.schema.declaration import is_registered_class, register_class
from runtime.schema.parser import parse_schema
from tests.coded import code

TEXT = "f(__torch__.torch.classes.lib.{} x) -> ()"


def test_a_registered_class_parses() -> None:
    register_class("lib.Known")
    register_class("lib.Known")
    text = TEXT.format("Known")
    assert str(parse_schema(text)) == text
    assert is_registered_class("lib.Known")


def test_another_class_is_an_error_until_it_is_registered() -> None:
    with pytest.raises(SchemaSyntaxError) as caught:
        parse_schema(TEXT.format("Late"))
    assert (
        str(caught.value)
        == """\
no class lib.Late is registered
    f(__torch__.torch.classes.lib.Late x) -> ()
      ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~^
Register the class before a schema names it."""
    )
    register_class("lib.Late")
    assert parse_schema(TEXT.format("Late")).arguments[0].name == "x"


@pytest.mark.parametrize("name", ["Bare", "a.b.C", "a.", "a.1", "a. b", "ä.B", ""])
def test_malformed_names(name: str) -> None:
    with pytest.raises(SchemaError, check=code("MalformedClassName")) as caught:
        register_class(name)
    assert str(caught.value) == (
        f"{name!r} cannot name a custom class.\n"
        "A name is two identifiers joined by a dot: namespace.Class"
    )
