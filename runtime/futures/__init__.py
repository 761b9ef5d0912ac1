"""Futures and awaits: values that are available later, or computed on first use.

Another thread completes a `Future`; an `Await` computes its value on the thread that
first waits for it.  The names are those of `torch.futures`, and of `torch.jit` for
awaits, the underscored ones too.  Both are independent of messages, sockets and
tensors.
"""

from everyorder.runtime.futures.awaits import (
    Await,
    awaitable,
    awaitable_nowait,
    awaitable_wait,
)
from everyorder.runtime.futures.future import (
    Future,
    call_end_callbacks,
    collect_all,
    from_asyncio,
    from_concurrent,
    to_asyncio,
    to_concurrent,
    wait_all,
)

__all__ = [
    "Await",
    "Future",
    "awaitable",
    "awaitable_nowait",
    "awaitable_wait",
    "call_end_callbacks",
    "collect_all",
    "from_asyncio",
    "from_concurrent",
    "to_asyncio",
    "to_concurrent",
    "wait_all",
]

# torch's names for them.
_Await = Await
_awaitable = awaitable
_awaitable_nowait = awaitable_nowait
_awaitable_wait = awaitable_wait
