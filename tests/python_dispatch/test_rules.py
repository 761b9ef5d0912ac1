"""Rules for one operator and one class, said from outside."""

import gc
import sys
import weakref
from typing import Any

import pytest

import runtime
from runtime.errors.python_dispatch import NoImplementation, RuleTaken
from runtime.errors.registration import WrongArgument
from runtime.python_dispatch import TorchDispatchMode, register_torch_dispatch
from runtime.python_dispatch.rules import RULES
from runtime.python_dispatch.short import FILE
from tests.python_dispatch.programs import unary
from tests.python_dispatch.worlds import Ours, declines, leaves


def rule(world: Ours, name: str, answer: Any = None) -> Any:
    def said(who: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        kind = who.__name__ if isinstance(who, type) else f"a {type(who).__name__}"
        world.heard(f"{name} for {kind}", func, types, args, kwargs)
        return func(*args, **kwargs) if answer is None else answer

    return said


def test_a_rule_of_modes_gets_the_mode(world: Ours) -> None:
    """7.6: it stands before the method, for that operator and that class alone."""
    op, mode, other = unary(world), world.mode("M"), world.mode("N")
    with register_torch_dispatch(op, type(mode), rule(world, "rule")), mode, other:
        op(world.tensor(1.0))
    with mode:
        op(world.tensor(1.0))
    assert world.lines == [
        "N: f.default(Tensor) types=()",
        "rule for a M: f.default(Tensor) types=()",
        "M: f.default(Tensor) types=()",
    ]
    assert RULES == {}


def test_a_rule_of_tensors_gets_the_class(world: Ours) -> None:
    """7.6: of exactly that class: what derives from it has none."""
    op = unary(world)
    a = world.subclass("A", answer=leaves)
    b = world.subclass("B", a, answer=leaves)
    plain = world.tensor(1.0)
    with register_torch_dispatch(op, a, rule(world, "rule", plain)):
        assert op(world.made(a)) is plain
        op(world.made(b))
    op(world.made(a))
    assert world.lines == [
        "rule for A: f.default(A) types=(A)",
        "B: f.default(B) types=(B)",
        "A: f.default(A) types=(A)",
    ]


def test_a_rule_that_declines_leaves_it_to_the_next(world: Ours) -> None:
    """7.6: NotImplemented goes on to who is asked next, not to the method."""
    op, mode = unary(world), world.mode("M")
    a = world.subclass("A", answer=leaves)
    with register_torch_dispatch(op, type(mode), rule(world, "rule", NotImplemented)):
        with mode:
            op(world.made(a))
            with pytest.raises(NoImplementation):
                op(world.tensor(1.0))
        with (
            register_torch_dispatch(op, a, rule(world, "rule", NotImplemented)),
            pytest.raises(NoImplementation),
        ):
            op(world.made(a))
    assert world.lines == [
        "rule for a M: f.default(A) types=(A)",
        "A: f.default(A) types=(A)",
        "rule for a M: f.default(Tensor) types=()",
        "rule for A: f.default(A) types=(A)",
    ]


def test_a_second_rule_is_refused(world: Ours) -> None:
    """Bad input: one rule for an operator and a class."""
    op, mode = unary(world), world.mode("M")
    first = register_torch_dispatch(op, type(mode), rule(world, "first"))
    with pytest.raises(RuleTaken) as caught:
        register_torch_dispatch(op, type(mode), rule(world, "second"))
    assert str(caught.value) == (
        "`M.__torch_dispatch__` has a rule for `everyorder_worlds.f.default` already.\n"
        "  to do: close the handle of the first one"
    )
    with mode:
        op(world.tensor(1.0))
    first.close()
    second = register_torch_dispatch(op, type(mode), rule(world, "second"))
    first.close()
    with mode:
        op(world.tensor(1.0))
    second.close()
    assert world.lines == [
        "first for a M: f.default(Tensor) types=()",
        "second for a M: f.default(Tensor) types=()",
    ]


def test_rules_end_in_any_order(world: Ours) -> None:
    """D1: and nothing is left of them."""
    op, m, n = unary(world), world.mode("M"), world.mode("N")
    first = register_torch_dispatch(op, type(m), rule(world, "rule"))
    second = register_torch_dispatch(op, type(n), rule(world, "rule"))
    first.close()
    with m, n:
        op(world.tensor(1.0))
    second.close()
    assert world.lines == [
        "rule for a N: f.default(Tensor) types=()",
        "M: f.default(Tensor) types=()",
    ]
    assert RULES == {}


def test_a_closed_rule_is_let_go(world: Ours) -> None:
    """D3: the rule and the class die."""
    op, mode, said = unary(world), world.mode("M", declines), rule(world, "rule")
    handle = register_torch_dispatch(op, type(mode), said)
    handle.close()
    alive = [weakref.ref(said), weakref.ref(type(mode))]
    del said, mode, handle
    gc.collect()
    assert [each() for each in alive] == [None, None]


def test_a_rule_may_close_itself(world: Ours) -> None:
    """A rule that ends while it runs still answers."""
    op, mode = unary(world), world.mode("M")
    plain = world.tensor(1.0)

    def once(*given: Any) -> Any:
        handle.close()
        return plain

    handle = register_torch_dispatch(op, type(mode), once)
    with mode:
        assert op(plain) is plain
        assert op(plain) is not plain
    assert world.lines == ["M: f.default(Tensor) types=()"]


def test_rules_of_core_operators() -> None:
    """7.6: the operators of `core`, and short ways that are linked already."""
    a = runtime.tensor([1.0]) + 1

    class M(runtime.python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            heard.append("method")
            return func(*args, **(kwargs or {}))

    heard: list[str] = []

    def said(*given: Any) -> Any:
        heard.append("rule")
        return a

    with M():
        a + 1
        with register_torch_dispatch(runtime.ops.core.add.default, M, said):
            assert a + 1 is a
        a + 1
    assert heard == ["method", "rule", "method"]


def test_a_rule_makes_calls_of_its_own_operator_longer_alone() -> None:
    """7.6: all others are handled by their short ways as before."""
    core: Any = runtime.ops.core
    short: list[bool] = []

    class M(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            short.append(sys._getframe(1).f_code.co_filename == FILE)
            return func(*args, **(kwargs or {}))

    def called() -> list[bool]:
        short.clear()
        with M():
            core.neg(x)
            core.abs(x)
        return [*short]

    x = runtime.tensor([1.0])
    assert called() == [True, True]
    with register_torch_dispatch(core.abs.default, runtime.Tensor, print):
        assert called() == [True, False]
    assert called() == [True, True]


@pytest.mark.parametrize(
    ("place", "value", "found"),
    [
        (
            0,
            "core::neg",
            "`func` is an operator with its overload; found a str.",
        ),
        (
            0,
            runtime.ops.core.neg,
            "`func` is an operator with its overload; found an OperatorPacket.",
        ),
        (1, "M", "`cls` is a class; found a str."),
        (2, 3, "`rule` is a function; found an int."),
        (2, None, "`rule` is a function; found None."),
    ],
)
def test_what_makes_no_rule(place: int, value: Any, found: str) -> None:
    """Bad input: refused by name, and no rule is there afterwards."""
    given: list[Any] = [runtime.ops.core.neg.default, runtime.Tensor, print]
    given[place] = value
    with pytest.raises(TypeError) as caught:
        register_torch_dispatch(*given)
    assert type(caught.value) is WrongArgument
    assert str(caught.value) == found
    assert RULES == {}
