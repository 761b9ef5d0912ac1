"""Which kernels and handlers a call ran, and what it was like inside of them.

True only here: recorded functions.  A recorded kernel, handler or rule notes its step
and then calls the real one, so the system sees *what* a call reached, whatever it
returns.  A recorded kernel has the facts of the real one and the same calling
convention.

Rules:
- whoever is noted also asks whether the writers' lock is free;
- what a step made must die when it is undone; `watch` tells the laws what to look for;
- a step makes another recorded kernel the first times it is done on a fresh system, and
  then every so many times: making and watching them all would be dear.
"""

from collections.abc import Callable
from typing import Any
from weakref import ref

from harness.scenario.thread import Moment
from invariants.run import Call
from invariants.surroundings import Surroundings
from runtime.dispatch.kernel import Kernel

# What has been made by a step, by name; it dies with the step.
Watched = tuple[str, "ref[Any]"]

# A word that a violation is shrunk to is shorter; a walk is longer, and then every
# eighth kernel is another one: all of them would cost a walk 2 %.
FIRST, EVERY = 16, 8


def _free() -> bool:
    return False


class Recorder:
    """What ran, oldest first, since the list was last emptied.

    While `sample` is set, whoever runs also appends what it returns to `inside`; in any
    case they append their description to `locked` if the writers' lock `is_locked`.
    `disturbed` are calls that left their thread otherwise, or ran under the lock.
    `moment` is what the thread was in after the last action or look.
    `made` is what steps made since the list was last taken; where nobody asks the law
    about memory, nothing is `watching`, and the list stays empty.
    """

    __slots__ = (
        "disturbed",
        "inside",
        "is_locked",
        "locked",
        "made",
        "moment",
        "ran",
        "sample",
        "watching",
    )

    def __init__(self, *, watching: bool = True) -> None:
        self.watching = watching
        self.ran: list[str] = []
        self.inside: list[Surroundings] = []
        self.sample: Callable[[], Surroundings] | None = None
        self.is_locked: Callable[[], bool] = _free
        self.locked: list[str] = []
        self.disturbed: list[Call] = []
        self.moment = Moment()
        self.made: list[Watched] = []

    def note(self, label: str) -> None:
        """Somebody runs."""
        self.ran.append(label)
        if self.sample is not None:
            self.inside.append(self.sample())
        if self.is_locked():
            self.locked.append(label)

    def noting(self, function: Callable[..., Any], label: str) -> Callable[..., Any]:
        """A function that notes itself and does what `function` does; watched."""
        made = _noting(function, label, self)
        self.watch(label, made)
        return made

    def watch(self, label: str, made: Any) -> None:
        """A step has made something, which must be gone when the step is."""
        if self.watching:
            self.made.append((label, ref(made)))


def recorded(
    kernel: Kernel, origin: str, recorder: Recorder | None, debug: str | None = None
) -> Kernel:
    """`kernel`, noting its description in `recorder` whenever it runs; watched."""
    return recording(kernel, origin, recorder, debug)()


def recording(
    kernel: Kernel, origin: str, recorder: Recorder | None, debug: str | None = None
) -> Callable[[], Kernel]:
    """What makes `recorded(...)` of these, another one each time."""
    function, facts, with_keyset = kernel.function, kernel.facts, kernel.with_keyset
    if function is None or recorder is None:
        return lambda: kernel
    label = debug or f"{facts.name} ({origin})"
    noting = _linking if facts.kind == "linked" else _noting

    count = 0
    kept: Kernel | None = None

    def make() -> Kernel:
        nonlocal count, kept
        count += 1
        if count <= FIRST or not count % EVERY:
            noted = noting(function, label, recorder)
            if recorder.watching:
                recorder.made.append((label, ref(noted)))
            return Kernel(noted, facts, with_keyset)
        if kept is None:
            kept = Kernel(noting(function, label, recorder), facts, with_keyset)
        return kept

    return make


def _linking(
    factory: Callable[..., Any], label: str, recorder: Recorder
) -> Callable[..., Any]:
    # A factory is called once; what it makes is what runs.
    def linking(below: Any, keyset: Any) -> Callable[..., Any]:
        return _noting(factory(below, keyset), label, recorder)

    return linking


def _noting(
    function: Callable[..., Any], label: str, recorder: Recorder
) -> Callable[..., Any]:
    ran = recorder.ran

    # As `Recorder.note`, without a call: kernels run at every step.
    def noted(*args: Any, **kwargs: Any) -> Any:
        ran.append(label)
        if recorder.sample is not None:
            recorder.inside.append(recorder.sample())
        if recorder.is_locked():
            recorder.locked.append(label)
        return function(*args, **kwargs)

    return noted
