"""Unknown arguments: no function and no method drops what it does not know."""

# What a type checker refuses is called here on purpose.
# mypy: disable-error-code="arg-type, call-arg, call-overload, misc"

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import runtime
from runtime.errors.call import CallError
from runtime.operators.functions import FUNCTIONS
from runtime.tensors.tensor import METHODS, Tensor
from tests.coded import code, coded
from tests.operators.made import tensor

UnknownArgument = coded(CallError, "UnknownArgument")

# What is asked beside the tensor, where something is.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "arange": (3,),
    "empty": (2,),
    "eye": (2,),
    "full": ((2,), 1.0),
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


def functions() -> Iterator[Any]:
    for name in (*FUNCTIONS, "tensor", "as_tensor"):
        given = ARGUMENTS.get(name, (matrix(), *MORE.get(name, ())))
        yield pytest.param(getattr(runtime, name), given, id=name)


def methods() -> Iterator[Any]:
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


@pytest.mark.parametrize(("function", "given"), [*functions(), *methods()])
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
