"""Codec: values as payloads and back, callables by name, and remote errors."""

from everyorder.runtime.rpc.codec.callables import (
    Invocation,
    call_of,
    pack_call,
    pack_result,
    unpack_call,
)
from everyorder.runtime.rpc.codec.named_functions import (
    REGISTRY,
    FunctionRegistry,
    Registered,
    register,
    registered,
)
from everyorder.runtime.rpc.codec.payload import NO_REFERENCES, Packed, ReferenceCodec
from everyorder.runtime.rpc.codec.pickling import (
    current_pickler,
    pack,
    register_reducer,
    unpack,
    use_pickler,
)
from everyorder.runtime.rpc.codec.remote_errors import pack_error, unpack_error

__all__ = [
    "NO_REFERENCES",
    "REGISTRY",
    "FunctionRegistry",
    "Invocation",
    "Packed",
    "ReferenceCodec",
    "Registered",
    "call_of",
    "current_pickler",
    "pack",
    "pack_call",
    "pack_error",
    "pack_result",
    "register",
    "register_reducer",
    "registered",
    "unpack",
    "unpack_call",
    "unpack_error",
    "use_pickler",
]
