"""Leftovers: what an action left behind in its thread and in memory.

True only here: which of the laws about threads and memory are asked after which action.

| after                    | the thread             | memory                      |
|--------------------------|------------------------|-----------------------------|
| a call                   | is as before           |                             |
| a registration, a look   | is as before           |                             |
| a removal, or a refusal  | is as before           | what the step made is gone  |
| a step beside the state  | may have other modes   | the same                    |
| a fresh dispatcher       |                        | so is all of the old one    |
| the end of exploring     |                        | what waits is gone, too     |

Rules:
- what is dead at once costs a look at a weak reference;
- what is alive is looked for again after the cycle collector; where that was needed,
  it lies in a cycle, and from then on what that step made waits for others of its kind;
- so those are judged late, and which action kept them is not known any more; whoever
  must know explores again without patience (`hurry`).
"""

import gc

from harness.scenario.recorder import Recorder, Watched
from harness.scenario.thread import Moment
from invariants import Deed, Violation, check_memory, check_thread
from invariants.surroundings import Lockable

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
        broken = check_thread(calls, [Deed(what, early, now.with_lock(lock))])
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
