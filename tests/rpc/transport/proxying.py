"""A proxy between two workers, which cuts, freezes and lets through as it is told."""

import socket
import struct
from contextlib import suppress
from threading import Lock, Thread


class Proxy:
    """It listens at `port` and hands everything on to another port."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._threads: list[Thread] = []
        self._start(self._accept)

    def _start(self, run: object, *arguments: object) -> None:
        assert callable(run)
        thread = Thread(target=run, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._target), 60)
            except OSError:
                near.close()
                continue
            with self._lock:
                self._pairs.append((near, far))
            self._start(self._pump, near, far)
            self._start(self._pump, far, near)

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def reset(self) -> int:
        """Cut all connections, as a firewall does, and say how many; new ones go on."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for each in pair:
                with suppress(OSError):
                    abort = struct.pack("ii", 1, 0)
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, abort)
                    # What waits in `recv` keeps a socket open: this wakes it.
                    each.shutdown(socket.SHUT_RD)
                each.close()
        return len(pairs)

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.reset()
        for thread in self._threads:
            thread.join(60)
