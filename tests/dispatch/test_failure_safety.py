"""Spec 3.10: a public call that raises leaves everything as it was.

Every row is a call of the public surface that raises, on a dispatcher in which there is
something to spoil; `everything` is compared before and after.
"""

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from everyorder.runtime.dispatch import Dispatcher, Library, boxed, fallthrough
from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.keys import DispatchKey, KeySet, exclude_keys, include_keys
from everyorder.runtime.tensors import tensor
from tests.dispatch.samples import (
    FOO,
    Ear,
    everything,
    on,
    op,
    says,
    t_t,
    tt_t,
    untyped,
)

CUDA = DispatchKey.CUDA
MANY = ", ".join(f"Tensor x{number}" for number in range(65))


@untyped
def fails(*args: Any) -> Any:
    raise ZeroDivisionError


class World:
    """A dispatcher with operators, overrides, fallbacks, listeners and libraries."""

    def __init__(self) -> None:
        self.d = Dispatcher(warns_of_overrides=False)
        self.ear = Ear()
        self.listening = self.d.add_listener(self.ear)
        self.def_ = Library("test", "DEF", dispatcher=self.d, origin="def")
        self.cpu = Library("test", "IMPL", "CPU", dispatcher=self.d, origin="cpu")
        self.wild = Library("_", "IMPL", dispatcher=self.d, origin="wild")
        self.closed = Library("test", "FRAGMENT", dispatcher=self.d)
        self.closed.close()
        self.def_.define(FOO, tags=("core",))
        self.def_.define("bad(Tensor x) -> (int, int)")
        self.def_.define("two(int x) -> int")
        self.def_.define("two.b(str x) -> int")
        self.cpu.impl("foo", says(1), debug="old")
        self.cpu.impl("foo", t_t, debug="new")
        self.cpu.impl("bad", fails)
        self.def_.impl("bad", boxed(lambda o, k, s: s.clear()), "CUDA")
        self.def_.impl("bad", says((1,)), "XLA")
        self.def_.impl("bad", fallthrough, "HPU")
        self.def_.impl("dangling", tt_t, "CPU")
        self.def_.impl("FPGA", says(1), ["FPGA", "CompositeImplicitAutograd"])
        self.wild.fallback(says(1), "Meta", debug="meta")

    def fail_next_listener(self) -> None:
        self.ear.fails_at_registered = OSError("no")


def with_failing_ear(call: Callable[[World], Any]) -> Callable[[World], Any]:
    def failing(w: World) -> Any:
        w.fail_next_listener()
        return call(w)

    return failing


def with_error_on_override(w: World) -> Any:
    w.d.warns_of_overrides = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return w.def_.impl("foo", t_t, ["CUDA", "CPU"])
    finally:
        w.d.warns_of_overrides = False


def inside_guards(w: World) -> Any:
    included, excluded = include_keys(DispatchKey.Tracer), exclude_keys(CUDA)
    with included, excluded, w.d.trace():
        return op(w.d, "test::bad").call(on("CPU"))


CALLS: dict[str, Callable[[World], Any]] = {
    "Library: kind": lambda w: Library("test", "BLOCK", dispatcher=w.d),
    "Library: wildcard": lambda w: Library("_", "DEF", dispatcher=w.d),
    "Library: key": lambda w: Library("other", "DEF", "CPU", dispatcher=w.d),
    "Library: unknown key": lambda w: Library("other", "DEF", "X", dispatcher=w.d),
    "Library: taken": lambda w: Library("test", "DEF", dispatcher=w.d),
    "define: twice": lambda w: w.def_.define(FOO),
    "define: mismatch": lambda w: w.def_.define("dangling(Tensor x) -> Tensor"),
    "define: syntax": lambda w: w.def_.define("new(Tensor x -> Tensor"),
    "define: 65 arguments": lambda w: w.def_.define(f"new({MANY}) -> ()"),
    "define: tags": lambda w: w.def_.define("new() -> ()", tags=("nonsense",)),
    "define: pure": lambda w: w.def_.define("new(Tensor(a!) x) -> ()", "PURE_FUNCTION"),
    "define: alias kind": lambda w: w.def_.define("new() -> ()", "NONSENSE"),
    "define: namespace": lambda w: w.def_.define("other::new() -> ()"),
    "define: IMPL": lambda w: w.cpu.define("new() -> ()"),
    "define: closed": lambda w: w.closed.define("new() -> ()"),
    "define: kernel mismatch": lambda w: w.def_.define(
        "new(Tensor x) -> Tensor", kernel=tt_t
    ),
    "define: signature": lambda w: w.def_.define(
        "dangling(Tensor x, Tensor y) -> Tensor", kernel=t_t
    ),
    "define: nothing inferred": lambda w: w.def_.define("new", kernel=says(1)),
    "define: no kernel": lambda w: w.def_.define("new() -> ()", kernel=3),  # type: ignore[arg-type]  # that is the mistake
    "define: listener": with_failing_ear(lambda w: w.def_.define("new() -> ()")),
    "define with a kernel: listener": with_failing_ear(
        lambda w: w.def_.define("new(Tensor x) -> Tensor", kernel=t_t)
    ),
    "impl: mismatch": lambda w: w.cpu.impl("foo", tt_t),
    "impl: signature": lambda w: w.cpu.impl("dangling", t_t),
    "impl: several keys": lambda w: w.def_.impl("foo", t_t, ["CUDA", "Dense"]),
    "impl: unknown key": lambda w: w.def_.impl("new", t_t, ["CUDA", "Nowhere"]),
    "impl: no key": lambda w: w.def_.impl("new", t_t, []),
    "impl: key": lambda w: w.cpu.impl("new", t_t, "CUDA"),
    "impl: exclusive": lambda w: w.def_.impl(
        "foo", t_t, ["CUDA", "CPU"], allow_override=False
    ),
    "impl: override is an error": with_error_on_override,
    "impl: closed": lambda w: w.closed.impl("foo", t_t, "CUDA"),
    "impl: wildcard": lambda w: w.wild.impl("foo", t_t, "CUDA"),
    "impl: name": lambda w: w.def_.impl("a b", t_t, "CUDA"),
    "impl: no kernel": lambda w: w.def_.impl("foo", None, "CUDA"),  # type: ignore[arg-type]  # that is the mistake
    "fallback: taken": lambda w: w.wild.fallback(says(1), "Meta"),
    "fallback: alias": lambda w: w.wild.fallback(says(1), "CompositeExplicitAutograd"),
    "fallback: kind": lambda w: w.def_.fallback(says(1), "CPU"),
    "fallback: no key": lambda w: w.wild.fallback(says(1)),
    "fallback: undefined": lambda w: w.wild.fallback(says(1), "Undefined"),
    "reserve: namespace": lambda w: w.def_.reserve("other::foo"),
    "reserve: closed": lambda w: w.closed.reserve("foo"),
    "add_listener": lambda w: w.d.add_listener(failing_ear()),
    "find_schema_or_raise": lambda w: w.d.find_schema_or_raise("test::nope"),
    "registrations_for": lambda w: w.d.registrations_for("Nowhere"),
    "dump_state": lambda w: w.d.dump_state("a b"),
    "call: arguments": lambda w: op(w.d).call(),
    "call: kernel raises": lambda w: op(w.d, "test::bad").call(on("CPU")),
    "call: kernel raises, inside guards": inside_guards,
    "call: stack": lambda w: op(w.d, "test::bad").call(on("CUDA")),
    "call: returns": lambda w: op(w.d, "test::bad").call(on("XLA")),
    "call: missing": lambda w: op(w.d, "test::bad").call(on("VE")),
    "call: all fell through": lambda w: op(w.d, "test::bad").call(on("HPU")),
    "call: no schema": lambda w: op(w.d, "test::dangling").call(),
    "call_boxed": lambda w: op(w.d, "test::bad").call_boxed([on("CPU")]),
    "redispatch": lambda w: op(w.d, "test::bad").redispatch(KeySet(), on("CPU")),
    "redispatch: fallthrough": lambda w: op(w.d, "test::bad").redispatch(
        KeySet(DispatchKey["HPU"]), on("CPU")
    ),
    "call_for_key": lambda w: op(w.d).call_for_key(DispatchKey.Autograd, [tensor(1.0)]),
    "overload": lambda w: op(w.d, "test::two").overloadpacket.c,
    "has_computed_kernel": lambda w: op(w.d).has_computed_kernel("Autograd"),
}


def failing_ear() -> Ear:
    ear = Ear()
    ear.fails_at_registered = OSError("no")
    return ear


@pytest.mark.parametrize("name", CALLS)
def test_a_failing_call_changes_nothing(name: str) -> None:
    w = World()
    before = everything(w.d)
    found = []
    for _ in range(2):  # it fails the same way again: nothing was recorded
        with pytest.raises((EveryorderError, OSError, ZeroDivisionError, Warning)) as c:
            CALLS[name](w)
        found.append((type(c.value), str(c.value)))
        w.ear.fails_at_registered = None if "listener" not in name else OSError("no")
        assert everything(w.d) == before
    assert found[0] == found[1]


def test_the_world_ends() -> None:
    w = World()
    for library in (w.wild, w.cpu, w.def_):
        library.close()
    w.listening.close()
    assert everything(w.d) == everything(Dispatcher(warns_of_overrides=False))
