"""Breadth first over every world that can be reached, with the shortest way back.

True only here: what was seen, and how a history is told.  A world whose form was seen
is not taken again; forms are 128 bits of a hash, so two different worlds among a
million pass for one with a chance below 1e-26.

Worlds without a clock stop where no step is left, and then nothing remains (`explore`);
those with one go on giving signs of life, so it is shown that each can come to rest
(`explore_to_rest`).
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol, Self

from everyorder.runtime.rpc.protocol.reference_machine import ReferenceMachine
from tests.rpc.exploring.form import form
from tests.rpc.exploring.laws import LAWS, nothing_remains
from tests.rpc.exploring.world import Bounds, Broken, Step, World


@dataclass(frozen=True, slots=True)
class Found:
    """What exploring found: how much there is, and the shortest way to a fault."""

    states: int
    steps: int
    depth: int
    rests: int
    fault: str | None = None
    history: tuple[Step, ...] = ()
    kinds: Counter[str] = field(default_factory=Counter)


def explore(
    bounds: Bounds,
    machine: type[ReferenceMachine] = ReferenceMachine,
    *,
    most: int | None = None,
    progress: Callable[[int, int, int], None] | None = None,
) -> Found:
    """Every world within the bounds, or the first that breaks a law.

    Raises:
        AssertionError: there are more than `most`.
    """
    first = World(bounds, machine)
    start = form(first)
    before: dict[bytes, tuple[bytes, Step] | None] = {start: None}
    level, depth, steps, rests = [(start, first)], 0, 0, 0
    kinds: Counter[str] = Counter()

    def told(name: bytes, *last: Step) -> tuple[Step, ...]:
        history = list(last)
        while (way := before[name]) is not None:
            name, step = way
            history.append(step)
        return tuple(reversed(history))

    while level:
        if progress is not None:
            progress(depth, len(level), len(before))
        following = []
        for name, world in level:
            enabled = False
            for step in world.steps():
                enabled = True
                steps += 1
                kinds[step[0]] += 1
                fault = None
                try:
                    after = world.after(step)
                except Broken as broken:
                    fault = str(broken)
                except Exception as error:
                    fault = f"{type(error).__name__}: {error}"
                else:
                    seen = form(after)
                    if seen in before:
                        continue
                    before[seen] = name, step
                    following.append((seen, after))
                    assert most is None or len(before) <= most, "more than the bound"
                    fault = next(filter(None, (law(after) for law in LAWS)), None)
                if fault is not None:
                    history = told(name, step)
                    return Found(
                        len(before), steps, depth + 1, rests, fault, history, kinds
                    )
            if not enabled:
                rests += 1
                fault = nothing_remains(world)
                if fault is not None:
                    history = told(name)
                    return Found(
                        len(before), steps, depth, rests, fault, history, kinds
                    )
        level, depth = following, depth + 1
    return Found(len(before), steps, depth - 1, rests, kinds=kinds)


class Restless(Protocol):
    """A world with a clock."""

    def steps(self) -> Iterable[Step]:
        """Every step that may come next."""

    def after(self, step: Step) -> Self:
        """The world after a step; raises `Broken` where the step breaks a law."""

    def rests(self) -> bool:
        """Whether nothing is left to be done; raises `Broken` where a law does not."""

    def form(self) -> bytes:
        """Everything, as 16 bytes."""


def explore_to_rest(first: Restless) -> Found:
    """Every world that can be reached, or the first from which none at rest can be."""
    start = first.form()
    before: dict[bytes, tuple[bytes, Step] | None] = {start: None}
    ways: dict[bytes, list[bytes]] = {start: []}
    level, depth, steps = [(start, first)], 0, 0
    rests: list[bytes] = []
    kinds: Counter[str] = Counter()

    def found(fault: str | None, name: bytes, *last: Step) -> Found:
        history = list(last)
        while (way := before[name]) is not None:
            name, step = way
            history.append(step)
        told = tuple(reversed(history)) if fault else ()
        return Found(len(before), steps, depth, len(rests), fault, told, kinds)

    while level:
        following = []
        for name, world in level:
            try:
                if world.rests():
                    rests.append(name)
            except Broken as broken:
                return found(str(broken), name)
            for step in world.steps():
                steps += 1
                kinds[step[0]] += 1
                try:
                    after = world.after(step)
                except Broken as broken:
                    return found(str(broken), name, step)
                seen = after.form()
                ways.setdefault(seen, []).append(name)
                if seen not in before:
                    before[seen] = name, step
                    following.append((seen, after))
        level, depth = following, depth + 1
    reaching, open_ = {*rests}, [*rests]
    while open_:
        for name in ways[open_.pop()]:
            if name not in reaching:
                reaching.add(name)
                open_.append(name)
    for name in before:
        if name not in reaching:
            return found("not everything can come to rest", name)
    return found(None, start)
