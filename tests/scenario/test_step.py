from typing import Any

import pytest

from harness.scenario import Step, UseStep, step, use


class Shelf:
    """A registry of the simplest kind."""

    def __init__(self) -> None:
        self.things: list[str] = []

    def put(self, thing: str) -> "Slip":
        self.things.append(thing)
        return Slip(self, thing)


class Slip:
    def __init__(self, shelf: Shelf, thing: str) -> None:
        self.shelf, self.thing = shelf, thing

    def close(self) -> None:
        self.shelf.things.remove(self.thing)


def test_step_that_returns_an_object_with_close() -> None:
    shelf = Shelf()
    made = step('put("jar")', lambda to: to.put("jar"))
    perform = made.prepare(shelf, "step 1")
    assert shelf.things == []
    handle = perform()
    assert isinstance(handle, Slip)
    assert shelf.things == ["jar"]
    handle.close()
    assert shelf.things == []


def test_step_that_returns_a_function() -> None:
    shelf = Shelf()

    def put(to: Shelf) -> Any:
        to.things.append("jar")
        return lambda: to.things.remove("jar")

    perform = step("put", put).prepare(shelf, "step 1")
    handle = perform()
    handle.close()
    assert shelf.things == []
    perform().close()
    assert shelf.things == []


def test_step_that_returns_nothing_to_undo_it() -> None:
    perform = step("put", lambda to: len(to.things)).prepare(Shelf(), "step 1")
    with pytest.raises(TypeError) as caught:
        perform()
    assert str(caught.value) == (
        "a scenario cannot take int, returned by 'put'; it wants the function that "
        "undoes the step, or an object with close()."
    )


def test_use_returns_its_answer() -> None:
    shelf = Shelf()
    shelf.put("jar")
    made = use("count", lambda of: len(of.things))
    assert made.perform(shelf) == 1
    assert made.operators == ()


def test_texts() -> None:
    assert str(Step("put", lambda _, __: lambda: Slip(Shelf(), ""))) == "put"
    assert str(UseStep("count", lambda _: 0)) == "count"
