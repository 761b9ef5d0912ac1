"""Classes of tensors: what a class must be before there are tensors of it.

True only here: which classes are refused, by whoever makes tensors of them or counts
them among its own.
"""

from inspect import getattr_static
from types import FunctionType

from runtime.errors.python_dispatch import (
    HandlerNotCallable,
    NotATensorClass,
    PlainHandler,
)
from runtime.python_dispatch.policies import ASKING
from runtime.schema.excerpt import described
from runtime.tensors.tensor import Tensor

# What kernels read of a tensor with elements: told something else, they would read
# and write beside them.
_READ = ("shape", "dtype", "device", "number", "key_bits")


def check_slots(cls: type, call: str) -> None:
    """Whether a class leaves alone what kernels read.  Raises `NotATensorClass`."""
    for name in _READ:
        # What a policy has put there asks the handler, and else Tensor.
        own = getattr_static(cls, name)
        if own is not getattr_static(Tensor, name) and own is not ASKING.get(name):
            raise NotATensorClass(
                call=call,
                argument="cls",
                expected=f"a class that leaves `{name}` to Tensor, as kernels read it,",
                found=f"the class {cls.__name__}, which has its own",
            )


def check_class(cls: type, call: str) -> None:
    """Whether tensors can be made of `cls`; `call` is what makes them.

    Raises:
        NotATensorClass: it is no subclass of Tensor.
        HandlerNotCallable: its handler is no function.
        PlainHandler: its handler is no classmethod.
    """
    if not isinstance(cls, type) or not issubclass(cls, Tensor) or cls is Tensor:
        is_class = isinstance(cls, type)
        raise NotATensorClass(
            call=call,
            argument="cls",
            expected="a subclass of Tensor",
            found=f"the class {cls.__name__}" if is_class else described(cls),
        )
    handler = cls.__torch_dispatch__
    if handler is not None and not callable(handler):
        raise HandlerNotCallable(
            handler=f"{cls.__qualname__}.__torch_dispatch__", found=described(handler)
        )
    # A classmethod is bound; what is not may still be a staticmethod.
    if type(handler) is FunctionType and isinstance(
        getattr_static(cls, "__torch_dispatch__"), FunctionType
    ):
        raise PlainHandler(handler=f"{cls.__qualname__}.__torch_dispatch__")
