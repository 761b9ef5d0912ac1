"""Contexts: who is in one, what is of it, and how it ends."""

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Tensor, ops
from everyorder.runtime.dispatch import Dispatcher, OperatorHandle
from everyorder.runtime.errors.registration import LibraryMisuse
from everyorder.runtime.errors.torch_dispatch import ContextError, SubclassError
from everyorder.runtime.keys import KeySet
from everyorder.runtime.tensors.keys import HANDLED
from everyorder.runtime.torch_dispatch import (
    MAIN,
    Context,
    TorchDispatchMode,
    current_context,
    current_modes,
)
from everyorder.runtime.torch_dispatch.context import check_wrapped_here
from tests.coded import code, coded
from tests.torch_dispatch.thread_state import Look

ContextClosed = coded(ContextError, "ContextClosed")

core: Any = ops.core

# Nothing here waits so long, unless it waits for ever.
SECONDS = 30


class Wrapping(Tensor):
    """A wrapper whose handler computes with what it wraps, and wraps the result."""

    inner: Any
    _make_wrapper_subclass: Any

    def __new__(cls, inner: Any) -> Any:
        made = cls._make_wrapper_subclass(cls, inner.shape)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        cls.heard(func)
        inner = [each.inner if isinstance(each, Wrapping) else each for each in args]
        return cls(func(*inner, **kwargs))

    @classmethod
    def heard(cls, func: Any) -> None:
        """What the handler does first."""


class Listening(TorchDispatchMode):
    """A mode that writes down the current context and calls on."""

    def __init__(self) -> None:
        self.seen: list[Context] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.seen.append(current_context())
        return func(*args, **kwargs)


@contextmanager
def contexts(*names: str, timeout: float = SECONDS) -> Iterator[list[Context]]:
    made = [Context(name, timeout=timeout) for name in names]
    try:
        yield made
    finally:
        for each in made:
            each.close()


def wrapped(
    context: Context, cls: type[Wrapping] = Wrapping, value: float = 2.0
) -> Any:
    with context:
        return cls(runtime.tensor(value))


@contextmanager
def beside(run: Callable[[], Any]) -> Iterator[list[Any]]:
    """Another thread runs beside the block; its result, or what it raised, is left."""
    left: list[Any] = []

    def caught() -> None:
        try:
            left.append(run())
        except BaseException as error:
            left.append(error)

    thread = threading.Thread(target=caught, daemon=True)
    thread.start()
    try:
        yield left
    finally:
        thread.join(SECONDS)
        assert not thread.is_alive(), "the thread waits for ever"


def test_main_is_there_from_the_start() -> None:
    assert (MAIN.name, MAIN.alive, MAIN.registrar) == ("main", True, True)
    assert current_context() is MAIN
    assert repr(MAIN) == "<Context main>"
    with pytest.raises(ContextError, check=code("MainStaysOpen")) as caught:
        MAIN.close()
    assert str(caught.value) == (
        "`main` is the main context, which cannot be closed.\n"
        "  to do: close its libraries, or the other contexts"
    )
    assert MAIN.alive


def test_a_context_waits_two_seconds_unless_it_is_told_otherwise() -> None:
    with closing(Context("a")) as a, closing(Context("b", timeout=0.5)) as b:
        assert (a.timeout, b.timeout) == (2.0, 0.5)
        assert (a.registrar, b.registrar) == (False, False)


def test_a_context_is_entered_any_number_of_times() -> None:
    with contexts("a", "b") as (a, b):
        with a as entered:
            assert entered is a
            with b, a:
                assert current_context() is a
            assert current_context() is a
            with a:
                assert current_context() is a
            assert current_context() is a
        assert current_context() is MAIN


def test_exceptions_restore_the_current_context() -> None:
    with contexts("a", "b") as (a, b):
        with pytest.raises(ZeroDivisionError), a, b:
            1 / 0  # noqa: B018
        assert current_context() is MAIN


def test_threads_start_in_main() -> None:
    with contexts("a") as (a,), a:
        with beside(current_context) as left:
            pass
        assert left == [MAIN]
        assert current_context() is a


def test_a_context_is_left_innermost_first_and_by_its_thread() -> None:
    text = (
        "The context `a` is exited, and the thread is in `{}`.\n"
        "  to do: enter contexts by `with`, and exit each in the thread that entered it"
    )
    with contexts("a", "b") as (a, b), a:
        with b, pytest.raises(ContextError, check=code("ContextNotEntered")) as caught:
            a.__exit__()
        assert str(caught.value) == text.format("b")
        with beside(a.__exit__) as left:
            pass
        assert str(left[0]) == text.format("main")
        assert current_context() is a


@pytest.mark.spec("dispatch 7.9", "an interpreter for each tensor; closed ones")
def test_a_tensor_is_handled_in_the_context_that_made_it() -> None:
    seen: list[Context] = []

    class Seeing(Wrapping):
        @classmethod
        def heard(cls, func: Any) -> None:
            seen.append(current_context())

    with contexts("a", "b") as (a, b):
        x, y, z = wrapped(a, Seeing), wrapped(b, Seeing), wrapped(MAIN, Seeing)
        before = Look()
        results = [core.mul(each, each) for each in (x, y, z)]
        with b:
            results.append(core.mul(x, 1))
        assert seen == [a, b, MAIN, a]
        # What a handler makes is of its context, too.
        assert [each._context for each in results] == seen
        assert [each.inner.item() for each in results] == [4.0, 4.0, 4.0, 2.0]
        assert before.unchanged()


def test_a_handler_that_raises_leaves_its_context() -> None:
    class Raising(Wrapping):
        @classmethod
        def heard(cls, func: Any) -> None:
            raise ZeroDivisionError

    with contexts("a") as (a,):
        x, before = wrapped(a, Raising), Look()
        with pytest.raises(ZeroDivisionError):
            core.neg(x)
        assert before.unchanged()


def test_a_mode_is_of_the_context_it_was_entered_in() -> None:
    with contexts("a") as (a,):
        inner, outer = Listening(), Listening()
        with outer:
            with a:
                inner.__enter__()
            assert current_modes() == (outer, inner)
            assert (MAIN.modes(), a.modes()) == ((outer,), (inner,))
            with beside(lambda: (MAIN.modes(), a.modes())) as left:
                pass
            runtime.tensor(1.0).neg()
            inner.__exit__()
        assert left == [((), ())]
        assert (outer.seen, inner.seen) == ([MAIN], [a])
        assert a.modes() == ()


def test_classes_are_of_every_context_that_made_a_tensor_of_them() -> None:
    class One(Wrapping):
        pass

    class Other(Wrapping):
        pass

    with contexts("a", "b") as (a, b):
        wrapped(a, One)
        b.register_class(Other)
        assert (a.classes(), b.classes()) == (
            (One,),
            (Other,),
        )
        wrapped(b, One)
        wrapped(a, One)
        b.register_class(One)
        assert (a.classes(), b.classes()) == (
            (One,),
            (Other, One),
        )
        # Plain tensors, and those of classes without handlers, are of none.
        with a:
            runtime.tensor(1.0)
        assert a.classes() == (One,)


class Unhashable(type):
    """Its classes are equal to nothing, and have no hash."""

    def __eq__(cls, other: object) -> bool:
        return False


def test_classes_that_cannot_be_hashed() -> None:
    """Bad input: they are told apart by what they are."""
    kinds: list[Any] = [Unhashable(name, (Wrapping,), {}) for name in "AB"]
    with contexts("a") as (a,):
        for kind in (*kinds, *kinds):
            assert wrapped(a, kind).neg() is not None
            a.register_class(kind)
        assert [each.__name__ for each in a.classes()] == ["A", "B"]


def test_a_tensor_with_the_key_alone_is_of_every_context() -> None:
    """A tensor whose keys were set by hand has no context, and may become any class."""
    x: Any = runtime.tensor([1.0, 2.0])
    x = x.with_keyset(KeySet.from_bits(x.key_bits | HANDLED))
    with contexts("a") as (a,), a:
        made = x.as_subclass(Wrapping)
    assert (type(made), made._context, made.shape) == (Wrapping, a, (2,))


def test_a_context_keeps_no_class_alive() -> None:
    class Gone(Wrapping):
        pass

    class Kept(Wrapping):
        pass

    with contexts("a") as (a,):
        wrapped(a, Gone)
        dead = weakref.ref(Gone)
        del Gone
        gc.collect()
        assert dead() is None
        assert a.classes() == ()
        wrapped(a, Kept)
        assert a.classes() == (Kept,)
        assert len(a.noted) == 1


@pytest.mark.parametrize(
    ("given", "found"),
    [(Tensor, "the class Tensor"), (int, "the class int"), (3, "an int")],
)
def test_only_subclasses_of_tensor_are_classes(given: Any, found: str) -> None:
    with pytest.raises(SubclassError, check=code("NotATensorClass")) as caught:
        MAIN.register_class(given)
    assert caught.value.fields() == {
        "call": "Context.register_class",
        "argument": "cls",
        "expected": "a subclass of Tensor",
        "found": found,
    }


def test_a_tensor_is_not_made_of_one_of_another_context() -> None:
    with contexts("a") as (a,):
        x = wrapped(a)
        with a:
            check_wrapped_here(x, "_make_subclass")
            check_wrapped_here(runtime.tensor(1.0), "_make_subclass")
        check_wrapped_here(runtime.tensor(1.0), "_make_subclass")
        with pytest.raises(ContextError, check=code("WrappedElsewhere")) as caught:
            check_wrapped_here(x, "_make_subclass")
        assert str(caught.value) == (
            "`_make_subclass` was given a `Wrapping` of the context `a` in the "
            "context\n"
            "`main`: the context that handles a tensor never changes.\n"
            "  to do: wrap the inner tensor, or hold it as an attribute"
        )


CLOSED = (
    "`{}` needs the context `a`, which is closed.\n"
    "  to do: release its tensors and modes before it is closed"
)


def test_a_closed_context_is_asked_nothing_new() -> None:
    a = Context("a")
    library = a.library("t", "FRAGMENT", dispatcher=Dispatcher())
    wrapped(a)
    assert a.classes() == (Wrapping,)
    a.close()
    a.close()
    assert not a.alive
    assert repr(a) == "<Context a, closed>"
    assert (a.classes(), a.modes()) == ((), ())
    asked: dict[str, Callable[[], object]] = {
        "Context.library('t', 'DEF')": lambda: a.library("t"),
        "Context.register_class(Wrapping)": lambda: a.register_class(Wrapping),
        "with <Context a, closed>": a.__enter__,
        "define('f() -> ()')": lambda: library.define("f() -> ()"),
        "impl('f', ...)": lambda: library.impl("f", print),
    }
    for words, ask in asked.items():
        with pytest.raises(ContextClosed) as caught:
            ask()
        assert str(caught.value) == CLOSED.format(words)
    library.close()


def test_a_library_that_was_closed_itself_says_so() -> None:
    with contexts("a") as (a,):
        library = a.library("t", "FRAGMENT", dispatcher=Dispatcher())
        library.close()
        with pytest.raises(LibraryMisuse, check=code("LibraryClosed")):
            library.impl("f", print)


@pytest.mark.spec("dispatch 7.9", "an interpreter for each tensor; closed ones")
def test_what_is_of_a_closed_context_is_not_handled() -> None:
    a, mode = Context("a"), Listening()
    x = wrapped(a)
    with a:
        mode.__enter__()
        a.close()
    before = Look()
    with pytest.raises(ContextClosed) as caught:
        runtime.ones(2)
    assert str(caught.value) == CLOSED.format("core.ones.default")
    assert before.unchanged()
    # It is left as ever.
    mode.__exit__()
    assert current_modes() == ()
    before = Look()
    with pytest.raises(ContextClosed) as caught:
        core.mul(x, 2)
    assert str(caught.value) == CLOSED.format("core.mul.default")
    assert before.unchanged()
    assert current_context() is MAIN


def test_a_context_is_left_after_it_was_closed() -> None:
    with contexts("a") as (a,):
        with a:
            a.close()
            assert current_context() is a
        assert current_context() is MAIN


def test_a_call_that_is_running_ends_though_its_context_is_closed() -> None:
    running, go_on = threading.Event(), threading.Event()

    class Slow(Wrapping):
        @classmethod
        def heard(cls, func: Any) -> None:
            running.set()
            assert go_on.wait(SECONDS)

    a = Context("a")
    x = wrapped(a, Slow)
    with beside(lambda: core.mul(x, 3)) as left:
        assert running.wait(SECONDS)
        a.close()
        go_on.set()
    assert [each.inner.item() for each in left] == [6.0]
    with pytest.raises(ContextClosed):
        core.neg(left[0])


def test_a_copy_that_is_running_ends_though_its_context_is_closed() -> None:
    running, go_on = threading.Event(), threading.Event()

    def slow(x: Tensor) -> Tensor:
        running.set()
        assert go_on.wait(SECONDS)
        return runtime.tensor(7.0)

    dispatcher, a = Dispatcher(), Context("a")
    with MAIN.library("t", dispatcher=dispatcher) as library:
        library.define("f(Tensor x) -> Tensor")
        library.impl("f", lambda x: runtime.tensor(1.0), "CPU")
        a.library("t", "IMPL", "CPU", dispatcher=dispatcher).impl("f", slow)
        f = dispatcher.find_op("t::f")
        assert isinstance(f, OperatorHandle)

        def call() -> Any:
            with a:
                return f(runtime.tensor(0.0)).item()

        with beside(call) as left:
            assert running.wait(SECONDS)
            a.close()
            go_on.set()
        assert left == [7.0]
        assert f(runtime.tensor(0.0)).item() == 1.0


def test_closing_lets_go_of_kernels_modes_and_classes() -> None:
    class Gone(Wrapping):
        pass

    dispatcher = Dispatcher(warns_of_overrides=False)
    a, mode = Context("a"), Listening()

    def kernel(x: Tensor) -> Tensor:
        return x

    def lost(x: Tensor) -> Tensor:
        return x

    with MAIN.library("t", dispatcher=dispatcher) as library:
        library.define("f(Tensor x) -> Tensor")
        library.impl("f", lambda x: x, "CPU")
        theirs = a.library("t", "IMPL", "CPU", dispatcher=dispatcher)
        made = theirs.impl("f", kernel)
        # A registration outlives its library, and keeps nothing.
        registration = a.library("t", "IMPL", dispatcher=dispatcher).impl(
            "f", lost, "CPU"
        )
        f: Any = dispatcher.find_op("t::f")
        with a:
            f(runtime.tensor(1.0))
            with mode:
                runtime.ones(1)
        x = wrapped(a, Gone)
        del x
        dead = [weakref.ref(each) for each in (kernel, lost, mode, Gone)]
        del kernel, lost, mode, Gone
        a.close()
        gc.collect()
        assert [each() for each in dead] == [None] * 4
        assert made.closed
        made.close()
        registration.close()
        assert a.own(dispatcher) is None


def test_a_context_does_not_keep_a_dispatcher() -> None:
    dispatcher = Dispatcher()
    with contexts("a") as (a,):
        a.library("t", "FRAGMENT", dispatcher=dispatcher)
        dead = weakref.ref(dispatcher)
        del dispatcher
        gc.collect()
        assert dead() is None


def test_a_context_that_is_lost_goes() -> None:
    a = Context("a")
    wrapped(a)
    dead = weakref.ref(a)
    del a
    gc.collect()
    assert dead() is None
