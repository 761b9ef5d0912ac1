"""Where a wrapper is lost: below its handler, every operator says so, or is right.

Each operator of the table of `tests/opinfo` gets wrappers with the handler switched
off, in two ways.  It may need no elements, and is right; or it says by name that there
are none.  Nothing else may happen.
"""

from collections.abc import Callable
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Tensor
from everyorder.runtime.errors.autograd import NotImplementedFormula, WriteRefused
from everyorder.runtime.errors.tensor import TargetRefused
from everyorder.runtime.errors.torch_dispatch import SubclassError
from everyorder.runtime.tensors.storage import WrapperStorage
from everyorder.runtime.torch_dispatch import no_dispatch
from tests.coded import coded
from tests.opinfo.info import Array, OpInfo, Sample, listed, on_cpu, targets_of
from tests.opinfo.table import ROWS
from tests.torch_dispatch.kinds import TENSOR, Counted, boxed, counted

LeafModified = coded(WriteRefused, "LeafModified")
NoElements = coded(SubclassError, "NoElements")
OutRequiresGrad = coded(WriteRefused, "OutRequiresGrad")
TargetDType = coded(TargetRefused, "TargetDType")

# What is refused before anybody looks at elements; it is without wrappers, too.
ConstantArgument = coded(NotImplementedFormula, "ConstantArgument")
REFUSED = (LeafModified, OutRequiresGrad, TargetDType, ConstantArgument)
FORMS = ("functional", "in-place", "out")


class Empty(Counted):
    """A wrapper around nothing, whose handler leaves everything to those below."""


def empty(like: Tensor) -> Tensor:
    """A wrapper with the metadata of a tensor."""
    made: Tensor = TENSOR._make_wrapper_subclass(
        Empty,
        like.shape,
        strides=like.strides,
        storage_offset=like.offset,
        dtype=like.dtype,
    )
    return made


def plain(like: Tensor) -> Tensor:
    return like


def call_of(
    row: OpInfo,
    form: str,
    sample: Sample,
    make: Callable[[Tensor], Tensor],
    requires_grad: bool,
) -> Callable[[], Any] | None:
    """The call of a form of an operator, what `make` makes for its tensors."""

    def turn(value: Any) -> Any:
        if not isinstance(value, Array):
            return on_cpu(value)
        made = make(value.tensor())
        if requires_grad and made.dtype.is_floating:
            made.requires_grad_()
        return made

    call = row.call if form == "functional" else row.form(form)
    if call is None:
        return None
    args, kwargs = sample.bound(turn)
    if form == "out":
        given, named = sample.bound(on_cpu)
        results = listed(row.call(*given, **named))
        kwargs |= dict(zip(targets_of(call), map(make, results), strict=True))
    return lambda: call(*args, **kwargs)


def judged(row: OpInfo, sample: Sample, result: Any) -> None:
    """A result has no elements, or is what the same call gives without wrappers."""
    given, named = sample.bound(on_cpu)
    for found, expected in zip(
        listed(result), listed(row.call(*given, **named)), strict=True
    ):
        assert isinstance(found, Tensor)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        if isinstance(found.storage(), WrapperStorage):
            assert (found.strides, found.offset) == (expected.strides, expected.offset)
            with pytest.raises(NoElements), no_dispatch():
                runtime.ops.core.clone(found)
        elif not (row.random or row.name.startswith("empty")):
            assert found.tolist() == expected.tolist()
        assert type(found) is Tensor or found._python_dispatch


@pytest.mark.spec("dispatch 7.11", "known limits")
@pytest.mark.parametrize("requires_grad", [False, True], ids=["plain", "grad"])
@pytest.mark.parametrize("how", ["off", "super"])
@pytest.mark.parametrize("row", ROWS, ids=repr)
def test_an_operator_below_the_handler(
    row: OpInfo, how: str, requires_grad: bool
) -> None:
    """7.11: "ops that unwrap internally lose the subclass": an error by name."""
    dtype = "float32" if "float32" in row.dtypes else row.dtypes[0]
    sample = row.samples(dtype)[0]
    for form in FORMS:
        call = call_of(row, form, sample, empty, requires_grad)
        if call is None:
            continue
        try:
            if how == "off":
                with no_dispatch():
                    result = call()
            else:
                result = call()
        except SubclassError as error:
            # Not `pytest.raises`: who needs no elements raises nothing.
            told = error.code, error.cls
            assert told == ("NoElements", "Empty")
        except (WriteRefused, TargetRefused, NotImplementedFormula) as error:
            kind = next(each for each in REFUSED if isinstance(error, each))
            same = call_of(row, form, sample, plain, requires_grad)
            assert same is not None
            with pytest.raises(kind):
                same()
        else:
            judged(row, sample, result)


@pytest.mark.spec("dispatch 0.2", "operators that lose the subclass are not repaired")
def test_the_error_names_the_class() -> None:
    """7.11: the whole text."""
    with no_dispatch(), pytest.raises(NoElements) as caught:
        boxed(1.0) + 1
    assert str(caught.value) == (
        "The elements of a `Boxed` were requested, which is a wrapper and has no\n"
        "elements.\n"
        "  to do: let its `__torch_dispatch__` compute with the wrapped tensor; "
        "kernels,\n"
        "         and calls with the handler switched off, cannot access that"
    )


@pytest.mark.parametrize(
    "read",
    [
        lambda made: made.item(),
        bool,
        float,
        lambda made: made.storage().numpy(),
        lambda made: made.storage().array,
    ],
)
def test_elements_that_are_not_there(read: Any) -> None:
    with no_dispatch(), pytest.raises(NoElements):
        read(boxed(1.0))


@pytest.mark.spec("dispatch 8.4", "test_storage")
def test_a_wrapper_stores_nothing() -> None:
    """7.11: the storage knows a size, and counts its versions."""
    storage = boxed(1.0, 2.0).storage()
    assert (storage.count, storage.nbytes(), storage.data_ptr()) == (2, 8, 0)
    with pytest.raises(AssertionError, match="views of elements"):
        storage.grow(3)
    assert isinstance(storage, WrapperStorage)
    other = TENSOR._make_wrapper_subclass(Empty, (0,)).storage()
    other.grow(3)
    assert (other.count, other.version) == (3, 0)
    other.counts_with(storage)
    other.version += 2
    assert (other.version, storage.version) == (2, 2)
    other.counts_with(runtime.ones(1).storage())
    assert other.version == 2


@pytest.mark.spec("dispatch 8.4", "test_format")
def test_how_they_print() -> None:
    """7.11: 8.4 test_format; nobody is asked for the text."""
    wrapper = boxed(1.0, 2.0, requires_grad=True)
    cases: list[tuple[Any, str]] = [
        (wrapper, "Boxed(..., shape=(2,), dtype=float32, requires_grad=True)"),
        (wrapper * 2, "Boxed(..., shape=(2,), dtype=float32, grad_fn=<MulBackward0>)"),
        (counted(1.0), "Counted([1.])"),
        (
            TENSOR._make_wrapper_subclass(Empty, (0,), device="meta"),
            "Empty(..., shape=(0,), dtype=float32, device='meta')",
        ),
    ]
    for made, text in cases:
        assert repr(made) == str(made) == f"{made}"
        assert repr(made).replace(made_by(made), "MulBackward0") == text
    with no_dispatch():
        view = boxed(1.0, 2.0)[0:1]
    assert (type(view), repr(view)) == (
        Tensor,
        "tensor(..., shape=(1,), dtype=float32)",
    )
    assert repr(runtime.ones(1).as_subclass(Bare)) == "Bare([1.])"
    assert f"{boxed(1.5):.2f}" == "1.50"
    assert f"{boxed(1.5, 2.5):>3}" == "Boxed(..., shape=(2,), dtype=float32)"


def made_by(tensor: Tensor) -> str:
    """The name of the node that the tensor came from."""
    name: str = "" if tensor.grad_fn is None else tensor.grad_fn.name()
    return name or "nothing"


class Bare(Tensor):
    """A subclass without a handler."""
