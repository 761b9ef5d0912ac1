"""Recording of the kernels that calls run, the thread state, and leftover objects.

A recorded kernel, handler or rule notes its step and then calls the real one, so the
system observes *which* kernel a call reached, for every result. A recorded kernel has
the traits and the calling convention of the real one.

A *moment* is the state of the thread, which a call, a step and a look must not change.
The attributes of a thread's local objects are a dict for each thread; a moment is
copies of these dicts, and comparing two dicts checks that their values are the same
objects. Only if they are not, they are expanded for the laws: a kernel may enter a mode
and leave it again; the stack is another object then, and the modes are the same.

`Leftovers` checks the laws about threads and memory, action by action.

| after                    | the thread             | memory                      |
|--------------------------|------------------------|-----------------------------| | a
call                   | is as before           |                             | | a
registration, a look   | is as before           |                             | | a
removal, or a refusal  | is as before           | the step's objects are dead | | an
effect step           | may have other modes   | the same                    | | a fresh
dispatcher       |                        | so is all of the old one    | | the end of
exploring     |                        | so are all waiting objects  |

Rules:
- each noted run also records that the writers' lock was held, if it was;
- the objects that a step creates must die when it is undone; `watch` lists them for
  the laws;
- a step creates a new recorded kernel the first times it is done on a fresh system, and
  then every so many times: creating and watching all of them is expensive;
- an object that dies at once costs one check of a weak reference;
- a live object is checked again after the cycle collector; if that was needed, it is
  part of a cycle, and from then on that step's objects wait for others of their kind;
- such objects are judged late, and the action that kept them alive is unknown by then;
  a caller that needs it explores again with immediate checks (`hurry`).
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

# Attributes that change when a mode is entered.
MODES = ("view", "stack")


class Moment:
    """A thread's keys, modes, context and nesting at the time of creation."""

    __slots__ = ("copies", "live")

    def __init__(self) -> None:
        keys, state, depth = LOCAL.__dict__, STATE.__dict__, DEPTH.__dict__
        # These change with the thread, the copies do not.
        self.live = keys, state, depth
        self.copies = keys.copy(), state.copy(), depth.copy()

    def is_unchanged(self) -> bool:
        """Return True if the thread that created this has not changed since."""
        return self.live == self.copies

    def restore(self) -> None:
        """Restore the state of the thread that created this, after any fault."""
        for live, copied in zip(self.live, self.copies, strict=True):
            live.clear()
            live.update(copied)

    def is_of_this_thread(self) -> bool:
        """Return True if this thread created it."""
        return self.live[0] is LOCAL.__dict__

    def with_lock(self, lock: Lockable, like: "Moment | None" = None) -> Surroundings:
        """Return the state for the laws; with the modes, and their keys, of `like`."""
        values: Any = SimpleNamespace(**self._values())
        if like is not None:
            others = like._values()
            vars(values).update({name: others[name] for name in MODES})
        values.included, values.excluded = values.view.included, values.view.excluded
        return surroundings(values, values, lock, values)

    def _values(self) -> dict[str, Any]:
        """Return the attributes by name; the class has the defaults of unset ones."""
        keys, state, depth = self.copies
        merged = {**keys, **state, **depth}
        return {
            name: merged[name] if name in merged else getattr(kind, name)
            for kind, names in _NAMES
            for name in names
        }


_NAMES: tuple[tuple[type, tuple[str, ...]], ...] = (
    (type(LOCAL), ("view", "switched_in", "switched_out")),
    (type(STATE), ("stack", "snapshot", "context")),
    (type(DEPTH), ("level",)),
)


# An object that a step created, by name; it dies with the step.
Watched = tuple[str, "ref[Any]"]

# Shrunk violations are shorter than `FIRST`. A walk is longer; from there on every
# eighth kernel is a new one: creating all of them would slow a walk by 2 %.
FIRST, EVERY = 16, 8


def _free() -> bool:
    return False


class LabelRecorder:
    """The `labels` of the functions that ran, oldest first, since the list was emptied.

    While `sample` is set, a function that runs also appends `sample()` to `inside`; in
    any case it appends its label to `locked` if the writers' lock `is_locked`.
    `disturbed` are calls that changed their thread, or ran under the lock. `moment` is
    the thread after the last action or look. `objects` were created by steps since the
    list was last taken; it stays empty unless `watching`, which only the law about
    memory needs.
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
        """Note that the function with this label runs."""
        self.labels.append(label)
        if self.sample is not None:
            self.inside.append(self.sample())
        if self.is_locked():
            self.locked.append(label)

    def recording(self, function: Callable[..., Any], label: str) -> Callable[..., Any]:
        """Return a watched function that notes the label and then calls `function`."""
        noting = _recording_function(function, label, self)
        self.watch(label, noting)
        return noting

    def watch(self, label: str, target: Any) -> None:
        """Note an object of a step, which must die when the step is undone."""
        if self.watching:
            self.objects.append((label, ref(target)))


def recorded_kernel(
    kernel: Kernel,
    origin: str,
    recorder: LabelRecorder | None,
    debug: str | None = None,
) -> Kernel:
    """Return `kernel` as a watched kernel that records each run in `recorder`."""
    return kernel_maker(kernel, origin, recorder, debug)()


def kernel_maker(
    kernel: Kernel,
    origin: str,
    recorder: LabelRecorder | None,
    debug: str | None = None,
) -> Callable[[], Kernel]:
    """Return a function that creates a new `recorded_kernel(...)` on each call.

    To save time, it reuses one kernel for most calls after the first `FIRST`.
    """
    function, facts, with_keyset = kernel.function, kernel.facts, kernel.with_keyset
    if function is None or recorder is None:
        return lambda: kernel
    label = debug or f"{facts.name} ({origin})"
    noting = _recording_factory if facts.kind == "linked" else _recording_function

    count = 0
    reused: Kernel | None = None

    def make() -> Kernel:
        nonlocal count, reused
        count += 1
        if count <= FIRST or not count % EVERY:
            noted = noting(function, label, recorder)
            if recorder.watching:
                recorder.objects.append((label, ref(noted)))
            return Kernel(noted, facts, with_keyset)
        if reused is None:
            reused = Kernel(noting(function, label, recorder), facts, with_keyset)
        return reused

    return make


def _recording_factory(
    factory: Callable[..., Any], label: str, recorder: LabelRecorder
) -> Callable[..., Any]:
    # A factory is called once; its result is the function that runs.
    def linking(below: Any, keyset: Any) -> Callable[..., Any]:
        return _recording_function(factory(below, keyset), label, recorder)

    return linking


def _recording_function(
    function: Callable[..., Any], label: str, recorder: LabelRecorder
) -> Callable[..., Any]:
    ran = recorder.labels

    # As `LabelRecorder.note`, without a call: kernels run at every step.
    def noted(*args: Any, **kwargs: Any) -> Any:
        ran.append(label)
        if recorder.sample is not None:
            recorder.inside.append(recorder.sample())
        if recorder.is_locked():
            recorder.locked.append(label)
        return function(*args, **kwargs)

    return noted


# Number of objects collected together: a collection takes as long as 100 steps.
TOGETHER = 256

# Generations, as the collector counts them: up to the second, and all.
YOUNG, OLDEST = 1, 2

# Key of the objects of `Scenario.given`, instead of a step number.
GIVEN = -1


class Leftovers:
    """Checks the laws about threads and memory, action by action."""

    __slots__ = ("_created", "_cyclic", "_recorder", "_together", "_waiting", "garbage")

    def __init__(self, recorder: LabelRecorder) -> None:
        self._recorder = recorder
        self._created: dict[int, list[Watched]] = {}
        # Objects that must be dead by the next `memory_violations`.
        self.garbage: list[Watched] = []
        # Labels of objects that only the collector frees, and the objects to check
        # next.
        self._cyclic: set[str] = set()
        self._waiting: list[Watched] = []
        self._together = TOGETHER

    def end_system(self, *watched: Watched) -> None:
        """Note the end of a system: all objects created in it must die."""
        recorder = self._recorder
        self.garbage += [*watched, *recorder.objects]
        for objects in self._created.values():
            self.garbage += objects
        self._created.clear()
        recorder.objects = []

    def begin_system(self, *, given: bool) -> None:
        """Note a fresh system; if `given`, the objects belong to `Scenario.given`."""
        if given:
            self.note_done(GIVEN)
        recorder = self._recorder
        recorder.objects = []
        recorder.moment = Moment()

    def note_done(self, step: int) -> None:
        """Note that a step was done."""
        recorder = self._recorder
        self._created[step], recorder.objects = recorder.objects, []

    def note_refusal(self) -> None:
        """Note that a step was refused."""
        recorder = self._recorder
        self.garbage += recorder.objects
        recorder.objects = []

    def note_undone(self, step: int) -> None:
        """Note that a step was undone."""
        if step in self._created:
            self.garbage += self._created.pop(step)
        recorder = self._recorder
        if recorder.objects:
            # The undo itself has registered objects that must die with the step.
            self.garbage += recorder.objects
            recorder.objects = []

    def thread_violations(
        self, action: str, lock: Lockable, *, modes_may_change: bool
    ) -> list[Violation]:
        """Return the broken laws about threads after an action."""
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
        """Return violations of the law about memory since the last call."""
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
        """Check the law about memory for all waiting objects, and clear them."""
        waiting, self._waiting, self.garbage = [*self._waiting, *self.garbage], [], []
        # Most are young, and a full collection takes as long as a small scenario.
        for oldest in (YOUNG, OLDEST):
            waiting = [each for each in waiting if each[1]() is not None]
            if not waiting:
                return []
            gc.collect(oldest)
        return check_memory(waiting)

    def hurry(self) -> None:
        """Check each action at once from here on; no object waits.

        This is expensive if many objects are in cycles; use it to locate a violation.
        """
        self._together = 1
