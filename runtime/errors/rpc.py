"""Errors of remote calls: workers, calls, references, what was sent, who may send it.

Who must act: whoever starts workers, calls them, or keeps references; all are
`RpcError`.

Rules: every one is a RuntimeError, as programs for `torch.distributed.rpc` expect; an
error names the worker, the call as written, what was found and what to do; nothing of a
value that travelled is kept.
"""

from everyorder.runtime.errors.base import EveryorderError

# How a callable of a kind gets to a worker.
BRINGING = {
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


class RpcError(EveryorderError, RuntimeError):
    """Base of the errors of remote calls.

    It has no field: what stands for an exception of somebody else derives from it.
    """


class RpcMisuse(RpcError):
    """`call` was given what it cannot take, or asked of who cannot answer.

    `wanted` says what it takes; `reference` is the text of a reference, `owner` the
    worker that has its value; `near` are names of workers that there are.
    """

    call: str = ""
    found: str = ""
    wanted: str = ""
    function: str = ""
    argument: str = ""
    fault: str = ""
    schema: str = ""
    asked: str = ""
    reference: str = ""
    worker: str = ""
    owner: str = ""
    name: str = ""
    near: tuple[str, ...] = ()
    kind: str = ""
    attribute: str = ""
    package: str = ""

    words = """
    RpcMisuse (TypeError, ValueError): `{call}` was given {found}.
      it takes: {wanted}
    UnfitArguments (TypeError, ValueError): {fault}.
      it takes: {schema}
    NotAFuture (TypeError, ValueError) |
        Functions decorated with @rpc.async_function must return a \\
        torch.futures.Future object: `{function}` gave {found}.
    ReferenceNotSent (TypeError, ValueError): An RRef cannot be {asked}: references
        travel inside of remote calls only, where their owners are told.
      to do: pass it in the arguments or the result of a remote call
    NotTheOwner (TypeError, ValueError): Worker `{worker}` cannot `{call}()`: the value
        lies on `{owner}`.
      reference: {reference}
      to do: call it on `{owner}`, or `to_here()` for a copy
    AlreadyInitialized (TypeError, ValueError): RPC is already initialized: this process
        is the worker `{name}`.
      to do: call `shutdown()` first
    UnknownWorker: Worker `{worker}` could not find destination {found}.
      near: {near:, }
    NoSuchMethod (AttributeError): type object `{kind}` has no attribute `{attribute}`.
      to know: proxies reach what the class has, not what objects set
    ExtraMissing (ImportError): `{call}` needs the package `{package}`, which is not
        installed.
      to do: pip install 'everyorder[rpc]'
    """


class NotInitialized(RpcError):
    """`call` needs a worker, and this process has none, or none any more.

    `parent` is the worker of the process that this one was forked from.
    """

    call: str
    parent: str = ""

    words = """
    NotInitialized: `{call}` needs a worker, and RPC has not been initialized
        here{_why}.
      to do: {_remedy}
    """

    @property
    def _why(self) -> str:
        if not self.parent:
            return ""
        return (
            f": this process was forked, and the worker `{self.parent}` is its parent's"
        )

    @property
    def _remedy(self) -> str:
        if self.parent:
            return "call in the parent, or `init_rpc` here, by a name of its own"
        return "call `init_rpc(name, ...)` first; after `shutdown()`, once more"


class RpcTimeout(RpcError, TimeoutError):
    """No answer came in time, or not all workers; they may still be at it.

    `milliseconds` is the time that a call had; `missing` did not come, or were not
    done.
    """

    call: str = ""
    worker: str = ""
    milliseconds: int = 0
    missing: tuple[str, ...] = ()
    seconds: float = 0.0
    name: str = ""

    words = """
    RpcTimeout: RPC ran for more than set timeout ({milliseconds} ms): {call} on
        `{worker}`.
      to do: give a longer `timeout`; 0 is for ever
    GatherTimeout: `{call}` timed out after {seconds:.2f} seconds.
      missing: {missing:, |the answer of the first worker}
    ShutdownTimeout: Worker `{name}` has stopped after {seconds:g} s, and not all others
        were done.
      missing: {missing:, |nobody: calls were in flight}
      to do: call `shutdown` on those too; or give more `timeout`
    """


class JoinTimeout(RpcError, TimeoutError):
    """A worker was no member in time, or its group not complete; `missing` says who."""

    name: str
    address: str
    seconds: float
    missing: tuple[str, ...]

    words = """
    JoinTimeout: Worker `{name}` did not get into a complete group at `{address}` within
        {seconds:g} s.
      missing: {missing:, |nobody}
      to do: start those, at the same address; or give more `join_timeout`
    """


class WorkerLost(RpcError, ConnectionError):
    """The other worker ended, was cut off, or was started anew; `reason` says which.

    What was asked of it may have been done, in part or whole.
    """

    call: str
    worker: str
    reason: str

    words = """
    WorkerLost: {call} on `{worker}` has no answer: {reason}.
    """


class ReferenceDead(RpcError):
    """A reference is worth nothing: its value was never made, or is out of reach.

    `reason` says why.  Or a worker stopped to whose values others still refer: `lines`
    name a value and a reference each.
    """

    call: str = ""
    reference: str = ""
    reason: str = ""
    name: str = ""
    lines: tuple[str, ...] = ()

    words = """
    ReferenceDead: `{call}` was asked of a dead reference: {reason}.
      reference: {reference}
    ReferencesLeaked |
        Worker `{name}` has stopped while others referred to its values.
        {_lines}
    """

    @property
    def _lines(self) -> str:
        return "\n".join(self.lines)


class NotAdmitted(RpcError):
    """The group does not take a worker; `why` says what does not fit."""

    name: str
    address: str = ""
    why: str

    words = """
    NotAdmitted: Worker `{name}` was not admitted at `{address}`: {why}.
      to know: a group shares its size, times, limits and keys: copies of one folder, or
        the `public.key` of each other in `allowed`
    NotUnique: RPC worker name {name} is not unique, or its id is not: {why}.
      to do: give each worker a name, and a rank, of its own
    """


class AddressUnusable(RpcError, OSError):
    """A worker cannot be reached at the address that it was given; `why` says why.

    Another worker is there, or the address is none, or not this machine's.
    """

    address: str
    why: str

    words = """
    AddressUnusable: No worker can listen at `{address}`: {why}.
    """


class UnsafeKeys(RpcError):
    """Others than this user could reach a worker without keys, or read what is secret.

    Nothing was read, and nothing listens.  Or a file holds no key of ours.
    """

    address: str = ""
    path: str = ""
    why: str = ""

    words = """
    KeysNeeded (PermissionError): A worker at `{address}` without keys would run what
        anybody sends who reaches it.
      to do: give a folder of keys, or an `ipc:///folder` of this machine
    FolderUnsafe (PermissionError): `{path}` is not safe: {why}.
      to do: have it owned by this user, folders with mode 0700, files with 0600, and no
        link in between
    NotAKey (ValueError): `{path}` holds no key: {why}.
    """


class BlockGone(RpcError, ConnectionError):
    """Memory that another process lent cannot be opened; `why` says why.

    Its lender has ended, or given the block up; what was in it is lost.
    """

    why: str

    words = """
    BlockGone: A block of memory that was lent is not there: {why}.
    """


class Unsendable(RpcError):
    """What was to be sent cannot be pickled, or is too large: send something else.

    `path` leads to the part, as one would write it: `args[1]['x']`.  A faulty agent
    may also be told to send nothing.
    """

    path: str = ""
    found: str = ""
    reason: str = ""
    call: str = ""
    worker: str = ""
    detail: str = ""
    message: str = ""

    words = """
    Unsendable (TypeError): `{path}`, {found}, cannot be sent: it cannot be pickled.
      reason: {reason}
      to do: send what it is made of, or a reference to it
    PayloadTooLarge: {call} on `{worker}` is too large{_sizes}.
      to do: send it in parts, or give that worker a larger `max_payload`
    SentInVain: Send attempt failed intentionally for {message}: {call}.
    """

    @property
    def _sizes(self) -> str:
        return f" ({self.detail})" if self.detail else ""


class Undecodable(RpcError, ValueError):
    """What arrived cannot be read; nothing was done with it."""

    found: str
    reason: str

    words = """
    Undecodable: {found} cannot be read here.
      reason: {reason}
    """


class UnknownCallable(RpcError):
    """A worker was asked for a `kind` of the name `name` that it does not have, or for
    something else than the registered functions that it takes.
    """

    kind: str = ""
    name: str = ""
    near: tuple[str, ...] = ()
    reason: str = ""
    found: str = ""

    words = """
    UnknownCallable (LookupError): A worker attempted to get undefined {kind} {name}.
      reason: {reason}
      near: {near:, }
      to do: {_remedy}
    OnlyRegistered: {found} was refused: this worker takes registered functions only.
      to do: register a function there by `rpc.register`, and call it with numbers,
        texts, tensors, references and containers of these
    """

    @property
    def _remedy(self) -> str:
        return BRINGING[self.kind]


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
