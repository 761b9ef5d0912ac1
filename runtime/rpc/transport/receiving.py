"""Receiving: which thread takes packets from a socket, and what it does with them.

    Turns        how threads share one socket: who has the turn uses it, and nobody else
    Receiving    what a thread does that has the turn

Two threads of the transport sleep until something comes, and the system wakes one of
them.  What a packet asks for may be done by the very thread that told it, while the
other one receives; so no further thread is woken for it.  A thread that waits for an
answer leads: it takes the turn itself and receives until that is there, and meanwhile
none of the two is woken.

Rules of turns:
- whoever gives the turn back arms the socket again, so that what comes next wakes a
  thread that sleeps; with `more` one wakes now, for what the socket has already;
- of the two that sleep one at a time may go `away`, to do something that takes as long
  as it wants: the other one stays;
- who leads is woken by `nudge`, the others by `ring`, from any thread, also by a signal
  handler and after the end;
- where the system has no epoll (others than Linux) nobody leads.

Rules of receiving:
- packets are told by who has the turn, so one after the other and in order;
- before a thread goes away it receives a few of those that came meanwhile;
- what a callback raises is logged, and the thread goes on; on the main thread it is
  raised, as the handler of a signal may have raised it;
- code that comes in between while a thread leads and sleeps may lead, too.
"""

import os
import select
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty
from threading import get_ident
from time import monotonic
from typing import TypeAlias

from runtime.locks import reentered
from runtime.rpc.transport.interface import LOG, Buffer, OnPacket

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


Packet: TypeAlias = tuple[list[Buffer], str]

# Messages that a thread still receives before it does what it was asked for.
_BEFORE = 4


def _told_nobody(frames: list[Buffer], key: str) -> None:
    """Stands for who is told, until it is started."""


class Receiving:
    """The threads of one socket.

    Args:
        file: of the socket: there is something to read when a packet may have come.
        packet: takes the next one; None is none of ours, `Empty` raised: there is none.
        has_more: whether there is one.
        name: of the transport, for people.
    """

    def __init__(
        self,
        file: int,
        packet: Callable[[], Packet | None],
        has_more: Callable[[], bool],
        name: str,
    ) -> None:
        self.turns = Turns(file)
        self._packet = packet
        self._has_more = has_more
        self._name = name
        self._on_packet: OnPacket = _told_nobody
        self._closed = False

    def threads(self, on_packet: OnPacket) -> list[threading.Thread]:
        """The threads that receive, to be started."""
        self._on_packet = on_packet
        return [
            threading.Thread(
                target=self._receive, name=f"rpc {self._name} {number}", daemon=True
            )
            for number in ((1, 2) if SUPPORTED else (1,))
        ]

    def end(self) -> None:
        """Have all threads stop; nothing is received any more."""
        self._closed = True
        self.turns.ring()
        self.turns.nudge()

    def in_child(self) -> None:
        """Be closed: the threads are the parent's."""
        self._closed = True
        self.turns.in_child()

    # The threads that receive.

    def _receive(self) -> None:
        turns, me = self.turns, threading.get_ident()
        while not self._closed:
            turns.sleep()
            if self._closed or not turns.take():
                continue
            behind: Callable[[], object] | None = None
            left, more = _BEFORE, True
            try:
                while more and left and not self._closed:
                    packet = self._packet()
                    if packet is not None:
                        behind = self._told(packet) or behind
                    # Large frames live as long as somebody looks at them.
                    packet = None
                    left -= turns.away == me
                    more = self._has_more()
            except Empty:
                more = False
            except Exception:
                LOG.exception("%s cannot receive", self._name)
            finally:
                turns.give(more=more)
            if behind is not None:
                try:
                    behind()
                except BaseException:
                    LOG.exception("a callback of %s failed", self._name)
                behind = None
            if turns.away == me:
                turns.away = 0
        # The other one is to see it, too.
        turns.ring()

    def _told(self, packet: Packet) -> Callable[[], object] | None:
        try:
            return self._on_packet(*packet)
        except Exception:
            LOG.exception("a callback of %s failed", self._name)
            return None

    def yields(self) -> bool:
        """As `Transport.yields`."""
        turns = self.turns
        if turns.leader or turns.away or self._closed or not SUPPORTED:
            return False
        turns.away = turns.holder
        return True

    # One that waits for an answer.

    def lead(self, over: Callable[[], bool], seconds: float) -> bool:
        """As `Transport.lead`."""
        turns = self.turns
        nested = turns.mine()
        started = self._on_packet is not _told_nobody
        if self._closed or not started or (nested and not turns.leader):
            return False
        slept, end = turns.waits, monotonic() + seconds
        try:
            if nested:
                turns.waits = False
            elif not turns.lead():
                return False
            self._lead_until(over, end)
        finally:
            if nested:
                turns.waits = slept
                # What the one who was interrupted sleeps for may be there by now.
                turns.nudge()
            else:
                try:
                    if turns.mine():
                        turns.follow(more=not self._closed and self._has_more())
                except BaseException:
                    # A handler of a signal raised it: others look what there is.
                    turns.follow(more=True)
                    raise
        return True

    def _lead_until(self, over: Callable[[], bool], end: float) -> None:
        ready = self._has_more()
        while True:
            if ready:
                self._lead_one()
            if self._closed or over():
                return
            # What the socket has already wakes nobody.
            ready = self._has_more()
            if not ready:
                left = end - monotonic()
                if left <= 0:
                    return
                self.turns.wait(int(left * 1000) + 1)
                ready = True

    def _lead_one(self) -> None:
        """Tell the next packet, if there is one, while this thread waits."""
        try:
            packet = self._packet()
        except Empty:
            return
        if packet is None:
            return
        if threading.current_thread() is threading.main_thread():
            self._on_packet(*packet)
        else:
            self._told(packet)

    def leads(self) -> bool:
        """As `Transport.leads`."""
        return self.turns.mine() and not self.turns.waits
