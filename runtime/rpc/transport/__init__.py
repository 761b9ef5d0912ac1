"""Transports: the transmission of packets between workers.

`LocalTransport` connects workers of this process and has no dependencies; for sockets
import `runtime.rpc.transport.sockets`, which needs pyzmq.
"""

from everyorder.runtime.rpc.transport.interface import (
    Link,
    LinkState,
    LocalTransport,
    Transport,
)

__all__ = ["Link", "LinkState", "LocalTransport", "Transport"]
