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
from runtime.schema.excerpt import described
from runtime.tensors.tensor import Tensor


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
