"""Transports: packets from worker to worker, by whatever they travel.

`LocalTransport` stays in this process and needs nothing else; whoever wants sockets
imports `runtime.rpc.transport.sockets`, which needs pyzmq.
"""

from everyorder.runtime.rpc.transport.interface import (
    Link,
    LinkState,
    LocalTransport,
    Transport,
)

__all__ = ["Link", "LinkState", "LocalTransport", "Transport"]
