"""One kernel in the dispatcher, one copy of it in each context."""

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Tensor, ops
from everyorder.runtime.dispatch import Dispatcher, Library
from everyorder.runtime.dispatch.kernel import boxed, direct, fallthrough, linked
from everyorder.runtime.errors.torch_dispatch import ContextError
from everyorder.runtime.keys import DispatchKey, KeySet
from everyorder.runtime.torch_dispatch import (
    MAIN,
    Context,
    context_library,
    current_context,
    no_dispatch,
)
from tests.coded import code, coded
from tests.torch_dispatch.test_context import CLOSED, contexts, wrapped
from tests.torch_dispatch.thread_state import Look

NoCopy = coded(ContextError, "NoCopy")


def one(value: float) -> Any:
    """An untyped kernel that says who it is, and remembers in which context it ran."""

    seen: list[Context] = []

    def kernel(*args, **kwargs):  # type: ignore[no-untyped-def]  # annotated, it would be typed
        seen.append(current_context())
        return runtime.tensor(value)

    kernel.seen = seen  # type: ignore[attr-defined]  # a function has a dictionary
    return kernel


@pytest.fixture
def world() -> Iterator[Dispatcher]:
    """A dispatcher where tensors with handlers get to the kernels of their backend."""
    dispatcher = Dispatcher(warns_of_overrides=False)
    with Library("_", "IMPL", dispatcher=dispatcher) as library:
        library.fallback(fallthrough, "Python")
        library.fallback(fallthrough, "PythonTLSSnapshot")
        yield dispatcher


@pytest.fixture
def main(world: Dispatcher) -> Iterator[Library]:
    with MAIN.library("t", dispatcher=world, origin="main") as library:
        yield library


def library_of(context: Context, world: Dispatcher, key: str | None = "CPU") -> Library:
    return context.library("t", "IMPL", key, dispatcher=world, origin=context.name)


def test_as_long_as_main_is_alone_nothing_is_asked(
    world: Dispatcher, main: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context_library, "OTHERS", set())
    monkeypatch.setattr(context_library, "context_of", None)
    main.define("f(Tensor x) -> Tensor")
    main.impl("f", one(1.0), "CPU")
    f: Any = world.find_op("t::f")
    assert f(wrapped(MAIN)).item() == 1.0


@pytest.mark.spec("dispatch 0.2", "two phases, several interpreters")
@pytest.mark.spec("dispatch 7.9", "routing, mixing")
def test_tensors_route_to_their_own_body(world: Dispatcher, main: Library) -> None:
    main.define("f(Tensor x, Tensor[]? xs=None) -> Tensor")
    ours, theirs, others = one(1.0), one(2.0), one(3.0)
    main.impl("f", ours, "CPU")
    f: Any = world.find_op("t::f")
    with contexts("a", "b") as (a, b):
        library_of(a, world).impl("f", theirs)
        library_of(b, world).impl("f", others)
        x, y, z = wrapped(a), wrapped(b), wrapped(MAIN)
        plain, before = runtime.tensor(0.0), Look()
        assert [f(each).item() for each in (x, y, z, x)] == [2.0, 3.0, 1.0, 2.0]
        assert f(plain, [plain, y]).item() == 3.0
        with b:
            assert [f(each).item() for each in (x, y, z)] == [2.0, 3.0, 1.0]
        assert before.unchanged()
        assert (ours.seen, theirs.seen, others.seen) == (
            [MAIN] * 2,
            [a] * 3,
            [b] * 3,
        )
        with pytest.raises(ContextError, check=code("MixedContexts")) as caught:
            f(x, [y])
        assert str(caught.value) == (
            "`t.f.default` was called with tensors or modes of the context `a` and "
            "of `b`:\nneither can handle both.\n"
            "  to do: unwrap the tensors of one, and wrap them in the other"
        )


def test_a_call_without_tensors_of_any_is_the_threads(
    world: Dispatcher, main: Library
) -> None:
    main.define("f(Tensor x) -> Tensor")
    main.impl("f", one(1.0), "CPU")
    f, plain = world.find_op("t::f"), runtime.tensor(0.0)
    assert f is not None
    with contexts("a") as (a,):
        library_of(a, world).impl("f", one(2.0))
        assert f(plain).item() == 1.0
        with a:
            assert f(plain).item() == 2.0
            with MAIN:
                assert f(plain).item() == 1.0
        assert f(plain).item() == 1.0


def test_a_handler_in_its_context_finds_its_copy() -> None:
    """On the default dispatcher: the handler unwraps, and what it calls is its own."""
    with (
        MAIN.library("contexts_t", "FRAGMENT") as main,
        contexts("a", "b") as (a, b),
    ):
        main.define("f(Tensor x) -> Tensor")
        main.impl("f", one(1.0), "CPU")
        f = ops.contexts_t.f
        for context, value in ((a, 2.0), (b, 3.0)):
            theirs = context.library("contexts_t", "IMPL", "CPU")
            theirs.impl("f", one(value))
            x = wrapped(context)
            assert f(x).inner.item() == value
            # Past its handler, it is still of that context.
            with no_dispatch():
                assert f(x).item() == value
            theirs.close()


def test_a_context_without_a_copy_says_so(world: Dispatcher, main: Library) -> None:
    main.define("f(Tensor x) -> Tensor")
    main.impl("f", one(1.0), "CPU")
    f: Any = world.find_op("t::f")
    text = (
        "`t.f.default` has a kernel at CPU of which every context runs a separate "
        "copy,\n"
        "and `a` has none.\n"
        "  to do: register it in `a` by `a.library(...)`"
    )
    with contexts("a") as (a,):
        x, before = wrapped(a), Look()
        with pytest.raises(NoCopy) as caught:
            f(x)
        assert str(caught.value) == text
        library_of(a, world).reserve("f")
        with pytest.raises(NoCopy), a:
            f(runtime.tensor(0.0))
        made = library_of(a, world)
        made.impl("f", one(2.0))
        assert f(x).item() == 2.0
        made.close()
        with pytest.raises(NoCopy) as caught:
            f(x)
        assert str(caught.value) == text
        assert before.unchanged()


def test_a_closed_context_is_not_routed_to(world: Dispatcher, main: Library) -> None:
    main.define("f(Tensor x) -> Tensor")
    main.impl("f", one(1.0), "CPU")
    f, a = world.find_op("t::f"), Context("a")
    assert f is not None
    library_of(a, world).impl("f", one(2.0))
    x = wrapped(a)
    with a:
        a.close()
        for given in (x, runtime.tensor(0.0)):
            with pytest.raises(ContextError, check=code("ContextClosed")) as caught:
                f(given)
            assert str(caught.value) == CLOSED.format("t.f.default")
    assert f(runtime.tensor(0.0)).item() == 1.0


def test_a_context_that_is_closed_while_its_copy_is_looked_for(
    world: Dispatcher, main: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    main.define("f(Tensor x) -> Tensor")
    main.impl("f", one(1.0), "CPU")
    f, a = world.find_op("t::f"), Context("a")
    assert f is not None
    library_of(a, world).impl("f", one(2.0))
    x, own = wrapped(a), Context.own

    def closing(context: Context, dispatcher: Dispatcher) -> Any:
        context.close()
        return own(context, dispatcher)

    monkeypatch.setattr(Context, "own", closing)
    with pytest.raises(ContextError, check=code("ContextClosed")) as caught:
        f(x)
    assert str(caught.value) == CLOSED.format("t.f.default")


def test_an_exception_of_a_copy_restores_the_context(
    world: Dispatcher, main: Library
) -> None:
    def wrong(x):  # type: ignore[no-untyped-def]  # annotated, it would be typed
        raise ZeroDivisionError

    main.define("f(Tensor x) -> Tensor")
    main.impl("f", wrong, "CPU")
    f: Any = world.find_op("t::f")
    with contexts("a") as (a,):
        library_of(a, world).impl("f", wrong)
        x, before = wrapped(a), Look()
        with pytest.raises(ZeroDivisionError):
            f(x)
        with a, pytest.raises(ZeroDivisionError):
            f(wrapped(MAIN))
        assert before.unchanged()


def typed(x: Tensor, *, scale: float = 2.0) -> Tensor:
    return runtime.tensor(scale)


def with_keyset(keys, x, scale=2.0):  # type: ignore[no-untyped-def]  # untyped is the case
    assert isinstance(keys, KeySet)
    assert DispatchKey.CPU in keys
    return runtime.tensor(scale)


def stacked(operator: Any, keys: Any, stack: list[Any]) -> None:
    scale = stack[-1]
    stack[-2:] = [runtime.tensor(scale)]
    assert str(operator) == "t.f.default"


def linking(below: Any, keyset: Any) -> Any:
    assert str(below.schema.name) == "t::f"
    return lambda x, scale: runtime.tensor(scale)


CONVENTIONS: dict[str, tuple[Any, dict[str, Any]]] = {
    "python": (lambda x, scale=2.0: runtime.tensor(scale), {}),
    "typed": (typed, {}),
    "direct": (direct(lambda x, scale: runtime.tensor(scale)), {}),
    "boxed": (boxed(stacked), {}),
    "linked": (linked(linking, "linking"), {}),
    "with_keyset": (with_keyset, {"with_keyset": True}),
}


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_copies_are_called_by_their_own_convention(
    world: Dispatcher, main: Library, convention: str
) -> None:
    kernel, options = CONVENTIONS[convention]
    main.define("f(Tensor x, *, float scale=2.0) -> Tensor")
    f: Any = world.find_op("t::f")
    f_main = main.impl("f", kernel, "CPU", **options)
    plain = runtime.tensor(0.0)
    with contexts("a", "b") as (a, b):
        library_of(a, world).impl("f", kernel, **options)
        library_of(b, world).impl("f", lambda x, scale=2.0: runtime.tensor(-scale))
        x, y = wrapped(a), wrapped(b)
        for _ in range(12):  # a call stub comes after some calls
            found = [f(each, scale=3.0).item() for each in (plain, x, y)]
            assert found == [3.0, 3.0, -3.0]
            assert [f(each).item() for each in (plain, x, y)] == [2.0, 2.0, -2.0]
        # As the main one's kernel, beside another convention.
        f_main.close()
        main.impl("f", one(1.0), "CPU")
        assert [f(each).item() for each in (plain, x, y)] == [1.0, 2.0, -2.0]


def test_values_of_codes_come_as_objects(world: Dispatcher, main: Library) -> None:
    seen: list[Any] = []

    def kernel(x, dtype=None, sizes=()):  # type: ignore[no-untyped-def]  # untyped is the case
        seen.append((dtype, sizes))
        return x

    main.define("f(Tensor x, ScalarType dtype, int[2] sizes) -> Tensor")
    main.impl("f", kernel, "CPU")
    f: Any = world.find_op("t::f")
    with contexts("a") as (a,):
        library_of(a, world).impl("f", kernel)
        for x in (runtime.tensor(0.0), wrapped(a)):
            f(x, runtime.float32, 3)
    assert seen == [(runtime.float32, [3, 3])] * 2


def test_a_copy_that_falls_through(world: Dispatcher, main: Library) -> None:
    main.define("f(Tensor x) -> Tensor")
    main.impl("f", one(1.0), "CPU")
    main.impl("f", one(5.0), "AutogradCPU")
    f: Any = world.find_op("t::f")
    with contexts("a") as (a,):
        library_of(a, world).impl("f", one(2.0))
        library_of(a, world, None).impl("f", fallthrough, "AutogradCPU")
        kept = library_of(a, world, None)
        kept.impl("f", fallthrough, "AutogradCPU")
        copies = library_of(a, world)
        copies.impl("f", one(2.0))
        assert f(runtime.tensor(0.0)).item() == 5.0
        assert f(wrapped(a)).item() == 2.0


def test_what_falls_through_in_main_is_no_router(
    world: Dispatcher, main: Library
) -> None:
    main.define("f(Tensor x) -> Tensor")
    main.impl("f", fallthrough, "AutogradCPU")
    main.impl("f", one(1.0), "CPU")
    assert world.dump_state("t::f") == (
        "name: t::f\n"
        "schema: t::f(Tensor x) -> Tensor\n"
        "debug: main\n"
        "alias analysis kind: FROM_SCHEMA\n"
        "CPU: kernel (main) :: (none) [ boxed ]\n"
        "AutogradCPU: main :: (none) [ fallthrough boxed ]\n"
    )
    with contexts("a") as (a,):
        kept = library_of(a, world, None)
        kept.impl("f", fallthrough, "AutogradCPU")
        kept.impl("f", one(2.0), "CPU")
        f: Any = world.find_op("t::f")
        assert f(wrapped(a)).item() == 2.0


def test_what_main_registers_reads_as_in_a_plain_library() -> None:
    dumps = []
    for context in (None, MAIN):
        dispatcher = Dispatcher()
        made = Library if context is None else context.library
        with made("t", dispatcher=dispatcher, origin="here") as library:
            library.define("f(Tensor x, *, float scale=2.0) -> Tensor", kernel=typed)
            library.impl("f", boxed(stacked), "CPU", debug="mine")
            dumps.append((dispatcher.dump_state("t::f"), dispatcher.dump_table("t::f")))
        assert dispatcher.op_names() == ()
    assert dumps[0] == dumps[1]


def test_origins_are_where_a_library_was_made(world: Dispatcher) -> None:
    with contexts("a") as (a,):
        kept = [each.library("o", dispatcher=world) for each in (MAIN, a)]
        assert [each.origin.partition(":")[0] for each in kept] == (
            [f"registered at {__file__}"] * 2
        )


def test_fallbacks_have_copies(world: Dispatcher, main: Library) -> None:
    def fallback(value: float) -> Any:
        return lambda operator, *args: runtime.tensor(value)

    main.define("f(Tensor x) -> Tensor")
    main.define("g(Tensor x) -> Tensor")
    with (
        MAIN.library("_", "IMPL", "CPU", dispatcher=world) as ours,
        contexts("a", "b") as (a, b),
    ):
        ours.fallback(fallback(1.0))
        theirs = a.library("_", "IMPL", "CPU", dispatcher=world)
        theirs.fallback(fallback(2.0))
        plain, x, y = runtime.tensor(0.0), wrapped(a), wrapped(b)
        for name in ("t::f", "t::g"):
            op: Any = world.find_op(name)
            assert [op(each).item() for each in (plain, x)] == [1.0, 2.0]
            with pytest.raises(NoCopy) as caught:
                op(y)
            assert caught.value.key == "CPU"


def test_fallbacks_of_an_alias_key_have_copies(
    world: Dispatcher, main: Library
) -> None:
    from everyorder.runtime.dispatch.dispatcher import release

    release(world, "Autograd")

    def through(below: Any, keyset: Any) -> Any:
        return lambda *arguments: core_neg(below.run(*arguments))

    core_neg: Any = ops.core.neg
    main.define("f(Tensor x) -> Tensor")
    main.impl("f", one(1.0), "CPU")
    with (
        MAIN.library("_", "IMPL", "Autograd", dispatcher=world) as ours,
        contexts("a") as (a,),
    ):
        ours.fallback(fallthrough)
        kept = library_of(a, world)
        kept.impl("f", one(2.0))
        theirs = a.library("_", "IMPL", "Autograd", dispatcher=world)
        theirs.fallback(fallthrough)
        theirs.close()
        ours.close()
        with MAIN.library("_", "IMPL", "Autograd", dispatcher=world) as again:
            again.fallback(linked(through, "through"))
            theirs = a.library("_", "IMPL", "Autograd", dispatcher=world)
            theirs.fallback(linked(through, "through"))
            f: Any = world.find_op("t::f")
            assert f(runtime.tensor(0.0)).item() == -1.0
            assert f(wrapped(a)).item() == -2.0


def test_kernels_at_alias_keys_have_copies(world: Dispatcher, main: Library) -> None:
    main.define("f(Tensor x) -> Tensor", kernel=lambda x: runtime.tensor(1.0))
    f: Any = world.find_op("t::f")
    with contexts("a") as (a,):
        kept = library_of(a, world, None)
        kept.impl("f", lambda x: runtime.tensor(2.0))
        assert f(runtime.tensor(0.0)).item() == 1.0
        assert f(wrapped(a)).item() == 2.0


def test_the_newest_copy_runs(world: Dispatcher, main: Library) -> None:
    main.define("f(Tensor x) -> Tensor")
    main.impl("f", one(1.0), "CPU")
    f: Any = world.find_op("t::f")
    with contexts("a") as (a,):
        x, kept = wrapped(a), library_of(a, world)
        found = []
        with kept.impl("f", one(2.0)):
            found.append(f(x).item())
            with kept.impl("f", one(3.0)):
                found.append(f(x).item())
            found.append(f(x).item())
        assert found == [2.0, 3.0, 2.0]


def test_copies_run_again_when_main_is_back(world: Dispatcher, main: Library) -> None:
    main.define("f(Tensor x) -> Tensor")
    made = main.impl("f", one(1.0), "CPU")
    f: Any = world.find_op("t::f")
    with contexts("a") as (a,):
        x, kept = wrapped(a), library_of(a, world)
        kept.impl("f", one(2.0))
        assert f(x).item() == 2.0
        made.close()
        main.impl("f", one(4.0), "CPU")
        assert f(x).item() == 2.0
        assert f(runtime.tensor(0.0)).item() == 4.0


def test_kernels_go_with_their_registrations(world: Dispatcher, main: Library) -> None:
    """Also after calls, which remember how each is run."""
    main.define("f(Tensor x) -> Tensor")
    f: Any = world.find_op("t::f")
    ours, theirs = one(1.0), one(2.0)
    dead = [weakref.ref(ours), weakref.ref(theirs)]
    made = main.impl("f", ours, "CPU")
    with contexts("a") as (a,):
        kept = library_of(a, world)
        copy = kept.impl("f", theirs)
        x = wrapped(a)
        for _ in range(12):
            f(x)
            f(runtime.tensor(0.0))
        del ours, theirs
        copy.close()
        assert [each() is None for each in dead] == [False, True]
        made.close()
        assert [each() is None for each in dead] == [True, True]
        gc.collect()
