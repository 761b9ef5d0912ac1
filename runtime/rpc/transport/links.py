"""Links: what the events of sockets mean, and what is told of them.

True only here: which of many events a worker is told.  A link that cannot be made is
tried again several times a second, and each time has the same few events.

Rules: what became of a link is told when it changes, not each time it is found so;
after a refusal only success is news.  Strangers are told one by one, each key once, up
to `MOST_STRANGERS`: their number is theirs to choose.
"""

from runtime.rpc.transport.interface import Link, LinkState

MOST_STRANGERS = 100

# By the names that ZeroMQ has for its events.
_STATES = {
    "HANDSHAKE_SUCCEEDED": LinkState.UP,
    "DISCONNECTED": LinkState.DOWN,
    "CLOSED": LinkState.ABSENT,
    "HANDSHAKE_FAILED_AUTH": LinkState.REFUSED,
    "HANDSHAKE_FAILED_NO_DETAIL": LinkState.REFUSED,
    "HANDSHAKE_FAILED_PROTOCOL": LinkState.REFUSED,
}


class News:
    """What was told, and so is none any more."""

    def __init__(self) -> None:
        self._states: dict[str, LinkState] = {}
        self._strangers: set[str] = set()

    def of_link(self, endpoint: str, event: str) -> Link | None:
        """What there is to tell of a link after an event; None: nothing."""
        state = _STATES.get(event)
        told = self._states.get(endpoint)
        refused = told is LinkState.REFUSED and state is not LinkState.UP
        if state is None or state is told or refused:
            return None
        self._states[endpoint] = state
        return Link(endpoint, state)

    def forget(self, endpoint: str) -> None:
        """Begin anew with a link that is given up."""
        self._states.pop(endpoint, None)

    def of_stranger(self, key: str, why: str) -> Link | None:
        """What there is to tell of somebody who was not let in; None: nothing."""
        if key in self._strangers or len(self._strangers) >= MOST_STRANGERS:
            return None
        self._strangers.add(key)
        return Link("", LinkState.STRANGER, key, why)
