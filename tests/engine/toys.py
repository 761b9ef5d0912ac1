"""Toy registries: a sound one, and one for each family of planted faults.

True only here: each faulty toy differs from `Toy` by the one fault that its name says,
so that what an exploration finds in it can be asserted to the operation.
"""

from collections.abc import Hashable, Sequence

from everyorder.harness.engine import State, SystemBase


class Handle:
    """An undo handle that can be watched by a weak reference."""

    def __init__(self, step: int) -> None:
        self.step = step


class Refused(Exception):
    """A step that fails, with what is compared about it."""


class Toy(SystemBase):
    """A sound registry of `steps` names; uses look one up, whatever is active."""

    def __init__(self, steps: int = 3, uses: int = 0, *, printed: bool = False) -> None:
        self.steps = steps
        self.uses = uses
        self.printed = printed
        self.lives = 0
        self.clear()

    def clear(self) -> None:
        self.order: list[int] = []
        self.history: list[int] = []

    def reset(self) -> None:
        self.lives += 1
        self.clear()

    def do(self, step: int) -> object:
        self.history.append(step)
        reason = self.refuses(step)
        if reason:
            raise Refused(reason)
        self.order.append(step)
        return Handle(step)

    def refuses(self, step: int) -> str:
        return ""

    def undo(self, step: int, handle: object) -> None:
        assert isinstance(handle, Handle)
        assert handle.step == step
        self.history.append(step)
        self.order.remove(step)

    def use(self, use: int) -> Hashable:
        return len(self.order) > use

    def observe(self) -> Hashable:
        return tuple(sorted(self.order)), self.flaw()

    def flaw(self) -> Hashable:
        return ""

    def laws(self) -> Sequence[Hashable]:
        return ()

    def failure(self, error: Exception) -> Hashable:
        return type(error).__name__, *error.args

    def state(self, handles: Sequence[object] = ()) -> Hashable | None:
        return self.concrete() if self.printed else None

    def concrete(self) -> Hashable:
        return tuple(sorted(self.order)), self.flaw()


class Exclusive(Toy):
    """Sound: steps 0 and 1 refuse each other."""

    def refuses(self, step: int) -> str:
        return f"taken by {1 - step}" if step < 2 and 1 - step in self.order else ""


class Layered(Toy):
    """Sound: a step needs the one below it to be added, but not to stay."""

    def refuses(self, step: int) -> str:
        return "no base" if step and step - 1 not in self.order else ""


class Suffix(Toy):
    """A flaw while the last operations of the history are these."""

    def __init__(self, suffix: State, steps: int = 3, **more: bool) -> None:
        super().__init__(steps, **more)
        self.suffix = list(suffix)

    def flaw(self) -> Hashable:
        return "!" if self.history[-len(self.suffix) :] == self.suffix else ""


class Ordered(Toy):
    """A flaw while these steps are active in this order (others between or not)."""

    def __init__(self, pattern: State, steps: int = 3, **more: bool) -> None:
        super().__init__(steps, **more)
        self.pattern = list(pattern)

    def flaw(self) -> Hashable:
        there = [step for step in self.order if step in self.pattern]
        return "!" if there == self.pattern else ""


class Readded(Toy):
    """A flaw from the `limit`-th time on that a step is added."""

    def __init__(self, step: int, limit: int, steps: int = 3, **more: bool) -> None:
        super().__init__(steps, **more)
        self.step, self.limit = step, limit

    def flaw(self) -> Hashable:
        toggles = self.history.count(self.step)
        return "!" if (toggles + 1) // 2 >= self.limit else ""


class Sticky(Toy):
    """A hidden flag: set when 1 is added beside 0 and 2, seen when 1 is gone."""

    def clear(self) -> None:
        super().clear()
        self.flag = False

    def do(self, step: int) -> object:
        handle = super().do(step)
        if step == 1 and {0, 2} <= set(self.order):
            self.flag = True
        return handle

    def flaw(self) -> Hashable:
        return "!" if self.flag and 1 not in self.order else ""

    def concrete(self) -> Hashable:
        return tuple(sorted(self.order)), self.flag


class Wedged(Exclusive):
    """A refused step leaves its name behind."""

    def clear(self) -> None:
        super().clear()
        self.left: set[int] = set()

    def do(self, step: int) -> object:
        try:
            return super().do(step)
        except Refused:
            self.left.add(step)
            raise

    def flaw(self) -> Hashable:
        return tuple(sorted(self.left))


class Leaking(Toy):
    """Keeps the handles of step 1."""

    def clear(self) -> None:
        super().clear()
        self.kept: list[object] = []

    def do(self, step: int) -> object:
        handle = super().do(step)
        if step == 1:
            self.kept.append(handle)
        return handle


class Knot(Handle):
    """A handle that holds itself: only the cycle collector frees it."""

    def __init__(self, step: int) -> None:
        super().__init__(step)
        self.me = self


class Knotted(Toy):
    """Sound, but its handles are cycles."""

    def do(self, step: int) -> object:
        super().do(step)
        return Knot(step)


class Stale(Toy):
    """Remembers the answer of a look-up for ever; nothing occurs without a use."""

    def clear(self) -> None:
        super().clear()
        self.cache: dict[int, bool] = {}

    def use(self, use: int) -> Hashable:
        return self.cache.setdefault(use, use in self.order)


class StaleLook(Toy):
    """Remembers the first look's answer for ever."""

    def clear(self) -> None:
        super().clear()
        self.cache: State | None = None

    def observe(self) -> Hashable:
        if self.cache is None:
            self.cache = tuple(sorted(self.order))
        return super().observe(), self.cache


class Flaky(Toy):
    """Shows how often it was reset."""

    def flaw(self) -> Hashable:
        return self.lives if len(self.order) == 2 else 0


class FlakyError(Exclusive):
    """Its error carries the length of the history."""

    def refuses(self, step: int) -> str:
        reason = super().refuses(step)
        return reason and f"{reason} at {len(self.history)}"


class Sometimes(Toy):
    """Step 0 refuses when it was active before."""

    def refuses(self, step: int) -> str:
        return "again" if step == 0 and self.history.count(0) > 1 else ""


class Stuck(Toy):
    """Step 1 cannot be undone while 0 is active."""

    def undo(self, step: int, handle: object) -> None:
        if step == 1 and 0 in self.order:
            raise Refused("held by 0")
        super().undo(step, handle)


class Unlawful(Toy):
    """Breaks a law while 2 is active without 0."""

    def laws(self) -> Sequence[Hashable]:
        return ["2 needs 0"] if 2 in self.order and 0 not in self.order else []


class Meddling(Toy):
    """Its first use registers something that only the fingerprint shows."""

    def __init__(self) -> None:
        super().__init__(2, 1, printed=True)

    def clear(self) -> None:
        super().clear()
        self.used = False

    def use(self, use: int) -> Hashable:
        self.used = bool(self.order)
        return super().use(use)

    def concrete(self) -> Hashable:
        return super().concrete(), self.used


class Newest(Toy):
    """The newest wins: depends on the order by design."""

    def flaw(self) -> Hashable:
        return self.order[-1] if self.order else None
