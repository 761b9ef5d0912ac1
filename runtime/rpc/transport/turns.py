"""Turns: which of several threads takes packets from a socket, without waking another.

True only here: how threads share one socket.  Who has the turn uses the socket, and
nobody else does.  Two threads of the transport sleep until something comes, and the
system wakes one of them; a thread that waits for an answer takes the turn itself, and
meanwhile none of the two is woken.

Rules:
- whoever gives the turn back arms the socket again, so that what comes next wakes a
  thread that sleeps; with `more` one wakes now, for what the socket has already;
- of the two that sleep one at a time may go `away`, to do something that takes as long
  as it wants: the other one stays;
- who leads is woken by `nudge`, the others by `ring`, from any thread, also by a signal
  handler and after the end;
- where the system has no epoll (others than Linux) nobody leads.
"""

import os
import select
from contextlib import suppress
from threading import get_ident

from runtime.locks import reentered

SUPPORTED = hasattr(select, "epoll") and hasattr(os, "eventfd")
# Milliseconds between two looks, where the system wakes nobody.
_LOOK = 50


class Turns:
    """The turns at a socket whose file is `file`."""

    __slots__ = (
        "_bell",
        "_epoll",
        "_file",
        "_files",
        "_lock",
        "_nudged",
        "_open",
        "_poll",
        "_turn",
        "away",
        "holder",
        "leader",
        "waits",
    )

    def __init__(self, file: int) -> None:
        # It knows its owner at each line, where a handler of a signal may come.
        self._turn = reentered()
        # Of what is no socket: held for one call of the system.
        self._lock = reentered()
        self._open = True
        self._file = file
        # The threads that have the turn, and that have it to wait for an answer.
        self.holder = 0
        self.leader = 0
        # Whether who leads sleeps just now.
        self.waits = False
        # Which of those that receive is at something else.
        self.away = 0
        self._files: list[int] = []
        if SUPPORTED:
            try:
                self._epoll = select.epoll()
                self._bell = self._made()
                self._nudged = self._made()
            except OSError:
                # Of open files, there are too many.
                for each in self._files:
                    os.close(each)
                raise
            # Each ring wakes one that sleeps, or the next one that wants to.
            self._epoll.register(self._bell, select.EPOLLIN | select.EPOLLET)
            self._epoll.register(file, select.EPOLLIN | select.EPOLLONESHOT)
        self._poll: select.poll | None = self._polled()

    def _made(self) -> int:
        self._files.append(os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC))
        return self._files[-1]

    def _polled(self) -> select.poll:
        made = select.poll()
        made.register(self._file, select.POLLIN)
        if SUPPORTED:
            made.register(self._nudged, select.POLLIN)
        return made

    # Those that receive.

    def sleep(self) -> None:
        """Sleep until something came, or somebody rang; perhaps a little shorter."""
        if SUPPORTED:
            self._epoll.poll()
        else:
            self._polled().poll(_LOOK)

    def mine(self) -> bool:
        """Whether this very thread has the turn."""
        owned: bool = self._turn._is_owned()  # type: ignore[attr-defined]  # as Condition does
        return owned

    def take(self) -> bool:
        """Whether this thread has the turn from now on; it is not waited for."""
        if self.mine() or not self._turn.acquire(blocking=False):
            return False
        self.holder = get_ident()
        return True

    def give(self, *, more: bool) -> None:
        """Give the turn back; `more` of what came is left in the socket.

        Who was interrupted at it does it again.
        """
        if self.mine():
            self.leader = self.holder = 0
            self._turn.release()
        self._arm(select.POLLIN)
        if more:
            self.ring()

    def _arm(self, events: int) -> None:
        if SUPPORTED:
            with self._lock:
                if self._open:
                    self._epoll.modify(self._file, events | select.EPOLLONESHOT)

    def ring(self) -> None:
        """Wake one of those that receive."""
        with self._lock:
            if self._open and SUPPORTED:
                os.eventfd_write(self._bell, 1)

    # One that waits for an answer.

    def lead(self) -> bool:
        """As `take`, and nobody else is woken by what comes until it is given back."""
        if not SUPPORTED or not self.take():
            return False
        self.leader = self.holder
        self._arm(0)
        return True

    def follow(self, *, more: bool) -> None:
        """Give back what `lead` took, however far it came."""
        self.give(more=more)

    def wait(self, milliseconds: int) -> None:
        """Sleep until something came, or who leads was nudged."""
        # Who comes in between has another one: none is for two.
        poll, self._poll = self._poll or self._polled(), None
        try:
            self.waits = True
            for file, _ in poll.poll(milliseconds):
                if file != self._file:
                    with suppress(BlockingIOError):
                        os.eventfd_read(self._nudged)
        finally:
            self.waits = False
            self._poll = poll

    def nudge(self) -> None:
        """Have the thread that leads look again, if there is one."""
        if self.leader:
            with self._lock:
                if self._open:
                    os.eventfd_write(self._nudged, 1)

    # The end.

    def close(self) -> None:
        """Let go of everything, when nobody has the turn any more; for ever."""
        self._turn.acquire()
        with self._lock:
            self._open = False
            if SUPPORTED:
                self._epoll.close()
                for each in self._files:
                    os.close(each)

    def in_child(self) -> None:
        """Be closed: what there is, is the parent's."""
        self._open = False
