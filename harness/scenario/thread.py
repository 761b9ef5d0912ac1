"""The thread: what a call, a step and a look must leave as they found it.

True only here: how a thread is looked at so often.  The attributes of a thread's local
objects are a dict for each thread; a moment is copies of these dicts, and comparing two
dicts looks whether their values are the same objects.  Only where they are not, they
are spelled out for the laws.

Rule: a kernel may enter a mode and leave it again; the stack is another object then,
and the modes are the same.
"""

from types import SimpleNamespace
from typing import Any

from invariants.surroundings import Lockable, Surroundings, surroundings
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
