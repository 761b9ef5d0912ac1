"""The 2020 rule for second definitions (spec 2.8): only where it is asked for."""

from typing import Any

import pytest

from everyorder.runtime.dispatch import (
    Dispatcher,
    Library,
    fingerprint,
)
from everyorder.runtime.errors.registration import Conflict
from everyorder.runtime.schema import parse_schema
from tests.coded import code
from tests.dispatch.samples import FOO, silent


def lib(d: Dispatcher, kind: str = "FRAGMENT", key: str | None = None) -> Library:
    return Library("test", kind, key, dispatcher=d, origin="here")


def keys_of(d: Dispatcher, name: str = "test::foo") -> list[str]:
    entry = d.entry(name)
    return [] if entry is None else sorted(k.name for k in entry.implementations)


def merging() -> Dispatcher:
    return Dispatcher(merges_alias_kinds=True, warns_of_overrides=False)


def unset(text: str = FOO) -> Any:
    return parse_schema(text)


def test_2020_a_definition_may_be_repeated_without_its_kind() -> None:
    d = merging()
    library = lib(d)
    first = library.define(FOO, "PURE_FUNCTION", debug="first")
    second = library.define(unset(), debug="second")
    again = library.define(FOO, "PURE_FUNCTION", debug="again")
    assert d.dump_state("test::foo").splitlines()[2:4] == [
        "debug: again",
        "alias analysis kind: PURE_FUNCTION",
    ]
    again.close()
    assert d.dump_state("test::foo").splitlines()[2] == "debug: first"
    first.close()
    assert d.dump_state("test::foo").splitlines()[2:4] == [
        "debug: second",
        "alias analysis kind: CONSERVATIVE (default)",
    ]
    second.close()
    assert d.op_names() == ()


def test_2020_the_reverse_order_and_two_kinds_are_refused() -> None:
    d = merging()
    library = lib(d)
    with library.define(unset(), debug="first"):
        with pytest.raises(Conflict, check=code("AliasKindConflict")) as caught:
            library.define(FOO, "PURE_FUNCTION", debug="second")
        assert caught.value.fields() == {
            "operator": "test::foo",
            "kind": "PURE_FUNCTION",
            "definition": "second",
            "original_kind": "unset",
            "original": "first",
        }
        library.define(unset(), debug="second").close()
    with (
        library.define(FOO, "PURE_FUNCTION"),
        pytest.raises(Conflict, check=code("AliasKindConflict")),
    ):
        library.define(FOO, "CONSERVATIVE")


def test_2020_another_schema_is_still_a_second_definition() -> None:
    library = lib(merging())
    library.define(FOO)
    with pytest.raises(Conflict, check=code("DuplicateDefinition")):
        library.define(unset("foo(Tensor y) -> Tensor"))


def test_2020_equal_definitions_leave_one_state_in_any_order() -> None:
    found = set()
    for order in (("a", "b", "c"), ("c", "a", "b"), ("b", "c", "a")):
        d = merging()
        library = lib(d)
        for debug in order:
            library.define(FOO, debug=debug)
        found.add((fingerprint(d.snapshot()), d.dump_state("test::foo")))
        library.close()
    assert len(found) == 1


def test_2020_is_off_unless_asked_for() -> None:
    library = lib(silent())
    library.define(FOO)
    with pytest.raises(Conflict, check=code("DuplicateDefinition")):
        library.define(unset())


def test_2020_a_kernel_fits_every_definition_that_may_be_in_force() -> None:
    def i_i(x: int) -> int:
        return x

    d = merging()
    library = lib(d)
    library.define("foo(int x) -> int", "CONSERVATIVE")
    library.define(unset("foo(ScalarType x) -> int"))
    with pytest.raises(Conflict, check=code("SchemaMismatch")) as caught:
        library.impl("foo", i_i, "CPU")
    assert caught.value.schema == "test::foo(ScalarType x) -> int"
