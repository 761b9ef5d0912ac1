"""One declaration, every form: of plans, and of composites."""

from collections.abc import Callable
from typing import Any

import pytest

import everyorder.runtime as m
from everyorder.runtime.dispatch.dispatcher import Dispatcher
from everyorder.runtime.dispatch.kernel import direct
from everyorder.runtime.dispatch.library import Library
from everyorder.runtime.errors.autograd import WriteRefused
from everyorder.runtime.errors.tensor import TargetRefused
from everyorder.runtime.operators import core
from everyorder.runtime.operators.declare.plan import CallPlan
from everyorder.runtime.operators.declare.structured import Structured, Unstructured
from everyorder.runtime.tensors.dtype_info import compute_dtype
from everyorder.runtime.tensors.tensor import Tensor
from tests.autograd.made import grad_of
from tests.coded import code
from tests.operators.tensors import LETTERS, META, shown, tensor


def plan_twice(self: Tensor, times: int) -> CallPlan:
    """An operator that repeats along the last dimension; it reads what it wrote not."""
    shape = (*self.shape[:-1], self.shape[-1] * times)
    dtype = self.dtype

    def run(table: Any, out: Tensor, x: Tensor, count: int) -> None:
        table["cat"](out, [x] * count, len(shape) - 1)

    outputs = ((shape, dtype),)
    return CallPlan(
        outputs, self.device, (self, times), compute_dtype(dtype), (0,), None, run
    )


TWICE = Structured("twice", "Tensor self, int times=2", plan_twice, in_place=True)


def test_the_forms_of_a_declaration() -> None:
    forms = list(TWICE.definitions())
    assert [form.schema for form in forms] == [
        "twice(Tensor self, int times=2) -> Tensor",
        "twice_(Tensor(a!) self, int times=2) -> Tensor(a!)",
        "twice.out(Tensor self, int times=2, *, Tensor(a!) out) -> Tensor(a!)",
    ]
    shown_names = [
        [(key, kernel.facts.name) for key, kernel in form.kernels] for form in forms
    ]
    assert shown_names == [
        [("CPU", "twice_cpu"), ("CUDA", "twice_cuda"), ("Meta", "twice_meta")],
        [("CPU", "twice__cpu"), ("CUDA", "twice__cuda"), ("Meta", "twice__meta")],
        [
            ("CPU", "twice_out_cpu"),
            ("CUDA", "twice_out_cuda"),
            ("Meta", "twice_out_meta"),
        ],
    ]


def test_the_forms_of_an_overload() -> None:
    declared = Structured(
        "bound.Tensor",
        "Tensor self, *, Tensor? by=None",
        plan_twice,
        in_place=True,
        tags=("pointwise",),
    )
    assert [(form.schema, form.tags) for form in declared.definitions()] == [
        ("bound.Tensor(Tensor self, *, Tensor? by=None) -> Tensor", ("pointwise",)),
        (
            "bound_.Tensor(Tensor(a!) self, *, Tensor? by=None) -> Tensor(a!)",
            ("pointwise",),
        ),
        (
            "bound.Tensor_out(Tensor self, *, Tensor? by=None, Tensor(a!) out) "
            "-> Tensor(a!)",
            ("pointwise",),
        ),
    ]


@pytest.mark.parametrize("returns", ["(Tensor, Tensor)", "(Tensor first, Tensor)"])
def test_results_without_names_have_no_out_form(returns: str) -> None:
    declared = Structured("two", "Tensor self", plan_twice, returns=returns)
    assert [form.schema for form in declared.definitions()] == [
        f"two(Tensor self) -> {returns}"
    ]


def test_each_result_has_a_target_of_its_name() -> None:
    returns = "(Tensor first, Tensor second)"
    declared = Structured("two.dim", "Tensor self, int dim", plan_twice, returns)
    assert [form.schema for form in declared.definitions()] == [
        f"two.dim(Tensor self, int dim) -> {returns}",
        "two.dim_out(Tensor self, int dim, *, Tensor(a!) first, Tensor(b!) second)"
        " -> (Tensor(a!) first, Tensor(b!) second)",
    ]


def test_written_operators_name_their_kernels() -> None:
    own = direct(lambda self: self, "mine")
    written = Unstructured(
        "same.it(Tensor(a) self) -> Tensor(a)",
        {
            "CPU": lambda self: self,
            "CompositeImplicitAutograd": lambda self: self,
            "CompositeExplicitAutograd": lambda self: self,
            "AutogradCPU": own,
        },
    )
    (form,) = written.definitions()
    assert [(key, kernel.facts.name) for key, kernel in form.kernels] == [
        ("CPU", "same_it_cpu"),
        ("CompositeImplicitAutograd", "same_it_composite"),
        ("CompositeExplicitAutograd", "same_it_explicit"),
        ("AutogradCPU", "mine"),
    ]


def _installed() -> tuple[Dispatcher, list[Library]]:
    dispatcher = Dispatcher()
    library = Library("core", "DEF", dispatcher=dispatcher, origin="test")
    for form in TWICE.definitions():
        library.define(form.schema)
        for key, kernel in form.kernels:
            library.impl(form.schema.partition("(")[0], kernel, key)
    return dispatcher, [library]


@pytest.mark.parametrize("letter", ["l", "h", "f"])
def test_forms_agree_on_every_backend(letter: str) -> None:
    dispatcher, kept = _installed()
    call = dispatcher.find_op("core::twice")
    out_form = dispatcher.find_op("core::twice.out")
    assert call is not None
    assert out_form is not None
    dtype = LETTERS[letter]
    x = tensor([[1, 2]], dtype.name)
    expected = (dtype.name, [[1, 2, 1, 2]])
    assert shown(call(x)) == expected
    meta = call(core.empty([1, 2], dtype=dtype, device=META))
    assert (meta.shape, meta.dtype, meta.device) == ((1, 4), dtype, META)
    out = core.empty([0], dtype=dtype)
    assert out_form(x, out=out) is out
    assert shown(out) == expected
    meta_out = core.empty([0], dtype=dtype, device=META)
    assert out_form(core.empty([1, 2], dtype=dtype, device=META), out=meta_out).shape
    assert meta_out.shape == (1, 4)
    wide = core.empty([1, 8])
    target = core.slice(wide, 1, 0, 8, 2)
    out_form(x, out=target) if letter == "f" else core.copy_(target, call(x))
    assert target.numpy().tolist() == [[1, 2, 1, 2]]
    assert kept


def test_in_place_reads_before_it_writes() -> None:
    dispatcher, kept = _installed()
    in_place = dispatcher.find_op("core::twice_")
    assert in_place is not None
    x = tensor([3.0, 4.0])
    assert in_place(x, 1) is x
    assert shown(x) == ("float32", [3.0, 4.0])
    with pytest.raises(TargetRefused, check=code("TargetShape")):
        in_place(x)
    assert kept


IN_PLACE: dict[str, tuple[Any, ...]] = {
    "addcdiv_": (m.full((3, 3), 0.5), m.full((3, 1), 2.0)),
    "addcmul_": (m.full((3, 3), 0.5), m.full((3,), 2.0)),
    "addmm_": (m.eye(3), m.ones(3, 3)),
    "cumprod_": (1,),
    "cumsum_": (0,),
    "fmod_": (0.75,),
    "hypot_": (m.full((3, 3), 0.5),),
    "lerp_": (m.zeros(3, 3), 0.25),
    "nan_to_num_": (),
    "tril_": (),
    "triu_": (1,),
}


def start() -> Any:
    return m.arange(1.0, 10.0).reshape(3, 3) / 4


@pytest.mark.parametrize("name", IN_PLACE)
def test_gradients_of_what_was_written_in_place(name: str) -> None:
    found = []
    for written in (name, name[:-1]):
        leaf = start().requires_grad_()
        x = leaf * 2
        made = getattr(x, written)(*IN_PLACE[name])
        (made * made).sum().backward()
        found.append(grad_of(leaf).tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("name", IN_PLACE)
def test_leaves_are_not_written(name: str) -> None:
    leaf = start().requires_grad_()
    with pytest.raises(WriteRefused, check=code("LeafModified")):
        getattr(leaf, name)(*IN_PLACE[name])
    assert leaf.tolist() == start().tolist()


# What takes `out=`, and is no operator of one element after the other.
OUT: dict[str, Callable[..., Any]] = {
    "addcmul": lambda x, **o: m.addcmul(x, x, x, value=2, **o),
    "addmm": lambda x, **o: m.addmm(x, x, x, beta=0.5, **o),
    "angle": lambda x, **o: m.angle(x, **o),
    "baddbmm": lambda x, **o: m.baddbmm(x[None], x[None], x[None], **o),
    "cumprod": lambda x, **o: m.cumprod(x, 0, **o),
    "diag": lambda x, **o: m.diag(x, **o),
    "hstack": lambda x, **o: m.hstack([x, x], **o),
    "lerp": lambda x, **o: m.lerp(x, x * 2, 0.5, **o),
    "lerp by tensor": lambda x, **o: m.lerp(x, x * 2, x, **o),
    "logsumexp": lambda x, **o: m.logsumexp(x, 1, **o),
    "mv": lambda x, **o: m.mv(x, x[0], **o),
    "nan_to_num": lambda x, **o: m.nan_to_num(x, **o),
    "norm": lambda x, **o: m.norm(x, 2, 0, **o),
    "outer": lambda x, **o: m.outer(x[0], x[1], **o),
    "searchsorted": lambda x, **o: m.searchsorted(x[0], x, **o),
    "take_along_dim": lambda x, **o: m.take_along_dim(
        x, m.tensor([[0], [1], [2]]), 1, **o
    ),
    "tril": lambda x, **o: m.tril(x, **o),
    "triu": lambda x, **o: m.triu(x, 1, **o),
    "vstack": lambda x, **o: m.vstack([x, x], **o),
}


@pytest.mark.parametrize("name", sorted(set(OUT) - {"searchsorted"}))
def test_targets_take_no_gradient(name: str) -> None:
    with pytest.raises(WriteRefused, check=code("OutRequiresGrad")):
        OUT[name](start().requires_grad_(), out=m.empty(0))
