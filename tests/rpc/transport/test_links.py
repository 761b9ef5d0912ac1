"""What is told of links: changes, and each of them once."""

import pytest

from everyorder.runtime.rpc.transport import Link, LinkState, interface
from everyorder.runtime.rpc.transport.interface import LinkChanges

UP, DOWN, ABSENT, REFUSED = "up", "down", "absent", "refused"

TOLD = {
    # One that comes up, breaks, and comes back.
    "CONNECTED HANDSHAKE_SUCCEEDED DISCONNECTED CONNECT_RETRIED "
    "CONNECT_DELAYED CONNECTED HANDSHAKE_SUCCEEDED": [UP, DOWN, UP],
    # Nobody is there, which is found again and again; then somebody is.
    "CONNECT_DELAYED CLOSED CONNECT_RETRIED CONNECT_DELAYED CLOSED CONNECTED "
    "HANDSHAKE_SUCCEEDED": [ABSENT, UP],
    # The other one ends.
    "HANDSHAKE_SUCCEEDED DISCONNECTED CLOSED CLOSED": [UP, DOWN, ABSENT],
    # It is tried again, and refused again; then the key is allowed.
    "CONNECTED HANDSHAKE_FAILED_AUTH DISCONNECTED CONNECTED CLOSED "
    "HANDSHAKE_FAILED_AUTH DISCONNECTED HANDSHAKE_SUCCEEDED": [REFUSED, UP],
    "HANDSHAKE_FAILED_PROTOCOL DISCONNECTED": [REFUSED],
    "HANDSHAKE_FAILED_NO_DETAIL CLOSED": [REFUSED],
    # It was let in before.
    "HANDSHAKE_SUCCEEDED DISCONNECTED HANDSHAKE_FAILED_AUTH": [UP, DOWN, REFUSED],
    "LISTENING ACCEPTED BIND_FAILED": [],
}


@pytest.mark.parametrize("events", TOLD)
def test_changes_are_told_once(events: str) -> None:
    news = LinkChanges()
    found = [news.link_change("there", event) for event in events.split()]
    assert [each for each in found if each] == [
        Link("there", LinkState[name.upper()]) for name in TOLD[events]
    ]


def test_each_link_has_its_own_news() -> None:
    news = LinkChanges()
    for endpoint in ("a", "b"):
        assert news.link_change(endpoint, "CLOSED") == Link(endpoint, LinkState.ABSENT)
    news.forget("a")
    news.forget("c")
    assert news.link_change("a", "CLOSED") == Link("a", LinkState.ABSENT)
    assert news.link_change("b", "CLOSED") is None


def test_strangers_are_told_once_each_and_not_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interface, "MOST_STRANGERS", 2)
    news = LinkChanges()
    told = [news.stranger_change(key, "why") for key in "aabacbd"]
    assert [each.key for each in told if each] == ["a", "b"]
    assert told[0] == Link("", LinkState.STRANGER, "a", "why")
