"""The accesses of each operation of a registry, by key.

While an `AccessFollower` follows a system, the registry's dicts and sets record their
accesses (`harness.state.keyed`).  After each operation the value at each place, and
everything outside of the places, are compared with those before it.  So for each
operation two sets of places are known: those that it accessed, and those that it wrote,
in a container or below an entry of one.

Rules:
- everything outside of the places must stay as it is, undo handles left out; else
  `changed_outside` says what did not;
- what the creation, the setup and `reset` access belongs to no operation;
- the same operations on real containers must execute the same instructions, or compiled
  code takes a keyed container for something else.
"""

import sys
import sysconfig
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from everyorder.harness.engine.independence import EVERY, Accesses, Place
from everyorder.harness.state import Portrait, differences
from everyorder.harness.state.keyed import (
    Replacement,
    is_stable,
    replace_containers,
    take,
)
from everyorder.harness.systems.state_reader import StateReader


class AccessFollower:
    """The accesses of the operations of one system, across its resets.

    With `recording` the containers record accesses, else they are the real ones: then
    only the instructions are compared.
    """

    def __init__(self, scenario_steps: int, uses: int, *, recording: bool) -> None:
        self._recording = recording
        self._path = InstructionPath()
        self._steps = scenario_steps
        self._look = scenario_steps + uses
        self._laws = self._look + 1
        self._touched: dict[int, set[Place]] = {}
        self._written: dict[int, set[Place]] = {}
        self._replaced: tuple[Replacement, ...] = ()
        self._paths: tuple[str, ...] = ()
        # The operation that runs, and those since the last state.
        self._running = 0
        self._since: set[int] = set()
        # The values at the places in the last state; the rest in all states.
        self._values: dict[Place, Portrait] | None = None
        self._rest: Portrait | None = None
        self.changed_outside = ""
        # The first values by active steps; and the places with several of them.
        self._first: dict[Hashable, dict[Place, Portrait]] = {}
        self.varying: set[Place] = set()

    @property
    def executed(self) -> int:
        """Return a number for all instructions that operations executed so far."""
        return self._path.executed

    @property
    def containers(self) -> tuple[str, ...]:
        """Return the paths of the containers that record their accesses."""
        return self._paths

    def accesses(self) -> Mapping[int, Accesses]:
        """Return the accesses of each operation so far; laws have the next number."""
        return {
            operation: Accesses(frozenset(touched), frozenset(self._written[operation]))
            for operation, touched in sorted(self._touched.items())
        }

    def adopt(self, target: Any) -> Any:
        """Return a fresh registry with containers that record accesses."""
        self._since.clear()
        self._values = None
        take()
        if not self._recording:
            return target
        target, self._replaced = replace_containers(target)
        self._paths = tuple(each.container.path for each in self._replaced)
        return target

    def release(self) -> None:
        """Give the registry its own containers back: it may outlive its system."""
        for each in self._replaced:
            each.undo()
        # Nothing else may refer to them when they are replaced again.
        self._replaced = ()

    @contextmanager
    def operation(self, kind: str, number: int) -> Iterator[None]:
        """Context: an operation runs; the release of handles is a part of the last."""
        self._take()
        if kind in ("do", "undo"):
            self._running = number
        elif kind == "use":
            self._running = self._steps + number
        elif kind == "observe":
            self._running = self._look
        elif kind == "check":
            self._running = self._laws
        self._since.add(self._running)
        try:
            with self._path:
                yield
        finally:
            self._take()

    def _take(self) -> None:
        """Note the accesses so far; texts of errors and answers belong to the last."""
        self._note(self._running, *take())

    def _note(
        self, operation: int, touched: frozenset[Place], written: frozenset[Place]
    ) -> None:
        self._touched.setdefault(operation, set()).update(touched)
        self._written.setdefault(operation, set()).update(written)

    def note_state(self, reader: StateReader, handles: Sequence[object]) -> None:
        """Compare the state with the last one, and with others of the same steps."""
        if not self._recording:
            return
        if self._values is None:
            take()  # the setup's
        self._take()
        values, rest = self._by_place(reader)
        active = tuple(each is not None for each in handles)
        self.varying |= _different(values, self._first.setdefault(active, values))
        before, self._values = self._values, values
        if before is not None:
            changed = _different(values, before)
            # What laws change is a part of the operation before them.
            for operation in self._since - {self._laws} or self._since:
                self._note(operation, changed, changed)
        self._since.clear()
        if self._rest is None:
            self._rest = rest
        elif rest != self._rest and not self.changed_outside:
            line = next(iter(differences(self._rest, rest)), "something without a path")
            self.changed_outside = line.partition(": ")[0]

    def _by_place(self, reader: StateReader) -> tuple[dict[Place, Portrait], Portrait]:
        """Return the value at each place, and the state without the containers."""
        with _emptied([each.container for each in self._replaced]) as contents:
            values = {
                place: reader.portrait_of(value)
                for path, content in contents.items()
                for place, value in _entries(path, content)
            }
            return values, reader.portrait([None] * self._steps)


def _different(
    one: dict[Place, Portrait], other: dict[Place, Portrait]
) -> frozenset[Place]:
    """Return the places with two values."""
    places = one.keys() | other.keys()
    return frozenset(each for each in places if one.get(each) != other.get(each))


def _entries(path: str, content: Any) -> Iterator[tuple[Place, object]]:
    """Yield the place and the value of each entry.

    All of a container is one place if a key in it names no place.
    """
    if not all(map(is_stable, content)):
        yield (path, EVERY), content
        return
    for key in content:
        yield (path, key), content[key] if isinstance(content, dict) else True


@contextmanager
def _emptied(containers: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Context: the containers look empty; their contents, by path."""
    contents = {each.path: each.content for each in containers}
    assert len(contents) == len(containers), "paths are unique"
    for each in containers:
        each.content = None
    try:
        yield contents
    finally:
        for each in containers:
            each.content = contents[each.path]


class InstructionPath:
    """Context: the instructions that are executed, and the errors that they raise.

    Those of the harness are left out, those that it calls in the standard library, and
    those of abstract classes, which cache answers.  An error is compared by its type.
    """

    def __init__(self) -> None:
        self.executed = 0
        self._before: Any = None

    def __enter__(self) -> None:
        self._before = sys.gettrace()
        sys.settrace(self._trace)

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if event == "call":
            if _is_left_out(frame):
                return None
            frame.f_trace_lines, frame.f_trace_opcodes = False, True
        raised = argument[0] if event == "exception" else None
        where = hash(code), frame.f_lasti, event, raised
        self.executed = hash((self.executed, where))
        return self._trace


def _is_left_out(frame: FrameType) -> bool:
    if frame.f_code.co_filename.startswith(_LEFT_OUT):
        return True
    caller: FrameType | None = frame
    # A frame of the user's own code is its own caller here.
    while caller is not None and _is_of_library(caller):
        caller = caller.f_back
    return caller is not None and caller.f_code.co_filename.startswith(_HARNESS)


def _is_of_library(frame: FrameType) -> bool:
    """Return True for code of the standard library, its generated code included."""
    name = frame.f_code.co_filename
    if name == "<string>":
        return frame.f_back is not None and _is_of_library(frame.f_back)
    installed = "site-packages" in name or "dist-packages" in name
    return name.startswith(_LIBRARY) and not installed


_HARNESS = str(Path(__file__).parents[1])
_LEFT_OUT = (_HARNESS, "<frozen abc>", "<frozen _collections_abc>")
_LIBRARY = (sysconfig.get_path("stdlib"), "<frozen")
