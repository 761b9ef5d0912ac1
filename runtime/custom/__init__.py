"""Custom operators: operators defined by Python functions, and their additional
kernels.
"""

from everyorder.runtime.custom.decorator import custom_op, infer_schema
from everyorder.runtime.custom.definition import CustomOpDef
from everyorder.runtime.custom.free_functions import (
    SavedKernel,
    define,
    get_kernel,
    impl,
    register_autocast,
    register_autograd,
    register_fake,
    register_kernel,
    register_torch_dispatch,
)
from everyorder.runtime.custom.kernel import FakeContext, get_ctx

__all__ = [
    "CustomOpDef",
    "FakeContext",
    "SavedKernel",
    "custom_op",
    "define",
    "get_ctx",
    "get_kernel",
    "impl",
    "infer_schema",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
]
