"""Remote calls, references and the life cycle of a worker, as users call them."""

from everyorder.runtime.rpc.api.gatherings import _all_gather, _barrier
from everyorder.runtime.rpc.api.remote_calls import (
    _thread_local_var,
    _wait_all,
    remote,
    rpc_async,
    rpc_sync,
)
from everyorder.runtime.rpc.api.rref import RRef

__all__ = [
    "RRef",
    "_all_gather",
    "_barrier",
    "_thread_local_var",
    "_wait_all",
    "remote",
    "rpc_async",
    "rpc_sync",
]
