"""Handles of the built-in operators, for code that calls them: `core.add(x, y)`.

They are handles of the default dispatcher, each looked up once.  A handle consists of a
name and a dispatcher, so a cached one cannot be stale: a call runs the kernels that are
registered at that time.

Rule: `core.name` is the operator without overload, `core.name_overload` one with it:
`core.clamp_Tensor` is `core::clamp.Tensor`, `core.mul_out` is `core::mul.out`.
"""

from collections.abc import Callable
from typing import Any

from everyorder.runtime.dispatch.dispatcher import default_dispatcher
from everyorder.runtime.dispatch.handle import OperatorHandle
from everyorder.runtime.dispatch.namespace import candidates
from everyorder.runtime.dispatch.state import DispatcherState
from everyorder.runtime.dispatch.watch import WATCH
from everyorder.runtime.errors.base import nearest
from everyorder.runtime.errors.registration import LookupFailed
from everyorder.runtime.keys import LOCAL
from everyorder.runtime.schema.signature import OperatorName

# The namespace of the built-in operators.
NAMESPACE = "core"


class Core:
    """The operators of namespace `core` as attributes, each looked up once."""

    def __getattr__(self, name: str) -> OperatorHandle:
        """Return the handle of an operator.  Raises `LookupFailed`."""
        if name.startswith("__"):
            raise AttributeError(name)
        handle = handle_of(name)
        # From now on an ordinary attribute, which does not call this function.
        setattr(self, name, handle)
        return handle


def handle_of(name: str) -> OperatorHandle:
    """Return the handle of `name` or `name_overload`.  Raises `LookupFailed`."""
    handle = find_handle(name)
    if handle is None:
        entries = default_dispatcher().state.namespaces.get(NAMESPACE, {}).values()
        names = sorted({entry.name.name for entry in entries if entry.definitions})
        full = f"{NAMESPACE}::{name}"
        raise LookupFailed(
            code="UnknownOperator",
            operator=full,
            near=nearest(full, candidates(name, names)),
        )
    return handle


def find_handle(name: str) -> OperatorHandle | None:
    """Return the handle of `name` or `name_overload`, or None if neither exists."""
    dispatcher = default_dispatcher()
    state = dispatcher.state
    full = f"{NAMESPACE}::{name}"
    if is_defined(state, OperatorName(full)):
        return OperatorHandle(dispatcher, OperatorName(full))
    at = len(full)
    # Names contain underscores too: try the longest name whose rest is an overload.
    while (at := full.rfind("_", 0, at)) > 0:
        candidate = OperatorName(full[:at], full[at + 1 :])
        if is_defined(state, candidate):
            return OperatorHandle(dispatcher, candidate)
    return None


def is_defined(state: DispatcherState, name: OperatorName) -> bool:
    """Return True if the operator is defined; kernels alone do not define it."""
    entry = state.entry(name)
    return entry is not None and bool(entry.definitions)


core = Core()


def direct_call(name: str) -> Callable[..., Any]:
    """Return a function that calls an operator of one tensor without binding.

    For a kernel that passes its own arguments on: all of them are in the form that
    kernels receive, so that nothing is bound or converted again.  Like a call stub
    (`runtime.dispatch.call_stub`), the function stores nothing of an entry, and looks
    up the kernel that a call stub has put on the published one.  If that is missing, or
    calls are being watched, the call is an ordinary one.
    """
    # None until the first call: the operator may not be registered yet.
    handle: Any = None
    dispatcher: Any = None
    text, key = "", None

    def call(tensor: Any, *rest: Any) -> Any:
        try:
            entry = dispatcher.state.namespaces[NAMESPACE][text]
            bound = entry.memo[key][LOCAL.view][tensor.key_bits]
        except (AttributeError, KeyError):
            return ordinary(tensor, *rest)
        if WATCH.active:
            return handle(tensor, *rest)
        return bound(tensor, *rest)

    def ordinary(*values: Any) -> Any:
        nonlocal handle, dispatcher, text, key
        handle = getattr(core, name)
        result = handle(*values)
        callee = handle._callee
        dispatcher, text = callee.dispatcher, callee.text
        key = callee.keyring.key(callee.caller(callee.current_entry()).reading)
        return result

    return call
