"""What is loaded when it is first asked for, and whether by one thread at a time."""

import threading
from typing import Any

import pytest

from everyorder.runtime.base import locks


def noted(monkeypatch: pytest.MonkeyPatch, module: Any) -> list[tuple[str, bool]]:
    """Let `load` find `module` under every name, and note each name.

    With a name stands whether another thread had to wait at that moment.
    """
    asked: list[tuple[str, bool]] = []

    def found(name: str) -> Any:
        free: list[bool] = []

        def look() -> None:
            free.append(locks.LOADING.acquire(blocking=False))
            if free[0]:
                locks.LOADING.release()

        other = threading.Thread(target=look)
        other.start()
        other.join()
        asked.append((name, not free[0]))
        return module

    monkeypatch.setattr(locks, "import_module", found)
    return asked
