"""Where torch goes wrong, by its own account or as was seen: what happens here.

True only here: each test is named by the number of its trap (spec 9.2), or by the place
that tells of the crash.
"""

from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Dispatcher, Library, ops
from everyorder.runtime.errors.base import code_of
from everyorder.runtime.errors.call import KernelError, MissingKernel, OperatorGone
from everyorder.runtime.errors.registration import LibraryMisuse
from everyorder.runtime.keys import (
    LOCAL,
    DispatchKey,
    KeySet,
    exclude_keys,
    set_included,
)
from tests.coded import code
from tests.dispatch.samples import everything, on, says, silent
from tests.torch_dispatch.programs import unary
from tests.torch_dispatch.thread_state import Look
from tests.torch_dispatch.worlds import Ours, leaves

core: Any = ops.core
ORDERS = (
    ("CompositeImplicitAutograd", "CompositeExplicitAutograd"),
    ("CompositeExplicitAutograd", "CompositeImplicitAutograd"),
)


@pytest.mark.spec("dispatch 9.2", "1 tables are never stale")
@pytest.mark.parametrize("handled", [False, True])
def test_9_2_1_tables_are_never_stale(handled: bool) -> None:
    """9.2.1: two kernels in both orders: the same one runs, by handlers, too."""
    found = []
    for keys in ORDERS:
        dispatcher = silent()
        runtime.python_dispatch.install_fallbacks(
            library := Library("_", "IMPL", dispatcher=dispatcher)
        )
        mine = Library("t", "DEF", dispatcher=dispatcher)
        mine.define("f(Tensor x) -> str")
        for key in keys:
            mine.impl("f", says(key), key)
        op: Any = dispatcher.find_op("t::f")
        if handled:
            cls = type(
                "A",
                (runtime.Tensor,),
                {"__torch_dispatch__": runtime.Tensor.__torch_dispatch__},
            )
            x: Any = runtime.tensor([1.0]).as_subclass(cls)
        else:
            x = runtime.tensor([1.0], requires_grad=True)
        found.append((op(x), dispatcher.dump_table("t::f")))
        library.close()
    assert found[0] == found[1]


@pytest.mark.spec("dispatch 9.2", "2 `has` is about supersets")
def test_9_2_2_has_is_about_supersets() -> None:
    """9.2.2: a set with CPU has Dense."""
    assert KeySet(DispatchKey.CPU).has(DispatchKey.Dense)
    assert not KeySet(DispatchKey.Dense).has(DispatchKey.CPU)


@pytest.mark.spec("dispatch 9.2", "5 nothing is left to dispatch on")
def test_9_2_5_nothing_is_left_to_dispatch_on(world: Ours) -> None:
    """9.2.5: a call whose keys are all excluded is refused, in a handler, too."""
    library = Library("everyorder_traps", "DEF")
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", lambda x: x, "CPU")
    op: Any = ops.everyorder_traps.f
    seen = []

    def excludes(
        world: Any, who: Any, func: Any, types: Any, args: Any, kwargs: Any
    ) -> Any:
        with exclude_keys(KeySet(DispatchKey.CPU)), world.no_dispatch():
            with pytest.raises(MissingKernel) as caught:
                func(*args)
            seen.append(code_of(caught.value))
        return leaves(world, who, func, types, args, kwargs)

    before = Look()
    op(world.made(world.subclass("A", answer=excludes)))
    assert seen == ["MissingKernel"]
    assert before.unchanged()
    library.close()


@pytest.mark.spec("dispatch 9.2", "6 what never dispatches")
def test_9_2_6_what_never_dispatches(world: Ours) -> None:
    """9.2.6: tuples, dicts and Any have no keys."""
    x = world.made(world.subclass("A"))
    for number, kind in enumerate(("(Tensor, Tensor)", "Dict(str, Tensor)", "Any")):
        op = world.operator(f"f{number}({kind} x) -> str", says("ran"))
        value = ((x, x), {"k": x}, x)[number]
        assert op(value) == "ran"
    assert world.lines == []


@pytest.mark.spec("dispatch 9.2", "9 the number of results")
def test_9_2_9_the_number_of_results() -> None:
    """9.2.9: [D] checked, of kernels as of handlers (`test_results`)."""
    dispatcher = silent()
    library = Library("t", "DEF", dispatcher=dispatcher)
    library.define("f(Tensor x) -> (Tensor, Tensor)")
    library.impl("f", says((runtime.tensor([1.0]),)), "CPU")
    op: Any = dispatcher.find_op("t::f")
    with pytest.raises(KernelError, check=code("WrongReturnCount")):
        op(runtime.tensor([1.0]))


@pytest.mark.spec("dispatch 9.2", "10 switches leave no backend")
def test_9_2_10_switches_leave_no_backend() -> None:
    """9.2.10: on and off again, the bits are those that were there."""
    before = LOCAL.view
    set_included(DispatchKey.AutogradCUDA, True)
    set_included(DispatchKey.AutogradCUDA, False)
    assert LOCAL.view is before


@pytest.mark.spec("dispatch 9.2", "11 what fails leaves nothing")
def test_9_2_11_what_fails_leaves_nothing() -> None:
    """9.2.11: a definition with its kernel, a fallback at several keys."""
    broken: Any = 3
    dispatcher = silent()
    library = Library("t", "DEF", dispatcher=dispatcher)
    fallbacks = Library("_", "IMPL", dispatcher=dispatcher)
    fallbacks.fallback(says(1), "Meta")
    before = everything(dispatcher)
    with pytest.raises(runtime.EveryorderError):
        library.define("f(Tensor x) -> Tensor", kernel=broken)
    with pytest.raises(runtime.EveryorderError):
        fallbacks.fallback(says(2), "CompositeImplicitAutograd")
    arguments = ", ".join(f"Tensor x{number}" for number in range(65))
    with pytest.raises(runtime.EveryorderError):
        library.define(f"g({arguments}) -> Tensor")
    assert everything(dispatcher) == before


@pytest.mark.spec("dispatch 9.2", "12 wildcard libraries need a namespace")
def test_9_2_12_wildcard_libraries_need_a_namespace() -> None:
    """9.2.12: an error, where the process ended."""
    library = Library("_", "IMPL", dispatcher=Dispatcher())
    with pytest.raises(runtime.EveryorderError):
        library.impl("f", says(1), "CPU")


@pytest.mark.spec("dispatch 3.13", "an operator that is gone")
@pytest.mark.spec("dispatch 9.2", "13 operators that are gone")
def test_9_2_13_operators_that_are_gone(world: Ours) -> None:
    """9.2.13, 3.13.1: a kept handle says so, also inside of a handler."""
    op, seen = unary(world), []

    def closes(
        world: Any, who: Any, func: Any, types: Any, args: Any, kwargs: Any
    ) -> Any:
        result = leaves(world, who, func, types, args, kwargs)
        world.library.close()
        with pytest.raises(OperatorGone) as caught:
            func(*args)
        seen.append(str(caught.value))
        return result

    before = Look()
    x = world.made(world.subclass("A", answer=closes))
    assert op(x).tolist() == [2.0]
    with pytest.raises(OperatorGone) as caught:
        op(x)
    assert seen == [str(caught.value)]
    assert "everyorder_worlds::f" in seen[0]
    assert before.unchanged()


def test_9_2_13_an_operator_that_ends_below_a_handler(world: Ours) -> None:
    """9.2.13: the kernel that a call has found stays alive until it is done."""
    op = unary(world)

    def closes(
        world: Any, who: Any, func: Any, types: Any, args: Any, kwargs: Any
    ) -> Any:
        world.library.close()
        return args[0]

    with world.mode("M", closes):
        x = world.tensor(1.0)
        assert op(x) is x


@pytest.mark.spec("dispatch 9.2", "15 schemas print what they read")
def test_9_2_15_schemas_print_what_they_read() -> None:
    """9.2.15: sets of aliases in one order, whatever was written."""
    one, other = (
        runtime.parse_schema(f"f(Tensor({names}) x) -> Tensor({names})")
        for names in ("a|b", "b|a")
    )
    assert str(one) == str(other)
    assert str(runtime.parse_schema(str(one))) == str(one)


@pytest.mark.spec("dispatch 3.13", "a schema with its namespace")
@pytest.mark.spec("dispatch 9.2", "16 a schema with its namespace")
def test_9_2_16_a_schema_with_its_namespace() -> None:
    """9.2.16, 3.13.1: defined, and taken down without an error."""
    dispatcher = silent()
    library = Library("t", "DEF", dispatcher=dispatcher)
    library.define("t::f(Tensor x) -> Tensor")
    assert [*dispatcher.op_names()] == ["t::f"]
    library.close()
    assert [*dispatcher.op_names()] == []


@pytest.mark.spec("dispatch 9.2", "17 one element for an integer")
def test_9_2_17_one_element_for_an_integer(world: Ours) -> None:
    """9.2.17: it is one, and loses its fraction; a handler gets the integer."""
    op = world.operator("f(Tensor x, int n) -> int", lambda x, n: n)
    x = world.tensor(1.0)
    assert op(x, 2) == 2
    assert op(x, runtime.tensor([2.5])) == 2
    op(world.made(world.subclass("A", answer=leaves)), runtime.tensor([2.5]))
    assert world.lines == ["A: f.default(A, 2) types=(A)"]


@pytest.mark.spec("dispatch 9.2", "18 closed libraries are closed")
def test_9_2_18_closed_libraries_are_closed() -> None:
    """9.2.18: and the namespace is free again."""
    dispatcher = silent()
    library = Library("t", "DEF", dispatcher=dispatcher)
    library.close()
    with pytest.raises(LibraryMisuse, check=code("LibraryClosed")):
        library.define("f(Tensor x) -> Tensor")
    Library("t", "DEF", dispatcher=dispatcher).define("f(Tensor x) -> Tensor")


@pytest.mark.spec("dispatch 3.13", "a kernel without a definition")
def test_3_13_6_a_kernel_without_a_definition() -> None:
    """3.13.6: accepted, and no attribute of `ops`."""
    with Library("everyorder_dangling", "IMPL") as library:
        library.impl("f", says(1), "CPU")
        assert "everyorder_dangling::f" in {
            str(each) for each in runtime.default_dispatcher().dangling_impls()
        }
        with pytest.raises(AttributeError):
            _ = ops.everyorder_dangling.f


@pytest.mark.spec("dispatch 9.2", "3 sparse tensors are CPU tensors for autograd")
def test_9_2_3_sparse_tensors_are_cpu_tensors_for_autograd() -> None:
    """9.2.3, 9.2.4: the autograd kernel of a sparse tensor is that of its backend."""
    dispatcher = silent()
    library = Library("t", "DEF", dispatcher=dispatcher)
    library.define("f(Tensor x) -> str")
    for key in ("AutogradCPU", "AutogradOther", "SparseCPU"):
        library.impl("f", says(key), key)
    op: Any = dispatcher.find_op("t::f")
    assert op(on("SparseCPU", "AutogradCPU")) == "AutogradCPU"
