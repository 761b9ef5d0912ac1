"""Every test of calls is run twice: by the slow path, and by call stubs at once."""

import threading
from collections.abc import Mapping
from types import FunctionType
from typing import Any

import pytest

from everyorder.runtime.dispatch.kernel_lookup import OperatorRef

# The modules whose subject is a call.
CALLS = (
    *("test_caller", "test_calling_kernels", "test_handle", "test_namespace"),
    *("test_links", "test_threads", "test_upstream_fallback", "test_watch"),
)


_slow_call = OperatorRef.call


def call_with_stub(callee: OperatorRef, /, *args: Any, **kwargs: Any) -> Any:
    """What stands for `OperatorRef.call`: make the call stub at once, and call it."""
    if _SLOW.callee is callee:
        return _slow_call(callee, *args, **kwargs)
    entry = callee.current_entry()
    if entry is not None and entry.definitions:
        callee._install_stub(callee.caller(entry))
        owner = callee.owner()
        if owner is not None and isinstance(owner.func, FunctionType):
            return owner.func(*args, **kwargs)
    return _slow_call(callee, *args, **kwargs)


class _Slow(threading.local):
    """The callee whose slow path is taken, in this thread."""

    callee: OperatorRef | None = None


_SLOW = _Slow()


def _slow(callee: OperatorRef, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """What stands for `OperatorRef.slow_path`: it, without another call stub."""
    before, _SLOW.callee = _SLOW.callee, callee
    try:
        return callee.call(*args, **kwargs)
    finally:
        _SLOW.callee = before


def with_stubs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call goes by a call stub from the first on; the slow path stays slow."""
    monkeypatch.setattr(OperatorRef, "call", call_with_stub)
    monkeypatch.setattr(OperatorRef, "slow_path", _slow)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.module.__name__.rpartition(".")[2] in CALLS:
        metafunc.fixturenames.append("way")
        metafunc.parametrize("way", ["plain", "stub"], indirect=True)


@pytest.fixture
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "stub":
        with_stubs(monkeypatch)
    return str(request.param)
