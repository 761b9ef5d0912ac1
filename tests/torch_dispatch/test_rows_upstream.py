"""Rows of upstream's tests of dispatch to Python that no module here is alone with."""

from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import (
    Dispatcher,
    KernelOverridden,
    Library,
    Tensor,
    ops,
    python_dispatch,
)
from everyorder.runtime.errors.autograd import AutogradMisuse
from everyorder.runtime.errors.registration import Conflict, LibraryMisuse
from everyorder.runtime.errors.torch_dispatch import SubclassError
from everyorder.runtime.torch_dispatch import TorchDispatchMode
from tests.coded import code

core: Any = ops.core
tensors: Any = Tensor


class Wrapped(Tensor):
    """Has a tensor; `heard` is what its handler was asked, and in which order."""

    inside: Any
    heard: list[str] = []  # noqa: RUF012  # one list for all tests, emptied by each

    @staticmethod
    def __new__(cls: Any, inside: Any, requires_grad: bool = False) -> Any:
        made = tensors._make_wrapper_subclass(
            cls, inside.shape, dtype=inside.dtype, requires_grad=requires_grad
        )
        made.inside = inside
        return made

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        cls.heard.append(func.__name__.partition(".")[0])
        given = {k: opened(v) for k, v in (kwargs or {}).items()}
        return wrapped(func(*map(opened, args), **given))


class Hearing(TorchDispatchMode):
    """Writes down operators, and which tensors it has not seen before."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.known: list[Any] = []
        self.unknown: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        name = func.__name__.partition(".")[0]
        self.heard.append(name)
        for each in args:
            if isinstance(each, Tensor) and not any(each is x for x in self.known):
                self.unknown.append(name)
        result = func(*args, **(kwargs or {}))
        self.known.append(result)
        return result


def opened(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [opened(each) for each in value]
    return value.inside if isinstance(value, Wrapped) else value


def wrapped(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [wrapped(each) for each in value]
    return Wrapped(value) if isinstance(value, Tensor) else value


@pytest.fixture(autouse=True)
def heard() -> list[str]:
    Wrapped.heard.clear()
    return Wrapped.heard


@pytest.mark.spec("dispatch 8.4", "test_override_aten_ops_with_multiple_libraries")
@pytest.mark.spec("dispatch 8.4", "test_override_cpu_sum")
def test_overriding_operators_with_several_libraries() -> None:
    """8.4 test_override_aten_ops_with_multiple_libraries, test_override_cpu_sum."""
    x = runtime.tensor([3.0])
    first, second = Library("core", "IMPL"), Library("core", "IMPL")
    with pytest.warns(KernelOverridden, match=r"core::neg gets another kernel for CPU"):
        first.impl("neg", lambda x: x, "CPU")
    assert core.neg(x) is x
    with pytest.warns(KernelOverridden):
        second.impl("neg", lambda x: core.mul(x, x), "CPU")
    with pytest.warns(KernelOverridden):
        second.impl("sum", lambda x, **more: x, "CPU")
    assert core.neg(x).tolist() == [9.0]
    assert core.sum(x) is x
    with pytest.raises(Conflict, check=code("OverrideForbidden")):
        first.impl("neg", lambda x: x, "CPU", allow_override=False)
    with pytest.raises(LibraryMisuse, check=code("NamespaceMismatch")):
        first.impl("aten::neg", lambda x: x, "CPU")
    second.close()
    assert core.neg(x) is x
    first.close()
    assert core.neg(x).tolist() == [-3.0]
    assert core.sum(x).item() == 3.0


@pytest.mark.spec("dispatch 8.4", "test_create_new_library")
@pytest.mark.spec("dispatch 8.4", "test_create_new_library_fragment_no_existing")
@pytest.mark.spec("dispatch 8.4", "test_create_new_library_fragment_with_existing")
def test_libraries_of_one_namespace() -> None:
    """8.4 test_create_new_library, test_create_new_library_fragment_no_existing,
    test_create_new_library_fragment_with_existing.
    """
    dispatcher = Dispatcher()
    x = runtime.tensor([2.0])
    early = Library("t", "FRAGMENT", dispatcher=dispatcher)
    early.define("early(Tensor x) -> Tensor")
    early.impl("early", lambda x: x, "CPU")
    owner = Library("t", "DEF", dispatcher=dispatcher)
    owner.define("sum(Tensor x) -> Tensor")
    kernels = Library("t", "IMPL", dispatcher=dispatcher)
    kernels.impl("sum", lambda x: x, "CPU")
    late = Library("t", "FRAGMENT", dispatcher=dispatcher)
    late.define("late(Tensor x) -> Tensor")
    late.impl("late", lambda x: core.neg(x), "CPU")

    def call(name: str) -> Any:
        found = dispatcher.find_op(f"t::{name}")
        assert found is not None
        return found(x).tolist()

    assert [call(name) for name in ("early", "sum", "late")] == [[2.0], [2.0], [-2.0]]
    for library in (early, kernels, late, owner):
        library.close()
    assert [*dispatcher.op_names()] == []


@pytest.mark.spec("dispatch 8.4", "test_alias_analysis")
def test_what_a_definition_promises_of_memory() -> None:
    """8.4 test_alias_analysis: said in the definition, shown in the state."""
    library = Library("t", "DEF", dispatcher=Dispatcher(), origin="here")
    library.define("a() -> ()", "CONSERVATIVE")
    library.define("b() -> ()", "FROM_SCHEMA")
    for name, kind in (("a", "CONSERVATIVE"), ("b", "FROM_SCHEMA")):
        assert library._dispatcher.dump_state(f"t::{name}").splitlines()[-1] == (
            f"alias analysis kind: {kind}"
        )


@pytest.mark.spec("dispatch 8.4", "test_returning_symint")
def test_symbolic_integers_are_integers() -> None:
    """8.4 test_returning_symint: in and out of a Python kernel."""
    library = Library("everyorder_symint", "DEF")
    library.define("area(SymInt a, SymInt b=2) -> SymInt")
    library.impl("area", lambda a, b=2: a * b, "CompositeExplicitAutograd")
    op: Any = ops.everyorder_symint.area
    assert (op(3, 4), op(3)) == (12, 6)
    with Hearing() as mode:
        assert op(3, 4) == 12
    assert mode.heard == ["area"]
    library.close()


@pytest.mark.spec("dispatch 8.4", "test_basic")
def test_forward_saved_and_backward(heard: list[str]) -> None:
    """8.4 test_basic: the handler hears of the forward and of the backward call."""
    x = Wrapped(runtime.tensor([3.0]), requires_grad=True)
    y = x * x
    assert type(y) is Wrapped
    (grad,) = runtime.autograd.grad((y,), (x,), (Wrapped(runtime.tensor([1.0])),))
    assert type(grad) is Wrapped
    assert grad.inside.tolist() == [6.0]
    assert heard[0] == "mul"
    assert sorted(set(heard[1:])) == ["add", "mul"]


@pytest.mark.spec("dispatch 8.4", "test_optional_tensor_list")
def test_lists_of_optional_tensors(heard: list[str]) -> None:
    """8.4 test_optional_tensor_list: Python is found among the elements."""
    x = runtime.tensor([1.0, 2.0])
    found = core.index(x, [Wrapped(runtime.tensor([1]))])
    assert heard == ["index"]
    assert found.inside.tolist() == [2.0]


@pytest.mark.spec("dispatch 0.2", "detaching goes to the handler")
@pytest.mark.spec("dispatch 8.4", "test_invalid_ret")
def test_a_result_that_detach_may_not_have() -> None:
    """8.4 test_invalid_ret: also of `detach`."""

    class Wrong(Tensor):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return "no tensor"

    x: Any = runtime.tensor([1.0]).as_subclass(Wrong)
    with pytest.raises(TypeError, match="its result is not"):
        x.neg()
    with pytest.raises(TypeError, match="`Tensor` belongs there"):
        x.detach()


@pytest.mark.spec("dispatch 8.4", "test_storage")
def test_the_storage_of_a_wrapper() -> None:
    """8.4 test_storage: it may be asked for, and has a size, and no elements."""
    x = Wrapped(runtime.tensor([1.0, 2.0]))
    assert (x.storage().count, x.data_ptr()) == (2, 0)
    with pytest.raises(
        SubclassError, check=code("NoElements"), match="is a wrapper and has no"
    ):
        x.storage().numpy()


@pytest.mark.spec("dispatch 8.4", "test_subclass_creation")
def test_one_class_for_a_tensor() -> None:
    """8.4 test_subclass_creation: what is of a class cannot become of another."""

    class Mine(Tensor):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return args[0]

    class Other(Mine):
        pass

    class Unrelated(Mine):
        pass

    mine: Any = runtime.tensor([1.0]).as_subclass(Mine)
    other: Any = runtime.tensor([1.0]).as_subclass(Other)
    assert other.as_subclass(Mine) is other
    with pytest.raises(SubclassError, check=code("AlreadyWrapped")) as caught:
        mine.as_subclass(Unrelated)
    assert (caught.value.cls, caught.value.found) == ("Unrelated", "Mine")


@pytest.mark.spec("dispatch 8.4", "test_new_ones", "test_like")
def test_factories_of_a_subclass(heard: list[str]) -> None:
    """8.4 test_new_ones, test_like: they go to the handler of their tensor."""
    x = Wrapped(runtime.tensor([1.0, 2.0]))
    for name in ("zeros_like", "ones_like", "full_like"):
        more = (3.0,) if name == "full_like" else ()
        assert type(getattr(core, name)(x, *more)) is Wrapped
    for name in ("new_zeros", "new_ones", "new_empty"):
        assert type(getattr(x, name)(2, 3)) is Wrapped
    assert type(x.new_full((2,), 3.0)) is Wrapped
    assert heard == [
        *("zeros_like", "ones_like", "full_like"),
        *("new_zeros", "new_ones", "new_empty", "new_full"),
    ]


@pytest.mark.spec("dispatch 8.4", "test_mode_with_make_subclass")
@pytest.mark.spec("dispatch 8.4", "test_make_subclass_with_modes")
def test_making_a_subclass_is_hidden_from_modes() -> None:
    """8.4 test_mode_with_make_subclass, test_make_subclass_with_modes."""
    plain = runtime.tensor([1.0])
    cls: Any = type("Plain", (Tensor,), {})
    with Hearing() as mode:
        made = plain.as_subclass(cls)
        inner = Wrapped(made)
    assert type(made) is cls
    assert type(inner) is Wrapped
    assert mode.heard == []
    assert made.data_ptr() == plain.data_ptr()
    assert made.grad_fn is None
    with Hearing() as mode:
        core.neg(made)
        core.neg(inner)
    assert mode.heard == ["neg", "neg"]


@pytest.mark.spec("dispatch 8.4", "test_shallow_copy_and_detach")
@pytest.mark.parametrize("forward", [lambda x: x * x, core.exp])
def test_a_mode_sees_no_tensor_that_it_does_not_know(forward: Any) -> None:
    """8.4 test_shallow_copy_and_detach: forward and backward in one mode."""
    with Hearing() as mode:
        x = runtime.randn(2, requires_grad=True)
        forward(x).sum().backward()
    assert "sum" in mode.heard
    assert mode.unknown == []


@pytest.mark.spec("dispatch 8.4", "test_tolist_numpy_with_torch_dispatch_mode")
def test_elements_of_a_subclass_and_of_plain_tensors_in_a_mode() -> None:
    """8.4 test_tolist_numpy_with_torch_dispatch_mode: the subclass is restricted."""
    x = Wrapped(runtime.tensor([1.0]))
    for read in (x.tolist, x.numpy):
        with Hearing(), pytest.raises(TypeError, match="and bypass its"):
            read()
    with Hearing():
        assert runtime.tensor([1.0]).tolist() == [1.0]
        assert runtime.tensor([1.0]).numpy().tolist() == [1.0]


@pytest.mark.spec("dispatch 8.4", "test_subclass_autograd_device_check")
def test_a_gradient_on_another_device_than_a_subclass_says() -> None:
    """8.4 test_subclass_autograd_device_check: refused, as by torch 2.13."""

    class Elsewhere(Wrapped):
        @staticmethod
        def __new__(cls: Any, inside: Any, requires_grad: bool = False) -> Any:
            made = tensors._make_subclass(cls, inside.to("meta"), requires_grad)
            made.inside = inside
            return made

    x = Elsewhere(runtime.tensor([3.0, 4.0]), requires_grad=True)
    y = core.sum(x)
    with pytest.raises(AutogradMisuse) as caught:
        y.backward(runtime.tensor([1.0]))
    assert "gradient" in str(caught.value)


@pytest.mark.spec("dispatch 8.4", "test_dispatch_super_call")
@pytest.mark.spec("dispatch 8.4", "test_dispatch_super_call_list_arg")
@pytest.mark.spec("dispatch 8.4", "test_dispatch_super_call_dont_autograd")
@pytest.mark.parametrize("turn", [tuple, list])
def test_a_super_call_does_not_record(turn: Any) -> None:
    """8.4 test_dispatch_super_call, test_dispatch_super_call_list_arg,
    test_dispatch_super_call_dont_autograd.
    """
    seen = []

    class Sub(Tensor):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = super().__torch_dispatch__(func, types, turn(args), kwargs)
            seen.append((x.requires_grad, result.requires_grad, type(result)))
            return result

    x: Any = runtime.tensor([1.0]).as_subclass(Sub).requires_grad_()
    for y in (core.neg(x), core.cat([x, x])):
        assert y.requires_grad
        assert type(y) is Tensor
    assert seen == [(True, False, Tensor)] * 2


@pytest.mark.spec("dispatch 7.8", "Python and all above excluded, and stay so")
def test_a_super_call_stays_below_python() -> None:
    """7.8: no true redispatch: calls inside of the kernel ask nobody either."""
    library = Library("everyorder_super", "DEF")
    library.define("outer(Tensor x) -> Tensor")
    library.impl("outer", lambda x: core.neg(x), "CompositeExplicitAutograd")
    heard = []

    class Sub(Tensor):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            heard.append(str(func))
            return super().__torch_dispatch__(func, types, args, kwargs)

    x: Any = runtime.tensor([1.0]).as_subclass(Sub)
    op: Any = ops.everyorder_super.outer
    assert op(x).tolist() == [-1.0]
    assert heard == ["everyorder_super.outer.default"]
    library.close()


@pytest.mark.spec("dispatch 8.4", "test_multiple_ops_subclass")
def test_several_operators_in_a_handler() -> None:
    """8.4 test_multiple_ops_subclass: each call of a handler finds the same world."""
    bits = []

    class Sub(Tensor):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            with python_dispatch.no_dispatch():
                found = [func(*args, **(kwargs or {})) for _ in range(2)]
            bits.append(python_dispatch.current_modes())
            return found[1].as_subclass(Sub)

    x: Any = runtime.tensor([1 + 2j]).as_subclass(Sub)
    y = core.exp(core.conj(x))
    assert type(y) is Sub
    assert bits == [(), ()]


@pytest.mark.spec("dispatch 0.2", "a private property for debugging")
@pytest.mark.spec("dispatch 8.4", "test_standard_is_not_subclass")
def test_plain_tensors_are_not_like_subclasses() -> None:
    """8.4 test_standard_is_not_subclass."""
    assert not runtime.tensor([1.0])._python_dispatch
    assert Wrapped(runtime.tensor([1.0]))._python_dispatch
