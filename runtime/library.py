"""Custom operators under the names of torch.library.

Each name is documented at its definition.  `opcheck` is loaded on first access.
"""

from typing import TYPE_CHECKING, Any

from everyorder.runtime.base.locks import load
from everyorder.runtime.custom import (
    CustomOpDef,
    custom_op,
    define,
    get_ctx,
    get_kernel,
    impl,
    infer_schema,
    register_autocast,
    register_autograd,
    register_fake,
    register_kernel,
    register_torch_dispatch,
)
from everyorder.runtime.custom.definition import missing
from everyorder.runtime.dispatch.kernel import fallthrough
from everyorder.runtime.dispatch.library import Library

if TYPE_CHECKING:
    from everyorder.runtime.custom.opcheck import opcheck

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "fallthrough",
    "fallthrough_kernel",
    "get_ctx",
    "get_kernel",
    "impl",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
]

# The name in programs for torch.
fallthrough_kernel = fallthrough
# A library is its own scope.
_scoped_library = Library


def __getattr__(name: str) -> Any:
    """Load `opcheck`, which is an ordinary name from then on."""
    if name != "opcheck":
        raise missing(f"module {__name__!r}", name)
    opcheck = load("everyorder.runtime.custom.opcheck").opcheck
    globals()[name] = opcheck
    return opcheck


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
