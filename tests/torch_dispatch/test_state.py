"""Whatever handlers do, a thread is afterwards as it was; and nothing is kept alive."""

import gc
import tracemalloc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from everyorder import runtime
from everyorder.runtime import python_dispatch
from everyorder.runtime.dispatch import Dispatcher, Library
from everyorder.runtime.keys import LOCAL
from everyorder.runtime.tensors.keys import MODED, STATE
from everyorder.runtime.torch_dispatch import fallback, install_fallbacks
from tests.torch_dispatch.programs import unary
from tests.torch_dispatch.random_programs import EXPECTED, Act, Player, acts, handlers
from tests.torch_dispatch.thread_state import Look, nobody_entered
from tests.torch_dispatch.worlds import Ours, leaves, opened

many = settings(
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def played(program: list[Act], does: Any) -> Player:
    """Play a program; every act of it left the thread as it was."""
    before = Look()
    with opened(Ours) as world:
        player = Player(world, does)
        with suppress(*EXPECTED):
            player.play(program)
        player.close()
    assert player.changed == []
    assert before.unchanged()
    return player


@many
@given(program=acts, does=handlers)
def test_every_program_leaves_the_thread_as_it_was(
    program: list[Act], does: Any
) -> None:
    """C1: include and exclude, mode stack, snapshot, context: the same objects."""
    played(program, does)


@many
@given(program=acts, does=handlers)
def test_and_by_the_general_way(program: list[Act], does: Any) -> None:
    """C1."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fallback, "fast_path", lambda schema, general: None)
        played(program, does)


def test_a_class_that_is_asked_behind_a_mode_leaves_the_context_as_it_was() -> None:
    """Its handler enters another one, and stays there."""
    played(
        [("with", "mode", [("call", 2)])],
        (([], "decline"), ([], "run"), ([], "enters")),
    )


def test_a_program_that_does_everything() -> None:
    """Sometimes: calls, modes and classes are really reached."""
    program: list[Act] = [
        ("call", 1),
        ("with", "mode", [("call", 0), ("with", "the same", [("call", 2)])]),
        ("try", [("with", "but one", [("call", 0)])]),
    ]
    does: Any = (([("call", 0)], "run"), ([("call", 0)], "run"), ([], "decline"))
    player = played(program, does)
    assert player.played == 10
    heard = {line.partition(":")[0] for line in player.world.lines}
    assert heard == {"A", "B", "M", "N"}


def test_the_look_finds_what_is_left() -> None:
    """The test can fail: a mode that is left entered is seen."""
    with opened(Ours) as world:
        before = Look()
        mode = world.mode("M")
        mode.__enter__()
        assert not before.unchanged()
        assert not before.unchanged(entered=True)
        mode.__exit__()
        assert before.unchanged()


@contextmanager
def without_gc() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def test_tensors_modes_and_handlers_die_at_once(world: Ours) -> None:
    """D3: of no circle, so without the garbage collector."""
    op = unary(world)

    class Handler:
        def __call__(self, *given: Any) -> Any:
            return leaves(*given)

    alive = []
    with without_gc():
        answer = Handler()
        mode = world.mode("M", answer)
        x = world.made(world.subclass("A", answer=answer))
        result = op(x)
        with mode:
            op(x)
            op(world.tensor(1.0))
        alive = [weakref.ref(each) for each in (x, mode, result)]
        del x, mode, result
        assert [each() for each in alive] == [None, None, None]
    handler = weakref.ref(answer)
    del answer
    # Classes are circles of their own.
    gc.collect()
    assert handler() is None


def test_classes_die(world: Ours) -> None:
    """D3: nothing here keeps a class of tensors or of modes."""
    op = unary(world)
    cls = world.subclass("A", answer=leaves)
    mode = world.mode("M")
    with mode:
        op(world.made(cls))
    op(world.made(cls))
    alive = [weakref.ref(cls), weakref.ref(type(mode))]
    del cls, mode
    gc.collect()
    assert [each() for each in alive] == [None, None]


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt])
def test_what_was_called_with_dies_after_an_exception(
    world: Ours, error: type[BaseException]
) -> None:
    """D3: as soon as the exception is gone."""
    op = unary(world)

    def fails(*given: Any) -> Any:
        raise error

    with without_gc():
        x, mode = world.made(world.subclass("A", answer=fails)), world.mode("M", fails)
        for inside in (False, True):
            try:
                if inside:
                    with mode:
                        op(x)
                else:
                    op(x)
            except error:
                pass
        alive = [weakref.ref(x), weakref.ref(mode)]
        del x, mode
        assert [each() for each in alive] == [None, None]
        assert not MODED


def test_memory_is_flat(world: Ours) -> None:
    """D3: after 10,000 handled calls there is as much as after 1,000."""
    op, world.heard = unary(world), lambda *given: None  # type: ignore[method-assign]  # lines are memory
    x = world.made(world.subclass("A", answer=lambda *given: plain))
    plain = world.tensor(1.0)
    mode = world.mode("M", lambda *given: plain)

    def calls(count: int) -> None:
        for _ in range(count):
            op(x)
        with mode:
            for _ in range(count):
                op(plain)
        for _ in range(count // 10):
            with mode:
                op(plain)

    calls(500)
    gc.collect()
    tracemalloc.start()
    try:
        calls(500)
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        calls(5_000)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # A byte for each call would be 10,000.
    assert after - before < 2_000


def test_plain_calls_have_the_same_bound_kernel(world: Ours) -> None:
    """No cost for plain tensors: modes and classes change no bound kernel of theirs."""
    op, x = unary(world), world.tensor(1.0)
    for _ in range(20):
        op(x)

    def bound() -> dict[Any, Any]:
        memo = runtime.default_dispatcher().state.find(
            *("everyorder_worlds", "everyorder_worlds::f")
        )
        assert memo is not None
        [views] = [
            held
            for key, held in memo.memo.items()
            if isinstance(held, dict) and LOCAL.view in held
        ]
        return dict(views[LOCAL.view])

    before = bound()
    assert x.key_bits in before
    y = world.made(world.subclass("A", answer=leaves))
    op(y)
    with world.mode("M"):
        op(x)
        op(y)
    op(x)
    after = bound()
    assert {bits: after[bits] for bits in before} == before
    assert all(after[bits] is before[bits] for bits in before)


def test_installing_leaves_the_bound_kernels_of_plain_calls() -> None:
    """No cost for plain tensors: what they run is the same kernel, called the same."""
    dispatcher = Dispatcher()
    library = Library("plain", "DEF", dispatcher=dispatcher)
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", runtime.direct(lambda x: x), "CPU")
    found = dispatcher.find_op("plain::f")
    assert found is not None
    x: Any = runtime.tensor([1.0])

    def bound() -> Any:
        for _ in range(20):
            found(x)
        entry = dispatcher.state.find("plain", "plain::f")
        assert entry is not None
        return (
            entry.memo["caller"]
            ._bound[dispatcher.keyring, False]
            .for_call(entry.memo["caller"].runners.call_bits(x.key_bits))
        )

    before = bound()
    fallbacks = Library("_", "IMPL", dispatcher=dispatcher)
    install_fallbacks(fallbacks)
    assert bound() is before
    fallbacks.close()
    assert bound() is before


def test_the_state_of_a_thread_is_its_own() -> None:
    """7.6: and it starts with nothing."""
    assert (STATE.stack, STATE.snapshot) == ((), None)
    assert python_dispatch.current_modes() == ()
    assert nobody_entered()
