"""Questions about `__torch_function__`, which this runtime does not have.

Functions of tensors are called directly, and handlers see operators
(`__torch_dispatch__`, `runtime.TorchDispatchMode`).  A class that defines the method is
warned of when it is created, and a mode of functions cannot be entered.

`runtime._C` is this module, too: there programs for torch find what disables that
protocol, which is to do nothing.
"""

from collections.abc import Iterable
from contextlib import nullcontext
from types import TracebackType
from typing import Any, NoReturn

from everyorder.runtime.errors.torch_dispatch import ModeStackError
from everyorder.runtime.tensors.tensor import Tensor, undirected

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "TorchFunctionMode",
    "_disabled_torch_function_impl",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
]


_disabled_torch_function_impl = undirected
DisableTorchFunction = nullcontext
DisableTorchFunctionSubclass = nullcontext


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Return False: a function of tensors is not handed to its arguments."""
    return False


def has_torch_function_unary(relevant_arg: Any) -> bool:
    """Return False, as `has_torch_function`."""
    return False


def has_torch_function_variadic(*relevant_args: Any) -> bool:
    """Return False, as `has_torch_function`."""
    return False


def is_tensor_like(inp: Any) -> bool:
    """Return True if the value is a tensor, or its class has `__torch_function__`."""
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


class TorchFunctionMode:
    """A mode of functions, which can be defined, but not entered."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Call the function."""
        return func(*args, **(kwargs or {}))

    def __enter__(self) -> NoReturn:
        """Refuse.  Raises `ModeStackError`."""
        raise ModeStackError(code="FunctionMode", stack=(), mode=type(self).__name__)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Do nothing: it was not entered."""
