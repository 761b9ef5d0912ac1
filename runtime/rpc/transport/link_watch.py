"""Watching: the thread that watches links and the clock, and admits keys.

The thread is nearly always asleep.  It wakes for an event of a link, for the alarm, for
a request to admit a key, and when it is told that there is something new.

Rules of pulses: a *pulse* is a second connection to a peer that carries no packets.
ZeroMQ's own threads send heartbeats on it and answer them, also while the interpreter
lock of the peer is busy, as compilation and calls of C code may keep it for long.  So:
- a pulse is opened when the link to the peer is up, and closed with the link;
- while it is up, the process of the peer was running at most `pulse` seconds ago.  A
  process that is stopped, killed or cut off does not answer, and its pulse breaks;
- packets never wait for a pulse, nor a pulse for packets: heartbeats on the link itself
  would be late behind a large payload, and break it;
- a pulse costs about five files at each side, so that none is opened by a process that
  may open few more: ZeroMQ ends a process that cannot accept a connection;
- a peer without a pulse (too few files, a key that is no longer allowed) is judged by
  its packets alone.
"""

import os
import resource
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import zmq
from zmq.utils.monitor import parse_monitor_message

from everyorder.runtime.rpc.transport.addresses import Keys, zap_answer
from everyorder.runtime.rpc.transport.interface import (
    LOG,
    Alarm,
    Link,
    LinkChanges,
    LinkState,
    OnLink,
    OnTime,
)

_Socket: TypeAlias = zmq.Socket[bytes]

# Shares of `pulse`: between two heartbeats, and for the answer to one.
_BETWEEN, _ANSWER = 0.2, 0.8
_BROKEN = (
    zmq.EVENT_DISCONNECTED
    | zmq.EVENT_CLOSED
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
)


# Files that stay free for packets: a library that finds none ends the process.
_FREE_FILES = 64


def _has_room() -> bool:
    """Return True if the process may open many more files, as far as can be seen."""
    try:
        used = len(os.listdir("/proc/self/fd"))
    except OSError:
        return True
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft == resource.RLIM_INFINITY or used + _FREE_FILES < soft


def set_heartbeats(socket: _Socket, pulse: float) -> None:
    """Set the heartbeats of a pulse, which breaks `pulse` seconds after the last sign
    of the peer.
    """
    socket.set(zmq.HEARTBEAT_IVL, max(1, int(pulse * _BETWEEN * 1000)))
    socket.set(zmq.HEARTBEAT_TIMEOUT, max(1, int(pulse * _ANSWER * 1000)))


class Monitored(NamedTuple):
    """A socket, and the socket that receives its events."""

    socket: _Socket
    monitor: _Socket


class _Watched(NamedTuple):
    """The endpoint whose events a monitor receives; "" for the own socket."""

    endpoint: str
    is_pulse: bool = False


class LinkWatch:
    """The watch of one transport.

    Args:
        zap: the socket of requests to admit a key; `keys` are the allowed ones.
        woken: the socket that wakes the thread.
        open_pulse: returns the pulse to an endpoint; None if there can be none.
        pulse: seconds after which a pulse without a sign of the peer breaks.
        name: of the transport, for messages.
    """

    def __init__(
        self,
        zap: _Socket,
        woken: _Socket,
        keys: Keys | None,
        open_pulse: Callable[[str], Monitored | None],
        pulse: float,
        name: str,
    ) -> None:
        self.alarm = Alarm()
        # Connections that were not admitted.
        self.refused = 0
        self._zap, self._woken, self._keys = zap, woken, keys
        self._open_pulse, self._pulse, self._name = open_pulse, pulse, name
        self._links: deque[Link] = deque()
        self._new: deque[tuple[_Watched, _Socket]] = deque()
        self._changes = LinkChanges()
        self._pulses: dict[str, Monitored] = {}
        # Endpoints whose pulse is up: replaced, as other threads read it.
        self._up: frozenset[str] = frozenset()
        self._closed = False

    def watch(self, endpoint: str, monitor: _Socket) -> None:
        """Watch a link; the caller wakes the thread."""
        self._new.append((_Watched(endpoint), monitor))

    def queue_link(self, link: Link) -> None:
        """Report a change of a link; the caller wakes the thread."""
        self._links.append(link)

    def alive(self) -> dict[str, float]:
        """Return the endpoints whose processes run, as `Transport.alive`."""
        return dict.fromkeys(self._up, self._pulse)

    def end(self) -> None:
        """Make the thread end; the caller wakes it."""
        self._closed = True
        self._up = frozenset()

    def close(self) -> None:
        """Close the monitors that the thread has not taken, once it has ended."""
        for _, monitor in self._new:
            monitor.close()

    def run(self, on_time: OnTime, on_link: OnLink | None) -> None:
        """Watch until the end, on the thread."""
        watched: dict[Any, _Watched] = {}
        poller = zmq.Poller()
        poller.register(self._zap, zmq.POLLIN)
        poller.register(self._woken, zmq.POLLIN)
        while not self._closed:
            try:
                while self._new:
                    what, monitor = self._new.popleft()
                    watched[monitor] = what
                    poller.register(monitor, zmq.POLLIN)
                seconds = self.alarm.sleep()
                limit = None if seconds is None else int(seconds * 1000) + 1
                ready = poller.poll(limit)
                self.alarm.awake()
                for socket, _ in ready:
                    if socket is self._zap:
                        self._answer_zap()
                    elif socket is self._woken:
                        socket.recv()
                    elif not self._report_event(socket, watched[socket]):
                        poller.unregister(socket)
                        del watched[socket]
                        socket.close()
                while self._links and not self._closed:
                    link = self._links.popleft()
                    if on_link is not None:
                        on_link(link)
                if not self._closed and self.alarm.rings():
                    on_time()
            except Exception:
                LOG.exception("a callback of %s failed", self._name)
        for each in self._pulses.values():
            each.socket.close(linger=0)
        for monitor in watched:
            monitor.close()

    def _report_event(self, monitor: _Socket, what: _Watched) -> bool:
        """Report the next event of a link; return False after the last event."""
        event = zmq.Event(parse_monitor_message(monitor.recv_multipart())["event"])
        endpoint = what.endpoint
        if event == zmq.EVENT_MONITOR_STOPPED:
            if not what.is_pulse:
                self._changes.forget(endpoint)
                self._end_pulse(endpoint)
            return False
        if what.is_pulse:
            self._report_pulse(monitor, endpoint, event)
        elif not endpoint:
            self.refused += 1
        elif link := self._changes.link_change(endpoint, event.name or ""):
            self.queue_link(link)
            if link.state is LinkState.UP:
                self._begin_pulse(endpoint)
        return True

    # Pulses.

    def _begin_pulse(self, endpoint: str) -> None:
        if endpoint in self._pulses or self._closed or not _has_room():
            return
        pulse = self._open_pulse(endpoint)
        if pulse is not None:
            self._pulses[endpoint] = pulse
            self._new.append((_Watched(endpoint, is_pulse=True), pulse.monitor))

    def _end_pulse(self, endpoint: str) -> None:
        pulse = self._pulses.pop(endpoint, None)
        self._up -= {endpoint}
        if pulse is not None:
            # Its monitor is closed at its last event.
            pulse.socket.close(linger=0)

    def _report_pulse(self, monitor: _Socket, endpoint: str, event: int) -> None:
        pulse = self._pulses.get(endpoint)
        if pulse is None or pulse.monitor is not monitor:
            # Of an earlier link to the endpoint.
            return
        if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self._up |= {endpoint}
        elif event & _BROKEN:
            self._up -= {endpoint}

    # Keys.

    def _answer_zap(self) -> None:
        """Answer a ZAP request to admit a key."""
        assert self._keys is not None, "without keys there are no requests"
        answer, key, why = zap_answer(self._zap.recv_multipart(), self._keys)
        self._zap.send_multipart(answer)
        if why:
            self.refused += 1
            if link := self._changes.stranger_change(key, why):
                self.queue_link(link)
