"""Dispatchers: what they start with, looking up, counting and publishing (3.7, 3.8)."""

import threading
from collections.abc import Callable
from typing import Any, cast

import pytest

from everyorder.runtime.dispatch import (
    Dispatcher,
    Library,
    default_dispatcher,
    fallthrough,
    fingerprint,
)
from everyorder.runtime.dispatch.dispatcher import BUILTIN, PASSED
from everyorder.runtime.dispatch.state import EMPTY, DispatcherState
from everyorder.runtime.dispatch.transition import ADD
from everyorder.runtime.errors.registration import Conflict, LookupFailed
from everyorder.runtime.errors.schema import SchemaSyntaxError
from everyorder.runtime.keys import (
    AUTOCAST_KEYS,
    AUTOGRAD_KEYS,
    SLOTS,
    DispatchKey,
    exclude_keys,
    members,
)
from everyorder.runtime.schema import OperatorName
from everyorder.runtime.tensors import Tensor, tensor
from tests.coded import code
from tests.dispatch.samples import FOO, bare, defined, everything, op, says, silent


def fragment(d: Dispatcher, ns: str = "test") -> Library:
    return Library(ns, "FRAGMENT", dispatcher=d, origin="here")


def test_a_new_dispatcher_starts_from_the_built_in_state() -> None:
    assert Dispatcher().snapshot() is BUILTIN
    assert Dispatcher(builtin_fallbacks=False).snapshot() is EMPTY
    merging = Dispatcher(merges_alias_kinds=True).snapshot()
    assert merging == EMPTY._replace(
        fallbacks=BUILTIN.fallbacks, merges_alias_kinds=True
    )


def test_the_default_dispatcher_is_one_and_libraries_use_it() -> None:
    found: list[Dispatcher] = []
    threads = [
        threading.Thread(target=lambda: found.append(default_dispatcher()))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {id(each) for each in found} == {id(default_dispatcher())}
    with Library("of_test_dispatcher", "DEF") as library:
        library.define(FOO)
        assert default_dispatcher().find_op("of_test_dispatcher::foo") is not None


def test_3_8_looking_up() -> None:
    d = bare()
    library = fragment(d)
    library.define(FOO)
    library.impl("bar", says(1), "CPU")
    library.reserve("baz")
    names = ("test::bar", "test::baz", "test::foo")
    assert d.op_names() == names
    assert [d.find_op(n) is not None for n in (*names, "test::no")] == [True] * 3 + [
        False
    ]
    assert [str(d.find_schema(n)) for n in (*names, "test::no")] == [
        "None",
        "None",
        "test::foo(Tensor x) -> Tensor",
        "None",
    ]
    assert d.dangling_impls() == ("test::bar",)
    assert d.entry("test::no") is None
    assert d.snapshot().entry(OperatorName("no")) is None


@pytest.mark.parametrize(
    ("name", "implemented", "near"),
    [
        ("test::bar", True, ()),
        ("test::baz", False, ()),
        ("test::fooo", False, ("test::foo",)),
        ("x9::nope", False, ()),
    ],
)
def test_3_8_a_schema_that_is_not_there(
    name: str, implemented: bool, near: tuple[str, ...]
) -> None:
    d = bare()
    library = fragment(d)
    library.define(FOO)
    library.impl("bar", says(1), "CPU")
    library.reserve("baz")
    assert str(d.find_schema_or_raise("test::foo")) == "test::foo(Tensor x) -> Tensor"
    with pytest.raises(LookupFailed, check=code("SchemaNotFound")) as caught:
        d.find_schema_or_raise(name)
    assert caught.value.fields() == {
        "operator": name,
        "implemented": implemented,
        "near": near,
    }


def test_3_8_names_are_parsed() -> None:
    for ask in (bare().find_op, bare().dump_state, bare().find_schema):
        with pytest.raises(SchemaSyntaxError):
            ask("test::foo.default")


def test_3_8_registrations_for_a_key() -> None:
    d = bare()
    library = fragment(d)
    library.define(FOO)
    library.impl("foo", says(1), ["CPU", "Autograd"])
    library.impl("bar", says(1), "CPU")
    assert d.registrations_for("CPU") == ("test::bar", "test::foo")
    assert d.registrations_for(DispatchKey.Autograd) == ("test::foo",)
    assert d.registrations_for("AutogradCPU") == ()
    assert d.registrations_for() == ("test::bar", "test::foo")
    with pytest.raises(LookupFailed, check=code("UnknownKey")):
        d.registrations_for("invalid_key")


def test_3_7_an_entry_lives_while_anything_is_registered() -> None:
    d = silent()
    library = fragment(d)
    counts = []

    def note() -> None:
        entry = d.entry("test::foo")
        counts.append(None if entry is None else (entry.total, len(entry.definitions)))

    held = [
        library.reserve("foo"),
        library.impl("foo", says(1), ["CPU", "CUDA"]),
        library.define(FOO),
    ]
    note()
    for each in held:
        each.close()
        note()
    assert counts == [(4, 1), (3, 1), (1, 1), None]
    assert d.snapshot().namespaces == {}


def test_tokens_come_together_or_not_at_all() -> None:
    d = silent()
    library = fragment(d)
    with library.define(FOO, kernel=says(1)):
        tokens = tuple(d.snapshot().namespaces["test"]["test::foo"].definitions)
    before = everything(d)
    with pytest.raises(KeyError):
        d.register([*tokens, object()])  # type: ignore[list-item]  # that is the mistake
    assert everything(d) == before


# Publishing


def test_a_snapshot_never_changes() -> None:
    d = silent()
    library = defined(d)
    snapshot = d.snapshot()
    before = fingerprint(snapshot)
    library.impl("foo", says(1), "CPU")
    library.close()
    assert snapshot is not d.snapshot()
    assert fingerprint(snapshot) == before
    assert [str(entry.name) for entry in snapshot.entries()] == ["test::foo"]


def test_no_lock_is_held_while_a_kernel_runs() -> None:
    d = silent()
    library = defined(d, "foo(Tensor x) -> int")
    other = fragment(d, "other")

    def registers(x: Any) -> Any:
        other.define(FOO)
        other.close()
        return int(d._lock.locked())

    registers.__annotations__.clear()
    library.impl("foo", registers, "CPU")
    assert op(d).call(tensor(1.0)) == 0
    assert d.op_names() == ("test::foo",)


def test_a_kernel_that_removes_itself_finishes() -> None:
    d = silent()
    library = defined(d, "foo(Tensor x) -> int")

    def ends(x: Any) -> Any:
        library.close()
        return 5

    ends.__annotations__.clear()
    library.impl("foo", ends, "CPU")
    handle = op(d)
    assert handle.call(tensor(1.0)) == 5
    assert d.op_names() == ()


def test_the_trace_of_a_dispatcher() -> None:
    d = silent()
    library = defined(d)
    library.impl("foo", lambda x: x, "CPU")
    with d.trace() as lines:
        op(d).call(tensor([1.0]))
    assert lines == ["[call] op=[test::foo], key=[CPU]"]


class Ending:
    """A kernel whose end runs code of its own."""

    def __init__(self, end: Callable[[], None]) -> None:
        self.end = end

    def __call__(self, x: Tensor) -> Tensor:
        return x

    def __del__(self) -> None:
        self.end()


def test_a_kernel_ends_when_the_lock_is_free() -> None:
    d = silent()
    locked: list[bool] = []
    library = Library("test", "FRAGMENT", dispatcher=d, origin="here")
    library.impl("foo", Ending(lambda: locked.append(d._lock.locked())), "CPU")
    del library
    d.drain()
    assert locked == [False]


def test_what_a_finalizer_closes_inside_of_a_registration_ends_with_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    d = silent()
    library, held = (
        Library("test", "FRAGMENT", dispatcher=d, origin="here") for _ in range(2)
    )
    held.impl("foo", lambda x: x, "CPU")

    class Interrupted:
        """A token whose registration a finalizer interrupts."""

    def interrupt(state: DispatcherState, _token: object) -> DispatcherState:
        held.close()
        return state

    monkeypatch.setitem(ADD, Interrupted, interrupt)
    d.register(cast("Any", [Interrupted()]))
    assert d.op_names() == ("test::foo",)
    d.drain()
    assert d.op_names() == ()
    library.close()


def test_the_fallbacks() -> None:
    fallbacks = Dispatcher().snapshot().fallbacks
    names = {SLOTS[n].name for n, held in enumerate(fallbacks.slots) if held}
    others = {"BackendSelect", "ADInplaceOrView", "FuncTorchVmapMode", "VmapMode"}
    autograd = {key.name for key in members(DispatchKey.Autograd)}
    autocast = {key.name for key in AUTOCAST_KEYS}
    assert names == others | autograd | autocast
    assert {held.kernel for held in fallbacks.tokens} == {fallthrough}
    assert {held.debug for held in fallbacks.tokens} == {"built in"}
    assert "Autograd" in PASSED


def test_a_plain_call_passes_all_of_them() -> None:
    d = silent()
    library = defined(d)
    library.impl("foo", lambda x: x, "CPU")
    x = tensor([1.0], requires_grad=True)
    assert op(d).call(x) is x
    with exclude_keys(AUTOGRAD_KEYS):
        assert op(d).call(x) is x


def test_new_dispatchers_share_one_state() -> None:
    assert Dispatcher().snapshot() is Dispatcher().snapshot()


def test_a_built_in_fallback_cannot_be_closed_and_the_error_knows() -> None:
    library = Library("_", "IMPL", dispatcher=Dispatcher(), origin="here")
    with pytest.raises(Conflict, check=code("DuplicateFallback")) as caught:
        library.fallback(fallthrough, "BackendSelect")
    assert str(caught.value).splitlines()[-1] == (
        "  Use a Dispatcher(builtin_fallbacks=False), which has none. Nothing of "
        "the new one was registered."
    )
