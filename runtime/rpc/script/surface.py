"""The remote calls that programs see, as one value for all parts of the plug-in."""

from collections.abc import Callable
from typing import Any, NamedTuple

# The timeout of a call without one, as programs for torch write it.
UNSET = -1.0


class Surface(NamedTuple):
    """What programs see of remote calls.

    The first three are the functions of Python whose names mean a call, the next three
    those that take the name of a function in its place.  `rref` is the class of
    references, `type_of` gives the type of the value of one as a text ("" is unknown).
    `call(mode, to, name, args, kwargs, timeout, type)` makes a call: it gives a future
    where `mode` is "async", the value where it is "sync", and a reference where it is
    "remote".
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
