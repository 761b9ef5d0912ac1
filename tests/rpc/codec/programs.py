"""Compiled functions that other processes can name, and a registered one."""

from everyorder import runtime
from everyorder.runtime.jit import script
from everyorder.runtime.rpc.codec import register


@script
def added(x: int, y: int = 2) -> int:
    return x + y


@script
def scaled(x: runtime.Tensor, by: float = 2.0) -> runtime.Tensor:
    return x * by


@register
def greeted(name: str) -> str:
    return f"hello {name}"
