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
class Unsendable(RpcError, TypeError):
    """A part of what was to be sent cannot be pickled: send something else instead.

    `path` leads to the part, as one would write it: `args[1]['x']`.
    """

    path: str
    found: str
    reason: str

    def render(self) -> str:
        """Where the part is, what it is, and why it stays here."""
        return page(
            f"`{self.path}`, {self.found}, cannot be sent: it cannot be pickled.",
            ("reason", self.reason),
            ("to do", "send what it is made of, or a reference to it"),
        )


@dataclass(eq=False, kw_only=True)
class Undecodable(RpcError, ValueError):
    """What arrived cannot be read; nothing was done with it."""

    found: str
    reason: str

    def render(self) -> str:
        """What arrived, and why it cannot be read."""
        return page(f"{self.found} cannot be read here.", ("reason", self.reason))


@dataclass(eq=False, kw_only=True)
class UnknownCallable(RpcError, LookupError):
    """A worker was asked for a `kind` of the name `name` that it does not have."""

    kind: str
    name: str
    near: tuple[str, ...] = ()
    reason: str = ""

    def render(self) -> str:
        """What was asked for, what is near, and how it gets there."""
        rows = [
            ("reason", self.reason),
            ("near", ", ".join(self.near)),
            ("to do", _BRINGING[self.kind]),
        ]
        head = f"A worker attempted to get undefined {self.kind} {self.name}."
        return page(head, *(row for row in rows if row[1]))


# How a callable of a kind gets to a worker.
_BRINGING = {
    "operator": "load what defines it there too, in the same version",
    "function": (
        "have the module there as well: the RPC pickler does not serialize the code "
        "of what a module defines"
    ),
    "name": (
        "have its module there as well, in the same version: the RPC pickler does not "
        "serialize the code of what a module defines"
    ),
    "registered function": "register it there, by `rpc.register`",
}


@dataclass(eq=False, kw_only=True)
class OnlyRegistered(RpcError):
    """A worker that takes registered functions only was sent something else."""

    found: str

    def render(self) -> str:
        """What was refused, and what is taken."""
        return page(
            f"{self.found} was refused: this worker takes registered functions only.",
            (
                "to do",
                "register the function there by `rpc.register`, and call it with "
                "numbers, texts, tensors and containers of these",
            ),
        )


@dataclass(eq=False, kw_only=True)
class RemoteError(RpcError):
    """An exception was raised where a call ran; this one stands for it here.

    Where the class of the exception is known here, the class of this one derives from
    it as well.  `remote_module` and `remote_type` name it, and `remote_text` is what it
    said; `remote_hops` are the workers that it passed, the nearest first: each with the
    frames that it passed there.
    """

    remote_module: str
    remote_type: str
    remote_text: str
    remote_hops: tuple[tuple[str, str], ...] = ()

    @property
    def remote_traceback(self) -> str:
        """The workers and their frames as text, the nearest first."""
        return "\n".join(f"On {who}:\n{frames}" for who, frames in self.remote_hops)

    def render(self) -> str:
        """The exception as it was said, then workers and frames; not wrapped."""
        return f"{self.remote_type}: {self.remote_text}\n{self.remote_traceback}"
