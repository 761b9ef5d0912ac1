"""Receiving: the threads that take packets from a socket, and tell of them.

True only here: what a thread does that has the turn (`runtime.rpc.transport.turns`).
Two threads receive.  What a packet asks for may be done by the very thread that told
it, while the other one receives; so no further thread is woken for it.  A thread that
waits for an answer leads: it receives until that is there.

Rules:
- packets are told by who has the turn, so one after the other and in order;
- before a thread goes away it receives a few of those that came meanwhile;
- what a callback raises is logged, and the thread goes on; on the main thread it is
  raised, as the handler of a signal may have raised it;
- code that comes in between while a thread leads and sleeps may lead, too.
"""

import threading
from collections.abc import Callable
from queue import Empty
from time import monotonic
from typing import TypeAlias

from runtime.rpc.transport.interface import LOG, Buffer, OnPacket
from runtime.rpc.transport.turns import SUPPORTED, Turns

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
