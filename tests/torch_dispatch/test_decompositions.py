"""What handlers see in place of an operator computes the same, with both gradients."""

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from everyorder import runtime
from everyorder.runtime import Tensor, TorchDispatchMode
from everyorder.runtime.errors.tensor import ShapesDoNotFit, WrongOption
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.operators.decompositions import DECOMPOSITIONS
from tests.coded import code

Shapes = tuple[tuple[int, ...], ...]
Case = tuple[Callable[..., Any], Shapes]

MASK = [[True, False, True], [False, False, False], [True, True, True]]
SHARES = [[0.0, 1.0, 2.0], [-math.inf, 0.0, 0.0], [1.0, 1.0, 1.0]]
HEADS = ((2, 2, 3, 4),) * 3


def _norm(training: bool) -> Callable[..., Any]:
    def run(x: Any, *parameters: Any) -> Any:
        running = core.zeros([3], dtype=x.dtype), core.ones([3], dtype=x.dtype)
        return core.batch_norm(x, *running, *parameters, training=training)

    return run


def _attended(mask: Any = None, **options: Any) -> Callable[..., Any]:
    def run(*tensors: Any) -> Any:
        given = None if mask is None else runtime.tensor(mask)
        if given is not None and given.dtype is runtime.float32:
            given = given.to(tensors[0].dtype)
        how = {"attn_mask": given, **options}
        return core.scaled_dot_product_attention(*tensors, **how)

    return run


CASES: dict[str, Case] = {
    "linear": (core.linear, ((4, 6), (5, 6), (5,))),
    "linear of rows": (core.linear, ((2, 4, 6), (5, 6), (5,))),
    "linear of a line": (core.linear, ((6,), (5, 6), (5,))),
    "linear without bias": (core.linear, ((2, 4, 6), (5, 6))),
    "conv2d": (
        lambda x, w, b: core.conv2d(x, w, b, 2, 1),
        ((2, 3, 7, 7), (4, 3, 3, 3), (4,)),
    ),
    "conv2d of one image": (core.conv2d, ((3, 5, 5), (2, 3, 3, 3))),
    "conv1d": (
        lambda x, w, b: core.conv1d(x, w, b, [2], [1]),
        ((2, 3, 7), (4, 3, 3), (4,)),
    ),
    "softmax": (lambda x: core.softmax(x, -1), ((3, 4),)),
    "log_softmax": (lambda x: core.log_softmax(x, 0), ((3, 4),)),
    "relu": (core.relu, ((3, 4),)),
    "embedding": (lambda w: core.embedding(w, runtime.tensor([0, 2, 2])), ((4, 3),)),
    "attention": (_attended(), ((2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4))),
    "causal attention": (_attended(is_causal=True), HEADS),
    "masked attention": (_attended(MASK, scale=0.3), HEADS),
    "attention with shares": (_attended(SHARES), HEADS),
    "attention of three dimensions": (_attended(), ((2, 3, 4),) * 3),
}
# They are one operator in torch, and so they are here, with a formula.
WHOLE: dict[str, Case] = {
    "batch_norm": (_norm(training=True), ((4, 3, 2), (3,), (3,))),
    "batch_norm, running": (_norm(training=False), ((4, 3, 2), (3,), (3,))),
    "batch_norm alone": (
        lambda x: core.batch_norm(x, training=True),
        ((4, 3, 2),),
    ),
    "mse_loss": (core.mse_loss, ((3, 4), (4,))),
    "mse_loss, sum": (lambda x, y: core.mse_loss(x, y, "sum"), ((3, 4), (3, 4))),
    "mse_loss, none": (lambda x, y: core.mse_loss(x, y, "none"), ((3, 4), (3, 4))),
    "logits": (core.binary_cross_entropy_with_logits, ((3, 4), (3, 4))),
    "logits with weights": (
        core.binary_cross_entropy_with_logits,
        ((3, 4), (3, 4), (4,), (4,)),
    ),
    "logits with weights, sum": (
        lambda *given: core.binary_cross_entropy_with_logits(*given, reduction="sum"),
        ((3, 4), (3, 4), (3, 1), (4,)),
    ),
    "addmm": (
        lambda s, a, b: core.addmm(s, a, b, beta=0.5, alpha=2),
        ((4,), (3, 5), (5, 4)),
    ),
    "addmm by columns": (
        lambda s, a, b: core.addmm(s, a.t(), b.t()),
        ((3, 4), (5, 3), (4, 5)),
    ),
    "mm by columns": (lambda a, b: core.mm(a.t(), b.t()), ((5, 3), (4, 5))),
    "mv": (core.mv, ((3, 4), (4,))),
    "matmul of rows": (core.matmul, ((2, 3, 4), (4, 5))),
    "stack": (lambda a, b: core.stack([a, b], 1), ((3, 4), (3, 4))),
    "unbind": (lambda a: core.mul(*a.unbind(-1)[:2]), ((3, 4),)),
    "unbind, one": (lambda a: a.unbind(1)[2], ((3, 4),)),
    "tril": (lambda a: core.tril(a, 1), ((3, 4),)),
    "triu": (lambda a: core.triu(a, -1), ((3, 4),)),
    "repeat": (lambda a: a.repeat(2, 1, 3), ((3, 4),)),
    "repeat of a number": (lambda a: a.repeat(2, 3), ((),)),
    "addcmul": (
        lambda a, b, c: core.addcmul(a, b, c, value=3),
        ((3, 4), (4,), (3, 1)),
    ),
    "lerp": (lambda a, b: core.lerp_Scalar(a, b, 0.7), ((3, 4), (3, 4))),
    "lerp by a tensor": (core.lerp_Tensor, ((3, 4),) * 3),
    "pad": (lambda a: core.pad(a, [1, 2, -1, 1], "constant", 3.0), ((3, 4),)),
    "pad by nothing": (lambda a: core.pad(a, [0, 0]), ((3, 4),)),
    "leaky_relu": (lambda a: core.leaky_relu(a, 0.1), ((3, 4),)),
    "logsumexp": (lambda a: core.logsumexp(a, [1], True), ((3, 4),)),
    "logsumexp of all": (lambda a: core.logsumexp(a, []), ((3, 4),)),
    "reshape": (lambda a: a.t().reshape(12), ((3, 4),)),
    "max_pool2d": (lambda a: core.max_pool2d(a, 2), ((1, 2, 4, 4),)),
}
EVERY = {**CASES, **WHOLE}


class Through(TorchDispatchMode):
    """Calls what it sees."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]  # as people write it
        return func(*args, **(kwargs or {}))


def inputs(name: str) -> list[Tensor]:
    """Return the leaves of a case, drawn by its name."""
    random = np.random.default_rng(sum(map(ord, name)))
    _, shapes = EVERY[name]
    arrays = [random.normal(size=shape) for shape in shapes]
    return [runtime.tensor(each).requires_grad_() for each in arrays]


def gradients(name: str) -> list[np.ndarray[Any, Any] | None]:
    """Return the result of a case, and the first and second gradients of its leaves."""
    call, _ = EVERY[name]
    leaves = inputs(name)
    result = call(*leaves)
    weights = runtime.tensor(np.arange(1.0, result.numel() + 1).reshape(result.shape))
    total = core.sum(core.mul(core.mul(result, result), weights))
    first = runtime.autograd.grad(total, leaves, create_graph=True)
    squares = [core.sum(core.mul(each, each)) for each in first]
    again = sum(squares[1:], start=squares[0])
    second = runtime.autograd.grad(again, leaves, allow_unused=True)
    found = [result, *first, *second]
    return [None if each is None else each.detach().numpy() for each in found]


@pytest.mark.parametrize("name", EVERY)
def test_with_and_without_a_mode(name: str) -> None:
    plain = gradients(name)
    with Through():
        handled = gradients(name)
    for one, other in zip(plain, handled, strict=True):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert np.allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", EVERY)
def test_the_gradients_are_those_of_differences(name: str) -> None:
    call, _ = EVERY[name]
    assert runtime.autograd.gradcheck(call, inputs(name))
    with Through():
        assert runtime.autograd.gradcheck(call, inputs(name))


def test_each_decomposition_has_a_case() -> None:
    calls = {name.partition(" ")[0] for name in CASES}
    named = {name.removesuffix("_backward") for name in DECOMPOSITIONS}
    assert named - calls == {"scaled_dot_product_attention"}


def test_a_rule_for_the_operator_gets_its_calls() -> None:
    seen: list[str] = []

    class Kind(Tensor):
        """A class whose operators are seen."""

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]  # as people write it
            seen.append(str(func))
            return func(*map(_plain, args), **(kwargs or {}))

    def _plain(value: Any) -> Any:
        return getattr(value, "inner", value)

    x: Any = Tensor._make_wrapper_subclass(Kind, (4, 6))
    x.inner = runtime.ones(4, 6)
    weight = runtime.ones(5, 6)
    core.linear(x, weight)
    assert seen == ["core.mm.default"]
    seen.clear()
    library = runtime.Library("core", "FRAGMENT")
    library.rule("linear", Kind, lambda *given: runtime.zeros(4, 5))
    assert core.linear(x, weight).tolist() == [[0.0] * 5] * 4
    assert seen == []
    library.close()
    core.linear(x, weight)
    assert seen == ["core.mm.default"]


def test_a_kernel_that_overrides_the_operator_gets_its_calls() -> None:
    x, weight = runtime.ones(2, 3), runtime.ones(4, 3)
    library = runtime.Library("core", "IMPL")
    with pytest.warns(runtime.KernelOverridden):
        library.impl("linear", lambda *given: runtime.zeros(7), "CPU")
    try:
        with Through():
            assert core.linear(x, weight).shape == (7,)
    finally:
        library.close()
    with Through():
        assert core.linear(x, weight).shape == (2, 4)


@pytest.mark.parametrize("mask", [MASK, [[0.0, -math.inf, 0.0], [-math.inf] * 3]])
def test_attention_to_no_key_is_zero(mask: Any) -> None:
    for mode in (nullcontext(), Through()):
        query = runtime.ones(1, 1, len(mask), 4).requires_grad_()
        keys = runtime.ones(1, 1, 3, 4)
        with mode:
            found = core.scaled_dot_product_attention(
                query, keys, keys, attn_mask=runtime.tensor(mask)
            )
            found.sum().backward()
        assert found[0, 0, 1].tolist() == [0.0] * 4
        assert query.grad is not None
        assert not runtime.isnan(query.grad).any()


@pytest.mark.parametrize("shape", [(2, 0, 5), (0, 3, 5), (0, 5)])
def test_a_linear_layer_of_nothing(shape: tuple[int, ...]) -> None:
    with Through():
        found = core.linear(runtime.ones(shape), runtime.ones(4, 5), runtime.ones(4))
    assert found.shape == (*shape[:-1], 4)


@pytest.mark.parametrize(
    ("call", "operator"),
    [
        (lambda one: core.conv1d(one(1, 1, 4, 4), one(1, 1, 2, 2)), "conv1d"),
        (lambda one: core.linear(one(2, 3), one(4, 3), one(2, 4)), "linear"),
        (lambda one: core.linear(one(2, 3), one(4, 3), one(1)), "linear"),
        (lambda one: core.linear(one(2, 3), one(3)), "linear"),
        (lambda one: core.linear(one(2, 3), one(4, 5)), "linear"),
        (lambda one: core.conv2d(one(1, 1, 4, 4), one(1, 1, 2)), "conv2d"),
    ],
)
def test_what_is_refused_is_refused_below_a_mode_by_the_same_name(
    call: Any, operator: str
) -> None:
    for mode in (nullcontext(), Through()):
        with mode, pytest.raises(ShapesDoNotFit) as caught:
            call(runtime.ones)
        assert caught.value.operator == f"core::{operator}"


def test_parts_are_seen_in_inference_mode() -> None:
    """A composite that is no row of the table is seen whole there, as in torch."""
    x = runtime.ones(2, 2)
    seen: list[str] = []

    class Log(runtime.TorchDispatchMode):
        """A mode that lists what it sees."""

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]  # as people write it
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with runtime.inference_mode(), Log():
        core.softmax(x, 1)
        core.linear(x, x, x[0])
        core.elu(x)
    parts = ["_softmax", "select", "t", "addmm", "elu"]
    assert seen == [f"core.{name}.default" for name in parts]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: core.convolution(x, x, None, [1], [0], [1], True, [0], 1),
        lambda x: core._softmax(x, 0, True),
        lambda x: core.leaky_relu_backward(x, x, -1, True),
        lambda x: core.embedding_dense_backward(x, x, 1, -1, True),
        lambda x: core._scaled_dot_product_flash_attention_for_cpu(x, x, x, 0.5),
    ],
)
def test_what_is_not_built_is_refused(call: Any) -> None:
    with pytest.raises(WrongOption):
        call(runtime.ones(2, 2, 2))


def test_a_view_of_a_copy_has_no_base() -> None:
    x = runtime.ones(3, 4)
    assert x.t().reshape(12)._base is None
    assert (runtime.ones(2, 3, 4) @ runtime.ones(4, 5))._base is None
    assert x.repeat(2, 1)._base is None
    assert x.reshape(12)._base is x
    assert all(each._base is x for each in x.unbind())


def test_names_of_overloads() -> None:
    aten = runtime.ops.aten
    assert aten.sum.dim_IntList == aten.sum.default
    assert aten.add.Scalar_out == aten.add.out
    assert aten.where.self == aten.where.default
    assert aten.arange.start_step == aten.arange.start
    assert aten.select.int(runtime.ones(2, 3), 0, 1).shape == (3,)
    assert "dim_IntList" not in aten.sum.overloads()
    with pytest.raises(AttributeError, match="no overload `dim_Int`"):
        _ = aten.sum.dim_Int
    # It has no unnamed overload.
    with pytest.raises(AttributeError, match="no overload `Tensor`"):
        _ = aten.bernoulli_.Tensor


def test_names_that_published_classes_use() -> None:
    add = runtime.ops.aten.add.Tensor
    assert add._overloadpacket is runtime.ops.aten.add
    assert (add._opname, add._overloadname) == ("add", "default")
    assert add._overloadpacket._qualified_op_name == "core::add"
    schema = add._schema
    assert schema.overload_name == ""
    assert [each.default_value for each in schema.arguments] == [None, None, 1]
    name: Any = schema.name
    assert (str(name), name.base, name.namespace) == ("core::add", "add", "core")
    assert not isinstance(name, str)
    assert runtime.float16.is_floating_point
    assert not runtime.int64.is_floating_point
    assert runtime.int8.is_signed
    assert not runtime.uint8.is_signed
    assert not runtime.bool.is_signed
    x = runtime.ones(3)
    one = x.untyped_storage()._cdata
    assert one == x[1:].untyped_storage()._cdata
    assert one != runtime.ones(3).untyped_storage()._cdata


def test_a_class_passes_a_tensor_to_the_new_of_tensor() -> None:
    class Kind(Tensor):
        """A class with a `__new__` of its own."""

        def __new__(cls, data: Tensor) -> "Kind":
            made: Kind = super().__new__(cls, data)
            return made

    data = runtime.ones(3)
    kind = Kind(data)
    assert type(kind) is Kind
    kind[0] = 5.0
    assert data.tolist() == [5.0, 1.0, 1.0]
    assert not kind.requires_grad


def test_functions_are_not_handed_to_classes() -> None:
    """Nothing is silently ignored: the class is warned of, the mode refuses."""
    overrides: Any = runtime.overrides
    native: Any = getattr(runtime, "_C")  # noqa: B009  # types do not know it
    assert native is overrides

    class Quiet(Tensor):
        """A class that disables it, as published ones do."""

        __torch_function__ = native._disabled_torch_function_impl

    with pytest.warns(UserWarning, match=r"`Heard.__torch_function__` is never called"):

        class Heard(Tensor):
            """A class that wants the functions."""

            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]  # as people write it
                return super().__torch_function__(func, types, args, kwargs)

    called: Any = Heard.__torch_function__
    found = called(runtime.add, (), (runtime.ones(1), 1))
    assert found.tolist() == [2.0]
    with native.DisableTorchFunctionSubclass():
        assert not overrides.has_torch_function((runtime.ones(1),))
    assert overrides.is_tensor_like(runtime.ones(1))
    assert not overrides.is_tensor_like(1)
    with pytest.raises(RuntimeError, check=code("FunctionMode")):
        overrides.TorchFunctionMode().__enter__()
    assert Quiet.__torch_function__ is not None
