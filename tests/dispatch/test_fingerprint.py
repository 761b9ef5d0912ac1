"""Completeness: every field of a state, changed by itself, changes the fingerprint.

A field that is added to a state and not named here fails `test_all_fields_are_here`.
"""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest

from runtime.dispatch import Dispatcher, Library, boxed, fallthrough, fingerprint
from runtime.dispatch.dump import entry_fingerprint
from runtime.dispatch.state import DispatcherState, OperatorEntry
from runtime.dispatch.table import Fallbacks, Table, fallbacks_of, masks_of, recipe_of
from runtime.dispatch.token import (
    Claim,
    ClassRule,
    Definition,
    Extractor,
    Fallback,
    Implementation,
    Reservation,
    Subscription,
    read_definition,
    read_kernel,
)
from runtime.keys import DispatchKey
from runtime.schema import OperatorName, parse_schema
from tests.dispatch.samples import Ear, defined, says, silent, t_t

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
    "OperatorEntry.extractor": lambda s: with_entry(s, extractor=Extractor((), ())),
    "OperatorEntry.table": lambda s: with_entry(
        s, table=entry(s).table._replace(masks=masks_of(2))
    ),
    "Extractor.tensors": lambda s: with_entry(s, extractor=Extractor((1,), ())),
    "Extractor.lists": lambda s: with_entry(s, extractor=Extractor((0,), (1,))),
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
    assert named["Extractor"] == {field.name for field in fields(Extractor)}


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
