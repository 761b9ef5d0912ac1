"""The dispatcher: operators, their kernels by key, and the path of a call."""

from everyorder.runtime.dispatch.dispatcher import Dispatcher, default_dispatcher
from everyorder.runtime.dispatch.handle import OperatorHandle
from everyorder.runtime.dispatch.kernel import (
    Kernel,
    boxed,
    direct,
    fallthrough,
    linked,
    named_not_supported,
)
from everyorder.runtime.dispatch.library import KernelOverridden, Library
from everyorder.runtime.dispatch.namespace import Operators
from everyorder.runtime.dispatch.registration import Registration
from everyorder.runtime.dispatch.state import (
    DispatcherState,
    OperatorEntry,
    fingerprint,
)

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
