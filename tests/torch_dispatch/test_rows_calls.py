"""Every way to call, and every form of schema, comes to a handler the same."""

import gc
import weakref
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Dispatcher, Library, ops
from everyorder.runtime.errors.call import MissingKernel
from everyorder.runtime.errors.torch_dispatch import HandlerError
from everyorder.runtime.keys import (
    DispatchKey,
    KeySet,
    exclude_keys,
    full_after,
    include_keys,
)
from everyorder.runtime.tensors.keys import HANDLED
from everyorder.runtime.torch_dispatch import install_fallbacks
from tests.coded import code
from tests.torch_dispatch.programs import unary
from tests.torch_dispatch.thread_state import Look
from tests.torch_dispatch.worlds import Ours, leaves, runs

core: Any = ops.core


def test_operators_without_arguments(world: Ours) -> None:
    """7.6: modes hear them, and nobody else does."""
    op = world.operator("f() -> int", lambda: 7)
    with world.mode("M"):
        assert op() == 7
    with (
        include_keys(DispatchKey.Python),
        pytest.raises(HandlerError, check=code("NothingToHandle")),
    ):
        op()
    assert world.lines == ["M: f.default() types=()"]


def test_operators_without_results(world: Ours) -> None:
    """5.7: None it is."""
    op = world.operator("f(Tensor x) -> ()", lambda x: None)
    assert op(world.made(world.subclass("A", answer=leaves))) is None
    with world.mode("M"):
        assert op(world.tensor(1.0)) is None


def test_operators_of_any_number_of_arguments(world: Ours) -> None:
    """7.4: what comes for `...` comes by position; what is before it stays."""
    world.library.define("f(Tensor x, int n, ...) -> ...")
    world.library.impl("f", lambda *given: given[1:], "CompositeExplicitAutograd")
    op: Any = ops.everyorder_worlds.f
    x = world.made(world.subclass("A", answer=leaves))
    assert op(x, 1) == (1,)
    assert op(x, 1, "more", 3) == (1, "more", 3)
    with world.mode("M"):
        assert op(world.tensor(1.0), 1, 5) == (1, 5)
    assert world.lines == [
        "A: f.default(A, 1) types=(A)",
        "A: f.default(A, 1, 'more', 3) types=(A)",
        "M: f.default(Tensor, 1, 5) types=()",
    ]


def test_operators_of_many_arguments(world: Ours) -> None:
    """7.3: the last of sixty-four is found as the first one is."""
    names = ", ".join(f"Tensor? a{number}=None" for number in range(64))
    op = world.operator(f"f({names}) -> Tensor", lambda *given: world.tensor(1.0))
    op(a63=world.made(world.subclass("A", answer=leaves)))
    assert world.lines == [f"A: f.default({'None, ' * 63}A) types=(A)"]


def test_boxed_calls_and_redispatches(world: Ours) -> None:
    """7.2: they come to the same handlers."""
    op = unary(world)
    x = world.made(world.subclass("A", answer=leaves))
    assert [each.tolist() for each in op.call_boxed([x])] == [[2.0]]
    python = KeySet(DispatchKey.CPU, DispatchKey.Python)
    assert op.redispatch(python, x).tolist() == [2.0]
    assert op.redispatch_boxed(python, [x])[0].tolist() == [2.0]
    [result] = op.call_for_key("Python", [x])
    assert result.tolist() == [2.0]
    with world.mode("M"):
        op.call_boxed([world.tensor(1.0)])
    assert world.lines == [
        *["A: f.default(A) types=(A)"] * 4,
        "M: f.default(Tensor) types=()",
    ]


def test_calls_by_call_stub_and_before_there_is_one(world: Ours) -> None:
    """7.2: the hundredth call is as the first."""
    op, count = unary(world), 100
    x = world.made(world.subclass("A", answer=leaves))
    for _ in range(count):
        op(x)
    with world.mode("M", runs):
        for _ in range(count):
            op(x=x)
    assert world.lines == [
        *["A: f.default(A) types=(A)"] * count,
        *["M: f.default(A) types=(A)", "A: f.default(A) types=(A)"] * count,
    ]


def other() -> tuple[Dispatcher, Library, Library, Any]:
    """A dispatcher of one's own, with dispatch to Python, and its operator."""
    dispatcher = Dispatcher()
    fallbacks = Library("_", "IMPL", dispatcher=dispatcher, origin="here")
    install_fallbacks(fallbacks)
    library = Library("everyorder_other", "DEF", dispatcher=dispatcher)
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", lambda x: x, "CPU")
    return dispatcher, fallbacks, library, dispatcher.find_op("everyorder_other::f")


def test_operators_of_other_dispatchers(world: Ours) -> None:
    """7.3: `func` is the operator of the dispatcher that was called."""
    _, _, _, op = other()
    funcs = []

    def tells(world: Any, who: Any, func: Any, types: Any, args: Any, kw: Any) -> Any:
        funcs.append(func)
        return leaves(world, who, func, types, args, kw)

    x = world.made(world.subclass("A", answer=tells))
    assert op(x) is x
    assert funcs[0] is op
    assert not hasattr(ops, "everyorder_other") or not hasattr(
        ops.everyorder_other, "f"
    )


def test_a_dispatcher_with_handled_calls_dies_at_once(world: Ours) -> None:
    """D3: nothing made for its calls keeps it, or the other way round."""
    made = other()
    x = world.made(world.subclass("A", answer=leaves))
    for _ in range(20):
        made[-1](x)
        with world.mode("M"):
            made[-1](x)
    alive = weakref.ref(made[0])
    gc.collect()
    gc.disable()
    try:
        made[1].close()
        made[2].close()
        del made
        assert alive() is None
    finally:
        gc.enable()


def test_without_dispatch_to_python_modes_are_an_error(world: Ours) -> None:
    """7.2: a dispatcher that has no fallbacks says so; the thread is as before."""
    _, fallbacks, _, op = other()
    fallbacks.close()
    x = world.made(world.subclass("A", answer=leaves))
    before = Look()
    with pytest.raises(MissingKernel, match="no kernel is registered for Python"):
        op(x)
    with world.mode("M"), pytest.raises(MissingKernel):
        op(world.tensor(1.0))
    assert before.unchanged()


def test_fallbacks_that_come_and_go(world: Ours) -> None:
    """D1: installed again they work again, whatever was called meanwhile."""
    dispatcher, fallbacks, library, op = other()
    x = world.made(world.subclass("A", answer=leaves))
    plain: Any = runtime.tensor([1.0])
    dumped = dispatcher.dump_table("everyorder_other::f")
    for _ in range(3):
        op(x)
        fallbacks.close()
        with pytest.raises(MissingKernel):
            op(x)
        assert op(plain) is plain
        fallbacks = Library("_", "IMPL", dispatcher=dispatcher, origin="here")
        install_fallbacks(fallbacks)
    op(x)
    assert len(world.lines) == 4
    assert dispatcher.dump_table("everyorder_other::f") == dumped
    library.close()


def test_a_kernel_registered_at_python_stands_before_handlers(world: Ours) -> None:
    """7.2: an operator may have a kernel of its own at the key Python."""
    _, _, library, op = other()
    library.impl("f", lambda x: runtime.tensor([5.0]), "Python")
    x = world.made(world.subclass("A", answer=leaves))
    assert op(x).tolist() == [5.0]
    with world.mode("M"):
        assert op(runtime.tensor([1.0])).tolist() == [5.0]
    assert world.lines == []


def test_tensors_that_are_made_inside_of_a_handler(world: Ours) -> None:
    """7.1: their class decides, not where they are made."""
    op = unary(world)
    a = world.subclass("A", answer=leaves)
    made = []

    def makes(world: Any, who: Any, func: Any, types: Any, args: Any, kw: Any) -> Any:
        made.append(world.made(a))
        return op(made[-1])

    op(world.made(world.subclass("B", answer=makes)))
    assert made[0].key_bits & HANDLED == HANDLED
    assert world.lines == ["B: f.default(B) types=(B)", "A: f.default(A) types=(A)"]


@pytest.mark.spec("dispatch 8.4", "TestPythonDispatcher.test_basic")
@pytest.mark.spec("dispatch 8.4", "TestPythonDispatcher.test_lstsq")
def test_the_python_dispatcher_looks_on(world: Ours) -> None:
    """8.4 TestPythonDispatcher.test_basic, TestPythonDispatcher.test_lstsq:
    a kernel at that key that goes on changes nothing, also inside of handlers.
    """

    def runs_on_plain(world: Any, who: Any, func: Any, *given: Any) -> Any:
        return func(x)

    below = full_after(DispatchKey.PythonDispatcher).remove(
        DispatchKey.PythonDispatcher
    )
    seen = []

    def looks(keyset: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(str(op))
        return op.redispatch(keyset & below, *args, **kwargs)

    library = Library("_", "IMPL")
    library.fallback(looks, "PythonDispatcher", with_keyset=True)
    x: Any = runtime.tensor([[1.0, 2.0], [3.0, 4.0]])
    with include_keys(DispatchKey.PythonDispatcher):
        assert core.matmul(x, x).tolist() == [[7.0, 10.0], [15.0, 22.0]]
        assert seen[0] == "core.matmul.default"
        seen.clear()
        core.neg(world.made(world.subclass("A", answer=runs_on_plain)))
        assert seen == ["core.neg.default"] * 2
        with exclude_keys(DispatchKey.PythonDispatcher):
            core.neg(x)
        assert len(seen) == 2
    library.close()


def test_traced_calls(world: Ours) -> None:
    """C1: the nesting of the trace is as before, also after an exception."""
    op = unary(world)

    def fails(world: Any, who: Any, func: Any, types: Any, args: Any, kw: Any) -> Any:
        leaves(world, who, func, types, args, kw)
        raise KeyError("mine")

    x = world.made(world.subclass("A", answer=leaves))
    y = world.made(world.subclass("B", answer=fails))
    before = Look()
    with runtime.default_dispatcher().trace() as lines:
        op(x)
        with pytest.raises(KeyError, match="mine"):
            op(y)
        assert before.unchanged()
    way = ("PythonTLSSnapshot", "AutogradCPU", "ADInplaceOrView", "Python", "CPU")
    calls = ("call", "redispatch", "redispatch", "redispatch", "call")
    assert lines == 2 * [
        f"{' ' * depth}[{call}] op=[everyorder_worlds::f], key=[{key}]"
        for depth, (call, key) in enumerate(zip(calls, way, strict=True))
    ]
