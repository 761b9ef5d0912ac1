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
class NotTheOwner(RpcError):
    """`call` was asked of a reference whose value lies on another worker.

    `reference` is its text, `owner` the worker that has the value.
    """

    call: str
    reference: str
    worker: str
    owner: str

    def render(self) -> str:
        """Who was asked for which value, and who has it."""
        return page(
            f"Worker `{self.worker}` cannot `{self.call}()`: the value lies on "
            f"`{self.owner}`.",
            ("reference", self.reference),
            ("to do", f"call it on `{self.owner}`, or `to_here()` for a copy"),
        )


@dataclass(eq=False, kw_only=True)
class ReferenceDead(RpcError):
    """A reference is worth nothing: its value was never made, or is out of reach.

    `reason` says why.
    """

    call: str
    reference: str
    reason: str

    def render(self) -> str:
        """What was asked of which reference, and what became of it."""
        return page(
            f"`{self.call}` was asked of a dead reference: {self.reason}.",
            ("reference", self.reference),
        )


@dataclass(eq=False, kw_only=True)
class ReferenceNotSent(RpcError, TypeError):
    """A reference was to be `asked` (pickled, copied) outside of a remote call."""

    asked: str

    def render(self) -> str:
        """What was asked, and how references travel."""
        return page(
            f"An RRef cannot be {self.asked}: references travel inside of remote "
            "calls only, where their owners are told.",
            ("to do", "pass it in the arguments or the result of a remote call"),
        )


@dataclass(eq=False, kw_only=True)
class NoSuchMethod(RpcError, AttributeError):
    """A proxy was asked for a method that the class of the value lacks."""

    kind: str
    attribute: str

    def render(self) -> str:
        """The class and the name."""
        return page(
            f"type object `{self.kind}` has no attribute `{self.attribute}`.",
            ("to know", "proxies reach what the class has, not what objects set"),
        )


@dataclass(eq=False, kw_only=True)
class ExtraMissing(RpcError, ImportError):
    """Remote calls between processes need what the extra `rpc` installs."""

    call: str
    package: str

    def render(self) -> str:
        """What is missing, and how it is installed."""
        return page(
            f"`{self.call}` needs the package `{self.package}`, which is not "
            "installed.",
            ("to do", "pip install 'everyorder[rpc]'"),
        )


@dataclass(eq=False, kw_only=True)
class GatherTimeout(RpcError, TimeoutError):
    """Not all workers came to `call` in time; `missing` did not."""

    call: str
    missing: tuple[str, ...]
    seconds: float

    def render(self) -> str:
        """Who is missing, and how long was waited."""
        return page(
            f"`{self.call}` timed out after {self.seconds:.2f} seconds.",
            ("missing", ", ".join(self.missing) or "the answer of the first worker"),
        )
