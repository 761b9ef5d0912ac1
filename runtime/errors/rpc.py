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
    """`call` needs a worker, and this process has none, or none any more.

    `parent` is the worker of the process that this one was forked from.
    """

    call: str
    parent: str = ""

    def render(self) -> str:
        """What was called, and what comes before it."""
        if self.parent:
            return page(
                f"`{self.call}` needs a worker, and RPC has not been initialized here: "
                f"this process was forked, and the worker `{self.parent}` is its "
                "parent's.",
                (
                    "to do",
                    "call in the parent, or `init_rpc` here, by a name of its own",
                ),
            )
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


@dataclass(eq=False, kw_only=True)
class NotUnique(RpcError):
    """Another member has the name, or the number, of a worker that wants to join."""

    name: str
    why: str

    def render(self) -> str:
        """Which worker, what is taken, and what to do."""
        return page(
            f"RPC worker name {self.name} is not unique, or its id is not: {self.why}.",
            ("to do", "give each worker a name, and a rank, of its own"),
        )


@dataclass(eq=False, kw_only=True)
class NotAdmitted(RpcError):
    """The group does not take a worker; `why` says what does not fit."""

    name: str
    address: str
    why: str

    def render(self) -> str:
        """Which worker, where, and why not."""
        return page(
            f"Worker `{self.name}` was not admitted at `{self.address}`: {self.why}.",
            (
                "to know",
                "a group shares its size, times, limits and keys: copies of one "
                "folder, or the `public.key` of each other in `allowed`",
            ),
        )


@dataclass(eq=False, kw_only=True)
class JoinTimeout(RpcError, TimeoutError):
    """A worker was no member in time, or its group not complete; `missing` says who."""

    name: str
    address: str
    seconds: float
    missing: tuple[str, ...]

    def render(self) -> str:
        """Which worker, where, how long, and who was missing."""
        return page(
            f"Worker `{self.name}` did not get into a complete group at "
            f"`{self.address}` within {self.seconds:g} s.",
            ("missing", ", ".join(self.missing) or "nobody"),
            ("to do", "start those, at the same address; or give more `join_timeout`"),
        )


@dataclass(eq=False, kw_only=True)
class ShutdownTimeout(RpcError, TimeoutError):
    """Not all workers were done in time; this one has stopped all the same.

    `missing` are those who had not called `shutdown`, or whose calls were not over.
    """

    name: str
    seconds: float
    missing: tuple[str, ...]

    def render(self) -> str:
        """Which worker, how long, and who was missing."""
        return page(
            f"Worker `{self.name}` has stopped after {self.seconds:g} s, and not all "
            "others were done.",
            ("missing", ", ".join(self.missing) or "nobody: calls were in flight"),
            ("to do", "call `shutdown` on those too; or give more `timeout`"),
        )


@dataclass(eq=False, kw_only=True)
class ReferencesLeaked(RpcError):
    """Values of this worker were still referred to when it stopped.

    `lines` names a value and a reference each.
    """

    name: str
    lines: tuple[str, ...]

    def render(self) -> str:
        """Which worker, and which references; a line for each."""
        head = f"Worker `{self.name}` has stopped while others referred to its values."
        return "\n".join((head, *self.lines))


@dataclass(eq=False, kw_only=True)
class PayloadTooLarge(RpcError):
    """A request, or its answer, has more bytes than the other worker takes."""

    call: str
    worker: str
    detail: str = ""

    def render(self) -> str:
        """What was called where, and what to do."""
        sizes = f" ({self.detail})" if self.detail else ""
        return page(
            f"{self.call} on `{self.worker}` is too large{sizes}.",
            ("to do", "send it in parts, or give that worker a larger `max_payload`"),
        )


@dataclass(eq=False, kw_only=True)
class NotAFuture(RpcError):
    """A function whose result was to come later gave something else than a future."""

    function: str
    found: str

    def render(self) -> str:
        """What must be given, and what was; not wrapped."""
        return (
            "Functions decorated with @rpc.async_function must return a "
            f"torch.futures.Future object: `{self.function}` gave {self.found}."
        )


@dataclass(eq=False, kw_only=True)
class AddressUnusable(RpcError, OSError):
    """A worker cannot be reached at the address that it was given; `why` says why.

    Another worker is there, or the address is none, or not this machine's.
    """

    address: str
    why: str

    def render(self) -> str:
        """Which address, and what is wrong with it."""
        return page(f"No worker can listen at `{self.address}`: {self.why}.")


@dataclass(eq=False, kw_only=True)
class KeysNeeded(RpcError, PermissionError):
    """Others than this user could reach a worker at the address, and it has no keys."""

    address: str

    def render(self) -> str:
        """Which address, and what would be safe."""
        return page(
            f"A worker at `{self.address}` without keys would run what anybody sends "
            "who reaches it.",
            ("to do", "give a folder of keys, or an `ipc:///folder` of this machine"),
        )


@dataclass(eq=False, kw_only=True)
class FolderUnsafe(RpcError, PermissionError):
    """A folder or a file that only its owner may open is open to others.

    Nothing of it was read.
    """

    path: str
    why: str

    def render(self) -> str:
        """Which one, what is wrong, and what to do."""
        return page(
            f"`{self.path}` is not safe: {self.why}.",
            (
                "to do",
                "have it owned by this user, folders with mode 0700, files with "
                "0600, and no link in between",
            ),
        )


@dataclass(eq=False, kw_only=True)
class NotAKey(RpcError, ValueError):
    """A file holds no key of ours, or one half of a pair is missing or not its half."""

    path: str
    why: str

    def render(self) -> str:
        """Which file, and what is wrong with it."""
        return page(f"`{self.path}` holds no key: {self.why}.")


@dataclass(eq=False, kw_only=True)
class BlockGone(RpcError, ConnectionError):
    """Memory that another process lent cannot be opened; `why` says why.

    Its lender has ended, or given the block up; what was in it is lost.
    """

    why: str

    def render(self) -> str:
        """What became of it."""
        return page(f"A block of memory that was lent is not there: {self.why}.")


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
                "register a function there by `rpc.register`, and call it with "
                "numbers, texts, tensors, references and containers of these",
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


@dataclass(eq=False, kw_only=True)
class SentInVain(RpcError):
    """A faulty agent was told to fail this attempt to send; nothing was sent."""

    message: str
    call: str

    def render(self) -> str:
        """What was to be sent, and that it was no accident."""
        return page(
            f"Send attempt failed intentionally for {self.message}: {self.call}."
        )
