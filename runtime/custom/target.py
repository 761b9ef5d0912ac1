"""Targets: the operator that a free function is given, in any of its forms.

True only here: what stands for an operator: its name as text, on the default
dispatcher; a handle; a packet of one overload; what `custom_op` returned.
"""

from typing import Any

from runtime.custom.decorator import qualified
from runtime.custom.definition import CustomOpDef
from runtime.custom.live import live
from runtime.dispatch.dispatcher import Dispatcher, default_dispatcher
from runtime.dispatch.handle import OperatorHandle, OperatorPacket
from runtime.dispatch.library import Library
from runtime.errors.custom_op import NotAnOperator, OverloadNeeded
from runtime.schema.excerpt import described
from runtime.schema.names import OperatorName
from runtime.schema.schema import Schema

# What stands for an operator.
Operator = str | OperatorHandle | OperatorPacket | CustomOpDef[..., Any]


def handle_of(call: str, op: Operator) -> OperatorHandle:
    """The handle of an operator, whether anything is registered for it or not.

    Raises:
        NotQualified, SchemaSyntaxError: the text is no name with a namespace.
        OverloadNeeded: a packet of several overloads.
        NotAnOperator: nothing of the above.
    """
    if isinstance(op, CustomOpDef):
        return op.handle
    if isinstance(op, OperatorHandle):
        return op
    if isinstance(op, str):
        return OperatorHandle(default_dispatcher(), qualified(op))
    if isinstance(op, OperatorPacket):
        return _only(call, op)
    raise NotAnOperator(call=call, found=described(op), library=isinstance(op, Library))


def dispatcher_of(handle: OperatorHandle) -> Dispatcher:
    """The dispatcher of a handle."""
    found: Any = handle.dispatcher
    dispatcher: Dispatcher = found
    return dispatcher


def schema_known(handle: OperatorHandle) -> Schema:
    """The schema of an operator.  Raises `SchemaNotFound`, which names near ones."""
    return dispatcher_of(handle).find_schema_or_raise(str(handle.name))


def custom_of(handle: OperatorHandle) -> CustomOpDef[..., Any] | None:
    """The live custom operator behind a handle, None if it is of another kind."""
    found = live(dispatcher_of(handle), str(handle.name))
    return found if isinstance(found, CustomOpDef) else None


def _only(call: str, packet: OperatorPacket) -> OperatorHandle:
    overloads = packet.overloads()
    if len(overloads) != 1:
        raise OverloadNeeded(call=call, operator=packet._name.name, overloads=overloads)
    wanted = "" if overloads[0] == "default" else overloads[0]
    return OperatorHandle(packet._dispatcher, OperatorName(packet._name.name, wanted))
