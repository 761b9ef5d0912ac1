"""Receiving: the threads that receive from one socket (leader and followers).

    ReceiveLeadership  the turns: which thread may use the socket, one at a time
    Receiver           the work of a thread in its turn

Two threads of the transport sleep until a packet arrives, and the system wakes one of
them.  The thread that received a packet may run the request in it, while the other one
receives, so no further thread is woken.  A thread that waits for an answer leads: it
acquires the turn and receives until the answer arrives, and in that time neither of the
two threads is woken.

Rules of turns:
- releasing the turn arms the socket again, so that the next packet wakes a sleeping
  thread; with `more` one is woken at once, for packets that are in the socket already;
- one of the two threads at a time may be `away`, running a function of any duration:
  the other one stays;
- the leader is woken by `nudge`, the others by `ring`, from any thread, also from a
  signal handler and after the end;
- without epoll (systems other than Linux) threads do not lead.

Rules of receiving:
- packets are delivered by the thread that has the turn, so one at a time and in order;
- before a thread is away it receives a few packets that arrived in the meantime;
- an exception of a callback is logged, and the thread continues; on the main thread it
  is raised, as a signal handler may have raised it;
- code that interrupts a leader in its sleep may lead, too.
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

from everyorder.runtime.base.locks import reentered
from everyorder.runtime.rpc.transport.interface import LOG, Buffer, OnPacket

SUPPORTED = hasattr(select, "epoll") and hasattr(os, "eventfd")
# Milliseconds between two checks, on systems without epoll.
_LOOK = 50


class ReceiveLeadership:
    """The turns at a socket with the file descriptor `file`."""

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
        # Reentrant, as a signal handler may run at any line and asks for the owner.
        self._turn = reentered()
        # Protects the files below; held for one system call.
        self._lock = reentered()
        self._open = True
        self._file = file
        # The thread that has the turn; the same if it leads.
        self.holder = 0
        self.leader = 0
        # True while the leader sleeps.
        self.waits = False
        # The receiving thread that is away.
        self.away = 0
        self._files: list[int] = []
        if SUPPORTED:
            try:
                self._epoll = select.epoll()
                self._bell = self._eventfd()
                self._nudged = self._eventfd()
            except OSError:
                # Too many open files.
                for each in self._files:
                    os.close(each)
                raise
            # Each ring wakes one sleeping thread, or the next one that sleeps.
            self._epoll.register(self._bell, select.EPOLLIN | select.EPOLLET)
            self._epoll.register(file, select.EPOLLIN | select.EPOLLONESHOT)
        self._poll: select.poll | None = self._new_poll()

    def _eventfd(self) -> int:
        self._files.append(os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC))
        return self._files[-1]

    def _new_poll(self) -> select.poll:
        poll = select.poll()
        poll.register(self._file, select.POLLIN)
        if SUPPORTED:
            poll.register(self._nudged, select.POLLIN)
        return poll

    # The receiving threads.

    def sleep(self) -> None:
        """Sleep until a packet arrives or `ring` is called; may wake earlier."""
        if SUPPORTED:
            self._epoll.poll()
        else:
            self._new_poll().poll(_LOOK)

    def is_mine(self) -> bool:
        """Return True if this thread has the turn."""
        owned: bool = self._turn._is_owned()  # type: ignore[attr-defined]  # as Condition does
        return owned

    def take(self) -> bool:
        """Acquire the turn if it is free; return True if this thread has just acquired
        it.
        """
        if self.is_mine() or not self._turn.acquire(blocking=False):
            return False
        self.holder = get_ident()
        return True

    def give(self, *, more: bool) -> None:
        """Release the turn; `more` packets are left in the socket.

        It may be called again after an interruption.
        """
        if self.is_mine():
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
        """Wake one receiving thread."""
        with self._lock:
            if self._open and SUPPORTED:
                os.eventfd_write(self._bell, 1)

    # The leader.

    def lead(self) -> bool:
        """Acquire the turn as `take` does; packets do not wake other threads until
        `give`.
        """
        if not SUPPORTED or not self.take():
            return False
        self.leader = self.holder
        self._arm(0)
        return True

    def wait(self, milliseconds: int) -> None:
        """Sleep until a packet arrives, or `nudge` is called."""
        # Code that interrupts this sleep uses another poll object.
        poll, self._poll = self._poll or self._new_poll(), None
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
        """Make the leader evaluate its condition again, if there is one."""
        if self.leader:
            with self._lock:
                if self._open:
                    os.eventfd_write(self._nudged, 1)

    # The end.

    def close(self) -> None:
        """Close all files, once no thread has the turn; for ever."""
        self._turn.acquire()
        with self._lock:
            self._open = False
            if SUPPORTED:
                self._epoll.close()
                for each in self._files:
                    os.close(each)

    def in_child(self) -> None:
        """Close: the files belong to the parent."""
        self._open = False


Packet: TypeAlias = tuple[list[Buffer], str]

# Packets that a thread still receives before it runs a request.
_MORE_PACKETS = 4


def _ignore(frames: list[Buffer], key: str) -> None:
    """Ignore a packet; the callback before the receiver is started."""


class Receiver:
    """The threads of one socket.

    Args:
        file: file descriptor of the socket; it is readable when a packet may be
            present.
        packet: returns the next packet; None for garbage; raises `Empty` without one.
        has_more: returns True if a packet is present.
        name: of the transport, for messages.
    """

    def __init__(
        self,
        file: int,
        packet: Callable[[], Packet | None],
        has_more: Callable[[], bool],
        name: str,
    ) -> None:
        self.turns = ReceiveLeadership(file)
        self._packet = packet
        self._has_more = has_more
        self._name = name
        self._on_packet: OnPacket = _ignore
        self._closed = False

    def threads(self, on_packet: OnPacket) -> list[threading.Thread]:
        """Return the receiving threads, not started."""
        self._on_packet = on_packet
        return [
            threading.Thread(
                target=self._receive, name=f"rpc {self._name} {number}", daemon=True
            )
            for number in ((1, 2) if SUPPORTED else (1,))
        ]

    def end(self) -> None:
        """Make all threads stop receiving."""
        self._closed = True
        self.turns.ring()
        self.turns.nudge()

    def in_child(self) -> None:
        """Close: the threads belong to the parent."""
        self._closed = True
        self.turns.in_child()

    # The receiving threads.

    def _receive(self) -> None:
        turns, me = self.turns, threading.get_ident()
        while not self._closed:
            turns.sleep()
            if self._closed or not turns.take():
                continue
            follow_up: Callable[[], object] | None = None
            left, more = _MORE_PACKETS, True
            try:
                while more and left and not self._closed:
                    packet = self._packet()
                    if packet is not None:
                        follow_up = self._deliver(packet) or follow_up
                    # Do not keep large frames alive.
                    packet = None
                    left -= turns.away == me
                    more = self._has_more()
            except Empty:
                more = False
            except Exception:
                LOG.exception("%s cannot receive", self._name)
            finally:
                turns.give(more=more)
            if follow_up is not None:
                try:
                    follow_up()
                except BaseException:
                    LOG.exception("a callback of %s failed", self._name)
                follow_up = None
            if turns.away == me:
                turns.away = 0
        # The other thread must end, too.
        turns.ring()

    def _deliver(self, packet: Packet) -> Callable[[], object] | None:
        try:
            return self._on_packet(*packet)
        except Exception:
            LOG.exception("a callback of %s failed", self._name)
            return None

    def yields(self) -> bool:
        """Allow a follow-up function, as `Transport.yields`."""
        turns = self.turns
        if turns.leader or turns.away or self._closed or not SUPPORTED:
            return False
        turns.away = turns.holder
        return True

    # The leader.

    def lead(self, over: Callable[[], bool], seconds: float) -> bool:
        """Receive on this thread, as `Transport.lead`."""
        turns = self.turns
        nested = turns.is_mine()
        started = self._on_packet is not _ignore
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
                # The interrupted leader's condition may be true by now.
                turns.nudge()
            else:
                try:
                    if turns.is_mine():
                        turns.give(more=not self._closed and self._has_more())
                except BaseException:
                    # A signal handler raised it: other threads receive the rest.
                    turns.give(more=True)
                    raise
        return True

    def _lead_until(self, over: Callable[[], bool], end: float) -> None:
        ready = self._has_more()
        while True:
            if ready:
                self._lead_one()
            if self._closed or over():
                return
            # Packets that are in the socket already do not end the sleep.
            ready = self._has_more()
            if not ready:
                left = end - monotonic()
                if left <= 0:
                    return
                self.turns.wait(int(left * 1000) + 1)
                ready = True

    def _lead_one(self) -> None:
        """Deliver the next packet, if there is one, while this thread waits."""
        try:
            packet = self._packet()
        except Empty:
            return
        if packet is None:
            return
        if threading.current_thread() is threading.main_thread():
            self._on_packet(*packet)
        else:
            self._deliver(packet)

    def leads(self) -> bool:
        """Return True if this thread is delivering packets, as `Transport.leads`."""
        return self.turns.is_mine() and not self.turns.waits
