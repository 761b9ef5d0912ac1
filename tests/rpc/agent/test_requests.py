"""Requests: what is left of an error that was told, and what goes on after it."""

from collections.abc import Callable, Iterator
from weakref import ref

import pytest

from runtime.rpc.agent.requests import _free_frames


class Kept:
    """What a frame has; it can be seen to go."""


def fail(kept: Kept) -> None:
    raise ValueError("so")


def catches_and_goes_on() -> Iterator[object]:
    kept = Kept()
    try:
        fail(kept)
    except ValueError as error:
        caught = error
    yield caught
    yield "it goes on"


def raises_and_goes_on() -> Iterator[object]:
    try:
        raise ValueError("so")
    except ValueError as error:
        caught = error
    yield caught
    yield "it goes on"


@pytest.mark.parametrize("generator", [catches_and_goes_on, raises_and_goes_on])
def test_a_generator_that_caught_the_error_goes_on(
    generator: Callable[[], Iterator[object]],
) -> None:
    paused = generator()
    error = next(paused)
    assert isinstance(error, ValueError)
    _free_frames(error)
    assert next(paused) == "it goes on"


def ends_by_it(seen: list["ref[Kept]"]) -> Iterator[None]:
    kept = Kept()
    seen.append(ref(kept))
    yield
    fail(kept)


def test_what_frames_have_that_ended_by_the_error_goes() -> None:
    seen: list[ref[Kept]] = []
    running = ends_by_it(seen)
    next(running)
    with pytest.raises(ValueError, match="so") as caught:
        next(running)
    assert seen[0]() is not None
    _free_frames(caught.value)
    assert seen[0]() is None
