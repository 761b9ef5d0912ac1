"""Functions that workers may call by name, under the module name that torch uses."""

from everyorder.runtime.rpc.codec.named_functions import (
    Registered,
    async_execution,
    register,
    registered,
)

__all__ = ["Registered", "async_execution", "register", "registered"]
