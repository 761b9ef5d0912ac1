"""What a call ran, what it was like inside, and what an action left behind.

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

from invariants import Operation, Violation, check_memory, check_thread
from invariants.run import Call, Lockable, Surroundings, surroundings
from runtime.dispatch.kernel import Kernel
from runtime.dispatch.watch import DEPTH
from runtime.keys import LOCAL
from runtime.tensors.keys import STATE

# What a mode changes by being entered.
MODES = ("view", "stack")


class Moment:
    """A thread's keys, modes, context and nesting as they were when this was made."""

    __slots__ = ("now", "then")

    def __init__(self) -> None:
        keys, state, depth = LOCAL.__dict__, STATE.__dict__, DEPTH.__dict__
        # These change with the thread, the copies do not.
        self.now = keys, state, depth
        self.then = keys.copy(), state.copy(), depth.copy()

    def is_now(self) -> bool:
        """Whether the thread that made this is in the very same."""
        return self.now == self.then

    def restore(self) -> None:
        """Put the thread that made this back into it, whatever a fault left behind."""
        for now, then in zip(self.now, self.then, strict=True):
            now.clear()
            now.update(then)

    def is_here(self) -> bool:
        """Whether this thread made it."""
        return self.now[0] is LOCAL.__dict__

    def with_lock(self, lock: Lockable, like: "Moment | None" = None) -> Surroundings:
        """What the laws compare; modes and their keys are those of `like`, if given."""
        found: Any = SimpleNamespace(**self._values())
        if like is not None:
            others = like._values()
            vars(found).update({name: others[name] for name in MODES})
        found.included, found.excluded = found.view.included, found.view.excluded
        return surroundings(found, found, lock, found)

    def _values(self) -> dict[str, Any]:
        """The attributes by name; what a thread has not set, its class has."""
        keys, state, depth = self.then
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


def recorded_kernel(
    kernel: Kernel, origin: str, recorder: Recorder | None, debug: str | None = None
) -> Kernel:
    """`kernel`, noting its description in `recorder` whenever it runs; watched."""
    return kernel_maker(kernel, origin, recorder, debug)()


def kernel_maker(
    kernel: Kernel, origin: str, recorder: Recorder | None, debug: str | None = None
) -> Callable[[], Kernel]:
    """What makes `recorded_kernel(...)` of these, another one each time."""
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


# So many are collected together; collecting takes as long as a hundred steps.
TOGETHER = 256

# Generations, as the collector counts them: up to the second, and all.
YOUNG, OLDEST = 1, 2

# Stands for a step where something is given.
GIVEN = -1


class Leftovers:
    """Asks the laws about threads and memory, action by action."""

    __slots__ = ("_cyclic", "_made", "_recorder", "_together", "_waiting", "gone")

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._made: dict[int, list[Watched]] = {}
        # What is to be dead by the next time that memory is asked.
        self.gone: list[Watched] = []
        # What only the collector frees, and what of it is to be looked for next.
        self._cyclic: set[str] = set()
        self._waiting: list[Watched] = []
        self._together = TOGETHER

    def ended(self, *gone: Watched) -> None:
        """A system is over; all that was made in it must go."""
        recorder = self._recorder
        self.gone += [*gone, *recorder.made]
        for made in self._made.values():
            self.gone += made
        self._made.clear()
        recorder.made = []

    def begin(self, *, given: bool) -> None:
        """From here on a fresh system counts, with what is `given` to it alone."""
        if given:
            self.done(GIVEN)
        recorder = self._recorder
        recorder.made = []
        recorder.moment = Moment()

    def done(self, step: int) -> None:
        """A step was done."""
        recorder = self._recorder
        self._made[step], recorder.made = recorder.made, []

    def refused(self) -> None:
        """A step was refused."""
        recorder = self._recorder
        self.gone += recorder.made
        recorder.made = []

    def undone(self, step: int) -> None:
        """A step was undone."""
        if step in self._made:
            self.gone += self._made.pop(step)
        recorder = self._recorder
        if recorder.made:
            # The step says only now what is to go with it.
            self.gone += recorder.made
            recorder.made = []

    def thread(self, what: str, lock: Lockable, *, beside: bool) -> list[Violation]:
        """The laws about threads, after `what`; `beside` a state, modes may change."""
        recorder = self._recorder
        calls, before = recorder.disturbed, recorder.moment
        if not calls and before.is_now():
            return []
        now = recorder.moment = Moment()
        early = before.with_lock(lock, like=now if beside else None)
        broken = check_thread(calls, [Operation(what, early, now.with_lock(lock))])
        calls.clear()
        return broken

    def memory(self) -> list[Violation]:
        """The law about memory, for what has been undone since it was asked last."""
        alive = [each for each in self.gone if each[1]() is not None]
        self.gone = []
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

    def last(self) -> list[Violation]:
        """The law about memory, for whatever waits; nothing waits after that."""
        waiting, self._waiting, self.gone = [*self._waiting, *self.gone], [], []
        # Most of it is young, and collecting all takes as long as a small scenario.
        for oldest in (YOUNG, OLDEST):
            waiting = [each for each in waiting if each[1]() is not None]
            if not waiting:
                return []
            gc.collect(oldest)
        return check_memory(waiting)

    def hurry(self) -> None:
        """From here on nothing waits: the action that keeps something is told at once.

        It is dear where much lies in cycles, and meant for when something is wrong.
        """
        self._together = 1
