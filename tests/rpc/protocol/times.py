"""The times of sessions in tests: where the clock is one's own, nobody is patient."""

from everyorder.runtime.rpc.protocol.events import Settings

TIMES = Settings(heartbeat=0.5, dead=1.5, expire=2.0, connect=5.0)
