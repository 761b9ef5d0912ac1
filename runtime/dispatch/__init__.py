"""The dispatcher: operators, their kernels by key, and the calls in between."""

from runtime.dispatch import builtin as _builtin  # noqa: F401  # installs itself
from runtime.dispatch.dispatcher import Dispatcher, default_dispatcher
from runtime.dispatch.entry import OperatorEntry
from runtime.dispatch.fingerprint import fingerprint
from runtime.dispatch.handle import OperatorHandle
from runtime.dispatch.kernel import (
    Kernel,
    boxed,
    direct,
    fallthrough,
    linked,
    named_not_supported,
)
from runtime.dispatch.library import Library
from runtime.dispatch.namespace import Operators
from runtime.dispatch.overriding import KernelOverridden
from runtime.dispatch.registration import Registration
from runtime.dispatch.state import DispatcherState

__all__ = [
    "Dispatcher",
    "DispatcherState",
    "Kernel",
    "KernelOverridden",
    "Library",
    "OperatorEntry",
    "OperatorHandle",
    "Operators",
    "Registration",
    "boxed",
    "default_dispatcher",
    "direct",
    "fallthrough",
    "fingerprint",
    "linked",
    "named_not_supported",
]
