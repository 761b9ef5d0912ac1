"""Classes of tensors: who has a handler, and how their tensors are made."""

from functools import partial
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Tensor, default_dispatcher
from everyorder.runtime.errors.autograd import WriteRefused
from everyorder.runtime.errors.tensor import BadSize, UnfitValue
from everyorder.runtime.errors.torch_dispatch import (
    ContextError,
    HandlerError,
    SubclassError,
)
from everyorder.runtime.keys import DispatchKey, autograd_key_of
from everyorder.runtime.schema.enums import Layout, MemoryFormat
from everyorder.runtime.torch_dispatch import TorchDispatchMode, disabled, no_dispatch
from everyorder.runtime.torch_dispatch.context import Context
from tests.coded import code, coded
from tests.torch_dispatch.kinds import (
    TENSOR,
    Boxed,
    Counted,
    asked,
    boxed,
    core,
    counted,
    vector,
)

NotATensorClass = coded(SubclassError, "NotATensorClass")


class Plain(Tensor):
    """A subclass without a handler."""


class Off(Counted):
    """A subclass that takes the handler of its base away."""

    __torch_dispatch__ = disabled


@pytest.mark.spec("dispatch 0.2", "the Python key is set when the tensor is made")
@pytest.mark.spec("dispatch 7.1", "decided once, when the tensor is made")
def test_a_handler_is_found_when_the_tensor_is_made() -> None:
    """7.1: exact Tensor no, without handler no, disabled no, else both keys."""
    base = runtime.tensor([1.0])
    assert Tensor.__torch_dispatch__ is disabled
    for made in (base, base.as_subclass(Plain), base.as_subclass(Off)):
        assert made._python_dispatch is False
        assert not made.keyset.has(DispatchKey.Python)
    made = base.as_subclass(Counted)
    assert made._python_dispatch is True
    assert made.keyset.has(DispatchKey.Python)
    assert made.keyset.has(DispatchKey.PythonTLSSnapshot)


def test_a_subclass_without_handler_computes_as_a_tensor() -> None:
    """7.1: results are plain."""
    made = runtime.tensor([1.0, 2.0]).as_subclass(Plain)
    assert type(made) is Plain
    result = made + made
    assert (type(result), result.tolist()) == (Tensor, [2.0, 4.0])


def test_a_handler_that_comes_later_is_for_new_tensors_only() -> None:
    """7.1: "adding the method to the class later affects only new instances"."""

    class Late(Tensor):
        pass

    before = runtime.tensor([1.0]).as_subclass(Late)
    Late.__torch_dispatch__ = vars(Counted)["__torch_dispatch__"]
    after = runtime.tensor([1.0]).as_subclass(Late)
    assert (before._python_dispatch, after._python_dispatch) == (False, True)
    assert asked(lambda: before + 1) == []


@pytest.mark.spec("dispatch 7.1", "never again")
def test_another_class_does_not_change_the_keys() -> None:
    """7.1: assigning `__class__`."""
    made = vector(1.0).as_subclass(Plain)
    made.__class__ = Counted
    assert (type(made), made._python_dispatch) == (Counted, False)
    made = counted(1.0)
    made.__class__ = Plain
    assert (type(made), made._python_dispatch) == (Plain, True)


def test_a_tensor_of_a_subclass_becomes_a_plain_one() -> None:
    leaf = runtime.tensor([1.0, 2.0], requires_grad=True)
    for made in (leaf.as_subclass(Plain), leaf):
        bare: Any = made.as_subclass(runtime.Tensor)
        assert type(bare) is runtime.Tensor
        assert bare.data_ptr() == leaf.data_ptr()
        (bare * 3).sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [6, 6]


@pytest.mark.spec("dispatch 7.1", "a plain method")
def test_a_plain_method_is_refused() -> None:
    """7.1: "please define it as a classmethod"; an error here."""

    class Method(Tensor):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return func(*args)

    with pytest.raises(HandlerError, check=code("PlainHandler")) as caught:
        runtime.tensor([1.0]).as_subclass(Method)
    assert str(caught.value) == (
        "`test_a_plain_method_is_refused.<locals>.Method.__torch_dispatch__` is a "
        "plain\nmethod: it would be called with a class for `self`.\n"
        "  to do: put `@classmethod` above it, and call its first parameter cls"
    )
    with pytest.raises(HandlerError, check=code("PlainHandler")):
        TENSOR._make_wrapper_subclass(Method, (2,))


def test_the_super_call_gives_plain_tensors_that_are_handled_no_more() -> None:
    """7.8: "Results are plain tensors"; views and copies alike."""
    made = counted(1.0, 2.0)
    for result in (made + 1, made[0], made.detach()):
        assert (type(result), result._python_dispatch) == (Tensor, False)
        assert asked(partial(core.mul, result, 2)) == []
    assert (made[1] * 2).item() == 4.0


def test_the_super_call_excludes_python_for_calls_inside_of_it() -> None:
    """7.8: "not a true redispatch: stays excluded for nested calls"."""
    made = counted(1.0, 2.0)

    def kernel(self: Tensor) -> Tensor:
        found: Tensor = core.add(self, made)
        return found

    with runtime.Library("subclass_test", "DEF") as library:
        library.define("twice(Tensor self) -> Tensor")
        library.impl("twice", kernel, "CompositeExplicitAutograd")
        twice = default_dispatcher().find_op("subclass_test::twice")
        assert twice is not None
        assert asked(lambda: twice(made)) == ["subclass_test.twice.default"]


def test_a_list_or_a_tuple_and_nothing_else_goes_to_the_call_above() -> None:
    """7.8: "args may be list or tuple, else TypeError"."""
    one = runtime.tensor([1.0])
    for args in ([one, one], (one, one)):
        assert disabled(core.add.default, (), args).tolist() == [2.0]
    with pytest.raises(HandlerError, check=code("WrongSuperCall")) as caught:
        disabled(core.add.default, (), {"self": one})
    assert str(caught.value) == (
        "`Tensor.__torch_dispatch__` takes a list or tuple as `args`, and was given a\n"
        "dict."
    )


@pytest.mark.spec("dispatch 7.11", "_make_subclass")
def test_a_subclass_is_on_the_elements_and_no_view() -> None:
    """7.11: "a fresh tensor sharing storage: same data_ptr, not a view"."""
    base = runtime.tensor([1.0, 2.0], requires_grad=True)
    made = TENSOR._make_subclass(Counted, base, True)
    assert made.data_ptr() == base.data_ptr()
    assert (made._base, made.is_leaf, made.requires_grad) == (None, True, True)
    assert TENSOR._make_subclass(Counted, base).requires_grad is False


def test_a_tensor_with_a_handler_is_detached_by_it() -> None:
    """7.11: "for a Python tensor this detach is dispatched"; modes are kept out."""

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            raise AssertionError("construction is hidden from modes")

    made = boxed(1.0)
    found: list[Any] = []
    with Seen():
        log = asked(lambda: found.append(TENSOR._make_subclass(Boxed, made)))
    assert log == ["core.detach.default"]
    assert type(found[0]) is Boxed


@pytest.mark.spec("dispatch 7.11", "_make_subclass")
@pytest.mark.spec("dispatch 8.4", "test_subclass_creation")
def test_a_tensor_of_another_class_is_refused() -> None:
    """7.11: "already associated to a python object of type" (8.4 subclass_creation)."""

    class Other(Boxed):
        pass

    with pytest.raises(SubclassError, check=code("AlreadyWrapped")) as caught:
        TENSOR._make_subclass(Other, boxed(1.0))
    assert str(caught.value) == (
        "The tensor is a `Boxed` already, and its handler returned a `Boxed` when "
        "it was\n"
        "detached; it cannot become a `Other`.\n"
        "  to do: let `Other` wrap it: `_make_wrapper_subclass` and an attribute"
    )
    # What the handler makes plain may become anything.
    assert type(TENSOR._make_subclass(Other, counted(1.0))) is Other


def test_keys_of_another_device() -> None:
    """7.11: `device_for_backend_keys`."""
    base = runtime.tensor([1.0])
    made = TENSOR._make_subclass(Counted, base, device_for_backend_keys="meta")
    assert made.keyset.has(autograd_key_of(DispatchKey["Meta"].backend))
    assert made.device.type == "cpu"


@pytest.mark.spec("dispatch 7.11", "_make_wrapper_subclass")
@pytest.mark.spec("dispatch 8.4", "test_make_wrapper_subclass_noalloc")
def test_a_wrapper_allocates_nothing() -> None:
    """7.11: "size may be huge", data_ptr 0 (8.4 make_wrapper_subclass_noalloc)."""
    made = TENSOR._make_wrapper_subclass(Boxed, (10**6, 10**6, 10**6))
    assert (made.numel(), made.data_ptr()) == (10**18, 0)
    assert (made.dtype, made.device.type) == (runtime.DType.named("float32"), "cpu")
    assert made.storage().nbytes() == 4 * 10**18


@pytest.mark.spec("dispatch 8.4", "test_make_wrapper_subclass_propagates_metadata")
def test_a_wrapper_has_the_metadata_that_it_is_given() -> None:
    """7.11: 8.4 make_wrapper_subclass_propagates_metadata."""
    made = TENSOR._make_wrapper_subclass(
        Boxed,
        (2, 3),
        strides=(1, 2),
        storage_offset=5,
        dtype=runtime.DType.named("float64"),
        device="meta",
        requires_grad=True,
    )
    assert (made.shape, made.strides, made.offset) == ((2, 3), (1, 2), 5)
    assert (str(made.dtype), str(made.device)) == ("float64", "meta")
    assert (made.requires_grad, made.is_contiguous()) == (True, False)
    assert made.keyset.has(DispatchKey["Meta"])


class Two:
    """What counts as an integer."""

    def __index__(self) -> int:
        return 2


def test_integers_of_any_kind() -> None:
    """7.11: what has an `__index__`; they become plain ones."""
    made = TENSOR._make_wrapper_subclass(
        Boxed, [True, Two()], strides=iter([Two(), True]), storage_offset=Two()
    )
    assert (made.shape, made.strides, made.offset) == ((1, 2), (2, 1), 2)
    assert {*map(type, (*made.shape, *made.strides, made.offset))} == {int}


@pytest.mark.parametrize(
    ("given", "fits", "found"),
    [
        ({"size": (2.7,)}, "integers as `size`", "a float"),
        ({"size": ("2",)}, "integers as `size`", "a str"),
        ({"size": "23"}, "a sequence of integers as `size`", "a str"),
        ({"size": b"23"}, "a sequence of integers as `size`", "a bytes"),
        ({"size": 3}, "a sequence of integers as `size`", "an int"),
        ({"size": None}, "a sequence of integers as `size`", "None"),
        ({"strides": (1.5,)}, "integers as `strides`", "a float"),
        ({"strides": 1}, "a sequence of integers as `strides`", "an int"),
        ({"storage_offset": 1.5}, "integers as `storage_offset`", "a float"),
        ({"storage_offset": "1"}, "integers as `storage_offset`", "a str"),
        ({"storage_offset": 0.0}, "integers as `storage_offset`", "a float"),
        ({"device": 3}, "a device, or its name", "an int"),
    ],
)
def test_what_is_no_integer_and_no_device(given: Any, fits: str, found: str) -> None:
    """Bad input: refused by name; nothing is cut off, and no text is read."""
    with pytest.raises(UnfitValue) as caught:
        TENSOR._make_wrapper_subclass(Boxed, **{"size": (2,), **given})
    fields = caught.value.fields()
    assert (fields["asked"], fields["fits"]) == ("_make_wrapper_subclass", fits)
    assert fields["found"] == found


def test_keys_of_what_is_no_device() -> None:
    """Bad input: `device_for_backend_keys`."""
    with pytest.raises(UnfitValue) as caught:
        TENSOR._make_subclass(Counted, runtime.tensor([1.0]), device_for_backend_keys=3)
    assert str(caught.value) == (
        "`_make_subclass` takes a device, or its name, but was given an int."
    )


def test_what_no_tensor_can_be_made_of() -> None:
    """7.11: a class without a handler, no class, no tensor, no gradient, no policy."""
    base = runtime.tensor([1])
    with pytest.raises(SubclassError, check=code("NoHandler")) as caught:
        TENSOR._make_wrapper_subclass(Plain, (2,))
    assert str(caught.value).startswith("`Plain` defines no `__torch_dispatch__`")
    for cls in (int, Tensor, "Plain"):
        with pytest.raises(NotATensorClass):
            TENSOR._make_subclass(cls, base)
    with pytest.raises(NotATensorClass) as refused:
        TENSOR._make_subclass(Plain, [1.0])
    assert str(refused.value) == (
        "`_make_subclass` takes a tensor as `data`, and was given a list of float."
    )
    with pytest.raises(UnfitValue, check=code("NoGradient")):
        TENSOR._make_subclass(Counted, base, True)
    with pytest.raises(UnfitValue, check=code("NoGradient")):
        TENSOR._make_wrapper_subclass(Boxed, (2,), dtype=base.dtype, requires_grad=True)
    with pytest.raises(BadSize, check=code("BadStrides")):
        TENSOR._make_wrapper_subclass(Boxed, (2, 2), strides=(1,))
    with pytest.raises(SubclassError, check=code("UnknownPolicy"), match=r"=.\[\]."):
        TENSOR._make_wrapper_subclass(Boxed, (2,), dispatch_sizes_strides_policy=[])
    with pytest.raises(SubclassError, check=code("UnknownPolicy")) as unknown:
        TENSOR._make_wrapper_subclass(
            Boxed, (2,), dispatch_sizes_strides_policy="shape"
        )
    assert str(unknown.value) == (
        "`Boxed` was created with dispatch_sizes_strides_policy='shape'; expected\n"
        "'strides' or 'sizes', or no such argument."
    )


@pytest.mark.parametrize(
    ("option", "taken", "refused"),
    [
        ("layout", Layout.named("strided"), Layout.named("sparse_coo")),
        (
            "memory_format",
            MemoryFormat.named("contiguous_format"),
            MemoryFormat.named("channels_last"),
        ),
        ("pin_memory", False, True),
    ],
)
def test_options_of_wrappers(option: str, taken: Any, refused: Any) -> None:
    """7.11: `memory_format`, `layout`, `pin_memory`: nothing is ignored."""
    for value in (None, taken):
        made = TENSOR._make_wrapper_subclass(Boxed, (2,), **{option: value})
        assert made.layout is Layout.named("strided")
    with pytest.raises(SubclassError, check=code("UnsupportedForWrappers")) as caught:
        TENSOR._make_wrapper_subclass(Boxed, (2,), **{option: refused})
    assert str(caught.value).startswith(
        f"A `Boxed` cannot have {option}={refused}: it has no elements."
    )


def test_a_tensor_of_another_context_is_refused() -> None:
    """7.11: the context of a tensor never changes (7.9)."""
    context = Context("making_test")
    with context:
        made = counted(1.0)
        assert type(made.as_subclass(Counted)) is Counted
    with pytest.raises(ContextError, check=code("WrappedElsewhere")):
        made.as_subclass(Counted)
    context.close()


def test_a_class_that_does_not_say_how_it_is_made() -> None:
    with pytest.raises(SubclassError, check=code("NotMade")) as caught:
        Counted([1.0])
    assert caught.value.cls == "Counted"
    made = Plain([1.0])
    assert (type(made), made.tolist()) == (Plain, [1.0])


@pytest.mark.spec("dispatch 7.11", "numpy and tolist")
@pytest.mark.parametrize(
    ("asked_for", "read"),
    [
        ("numpy()", lambda made: made.numpy()),
        ("tolist()", lambda made: made.tolist()),
        ("__dlpack__()", lambda made: made.__dlpack__()),
        ("__array_interface__", lambda made: made.__array_interface__),
        ("__array__()", lambda made: made.__array__()),
    ],
)
def test_elements_do_not_leave(asked_for: str, read: Any) -> None:
    """7.11: `.numpy()` and `.tolist()` of subclasses (8.4 tolist_numpy)."""
    for made in (boxed(1.0), counted(1.0)):
        with pytest.raises(SubclassError, check=code("NotForSubclasses")) as caught:
            read(made)
        assert (caught.value.cls, caught.value.asked) == (
            type(made).__name__,
            asked_for,
        )
    assert read(runtime.tensor([1.0]).as_subclass(Plain)) is not None


def test_factories_reach_the_handler_of_what_they_are_like() -> None:
    """7.11: 8.4 test_like, test_new_ones; without a tensor, modes alone are asked."""
    made = boxed(1.0, 2.0)
    for name in ("ones_like", "zeros_like", "empty_like", "rand_like", "randn_like"):
        assert asked(partial(getattr(core, name), made)) == [f"core.{name}.default"]
    found = core.full_like(made, 7.0)
    assert (type(found), found.inner.tolist()) == (Boxed, [7.0, 7.0])
    assert asked(lambda: core.ones([2])) == []


def test_a_list_alone_brings_the_handler_in() -> None:
    """7.11: 8.4 test_index_put_where_only_index_is_subclass."""
    seen: list[Any] = []

    class Index(Boxed):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append((str(func), types))
            return super().__torch_dispatch__(func, types, args, kwargs)

    target, index = runtime.zeros(3), Index(runtime.tensor([1]))
    assert target.index_put_([index], runtime.tensor([5.0])) is target
    assert target.tolist() == [0.0, 5.0, 0.0]
    assert seen == [("core.index_put_.default", (Index,))]


@pytest.mark.spec("dispatch 8.4", "test_custom_autograd")
def test_a_custom_function_with_wrappers() -> None:
    """7.11: 8.4 test_custom_autograd."""

    class Square(runtime.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            (x,) = ctx.saved_tensors
            return grad * x * 2

    made = boxed(3.0, requires_grad=True)
    found: list[Any] = []
    forward = asked(lambda: found.append(Square.apply(made)))
    assert forward == ["core.mul.default"]
    backward = asked(lambda: found[0].backward(boxed(1.0)))
    assert backward == ["core.mul.default", "core.mul.default", "core.clone.default"]
    assert type(made.grad) is Boxed
    assert made.grad.inner.tolist() == [6.0]


def test_no_dispatch_runs_what_is_below() -> None:
    """7.11: a tensor with elements computes with them where no handler is asked."""
    made = counted(1.0, 2.0)
    with no_dispatch():
        assert asked(lambda: made + 1) == []
        assert (made + 1).tolist() == [2.0, 3.0]


def test_a_negative_size_is_refused_in_words_of_wrappers() -> None:
    class Sized(Tensor):
        __torch_dispatch__ = classmethod(lambda *given: None)

    with pytest.raises(UnfitValue) as refused:
        Tensor._make_wrapper_subclass(Sized, (-3, 2))
    assert str(refused.value) == (
        "`_make_wrapper_subclass` takes sizes of 0 and more, but was given (-3, 2)."
    )


@pytest.mark.parametrize("name", ["shape", "dtype", "key_bits"])
def test_a_class_that_hides_what_kernels_read_gets_no_elements(name: str) -> None:
    """They would read beside the elements; a wrapper has none and may say anything."""
    hiding = type("Hiding", (Tensor,), {name: property(lambda self: (1 << 50,))})
    with pytest.raises(NotATensorClass, match=f"leaves `{name}` to Tensor"):
        runtime.ones(2).as_subclass(hiding)
    below = type("Below", (hiding,), {})
    with pytest.raises(NotATensorClass, match="the class Below"):
        Tensor._make_subclass(below, runtime.ones(2))


def test_results_of_a_class_without_a_handler() -> None:
    plain: Any = type("Plain", (Tensor,), {})
    made = runtime.ones(2).as_subclass(plain)
    assert [type(each).__name__ for each in (made, made + 1)] == ["Plain", "Tensor"]


def test_what_is_made_of_data_is_no_call() -> None:
    seen: list[str] = []

    class Seeing(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(str(func.name))
            return func(*args, **(kwargs or {}))

    with Seeing():
        runtime.tensor([1.0])
        assert seen == []
        runtime.zeros(1)
    assert seen == ["core::zeros"]


@pytest.mark.parametrize("cls", [Plain, Counted])
def test_gradients_pass_through_as_subclass(cls: Any) -> None:
    x = runtime.tensor([1.0, 2.0], requires_grad=True)
    made = x.as_subclass(cls)
    assert type(made) is cls
    assert (made.requires_grad, made.is_leaf) == (True, False)
    assert (made._base is x, made.grad_fn.name()) == (True, "AliasBackward")
    (made * 3).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3, 3]
    plain = runtime.tensor([1.0]).as_subclass(cls)
    assert (plain.requires_grad, plain.is_leaf, plain._version) == (False, True, 0)


@pytest.mark.parametrize("cls", [Plain, Counted])
def test_what_is_written_to_a_subclass_reaches_its_base(cls: Any) -> None:
    x = runtime.tensor([1.0, 2.0], requires_grad=True)
    base = x * 1
    made = base.as_subclass(cls)
    made.mul_(3)
    assert base.grad_fn.name() == "CopySlices"
    (base.sum() + made.sum()).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [6, 6]
    factor = runtime.tensor(2.0, requires_grad=True)
    constant = runtime.ones(2)
    constant.as_subclass(cls).mul_(factor)
    (found,) = runtime.autograd.grad(constant.sum(), factor)
    assert found is not None
    assert found.tolist() == 2
    with pytest.raises(WriteRefused, check=code("LeafModified")):
        x.as_subclass(cls).mul_(2)


@pytest.mark.parametrize("mode", [runtime.no_grad, runtime.inference_mode])
def test_as_subclass_in_a_mode_cannot_follow(mode: Any) -> None:
    base = runtime.tensor([1.0, 2.0], requires_grad=True) * 1
    with mode():
        made = base.as_subclass(Plain)
    assert (made.requires_grad, made.is_leaf) == (True, True)
    with pytest.raises(WriteRefused, check=code("ViewModified")):
        made.mul_(2)


def test_a_subclass_of_a_handled_tensor_keeps_the_graph() -> None:
    first = counted(1.0, 2.0).requires_grad_()
    second = (first * 2).as_subclass(Counted)
    (found,) = runtime.autograd.grad((second * 3).sum(), first)
    assert found is not None
    assert found.tolist() == [6, 6]
