"""The code that the operations executed, which limits what a large state is read from.

A registry of a large package reaches most of that package by functions that no
operation calls: a class has fifty methods, each method names twenty globals, and so on.
Their globals cannot matter.  So a walk writes every function that it meets, with its
code, closure, defaults and attributes, but the globals that its code reads only if that
code was executed by an operation.

Theorem.  Let E be the code that was executed when each operation was performed once at
each form of a closed set of forms, and let the forms contain the globals that code of E
reads.  Then an operation has the same result, and the same next form, at two states of
one form.  Proof, by induction on the instructions that are executed: the operation
begins with code of E at both states.  As long as it has executed code of E only, all
that it read was in the form, or is reached from what it read; so it goes on alike, and
the next function that it calls is written alike in both forms, which includes its code.
That code was executed when the operation was performed at this form, so it is in E.

So E has to be complete.  It is recorded by a profiler, from the beginning of an
operation until its answer was read, whenever the operation is performed for the first
time at a form; and whenever a system is created or dropped.  If code runs whose globals
were left out before, the exploration restarts with these.  Where code may run unseen,
nothing is left out from then on: if

- another profiler is installed, or an operation calls `sys.setprofile`;
- an operation starts a thread, or another thread lives that is not one of a tool that
  observes;
- code names `__globals__`, by which it may read those of any function.

So it is for states of more than `LARGE` objects, or with opaque ones
(`state_reader.py`); all others are read with all that they reach.

During a warm-up only later performances count: the first one in a process imports
modules and fills memos, by code that does not run again.
"""

import _thread
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from weakref import ref

from everyorder.harness.state.code_value import read_code
from everyorder.harness.state.layout import is_library_file
from everyorder.harness.state.noise import NOISE_UNLESS_NAMED
from everyorder.harness.state.scope import FACE

_HARNESS = str(Path(__file__).parents[1])
# After so many restarts for code that ran late nothing is left out any longer.
MOST_RESTARTS = 8

# Functions after which code may run unseen.
_HIDING = (
    sys.setprofile,
    *(
        getattr(_thread, name)
        for name in ("start_new_thread", "start_joinable_thread")
        if hasattr(_thread, name)
    ),
)
_OBSERVERS = (FACE, *NOISE_UNLESS_NAMED, "pytest_timeout")


class ExecutedCode:
    """Records which code runs, and answers whether the globals of code are read."""

    def __init__(self) -> None:
        # By name and digest: code may be made anew by each operation.
        self._marks: set[tuple[str, bytes]] = set()
        self._codes: dict[int, ref[CodeType]] = {}
        # Code whose globals some walk left out.
        self._omissions: set[tuple[str, bytes]] = set()
        self._restarts = 0
        self._recording = False
        # True if nothing is left out.
        self.everything = False
        # True if a form left out what is read from now on.
        self.is_outdated = False
        # One object: each access creates another bound method.
        self.hook = self._event

    def covers(self, code: CodeType) -> bool:
        """Return True if a walk reads the globals of this code."""
        if self.everything:
            return True
        mark = code.co_qualname, read_code(code).digest
        if mark in self._marks:
            return True
        self._omissions.add(mark)
        return False

    def renew(self, *, late: bool) -> None:
        """Begin with new forms; they are `late` if a warm-up did not show this."""
        self.is_outdated = False
        self._omissions.clear()
        self._restarts += late
        self.everything = self.everything or self._restarts > MOST_RESTARTS

    def begin(self) -> None:
        """Record what runs from now on."""
        if self.everything or self._recording:
            return
        if sys.getprofile() is None:
            self._recording = True
            sys.setprofile(self.hook)
        else:
            self.read_everything()

    def end(self) -> None:
        """Stop recording."""
        if not self._recording:
            return
        self._recording = False
        if sys.getprofile() is self.hook:
            sys.setprofile(None)
        else:
            self.read_everything()
        if _has_workers():
            self.read_everything()

    def read_everything(self) -> None:
        """Leave nothing out from now on: code may have run unseen."""
        self.everything = True
        self.is_outdated = self.is_outdated or bool(self._omissions)

    def note(self, code: CodeType) -> None:
        """Record that code runs."""
        self._codes[id(code)] = ref(code)
        if _is_harness(code):
            return
        mark = code.co_qualname, read_code(code).digest
        self._marks.add(mark)
        self.is_outdated = self.is_outdated or mark in self._omissions
        if "__globals__" in code.co_names and not is_library_file(code.co_filename):
            self.read_everything()

    def note_call(self, function: object, caller: CodeType) -> None:
        """Record a call of a C function."""
        if any(function is each for each in _HIDING) and not _is_harness(caller):
            self.read_everything()

    def _event(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            reference = self._codes.get(id(frame.f_code))
            if reference is None or reference() is not frame.f_code:
                self.note(frame.f_code)
        elif event == "c_call":
            self.note_call(arg, frame.f_code)


def _is_harness(code: CodeType) -> bool:
    return code.co_filename.startswith(_HARNESS)


def _has_workers() -> bool:
    """Return True if another thread lives that may run code of an operation."""
    frames = sys._current_frames()
    # First of all: else this frame would hold itself, and those of the operation.
    frames.pop(_thread.get_ident(), None)
    return not all(map(_is_of_observer, frames.values()))


def _is_of_observer(frame: FrameType | None) -> bool:
    while frame is not None:
        module = dict.get(frame.f_globals, "__name__")
        if type(module) is str and module.partition(".")[0] in _OBSERVERS:
            return True
        frame = frame.f_back
    return False
