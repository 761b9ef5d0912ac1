"""Codecs: what an agent asks and answers, as payloads and back.

True only here: what one worker reads of another.  Values, callables and exceptions have
their forms in `runtime.rpc.values`; here they get this worker's references.

Rules: every reference that came with a message is received, or given back, also where
the message cannot be read; a worker that takes registered functions only reads what its
callers send by the codec that runs no code.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from runtime.errors.rpc import OnlyRegistered
from runtime.rpc.identities import Fork, WorkerInfo
from runtime.rpc.session.events import Payload
from runtime.rpc.values import Packed, unpack
from runtime.rpc.values.callables import (
    Call,
    call_of,
    pack_call,
    pack_result,
    unpack_call,
)
from runtime.rpc.values.remote_errors import pack_error, unpack_error

if TYPE_CHECKING:
    from runtime.rpc.agent.handles import References

_PICKLED = "The answer of a worker that does not take registered functions only"


class Codec:
    """The codec of one worker, whose `references` are asked about those in values."""

    def __init__(self, references: "References", *, registered_only: bool) -> None:
        self._references = references
        self._registered_only = registered_only

    def pack_request(
        self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Packed:
        """What is asked of another worker.

        Raises:
            RpcError, CallError: it does not fit the function, or cannot be sent.
        """
        call = call_of(function, args, kwargs)
        return pack_call(call, self._references, only_registered=self._registered_only)

    def unpack_request(self, payload: Payload, carries: Sequence[Fork]) -> Call:
        """What another worker asks.

        Raises:
            RpcError, Exception: it cannot be read, or is not here.
        """
        if not carries:
            return unpack_call(
                payload, self._references, only_registered=self._registered_only
            )
        arriving = self._references.arriving(carries)
        try:
            return unpack_call(
                payload, arriving, carries, only_registered=self._registered_only
            )
        finally:
            arriving.give_back()

    def pack_result(self, value: Any) -> Packed:
        """What a function gave.

        Raises:
            RpcError: it cannot be sent.
        """
        return pack_result(
            value, self._references, only_registered=self._registered_only
        )

    def pack_error(self, error: BaseException, worker: WorkerInfo) -> Packed:
        """What a function raised."""
        return pack_error(error, worker)

    def unpack_answer(
        self, payload: Payload, carries: Sequence[Fork], failed: bool
    ) -> Any:
        """What another worker's function gave.

        Raises:
            Exception: what it raised, or why the answer cannot be read.
        """
        trusted = not self._registered_only
        if failed:
            raise unpack_error(payload, trusted=trusted)
        try:
            if not carries:
                return unpack(payload, self._references, trusted=trusted)
            arriving = self._references.arriving(carries)
            try:
                return unpack(payload, arriving, carries, trusted=trusted)
            finally:
                arriving.give_back()
        except OnlyRegistered:
            raise OnlyRegistered(found=_PICKLED) from None
