"""Transports: the transmission of packets between workers.

`LocalTransport` connects workers of this process and has no dependencies; for sockets
import `runtime.rpc.transport.sockets`, which needs pyzmq.
"""

# ruff: noqa: E402  # first of all, an error that names the extra
from everyorder.runtime.base.extras import require_packages

require_packages()

from everyorder.runtime.rpc.transport.interface import (
    Link,
    LinkState,
    LocalTransport,
    Transport,
)

__all__ = ["Link", "LinkState", "LocalTransport", "Transport"]
