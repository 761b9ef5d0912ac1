"""Packets: what a session gives to a transport, and how a channel writes its own.

True only here: which numbers of a channel go into which field of the header.  A HELLO
names no session of the peer, as it is for the next one; a RESET names the one that is
over.
"""

from collections.abc import Sequence
from typing import NamedTuple

from runtime.rpc.messages.kinds import KINDS
from runtime.rpc.messages.notes import Note, of_note
from runtime.rpc.session.events import Buffer
from runtime.rpc.session.outbox import Sent
from runtime.rpc.wire import HEADER, MARK, VERSION, Kind

_DATA = int(Kind.DATA)


class Packet(NamedTuple):
    """What is to be sent: the endpoint, and the frames."""

    endpoint: str
    frames: list[Buffer]


class Writer:
    """Writes the packets of one side of a channel; `me` and `peer` are incarnations."""

    __slots__ = ("_endpoint", "_group", "_me", "_packets", "_peer")

    def __init__(
        self, packets: list[Packet], endpoint: str, group: int, me: int, peer: int
    ) -> None:
        self._packets = packets
        self._endpoint = endpoint
        self._group = group
        self._me = me
        self._peer = peer

    def message(self, message: Sent, mine: int, theirs: int, received: int) -> None:
        """A message of a session; all up to `received` came."""
        header = HEADER.pack(
            MARK,
            VERSION,
            _DATA,
            self._group,
            self._me,
            self._peer,
            mine,
            theirs,
            message.sequence,
            received,
        )
        frames: list[Buffer] = [header + message.body]
        if message.tail:
            frames += message.tail
        self._packets.append(Packet(self._endpoint, frames))

    def note(
        self,
        kind: Kind,
        note: Note,
        mine: int,
        theirs: int,
        sequence: int,
        acknowledged: int,
    ) -> None:
        """A note, with the numbers of its kind."""
        header = HEADER.pack(
            MARK,
            VERSION,
            kind,
            self._group,
            self._me,
            self._peer,
            mine,
            theirs,
            sequence,
            acknowledged,
        )
        self._packets.append(Packet(self._endpoint, [header + of_note(note)]))


def message_name(frames: Sequence[Buffer]) -> str:
    """How the message in a packet of a channel is called; "" where there is none."""
    first = memoryview(frames[0])
    head = HEADER.unpack_from(first)
    if head[2] != _DATA or first.nbytes == HEADER.size:
        return ""
    kind = KINDS.get(first[HEADER.size])
    return kind.__name__ if kind is not None else ""
