import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everyorder.runtime.errors.registration import KeyMisuse
from everyorder.runtime.keys import (
    AUTOCAST_KEYS,
    AUTOGRAD_KEYS,
    DEFAULT_EXCLUDED,
    DEFAULT_INCLUDED,
    FULL,
    LOCAL,
    SLOTS,
    DispatchKey,
    KeySet,
    effective_bits,
    exclude_keys,
    force_keys,
    include_keys,
    preserve_keys,
    set_excluded,
    set_included,
)
from tests.coded import code

K = DispatchKey
RUNTIME = st.sampled_from(SLOTS[1:])
START = (0x404000000, 0x3FF << 39)
Switch = Callable[[DispatchKey, bool], None]
SWITCHES: list[tuple[Switch, str]] = [
    (set_included, "included"),
    (set_excluded, "excluded"),
]
# Each with keys that it changes, and that no thread starts with.
GUARDS: list[Callable[[], Any]] = [
    lambda: include_keys(K.CUDA),
    lambda: exclude_keys(K.Tracer),
    preserve_keys,
    lambda: force_keys(K.CUDA, K.Tracer),
]
NAMES = ["include_keys", "exclude_keys", "preserve_keys", "force_keys"]
PAIRS = list(zip(GUARDS, NAMES, strict=True))


def both() -> tuple[int, int]:
    return LOCAL.included, LOCAL.excluded


@pytest.fixture(autouse=True)
def _as_found() -> Iterator[None]:
    """Each test leaves the thread as it found it, if it passes or not."""
    with preserve_keys():
        yield


def test_a_thread_starts_with_the_defaults() -> None:
    assert both() == START == (DEFAULT_INCLUDED.bits, DEFAULT_EXCLUDED.bits)
    seen: list[tuple[int, int]] = []
    with include_keys(K.SparseMeta), exclude_keys(K.Python):
        set_included(K.Tracer, True)
        thread = threading.Thread(target=lambda: seen.append(both()))
        thread.start()
        thread.join()
    assert seen == [START]


def test_another_thread_changes_nothing_here() -> None:
    def leave_traces() -> None:
        include_keys(K.CUDA).__enter__()
        set_excluded(K.CPU, True)

    thread = threading.Thread(target=leave_traces)
    thread.start()
    thread.join()
    assert both() == START


def test_effective_bits_of_a_plain_call() -> None:
    tensor = KeySet(K.CPU, K.ADInplaceOrView, K.AutogradCPU, K.AutocastCPU)
    assert KeySet.from_bits(effective_bits(tensor.bits)) == KeySet(
        K.CPU, K.ADInplaceOrView, K.AutogradCPU, K.BackendSelect
    )


def test_exclusion_beats_inclusion_but_keeps_backends() -> None:
    with include_keys(K.SparseMeta), exclude_keys([K.SparseMeta, K.BackendSelect]):
        assert (
            effective_bits(K.CPU.bits) == KeySet(K.Meta, K.CPU, K.ADInplaceOrView).bits
        )


@given(st.integers(0, FULL.bits), RUNTIME, RUNTIME)
def test_effective_is_the_algebra_of_sets(
    bits: int, added: DispatchKey, taken: DispatchKey
) -> None:
    with include_keys(added), exclude_keys(taken):
        included, excluded = (KeySet.from_bits(each) for each in both())
        expected = (KeySet.from_bits(bits) | included) - excluded
        assert effective_bits(bits) == expected.bits


def test_what_guards_accept() -> None:
    with include_keys(K.Tracer):
        assert LOCAL.included == START[0] | 1 << 38
    with include_keys(KeySet(K.Dense)):
        assert LOCAL.included == START[0] | 1 << 16
    with exclude_keys((K.Tracer, K.Python)):
        assert LOCAL.excluded == START[1] | 1 << 38 | 1 << 28
    assert both() == START


def test_guards_restore_after_an_exception() -> None:
    with pytest.raises(ZeroDivisionError), include_keys(K.CUDA), exclude_keys(K.CPU):
        raise ZeroDivisionError
    assert both() == START


def test_a_guard_leaves_what_it_did_not_add() -> None:
    with include_keys([K.BackendSelect, K.Tracer]), exclude_keys(AUTOCAST_KEYS):
        assert both() == (START[0] | 1 << 38, START[1])
    assert both() == START


def test_one_guard_can_be_entered_again_inside_itself() -> None:
    inclusion, exclusion = include_keys(K.CUDA), exclude_keys(K.Tracer)
    with inclusion, exclusion:
        inside = both()
        with inclusion, exclusion:
            assert both() == inside
        assert both() == inside
    assert both() == START


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_guards_over_distinct_keys_end_in_any_order(order: tuple[int, ...]) -> None:
    guards = [
        include_keys(K.SparseMeta),
        include_keys(K.Tracer),
        include_keys([K.Python, K.QuantizedCUDA]),
    ]
    for guard in guards:
        guard.__enter__()
    for index in order:
        guards[index].__exit__()
    assert both() == START


@given(st.lists(st.tuples(st.booleans(), st.sets(RUNTIME, max_size=3)), max_size=6))
def test_nested_guards_restore_exactly(plan: list[tuple[bool, set[K]]]) -> None:
    before = both()
    with ExitStack() as stack:
        for included, keys in plan:
            guard = include_keys(keys) if included else exclude_keys(keys)
            stack.enter_context(guard)
            held = LOCAL.included if included else LOCAL.excluded
            assert KeySet.from_bits(held).has_all(KeySet(keys))
    assert both() == before


def test_forced_sets() -> None:
    with include_keys(K.CUDA):
        before = both()
        with force_keys(K.BackendSelect, AUTOCAST_KEYS | AUTOGRAD_KEYS):
            assert both() == (1 << 26, 0x3FF << 39 | 0b111 << 35)
            set_included(K.SparseMeta, True)
        assert both() == before
        # The switch of the inside is forgotten with the inside.
        set_included(K.SparseMeta, False)
        assert both() == before


def test_preserved_sets() -> None:
    set_included(K.SparseMeta, True)
    before = both()
    with preserve_keys():
        set_included(K.SparseMeta, False)
        set_excluded(K.Tracer, True)
        assert both() != before
    assert both() == before
    set_included(K.SparseMeta, False)
    assert both() == START


@pytest.mark.parametrize(("switch", "which"), SWITCHES)
def test_a_switch_leaves_no_backend_bit_behind(switch: Switch, which: str) -> None:
    before = both()
    switch(K.SparseMeta, True)
    assert getattr(LOCAL, which) & K.SparseMeta.bits == K.SparseMeta.bits
    switch(K.SparseMeta, False)
    assert both() == before
    assert (
        effective_bits(K.CPU.bits)
        == KeySet(K.CPU, K.BackendSelect, K.ADInplaceOrView).bits
    )


@pytest.mark.parametrize(("switch", "which"), SWITCHES)
@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_switches_share_bits_and_end_in_any_order(
    order: tuple[int, ...], switch: Switch, which: str
) -> None:
    keys = [K.SparseMeta, K.QuantizedMeta, K.SparseCUDA, K.Python]
    before = both()
    for key in keys:
        switch(key, True)
    on = set(keys)
    for index in order:
        switch(keys[index], False)
        on -= {keys[index]}
        held = KeySet.from_bits(getattr(LOCAL, which))
        assert held.has_all(KeySet(on))
    assert both() == before


@given(st.lists(RUNTIME, max_size=5))
def test_switches_undone_in_reverse_restore_exactly(keys: list[DispatchKey]) -> None:
    for switch, which in SWITCHES:
        before = both()
        done = []
        for key in keys:
            if not KeySet.from_bits(getattr(LOCAL, which)).has(key):
                switch(key, True)
                done.append(key)
        for key in reversed(done):
            switch(key, False)
        assert both() == before


def test_switching_is_idempotent() -> None:
    set_included(K.SparseMeta, True)
    once = both()
    set_included(K.SparseMeta, True)
    assert both() == once
    set_included(K.SparseMeta, False)
    set_included(K.SparseMeta, False)
    assert both() == START


def test_a_default_can_be_switched_off_and_on() -> None:
    set_excluded(K.AutocastCPU, False)
    assert LOCAL.excluded == START[1] & ~(1 << 39)
    assert effective_bits(K.AutocastCPU.bits) & 1 << 39
    set_excluded(K.AutocastCPU, True)
    assert both() == START


def test_switching_off_what_a_guard_brought() -> None:
    with include_keys(K.SparseMeta):
        set_included(K.SparseMeta, False)
        # As with `KeySet.remove`, the backend bit is left to its owner, the guard.
        assert LOCAL.included == START[0] | 1 << 15
    assert both() == START


def test_a_guard_inside_a_switch_takes_only_its_own() -> None:
    set_included(K.SparseMeta, True)
    with include_keys([K.SparseMeta, K.Tracer]):
        pass
    set_included(K.SparseMeta, False)
    assert both() == START


@pytest.mark.parametrize(("make", "name"), PAIRS, ids=NAMES)
def test_a_guard_is_left_in_its_own_thread_only(
    make: Callable[[], Any], name: str
) -> None:
    def suspended() -> Iterator[None]:
        with make():
            yield

    generator: Any = suspended()
    next(generator)
    guard = make()
    guard.__enter__()
    entered = both()
    found: list[Any] = []

    def end() -> None:
        with make():
            set_included(K.SparseMeta, True)
            before = LOCAL.view, LOCAL.switched_in, LOCAL.switched_out
            for leave in (generator.close, guard.__exit__):
                with pytest.raises(
                    KeyMisuse, check=code("GuardLeftElsewhere")
                ) as refused:
                    leave()
                found.append(str(refused.value))
            after = LOCAL.view, LOCAL.switched_in, LOCAL.switched_out
            found.append(after == before)

    thread = threading.Thread(target=end)
    thread.start()
    thread.join()
    text = f"""\
`{name}` was entered in another thread: a guard belongs to the thread that
entered it, and the keys of this one stay as they are.
  to do: leave it where it was entered; a generator that is suspended inside of
          it: close or exhaust it in that thread"""
    assert [" ".join(each.split()) for each in found[:-1]] == 2 * [
        " ".join(text.split())
    ]
    assert found[-1] is True
    # Here nothing was taken back, and the guard can be left still.
    assert both() == entered
    guard.__exit__()
    with pytest.raises(KeyMisuse, check=code("GuardNotEntered")):
        guard.__exit__()


@pytest.mark.parametrize(("make", "name"), PAIRS, ids=NAMES)
def test_a_guard_is_left_once_for_each_time(make: Callable[[], Any], name: str) -> None:
    guard = make()
    with guard, guard:
        pass
    with include_keys(K.Python):
        before = both()
        with pytest.raises(KeyMisuse, check=code("GuardNotEntered")) as refused:
            guard.__exit__()
        assert both() == before
    assert (
        str(refused.value)
        == f"""\
`{name}` is left more often than it was entered.
  to do: leave it once for each time it was entered, as `with` does"""
    )
    assert both() == START
