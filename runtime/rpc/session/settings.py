"""Settings: times, windows and limits of a session.

True only here: the figures, and what they have to do with each other.  Times are in
seconds.

Rules: `expire` is longer than `dead`, by more than clocks of two workers can run apart
meanwhile: a worker that hears nothing has given up what it holds of another one before
that one gives it away.  So all workers of a group have the same of `SHARED`: who would
join with others is refused, and told which.
"""

from dataclasses import dataclass

# The first two: see above.  What has more frames or references than are taken is no
# message.
SHARED = ("dead", "expire", "frames", "references")


@dataclass(frozen=True, slots=True)
class Settings:
    """What a session goes by; the defaults are those of workers."""

    # A sign of life is asked for when the last one is so old.
    heartbeat: float = 1.0
    # A worker gives a peer up so long after it sent the last thing that arrived.  What
    # is compiled may keep all threads of a process waiting for seconds, which is no
    # death; a process that ended is found out by its link (`Session.unreachable`).
    dead: float = 10.0
    # It releases what the peer held so long after it last heard of it.
    expire: float = 12.0
    # A channel that nobody answers is given up after this.
    connect: float = 10.0
    # What is not acknowledged by then is asked about; longer than `acknowledge`.
    probe: float = 0.2
    # What came is acknowledged after this, if nothing is sent meanwhile,
    acknowledge: float = 0.05
    # or after so many packets.
    acknowledge_each: int = 32
    # Packets, and their bytes, that are on their way to a peer at once.
    window: int = 256
    window_bytes: int = 64 << 20
    # Calls that wait for an answer of one peer; what is more waits here.
    calls: int = 4096
    # What is larger is sent in pieces: it may not keep signs of life from coming.
    packet: int = 96 << 20
    # What is larger than this is acknowledged at once, as others wait for its room.
    bulky: int = 1 << 20
    # The bytes of one call's or answer's payload that are taken here.
    largest: int = 1 << 30
    # The frames of a packet, and the references that it carries.
    frames: int = 8192
    references: int = 1024

    def shared(self) -> tuple[tuple[str, float], ...]:
        """What all workers of a group have the same, by name."""
        return tuple((name, float(getattr(self, name))) for name in SHARED)

    def __post_init__(self) -> None:
        times = (self.heartbeat, self.connect, self.acknowledge)
        assert min(times) > 0, "a time is positive"
        assert self.heartbeat < self.dead < self.expire, "see the rules above"
        assert self.acknowledge < self.probe, "an answer has the time to come"
        assert min(self.window, self.window_bytes, self.calls, self.packet) > 0, (
            "something fits"
        )
