"""Remote calls in programs: their special forms, and references as values of them."""

from everyorder.runtime.rpc.program.plug_in import (
    PlugIns,
    Surface,
    plug_in,
    plug_in_workers,
)

__all__ = ["PlugIns", "Surface", "plug_in", "plug_in_workers"]
