"""`ops`: operators by attribute, overloads by name."""

import sys
from copy import copy, deepcopy
from itertools import permutations
from pickle import dumps, loads
from types import FunctionType
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime.base.registry import Registry
from everyorder.runtime.dispatch import (
    Dispatcher,
    Library,
    Operators,
    default_dispatcher,
)
from everyorder.runtime.errors.call import CallError, NoMatchingOverload, OperatorGone
from everyorder.runtime.errors.registration import LookupFailed
from everyorder.runtime.schema.signature import OperatorName
from everyorder.runtime.tensors import tensor
from tests.coded import code
from tests.dispatch.samples import says, silent

CE = "CompositeExplicitAutograd"


def opened(d: Dispatcher, **schemas: str) -> tuple[Operators, Library]:
    """Operators `test::f.<name>`, each returning its own name."""
    library = Library("test", "FRAGMENT", dispatcher=d)
    for name, arguments in schemas.items():
        full = "f" if name == "plain" else f"f.{name}"
        library.define(f"{full}({arguments}) -> str")
        library.impl(full, says(name), CE)
    return Operators(lambda: d), library


def test_an_operator_with_one_overload() -> None:
    ops, library = opened(silent(), plain="int x")
    assert ops.test.f(1) == "plain"
    assert ops.test.f.default(1) == "plain"
    with pytest.raises(CallError, check=code("MissingArgument")):
        ops.test.f()
    library.close()


@pytest.mark.parametrize("order", list(permutations(("plain", "a", "b"))))
def test_the_overload_is_the_first_by_name_that_fits(order: tuple[str, ...]) -> None:
    arguments = {"plain": "Tensor x", "a": "float x", "b": "int x"}
    ops, library = opened(silent(), **{name: arguments[name] for name in order})
    assert ops.test.f.overloads() == ("default", "a", "b")
    # 1 fits both `a` and `b`; a tensor of one element fits the unnamed one first.
    assert (ops.test.f(1), ops.test.f(tensor([1.0]))) == ("a", "plain")
    assert ops.test.f.b(1) == "b"
    library.close()


def test_no_overload_fits() -> None:
    ops, library = opened(silent(), plain="int x", b="str x, int y")
    with pytest.raises(NoMatchingOverload) as caught:
        ops.test.f("a")
    fields = caught.value.fields()
    assert fields["operator"] == "test::f"
    assert [name for name, _ in fields["attempts"]] == ["test::f", "test::f.b"]
    texts = [text.splitlines()[0] for _, text in fields["attempts"]]
    assert texts == [
        "Argument 1 of `test::f`, `x`, takes `int`, but was given a str.",
        "`test::f.b` was called without `y`, which has no default.",
    ]
    library.close()


def test_errors_of_kernels_are_not_taken_for_a_misfit() -> None:
    d = silent()
    ops, library = opened(d, plain="int x", b="str x")

    class Mine(CallError):
        pass

    def fails(*args: Any) -> Any:
        raise Mine(operator="", call="", schema="")

    fails.__annotations__.clear()
    library.impl("f", fails, CE)
    with pytest.raises(Mine):
        ops.test.f(1)


def test_names_that_are_not_there() -> None:
    ops, library = opened(silent(), plain="int x", over="str x")
    library.impl("only_kernel", says(1), "CPU")
    with pytest.raises(LookupFailed, check=code("NoSuchOverload")) as overload:
        ops.test.f.ovre  # noqa: B018  # the access is the test
    assert overload.value.fields() == {
        "operator": "test::f",
        "overload": "ovre",
        "near": ("over",),
    }
    with pytest.raises(LookupFailed, check=code("UnknownOperator")) as operator:
        ops.test.ff  # noqa: B018
    assert operator.value.fields() == {"operator": "test::ff", "near": ("test::f",)}
    with pytest.raises(AttributeError):
        ops.test.only_kernel  # noqa: B018
    with pytest.raises(AttributeError):
        ops.nothing.f  # noqa: B018
    assert not hasattr(ops, "__wrapped__")
    assert not hasattr(ops.test, "__wrapped__")
    assert not hasattr(ops.test.f, "__wrapped__")


def test_operators_with_underscored_names() -> None:
    d = silent()
    library = Library("test", "FRAGMENT", dispatcher=d)
    library.define("__and__(int x) -> int")
    library.impl("__and__", says(3), CE)
    assert Operators(lambda: d).test.__and__(1) == 3


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("_fold", ("test::_unfold",)),
        ("folde", ("test::folded", "test::fold")),
        ("__folded__", ("test::_unfold",)),
        ("__wrapped__", ()),
    ],
)
def test_private_names_resemble_private_ones(asked: str, near: tuple[str, ...]) -> None:
    d = silent()
    library = Library("test", "FRAGMENT", dispatcher=d)
    for name in ("fold", "folded", "_unfold", "wrapped"):
        library.define(f"{name}(int x) -> int")
    with pytest.raises(LookupFailed, check=code("UnknownOperator")) as refused:
        getattr(Operators(lambda: d).test, asked)
    assert refused.value.near == near


def test_a_packet_does_not_go_stale() -> None:
    d = silent()
    ops, library = opened(d, plain="int x", b="str x")
    packet = ops.test.f
    assert packet("a") == "b"
    library.close()
    assert packet.overloads() == ()
    with pytest.raises(OperatorGone, check=code("OperatorGone")):
        packet(1)
    for overload in ("default", "b", "other"):
        with pytest.raises(OperatorGone, check=code("OverloadGone")) as caught:
            getattr(packet, overload)
        assert str(caught.value).startswith("`test::f` has been deregistered.")
        assert isinstance(caught.value, OperatorGone)
    assert not hasattr(packet, "default")
    assert repr(packet) == "<OperatorPacket test::f: >"
    _, again = opened(d, plain="str x")
    assert packet("a") == "plain"
    assert packet.default("a") == "plain"
    again.close()


@pytest.mark.parametrize("calls", [0, 1, 30])
def test_overloads_that_were_kept_say_that_they_are_gone(calls: int) -> None:
    d = silent()
    _, library = opened(d, plain="int x", b="str x")
    ops = Operators(lambda: d, Registry("providers", {"test": lambda: None}))
    packet = ops.test.f
    kept = {"plain": packet.default, "b": packet.b}
    for _ in range(calls):
        assert (packet("a"), kept["plain"](1), kept["b"]("a")) == ("b", "plain", "b")
    library.close()
    for overload in ("default", "b"):
        with pytest.raises(OperatorGone, check=code("OverloadGone")):
            getattr(packet, overload)
    for call in (packet, *kept.values()):
        with pytest.raises(OperatorGone, check=code("OperatorGone")):
            call(1)


def test_a_packet_keeps_its_attributes_when_it_gets_its_call_stub() -> None:
    d = silent()
    library = Library("test", "DEF", dispatcher=d)
    library.define("f(int x) -> str")
    library.impl("f", says("plain"), CE)
    packet = Operators(lambda: d, Registry("providers", {"test": lambda: None})).test.f
    vars(packet)["noted"] = 1
    kept = packet.default
    for _ in range(30):
        assert packet(1) == "plain"
    assert isinstance(packet.func, FunctionType)
    assert (packet.overloads(), packet.default) == (("default",), kept)
    assert vars(packet) == {"noted": 1, "default": kept}
    assert repr(packet) == "<OperatorPacket test::f: default>"
    library.close()


def test_what_is_there_can_be_listed_and_printed() -> None:
    ops, library = opened(silent(), plain="int x", over="str x")
    library.impl("only_kernel", says(1), "CPU")
    assert "test" in dir(ops)
    assert "f" in dir(ops.test)
    assert "only_kernel" not in dir(ops.test)
    assert {"default", "over"} <= set(dir(ops.test.f))
    assert ops.test.f.__name__ == "f"
    assert (repr(ops), repr(ops.test), repr(ops.test.f)) == (
        "<Operators>",
        "<OperatorNamespace test>",
        "<OperatorPacket test::f: default, over>",
    )


def test_a_namespace_can_be_copied() -> None:
    ops, library = opened(silent(), plain="int x")
    assert repr(copy(ops.test)) == "<OperatorNamespace test>"
    library.close()


def test_overloads_of_upstream_for_tensors_and_numbers() -> None:
    from everyorder import runtime

    add = runtime.ops.core.add
    assert add.Tensor is add.Scalar is add.default
    assert runtime.ops.core.pow.Tensor_Scalar is runtime.ops.core.pow.default
    assert add.Scalar(runtime.ones(2), 2).tolist() == [3, 3]
    with pytest.raises(LookupFailed, check=code("NoSuchOverload")):
        runtime.ops.core.relu.Tensor  # noqa: B018  # it takes no numbers
    with pytest.raises(LookupFailed, check=code("NoSuchOverload")):
        add.Number  # noqa: B018  # nobody calls it that
    assert runtime.ops.core.clamp.Tensor.name() == "core::clamp.Tensor"


def test_another_name_of_a_namespace_counts_until_somebody_defines_it() -> None:
    from everyorder import runtime

    assert runtime.ops.aten is runtime.ops.core
    assert "aten" not in default_dispatcher().state.namespaces
    with runtime.Library("aten", "FRAGMENT") as library:
        library.define("mine(Tensor a) -> Tensor")
        aten: Any = runtime.ops.aten
        assert str(aten.mine) == "aten.mine"
        assert runtime.ops.aten is not runtime.ops.core
    assert runtime.ops.aten is runtime.ops.core


def test_an_overload_is_chosen_for_each_call() -> None:
    ops, library = opened(silent(), plain="int x", text="str x")
    for _ in range(20):
        assert (ops.test.f(1), ops.test.f("x")) == ("plain", "text")
    library.close()


def test_nothing_of_ours_stands_before_the_error_of_a_call() -> None:
    d = silent()
    ops, library = opened(d, plain="int x")
    f = ops.test.f.default
    assert f(1) == "plain"
    library.close()
    # Where exceptions were put at any line, a thread may handle one for ever.
    handled = sys.exc_info()[1]
    with pytest.raises(OperatorGone) as gone:
        f(1)
    assert gone.value.__context__ is handled


def stored(ops: Operators) -> dict[str, list[str]]:
    """Return the attributes that accesses stored: in a namespace and its packets."""
    space = ops.test
    return {
        name: sorted(set(vars(packet)) - {"__module__"})
        for name, packet in vars(space).items()
    }


def test_what_was_accessed_is_an_attribute_until_it_is_removed() -> None:
    d = silent()
    ops, library = opened(d, plain="int x", b="str x")
    assert "test" not in vars(ops)
    assert stored(ops) == {}
    assert vars(ops)["test"] is ops.test
    ops.test.f.b("a")
    assert (stored(ops), ops.test.f is vars(ops.test)["f"]) == ({"f": ["b"]}, True)
    packet = ops.test.f
    library.close()
    assert (stored(ops), set(vars(packet))) == ({}, set())
    with pytest.raises(LookupFailed, check=code("UnknownOperator")):
        ops.test.f  # noqa: B018
    again, library = opened(d, plain="int x")
    assert (again.test.f(1), again.test is ops.test) == ("plain", True)
    library.close()


def test_one_overload_is_removed_and_the_others_stay() -> None:
    d = silent()
    ops, library = opened(d, b="str x")
    second = Library("test", "FRAGMENT", dispatcher=d)
    second.define("f(int x) -> str")
    packet = ops.test.f
    assert (packet.b.overload, packet.default.overload) == ("b", "default")
    second.close()
    with pytest.raises(LookupFailed, check=code("NoSuchOverload")):
        packet.default  # noqa: B018
    assert (packet.b("a"), ops.test.f is packet) == ("b", True)
    library.close()


@pytest.mark.parametrize("by", ["drain", "listener"])
def test_what_was_accessed_is_removed_whichever_way_the_operator_ends(by: str) -> None:
    d = silent()

    class Failing:
        def on_operator_registered(self, *args: object) -> None:
            """Accept."""

        def on_operator_deregistered(self, *args: object) -> None:
            raise ValueError("a listener")

    ops, library = opened(d, plain="int x")
    assert ops.test.f.default(1) == "plain"
    if by == "listener":
        subscription = d.add_listener(Failing())
        with pytest.raises(ExceptionGroup):
            library.close()
        subscription.close()
    else:
        del library
        d.drain()
    assert stored(ops) == {}


def test_an_operator_that_ends_during_the_access_is_not_stored() -> None:
    """Another thread removes it after the access saw the state."""
    d = silent()
    ops, library = opened(d, plain="int x")

    class Ending:
        """A state that is replaced when it was read once."""

        def __init__(self) -> None:
            self.state = d.state

        def overloads(self, name: OperatorName) -> Any:
            d.state = self.state
            entries = self.state.overloads(name)
            library.close()
            return entries

        @property
        def namespaces(self) -> Any:
            return self.state.namespaces

    d.state = Ending()  # type: ignore[assignment]  # the same methods
    packet: Any = ops.test.f
    assert (str(packet), stored(ops)) == ("test.f", {})
    library = opened(d, plain="int x")[1]
    d.state = Ending()  # type: ignore[assignment]  # the same methods
    assert str(packet.default) == "test.f.default"
    assert set(vars(packet)) == set()


def test_a_namespace_with_a_leading_underscore() -> None:
    d = silent()
    ops = Operators(lambda: d)
    with pytest.raises(AttributeError, match="_C"):
        ops._C  # noqa: B018
    library = Library("_C", "DEF", dispatcher=d)
    library.define("f(int x) -> int")
    library.impl("f", says(3), CE)
    assert ops._C.f(1) == 3
    assert hasattr(ops, "_C")
    library.close()
    assert not hasattr(ops, "_C")


def test_copies_and_pickles_of_a_namespace_are_the_namespace() -> None:
    library = Library("tested_copies", "DEF")
    library.define("f(int x) -> int")
    space = runtime.ops.tested_copies
    assert copy(space) is deepcopy(space) is loads(dumps(space)) is space
    library.close()
