"""Listeners (spec 3.15): who hears what, when, and what their errors do."""

import sys
import threading
from typing import Any

import pytest

from everyorder.runtime.dispatch import Dispatcher, Library, fingerprint
from everyorder.runtime.errors.registration import LibraryMisuse
from tests.coded import code
from tests.dispatch.samples import FOO, Ear, everything, says, silent


def fragment(d: Dispatcher, ns: str = "test") -> Library:
    return Library(ns, "FRAGMENT", dispatcher=d, origin="here")


def test_3_15_only_definitions_are_told_of() -> None:
    d = silent()
    ear = Ear()
    library, wild = fragment(d), Library("_", "IMPL", "CPU", dispatcher=d)
    with d.add_listener(ear) as listening:
        library.reserve("foo")
        library.impl("foo", says(1), "CPU")
        wild.fallback(says(1))
        assert ear.heard == []
        held = library.define(FOO)
        assert ear.heard == ["+test::foo"]
        held.close()
        assert ear.heard == ["+test::foo", "-test::foo"]
        library.define("foo.over(Tensor x) -> Tensor")
        library.close()
        assert ear.heard[2:] == ["+test::foo.over", "-test::foo.over"]
    assert listening.closed
    fragment(d).define(FOO)
    assert len(ear.heard) == 4


def test_3_15_a_new_listener_hears_of_what_is_there_by_name() -> None:
    d = silent()
    library = fragment(d)
    library.define("b(Tensor x) -> Tensor")
    library.define("a(Tensor x) -> Tensor")
    library.impl("c", says(1), "CPU")
    other = fragment(d, "another")
    other.define(FOO)
    ear = Ear()
    with d.add_listener(ear):
        assert ear.heard == ["+another::foo", "+test::a", "+test::b"]
    assert ear.heard == ["+another::foo", "+test::a", "+test::b"]


def test_3_15_listeners_hear_in_the_order_of_subscribing() -> None:
    d = silent()
    heard: list[str] = []
    first, second = Ear("1", heard), Ear("2", heard)
    with d.add_listener(first), d.add_listener(second), fragment(d) as library:
        library.define(FOO)
    assert heard == ["1+test::foo", "2+test::foo", "1-test::foo", "2-test::foo"]
    assert d.snapshot().subscriptions == ()


def test_3_15_the_state_is_published_after_they_agreed() -> None:
    d = silent()
    seen: list[tuple[object, str]] = []

    class Looker(Ear):
        def on_operator_registered(self, name: Any, schema: Any) -> None:
            seen.append((d.find_schema("test::foo"), str(schema)))

        def on_operator_deregistered(self, name: Any, schema: Any) -> None:
            seen.append((d.find_schema("test::foo") is schema, str(schema)))

    with d.add_listener(Looker()), fragment(d) as library:
        library.define(FOO)
    assert seen == [(None, f"test::{FOO}"), (True, f"test::{FOO}")]


def test_3_15_an_error_abandons_and_those_told_hear_the_reverse() -> None:
    d = silent()
    heard: list[str] = []
    ears = [Ear(str(number), heard) for number in range(4)]
    library = fragment(d)
    library.impl("foo", says(1), "CPU")
    handles = [d.add_listener(ear) for ear in ears]
    before = everything(d)
    ears[2].fails_at_registered = ValueError("no")
    ears[0].fails_at_deregistered = OSError("nor back")
    with pytest.raises(ValueError, match="no") as caught:
        library.define(FOO, kernel=says(1))
    assert heard == [
        *("0+test::foo", "1+test::foo", "2+test::foo"),
        *("1-test::foo", "0-test::foo"),
    ]
    assert caught.value.__notes__ == [
        "and a listener failed at the reverse: OSError('nor back')"
    ]
    assert everything(d) == before
    for handle in handles:
        handle.close()


def test_3_15_a_listener_that_fails_at_once_is_not_added() -> None:
    d = silent()
    library = fragment(d)
    for name in ("a", "b", "c"):
        library.define(f"{name}(Tensor x) -> Tensor")
    before = everything(d)

    class Picky(Ear):
        def on_operator_registered(self, name: Any, schema: Any) -> None:
            super().on_operator_registered(name, schema)
            if str(name) == "test::c":
                raise KeyboardInterrupt

    ear = Picky()
    with pytest.raises(KeyboardInterrupt):
        d.add_listener(ear)
    assert ear.heard == ["+test::a", "+test::b", "+test::c", "-test::b", "-test::a"]
    assert everything(d) == before


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_3_15_a_removal_completes_and_the_errors_come_together(
    error: BaseException,
) -> None:
    """What interrupts comes by itself: `except KeyboardInterrupt` sees no group."""
    d = silent()
    before = everything(d)
    library = fragment(d)
    library.define(FOO)
    library.define("bar(Tensor x) -> Tensor")
    ears = [Ear(), Ear(), Ear()]
    handles = [d.add_listener(ear) for ear in ears]
    ears[0].fails_at_deregistered = error
    ears[2].fails_at_deregistered = OSError("nor I")
    with pytest.raises((ExceptionGroup, KeyboardInterrupt)) as caught:
        library.close()
    if isinstance(error, Exception):
        assert isinstance(caught.value, ExceptionGroup)
        assert [type(each) for each in caught.value.exceptions] == [
            *(type(error), OSError),
            *(type(error), OSError),
        ]
    else:
        assert caught.value is error
        assert error.__notes__ == [
            *["and a listener failed: OSError('nor I')"] * 2,
        ]
    assert ears[1].heard[-2:] == ["-test::bar", "-test::foo"]
    for handle in handles:
        handle.close()
    assert everything(d) == before


def test_3_15_registering_inside_a_listener_is_refused() -> None:
    d = silent()
    library, other = fragment(d), fragment(d, "other")
    refused: list[LibraryMisuse] = []

    class Meddler(Ear):
        def on_operator_registered(self, name: Any, schema: Any) -> None:
            for write in (
                lambda: other.define(FOO),
                lambda: other.close(),
                lambda: d.add_listener(Ear()),
                lambda: Library("third", "DEF", dispatcher=d),
                lambda: d.unregister(()),
            ):
                with pytest.raises(
                    LibraryMisuse, check=code("WriteInsideListener")
                ) as caught:
                    write()
                refused.append(caught.value)

    with d.add_listener(Meddler()):
        library.define(FOO)
    assert [error.call for error in refused] == [
        "Dispatcher.register(...)",
        "Library.close()",
        "Dispatcher.register(...)",
        "Dispatcher.register(...)",
        "Dispatcher.unregister(...)",
    ]
    other.define(FOO)
    assert d.op_names() == ("other::foo", "test::foo")


def test_3_15_another_thread_waits_for_the_listener() -> None:
    d = silent()
    library, other = fragment(d), fragment(d, "other")
    order: list[str] = []
    threads: list[threading.Thread] = []

    def late() -> None:
        other.impl("foo", says(1), "CPU")
        order.append("other")

    class Starter(Ear):
        def on_operator_registered(self, name: Any, schema: Any) -> None:
            thread = threading.Thread(target=late)
            thread.start()
            thread.join(0.05)
            order.append("listener")
            threads.append(thread)

    with d.add_listener(Starter()):
        library.define(FOO)
    threads[0].join()
    assert order == ["listener", "other"]


def test_3_15_2020_is_told_once_for_all_definitions() -> None:
    d = Dispatcher(merges_alias_kinds=True)
    library = fragment(d)
    ear = Ear()
    with d.add_listener(ear):
        first, second = library.define(FOO), library.define(FOO)
        assert ear.heard == ["+test::foo"]
        first.close()
        assert ear.heard == ["+test::foo"]
        second.close()
        assert ear.heard == ["+test::foo", "-test::foo"]


def test_errors_while_draining_have_nobody_to_go_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    d = silent()
    before = fingerprint(d.snapshot())
    reported: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)
    ear = Ear()
    library = fragment(d)
    library.define(FOO)
    with d.add_listener(ear):
        ear.fails_at_deregistered = ValueError("no")
        del library
        d.drain()
        assert [(r.exc_type, r.exc_value, r.object) for r in reported] == [
            (ValueError, ear.fails_at_deregistered, d)
        ]
        assert "dropped library" in reported[0].err_msg
    assert fingerprint(d.snapshot()) == before
