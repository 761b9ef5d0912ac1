"""Messages between two processes: pickles with a length prefix, in pipes and sockets.

Both sides are processes of one user, one of which started the other, so messages are
trusted. `multiprocessing.connection` sends such messages, too, but its import takes
12 milliseconds, as long as several forks, and its reader waits for the rest of a
message whose sender has stopped.
"""

import os
import pickle
import select
from contextlib import suppress
from time import monotonic
from typing import Any

_HEAD = 8
_CHUNK = 1 << 16


def send_message(end: int, message: object) -> None:
    """Write a value to a pipe or socket.

    Raises:
        OSError: the other side is gone.
        pickle.PicklingError: or another error of pickling; then nothing was written.
    """
    payload = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    view = memoryview(len(payload).to_bytes(_HEAD, "big") + payload)
    while view:
        view = view[os.write(end, view) :]


def receive_message(end: int, seconds: float | None = None) -> Any:
    """Wait for the next value, without a limit or so many seconds.

    Raises:
        EOFError: the other side is gone.
        TimeoutError: the whole value has not arrived in time.
    """
    until = None if seconds is None else monotonic() + seconds
    size = int.from_bytes(_exactly(end, _HEAD, until), "big")
    return pickle.loads(_exactly(end, size, until))  # noqa: S301  # see the module


def _exactly(end: int, size: int, until: float | None) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        if until is not None:
            _await(end, until)
        part = b""
        with suppress(ConnectionResetError):
            part = os.read(end, min(size - len(parts), _CHUNK))
        if not part:
            raise EOFError("the other process is gone")
        parts += part
    return bytes(parts)


def _await(end: int, until: float) -> None:
    poll = select.poll()
    poll.register(end, select.POLLIN)
    if not poll.poll(max(0.0, until - monotonic()) * 1000):
        raise TimeoutError("the other process has not sent a message in time")


class MessageBuffer:
    """The bytes of messages that arrive in parts, for a reader that never waits."""

    def __init__(self) -> None:
        self._parts = bytearray()

    def complete(self, arrived: bytes) -> list[Any]:
        """Return the messages that are complete with these bytes."""
        self._parts += arrived
        messages = []
        while len(self._parts) >= _HEAD:
            end = _HEAD + int.from_bytes(self._parts[:_HEAD], "big")
            if len(self._parts) < end:
                break
            messages.append(pickle.loads(self._parts[_HEAD:end]))  # noqa: S301  # as above
            del self._parts[:end]
        return messages


class PipeEnd:
    """One end of a channel; owns the file descriptors `reader` and `writer`."""

    def __init__(self, reader: int, writer: int) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, message: Any) -> None:
        """Send a value; raises as `send_message` does."""
        send_message(self.writer, message)

    def receive(self) -> Any:
        """Return the next value.  Raises `EOFError` if the other side is gone."""
        return receive_message(self.reader)

    def close(self) -> None:
        """Close both descriptors; the other side receives the end."""
        for descriptor in {self.reader, self.writer}:
            if descriptor >= 0:
                os.close(descriptor)
        self.reader = self.writer = -1
