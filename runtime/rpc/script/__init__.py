"""Remote calls in programs: their special forms, and references as values."""

from everyorder.runtime.rpc.script.plug_in import PlugIns, plug_in, plug_in_workers
from everyorder.runtime.rpc.script.surface import Surface

__all__ = ["PlugIns", "Surface", "plug_in", "plug_in_workers"]
