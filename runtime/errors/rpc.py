"""Errors of remote calls: workers, calls, references, messages, admission.

Who must act: the code that starts workers, calls them, or keeps references; all are
`RpcError`.

Rules: every one is a RuntimeError, as programs for `torch.distributed.rpc` expect; an
error names the worker, the call as written, the fault and the remedy; it does not keep
any value that was sent.
"""

from everyorder.runtime.errors.base import EveryorderError

# Kind of callable -> how to make it available on a worker.
BRINGING = {
    "operator": "load what defines it there too, in the same version",
    "function": (
        "have the module there as well: the RPC pickler does not serialize the code "
        "of the definitions of a module"
    ),
    "name": (
        "have its module there as well, in the same version: the RPC pickler does not "
        "serialize the code of the definitions of a module"
    ),
    "registered function": "register it there, by `rpc.register`",
}


class RpcError(EveryorderError, RuntimeError):
    """Base of the errors of remote calls.

    It declares no field: classes that represent foreign exceptions derive from it.
    """


class RpcMisuse(RpcError):
    """`call` got an argument that it does not accept, or this worker cannot serve it.

    `wanted` says what it accepts; `reference` is the text of a reference, `owner` the
    worker that has its value; `near` are names of existing workers.
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
        torch.futures.Future object: `{function}` returned {found}.
    ReferenceNotSent (TypeError, ValueError): An RRef cannot be {asked}: references
        are sent inside of remote calls only, which notify their owners.
      to do: pass it in the arguments or the result of a remote call
    NotTheOwner (TypeError, ValueError): Worker `{worker}` cannot `{call}()`: the value
        is on `{owner}`.
      reference: {reference}
      to do: call it on `{owner}`, or `to_here()` for a copy
    AlreadyInitialized (TypeError, ValueError): RPC is already initialized: this process
        is the worker `{name}`.
      to do: call `shutdown()` first
    UnknownWorker: Worker `{worker}` could not find destination {found}.
      near: {near:, }
    NoSuchMethod (AttributeError): type object `{kind}` has no attribute `{attribute}`.
      to know: proxies reach attributes of the class, not attributes of objects
    ExtraMissing (ImportError): `{call}` needs the package `{package}`, which is not
        installed.
      to do: pip install 'everyorder[rpc]'
    """


class NotInitialized(RpcError):
    """`call` needs a worker, and this process has none, or no longer has one.

    `parent` is the worker of the process that this one was forked from.
    """

    call: str
    parent: str = ""

    words = """
    NotInitialized: `{call}` needs a worker, and RPC has not been initialized
        here[[: this process was forked, and the worker `{parent}` is its parent's]].
      to do: {_remedy}
    """

    @property
    def _remedy(self) -> str:
        if self.parent:
            return "call in the parent, or `init_rpc` here, under another name"
        return "call `init_rpc(name, ...)` first; after `shutdown()`, once more"


class RpcTimeout(RpcError, TimeoutError):
    """An answer or some workers did not arrive in time; they may still be running.

    `milliseconds` is the time limit of a call; `missing` are the workers that did not
    arrive, or had not finished.
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
      missing: {missing:, |none: calls were in flight}
      to do: call `shutdown` on those too; or give more `timeout`
    """


class JoinTimeout(RpcError, TimeoutError):
    """A worker did not join in time, or `missing` members of its group are absent."""

    name: str
    address: str
    seconds: float
    missing: tuple[str, ...]

    words = """
    JoinTimeout: Worker `{name}` did not get into a complete group at `{address}` within
        {seconds:g} s.
      missing: {missing:, |none}
      to do: start those, at the same address; or give more `join_timeout`
    """


class WorkerLost(RpcError, ConnectionError):
    """The other worker ended, was disconnected, or was restarted; `reason` says which.

    It may have run the call in part or as a whole.
    """

    call: str
    worker: str
    reason: str

    words = """
    WorkerLost: {call} on `{worker}` has no answer: {reason}.
    """


class ReferenceDead(RpcError):
    """A reference cannot be used: its value was never created, or is out of reach.

    `reason` says why.  Or a worker stopped while others still refer to its values:
    `lines` name a value and a reference each.
    """

    call: str = ""
    reference: str = ""
    reason: str = ""
    name: str = ""
    lines: tuple[str, ...] = ()

    words = """
    ReferenceDead: `{call}` was called on a dead reference: {reason}.
      reference: {reference}
    ReferencesLeaked |
        Worker `{name}` has stopped while others referred to its values.
        {_lines}
    """

    @property
    def _lines(self) -> str:
        return "\n".join(self.lines)


class NotAdmitted(RpcError):
    """The group does not admit a worker; `why` says what does not fit."""

    name: str
    address: str = ""
    why: str

    words = """
    NotAdmitted: Worker `{name}` was not admitted at `{address}`: {why}.
      to know: a group shares its size, times, limits and keys: copies of one folder, or
        the `public.key` of each other in `allowed`
    NotUnique: RPC worker name {name} is not unique, or its id is not: {why}.
      to do: give each worker a unique name and a unique rank
    OthersNotUnique: The group of worker `{name}` cannot become complete: {why}.
      to do: give each worker a unique name and a unique rank
    """


class AddressUnusable(RpcError, OSError):
    """A worker cannot listen at its address; `why` says why.

    Another worker is there, or the address is invalid, or not one of this machine.
    """

    address: str
    why: str

    words = """
    AddressUnusable: No worker can listen at `{address}`: {why}.
    """


class UnsafeKeys(RpcError):
    """Other users could reach a worker without keys, or read secret keys.

    Nothing was read, and no worker listens.  Or a file does not hold a valid key.
    """

    address: str = ""
    path: str = ""
    why: str = ""

    words = """
    KeysNeeded (PermissionError): A worker at `{address}` without keys would run the
        calls of every process that can reach it.
      to do: pass a folder of keys, or an `ipc:///folder` of this machine
    FolderUnsafe (PermissionError): `{path}` is not safe: {why}.
      to do: have it owned by this user, folders with mode 0700, files with 0600, and no
        link in between
    NotAKey (ValueError): `{path}` does not hold a key: {why}.
    """


class BlockGone(RpcError, ConnectionError):
    """Shared memory that another process lent cannot be opened; `why` says why.

    The lender has ended, or released the block; its content is lost.
    """

    why: str

    words = """
    BlockGone: A block of shared memory cannot be opened: {why}.
    """


class Unsendable(RpcError):
    """The value cannot be pickled, or is too large: send something else.

    `path` leads to the part, as one would write it: `args[1]['x']`.  A faulty agent may
    also be configured to fail every send.
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
      to do: send its parts, or a reference to it
    PayloadTooLarge: {call} on `{worker}` is too large[[ ({detail})]].
      to do: send it in parts, or give that worker a larger `max_payload`
    SentInVain: Send attempt failed intentionally for {message}: {call}.
    """


class Undecodable(RpcError, ValueError):
    """A message cannot be decoded; it had no effect."""

    found: str
    reason: str

    words = """
    Undecodable: {found} cannot be read here.
      reason: {reason}
    """


class UnknownCallable(RpcError):
    """A call names a `kind` of callable `name` that the worker does not have.

    Or it is not one of the registered functions, and the worker accepts only those.
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
    OnlyRegistered: {found} was refused: this worker accepts only registered functions.
      to do: register a function there by `rpc.register`, and call it with numbers,
        texts, tensors, references and containers of these
    """

    @property
    def _remedy(self) -> str:
        return BRINGING[self.kind]


class RemoteError(RpcError):
    """An exception was raised on the worker that ran a call; this one represents it.

    If the class of the exception is available here, the class of this one also derives
    from it.  `remote_module` and `remote_type` name it, and `remote_text` is its text;
    `remote_hops` are the workers that it passed, the nearest first: each with the
    frames there.
    """

    remote_module: str
    remote_type: str
    remote_text: str
    remote_hops: tuple[tuple[str, str], ...] = ()

    @property
    def remote_traceback(self) -> str:
        """Return the workers and their frames as text, the nearest first."""
        return "\n".join(f"On {name}:\n{frames}" for name, frames in self.remote_hops)

    def render(self) -> str:
        """Return type and text of the exception, then workers and frames, unwrapped."""
        return f"{self.remote_type}: {self.remote_text}\n{self.remote_traceback}"
