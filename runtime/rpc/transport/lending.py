"""Lending: large frames of packets that go by blocks of memory, where both sides can.

True only here: what two transports say to each other so that one lends blocks to the
other.  Whoever uses a transport sees frames, as ever; that some did not go through a
socket is seen by how soon they come.

How it works: the first large frame for a peer travels as it is, and `SAMPLE` beside it:
an empty block, and a random number.  A peer that can open the block says `REACHES` and
the number.  From then on large frames are lent, and a packet of the kind `LENT` says
where they were.  When the last view of one has died, the peer says `RETURNED`; when it
cannot open one, `CANNOT`, and nothing is lent to it any more.

Rules:
- a packet whose blocks cannot be opened is lost, as packets are;
- the random number is known to the two alone: nobody else can give back what was lent;
- a link that broke or was forgotten begins anew, and what was lent by it is closed;
- views die wherever they die; that they have is told when the next packet comes, which
  is soon between workers.
"""

import os
from collections.abc import Callable, Sequence
from enum import IntEnum
from struct import Struct
from struct import error as StructError  # noqa: N812  # it is a class

from runtime.errors.rpc import BlockGone
from runtime.locks import renewed
from runtime.rpc.transport.blocks import TOKEN, WORTH, Blocks, Borrowed
from runtime.rpc.transport.interface import Buffer
from runtime.rpc.transport.parts import joined, parted

_PLACE = Struct("<I")
_LENDING = Struct("<Q")
# Of a random number; 16 are as many as nobody guesses.
_SECRET = 16
# Of an endpoint: a path of a socket, or a host, and a key.
_LONGEST = 1024


class Kind(IntEnum):
    """What a packet is; those that are not plain are for transports only."""

    PLAIN = 0
    # These begin with the sender's endpoint and the secret; behind it: the places, the
    # tokens, and the frames that remain;
    LENT = 1
    # the sample;
    SAMPLE = 2
    # nothing;
    REACHES = 3
    CANNOT = 4
    # the lendings.
    RETURNED = 5


# To whom a block is lent: an endpoint, and the secret that it was told.
_Peer = tuple[str, bytes]
Send = Callable[[str, list[Buffer]], None]


class NotAPacket(Exception):
    """What came is no packet of ours: it is dropped and counted."""


class Lending:
    """What one transport lends and borrows; `send` sends the parts of a packet.

    Where it is not `on`, nothing is lent and nothing is borrowed.
    """

    def __init__(self, endpoint: str, send: Send, *, on: bool) -> None:
        self.on = on
        self.blocks: Blocks[_Peer] = Blocks()
        self.borrowed: Borrowed[_Peer] = Borrowed()
        self._endpoint = endpoint.encode()
        self._send = send
        self._lock = renewed()
        # What borrowers were told; those that said they reach our blocks; and those
        # that said they cannot, after all.
        self._secrets: dict[str, bytes] = {}
        self._reach: set[str] = set()
        self._cannot: set[str] = set()

    def parts(self, endpoint: str, frames: Sequence[Buffer]) -> list[Buffer]:
        """The parts by which a packet travels to an endpoint."""
        parts = joined(frames)
        if len(parts) > 1 and self.on:
            lent = self._lent(endpoint, frames)
            if lent is not None:
                return joined(lent, Kind.LENT)
        return parts

    def frames(self, first: bytes, others: Sequence[Buffer]) -> list[Buffer] | None:
        """The frames of a packet that came; None: it was for this one, or is lost.

        Raises:
            NotAPacket: it is no packet of ours.
        """
        packet = parted(first, others)
        if packet is None:
            raise NotAPacket
        kind, frames = packet
        if kind == Kind.PLAIN:
            return frames
        if not self.on or len(frames) < 2 or len(frames[0]) > _LONGEST:
            raise NotAPacket
        try:
            return self._heard(
                kind, bytes(frames[0]).decode(), bytes(frames[1]), frames[2:]
            )
        except (ValueError, StructError) as error:
            raise NotAPacket from error

    def give_back(self) -> None:
        """Tell lenders which of their blocks nobody here looks at any more."""
        returns: dict[_Peer, list[bytes]] = {}
        for lender, lending in self.borrowed.take_returns():
            returns.setdefault(lender, []).append(_LENDING.pack(lending))
        for (peer, secret), lendings in returns.items():
            self._say(Kind.RETURNED, peer, secret, b"".join(lendings))

    def forget(self, endpoint: str) -> None:
        """Begin anew with a peer; what it has is closed, and stays with it."""
        with self._lock:
            secret = self._secrets.pop(endpoint, None)
            self._reach.discard(endpoint)
            self._cannot.discard(endpoint)
        if secret is not None:
            self.blocks.lost((endpoint, secret))

    def close(self) -> None:
        """Lend nothing more, and let go of what was lent."""
        self.blocks.close()

    def _say(self, kind: Kind, peer: str, secret: bytes, *more: Buffer) -> None:
        self._send(peer, joined([self._endpoint, secret, *more], kind))

    def _lent(self, endpoint: str, frames: Sequence[Buffer]) -> list[Buffer] | None:
        """The frames of a packet `LENT`; None where these travel as they are."""
        sizes = [
            each.nbytes if isinstance(each, memoryview) else len(each)
            for each in frames
        ]
        places = [place for place, size in enumerate(sizes) if size >= WORTH]
        if not places or endpoint in self._cannot:
            return None
        secret = self._secrets.get(endpoint)
        if secret is None:
            self._ask(endpoint)
            return None
        if endpoint not in self._reach:
            return None
        tokens = self.blocks.lend([frames[each] for each in places], (endpoint, secret))
        if tokens is None:
            return None
        where = b"".join(_PLACE.pack(each) for each in places)
        rest = [frames[place] for place, size in enumerate(sizes) if size < WORTH]
        return [self._endpoint, secret, where, b"".join(tokens), *rest]

    def _ask(self, endpoint: str) -> None:
        """Have a peer say whether it reaches our blocks, once."""
        sample = self.blocks.sample()
        with self._lock:
            if endpoint in self._secrets or not sample:
                return
            secret = self._secrets[endpoint] = os.urandom(_SECRET)
        self._say(Kind.SAMPLE, endpoint, secret, sample)

    def _heard(
        self, kind: int, peer: str, secret: bytes, more: list[Buffer]
    ) -> list[Buffer] | None:
        """What a packet of a kind that is not plain says; the frames of one `LENT`.

        Raises:
            ValueError, StructError: no such packet is sent.
        """
        if kind == Kind.LENT:
            return self._open(peer, secret, *more)
        if kind == Kind.SAMPLE:
            (sample,) = more
            if self.borrowed.reaches(sample):
                self._say(Kind.REACHES, peer, secret)
        elif kind == Kind.RETURNED:
            (lendings,) = more
            for (lending,) in _LENDING.iter_unpack(lendings):
                self.blocks.returned(lending, (peer, secret))
        elif kind not in (Kind.REACHES, Kind.CANNOT) or more:
            raise ValueError(kind)
        elif secret == self._secrets.get(peer):
            # Nobody else speaks for it, and it speaks of the link that is.
            (self._reach if kind == Kind.REACHES else self._cannot).add(peer)
        return None

    def _open(
        self, peer: str, secret: bytes, where: Buffer, tokens: Buffer, *rest: Buffer
    ) -> list[Buffer] | None:
        """The frames of a packet, with what was lent in its places."""
        places = [place for (place,) in _PLACE.iter_unpack(where)]
        sorted_out = places == sorted({*places}) and len(tokens) == TOKEN * len(places)
        if not places or not sorted_out or places[-1] >= len(rest) + len(places):
            raise ValueError(places)
        frames = [*rest]
        try:
            for number, place in enumerate(places):
                token = tokens[number * TOKEN :][:TOKEN]
                frames.insert(place, self.borrowed.open(token, (peer, secret)))
        except BlockGone:
            self._say(Kind.CANNOT, peer, secret)
            return None
        return frames
