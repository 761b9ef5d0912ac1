"""What a writer leaves in the shared cells, and what a reader makes of it."""

from array import array

from everyorder.harness.engine import progress
from everyorder.harness.engine.progress import (
    CELLS,
    RESET,
    TAIL,
    UNDO,
    OperationMark,
    ProgressWriter,
    read,
)


def cells() -> memoryview:
    return memoryview(array("Q", [0] * CELLS))


def test_nothing_has_happened() -> None:
    trail = read(cells())
    assert (trail.count, trail.beats, trail.resting) == (0, (), False)
    assert (trail.done, trail.planned) == (0, 0)


def test_the_beats_since_the_last_fresh_system() -> None:
    memory = cells()
    writer = ProgressWriter(memory)
    writer.progress(3, 40)
    writer.reset()
    writer.beat(1)
    writer.reset()
    for operation in (0, 2, UNDO, 254):
        writer.beat(operation)
    trail = read(memory)
    assert trail.beats == (
        OperationMark(RESET),
        OperationMark(0),
        OperationMark(2),
        OperationMark(0, undo=True),
        OperationMark(254),
    )
    assert (trail.count, trail.done, trail.planned) == (7, 3, 40)
    assert progress.count(memory) == 7


def test_rest_is_no_operation() -> None:
    memory = cells()
    writer = ProgressWriter(memory)
    writer.reset()
    writer.beat(1)
    writer.rest()
    assert read(memory).resting
    assert read(memory).beats == (OperationMark(RESET), OperationMark(1))
    writer.beat(2)
    assert not read(memory).resting
    assert read(memory).beats == (
        OperationMark(RESET),
        OperationMark(1),
        OperationMark(2),
    )


def test_of_a_long_history_the_last_are_known() -> None:
    memory = cells()
    writer = ProgressWriter(memory)
    writer.reset()
    for number in range(TAIL - 1):
        writer.beat(number)
    assert read(memory).beats[0] == OperationMark(RESET)
    assert len(read(memory).beats) == TAIL
    writer.beat(7)
    assert read(memory).beats == (
        *map(OperationMark, range(TAIL - 1)),
        OperationMark(7),
    )


def test_a_second_writer_goes_on() -> None:
    memory = cells()
    with progress.watched(memory) as first:
        first.beat(1)
        with progress.watched(memory) as second:
            assert progress.current() is second
            second.beat(2)
        assert progress.current() is first
    assert progress.current() is None
    assert read(memory).beats == (OperationMark(1), OperationMark(2))
