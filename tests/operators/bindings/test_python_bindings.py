"""How people call operators: `out=`, sizes, other libraries' words, unknown arguments.

And what `help()` says of functions and methods.
"""

# What a type checker refuses is called here on purpose.
# mypy: disable-error-code="arg-type, call-arg, call-overload, misc"

import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from everyorder import runtime
from everyorder.runtime.errors.call import CallError
from everyorder.runtime.errors.registration import UnknownDevice
from everyorder.runtime.errors.tensor import NotShareable, UnfitValue, WrongOption
from everyorder.runtime.operators.bindings import functions
from everyorder.runtime.operators.bindings.functions import FUNCTIONS
from everyorder.runtime.operators.bindings.python_api import (
    Ordered,
    clamp,
    clamp_,
    scatter,
    sort,
    split,
)
from everyorder.runtime.operators.bindings.python_bindings import (
    function,
    plain,
    public,
    sizes,
    takes_one,
    unary,
    with_out,
)
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.tensor import METHODS, Tensor
from tests.coded import code, coded
from tests.operators.refusals import message_of
from tests.operators.tensors import shown, tensor


def test_sizes_are_one_sequence_or_separate() -> None:
    assert sizes((2, 3)) == (2, 3)
    assert sizes(((2, 3),)) == (2, 3)
    assert sizes(([2, 3],)) == [2, 3]
    assert sizes((2,)) == (2,)
    assert sizes(()) == ()


@pytest.mark.parametrize("make", [unary, with_out, function])
def test_out_chooses_the_overload(make: object) -> None:
    assert callable(make)
    run, x, out = make("neg"), tensor([1.0, -2.0]), tensor([0.0, 0.0])
    assert shown(run(x)) == ("float32", [-1.0, 2.0])
    assert run(x, out=out) is out
    assert shown(out) == ("float32", [-1.0, 2.0])
    assert shown(run(x, out=None)) == ("float32", [-1.0, 2.0])
    with pytest.raises(CallError):
        run(object())


def test_making_functions_looks_for_no_names_like_theirs() -> None:
    """Half a second, when what has no `out=` was asked for as an operator."""
    program = (
        "import sys, everyorder.runtime.bootstrap\nprint('difflib' in sys.modules)"
    )
    command = [sys.executable, "-c", program]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert said.stdout == "False\n"


def test_functions_are_made_once_and_named() -> None:
    assert function("add") is function("add")
    assert (function("add").__name__, takes_one("neg")) == ("add", True)
    assert not takes_one("add")
    assert shown(plain("add")(tensor([1.0]), 2)) == ("float32", [3.0])


def test_numbers_and_tensors_where_overloads_take_them() -> None:
    x = tensor([1.0, 5.0, 9.0])
    assert shown(clamp(x, 2, 6)) == ("float32", [2.0, 5.0, 6.0])
    assert shown(clamp(x, tensor([3.0] * 3), 6)) == ("float32", [3.0, 5.0, 6.0])
    out = tensor([0.0] * 3)
    assert clamp(x, max=tensor(6.0), out=out) is out
    assert out.tolist() == [1.0, 5.0, 6.0]
    index = tensor([2], "int64")
    assert scatter(x, 0, index, 7).tolist() == [1.0, 5.0, 7.0]
    assert scatter(x, 0, index, tensor([8.0])).tolist() == [1.0, 5.0, 8.0]
    assert scatter(x, 0, index, 7, out=out).tolist() == [1.0, 5.0, 7.0]


@pytest.mark.parametrize(
    ("bounds", "name", "found"),
    [
        ((-5, None), "min", "-5"),
        ((None, 300), "max", "300"),
        ((0, 300), "max", "300"),
        ((tensor([1, 1], dtype="uint8"), 300), "max", "300"),
    ],
)
def test_a_number_as_a_bound_is_never_another(
    bounds: Any, name: str, found: str
) -> None:
    x = tensor([200, 3], dtype="uint8")
    for run in (clamp, clamp_):
        with pytest.raises(WrongOption, check=code("WrongOption")) as caught:
            run(x, *bounds)
        assert (caught.value.argument, caught.value.found) == (name, found)
    assert x.tolist() == [200, 3]
    assert shown(clamp(x, -5.0, 300.0)) == ("float32", [200.0, 3.0])
    assert clamp(x, tensor(4, dtype="uint8"), True).tolist() == [1, 1]
    half = tensor([1.0, -2.0], dtype="float16")
    assert shown(clamp(half, 0, 1e6)) == ("float16", [1.0, 0.0])


def test_a_bound_that_is_a_tensor_is_converted() -> None:
    x = tensor([100, 50], dtype="int8")
    assert shown(clamp(x, max=tensor(300, "int64"))) == ("int8", [44, 44])


def test_several_results_have_names() -> None:
    found = sort(tensor([3.0, 1.0]))
    assert type(found) is Ordered
    assert (found.values.tolist(), found.indices.tolist()) == ([1.0, 3.0], [1, 0])
    line = tensor([1.0, 2.0, 3.0])
    assert [part.tolist() for part in split(line, 2)] == [[1.0, 2.0], [3.0]]
    assert [part.tolist() for part in split(line, [1, 2])] == [[1.0], [2.0, 3.0]]


@pytest.mark.parametrize("name", functions.OPERATORS)
def test_every_function_has_a_signature_and_a_sentence(name: str) -> None:
    function = getattr(runtime, name)
    sentence, schema = function.__doc__.split("\n\n")
    assert sentence == public()[name].says
    assert schema.startswith(f"Schema: `core::{name}(")
    assert len(inspect.signature(function).parameters) > 0


def test_a_signature_is_the_schemas() -> None:
    assert str(inspect.signature(runtime.avg_pool2d)) == (
        "(self: 'Tensor', kernel_size: 'int[]', stride: 'int[]' = (), "
        "padding: 'int[]' = (0, 0), ceil_mode: 'bool' = False, "
        "count_include_pad: 'bool' = True, divisor_override: 'int?' = None) -> 'Tensor'"
    )
    assert str(inspect.signature(runtime.sum)) == (
        "(self: 'Tensor', dim: 'int[]?' = None, keepdim: 'bool' = False, *, "
        "dtype: 'ScalarType?' = None) -> 'Tensor'"
    )


def test_every_method_has_a_sentence() -> None:
    names = [name for name, each in public().items() if each.method]
    assert len(names) > 150
    texts = [METHODS[name].__doc__ or "" for name in names]
    assert [text for text in texts if "." not in text.partition("\n")[0]] == []
    assert (METHODS["add_"].__doc__ or "").startswith(
        "Return the sum of both sides, the right one times `alpha`, in place."
    )


def test_every_sentence_is_one() -> None:
    said = [each.says for each in public().values()]
    assert [text for text in said if not text.endswith(".") or len(text) > 80] == []


UnknownArgument = coded(CallError, "UnknownArgument")

# What is asked beside the tensor, where something is.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "arange": (3,),
    "empty": (2,),
    "eye": (2,),
    "full": ((2,), 1.0),
    "get_default_dtype": (),
    "logspace": (0.0, 1.0, 3),
    "linspace": (0.0, 1.0, 3),
    "ones": (2,),
    "rand": (2,),
    "randint": (3, (2,)),
    "randn": (2,),
    "randperm": (3,),
    "tensor": (1,),
    "as_tensor": (1,),
    "zeros": (2,),
}
MORE: dict[str, tuple[Any, ...]] = {
    "_make_subclass": (Tensor, tensor([1.0])),
    "_make_wrapper_subclass": (Tensor, (2,)),
    "as_subclass": (Tensor,),
    "chunk": (2,),
    "clamp": (0, 1),
    "clamp_": (0, 1),
    "full_like": (1.0,),
    "narrow": (0, 0, 1),
    "new_full": ((2,), 1.0),
    "register_hook": (print,),
    "register_post_accumulate_grad_hook": (print,),
    "einsum": (),
    "lerp": (tensor([1.0, 2.0]), 0.5),
    "repeat_interleave": (2,),
    "searchsorted": (1.0,),
    "scatter": (0, tensor([[0]], "int64"), 1.0),
    "scatter_": (0, tensor([[0]], "int64"), 1.0),
    "set_": (tensor([1.0]),),
    "split": (1,),
    "topk": (1,),
}


def matrix() -> Tensor:
    return tensor([[1.0, 2.0], [3.0, 5.0]])


def function_cases() -> Iterator[Any]:
    for name in (*FUNCTIONS, "tensor", "as_tensor"):
        given = ARGUMENTS.get(name, (matrix(), *MORE.get(name, ())))
        yield pytest.param(getattr(runtime, name), given, id=name)


def method_cases() -> Iterator[Any]:
    """What is installed on tensors; Python's operators are called by Python."""
    for name, method in METHODS.items():
        if not isinstance(method, property) and not name.startswith("__"):
            static = isinstance(Tensor.__dict__[name], staticmethod)
            given = (matrix(), *MORE.get(name, ()))
            function = getattr(Tensor, name)
            yield pytest.param(function, given[static:], id=f".{name}")


def takes_only_itself(function: Callable[..., Any]) -> bool:
    """Of one operand alone: Python refuses all else, and nothing can be dropped."""
    own = inspect.unwrap(function)
    code = own.__code__
    many = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    return own is function and not code.co_flags & many


@pytest.mark.parametrize(("function", "given"), [*function_cases(), *method_cases()])
@pytest.mark.parametrize("value", [1, None, "add"])
def test_an_unknown_keyword_is_refused(
    function: Callable[..., Any], given: tuple[Any, ...], value: Any
) -> None:
    expected = TypeError if takes_only_itself(function) else UnknownArgument
    with pytest.raises(expected) as caught:
        function(*given, bogus=value)
    assert "bogus" in str(caught.value)


def test_written_functions_say_what_is_wrong() -> None:
    x = matrix()
    index = tensor([[0]], "int64")
    with pytest.raises(UnknownArgument) as caught:
        x.scatter(0, index, 1.0, reducing="add")
    assert str(caught.value) == (
        "`scatter` has no argument `reducing`.\n"
        "  call:   scatter(<Tensor>, 0, <Tensor>, 1.0, reducing='add')\n"
        "  schema: scatter(self, dim, index, src, *, reduce=None, out=None)\n"
        "  near:   reduce"
    )
    assert x.tolist() == matrix().tolist()
    with pytest.raises(UnknownArgument):
        x.scatter_(0, index, 1.0, reducing="add")
    assert x.tolist() == matrix().tolist()
    with pytest.raises(CallError, check=code("TooManyArguments")):
        x.chunk(2, 0, 1)
    with pytest.raises(CallError, check=code("DuplicateArgument")):
        x.chunk(2, 0, dim=1)
    with pytest.raises(CallError):
        x.chunk(2, dim=0, axis=1)
    with pytest.raises(CallError):
        runtime.unbind(x, 0, axis=1)


def test_options_that_are_not_given_are_those_that_there_are() -> None:
    assert runtime.zeros(2, dtype=None, device=None).dtype.name == "float32"
    assert runtime.rand(2, generator=None).shape == (2,)
    with pytest.raises(UnknownArgument):
        runtime.zeros(2, generator=None)


ARRAY = np.array([3.0, 2.0, 1.0], np.float32)


def base() -> Tensor:
    return runtime.tensor([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x + n", [4.0, 4.0, 4.0]),
        ("n + x", [4.0, 4.0, 4.0]),
        ("n - x", [2.0, 0.0, -2.0]),
        ("x - n", [-2.0, 0.0, 2.0]),
        ("n ** x", [3.0, 4.0, 1.0]),
        ("x == n", [False, True, False]),
        ("n == x", [False, True, False]),
        ("n < x", [False, False, True]),
        ("x @ n", 10.0),
        ("n @ x", 10.0),
        ("x.add(n)", [4.0, 4.0, 4.0]),
        ("x.add(n, alpha=2)", [7.0, 6.0, 5.0]),
        ("x.add_(n)", [4.0, 4.0, 4.0]),
        ("x.copy_(n)", [3.0, 2.0, 1.0]),
        ("R.maximum(x, n)", [3.0, 2.0, 3.0]),
        ("R.exp(n * 0)", [1.0, 1.0, 1.0]),
        ("R.cat([x, n])", [1.0, 2.0, 3.0, 3.0, 2.0, 1.0]),
        ("x + n[::-1]", [2.0, 4.0, 6.0]),
        ("x.add(np.float32(2))", [3.0, 4.0, 5.0]),
        ("np.float64(2) * x", [2.0, 4.0, 6.0]),
        ("x * np.array(2.0)", [2.0, 4.0, 6.0]),
        ("np.sum(x)", 6.0),
        ("np.mean(x)", 2.0),
        ("np.max(x)", 3.0),
        ("np.argmax(x)", 2),
        ("np.std(x, ddof=1)", 1.0),
        ("np.cumsum(x, axis=0)", [1.0, 3.0, 6.0]),
        ("x.sum(axis=0, keepdims=True)", [6.0]),
        ("R.sum(x, axis=-1)", 6.0),
        ("R.cat([x, x], axis=0).sum()", 12.0),
        ("x.softmax(axis=0).argmax(axis=0)", 2),
        ("R.sort(x, axis=0, descending=True).values", [3.0, 2.0, 1.0]),
        ("x.topk(1, axis=0).indices", [2]),
        ("x.unsqueeze(axis=0).squeeze(axis=0)", [1.0, 2.0, 3.0]),
        ("x.flip(axis=0)", [3.0, 2.0, 1.0]),
        ("R.split(x, 2, axis=0)[1]", [3.0]),
        ("x.chunk(3, axis=0)[0]", [1.0]),
    ],
)
def test_what_becomes_of_numpys_words(text: str, expected: Any) -> None:
    found = eval(text, {"R": runtime, "np": np, "x": base(), "n": ARRAY})
    assert isinstance(found, Tensor)
    assert found.dtype in (DType.named(n) for n in ("float32", "bool", "int64"))
    assert found.tolist() == expected


def test_an_operand_shares_nothing_that_is_written_to() -> None:
    array = ARRAY.copy()
    out = base()
    out += array
    array[:] = 0
    assert out.tolist() == [4.0, 4.0, 4.0]


def test_an_array_as_out_is_written_to() -> None:
    array = np.zeros(3, np.float32)
    runtime.add(base(), 1, out=array)
    assert array.tolist() == [2.0, 3.0, 4.0]
    array.flags.writeable = False
    with pytest.raises(NotShareable, check=code("NotShareable")):
        runtime.add(base(), 1, out=array)


def test_arrays_of_tensors_remain_arrays() -> None:
    assert type(np.asarray(base())) is np.ndarray
    assert np.add(base().numpy(), 1).tolist() == [2.0, 3.0, 4.0]
    with pytest.raises(TypeError):
        np.add(base(), 1)


@pytest.mark.parametrize("other", [[1, 1, 1], (1, 1, 1)])
def test_comparing_with_a_list_is_refused(other: Any) -> None:
    with pytest.raises(UnfitValue) as caught:
        base() == other  # noqa: B015  # raises
    kind = type(other).__name__
    assert message_of(caught.value) == (
        f"`Tensor.__eq__` takes a tensor, a number or an array, but was given a {kind}."
        " to do: runtime.tensor(...) of it, or `.tolist()` of the tensor"
    )
    with pytest.raises(TypeError):
        base() + other


@pytest.mark.parametrize(
    ("written", "name"),
    [
        (DType.named("float16"), "float16"),
        ("double", "float64"),
        (np.dtype("int8"), "int8"),
        (np.dtype(">i4"), "int32"),
        (np.float32, "float32"),
        (np.bool_, "bool"),
        (float, "float64"),
        (int, "int64"),
        (bool, "bool"),
        (complex, "complex128"),
    ],
)
def test_a_dtype_in_every_way_to_write_it(written: Any, name: str) -> None:
    wanted = DType.named(name)
    assert runtime.tensor([1], dtype=written).dtype is wanted
    assert runtime.as_tensor([1], dtype=written).dtype is wanted
    assert runtime.zeros(2, dtype=written).dtype is wanted
    assert base().to(written).dtype is wanted
    assert base().to(dtype=written).dtype is wanted
    assert runtime.zeros_like(base(), dtype=written).dtype is wanted
    assert base().sum(0, dtype=written).dtype is wanted


@pytest.mark.parametrize(
    ("written", "shown"), [(str, "str"), (3.5, "3.5"), (np.uint16, "uint16")]
)
def test_what_is_no_dtype(written: Any, shown: str) -> None:
    for run in (
        lambda: runtime.tensor([1], dtype=written),
        lambda: runtime.zeros(1, dtype=written),
        lambda: base().sum(dtype=written),
    ):
        with pytest.raises(UnfitValue, check=code("UnsupportedData")) as caught:
            run()  # type: ignore[no-untyped-call]  # lambdas of several kinds
        assert caught.value.dtype == shown


def test_to_names_what_is_near() -> None:
    with pytest.raises(UnfitValue) as caught:
        base().to("flaot32")
    assert caught.value.near == ("float32", "float", "cfloat")
    with pytest.raises(UnfitValue) as gpu:
        base().to("gpu")
    assert message_of(gpu.value) == (
        "`Tensor.to` takes a device, a dtype or a tensor, but was given 'gpu', which is"
        " neither. near: cuda"
    )
    assert base().to("meta").is_meta


def test_an_unknown_device_lists_the_known_ones() -> None:
    for run in (runtime.zeros, runtime.rand):
        with pytest.raises(UnknownDevice) as caught:
            run(3, device="gpu")
        assert {"cpu", "cuda", "meta"} <= {*caught.value.known}


def test_what_no_other_word_fits_is_refused_as_it_was() -> None:
    with pytest.raises(CallError, check=code("UnknownArgument")) as unknown:
        base().sum(axes=0)
    assert unknown.value.argument == "axes"
    with pytest.raises(CallError, check=code("WrongArgumentType")):
        base().add("a")
    with pytest.raises(CallError, check=code("UnknownArgument")):
        base().sum(dim=0, axis=0)


def test_views_are_not_larger_than_can_be_counted() -> None:
    with pytest.raises(ValueError, match="at most 9223372036854775807"):
        base().as_strided((2**40, 2**40), (0, 0))
