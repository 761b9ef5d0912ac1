"""Every test of calls is run twice: the plain way, and by call stubs at once."""

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from runtime.dispatch.call import Place

# The modules whose subject is a call.
CALLS = (
    *("test_caller", "test_calling_kernels", "test_handle", "test_namespace"),
    *("test_links", "test_threads", "test_upstream_fallback", "test_watch"),
)


_plain = Place.start


def start_with_stub(place: Place, /, *args: Any, **kwargs: Any) -> Any:
    """What stands for `Place.start`: make the call stub at once, and call it."""
    if _SLOW.place is place:
        return _plain(place, *args, **kwargs)
    entry = place.published()
    if entry is not None and entry.definitions:
        place._settle(place.caller(entry))
        owner = place.owner()
        if owner is not None and owner.func.__name__ == "call":
            return owner.func(*args, **kwargs)
    return _plain(place, *args, **kwargs)


class _Slow(threading.local):
    """The place whose plain way is gone, in this thread."""

    place: Place | None = None


_SLOW = _Slow()


def _slow(place: Place, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """What stands for `Place.slow`: the plain way, without another call stub."""
    before, _SLOW.place = _SLOW.place, place
    try:
        return place.start(*args, **kwargs)
    finally:
        _SLOW.place = before


def with_stubs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call goes by a call stub from the first on; the plain way stays plain."""
    monkeypatch.setattr(Place, "start", start_with_stub)
    monkeypatch.setattr(Place, "slow", _slow)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.module.__name__.rpartition(".")[2] in CALLS:
        metafunc.fixturenames.append("way")
        metafunc.parametrize("way", ["plain", "stub"], indirect=True)


@pytest.fixture
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "stub":
        with_stubs(monkeypatch)
    return str(request.param)
