"""The formats of spec 6.1 to 6.3, byte for byte; fingerprints are complete.

Every field of a state, changed by itself, changes the fingerprint; one that is added to
a state and not named here fails `test_all_fields_are_here`.
"""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest

from everyorder.runtime.dispatch import (
    Dispatcher,
    Library,
    boxed,
    fallthrough,
    fingerprint,
)
from everyorder.runtime.dispatch.dispatch_table import (
    Fallbacks,
    Table,
    fallbacks_of,
    masks_of,
    recipe_of,
)
from everyorder.runtime.dispatch.registration_record import (
    Claim,
    ClassRule,
    Definition,
    DispatchArgPositions,
    Fallback,
    Implementation,
    Reservation,
    Subscription,
    read_definition,
    read_kernel,
)
from everyorder.runtime.dispatch.state import (
    DispatcherState,
    OperatorEntry,
    entry_fingerprint,
    listed_keys,
    table_reading,
)
from everyorder.runtime.keys import SLOTS, DispatchKey
from everyorder.runtime.schema import OperatorName, parse_schema
from tests.dispatch.samples import FOO, Ear, bare, defined, says, silent, t_t

pytestmark = pytest.mark.spec("dispatch 9.2", "14 the orders of both dumps")

# The example of the format, with the description of every kernel given.
EXAMPLE = """\
name: test::foo
schema: test::foo(Tensor x) -> Tensor
debug: registered at /dev/null:0
alias analysis kind: FROM_SCHEMA
CPU: impl_t_t :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]
AutogradCPU: impl_t_t :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]
Autograd[alias]: impl_t_t :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]
CompositeImplicitAutograd[alias]: impl_t_t :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]
"""


def test_the_example() -> None:
    d = bare()
    library = Library("test", "DEF", dispatcher=d, origin="registered at /dev/null:0")
    for key in ("Autograd", "AutogradCPU", None, "CPU"):
        library.impl("foo", t_t, key, debug="impl_t_t")
    library.define(FOO)
    assert d.dump_state("test::foo") == EXAMPLE


def test_without_a_schema_there_is_no_debug_and_no_kind() -> None:
    d = bare()
    library = Library("test", "IMPL", dispatcher=d, origin="here")
    library.impl("foo", t_t, "CPU", debug="k")
    assert d.dump_state("test::foo") == (
        "name: test::foo\n"
        "schema: (none)\n"
        "CPU: k :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]\n"
    )


def test_kinds_of_kernels() -> None:
    d = bare()
    library = defined(d)
    library.impl("foo", fallthrough, "AutogradCPU")
    library.impl("foo", says(0), "CPU", debug="python")
    library.impl("foo", boxed(says(0), "stack"), "CUDA")
    library.impl("foo", t_t, "Meta")
    assert d.dump_state("test::foo").splitlines()[4:] == [
        "CPU: python :: (none) [ boxed ]",
        "CUDA: stack (here) :: (none) [ boxed ]",
        "Meta: t_t (here) :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]",
        "AutogradCPU: here :: (none) [ fallthrough boxed ]",
    ]


def test_overloads_and_inactive_kernels() -> None:
    d = bare()
    library = defined(d, "foo.over(Tensor x) -> Tensor")
    for name in ("old", "new"):
        library.impl("foo.over", says(0), "Autograd", debug=name)
        library.impl("foo.over", says(0), "CPU", debug=name)
    assert d.dump_state("test::foo.over").splitlines() == [
        "name: test::foo.over",
        "schema: test::foo.over(Tensor x) -> Tensor",
        "debug: here",
        "alias analysis kind: FROM_SCHEMA",
        "CPU: new :: (none) [ boxed ]",
        "CPU (inactive): old :: (none) [ boxed ]",
        "Autograd[alias]: new :: (none) [ boxed ]",
        "Autograd[alias] (inactive): old :: (none) [ boxed ]",
    ]


def test_keys_stand_in_the_order_of_their_values() -> None:
    order = (
        *("BackendSelect", "AutogradOther", "Tracer", "PythonDispatcher", "CPU"),
        *("CUDA", "Meta", "SparseCPU", "AutogradCPU", "Autograd"),
        *("CompositeImplicitAutograd", "FuncTorchBatchedDecomposition"),
        *("CompositeImplicitAutogradNestedTensor", "CompositeExplicitAutograd"),
        "CompositeExplicitAutogradNonFunctional",
    )
    d = bare()
    library = defined(d)
    for key in reversed(order):
        library.impl("foo", says(0), key, debug="k")
    lines = d.dump_state("test::foo").splitlines()[4:]
    assert tuple(line.split(":")[0].removesuffix("[alias]") for line in lines) == order


@pytest.mark.parametrize(
    ("alias", "kind"),
    [
        ("", "FROM_SCHEMA"),
        ("FROM_SCHEMA", "FROM_SCHEMA"),
        ("CONSERVATIVE", "CONSERVATIVE"),
        ("PURE_FUNCTION", "PURE_FUNCTION"),
    ],
)
def test_alias_kinds(alias: str, kind: str) -> None:
    d = bare()
    with Library("test", "DEF", dispatcher=d) as library:
        library.define(FOO, alias)
        line = d.dump_state("test::foo").splitlines()[3]
    assert line == f"alias analysis kind: {kind}"


def test_fallbacks_and_tags_are_not_in_the_state() -> None:
    d = silent()
    with Library("test", "DEF", dispatcher=d, origin="here") as library:
        library.define(FOO, tags=("core", "pointwise"))
        assert d.dump_state("test::foo") == (
            "name: test::foo\n"
            "schema: test::foo(Tensor x) -> Tensor\n"
            "debug: here\n"
            "alias analysis kind: FROM_SCHEMA\n"
        )


def test_unknown_operators_print_nothing() -> None:
    d = silent()
    assert d.dump_state("test::foo") == ""
    assert d.dump_table("test::foo") == ""


def test_the_table_has_undefined_first_and_then_the_order_of_sets() -> None:
    d = silent()
    library = defined(d)
    for key in ("AutogradCPU", "CPU", "SparseCPU", "Meta", "Tracer"):
        library.impl("foo", says(0), key, debug=key)
    library.impl("foo", fallthrough, "QuantizedCPU", debug="skipped")
    library.impl("foo", says(0), "CompositeImplicitAutograd", debug="composite")
    lines = d.dump_table("test::foo").splitlines()
    shown = [line.split(": ")[0] for line in lines]
    assert shown == [key.name for key in SLOTS if key.name in shown]
    assert shown[:3] == ["Undefined", "CPU", "CUDA"]
    by_key = dict(line.split(": ", 1) for line in lines)
    assert by_key["QuantizedCPU"] == "fallthrough skipped [kernel]"
    assert by_key["ADInplaceOrView"] == "fallthrough built in [backend fallback]"
    assert by_key["AutogradOther"] == (
        "ambiguous_autogradother [ambiguous autogradother]"
    )
    assert by_key["AutogradCPU"] == "AutogradCPU [kernel]"
    assert by_key["Undefined"] == "composite [math kernel]"
    assert "Python" not in by_key


def test_a_table_byte_for_byte() -> None:
    d = bare()
    library = Library("test", "IMPL", dispatcher=d, origin="here")
    library.impl("foo", says(0), "CPU", debug="fn_cpu")
    library.impl("foo", fallthrough, "AutogradCPU", debug="skip")
    assert d.dump_table("test::foo") == (
        "CPU: fn_cpu [kernel]\nAutogradCPU: fallthrough skip [kernel]\n"
    )


def test_listed_keys_leave_undefined_out() -> None:
    d = bare()
    library = Library("test", "IMPL", dispatcher=d)
    library.impl("foo", says(0), "AutogradCPU")
    library.impl("foo", says(0), "CompositeExplicitAutogradNonFunctional")
    library.impl("foo", fallthrough, "Tracer")
    entry = d.entry("test::foo")
    assert entry is not None
    keys = listed_keys(table_reading(entry.table))
    assert "Undefined" not in keys
    assert keys[0] == "CPU"
    assert keys[-2:] == ("AutogradCPU", "Tracer")
    assert [DispatchKey[name].slot for name in keys] == sorted(
        DispatchKey[name].slot or 0 for name in keys
    )


def test_equal_entries_share_one_rendering() -> None:
    texts = []
    for _ in range(2):
        d = bare()
        library = defined(d)
        library.impl("foo", t_t, "CPU")
        texts.append((d.dump_state("test::foo"), d.dump_table("test::foo")))
        library.close()
    assert texts[0][0] is texts[1][0]
    assert texts[0][1] is texts[1][1]


NAME = OperatorName("test::foo")
CPU = DispatchKey.CPU


def said(*given: object) -> None:
    """A rule."""


def rich() -> Dispatcher:
    """A dispatcher in which nothing is empty."""
    d = silent()
    library = defined(d)
    library.impl("foo", t_t, "CPU", debug="old")
    library.impl("foo", says(0), "CPU", debug="new")
    library.impl("foo", says(0), "Autograd", debug="autograd")
    library.reserve("foo")
    library.rule("foo", Ear, said, debug="rule")
    KEPT.append(library)
    KEPT.append(d.add_listener(Ear(), "ear"))
    return d


# Libraries end what they registered when they are lost.
KEPT: list[object] = []


def entry(state: DispatcherState) -> OperatorEntry:
    found = state.entry(NAME)
    assert found is not None
    return found


def with_entry(state: DispatcherState, **changes: Any) -> DispatcherState:
    changed = entry(state)._replace(**{"memo": {}, **changes})
    return state._replace(namespaces={"test": {"test::foo": changed}})


def with_table(state: DispatcherState, **changes: Any) -> DispatcherState:
    return with_entry(state, table=entry(state).table._replace(**changes))


def with_kernel(state: DispatcherState, **changes: Any) -> DispatcherState:
    """The state whose newest CPU kernel reads differently; its table follows."""
    first, second = entry(state).implementations[CPU]
    facts = replace(first.reading.facts, **changes.pop("facts", {}))
    given = {"operator": NAME, "key": CPU, "debug": "new", "keyset": False, **changes}
    other = Implementation(read_kernel(facts=facts, **given), first.kernel)
    table = entry(state).table
    kernels = tuple([other if k is first else k for k in table.kernels])
    return with_entry(
        state,
        implementations={**entry(state).implementations, CPU: (other, second)},
        table=table._replace(kernels=kernels),
    )


def redefined(text: str, debug: str = "here", tags: tuple[str, ...] = ()) -> Definition:
    held = parse_schema(text)
    kind = entry(rich().snapshot()).definitions[0].schema.alias_kind
    assert kind is not None
    return Definition(read_definition(held.with_alias_kind(kind), debug, tags))


def swapped_lines(state: DispatcherState) -> DispatcherState:
    recipe = entry(state).table.recipe
    first, *others = recipe.lines
    changed = replace(first, provenance="nested kernel")
    return with_table(state, recipe=replace(recipe, lines=(changed, *others)))


def fallback(keys: tuple[DispatchKey, ...] = (CPU,), debug: str = "b") -> Fallbacks:
    return fallbacks_of((Fallback(keys, fallthrough, debug),))


BASE = fallback()
SCHEMA = "test::foo(Tensor x) -> Tensor"

# name of the changed field -> the change; the name says Class.field.
CHANGES: dict[str, Callable[[DispatcherState], DispatcherState]] = {
    "DispatcherState.namespaces": lambda s: s._replace(namespaces={}),
    "DispatcherState.fallbacks": lambda s: s._replace(fallbacks=BASE),
    "DispatcherState.claims": lambda s: s._replace(claims=()),
    "DispatcherState.subscriptions": lambda s: s._replace(subscriptions=()),
    "DispatcherState.merges_alias_kinds": lambda s: s._replace(merges_alias_kinds=True),
    "OperatorEntry.name": lambda s: with_entry(s, name=OperatorName("test::bar")),
    "OperatorEntry.definitions": lambda s: with_entry(s, definitions=()),
    "OperatorEntry.implementations": lambda s: with_entry(
        s, implementations={CPU: entry(s).implementations[CPU]}
    ),
    "OperatorEntry.reservations": lambda s: with_entry(s, reservations=()),
    "OperatorEntry.rules": lambda s: with_entry(s, rules=()),
    "OperatorEntry.total": lambda s: with_entry(s, total=7),
    "OperatorEntry.extractor": lambda s: with_entry(
        s, extractor=DispatchArgPositions((), ())
    ),
    "OperatorEntry.table": lambda s: with_entry(
        s, table=entry(s).table._replace(masks=masks_of(2))
    ),
    "DispatchArgPositions.tensors": lambda s: with_entry(
        s, extractor=DispatchArgPositions((1,), ())
    ),
    "DispatchArgPositions.lists": lambda s: with_entry(
        s, extractor=DispatchArgPositions((0,), (1,))
    ),
    "Table.recipe": lambda s: with_table(s, recipe=recipe_of((CPU,))),
    "Table.kernels": lambda s: with_table(
        s, kernels=tuple(reversed(entry(s).table.kernels))
    ),
    "Table.fallbacks": lambda s: with_table(s, fallbacks=BASE),
    "Table.masks": lambda s: with_table(s, masks=masks_of(4)),
    "Line.provenance": swapped_lines,
    "Definition.schema": lambda s: with_entry(
        s, definitions=(redefined("test::foo(Tensor y) -> Tensor"),)
    ),
    "Definition.debug": lambda s: with_entry(
        s, definitions=(redefined(SCHEMA, "there"),)
    ),
    "Definition.tags": lambda s: with_entry(
        s, definitions=(redefined(SCHEMA, tags=("core",)),)
    ),
    "Definition.alias_kind": lambda s: with_entry(
        s, definitions=(Definition(read_definition(parse_schema(SCHEMA), "here")),)
    ),
    "Implementation.debug": lambda s: with_kernel(s, debug="newer"),
    "Implementation.keyset": lambda s: with_kernel(s, keyset=True),
    "Implementation.convention": lambda s: with_kernel(s, facts={"suffix": " :: ?"}),
    "Implementation.order": lambda s: with_entry(
        s,
        implementations={
            **entry(s).implementations,
            CPU: tuple(reversed(entry(s).implementations[CPU])),
        },
    ),
    "Reservation.debug": lambda s: with_entry(
        s, reservations=(Reservation(NAME, "there"),)
    ),
    "ClassRule.cls": lambda s: with_entry(
        s, rules=(ClassRule(NAME, Dispatcher, said, "rule"),)
    ),
    "ClassRule.debug": lambda s: with_entry(
        s, rules=(ClassRule(NAME, Ear, said, "another"),)
    ),
    "Claim.namespace": lambda s: s._replace(claims=(Claim("other", "here"),)),
    "Claim.debug": lambda s: s._replace(claims=(Claim("test", "there"),)),
    "Subscription.debug": lambda s: s._replace(
        subscriptions=(Subscription(s.subscriptions[0].listener, "another"),)
    ),
}


@pytest.mark.parametrize("field", CHANGES)
def test_every_field_counts(field: str) -> None:
    state = rich().snapshot()
    assert fingerprint(CHANGES[field](state)) != fingerprint(state)


def test_all_fields_are_here() -> None:
    named = {name.partition(".")[0]: set[str]() for name in CHANGES}
    for name in CHANGES:
        owner, _, field = name.partition(".")
        named[owner].add(field)
    # `memo` holds pure functions of its entry and is no state.
    assert named["OperatorEntry"] == set(OperatorEntry._fields) - {"memo"}
    assert named["DispatcherState"] == set(DispatcherState._fields)
    assert named["Table"] == set(Table._fields)
    assert named["DispatchArgPositions"] == {
        field.name for field in fields(DispatchArgPositions)
    }


@pytest.mark.parametrize(
    "other",
    [
        fallback((DispatchKey.CUDA,)),
        fallback(debug="c"),
        fallback((CPU, DispatchKey.CUDA)),
        fallbacks_of((Fallback((CPU,), boxed(says(0)), "b"),)),
    ],
    ids=["key", "debug", "keys", "kernel"],
)
def test_every_field_of_a_fallback_counts(other: Fallbacks) -> None:
    state = DispatcherState(fallbacks=BASE)
    assert fingerprint(state) == fingerprint(state._replace(fallbacks=fallback()))
    assert fingerprint(state) != fingerprint(state._replace(fallbacks=other))


def test_the_same_registrations_have_the_same_fingerprint() -> None:
    assert fingerprint(rich().snapshot()) == fingerprint(rich().snapshot())


def test_registering_again_returns_to_the_very_same_value() -> None:
    d = rich()
    before = fingerprint(d.snapshot())
    with Library("test", "IMPL", dispatcher=d, origin="here") as library:
        library.impl("foo", says(0), "CUDA", debug="cuda")
        library.impl("bar", says(0), "CUDA", debug="cuda")
        inside = fingerprint(d.snapshot())
    assert fingerprint(d.snapshot()) == before != inside


def test_what_is_not_ordered_does_not_count() -> None:
    found = set()
    for order in (("CPU", "CUDA"), ("CUDA", "CPU")):
        d = silent()
        libraries = [
            Library("test", "IMPL", key, dispatcher=d, origin=key) for key in order
        ]
        for library in libraries:
            library.impl("foo", t_t)
            library.reserve("foo")
        found.add(fingerprint(d.snapshot()))
    assert len(found) == 1


def test_an_entry_remembers_its_part() -> None:
    held = entry(rich().snapshot())
    assert entry_fingerprint(held) is entry_fingerprint(held)
    assert "fingerprint" in held.memo
