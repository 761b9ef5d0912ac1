# What is done with tensors gives Any.
# mypy: disable-error-code=no-any-return
"""What can be added to a custom operator, and how it ends (spec 3.13.3)."""

import gc
import pickle
from copy import copy, deepcopy
from inspect import signature
from typing import Any
from weakref import ref

import pytest

import everyorder.runtime.library
from everyorder.runtime import (
    Dispatcher,
    DispatchKey,
    KeySet,
    Library,
    Tensor,
    autocast,
    default_dispatcher,
    ops,
    tensor,
)
from everyorder.runtime.custom.definition import ABSENT
from everyorder.runtime.errors.call import MissingKernel, OperatorGone
from everyorder.runtime.errors.custom import DefinitionRefused
from everyorder.runtime.errors.registration import (
    Conflict,
    LibraryMisuse,
    LookupFailed,
    UnknownDevice,
)
from everyorder.runtime.library import CustomOpDef, custom_op
from everyorder.runtime.schema.parser import parse_schema
from everyorder.runtime.torch_dispatch import TorchDispatchMode
from tests.coded import code, coded
from tests.custom.functions import add_one, double, like, repeatedly, scale

UnfitKernel = coded(DefinitionRefused, "UnfitKernel")

X = tensor([1.0])


def by_five(x: Tensor) -> Tensor:
    return x * 5


def by_seven(x: Tensor) -> Tensor:
    return x * 7


def test_a_kernel_for_a_device() -> None:
    with custom_op("mine::f", double, mutates_args=()) as made:
        assert made(X).tolist() == [2.0]
        assert made.register_kernel("cpu", by_five) is by_five
        assert repeatedly(lambda: made(X).tolist())[-1] == [5.0]

        @made.register_kernel(["cpu:0", "cuda"])
        def sevenfold(x: Tensor) -> Tensor:
            return x * 7

        assert sevenfold(X).tolist() == [7.0]
        assert made(X).tolist() == [7.0]
        assert made.handle.has_kernel("CUDA")
        assert made.handle.dump_state().count("\nCPU: ") == 1
        made.register_kernel(None, by_five)
        assert made(X).tolist() == [7.0]
        assert made(tensor([1.0]).to("cpu")).tolist() == [7.0]


def test_a_function_for_some_devices_only() -> None:
    with custom_op("mine::f", double, mutates_args=(), device_types=["cpu"]) as made:
        assert made(X).tolist() == [2.0]
        assert not made.handle.has_kernel("CompositeExplicitAutograd")
        assert not made.handle.has_computed_kernel("CUDA")


@pytest.mark.parametrize(
    ("devices", "function", "error"),
    [("gpu", double, UnknownDevice), ("cpu", lambda: None, UnfitKernel)],
)
def test_a_kernel_that_is_refused(devices: Any, function: Any, error: Any) -> None:
    with custom_op("mine::f", double, mutates_args=()) as made:
        made.register_kernel("cpu", by_five)
        with pytest.raises(error):
            made.register_kernel(devices, function)
        assert made(X).tolist() == [5.0]


def test_a_kernel_is_switched_off_and_on() -> None:
    with custom_op("mine::f", double, mutates_args=()) as made:
        made.register_kernel("cpu", by_five)
        with made.set_kernel_enabled("cpu", enabled=False):
            assert repeatedly(lambda: made(X).tolist())[-1] == [2.0]
            with made.set_kernel_enabled("cpu", enabled=False):
                assert made(X).tolist() == [2.0]
            assert made(X).tolist() == [2.0]
            with made.set_kernel_enabled("cpu"):
                assert made(X).tolist() == [5.0]
            assert made(X).tolist() == [2.0]
        assert repeatedly(lambda: made(X).tolist())[-1] == [5.0]
        with pytest.raises(ZeroDivisionError), made.set_kernel_enabled("cpu", False):
            raise ZeroDivisionError
        assert made(X).tolist() == [5.0]


def test_a_kernel_that_comes_while_it_is_off() -> None:
    with custom_op("mine::f", double, mutates_args=()) as made:
        made.register_kernel("cpu", by_five)
        with made.set_kernel_enabled("cpu", False):
            made.register_kernel("cpu", by_seven)
            assert made(X).tolist() == [2.0]
        assert made(X).tolist() == [7.0]


def test_switched_off_and_nothing_else_serves() -> None:
    made = custom_op("mine::f", double, mutates_args=(), device_types="cpu")
    with made, made.set_kernel_enabled("cpu", False), pytest.raises(MissingKernel):
        made(X)


def test_closed_while_switched_off() -> None:
    made = custom_op("mine::f", double, mutates_args=(), device_types="cpu")
    with made.set_kernel_enabled("cpu", False):
        made.close()
    with pytest.raises(OperatorGone, check=code("OperatorGone")):
        made(X)


def test_no_kernel_to_switch() -> None:
    with custom_op("mine::f", double, mutates_args=()) as made:
        made.register_kernel("cpu", by_five)
        with (
            pytest.raises(LookupFailed, check=code("NoSuchKernel")) as refused,
            made.set_kernel_enabled("cuda"),
        ):
            pass
    assert str(refused.value) == (
        "`mine::f` has no kernel registered directly for 'cuda', so it cannot be\n"
        "switched.\n"
        "  kernels: CPU, all devices"
    )


def test_closing_ends_everything() -> None:
    made = custom_op("mine::f", double, mutates_args=())
    made.register_kernel("cpu", by_five)
    made.register_fake(like)
    made.register_autograd(lambda ctx, g: g)
    made.register_autocast("cpu", "float16")
    handle = made.handle
    closed = [made.closed]
    made.close()
    made.close()
    assert [*closed, made.closed] == [False, True]
    assert handle.dump_state() == ""
    with pytest.raises(OperatorGone, check=code("OperatorGone")):
        made(X)


@pytest.mark.parametrize(
    "add",
    [
        lambda made: made.register_kernel("cpu", by_five),
        lambda made: made.register_fake(like),
        lambda made: made.register_autograd(lambda ctx, g: g),
        lambda made: made.register_autocast("cpu", "float16"),
        lambda made: made.register_torch_dispatch(int, like),
    ],
)
def test_nothing_is_added_to_a_closed_operator(add: Any) -> None:
    made = custom_op("mine::f", double, mutates_args=())
    made.close()
    with pytest.raises(LibraryMisuse, check=code("LibraryClosed")) as refused:
        add(made)
    assert refused.value.call.startswith("register_")


def test_closing_lets_go_of_everything() -> None:
    class Function:
        def __call__(self, x: Tensor) -> Tensor:
            return x * 2

    class Mode(TorchDispatchMode):
        pass

    def fake(x: Tensor) -> Tensor:
        return like(x)

    def back(ctx: Any, g: Tensor) -> Tensor:
        return g

    def save(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.n = 1

    def rule(*args: Any) -> Any:
        return NotImplemented

    function = Function()
    made = custom_op(
        "mine::f", function, mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    made.register_kernel("cpu", function)
    made.register_fake(fake)
    made.register_autograd(back, setup_context=save)
    made.register_autocast("cpu", "float16")
    made.register_torch_dispatch(Mode, rule)
    handle = made.handle
    with autocast("cpu"):
        repeatedly(lambda: handle(tensor([1.0], requires_grad=True)))
    repeatedly(lambda: handle(tensor([1.0], device="meta")))
    given = (function, Function, Mode, fake, back, save, rule, made)
    gone = [ref(each) for each in given]
    made.close()
    del function, Function, Mode, fake, back, save, rule, made, given
    gc.collect()
    assert [each() for each in gone] == [None] * len(gone)
    assert not handle.has_schema


def test_closing_needs_no_garbage_collector_for_the_kernel() -> None:
    def own(x: Tensor) -> Tensor:
        return x * 2

    made = custom_op("mine::f", own, mutates_args=())
    repeatedly(lambda: made(X))
    gone = ref(own)
    made.close()
    del own
    gc.disable()
    try:
        assert gone() is None
    finally:
        gc.enable()


def test_a_listener_cannot_close() -> None:
    dispatcher = Dispatcher()
    made = custom_op("mine::f", double, mutates_args=(), dispatcher=dispatcher)
    refused: list[Exception] = []

    class Closing:
        def on_operator_registered(self, name: Any, schema: Any) -> None:
            if str(name) == "mine::g":
                try:
                    made.close()
                except LibraryMisuse as error:
                    refused.append(error)

        def on_operator_deregistered(self, name: Any, schema: Any) -> None: ...

    with dispatcher.add_listener(Closing()):
        custom_op("mine::g", add_one, mutates_args=("x",), dispatcher=dispatcher)
    (error,) = refused
    assert isinstance(error, coded(LibraryMisuse, "WriteInsideListener"))
    assert not made.closed
    made.register_kernel("cpu", by_five)
    assert made(X).tolist() == [5.0]


def test_a_listener_that_fails_leaves_nothing() -> None:
    dispatcher = Dispatcher()

    class Failing:
        def on_operator_registered(self, name: Any, schema: Any) -> None:
            raise ZeroDivisionError

        def on_operator_deregistered(self, name: Any, schema: Any) -> None: ...

    with dispatcher.add_listener(Failing()), pytest.raises(ZeroDivisionError):
        custom_op("mine::f", double, mutates_args=(), dispatcher=dispatcher)
    assert dispatcher.op_names() == ()


def test_what_fails_half_way_leaves_nothing() -> None:
    dispatcher = Dispatcher()
    schema = parse_schema("mine::f(Tensor x) -> Tensor")
    with pytest.raises(UnknownDevice) as refused:
        CustomOpDef(schema, double, "gpu", (), dispatcher, "here")
    # The error still holds the half that was made: nothing is left to a finalizer.
    assert refused.value.__traceback__ is not None
    assert dispatcher.op_names() == ()


def test_a_kernel_of_a_library_beside_it() -> None:
    with (
        custom_op("mine::f", scale, mutates_args=()) as made,
        Library("mine", "IMPL", "CPU") as library,
    ):
        library.impl("f", lambda x, factor=2.0: x * 100)
        assert made(X).tolist() == [100.0]


class Counting(TorchDispatchMode):
    """Notes what it sees."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def test_a_rule_stands_before_the_handler_of_a_mode() -> None:
    with custom_op("mine::f", double, mutates_args=()) as made:

        @made.register_torch_dispatch(Counting)
        def rule(mode: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
            mode.seen.append("rule")
            return func(*args)

        with Counting() as mode:
            assert made(X).tolist() == [2.0]
        assert "rule" in mode.seen
        made.register_torch_dispatch(Counting, lambda *given: tensor([9.0]))
        with Counting():
            assert made(X).tolist() == [9.0]
        with pytest.raises(LibraryMisuse, check=code("WrongArgument")) as refused:
            made.register_torch_dispatch(Counting, 3)  # type: ignore[call-overload]  # wrong on purpose
        assert str(refused.value) == "`fn` is a function; found int."
        assert len(made.handle.entry.rules) == 1
    # The rule went with the operator; one of the same name has none.
    with custom_op("mine::f", double, mutates_args=()) as made, Counting() as mode:
        assert made(X).tolist() == [2.0]
        assert mode.seen[0] == "mine.f.default"


def test_a_rule_of_somebody_else() -> None:
    from everyorder.runtime.torch_dispatch import register_torch_dispatch

    with (
        custom_op("mine::f", double, mutates_args=()) as made,
        register_torch_dispatch(made.handle, Counting, lambda *given: None),
        pytest.raises(Conflict, check=code("RuleTaken")),
    ):
        made.register_torch_dispatch(Counting, lambda *given: None)


def test_there_is_no_rule_for_vmap() -> None:
    with custom_op("mine::f", double, mutates_args=()) as made:
        assert not hasattr(made, "register_vmap")


def test_it_is_an_operator_like_any_other() -> None:
    with custom_op("mine::f", scale, mutates_args=()) as made:
        found = ops.mine.f.default
        assert found.call_boxed([X, 3.0])[0].tolist() == [3.0]
        assert found.redispatch(KeySet(DispatchKey.CPU), X).tolist() == [2.0]
        assert str(found) == "mine.f.default"
        assert made.handle is found


def test_it_looks_like_the_function() -> None:
    with custom_op("mine::f", scale, mutates_args=()) as made:
        assert str(signature(made)) == "(x, factor=2.0)"
        assert (made.__name__, made.__qualname__, made.__module__, made.__doc__) == (
            "scale",
            "scale",
            "tests.custom.functions",
            None,
        )
        assert made.schemas() == (made.schema,)
    assert next(iter(signature(CustomOpDef).parameters)) == "schema"


def test_copies_are_itself_and_pickles_are_by_name() -> None:
    with custom_op("mine::f", double, mutates_args=()) as made:
        assert copy(made) is made
        assert deepcopy([made])[0] is made
        sent = pickle.dumps(made)
        assert pickle.loads(sent) is made
    with pytest.raises(LookupFailed, check=code("SchemaNotFound")):
        pickle.loads(sent)
    with Library("mine", "FRAGMENT") as library:
        library.define("f(Tensor x) -> Tensor")
        with pytest.raises(OperatorGone, check=code("OperatorGone")):
            pickle.loads(sent)


def test_one_of_another_dispatcher_is_not_pickled() -> None:
    mine = Dispatcher()
    with custom_op("mine::f", double, mutates_args=(), dispatcher=mine) as made:
        with pytest.raises(LibraryMisuse, check=code("PrivateDispatcher")):
            pickle.dumps(made)
        assert deepcopy(made) is made


def test_a_rule_whose_replacement_was_refused_can_be_replaced() -> None:
    class Mode(TorchDispatchMode):
        pass

    class Registering:
        """Replaces the rule where nobody may register."""

        refused: Exception | None = None

        def on_operator_registered(self, name: Any, schema: Any) -> None:
            try:
                made.register_torch_dispatch(Mode, lambda *given: tensor([2.0]))
            except LibraryMisuse as error:
                self.refused = error

        def on_operator_deregistered(self, name: Any, schema: Any) -> None:
            pass

    with custom_op("mine::f", double, mutates_args=()) as made:
        made.register_torch_dispatch(Mode, lambda *given: tensor([1.0]))
        listener = Registering()
        with (
            default_dispatcher().add_listener(listener),
            Library("mine", "FRAGMENT") as library,
        ):
            library.define("g(Tensor x) -> Tensor")
        assert isinstance(listener.refused, coded(LibraryMisuse, "WriteInsideListener"))
        made.register_torch_dispatch(Mode, lambda *given: tensor([3.0]))
        (rule,) = made.handle.entry.rules
        assert rule.function().tolist() == [3.0]


@pytest.mark.parametrize("name", ABSENT)
def test_why_a_name_is_not_there(name: str) -> None:
    assert name not in dir(everyorder.runtime.library)
    with custom_op("mine::f", double, mutates_args=()) as made:
        owners: list[tuple[Any, str]] = [
            (everyorder.runtime.library, "module 'everyorder.runtime.library'"),
            (made, "'CustomOpDef' object"),
        ]
        for owner, shown in owners:
            with pytest.raises(AttributeError) as refused:
                getattr(owner, name)
            assert str(refused.value) == (
                f"{shown} has no attribute {name!r}: {ABSENT[name]}"
            )
            assert refused.value.name == name


def test_any_other_name() -> None:
    with custom_op("mine::f", double, mutates_args=()) as made:
        with pytest.raises(AttributeError) as refused:
            made.register_nothing  # type: ignore[attr-defined]  # noqa: B018  # asked for, not used
        assert str(refused.value) == (
            "'CustomOpDef' object has no attribute 'register_nothing'"
        )
        assert not hasattr(made, "__len__")
