"""Messages between two processes: pickles over two file descriptors.

True only here: how values cross.  Each message is its length and a pickle; the end of
the other process is the end of the stream (`EOFError`).  Both sides are processes of
one user, one of which started the other: what comes is trusted.
"""

import os
import pickle
from struct import Struct
from typing import Any

_LENGTH = Struct("!Q")


class Channel:
    """One end; `reader` and `writer` are file descriptors, which it owns."""

    def __init__(self, reader: int, writer: int) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, message: Any) -> None:
        """Send a value.

        Raises:
            OSError: the other side is gone.
            pickle.PicklingError: or what pickling raises; then nothing was sent.
        """
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        view = memoryview(_LENGTH.pack(len(data)) + data)
        while view:
            view = view[os.write(self.writer, view) :]

    def receive(self) -> Any:
        """The next value.  Raises `EOFError` when the other side is gone."""
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
        return pickle.loads(self._read(length))  # noqa: S301  # see the module

    def close(self) -> None:
        """Close both descriptors; the other side sees the end."""
        for descriptor in {self.reader, self.writer}:
            if descriptor >= 0:
                os.close(descriptor)
        self.reader = self.writer = -1

    def _read(self, size: int) -> bytes:
        pieces = []
        while size:
            try:
                piece = os.read(self.reader, min(size, 1 << 20))
            except ConnectionResetError:
                piece = b""
            if not piece:
                raise EOFError("the other process is gone")
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)
