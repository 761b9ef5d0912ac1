"""Handlers, modes and rules that are not what they have to be: one clear error each."""

from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import ops, python_dispatch
from everyorder.runtime.errors.torch_dispatch import HandlerError, SubclassError
from everyorder.runtime.keys import DispatchKey, exclude_keys
from everyorder.runtime.tensors.keys import HANDLED
from everyorder.runtime.torch_dispatch import TorchDispatchMode
from tests.coded import code, coded
from tests.torch_dispatch.programs import many, unary
from tests.torch_dispatch.thread_state import Look, nobody_entered
from tests.torch_dispatch.worlds import Ours, declines, leaves

ModeWithoutHandler = coded(HandlerError, "ModeWithoutHandler")

core: Any = ops.core
tensors: Any = runtime.Tensor
PLAIN: Any = runtime.tensor([1.0])


def handler(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    return NotImplemented


@pytest.mark.spec("dispatch 7.6", "a stack for each thread")
@pytest.mark.spec("dispatch 8.4", "test_error_using_class_method_on_mode")
@pytest.mark.parametrize("kind", [classmethod, staticmethod])
def test_a_mode_whose_handler_is_no_method(kind: Any) -> None:
    """7.6: 8.4 test_error_using_class_method_on_mode."""
    mode = type("M", (TorchDispatchMode,), {"__torch_dispatch__": kind(handler)})
    before = Look()
    with pytest.raises(HandlerError, check=code("ClassHandler")) as caught:
        mode().__enter__()
    assert before.unchanged()
    assert nobody_entered()
    name = kind.__name__
    lines = str(caught.value).splitlines()
    assert " ".join(line.strip() for line in lines) == (
        f"`M.__torch_dispatch__` is a {name}, but modes are objects: their handler is "
        f"called on the one that was entered. to do: remove `@{name}`: "
        "`def __torch_dispatch__(self, ...)`"
    )
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize("held", [{}, {"__torch_dispatch__": 3}])
def test_a_mode_without_a_handler(held: Any) -> None:
    """Bad input: there is nobody to ask, or what is there cannot be called."""
    before = Look()
    with pytest.raises(ModeWithoutHandler) as caught:
        type("M", (TorchDispatchMode,), held)().__enter__()
    assert before.unchanged()
    assert str(caught.value) == (
        "`M.__torch_dispatch__` is not defined: the mode cannot be entered.\n"
        "  to do: define `def __torch_dispatch__(self, func, types, args=(),\n"
        "         kwargs=None)`"
    )


def test_the_handler_of_the_base_of_modes() -> None:
    """Bad input: a mode calls `super()`, where there is nothing."""
    with pytest.raises(ModeWithoutHandler) as caught:
        TorchDispatchMode().__torch_dispatch__(core.neg.default, ())
    assert caught.value.fields() == {"handler": "TorchDispatchMode.__torch_dispatch__"}


@pytest.mark.parametrize(
    "make",
    [
        PLAIN.as_subclass,
        lambda cls: tensors._make_subclass(cls, PLAIN),
        lambda cls: tensors._make_wrapper_subclass(cls, (2,)),
    ],
)
def test_a_class_whose_handler_cannot_be_called(make: Any) -> None:
    """Bad input: refused when a tensor is made, not when one is called with."""
    with pytest.raises(HandlerError, check=code("HandlerNotCallable")) as caught:
        make(type("A", (runtime.Tensor,), {"__torch_dispatch__": 3}))
    assert str(caught.value) == (
        "`A.__torch_dispatch__` is an int, which cannot be called.\n"
        "  to do: make it a classmethod, or `disabled` for no handler at all"
    )


def test_as_subclass_names_itself() -> None:
    """Bad input: what is no class of tensors."""
    for value, found in ((int, "the class int"), (3, "an int")):
        with pytest.raises(SubclassError, check=code("NotATensorClass")) as caught:
            PLAIN.as_subclass(value)
        words = "`as_subclass` takes a subclass of Tensor as `cls`, and was given"
        assert " ".join(str(caught.value).split()) == f"{words} {found}."


def test_a_handled_tensor_does_not_become_a_plain_one() -> None:
    """Bad input: its elements would be hidden from the handler."""
    handled: Any = type(
        "A", (runtime.Tensor,), {"__torch_dispatch__": classmethod(handler)}
    )
    with pytest.raises(SubclassError, check=code("StaysHandled")):
        PLAIN.as_subclass(handled).as_subclass(runtime.Tensor)


def test_the_base_of_modes_is_no_mode() -> None:
    """Bad input: and `with` leaves nothing behind."""
    before = Look()
    with pytest.raises(ModeWithoutHandler), TorchDispatchMode():
        pass
    assert before.unchanged()


@pytest.mark.spec("dispatch 7.1", "a plain method")
def test_a_class_whose_handler_is_a_plain_method() -> None:
    """7.1: where a classmethod is due; upstream warns."""

    plain: Any = type("A", (runtime.Tensor,), {"__torch_dispatch__": handler})
    with pytest.raises(HandlerError, check=code("PlainHandler")) as caught:
        PLAIN.as_subclass(plain)
    assert str(caught.value) == (
        "`A.__torch_dispatch__` is a plain method: it would be called with a class "
        "for\n`self`.\n"
        "  to do: put `@classmethod` above it, and call its first parameter cls"
    )


@pytest.mark.spec("dispatch 7.11", "_make_wrapper_subclass")
def test_a_wrapper_without_a_handler() -> None:
    """7.11: it could do nothing."""
    with pytest.raises(SubclassError, check=code("NoHandler")) as caught:
        tensors._make_wrapper_subclass(type("A", (runtime.Tensor,), {}), (2,))
    assert str(caught.value) == (
        "`A` defines no `__torch_dispatch__`, and a wrapper without one could do "
        "nothing:\nit has no elements.\n"
        "  to do: define the handler, or call `_make_subclass` on a tensor"
    )


@pytest.mark.spec("dispatch 7.3", "all return NotImplemented")
def test_nobody_implements_it(world: Ours) -> None:
    """7.3: all returned NotImplemented: who was asked, in that order."""
    op, a = many(world), world.subclass("A")
    b, d = world.subclass("B", a), world.subclass("D")
    before = Look()
    with pytest.raises(HandlerError, check=code("NoImplementation")) as caught:
        op(world.made(d), world.made(a), world.made(b))
    assert str(caught.value) == (
        "No handler supports `everyorder_worlds.many.default`: every "
        "`__torch_dispatch__`\n"
        "that was called returned NotImplemented.\n"
        "  asked: the class D, the class B, the class A\n"
        "  to do: return a result for the operator from one of them"
    )
    assert caught.value.fields() == {
        "operator": "everyorder_worlds.many.default",
        "asked": ("the class D", "the class B", "the class A"),
    }
    with (
        world.mode("Outer"),
        world.mode("Inner", declines),
        pytest.raises(HandlerError, check=code("NoImplementation")) as caught,
    ):
        op(world.made(a))
    assert caught.value.asked == ("the mode Inner", "the class A")
    with (
        world.mode("Inner", declines),
        pytest.raises(HandlerError, check=code("NoImplementation")) as caught,
    ):
        op(world.tensor(1.0))
    assert caught.value.asked == ("the mode Inner",)
    assert isinstance(caught.value, TypeError)
    assert before.unchanged()


@pytest.mark.spec("dispatch 7.3", "all return NotImplemented")
def test_binary_operators_of_who_implements_nothing(world: Ours) -> None:
    """7.3: in `+` NotImplemented is Python's to word."""
    x = world.made(world.subclass("A"))
    with pytest.raises(TypeError):
        x + 1
    with pytest.raises(TypeError):
        1 + x
    assert [line.partition("(")[0] for line in world.lines] == [
        *["A: core.add.default"] * 2
    ]


@pytest.mark.spec("dispatch 7.8", "a list or a tuple")
@pytest.mark.parametrize(
    ("given", "found"),
    [({1}, "set"), (None, "NoneType"), ("ab", "str"), (iter(()), "tuple_iterator")],
)
def test_a_super_call_with_no_list(given: Any, found: str) -> None:
    """7.8: args is a list or a tuple."""
    before = Look()
    with pytest.raises(HandlerError, check=code("WrongSuperCall")) as caught:
        runtime.Tensor.__torch_dispatch__(core.neg.default, (), given, {})
    assert before.unchanged()
    assert str(caught.value) == (
        "`Tensor.__torch_dispatch__` takes a list or tuple as `args`, and was given a\n"
        f"{found}."
    )


@pytest.mark.spec("dispatch 7.2", "who is found, and what is excluded")
def test_python_included_without_a_snapshot(world: Ours) -> None:
    """7.2.2: upstream asserts; here the call goes on, it just has no snapshot."""
    op, before = unary(world), Look()

    def reenters(
        world: Any, who: Any, func: Any, types: Any, args: Any, kw: Any
    ) -> Any:
        with pytest.raises(python_dispatch_error), world.reentrant():
            pass
        return leaves(world, who, func, types, args, kw)

    python_dispatch_error = runtime.EveryorderError
    x = world.made(world.subclass("A", answer=reenters))
    with exclude_keys(DispatchKey.PythonTLSSnapshot):
        op(x)
    assert before.unchanged()
    assert world.lines == ["A: f.default(A) types=(A)"]


def test_handlers_with_other_parameters(world: Ours) -> None:
    """Bad input: what Python says of the call goes on as it is."""
    a = type("A", (runtime.Tensor,), {"__torch_dispatch__": classmethod(lambda c: 1)})
    mode = type("M", (TorchDispatchMode,), {"__torch_dispatch__": lambda s: 1})
    op, x, before = unary(world), world.made(a), Look()
    with pytest.raises(TypeError, match="positional argument"):
        op(x)
    with mode(), pytest.raises(TypeError, match="positional argument"):
        op(x)
    assert before.unchanged()


def test_a_handler_that_changes_its_arguments(world: Ours) -> None:
    """Bad input: what one handler does to args and kwargs no other one sees."""
    op = world.operator(
        "f(Tensor x, Tensor y, int[] n, *, int m=1) -> Tensor", lambda *a, **k: PLAIN
    )

    def changes(
        world: Any, who: Any, func: Any, types: Any, args: Any, kwargs: Any
    ) -> Any:
        args[2].append(9)
        kwargs.clear()
        return NotImplemented

    x = world.made(world.subclass("A", answer=changes))
    y = world.made(world.subclass("B", answer=changes))
    numbers = [1]
    with (
        world.mode("M", changes),
        pytest.raises(HandlerError, check=code("NoImplementation")),
    ):
        op(x, y, numbers, m=2)
    assert numbers == [1]
    assert [line.partition(": ")[2] for line in world.lines] == [
        "f.default(A, B, [1], m=2) types=(A, B)"
    ] * 3


def test_a_class_whose_instances_have_their_own(world: Ours) -> None:
    """7.3: the handler is looked up on the argument."""
    op = unary(world)
    x = world.made(world.subclass("A"))
    x.__torch_dispatch__ = lambda func, types, args=(), kwargs=None: PLAIN
    assert op(x) is PLAIN
    with pytest.raises(HandlerError, check=code("NoImplementation")):
        op(world.made(type(x)))


@pytest.mark.spec("dispatch 0.2", "the Python key is set when the tensor is made")
@pytest.mark.spec("dispatch 7.1", "never again")
def test_who_was_given_a_handler_too_late() -> None:
    """7.1: decided once, when the tensor is made."""

    class Late(runtime.Tensor):
        pass

    early: Any = PLAIN.as_subclass(Late)
    Late.__torch_dispatch__ = classmethod(handler)
    late: Any = PLAIN.as_subclass(Late)
    assert (early._python_dispatch, late._python_dispatch) == (False, True)
    assert not early.key_bits & HANDLED
    assert core.neg(early).tolist() == [-1.0]
    with pytest.raises(HandlerError, check=code("NoImplementation")):
        core.neg(late)


@pytest.mark.spec("dispatch 7.1", "never again")
def test_who_lost_the_handler_after_it_was_made(world: Ours) -> None:
    """7.1: the tensor keeps its keys, and asks what is there now."""
    cls = world.subclass("A")
    x = world.made(cls)
    cls.__torch_dispatch__ = runtime.Tensor.__torch_dispatch__
    assert x._python_dispatch
    assert core.neg(x).tolist() == [-1.0]
    assert not world.made(cls)._python_dispatch
    assert world.lines == []


@pytest.mark.spec("dispatch 0.2", "Tensor has no handler: the disabled one")
@pytest.mark.spec("dispatch 7.1", "decided once, when the tensor is made")
@pytest.mark.spec("dispatch 7.1", "the property `_python_dispatch`")
def test_disabled_is_no_handler() -> None:
    """7.1: the base has one object for all, and it can be given back."""
    assert runtime.Tensor.__torch_dispatch__ is python_dispatch.disabled
    assert not PLAIN._python_dispatch
    plain = type("Plain", (runtime.Tensor,), {})
    assert not PLAIN.as_subclass(plain)._python_dispatch
    base = type("A", (runtime.Tensor,), {"__torch_dispatch__": classmethod(handler)})
    lost = type("B", (base,), {"__torch_dispatch__": python_dispatch.disabled})
    assert PLAIN.as_subclass(base)._python_dispatch
    assert not PLAIN.as_subclass(lost)._python_dispatch
