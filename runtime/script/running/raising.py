"""What programs raise and warn: exceptions, the frames they carry, collected warnings.

Rules of exceptions:
- a program raises the class that it names, which is that of Python's; it is found by
  its path among what loaded modules, and classes in them, have already: no attribute is
  computed, and nothing imported, because a program says so; what is no class of
  exceptions, or does not take one text, is raised as `RunningError` with the name and
  the message.

Rules of backtraces:
- an exception that leaves a program is the very object that was raised within, with a
  note that tells the frames, outermost first, and `script_frames` gives them as data;
- each frame puts itself on the exception as it passes, so that nothing is paid while
  nothing is raised;
- what a forked task raised is raised by everybody who waits: the frames of the task
  stay, and those of the one who waited last stand above them;
- an exception that cannot carry attributes goes without frames.

Rules of warnings:
- a call from Python begins a run; what programs warn of within it is collected, in
  order, and raised at its end, with the place in the program as its place;
- a node that warns does so once in a run, however often it is run;
- a filter may turn a warning into an error, which takes the place of the result; where
  an error is on its way already, it stays, and all warnings are told;
- calls within a run belong to it, and so do its forked tasks; what they warn of when
  it is over is raised at once.
"""

import builtins
import sys
import threading
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType, ModuleType
from typing import Any

from runtime.errors.script import RunningError
from runtime.errors.source import Source
from runtime.script.ir import Node, Place


def exception(kind: str, message: str) -> BaseException:
    """The exception of a class, by its path, with a message."""
    found = _class(kind)
    if found is not None:
        try:
            made = found(message)
        except Exception:
            made = None
        if isinstance(made, Exception):
            return made
    return RunningError(code="ScriptRaised", kind=kind or "Exception", message=message)


def _class(path: str) -> Any:
    """The class of exceptions that a path names, or None."""
    module, _, name = path.rpartition(".")
    found: Any = None
    if not module:
        found = getattr(builtins, name, None)
    # The class may lie within other classes.
    within: list[str] = [name]
    while module and found is None:
        loaded = sys.modules.get(module)
        if loaded is not None:
            found = loaded
            for each in within:
                # As it lies there: modules that load when asked are not asked.
                fits = isinstance(found, type | ModuleType)
                found = vars(found).get(each) if fits else None
            break
        module, _, outer = module.rpartition(".")
        within.insert(0, outer)
    fits = isinstance(found, type) and issubclass(found, Exception)
    return found if fits else None


# What the note begins with.
HEAD = "Traceback of the program (most recent call last):"
# Of more frames than twice as many, those in the middle are counted only.
SHOWN = 8

# How a group of operators is called, as long as nobody knows of which function.
FUSED = "<fused>"

_FRAMES, _BASE, _NOTE = "_script_frames", "_script_base", "_script_note"


@dataclass(frozen=True, slots=True)
class Frame:
    """A call of the program: the function, and where in it the program was."""

    function: str
    place: Place | None

    def render(self) -> str:
        """File, line and function, and the lines of the source that are meant."""
        if self.place is None:
            return f"  in {self.function}"
        source, (start, end) = self.place
        first, last = source.place(start)[0], source.place(max(start, end - 1))[0]
        head = f'  File "{source.file or "<text>"}", line {first}, in {self.function}'
        rows = source.text.split("\n")[first - source.line : last - source.line + 1]
        # Of a graph that was read from text, the source may not be there.
        if not "".join(rows).strip():
            return head
        lines = Source("\n".join(rows), source.file, first)
        begin = source.offset(first, 1)
        drawn = lines.excerpt((start - begin, end - begin)).partition("\n")[2]
        return f"{head}\n{drawn}"


def add_frame(error: BaseException, function: str, place: Place | None) -> None:
    """An exception passes a frame on its way out."""
    attributes = getattr(error, "__dict__", None)
    if attributes is None:
        return
    frames = attributes.get(_FRAMES)
    if frames is None:
        frames = attributes[_FRAMES] = []
    elif frames and frames[-1].function == FUSED:
        # A group is a part of the function that it was formed in.
        frames[-1] = Frame(function, frames[-1].place)
        return
    frames.append(Frame(function, place))


def script_frames(error: BaseException) -> tuple[Frame, ...]:
    """The frames of the program that an exception passed, outermost first."""
    frames: Sequence[Frame] = getattr(error, _FRAMES, ())
    return tuple(reversed(frames))


def keep_frames(error: BaseException) -> None:
    """Keep the frames of a task that failed: `again` begins with them."""
    with suppress(AttributeError):
        vars(error)[_BASE] = tuple(vars(error).get(_FRAMES, ()))
    note(error)


def restore_frames(error: BaseException) -> None:
    """An exception of a task is raised by one who waited for the task."""
    base = getattr(error, _BASE, None)
    if base is not None:
        vars(error)[_FRAMES] = [*base]


def note(error: BaseException) -> None:
    """Let the note of an exception tell the frames that it passed so far."""
    frames = script_frames(error)
    if not frames:
        return
    text = "\n".join((HEAD, *_rendered(frames)))
    with suppress(AttributeError):
        attributes = vars(error)
        notes = getattr(error, "__notes__", [])
        before = attributes.get(_NOTE)
        if before in notes:
            notes[notes.index(before)] = text
        else:
            error.add_note(text)
        attributes[_NOTE] = text


def _rendered(frames: tuple[Frame, ...]) -> list[str]:
    if len(frames) <= 2 * SHOWN:
        return [each.render() for each in frames]
    first, last = frames[:SHOWN], frames[-SHOWN:]
    between = f"  ... {len(frames) - 2 * SHOWN} more calls ..."
    return [
        *(each.render() for each in first),
        between,
        *(each.render() for each in last),
    ]


class _Local(threading.local):
    """The run that a thread is in."""

    run: "Run | None" = None


RUN = _Local()


class Run:
    """A call from Python; `warned` has what it warned of, by the nodes, in order.

    Tasks of the run may go on when it is over, and what they warn of is raised at once.
    A message is taken out of its list by whoever raises it: once, whoever is first.
    """

    # Most runs end without a warning: what holds them is made by the first.
    warned: Mapping[Node, list[str]] = MappingProxyType({})
    is_over = False

    def finish(self, is_failing: bool) -> None:
        """Raise what was collected; `is_failing`: an error is on its way.

        Raises:
            Warning: a filter turned a warning into an error, and none is on its way.
        """
        self.is_over = True
        for node in list(self.warned):
            try:
                self._tell(node)
            except Warning:
                # The error that is on its way is what the caller has to see.
                if not is_failing:
                    raise

    def warn(self, message: str, node: Node) -> None:
        """Collect a warning, unless the node has warned."""
        # Two tasks may be the first: each step is one that both see alike.
        warned: dict[Node, list[str]] = vars(self).setdefault("warned", {})
        mine = [message]
        if warned.setdefault(node, mine) is mine and self.is_over:
            self._tell(node)

    def _tell(self, node: Node) -> None:
        try:
            message = self.warned[node].pop()
        except IndexError:
            return
        _raise(message, node)


def warn(message: str, node: Node) -> None:
    """A program warns, at a node."""
    run = RUN.run
    if run is None:
        _raise(message, node)
    else:
        run.warn(message, node)


def _raise(message: str, node: Node) -> None:
    file, line = "<program>", 1
    if node.place is not None:
        source, (start, _) = node.place
        file, (line, _) = source.file or file, source.place(start)
    warnings.warn_explicit(message, UserWarning, file, line)
