"""Registries that keep an error, and by its traceback the frames of finished calls."""

from collections.abc import Callable
from typing import Any

import pytest

from everyorder import Scenario, explore, steps


class Past(Exception):
    """An error that is kept."""


def error(value: int) -> Past:
    """Return an error whose context has the value, and a traceback with frames."""
    try:
        try:
            raise Past(value)
        except Past:
            raise Past("another") from None
    except Past as caught:
        return caught.with_traceback(None)


class Handle:
    """Removes a name."""

    def __init__(self, registry: "Registry", name: str) -> None:
        self.registry, self.name = registry, name

    def close(self) -> None:
        self.registry.remove(self.name)


class Upper(Handle):
    """The same, by the method of its base."""

    def close(self) -> None:
        super().close()


class Registry:
    """Names, and how many they are as an error."""

    def __init__(self, handle: Callable[["Registry", str], Handle]) -> None:
        self.names: list[str] = []
        self.handle, self.error = handle, error(0)

    def add(self, name: str) -> Handle:
        self.names = sorted([*self.names, name])
        self.error = error(len(self.names))
        return self.handle(self, name)

    def remove(self, name: str) -> None:
        self.names = [each for each in self.names if each != name]
        self.error = error(len(self.names))

    def count(self) -> Any:
        assert self.error.__context__ is not None
        return self.error.__context__.args[0]


@pytest.mark.parametrize("handle", [Handle, Upper])
def test_what_a_traceback_keeps_is_the_same_in_each_replay(
    handle: type[Handle],
) -> None:
    """The audit of calls makes no copy of the variables that stays with the frame."""
    report = explore(
        Scenario(
            *steps("add", ["a", "b", "c"], Registry.add),
            create=lambda: Registry(handle),
            observe=lambda registry: f"{registry.names} {registry.count()}",
        )
    )
    assert report.verdict == "proven", report.exploration.violations
