"""Rules for one operator and one class, said from outside."""

import gc
import re
import sys
import weakref
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime.base.codegen import is_generated
from everyorder.runtime.dispatch import (
    Dispatcher,
    Library,
    Registration,
    default_dispatcher,
)
from everyorder.runtime.errors.call import OperatorGone
from everyorder.runtime.errors.registration import Conflict, LibraryMisuse
from everyorder.runtime.errors.torch_dispatch import HandlerError
from everyorder.runtime.torch_dispatch import (
    Context,
    TorchDispatchMode,
    register_torch_dispatch,
)
from everyorder.runtime.torch_dispatch.fallback import HANDLING
from tests.coded import code
from tests.torch_dispatch.programs import unary
from tests.torch_dispatch.worlds import Ours, declines, leaves


def rule(world: Ours, name: str, answer: Any = None) -> Any:
    def said(who: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        kind = who.__name__ if isinstance(who, type) else f"a {type(who).__name__}"
        world.heard(f"{name} for {kind}", func, types, args, kwargs)
        return func(*args, **kwargs) if answer is None else answer

    return said


def live() -> list[str]:
    """The rules of the default dispatcher."""
    entries = default_dispatcher().snapshot().entries()
    return [each.debug for entry in entries for each in entry.rules]


@pytest.mark.spec("dispatch 7.6", "rules for one operator and class")
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
    assert live() == []


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
            with pytest.raises(HandlerError, check=code("NoImplementation")):
                op(world.tensor(1.0))
        with (
            register_torch_dispatch(op, a, rule(world, "rule", NotImplemented)),
            pytest.raises(HandlerError, check=code("NoImplementation")),
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
    with pytest.raises(Conflict, check=code("RuleTaken")) as caught:
        register_torch_dispatch(op, type(mode), rule(world, "second"))
    assert isinstance(caught.value, Conflict)
    # How a place is wrapped depends on its length.
    found = re.sub(r"at\s+\S+:\d+", "at HERE", str(caught.value))
    assert found == (
        "`M.__torch_dispatch__` has a rule for `everyorder_worlds::f` already.\n"
        "  live:    said (registered at HERE)\n"
        "  refused: said (registered at HERE)\n"
        "  to do:   close the registration of the live one, or the library that owns it"
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
    assert live() == []


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
            short.append(is_generated(sys._getframe(1).f_code, HANDLING))
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
    ("place", "value", "text"),
    [
        (0, "core::neg", "`func` is an operator with its overload; found str."),
        (
            0,
            runtime.ops.core.neg,
            "`func` is an operator with its overload; found OperatorPacket.",
        ),
        (1, "M", "`cls` is a class; found str."),
        (2, 3, "`fn` is a function; found int."),
        (2, None, "`fn` is a function; found NoneType."),
    ],
)
def test_what_makes_no_rule(place: int, value: Any, text: str) -> None:
    """Bad input: refused by name, and no rule is there afterwards."""
    given: list[Any] = [runtime.ops.core.neg.default, runtime.Tensor, print]
    given[place] = value
    with pytest.raises(LibraryMisuse, check=code("WrongArgument")) as caught:
        register_torch_dispatch(*given)
    assert str(caught.value) == text
    assert live() == []


def test_rules_are_state(world: Ours) -> None:
    """A rule is in the snapshot and the fingerprint, and in no dump."""
    op, dispatcher = unary(world), default_dispatcher()
    before, name = runtime.dispatch.fingerprint(dispatcher.snapshot()), str(op.name)
    dumps = dispatcher.dump_state(name), dispatcher.dump_table(name)
    with register_torch_dispatch(op, int, print) as held:
        assert isinstance(held, Registration)
        (rule,) = op.entry.rules
        assert held.tokens == (rule,)
        assert (rule.cls, rule.function, rule.operator) == (int, print, op.name)
        assert rule.debug.startswith(f"print (registered at {__file__}:")
        assert runtime.dispatch.fingerprint(dispatcher.snapshot()) != before
        assert (dispatcher.dump_state(name), dispatcher.dump_table(name)) == dumps
    assert held.closed
    assert runtime.dispatch.fingerprint(dispatcher.snapshot()) == before


def test_a_rule_alone_is_no_operator() -> None:
    """It waits for one: what it is for is defined before or after it."""
    dispatcher = Dispatcher(builtin_fallbacks=True)
    library = Library("r", "FRAGMENT", dispatcher=dispatcher)
    with library.define("f(Tensor x) -> Tensor"):
        op = dispatcher.find_op("r::f")
        assert op is not None
        held = library.rule("f", int, print)
    assert dispatcher.find_op("r::f") is None
    assert (dispatcher.op_names(), dispatcher.registrations_for(None)) == ((), ())
    assert (dispatcher.dump_state("r::f"), op.dump_state()) == ("", "")
    assert (dispatcher.dump_table("r::f"), op.dump_table()) == ("", "")
    assert (op.has_schema, op.schemas()) == (False, ())
    with pytest.raises(OperatorGone, check=code("OperatorGone")):
        op(runtime.tensor([1.0]))
    with library.define("f(Tensor x) -> Tensor"):
        assert op.entry.rules == held.tokens
    held.close()
    assert dispatcher.snapshot().namespaces == {}


def test_a_rule_ends_with_its_library(world: Ours) -> None:
    op, mode = unary(world), world.mode("M")
    with Library("everyorder_worlds", "IMPL") as library, mode:
        library.rule("f", type(mode), rule(world, "rule"))
        library.rule(op, int, print, debug="named")
        assert [each.partition(" (")[0] for each in live()] == ["named", "said"]
        op(world.tensor(1.0))
    assert live() == []
    with pytest.raises(
        LibraryMisuse,
        check=code("CallRefused"),
        match="an operator belongs to a namespace",
    ):
        Library("_", "IMPL").rule("f", int, print)
    with mode:
        op(world.tensor(1.0))
    assert world.lines == [
        "rule for a M: f.default(Tensor) types=()",
        "M: f.default(Tensor) types=()",
    ]


def test_a_rule_keeps_no_dispatcher() -> None:
    """D3: it lives as long as its dispatcher, and not the other way round."""

    def said(*given: Any) -> None:
        """A rule."""

    dispatcher = Dispatcher()
    with Library("r", "FRAGMENT", dispatcher=dispatcher) as library:
        library.define("f(Tensor x) -> Tensor")
        op = dispatcher.find_op("r::f")
        register_torch_dispatch(op, int, said)
    alive: list[weakref.ref[Any]] = [weakref.ref(dispatcher), weakref.ref(said)]
    del dispatcher, library, op, said
    gc.collect()
    assert [each() for each in alive] == [None, None]


def test_the_class_of_a_rule_is_let_go_at_once(world: Ours) -> None:
    """D3: no cycle holds it, even after calls that went by the rule."""
    op, plain = unary(world), world.tensor(1.0)
    cls = world.subclass("A", answer=leaves)
    said = rule(world, "rule", plain)
    with register_torch_dispatch(op, cls, said) as held:
        assert op(world.made(cls)) is plain
    alive = weakref.ref(said)
    del said
    assert alive() is None
    assert held.tokens == ()
    alive = weakref.ref(cls)
    del cls
    gc.collect()
    assert alive() is None


def test_a_library_of_a_context_has_no_rules() -> None:
    with Context("plugin") as context:
        library = context.library("core", "FRAGMENT")
        with pytest.raises(LibraryMisuse, check=code("CallRefused")) as caught:
            library.rule("neg", int, print)
    assert (
        caught.value.reason
        == "a rule belongs to the operator, which all contexts share"
    )
    context.close()
    assert live() == []


def test_rules_alone_make_no_operator() -> None:
    dispatcher = Dispatcher()
    with Library("ruled", "DEF", dispatcher=dispatcher) as library:
        library.define("f(Tensor x) -> Tensor")
        handle = dispatcher.find_op("ruled::f")
        assert handle is not None
        register_torch_dispatch(handle, runtime.Tensor, lambda *_: None)
    with pytest.raises(OperatorGone, check=code("OperatorGone")):
        handle.entry  # noqa: B018  # raises


def test_errors_name_the_rule_and_not_the_handler() -> None:
    class Silent(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            raise AssertionError("the rule stands before it")

    def says_text(mode: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return "a text"

    x = runtime.ones(2)
    with Library("core", "FRAGMENT", origin="here") as library:
        library.rule("neg", Silent, says_text)
        with (
            Silent(),
            pytest.raises(HandlerError, check=code("WrongHandlerResult")) as caught,
        ):
            runtime.ops.core.neg(x)
    assert (
        caught.value.handler == f"the rule of {Silent.__qualname__}, says_text (here)"
    )
