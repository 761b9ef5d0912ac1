"""Remote calls in programs: their special forms, and references as values of them."""

from runtime.rpc.program.plug_in import Plugged, plug_in, plug_in_workers
from runtime.rpc.program.surface import Surface

__all__ = ["Plugged", "Surface", "plug_in", "plug_in_workers"]
