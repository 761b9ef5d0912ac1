"""Errors of remote calls: workers, calls, references, what was sent, who may send it.

Who must act: whoever starts workers, calls them, or keeps references; all are
`RpcError`, one class for each thing that one can do about it.

Rules: every one is a RuntimeError, as programs for `torch.distributed.rpc` expect; an
error names the worker, the call as written, what was found and what to do; nothing of a
value that travelled is kept.
"""

from dataclasses import dataclass

from runtime.errors.base import EveryorderError
from runtime.errors.call import page


@dataclass(eq=False, kw_only=True)
class RpcError(EveryorderError, RuntimeError):
    """Base of the errors of remote calls."""


@dataclass(eq=False, kw_only=True)
class RpcMisuse(RpcError, TypeError, ValueError):
    """`call` was given what it cannot take; `wanted` says what it takes."""

    call: str
    found: str
    wanted: str

    def render(self) -> str:
        """The call, what was found, and what belongs there."""
        return page(f"`{self.call}` was given {self.found}.", ("it takes", self.wanted))


@dataclass(eq=False, kw_only=True)
class NotInitialized(RpcError):
    """`call` needs a worker, and this process has none, or none any more."""

    call: str

    def render(self) -> str:
        """What was called, and what comes before it."""
        return page(
            f"`{self.call}` needs a worker, and RPC has not been initialized here.",
            (
                "to do",
                "call `init_rpc(name, ...)` first; after `shutdown()`, once more",
            ),
        )


@dataclass(eq=False, kw_only=True)
class AlreadyInitialized(RpcError):
    """`init_rpc` was called where a worker is; the worker stays as it is."""

    name: str

    def render(self) -> str:
        """Who is there, and what to do."""
        return page(
            f"RPC is already initialized: this process is the worker `{self.name}`.",
            ("to do", "call `shutdown()` first"),
        )


@dataclass(eq=False, kw_only=True)
class UnknownWorker(RpcError):
    """A worker was named that is no member; `near` are names that are."""

    worker: str
    found: str
    near: tuple[str, ...] = ()

    def render(self) -> str:
        """Who was asked for, by whom, and who is near."""
        return page(
            f"Worker `{self.worker}` could not find destination {self.found}.",
            *((("near", ", ".join(self.near)),) if self.near else ()),
        )


@dataclass(eq=False, kw_only=True)
class RpcTimeout(RpcError, TimeoutError):
    """No answer came in time; the other worker may still be at it.

    `milliseconds` is the time that the call had.
    """

    call: str
    worker: str
    milliseconds: int

    def render(self) -> str:
        """What was called, where, and how long it was waited for."""
        return page(
            f"RPC ran for more than set timeout ({self.milliseconds} ms): {self.call} "
            f"on `{self.worker}`.",
            ("to do", "give a longer `timeout`; 0 is for ever"),
        )


@dataclass(eq=False, kw_only=True)
class WorkerLost(RpcError, ConnectionError):
    """The other worker ended, was cut off, or was started anew; `reason` says which.

    What was asked of it may have been done, in part or whole.
    """

    call: str
    worker: str
    reason: str

    def render(self) -> str:
        """What was asked of whom, and what became of it."""
        return page(f"{self.call} on `{self.worker}` has no answer: {self.reason}.")


@dataclass(eq=False, kw_only=True)
class UnfitArguments(RpcError, TypeError):
    """A program calls `function` with arguments that it does not take.

    Nothing was sent.  `fault` is what is wrong, with `argument` if it is one of them.
    """

    function: str
    argument: str
    fault: str
    schema: str

    def render(self) -> str:
        """What is wrong, and what the function takes."""
        return page(f"{self.fault}.", ("it takes", self.schema))
