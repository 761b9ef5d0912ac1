"""Lending: large buffers of payloads go to workers of this machine by shared memory.

Here is which buffers are lent to whom, and how they come back. How memory is shared is
`runtime.rpc.transport.blocks`.

    marked     a payload of several frames ends with one more, which says which of them
               are tokens; a payload of one frame is as it is
    asked      the first large buffer to a peer travels as it is, and a request asks
               whether that peer can open the blocks of this worker
    returned   when the last view of a block dies, its number goes back, by a request

Requests of this kind are known by the last byte of their only frame; payloads of values
have others there.

Rules: what is lent counts towards the limits of sizes as if it was sent; what was lent
to a lost worker is never lent again; where nothing can be lent, all is sent.
"""

from collections import defaultdict
from contextlib import suppress
from struct import Struct
from typing import TYPE_CHECKING

from runtime.errors.rpc import BlockGone, Undecodable
from runtime.rpc.identities import Node
from runtime.rpc.session.events import Buffer, Payload
from runtime.rpc.transport.blocks import WORTH, Blocks, Borrowed

if TYPE_CHECKING:
    from runtime.futures import Future
    from runtime.rpc.agent.agent import Agent

# The last bytes of requests; those of values are small.
SAMPLE, RETURNS = 0xF0, 0xF1
_KINDS = (bytes((SAMPLE,)), bytes((RETURNS,)))
_PLACE = Struct("<I")
_LENDING = Struct("<Q")
_NONE = b""


def _size(buffer: Buffer) -> int:
    return buffer.nbytes if isinstance(buffer, memoryview) else len(buffer)


class Lending:
    """What one worker lends, and has borrowed; `largest` bytes at most in a payload."""

    def __init__(self, agent: "Agent", *, wanted: bool, largest: int) -> None:
        self._agent = agent
        self._largest = largest
        # In a process nothing has to be lent: nothing leaves it.
        self._wanted = wanted and not agent.transport.endpoint.startswith("local://")
        self._blocks: Blocks[Node] = Blocks()
        self._borrowed: Borrowed[Node] = Borrowed()
        # Whether a peer can open what is lent; None until it has said so.
        self._reaches: dict[Node, bool | None] = {}

    def outgoing(self, to: Node, payload: Payload) -> Payload:
        """A payload for a peer, large buffers of it lent if that can be."""
        if len(payload) == 1:
            return payload
        # What is free again by now is lent before anything new.
        self.give_back()
        if not self._wanted or to == self._agent.node:
            return [*payload, _NONE]
        places = [n for n, each in enumerate(payload) if n and _size(each) >= WORTH]
        if not places or not self._may_lend(to):
            return [*payload, _NONE]
        if sum(map(_size, payload)) > self._largest:
            # It is refused as it is.
            return payload
        tokens = self._blocks.lend([payload[n] for n in places], to)
        if tokens is None:
            return [*payload, _NONE]
        sent = [*payload]
        for place, token in zip(places, tokens, strict=True):
            sent[place] = token
        return [*sent, b"".join(map(_PLACE.pack, places))]

    def incoming(self, peer: Node, payload: Payload) -> Payload:
        """A payload of a peer, with all its buffers.

        Raises:
            BlockGone: what was lent is not there, or cannot be had; all is given back.
            Undecodable: it is no payload of ours, or larger than is taken here.
        """
        if len(payload) < 2:
            return payload
        mark = bytes(payload[-1])
        found = [*payload[:-1]]
        if not mark:
            return found
        if len(mark) % _PLACE.size:
            raise Undecodable(found="A payload", reason="its tokens are cut")
        gone: BlockGone | None = None
        for (place,) in _PLACE.iter_unpack(mark):
            if not 0 < place < len(found):
                raise Undecodable(found="A payload", reason="a token is not in it")
            try:
                found[place] = self._borrowed.open(found[place], peer)
            except BlockGone as error:
                # The others are opened all the same: to be dropped is to be given back.
                gone = gone or error
        if gone is not None:
            try:
                raise gone
            finally:
                # Else the error would keep them.
                del gone, found
        if sum(map(_size, found)) > self._largest:
            raise Undecodable(found="A payload", reason="it is too large")
        return found

    def drop(self, peer: Node, payload: Payload) -> None:
        """Give back what came with a payload that nobody reads."""
        if len(payload) > 1 and payload[-1]:
            # Who lent it may have ended, or written nonsense: nobody is to be told.
            with suppress(BlockGone, Undecodable):
                self.incoming(peer, payload)

    def _may_lend(self, to: Node) -> bool:
        known = self._reaches.get(to)
        if known is None and to not in self._reaches:
            self._reaches[to] = None
            sample = self._blocks.sample()
            if sample:
                answer = self._agent.ask_raw(to, sample + bytes((SAMPLE,)))
                answer.add_done_callback(lambda told: self._told(to, told))
        return bool(known)

    def _told(self, to: Node, answer: "Future[Payload]") -> None:
        if answer.error() is None:
            self._reaches[to] = bytes(answer.value()[0]) == b"\1"

    # What is asked about it.

    def is_asked(self, payload: Payload) -> bool:
        """Whether a request is about lending."""
        return len(payload) == 1 and bytes(payload[0][-1:]) in _KINDS

    def answer(self, peer: Node, payload: Payload) -> bytes:
        """The answer to a request about lending."""
        said = bytes(payload[0])
        body, kind = said[:-1], said[-1]
        if kind == SAMPLE:
            return b"\1" if self._borrowed.reaches(body) else b"\0"
        if len(body) % _LENDING.size == 0:
            for (lending,) in _LENDING.iter_unpack(body):
                self._blocks.returned(lending, peer)
        return b"\1"

    def give_back(self) -> None:
        """Return what nobody looks at any more; also to be asked now and then."""
        returns = self._borrowed.take_returns()
        if not returns:
            return
        lenders: defaultdict[Node, list[int]] = defaultdict(list)
        for peer, lending in returns:
            lenders[peer].append(lending)
        for peer, lendings in lenders.items():
            body = b"".join(map(_LENDING.pack, lendings))
            self._agent.ask_raw(peer, body + bytes((RETURNS,)))

    def has_returns(self) -> bool:
        """Whether there is something to give back."""
        return self._borrowed.waiting()

    def lost(self, peer: Node) -> None:
        """A peer is lost, with what it borrowed."""
        self._reaches.pop(peer, None)
        self._blocks.lost(peer)

    def counts(self) -> dict[str, int]:
        """Bytes of shared memory, and how many blocks are lent and free."""
        return self._blocks.counts()

    def close(self) -> None:
        """Let go of all memory; what others have borrowed stays with them."""
        self._blocks.close()
