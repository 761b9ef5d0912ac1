"""Every test of calls is run twice: the plain way, and by fronts at once."""

from typing import Any

import pytest

from runtime.dispatch.place import Place

# The modules whose subject is a call.
CALLS = (
    *("test_caller", "test_calling_kernels", "test_handle", "test_namespace"),
    *("test_links", "test_threads", "test_upstream_fallback", "test_watch"),
)


_plain = Place.start


def start_with_front(place: Place, /, *args: Any, **kwargs: Any) -> Any:
    """What stands for `Place.start`: make the front at once, and call it."""
    entry = place.published()
    if entry is not None and entry.definitions:
        place._settle(place.caller(entry))
        owner = place.owner()
        if owner is not None and owner.func.__name__ == "call":
            return owner.func(*args, **kwargs)
    return _plain(place, *args, **kwargs)


def with_fronts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call goes by a front from the first on; a front's plain way stays plain."""
    monkeypatch.setattr(Place, "start", start_with_front)
    monkeypatch.setattr(
        Place, "slow", lambda place, args, kwargs: _plain(place, *args, **kwargs)
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.module.__name__.rpartition(".")[2] in CALLS:
        metafunc.fixturenames.append("way")
        metafunc.parametrize("way", ["plain", "front"], indirect=True)


@pytest.fixture
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "front":
        with_fronts(monkeypatch)
    return str(request.param)
