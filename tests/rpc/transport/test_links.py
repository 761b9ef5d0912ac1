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
    # It ends while a link is made: that is no refusal.
    "HANDSHAKE_FAILED_NO_DETAIL DISCONNECTED CLOSED": [ABSENT],
    "HANDSHAKE_FAILED_NO_DETAIL DISCONNECTED CONNECTED HANDSHAKE_SUCCEEDED": [UP],
    "HANDSHAKE_SUCCEEDED DISCONNECTED HANDSHAKE_FAILED_NO_DETAIL DISCONNECTED CLOSED": [
        *(UP, DOWN, ABSENT)
    ],
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


def test_who_closes_in_each_handshake_refuses() -> None:
    news = LinkChanges()
    early = ["HANDSHAKE_FAILED_NO_DETAIL", "DISCONNECTED", "CONNECTED"]
    events = early * (interface.MOST_CLOSED - 1)
    # Any other result begins the count anew.
    for other in ("CLOSED", "HANDSHAKE_SUCCEEDED"):
        found = [news.link_change("there", event) for event in [*events, other]]
        assert [each.state for each in found if each][-1:] != [LinkState.REFUSED]
    news.link_change("there", "DISCONNECTED")
    found = [news.link_change("there", event) for event in [*events, *early, *early]]
    (refused,) = [each for each in found if each]
    assert (refused.endpoint, refused.state) == ("there", LinkState.REFUSED)
    assert "is about to end" in refused.detail


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
