"""Records what calls run, in which thread state, and what an action leaves behind.

A recorded kernel, handler or rule notes its step and then calls the real one, so the
system sees *what* a call reached, whatever it returns.  A recorded kernel has the facts
of the real one and the same calling convention.

A *moment* is the thread as a call, a step and a look must leave it.  The attributes of
a thread's local objects are a dict for each thread; a moment is copies of these dicts,
and comparing two dicts looks whether their values are the same objects.  Only where
they are not, they are spelled out for the laws: a kernel may enter a mode and leave it
again; the stack is another object then, and the modes are the same.

`Leftovers` asks the laws about threads and memory, action by action.

| after                    | the thread             | memory                      |
|--------------------------|------------------------|-----------------------------|
| a call                   | is as before           |                             |
| a registration, a look   | is as before           |                             |
| a removal, or a refusal  | is as before           | what the step made is gone  |
| a step beside the state  | may have other modes   | the same                    |
| a fresh dispatcher       |                        | so is all of the old one    |
| the end of exploring     |                        | what waits is gone, too     |

Rules:
- whoever is noted also asks whether the writers' lock is free;
- what a step made must die when it is undone; `watch` tells the laws what to look for;
- a step makes another recorded kernel the first times it is done on a fresh system, and
  then every so many times: making and watching them all would be dear;
- what is dead at once costs a look at a weak reference;
- what is alive is looked for again after the cycle collector; where that was needed, it
  lies in a cycle, and from then on what that step made waits for others of its kind;
- so those are judged late, and which action kept them is not known any more; whoever
  must know explores again without patience (`hurry`).
"""

import gc
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from weakref import ref

from everyorder.invariants import Operation, Violation, check_memory, check_thread
from everyorder.invariants.run import Call, Lockable, Surroundings, surroundings
from everyorder.runtime.dispatch.kernel import Kernel
from everyorder.runtime.dispatch.watch import DEPTH
from everyorder.runtime.keys import LOCAL
from everyorder.runtime.tensors.keys import STATE

# What a mode changes by being entered.
MODES = ("view", "stack")


class Moment:
    """A thread's keys, modes, context and nesting as they were when this was made."""

    __slots__ = ("copies", "live")

    def __init__(self) -> None:
        keys, state, depth = LOCAL.__dict__, STATE.__dict__, DEPTH.__dict__
        # These change with the thread, the copies do not.
        self.live = keys, state, depth
        self.copies = keys.copy(), state.copy(), depth.copy()

    def is_unchanged(self) -> bool:
        """Whether the thread that made this is as it was then."""
        return self.live == self.copies

    def restore(self) -> None:
        """Put the thread that made this back into it, whatever a fault left behind."""
        for live, copied in zip(self.live, self.copies, strict=True):
            live.clear()
            live.update(copied)

    def is_of_this_thread(self) -> bool:
        """Whether this thread made it."""
        return self.live[0] is LOCAL.__dict__

    def with_lock(self, lock: Lockable, like: "Moment | None" = None) -> Surroundings:
        """The state as laws compare it; with the modes, and their keys, of `like`."""
        found: Any = SimpleNamespace(**self._values())
        if like is not None:
            others = like._values()
            vars(found).update({name: others[name] for name in MODES})
        found.included, found.excluded = found.view.included, found.view.excluded
        return surroundings(found, found, lock, found)

    def _values(self) -> dict[str, Any]:
        """The attributes by name; what a thread has not set, its class has."""
        keys, state, depth = self.copies
        held = {**keys, **state, **depth}
        return {
            name: held[name] if name in held else getattr(kind, name)
            for kind, names in _NAMES
            for name in names
        }


_NAMES: tuple[tuple[type, tuple[str, ...]], ...] = (
    (type(LOCAL), ("view", "switched_in", "switched_out")),
    (type(STATE), ("stack", "snapshot", "context")),
    (type(DEPTH), ("level",)),
)


# An object that a step made, by name; it dies with the step.
Watched = tuple[str, "ref[Any]"]

# A word that a violation is shrunk to is shorter; a walk is longer, and then every
# eighth kernel is another one: all of them would cost a walk 2 %.
FIRST, EVERY = 16, 8


def _free() -> bool:
    return False


class LabelRecorder:
    """The `labels` of what ran, oldest first, since the list was last emptied.

    While `sample` is set, a function that runs also appends `sample()` to `inside`; in
    any case it appends its label to `locked` if the writers' lock `is_locked`.
    `disturbed` are calls that changed their thread, or ran under the lock.
    `moment` is the thread after the last action or look.
    `objects` were made by steps since the list was last taken; where nobody asks the
    law about memory, nothing is `watching`, and the list stays empty.
    """

    __slots__ = (
        "disturbed",
        "inside",
        "is_locked",
        "labels",
        "locked",
        "moment",
        "objects",
        "sample",
        "watching",
    )

    def __init__(self, *, watching: bool = True) -> None:
        self.watching = watching
        self.labels: list[str] = []
        self.inside: list[Surroundings] = []
        self.sample: Callable[[], Surroundings] | None = None
        self.is_locked: Callable[[], bool] = _free
        self.locked: list[str] = []
        self.disturbed: list[Call] = []
        self.moment = Moment()
        self.objects: list[Watched] = []

    def note(self, label: str) -> None:
        """Note that the function of this label runs."""
        self.labels.append(label)
        if self.sample is not None:
            self.inside.append(self.sample())
        if self.is_locked():
            self.locked.append(label)

    def recording(self, function: Callable[..., Any], label: str) -> Callable[..., Any]:
        """A watched function that notes the label and then calls `function`."""
        made = _recording_function(function, label, self)
        self.watch(label, made)
        return made

    def watch(self, label: str, made: Any) -> None:
        """Note an object of a step, which must die when the step is undone."""
        if self.watching:
            self.objects.append((label, ref(made)))


def recorded_kernel(
    kernel: Kernel,
    origin: str,
    recorder: LabelRecorder | None,
    debug: str | None = None,
) -> Kernel:
    """`kernel`, noting its description in `recorder` whenever it runs; watched."""
    return kernel_maker(kernel, origin, recorder, debug)()


def kernel_maker(
    kernel: Kernel,
    origin: str,
    recorder: LabelRecorder | None,
    debug: str | None = None,
) -> Callable[[], Kernel]:
    """A function that makes `recorded_kernel(...)` of these, another one each time."""
    function, facts, with_keyset = kernel.function, kernel.facts, kernel.with_keyset
    if function is None or recorder is None:
        return lambda: kernel
    label = debug or f"{facts.name} ({origin})"
    noting = _recording_factory if facts.kind == "linked" else _recording_function

    count = 0
    kept: Kernel | None = None

    def make() -> Kernel:
        nonlocal count, kept
        count += 1
        if count <= FIRST or not count % EVERY:
            noted = noting(function, label, recorder)
            if recorder.watching:
                recorder.objects.append((label, ref(noted)))
            return Kernel(noted, facts, with_keyset)
        if kept is None:
            kept = Kernel(noting(function, label, recorder), facts, with_keyset)
        return kept

    return make


def _recording_factory(
    factory: Callable[..., Any], label: str, recorder: LabelRecorder
) -> Callable[..., Any]:
    # A factory is called once; what it makes is what runs.
    def linking(below: Any, keyset: Any) -> Callable[..., Any]:
        return _recording_function(factory(below, keyset), label, recorder)

    return linking


def _recording_function(
    function: Callable[..., Any], label: str, recorder: LabelRecorder
) -> Callable[..., Any]:
    ran = recorder.labels

    # As `Recorder.note`, without a call: kernels run at every step.
    def noted(*args: Any, **kwargs: Any) -> Any:
        ran.append(label)
        if recorder.sample is not None:
            recorder.inside.append(recorder.sample())
        if recorder.is_locked():
            recorder.locked.append(label)
        return function(*args, **kwargs)

    return noted


# So many are collected together; collecting takes as long as a hundred steps.
TOGETHER = 256

# Generations, as the collector counts them: up to the second, and all.
YOUNG, OLDEST = 1, 2

# Stands for a step where something is given.
GIVEN = -1


class Leftovers:
    """Asks the laws about threads and memory, action by action."""

    __slots__ = ("_cyclic", "_made", "_recorder", "_together", "_waiting", "garbage")

    def __init__(self, recorder: LabelRecorder) -> None:
        self._recorder = recorder
        self._made: dict[int, list[Watched]] = {}
        # Objects that must be dead by the next `memory_violations`.
        self.garbage: list[Watched] = []
        # Labels of objects that only the collector frees, and the next to look for.
        self._cyclic: set[str] = set()
        self._waiting: list[Watched] = []
        self._together = TOGETHER

    def end_system(self, *watched: Watched) -> None:
        """Note that a system is over: all that was made in it must die."""
        recorder = self._recorder
        self.garbage += [*watched, *recorder.objects]
        for made in self._made.values():
            self.garbage += made
        self._made.clear()
        recorder.objects = []

    def begin_system(self, *, given: bool) -> None:
        """Note a fresh system; `given` says that objects so far are its own."""
        if given:
            self.note_done(GIVEN)
        recorder = self._recorder
        recorder.objects = []
        recorder.moment = Moment()

    def note_done(self, step: int) -> None:
        """Note that a step was done."""
        recorder = self._recorder
        self._made[step], recorder.objects = recorder.objects, []

    def note_refusal(self) -> None:
        """Note that a step was refused."""
        recorder = self._recorder
        self.garbage += recorder.objects
        recorder.objects = []

    def note_undone(self, step: int) -> None:
        """Note that a step was undone."""
        if step in self._made:
            self.garbage += self._made.pop(step)
        recorder = self._recorder
        if recorder.objects:
            # The step says only now what is to go with it.
            self.garbage += recorder.objects
            recorder.objects = []

    def thread_violations(
        self, action: str, lock: Lockable, *, modes_may_change: bool
    ) -> list[Violation]:
        """The broken laws about threads after an action."""
        recorder = self._recorder
        calls, before = recorder.disturbed, recorder.moment
        if not calls and before.is_unchanged():
            return []
        now = recorder.moment = Moment()
        early = before.with_lock(lock, like=now if modes_may_change else None)
        broken = check_thread(calls, [Operation(action, early, now.with_lock(lock))])
        calls.clear()
        return broken

    def memory_violations(self) -> list[Violation]:
        """The broken law about memory, for what was undone since the last call."""
        alive = [each for each in self.garbage if each[1]() is not None]
        self.garbage = []
        if not alive:
            return []
        self._waiting += [each for each in alive if each[0] in self._cyclic]
        alive = [each for each in alive if each[0] not in self._cyclic]
        if len(self._waiting) >= self._together:
            alive, self._waiting = alive + self._waiting, []
        if not alive:
            return []
        gc.collect()
        self._cyclic |= {label for label, watch in alive if watch() is None}
        return check_memory(alive)

    def final_violations(self) -> list[Violation]:
        """The broken law about memory, for whatever waits; nothing waits after that."""
        waiting, self._waiting, self.garbage = [*self._waiting, *self.garbage], [], []
        # Most of it is young, and collecting all takes as long as a small scenario.
        for oldest in (YOUNG, OLDEST):
            waiting = [each for each in waiting if each[1]() is not None]
            if not waiting:
                return []
            gc.collect(oldest)
        return check_memory(waiting)

    def hurry(self) -> None:
        """Let nothing wait from here on: each action is judged at once.

        It is dear where much lies in cycles, and meant for when something is wrong.
        """
        self._together = 1
