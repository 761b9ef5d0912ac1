"""The remote calls that programs see, as one value for all parts of the plug-in."""

from collections.abc import Callable
from typing import Any, NamedTuple

# The timeout of a call without one, as torch defines it.
UNSET = -1.0


class Surface(NamedTuple):
    """The remote calls that programs see.

    The first three are the Python functions that a program uses for a call, the next
    three accept the name of a function in its place.  `rref` is the class of
    references, `type_of` returns the type of a reference's value as a string ("" if it
    is unknown). `call(mode, to, name, args, kwargs, timeout, type)` makes a call: it
    returns a future if `mode` is "async", the value if it is "sync", and a reference if
    it is "remote".
    """

    rpc_async: Any
    rpc_sync: Any
    remote: Any
    async_by_name: Any
    sync_by_name: Any
    remote_by_name: Any
    rref: type
    type_of: Callable[[Any], str]
    call: Callable[[str, Any, str, tuple[Any, ...], dict[str, Any], float, str], Any]
