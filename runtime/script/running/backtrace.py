"""Backtraces: where in the program an exception came from.

True only here: how an exception carries the frames of the program.

Rules:
- an exception that leaves a program is the very object that was raised within, with a
  note that tells the frames, outermost first, and `script_frames` gives them as data;
- each frame puts itself on the exception as it passes, so that nothing is paid while
  nothing is raised;
- what a forked task raised is raised by everybody who waits: the frames of the task
  stay, and those of the one who waited last stand above them;
- an exception that cannot carry attributes goes without frames.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from runtime.errors.source import Source
from runtime.script.ir import Place

# What the note begins with.
HEAD = "Traceback of the program (most recent call last):"
# Of more frames than twice as many, those in the middle are counted only.
SHOWN = 8

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


def passed(error: BaseException, function: str, place: Place | None) -> None:
    """An exception passes a frame on its way out."""
    attributes = getattr(error, "__dict__", None)
    if attributes is None:
        return
    frames = attributes.get(_FRAMES)
    if frames is None:
        frames = attributes[_FRAMES] = []
    frames.append(Frame(function, place))


def script_frames(error: BaseException) -> tuple[Frame, ...]:
    """The frames of the program that an exception passed, outermost first."""
    frames: Sequence[Frame] = getattr(error, _FRAMES, ())
    return tuple(reversed(frames))


def keep(error: BaseException) -> None:
    """Keep the frames of a task that failed: `again` begins with them."""
    with suppress(AttributeError):
        vars(error)[_BASE] = tuple(vars(error).get(_FRAMES, ()))
    note(error)


def again(error: BaseException) -> None:
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
