"""Which libraries there can be, and what is made of what they are given."""

from typing import Any, cast

import pytest

from everyorder.runtime.dispatch import Dispatcher, Library, fingerprint
from everyorder.runtime.dispatch.kernel import kernel_for
from everyorder.runtime.dispatch.library import origin_of_caller
from everyorder.runtime.errors.registration import LibraryMisuse, LookupFailed
from everyorder.runtime.keys import DispatchKey
from everyorder.runtime.schema import parse_schema
from tests.coded import code
from tests.dispatch.samples import FOO, says, silent


def lib(d: Dispatcher, kind: str = "FRAGMENT", key: str | None = None) -> Library:
    return Library("test", kind, key, dispatcher=d, origin="here")


def keys_of(d: Dispatcher, name: str = "test::foo") -> list[str]:
    entry = d.entry(name)
    return [] if entry is None else sorted(k.name for k in entry.implementations)


@pytest.mark.spec("dispatch 8.4", "test_error_for_unsupported_ns_or_kind")
@pytest.mark.parametrize(
    ("arguments", "reason", "remedy"),
    [
        (
            ("test", "BLOCK"),
            "'BLOCK' is not a kind of library",
            "Kinds: DEF, FRAGMENT, IMPL.",
        ),
        (
            ("_", "DEF"),
            "a DEF library needs a namespace of its own",
            "Only an IMPL library can be in '_', for fallbacks.",
        ),
        (
            ("_", "FRAGMENT"),
            "a FRAGMENT library needs a namespace of its own",
            "Only an IMPL library can be in '_', for fallbacks.",
        ),
        (
            ("a b", "IMPL"),
            "'a b' is not an identifier",
            "A namespace consists of letters, digits and underscores.",
        ),
        (
            ("ä", "DEF"),
            "'ä' is not an identifier",
            "A namespace consists of letters, digits and underscores.",
        ),
        (
            ("prim", "FRAGMENT"),
            "namespace 'prim' is reserved",
            "Choose another namespace; an IMPL library may use this one.",
        ),
        (
            ("test", "DEF", "CPU"),
            "a DEF library has no dispatch key",
            "Name the key in impl(), or open an IMPL library for it.",
        ),
        (
            ("test", "FRAGMENT", DispatchKey.CPU),
            "a FRAGMENT library has no dispatch key",
            "Name the key in impl(), or open an IMPL library for it.",
        ),
    ],
)
def test_a_library_that_cannot_be(arguments: Any, reason: str, remedy: str) -> None:
    d = silent()
    before = fingerprint(d.snapshot())
    with pytest.raises(LibraryMisuse, check=code("LibraryRefused")) as caught:
        Library(*arguments, dispatcher=d)
    assert caught.value.fields() == {
        "call": f"Library({arguments[0]!r}, {arguments[1]!r})",
        "reason": reason,
        "remedy": remedy,
    }
    assert fingerprint(d.snapshot()) == before


def test_an_unknown_key_of_a_library() -> None:
    with pytest.raises(LookupFailed) as caught:
        Library("test", "IMPL", "CPUU")
    assert caught.value.near[0] == "CPU"


def test_impl_libraries_may_be_in_prim_and_any_number_may_exist() -> None:
    d = silent()
    libraries = [Library("prim", "IMPL", dispatcher=d) for _ in range(3)]
    for each in libraries:
        each.impl("foo", says(1), "CPU")
    assert keys_of(d, "prim::foo") == ["CPU"]


def test_undefined_is_no_key_of_a_library() -> None:
    d = silent()
    assert lib(d, "DEF", "Undefined").key is None
    assert lib(d, "IMPL", "Undefined").key is None
    assert lib(d, "IMPL", "CPU").key is DispatchKey.CPU


def test_a_library_prints_itself() -> None:
    assert repr(lib(silent(), "IMPL", "CPU")) == "Library('test', 'IMPL', 'CPU') here"
    assert repr(lib(silent())) == "Library('test', 'FRAGMENT') here"


def test_without_an_origin_it_is_where_the_library_was_opened() -> None:
    d = silent()
    with Library("test", "FRAGMENT", dispatcher=d) as library:
        library.define(FOO)
        line = d.dump_state("test::foo").splitlines()[2]
    file, _, number = library.origin.removeprefix("registered at ").rpartition(":")
    assert line == f"debug: {library.origin}"
    assert (file, number.isdigit()) == (__file__, True)


@pytest.mark.parametrize("kind", ["DEF", "FRAGMENT", "IMPL"])
def test_a_keyword_is_no_namespace(kind: str) -> None:
    with pytest.raises(LibraryMisuse, check=code("LibraryRefused")) as caught:
        Library("class", kind, dispatcher=silent())
    assert caught.value.reason == "'class' is a keyword of the schema language"


@pytest.mark.parametrize(
    ("call", "argument", "expected"),
    [
        (lambda d, _: Library(cast("Any", 5), dispatcher=d), "ns", "a text"),
        (
            lambda d, _: Library("a", dispatcher=d, origin=cast("Any", 5)),
            "origin",
            "a text",
        ),
        (
            lambda d, _: Library("a", "IMPL", cast("Any", 5), dispatcher=d),
            "dispatch_key",
            "a text",
        ),
        (lambda _, lib: lib.define(5), "schema", "a text"),
        (lambda _, lib: lib.define(["f() -> ()"]), "schema", "a text"),
        (lambda _, lib: lib.define(FOO, 5), "alias_analysis", "a text"),
        (lambda _, lib: lib.define(parse_schema(FOO), 5), "alias_analysis", "a text"),
        (lambda _, lib: lib.define(FOO, debug=5), "debug", "a text"),
        (lambda _, lib: lib.define(FOO, tags="core"), "tags", "a list of texts"),
        (lambda _, lib: lib.define(FOO, tags=5), "tags", "a list of texts"),
        (lambda _, lib: lib.define(FOO, tags=[5]), "tags", "a text"),
        (lambda _, lib: lib.impl("foo", says(0), 5), "dispatch_key", "a text"),
        (lambda _, lib: lib.impl("foo", says(0), [5]), "dispatch_key", "a text"),
        (lambda _, lib: lib.impl("foo", says(0), debug=5), "debug", "a text"),
    ],
)
def test_arguments_of_the_wrong_class(call: Any, argument: str, expected: str) -> None:
    d = silent()
    library = lib(d)
    with pytest.raises(LibraryMisuse, check=code("WrongArgument")) as caught:
        call(d, library)
    assert (caught.value.argument, caught.value.expected) == (argument, expected)
    assert str(caught.value).startswith(f"`{argument}` is {expected}; found ")
    assert d.op_names() == ()


def asking() -> str:
    return origin_of_caller()


def test_the_line_that_called() -> None:
    line = test_the_line_that_called.__code__.co_firstlineno + 2
    assert asking() == f"registered at {__file__}:{line}"


def test_a_made_kernel_can_still_be_asked_to_take_the_keyset() -> None:
    kernel = kernel_for("impl()", lambda x: x, False)
    assert not kernel.with_keyset
    assert kernel_for("impl()", kernel, True).with_keyset
    assert kernel_for("impl()", kernel, False) is kernel


def test_a_key_named_twice_gets_one_kernel() -> None:
    d = Dispatcher(builtin_fallbacks=False)
    with Library("test", "FRAGMENT", dispatcher=d) as library:
        library.impl("foo", lambda x: x, ["CPU", "CUDA", "CPU"])
        assert d.snapshot().namespaces["test"]["test::foo"].total == 2
