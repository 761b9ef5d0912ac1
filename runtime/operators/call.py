"""Calling the operators of the default dispatcher from code: `core.add(x, y)`.

True only here: the handles are looked up once.  A handle is a name and a dispatcher, so
that keeping one can never be stale: what is registered later is what runs.

Rule: `core.name` is the operator without overload, `core.name_overload` one with it:
`core.clamp_Tensor` is `core::clamp.Tensor`, `core.mul_out` is `core::mul.out`.
"""

from runtime.dispatch.dispatcher import default_dispatcher
from runtime.dispatch.handle import OperatorHandle
from runtime.errors.base import nearest
from runtime.errors.registration import UnknownOperator
from runtime.schema.names import OperatorName

# The namespace of the built-in operators.
NAMESPACE = "core"


class Core:
    """The operators of namespace `core` as attributes, each found once."""

    def __getattr__(self, name: str) -> OperatorHandle:
        """The handle of an operator.  Raises `UnknownOperator`."""
        if name.startswith("__"):
            raise AttributeError(name)
        handle = found(name)
        # From now on an ordinary attribute.
        setattr(self, name, handle)
        return handle


def found(name: str) -> OperatorHandle:
    """The handle of `name` or `name_overload`.  Raises `UnknownOperator`."""
    dispatcher = default_dispatcher()
    state = dispatcher.state
    full = f"{NAMESPACE}::{name}"
    if state.entry(OperatorName(full)) is not None:
        return OperatorHandle(dispatcher, OperatorName(full))
    at = len(full)
    # Names have underscores too: the longest name that has the rest as overload.
    while (at := full.rfind("_", 0, at)) > 0:
        candidate = OperatorName(full[:at], full[at + 1 :])
        if state.entry(candidate) is not None:
            return OperatorHandle(dispatcher, candidate)
    entries = state.namespaces.get(NAMESPACE, {}).values()
    known = sorted({entry.name.name for entry in entries})
    raise UnknownOperator(operator=full, near=nearest(full, known))


core = Core()
