"""Definitions: with a schema, a kernel, or both, and the readings that are kept."""

from typing import Any

import pytest

from everyorder.runtime.dispatch import (
    Dispatcher,
    Library,
    boxed,
    fallthrough,
)
from everyorder.runtime.dispatch import library as library_module
from everyorder.runtime.errors.registration import Conflict, LibraryMisuse
from everyorder.runtime.errors.schema import SchemaError, SchemaSyntaxError
from everyorder.runtime.keys import DispatchKey
from everyorder.runtime.schema import parse_schema
from tests.coded import code
from tests.dispatch.samples import FOO, op, says, silent, t_t, tt_t


def lib(d: Dispatcher, kind: str = "FRAGMENT", key: str | None = None) -> Library:
    return Library("test", kind, key, dispatcher=d, origin="here")


def keys_of(d: Dispatcher, name: str = "test::foo") -> list[str]:
    entry = d.entry(name)
    return [] if entry is None else sorted(k.name for k in entry.implementations)


def test_define_in_an_impl_library() -> None:
    with pytest.raises(LibraryMisuse, check=code("CallRefused")) as caught:
        lib(silent(), "IMPL").define(FOO)
    assert caught.value.fields() == {
        "call": f"define({FOO!r})",
        "library": "Library('test', 'IMPL') here",
        "reason": "an IMPL library defines no operators",
        "remedy": "Define it in a library of kind 'DEF' or 'FRAGMENT'.",
    }


def test_a_second_definition() -> None:
    d = silent()
    library = lib(d)
    library.define(FOO, debug="first")
    with pytest.raises(Conflict, check=code("DuplicateDefinition")) as caught:
        library.define("foo(Tensor y) -> Tensor", debug="second")
    assert caught.value.fields() == {
        "operator": "test::foo",
        "schema": "test::foo(Tensor y) -> Tensor",
        "definition": "second",
        "original_schema": "test::foo(Tensor x) -> Tensor",
        "original": "first",
    }
    library.define("foo.other(Tensor y) -> Tensor")


def test_a_parsed_schema_keeps_its_kind_unless_told_otherwise() -> None:
    d = silent()
    schema = parse_schema(FOO)
    with lib(d) as library:
        library.define(schema)
        line = d.dump_state("test::foo").splitlines()[3]
        assert line == "alias analysis kind: CONSERVATIVE (default)"
    with lib(d) as library:
        library.define(schema, "PURE_FUNCTION")
        line = d.dump_state("test::foo").splitlines()[3]
        assert line == "alias analysis kind: PURE_FUNCTION"


def test_an_unknown_alias_kind() -> None:
    with pytest.raises(SchemaError, check=code("UnknownAliasKind")):
        lib(silent()).define(FOO, "INTERNAL_SPECIAL_CASE")


def test_define_with_a_kernel() -> None:
    d = silent()
    with lib(d) as library:
        held = library.define(FOO, kernel=t_t, debug="k")
        assert d.dump_state("test::foo").splitlines()[1:] == [
            "schema: test::foo(Tensor x) -> Tensor",
            "debug: here",
            "alias analysis kind: FROM_SCHEMA",
            "CompositeImplicitAutograd[alias]: k :: (Tensor _0) -> Tensor _0 "
            "[ boxed unboxed ]",
        ]
        held.close()
        assert d.op_names() == ()


def test_define_by_inference() -> None:
    d = silent()
    with lib(d) as library:
        library.define("foo", kernel=tt_t)
        assert d.dump_state("test::foo").splitlines()[1:4] == [
            "schema: test::foo(Tensor _0, Tensor _1) -> Tensor _0",
            "debug: here",
            "alias analysis kind: CONSERVATIVE",
        ]


@pytest.mark.parametrize("kernel", [says(1), fallthrough, boxed(says(1), "lambda")])
def test_define_by_inference_from_a_kernel_that_tells_nothing(kernel: Any) -> None:
    with pytest.raises(LibraryMisuse, check=code("CannotInfer")) as caught:
        lib(silent()).define("foo", kernel=kernel)
    name = "fallthrough" if kernel is fallthrough else "lambda"
    assert caught.value.fields() == {
        "call": "define('foo')",
        "operator": "foo",
        "kernel": name,
    }


def test_a_bare_name_without_a_kernel() -> None:
    with pytest.raises(SchemaSyntaxError):
        lib(silent()).define("foo")


def test_tags_are_sorted_and_go_with_the_definition() -> None:
    d = silent()
    library = lib(d)
    library.reserve("foo")
    held = library.define(FOO, tags=["pointwise", "core", "core"])
    assert op(d).tags == ("core", "pointwise")
    held.close()
    assert op(d).tags == ()
    library.define(FOO)
    assert op(d).tags == ()


def test_asking_again_takes_the_same_reading() -> None:
    d = silent()
    library = lib(d)
    states = []
    for _ in range(2):
        with library.define(FOO, "CONSERVATIVE"), library.impl("foo", t_t, "CPU"):
            entry = d.entry("test::foo")
            assert entry is not None
            token = entry.implementations[DispatchKey.CPU][0]
            states.append((entry.definitions[0].reading, token.reading))
    assert states[0][0] is states[1][0]
    assert states[0][1] is states[1][1]


def test_what_a_library_remembers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_module, "REMEMBERED", 20)
    d = silent()
    library = lib(d)
    for number in range(50):
        library.define(f"f{number}(Tensor x) -> Tensor").close()
        library.impl(f"f{number}", t_t, "CPU").close()
        assert len(library._definitions) <= 20
        assert len(library._kernels) <= 20
    assert d.op_names() == ()
