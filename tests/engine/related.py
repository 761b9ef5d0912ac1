"""Registries whose steps have relations, and what was done to them against these.

True only here: each registry checks by itself what it was asked to do, by rules of its
own and not by those of the engine; what was asked without sense stands in `misused`.
"""

from collections.abc import Hashable, Sequence
from hashlib import blake2b

from everyorder.harness.engine import Relations, StateForm
from tests.engine.toys import Refused, Toy


class Related(Toy):
    """A sound registry; settled, with its state shown or not, or told as a form."""

    def __init__(
        self,
        relations: Relations,
        steps: int = 3,
        uses: int = 0,
        *,
        printed: bool = False,
        settled: bool = True,
    ) -> None:
        self.relations = relations
        self.settled = settled
        self.misused: list[str] = []
        super().__init__(steps, uses, printed=printed)

    def do(self, step: int) -> object:
        relations = self.relations
        there = step in self.order
        if there and not (step in relations.again and step in relations.lasting):
            self.misused.append(f"do {step}, which is active")
        for needed in (
            *relations.requires.get(step, ()),
            *relations.after.get(step, ()),
        ):
            if needed not in self.order:
                self.misused.append(f"do {step} without {needed}")
        for rival in relations.excludes.get(step, ()):
            if rival in self.order:
                self.misused.append(f"do {step} beside {rival}")
        handle = super().do(step)
        if there:
            self.order.remove(step)
        self.end(step)
        return handle

    def use(self, use: int) -> Hashable:
        answer = super().use(use)
        self.end(self.steps + use)
        return answer

    def end(self, operation: int) -> None:
        ended = self.relations.ends.get(operation, frozenset())
        self.order[:] = [step for step in self.order if step not in ended]
        for other in self.order:
            if not self.relations.requires.get(other, frozenset()) <= {*self.order}:
                self.misused.append(f"{operation} ends what {other} requires")

    def undo(self, step: int, handle: object) -> None:
        if step in self.relations.lasting:
            self.misused.append(f"undo {step}, which stays")
        for other, needed in self.relations.requires.items():
            if step in needed and other in self.order:
                self.misused.append(f"undo {step} under {other}")
        super().undo(step, handle)

    def state(self, handles: Sequence[object] = ()) -> Hashable | None:
        if self.settled:
            return super().state()
        blind = repr(self.concrete())
        exact = repr((self.order, blind))
        return StateForm(digest(blind), digest(exact), objects=10)

    def portrait(self, handles: Sequence[object]) -> object | None:
        return None if self.settled else (tuple(self.order), self.concrete())

    def paths(self, one: object, other: object) -> tuple[str, ...]:
        return () if one == other else (f"registry: {one} / {other}",)


class Holding(Related):
    """Step 0 is not let go while 1 is active."""

    def undo(self, step: int, handle: object) -> None:
        if step == 0 and 1 in self.order:
            raise Refused(self.reason())
        super().undo(step, handle)

    def reason(self) -> str:
        return "held by 1"


def digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=16).digest()
