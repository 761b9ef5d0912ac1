"""Custom operators: operators made of Python functions, and what is added to them."""

from runtime.custom.decorator import custom_op
from runtime.custom.definition import CustomOpDef
from runtime.custom.held_kernel import HeldKernel, get_kernel
from runtime.custom.inference import infer_schema
from runtime.custom.registering import (
    define,
    impl,
    register_autocast,
    register_autograd,
    register_fake,
    register_kernel,
    register_torch_dispatch,
)

__all__ = [
    "CustomOpDef",
    "HeldKernel",
    "custom_op",
    "define",
    "get_kernel",
    "impl",
    "infer_schema",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
]
