"""Effects: what active steps do beside the dispatcher's state.

True only here: modes that a thread has entered, classes with handlers, contexts.  None
of them is in a `DispatcherState`; a fresh dispatcher does not take them away.

Rules:
- a step hands what ends its effect to `hold`; the handle that it gets knows no more
  than where that is kept, so whoever drops the handle ends nothing, and a reset ends
  what is left (`end_all`);
- what is undone is forgotten here at once: nothing but the effect keeps it alive.

How complete `reading` is: modes are read from the thread's stack, keys from the thread,
contexts from themselves; each is named by the step it came from.  The order of modes is
in it, and of each context everything that it registered for this dispatcher.  Two
things are left out.  Which entry of the stack brought the keys that modes include: it
hands them on when it is left, so only their sum shows.  What objects of a scenario
remember themselves, as a mode that counts: two modes of equal description must act
alike.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from harness.scenario.probes import CONTEXT, HANDLER, SUBCLASS
from harness.scenario.recorder import Recorder
from harness.scenario.subclass import ProbeSubclass
from runtime.dispatch.dump import fingerprint
from runtime.dispatch.library import Library
from runtime.errors.base import EveryorderError
from runtime.keys import LOCAL, KeySet
from runtime.python_dispatch import MAIN, Context
from runtime.tensors.keys import STATE

# What an effect is, who it is of, and for a context what it holds.
Row = tuple[Any, ...]


class Effect:
    """The undo handle of a step that has an effect; it registers nothing."""

    __slots__ = ("__weakref__", "_effects", "_place")

    # Of the dispatcher's own registrations, none.
    tokens = ()

    def __init__(self, effects: "Effects", place: int) -> None:
        self._effects = effects
        self._place = place

    def close(self) -> None:
        """End the effect; the second time nothing happens."""
        self._effects.end(self._place)


class Effects:
    """The effects of the active steps of one system, and what they made."""

    __slots__ = (
        "_ends",
        "_made",
        "_view",
        "contexts",
        "libraries",
        "opens",
        "recorder",
        "tensors",
    )

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._ends: dict[int, Callable[[], object]] = {}
        self._made = 0
        self._view = LOCAL.view
        # What opens the libraries of steps; see `opening`.
        self.opens: Callable[..., Library] = Library
        # Libraries that steps of a group share, and the origin that they have.
        self.libraries: dict[object, tuple[str, dict[Any, Library]]] = {}
        self.contexts: dict[str, Context] = {}
        # A tensor of each class with a handler, by the name of the class.
        self.tensors: dict[str, Any] = {}

    def hold(self, end: Callable[[], object]) -> Effect:
        """Keep what ends an effect; the handle that does it."""
        self._made += 1
        self._ends[self._made] = end
        return Effect(self, self._made)

    def end(self, place: int) -> None:
        """End one effect, once."""
        end = self._ends.pop(place, None)
        if end is not None:
            end()

    def end_all(self) -> None:
        """End whatever is left, last first.

        What cannot be ended any more was told before, as a law or by its state.
        """
        while self._ends:
            with suppress(EveryorderError):
                self._ends.popitem()[1]()
        # They know the dispatcher, and would keep it alive together with this.
        self.libraries.clear()

    def tensor(self, kind: str) -> Any:
        """The tensor of a kind that is made beside (`probes.is_beside`).

        None if the step that makes its class is not active.
        """
        if kind == SUBCLASS:
            return ProbeSubclass(SUBCLASS, self.recorder)
        return self.tensors.get(kind.partition(":")[2])

    @contextmanager
    def opening(self, opens: Callable[..., Library]) -> Iterator[None]:
        """Context: steps that are prepared have their libraries made by `opens`."""
        before, self.opens = self.opens, opens
        try:
            yield
        finally:
            self.opens = before

    @contextmanager
    def inside(self, name: str) -> Iterator[None]:
        """Context: the thread is in the context of that name, if it is given.

        Raises `LookupError` where its step is not active.
        """
        if not name:
            yield
            return
        if name not in self.contexts:
            raise LookupError(f"there is no context {name!r} now")
        with self.contexts[name]:
            yield

    def reading(self, dispatcher: Any) -> tuple[Row, ...]:
        """All effects, as text and numbers; nothing if there are none."""
        view, stack = LOCAL.view, STATE.stack
        if view is self._view and not (stack or self._ends):
            return ()
        rows: list[Row] = [
            ("mode", _labelled(entered.mode), _of(entered.context)) for entered in stack
        ]
        if view is not self._view:
            rows += _changed("included", self._view.included, view.included)
            rows += _changed("excluded", self._view.excluded, view.excluded)
        rows += [
            (HANDLER, name, tensor.label, _of(tensor._context))
            for name, tensor in sorted(self.tensors.items())
        ]
        for name, context in sorted(self.contexts.items()):
            own = context.own(dispatcher)
            copies = None if own is None else fingerprint(own.snapshot())
            rows.append((CONTEXT, name, "open" if context.alive else "closed", copies))
        return tuple(rows)


def shown(rows: tuple[Row, ...]) -> str:
    """A reading as people can read it: one line an effect."""
    lines = []
    for what, *rest in rows:
        words = rest[:2] if what == CONTEXT else rest
        lines.append(f"{what} {', '.join(filter(None, words))}\n")
    return "".join(lines)


def effects_of(target: Any) -> Effects:
    """The effects of a system's dispatcher."""
    found: Effects = target.effects
    return found


def _labelled(made: Any) -> str:
    """What a mode is called, by its step where it has one."""
    return str(getattr(made, "label", None) or getattr(made, "__name__", type(made)))


def _of(context: Any) -> str:
    """Whose it is, if that is not the main context."""
    if context is MAIN:
        return ""
    return f"of {context.name}" + ("" if context.alive else ", which is closed")


def _changed(what: str, before: int, now: int) -> Iterator[Row]:
    """The keys that a thread has more, or less, than at the start."""
    for how, bits in (("also", now & ~before), ("no longer", before & ~now)):
        if bits:
            named = ", ".join(key.name for key in KeySet.from_bits(bits))
            yield (what, f"{how} {named}")
