"""Messages between two processes: pickles with a length prefix, in pipes and sockets.

Both sides are processes of one user, one of which started the other, so messages are
trusted. `multiprocessing.connection` sends such messages, too, but its import takes
12 milliseconds, as long as several forks, and its reader waits for the rest of a
message whose sender has stopped.
"""

import os
import pickle
import select
from collections import deque
from contextlib import suppress
from time import monotonic
from typing import Any

_HEAD = 8
_CHUNK = 1 << 16


class PipeEnd:
    """One end of a channel; owns the file descriptors `reader` and `writer`."""

    def __init__(self, reader: int, writer: int) -> None:
        self.reader = reader
        self.writer = writer
        self._parts = bytearray()
        self._messages = deque[Any]()

    def send(self, message: object) -> None:
        """Send a value.

        Raises:
            OSError: the other side is gone.
            pickle.PicklingError: or another error of pickling; then nothing was sent.
        """
        payload = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        view = memoryview(len(payload).to_bytes(_HEAD, "big") + payload)
        while view:
            view = view[os.write(self.writer, view) :]

    def receive(self, seconds: float | None = None) -> Any:
        """Wait for the next value, without a limit or so many seconds; return it.

        Raises:
            EOFError: the other side is gone.
            TimeoutError: the whole value has not arrived in time.
        """
        until = None if seconds is None else monotonic() + seconds
        while not self._messages:
            if until is not None:
                _await(self.reader, until)
            arrived = b""
            with suppress(ConnectionResetError):
                arrived = os.read(self.reader, _CHUNK)
            if not arrived:
                raise EOFError("the other process is gone")
            self._messages += self.complete(arrived)
        return self._messages.popleft()

    def complete(self, arrived: bytes) -> list[Any]:
        """Return the messages that are complete with these bytes, without waiting."""
        self._parts += arrived
        messages = []
        while len(self._parts) >= _HEAD:
            end = _HEAD + int.from_bytes(self._parts[:_HEAD], "big")
            if len(self._parts) < end:
                break
            messages.append(pickle.loads(self._parts[_HEAD:end]))  # noqa: S301  # see above
            del self._parts[:end]
        return messages

    def close(self) -> None:
        """Close both descriptors; the other side receives the end."""
        for descriptor in {self.reader, self.writer}:
            if descriptor >= 0:
                os.close(descriptor)
        self.reader = self.writer = -1


def _await(source: int, until: float) -> None:
    poll = select.poll()
    poll.register(source, select.POLLIN)
    if not poll.poll(max(0.0, until - monotonic()) * 1000):
        raise TimeoutError("the other process has not sent a message in time")
