"""Compiled functions that workers run for one another in these tests."""

from everyorder import runtime
from everyorder.runtime import jit, rpc
from everyorder.runtime.futures import Future


@jit.script
def doubled_plus(x: runtime.Tensor, y: int = 2) -> runtime.Tensor:
    return x * 2 + y


@jit.script
def pair(x: int, y: str) -> tuple[int, str]:
    return x, y


@jit.script
def failing(x: int) -> int:
    if x > 0:
        raise ValueError("Expected error")
    return x


def _one(x: runtime.Tensor) -> runtime.Tensor:
    return x + 1


@rpc.functions.async_execution
@jit.script
def later(x: runtime.Tensor) -> Future[runtime.Tensor]:
    return jit.fork(_one, x)


@rpc.functions.async_execution
@jit.script
def not_later(x: runtime.Tensor) -> runtime.Tensor:
    return x
