"""Linked and direct kernels: what they are given, and what lies below them."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from everyorder.runtime.dispatch import Dispatcher, Library, boxed, fallthrough
from everyorder.runtime.dispatch.dispatcher import release
from everyorder.runtime.dispatch.kernel import direct, linked, untyped_kernel_of
from everyorder.runtime.dispatch.kernel_lookup import NextKernel
from everyorder.runtime.errors.call import KernelError, MissingKernel
from everyorder.runtime.errors.registration import LibraryMisuse
from everyorder.runtime.keys import DispatchKey, KeySet, full_after
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors import Tensor, tensor
from tests.coded import code
from tests.dispatch.samples import bare, defined, on, op, says, silent

ADD = "foo(Tensor x, Tensor y, *, Scalar alpha=1) -> str"


def passing(name: str, seen: list[Any]) -> Any:
    """A linked kernel that notes its keyset and adds its name to what lies below."""

    def factory(below: Any, keyset: KeySet) -> Callable[..., str]:
        seen.append((name, str(keyset)))
        return lambda *arguments: f"{name} > {below(*arguments)}"

    return linked(factory, name)


def chain(dispatcher: Dispatcher, seen: list[Any]) -> Library:
    library = defined(dispatcher, ADD)
    library.impl("foo", passing("autograd", seen), "Autograd")
    library.impl("foo", passing("inplace", seen), "ADInplaceOrView")
    library.impl("foo", direct(lambda x, y, alpha: f"cpu {alpha}", "cpu"), "CPU")
    return library


def test_a_linked_kernel_runs_the_next_one() -> None:
    dispatcher, seen = silent(), []  # type: ignore[var-annotated]  # a mixed list
    chain(dispatcher, seen)
    x = tensor([1.0])
    assert op(dispatcher)(x, x, alpha=2) == "autograd > inplace > cpu 2"
    assert [name for name, _ in seen] == ["inplace", "autograd"]
    assert seen[0][1] == "KeySet(CPU, ADInplaceOrView)"
    assert seen[1][1] == "KeySet(CPU, ADInplaceOrView, AutogradCPU)"


def test_a_factory_is_called_once_for_each_keyset() -> None:
    dispatcher, seen = silent(), []  # type: ignore[var-annotated]  # a mixed list
    chain(dispatcher, seen)
    x, other = tensor([1.0]), on("CPU", "AutogradCPU")
    handle = op(dispatcher)
    for _ in range(40):
        handle(x, x)
        handle(other, x)
    made = [keys for name, keys in seen if name == "autograd"]
    assert made == ["KeySet(CPU, ADInplaceOrView, AutogradCPU)"]


def test_all_that_runs_is_of_one_entry() -> None:
    dispatcher = silent()
    library = defined(dispatcher)
    cpu = library.impl("foo", direct(lambda x: x, "old"), "CPU")
    newer = tensor([2.0])

    def factory(below: Any, keyset: KeySet) -> Callable[..., Any]:
        def run(x: Any) -> Any:
            cpu.close()
            library.impl("foo", direct(lambda x: newer, "new"), "CPU")
            return below(x)

        return run

    library.impl("foo", linked(factory, "swaps"), "Autograd")
    x = tensor([1.0])
    assert op(dispatcher)(x) is x
    library.impl("foo", linked(lambda below, keys: below, "plain"), "Autograd")
    assert op(dispatcher)(x) is newer


def test_at_runs_the_kernel_of_another_keyset() -> None:
    dispatcher = silent()
    library = defined(dispatcher, "foo(str device) -> str")
    library.impl("foo", says("cpu"), "CPU")
    library.impl("foo", says("cuda"), "CUDA")

    def factory(below: Any, keyset: KeySet) -> Callable[..., Any]:
        links = {
            k.lower(): below.for_keyset(KeySet(DispatchKey[k])) for k in ("CPU", "CUDA")
        }
        return lambda device: links[device](device)

    library.impl("foo", linked(factory, "select"), "BackendSelect")
    assert [op(dispatcher)(d) for d in ("cuda", "cpu")] == ["cuda", "cpu"]


def test_below_knows_the_operator() -> None:
    dispatcher = bare()
    library = defined(dispatcher)
    library.define("bar(Tensor x) -> Tensor")
    asked: list[Any] = []

    def factory(below: Any, keyset: KeySet) -> Callable[..., Any]:
        made = below.operator()
        asked.append(made)

        def run(x: Any) -> Any:
            asked.append(below.operator())
            return below.run(x)

        return run

    everywhere = Library("_", "IMPL", dispatcher=dispatcher)
    everywhere.fallback(linked(factory, "asks"), "Autograd")
    for key in ("ADInplaceOrView", "BackendSelect"):
        everywhere.fallback(fallthrough, key)
    x = on("CPU", "AutogradCPU")
    for name in ("foo", "bar"):
        library.impl(name, direct(lambda x: x, "cpu"), "CPU")
        handle = op(dispatcher, f"test::{name}")
        for call in (handle, handle.overloadpacket):
            for _ in range(20):
                assert call(x) is x
        assert handle.redispatch(x.keyset, x) is x
        assert set(map(id, asked)) == {id(handle)}
        assert len(asked) >= 41
        asked.clear()


def test_kernels_know_the_operator_when_nobody_keeps_its_handle() -> None:
    dispatcher = silent()
    library = defined(dispatcher, "foo(Tensor x) -> str")

    def stack(operator: Any, keyset: KeySet, values: list[Any]) -> None:
        values[-1:] = [str(operator)]

    def factory(below: Any, keyset: KeySet) -> Callable[..., Any]:
        return lambda x: f"{below.operator()} > {below.run(x)}"

    packet = op(dispatcher).overloadpacket
    library.impl("foo", boxed(stack), "CPU")
    for _ in range(20):
        assert packet(on("CPU")) == "test.foo.default"
    library.impl("foo", linked(factory, "asks"), "Autograd")
    for _ in range(20):
        assert packet(tensor([1.0])) == "test.foo.default > test.foo.default"
    assert dispatcher.keyring.handles.get("test::foo") is None


def test_asking_for_the_operator_keeps_no_dispatcher() -> None:
    enabled = gc.isenabled()
    gc.disable()
    try:
        dispatcher = silent()
        library = defined(dispatcher, "foo(Tensor x) -> str")

        def factory(below: Any, keyset: KeySet) -> Callable[..., Any]:
            return lambda x: str(below.operator())

        library.impl("foo", linked(factory, "asks"), "Autograd")
        x = tensor([1.0])
        for _ in range(20):
            assert op(dispatcher)(x) == "test.foo.default"
        library.close()
        dead = weakref.ref(dispatcher)
        del dispatcher, library
        assert dead() is None
    finally:
        if enabled:
            gc.enable()


def test_nothing_below_is_said_by_name() -> None:
    dispatcher = silent()
    library = defined(dispatcher)
    library.impl("foo", linked(lambda below, keys: below, "alone"), "CPU")
    with pytest.raises(MissingKernel) as caught:
        op(dispatcher)(tensor([1.0]))
    assert caught.value.operator == "test::foo"
    library.impl("foo", linked(lambda below, keys: below, "alone"), "Undefined")
    with pytest.raises(MissingKernel):
        op(dispatcher).redispatch(KeySet(), tensor([1.0]))


def test_links_write_the_trace_of_a_redispatch() -> None:
    dispatcher = silent()
    chain(dispatcher, [])
    x = tensor([1.0])
    handle = op(dispatcher)
    for _ in range(20):
        handle(x, x)
    with dispatcher.trace() as lines:
        handle(x, x)
    assert lines == [
        "[call] op=[test::foo], key=[AutogradCPU]",
        " [redispatch] op=[test::foo], key=[ADInplaceOrView]",
        "  [redispatch] op=[test::foo], key=[CPU]",
    ]
    assert handle(x, x) == "autograd > inplace > cpu 1"
    assert len(lines) == 3


@pytest.mark.parametrize("kind", ["typed", "python", "stack", "fallback", "keyset"])
def test_a_linked_kernel_has_any_kernel_below(kind: str) -> None:
    dispatcher = silent()
    library = defined(dispatcher, "foo(Tensor x, ScalarType t=6) -> str")

    def typed(x: Tensor, t: DType) -> str:
        return f"typed {t!r}"

    def stack(operator: Any, keys: KeySet, values: list[Any]) -> None:
        values[-2:] = [f"stack {values[-1]} {operator.name}"]

    if kind == "fallback":
        everywhere = Library("_", "IMPL", dispatcher=dispatcher)
        everywhere.fallback(
            lambda operator, x, t: f"fallback {t!r} {operator.name}", "CPU"
        )
    elif kind == "keyset":
        library.impl("foo", lambda keys, x, t: f"{keys} {t!r}", "CPU", with_keyset=True)
    else:
        kernel = {"typed": typed, "python": lambda x, t: f"python {t!r}"}
        library.impl("foo", boxed(stack) if kind == "stack" else kernel[kind], "CPU")
    library.impl("foo", linked(lambda below, keys: below.run, "top"), "Autograd")
    wanted = {
        "typed": "typed int64",
        "python": "python int64",
        "stack": "stack 4 test::foo",
        "fallback": "fallback int64 test::foo",
        "keyset": "KeySet(CPU, ADInplaceOrView) int64",
    }
    if kind == "keyset":
        wanted["keyset"] = "KeySet(CPU) int64"
    assert op(dispatcher)(tensor([1.0]), DType.named("int64")) == wanted[kind]


def test_direct_kernels_get_every_argument_and_codes_as_objects() -> None:
    dispatcher = silent()
    library = defined(dispatcher, "foo(Tensor x, int[2] s=1, *, ScalarType t=6) -> str")
    kernel = direct(lambda *arguments: repr(arguments[1:]), "shows")
    library.impl("foo", kernel, "CPU")
    assert op(dispatcher)(on("CPU")) == "([1, 1], float32)"
    assert op(dispatcher)(on("CPU"), [2, 3], t="int64" and 4) == "([2, 3], int64)"
    assert "shows" in dispatcher.dump_state("test::foo")


def test_the_outermost_call_checks_the_result() -> None:
    dispatcher = silent()
    library = defined(dispatcher)
    library.impl("foo", direct(lambda x: 3, "three"), "CPU")
    library.impl("foo", linked(lambda below, keys: below.run, "top"), "Autograd")
    for _ in range(20):
        with pytest.raises(KernelError, check=code("WrongReturnType")):
            op(dispatcher)(tensor([1.0]))


def test_call_for_key_runs_a_linked_kernel() -> None:
    dispatcher = silent()
    chain(dispatcher, [])
    x = tensor([1.0])
    assert op(dispatcher).call_for_key("Autograd", [x, x, 3]) == [
        "autograd > inplace > cpu 3"
    ]


def test_no_link_keeps_a_kernel_alive() -> None:
    dispatcher, enabled = silent(), gc.isenabled()
    gc.disable()
    try:
        library = chain(dispatcher, [])
        kernel: Any = lambda x, y, alpha: "mine"  # noqa: E731  # a lambda can be weakly held
        held = library.impl("foo", direct(kernel, "mine"), "CPU")
        dead = weakref.ref(kernel)
        del kernel
        x, handle = tensor([1.0]), op(dispatcher)
        for _ in range(20):
            assert handle(x, x) == "autograd > inplace > mine"
        with dispatcher.trace():
            handle(x, x)
        held.close()
        assert dead() is None
    finally:
        if enabled:
            gc.enable()


def test_what_cannot_be_called_is_no_kernel() -> None:
    with pytest.raises(LibraryMisuse, check=code("NotAKernel")):
        direct(3, "three")  # type: ignore[arg-type]  # what is tested
    with pytest.raises(LibraryMisuse, check=code("NotAKernel")):
        linked(3, "three")  # type: ignore[arg-type]  # what is tested


def test_a_fallback_is_for_any_operator() -> None:
    library = Library("_", "IMPL", dispatcher=silent())
    with pytest.raises(LibraryMisuse, check=code("WrongArgument")) as caught:
        library.fallback(direct(lambda *a: None, "one"), "CPU")
    assert caught.value.found == "direct(...)"


def test_a_fallback_may_be_linked() -> None:
    dispatcher = silent()
    release(dispatcher, "Autograd")
    library = defined(dispatcher)
    made: list[str] = []

    def factory(below: Any, keyset: KeySet) -> Callable[..., Any]:
        made.append(str(below.schema.name))
        run: Callable[..., Any] = below.run
        return run

    everywhere = Library("_", "IMPL", dispatcher=dispatcher)
    everywhere.fallback(linked(factory, "passes"), "Autograd")
    x = tensor([1.0])
    library.impl("foo", direct(lambda x: x, "same"), "CPU")
    for _ in range(20):
        assert op(dispatcher)(x) is x
    assert set(made) == {"test::foo"}
    assert op(dispatcher).call_for_key("AutogradCPU", [x]) == [x]
    assert "AutogradCPU: passes" in dispatcher.dump_table("test::foo")


@pytest.mark.parametrize(
    ("kernel", "fallback", "found"),
    [
        (direct(lambda x: ("direct", x), "d"), False, ("direct", 3)),
        (linked(lambda below, keyset: lambda x: below.run(x), "l"), False, ("own", 3)),
        (boxed(lambda op, keys, stack: stack.append(("boxed", stack.pop())), "b"),
         False, ("boxed", 3)),
        (untyped_kernel_of(lambda op, x: (str(op), x), False), True,
         ("test.foo.default", 3)),
        (fallthrough, False, ("own", 3)),
    ],
)  # fmt: skip
def test_another_kernel_runs_where_the_linked_one_stands(
    kernel: Any, fallback: bool, found: Any
) -> None:
    dispatcher = silent()
    library = Library("test", "DEF", dispatcher=dispatcher)
    library.define("foo(Any x) -> Any")
    own = direct(lambda x: ("own", x), "own")
    library.impl("foo", own, "CompositeExplicitAutograd")

    def factory(below: NextKernel, keyset: KeySet) -> Callable[..., Any]:
        return below.bind(kernel, keyset, DispatchKey.BackendSelect, fallback)

    library.impl("foo", linked(factory, "stands"), "BackendSelect")
    keyset = KeySet([DispatchKey.BackendSelect, DispatchKey.CPU])
    assert op(dispatcher).redispatch(keyset, 3) == found


def test_full_after_is_what_lies_below() -> None:
    assert full_after(DispatchKey.AutogradCPU).has(DispatchKey.ADInplaceOrView)
