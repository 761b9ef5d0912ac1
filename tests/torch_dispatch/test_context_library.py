"""Libraries of contexts: one registers, others are held to it; whose call it is."""

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Tensor, ops
from everyorder.runtime.dispatch import Dispatcher, Library
from everyorder.runtime.dispatch.kernel import fallthrough
from everyorder.runtime.errors.base import EveryorderError, page
from everyorder.runtime.errors.registration import Conflict, LibraryMisuse
from everyorder.runtime.errors.torch_dispatch import ContextError
from everyorder.runtime.keys import DispatchKey, KeySet
from everyorder.runtime.torch_dispatch import MAIN, Context
from everyorder.runtime.torch_dispatch.context_library import (
    CHANGED,
    OTHERS,
    context_of,
)
from tests.coded import code, coded
from tests.forking import in_child, needs_fork
from tests.torch_dispatch.test_context import (
    CLOSED,
    SECONDS,
    Listening,
    Wrapping,
    beside,
    contexts,
    wrapped,
)
from tests.torch_dispatch.thread_state import Look

ContextClosed = coded(ContextError, "ContextClosed")
DuplicateFallback = coded(Conflict, "DuplicateFallback")
MixedContexts = coded(ContextError, "MixedContexts")
NamespaceTaken = coded(Conflict, "NamespaceTaken")
NotVerified = coded(ContextError, "NotVerified")
SchemaDiffers = coded(ContextError, "SchemaDiffers")
SchemaMismatch = coded(Conflict, "SchemaMismatch")
SignatureMismatch = coded(Conflict, "SignatureMismatch")

# As good as no time: nobody comes meanwhile.
AT_ONCE = 0.001

TO_DO = (
    "  to do: do the same in every context, the main one first: its libraries come\n"
    "         from `MAIN.library(...)`, and each module has to be imported there,\n"
    "         too; or let the context wait longer: `Context.timeout`"
)


def kernel(x: Tensor) -> Tensor:
    return x


@pytest.fixture
def world() -> Dispatcher:
    return Dispatcher(warns_of_overrides=False)


@pytest.fixture
def a() -> Iterator[Context]:
    with contexts("a") as (made,):
        yield made


@pytest.fixture
def hasty(a: Context) -> Context:
    a.timeout = AT_ONCE
    return a


def libraries(
    world: Dispatcher, *contexts: Context, kind: str = "FRAGMENT", ns: str = "t"
) -> list[Library]:
    return [
        each.library(ns, kind, dispatcher=world, origin=each.name) for each in contexts
    ]


def refused(ask: Callable[[], object], kind: type[EveryorderError]) -> str:
    with pytest.raises(kind) as caught:
        ask()
    return str(caught.value)


def test_main_comes_first(world: Dispatcher, a: Context) -> None:
    before = world.snapshot()
    main, theirs = libraries(world, MAIN, a)
    main.define("f(Tensor x) -> Tensor")
    made = main.impl("f", kernel, "CPU")
    after = world.snapshot()
    defined = theirs.define("f(Tensor x) -> Tensor")
    copied = theirs.impl("f", kernel, "CPU")
    # The dispatcher hears nothing of copies.
    assert world.snapshot() is after
    assert after is not before
    own = a.own(world)
    assert own is not None
    assert own.dump_state("t::f") == (
        "name: t::f\n"
        "schema: t::f(Tensor x) -> Tensor\n"
        "debug: a\n"
        "alias analysis kind: FROM_SCHEMA\n"
        "CPU: kernel (a) :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]\n"
    )
    assert MAIN.own(world) is None
    copied.close()
    defined.close()
    assert own.op_names() == ()
    assert not made.closed


@pytest.mark.spec("dispatch 7.9", "register or verify, with a time limit")
def test_the_other_waits_for_main(world: Dispatcher, a: Context) -> None:
    """The definition, the kernel and the fallback each end a wait."""
    (theirs,), done = libraries(world, a), threading.Event()
    (others,) = libraries(world, a, kind="IMPL", ns="_")

    def register() -> str:
        theirs.define("f(Tensor x) -> Tensor")
        theirs.impl("f", kernel, ["CPU", "AutogradCPU"])
        others.fallback(lambda operator, *args: None, "CPU")
        done.set()
        return "verified"

    with beside(register) as left:
        (main,) = libraries(world, MAIN)
        main.define("f(Tensor x) -> Tensor")
        main.impl("f", kernel, "CPU")
        assert not done.is_set()
        main.impl("f", kernel, "AutogradCPU")
        (again,) = libraries(world, MAIN, kind="IMPL", ns="_")
        assert not done.is_set()
        again.fallback(lambda operator, *args: None, "CPU")
    assert left == ["verified"]


@pytest.mark.spec("dispatch 7.9", "register or verify, with a time limit")
def test_a_definition_that_main_lacks(world: Dispatcher, hasty: Context) -> None:
    (theirs,) = libraries(world, hasty)
    text = refused(lambda: theirs.define("f() -> ()"), NotVerified)
    assert text == (
        "The context `a` registered a definition of `t::f`, and waited 0.001 s in "
        f"vain\nfor the main context to do the same.\n{TO_DO}"
    )
    own = hasty.own(world)
    assert own is not None
    assert own.op_names() == ()
    assert theirs.tokens == ()


def test_a_kernel_that_main_lacks(world: Dispatcher, hasty: Context) -> None:
    main, theirs = libraries(world, MAIN, hasty)
    main.define("f(Tensor x) -> Tensor")
    main.impl("f", kernel, "CPU")
    with pytest.raises(NotVerified) as caught:
        theirs.impl("f", kernel, ["CPU", "CUDA"])
    assert str(caught.value) == (
        "The context `a` registered a kernel at CUDA for `t::f`, and waited 0.001 s "
        f"in\nvain for the main context to do the same.\n{TO_DO}"
    )
    assert caught.value.fields() == {
        "context": "a",
        "operator": "t::f",
        "key": "CUDA",
        "timeout": AT_ONCE,
        "beside": False,
    }
    # Of several kernels all are copies, or none.
    own = hasty.own(world)
    assert own is not None
    assert own.op_names() == ()
    with pytest.raises(NotVerified) as caught:
        theirs.impl("g", kernel, "CPU")
    assert caught.value.operator == "t::g"


def test_a_fallback_that_main_lacks(world: Dispatcher, hasty: Context) -> None:
    (theirs,) = libraries(world, hasty, kind="IMPL", ns="_")
    text = refused(lambda: theirs.fallback(print, "CPU"), NotVerified)
    assert text == (
        "The context `a` registered a kernel at CPU for `_`, and waited 0.001 s in "
        f"vain\nfor the main context to do the same.\n{TO_DO}"
    )
    own = hasty.own(world)
    assert own is not None
    assert own.snapshot().fallbacks.tokens == ()


def test_a_kernel_of_a_plain_library_asks_for_no_copies(
    world: Dispatcher, hasty: Context
) -> None:
    with Library("t", dispatcher=world) as plain:
        plain.define("f(Tensor x) -> Tensor")
        plain.impl("f", kernel, "CPU")
        (theirs,) = libraries(world, hasty)
        # A definition is one, whoever made it.
        theirs.define("f(Tensor x) -> Tensor")
        text = refused(lambda: theirs.impl("f", kernel, "CPU"), NotVerified)
        assert text == (
            "The context `a` registered a kernel at CPU for `t::f`, and waited 0.001 "
            "s in\nvain for the main context to do the same.\n"
            "  found: a kernel of a library outside of all contexts: every context "
            "runs it\n" + TO_DO
        )


def test_a_plain_definition_is_seen_when_the_wait_ends(
    world: Dispatcher, hasty: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    (theirs,) = libraries(world, hasty)
    kept = Library("t", dispatcher=world)

    def wait(timeout: float) -> bool:
        kept.define("f() -> ()")
        return False

    monkeypatch.setattr(CHANGED, "wait", wait)
    assert not theirs.define("f() -> ()").closed


def test_a_kernel_where_main_falls_through(world: Dispatcher, hasty: Context) -> None:
    main, theirs = libraries(world, MAIN, hasty)
    main.impl("f", fallthrough, "CPU")
    with pytest.raises(NotVerified) as caught:
        theirs.impl("f", kernel, "CPU")
    assert caught.value.beside
    assert not theirs.impl("f", fallthrough, "CPU").closed


def test_definitions_are_equal(world: Dispatcher, a: Context) -> None:
    main, theirs = libraries(world, MAIN, a)
    main.define("f(Tensor x) -> Tensor")
    text = refused(lambda: theirs.define("f(Tensor x, int n) -> Tensor"), SchemaDiffers)
    assert text == (
        "The context `a` defined `t::f` in another way than the main context.\n"
        "  here:  t::f(Tensor x, int n) -> Tensor\n"
        "  there: t::f(Tensor x) -> Tensor\n"
        "  to do: define it alike, or under another name"
    )
    assert theirs.tokens == ()
    assert not theirs.define("f(Tensor x) -> Tensor").closed


def test_one_of_several_definitions_will_do() -> None:
    world = Dispatcher(merges_alias_kinds=True)
    with contexts("a") as (a,):
        main, theirs = libraries(world, MAIN, a)
        main.define("f() -> ()")
        main.define("f() -> ()")
        theirs.define("f() -> ()")
        assert not theirs.define("f() -> ()").closed


def test_typed_kernels_fit_the_definition_and_those_of_main(
    world: Dispatcher, a: Context
) -> None:
    def longer(x: Tensor, n: int) -> Tensor:
        return x

    main, theirs = libraries(world, MAIN, a)
    main.impl("f", kernel, "CPU")
    main.impl("g", lambda *args: None, "CPU")
    refused(lambda: theirs.impl("f", longer, "CPU"), SignatureMismatch)
    main.define("g(Tensor x) -> Tensor")
    refused(lambda: theirs.impl("g", longer, "CPU"), SchemaMismatch)
    assert theirs.tokens == ()
    # So it is with those of the main context itself.
    refused(lambda: main.impl("g", longer, "CPU"), SchemaMismatch)


def test_each_context_has_claims_and_fallbacks_of_its_own(
    world: Dispatcher, a: Context
) -> None:
    kept = libraries(world, MAIN, a, kind="DEF")
    assert [each.kind for each in kept] == ["DEF", "DEF"]
    for context in (MAIN, a):
        refused(lambda each=context: libraries(world, each, kind="DEF"), NamespaceTaken)  # type: ignore[misc]  # bound by default
    main, theirs = libraries(world, MAIN, a, kind="IMPL", ns="_")
    main.fallback(print, "CPU")
    theirs.fallback(print, "CPU")
    refused(lambda: theirs.fallback(print, "CPU"), DuplicateFallback)


def test_a_copy_overrides_as_a_kernel_does(world: Dispatcher, a: Context) -> None:
    main, theirs = libraries(world, MAIN, a)
    for library in (main, theirs):
        library.impl("f", kernel, "CPU")
        with pytest.raises(Conflict, check=code("OverrideForbidden")) as caught:
            library.impl("f", kernel, "CPU", allow_override=False)
        assert caught.value.original.startswith("kernel (")


def test_reservations_ask_nothing(world: Dispatcher, a: Context) -> None:
    (theirs,) = libraries(world, a)
    assert not theirs.reserve("f").closed
    assert world.op_names() == ()


def test_closing_ends_a_wait(world: Dispatcher, a: Context) -> None:
    (theirs,), waits = libraries(world, a), threading.Event()
    wait_for = CHANGED.wait_for

    def waiting(settled: Any, timeout: float) -> bool:
        waits.set()
        return bool(wait_for(settled, timeout))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CHANGED, "wait_for", waiting)
        with beside(lambda: theirs.define("f() -> ()")) as left:
            assert waits.wait(SECONDS)
            a.close()
    assert [str(each) for each in left] == [CLOSED.format("a registration")]


@pytest.mark.parametrize(
    ("kind", "asked"),
    [("DEF", "a registration"), ("FRAGMENT", "Context.library('t', 'FRAGMENT')")],
)
def test_a_library_made_while_the_context_is_closed(
    world: Dispatcher,
    a: Context,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    asked: str,
) -> None:
    own_dispatcher, made = Context._own_dispatcher, []

    def closing(context: Context, *given: Any) -> Any:
        made.append(own_dispatcher(context, *given))
        context.close()
        return made[0]

    monkeypatch.setattr(Context, "_own_dispatcher", closing)
    text = refused(lambda: libraries(world, a, kind=kind), ContextClosed)
    assert text == CLOSED.format(asked)
    assert made[0].snapshot().claims == ()


def test_something_registered_while_the_context_is_closed(
    world: Dispatcher, a: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    (theirs,) = libraries(world, a)
    register = Dispatcher.register

    def closing(self: Dispatcher, *given: Any) -> None:
        register(self, *given)
        a.close()

    monkeypatch.setattr(Dispatcher, "register", closing)
    text = refused(lambda: theirs.reserve("f"), ContextClosed)
    assert text == CLOSED.format("a registration")
    assert theirs.tokens == ()


def test_something_registered_while_its_library_is_closed(
    world: Dispatcher, a: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    (theirs,) = libraries(world, a)
    register = Dispatcher.register

    def closing(self: Dispatcher, *given: Any) -> None:
        register(self, *given)
        theirs.close()

    monkeypatch.setattr(Dispatcher, "register", closing)
    refused(lambda: theirs.reserve("f"), coded(LibraryMisuse, "LibraryClosed"))
    assert theirs.tokens == ()


def test_listeners_do_not_wait(world: Dispatcher, a: Context) -> None:
    (theirs,) = libraries(world, a)

    class Ear:
        def on_operator_registered(self, name: Any, schema: Any) -> None:
            theirs.define("f() -> ()")

        def on_operator_deregistered(self, name: Any, schema: Any) -> None:
            pass

    (main,) = libraries(world, MAIN)
    with world.add_listener(Ear()):
        refused(
            lambda: main.define("f() -> ()"),
            coded(LibraryMisuse, "WriteInsideListener"),
        )
    assert (world.op_names(), theirs.tokens) == ((), ())


def test_a_kernel_may_register_close_and_be_waited_for(world: Dispatcher) -> None:
    """No lock is held while somebody's code runs."""
    main, (a, b) = libraries(world, MAIN)[0], (Context("a"), Context("b"))
    (theirs,), (others,) = libraries(world, a), libraries(world, b)

    def busy(x):  # type: ignore[no-untyped-def]  # annotated, it would be typed
        def elsewhere() -> str:
            others.define("g() -> ()")
            a.close()
            return "done"

        with beside(elsewhere) as left:
            main.define("g() -> ()")
        assert left == ["done"]
        return runtime.tensor(9.0)

    main.define("f(Tensor x) -> Tensor")
    main.impl("f", lambda x: x, "CPU")
    theirs.impl("f", busy, "CPU")
    f: Any = world.find_op("t::f")
    with a:
        assert f(runtime.tensor(1.0)).item() == 9.0
    assert not a.alive
    b.close()


def test_the_end_of_a_kernel_may_close_a_context(world: Dispatcher) -> None:
    """Finalizers run anywhere, with the lock held, too."""
    main, (a, b) = libraries(world, MAIN)[0], (Context("a"), Context("b"))
    (theirs,) = libraries(world, a)

    class Ending:
        def __call__(self, x: Any) -> Any:
            return x

        def __del__(self) -> None:
            b.close()

    main.impl("f", lambda x: x, "CPU")
    made = Ending()
    theirs.impl("f", made, "CPU")
    dead = weakref.ref(made)
    del made
    with CHANGED:
        a.close()
    assert dead() is None
    assert not b.alive


@needs_fork
def test_a_forked_child_finds_the_lock_free() -> None:
    held, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        with CHANGED:
            held.set()
            assert go_on.wait(SECONDS)

    def free() -> bool:
        if not CHANGED.acquire(timeout=SECONDS):
            return False
        CHANGED.release()
        return True

    with beside(hold):
        assert held.wait(SECONDS)
        try:
            assert in_child(free)
        finally:
            go_on.set()


core: Any = ops.core


class Other(Wrapping):
    """A wrapper of another class."""


def mixed(operator: str, first: str, second: str) -> str:
    return page(
        f"`{operator}` was called with tensors or modes of the context `{first}` "
        f"and of `{second}`: neither can handle both.",
        ("to do", "unwrap the tensors of one, and wrap them in the other"),
    )


@pytest.mark.spec("dispatch 7.9", "routing, mixing")
def test_tensors_of_two_contexts_meet_in_no_call() -> None:
    with contexts("a", "b") as (a, b):
        x, y, z = wrapped(a), wrapped(b, Other), wrapped(MAIN)
        before = Look()
        for one, other, first, second in (
            # The class below the other one would be asked first.
            (x, y, "b", "a"),
            (y, x, "b", "a"),
            (x, z, "a", "main"),
        ):
            with pytest.raises(MixedContexts) as caught:
                core.mul(one, other)
            assert str(caught.value) == mixed("core.mul.default", first, second)
            assert caught.value.fields() == {
                "context": first,
                "operator": "core.mul.default",
                "other": second,
            }
        assert before.unchanged()


def test_nor_do_those_of_one_class() -> None:
    """The handler of a class is asked once, so the second is no overloaded argument."""
    with contexts("a", "b") as (a, b):
        x, y = wrapped(a), wrapped(b)
        with pytest.raises(MixedContexts) as caught:
            core.mul(x, y)
        assert str(caught.value) == mixed("core.mul.default", "a", "b")
        plain = runtime.tensor(1.0)
        with pytest.raises(MixedContexts) as caught:
            core.cat([plain, x, y, x])
        assert str(caught.value) == mixed("core.cat.default", "a", "b")


def test_nor_a_mode_and_the_tensors_of_another_context() -> None:
    with contexts("a", "b") as (a, b):
        x = wrapped(a)
        with b:
            mode = Listening().__enter__()
        with pytest.raises(MixedContexts) as caught:
            core.neg(x)
        mode.__exit__()
        assert str(caught.value) == mixed("core.neg.default", "b", "a")
        assert mode.seen == []


def test_tensors_of_two_contexts_may_lie_in_one_another() -> None:
    with contexts("a", "b") as (a, b):
        x = wrapped(a)
        with b:
            y = Other(x)
        found = core.mul(y, 3)
        assert found._context is b
        assert found.inner._context is a
        assert found.inner.inner.item() == 6.0


def test_the_first_tensor_counts_and_then_the_thread() -> None:
    with contexts("a", "b") as (a, b):
        x, plain = wrapped(a), runtime.tensor(1.0)
        by_hand = plain.with_keyset(KeySet([DispatchKey.CPU, DispatchKey.Python]))
        for arguments, expected in (
            ((plain, x), a),
            (([None, plain], (x,)), a),
            ((x, x, 3, "text"), a),
            ((plain, by_hand, None), b),
            ((), b),
        ):
            with b:
                assert context_of(arguments, lambda: "t.f") is expected


def known() -> list[str]:
    gc.collect()
    found = [reference() for reference in tuple(OTHERS)]
    return [each.name for each in found if each is not None]


def test_other_contexts_are_known_as_long_as_anything_is_of_them() -> None:
    context = Context("known")
    x = wrapped(context)
    context.close()
    del context
    assert known().count("known") == 1
    del x
    assert known().count("known") == 0
    assert MAIN.name not in known()
