"""The truth about a specimen, by brute force: every history up to a stated length.

It shares no code with the harness: the player below performs the raw functions of the
registry, and each history is played from its beginning on a fresh registry.

An operation is a number: `0 .. n-1` do or undo a step, `n .. n+m-1` are uses, `n+m` is
the look, `n+m+1` collects garbage (only where the interface says so).  A history is a
sequence of operations; a look after its last one is implied and not counted.

An operation gives an *event*: its question (the operation and the active steps before
it, with the order of the declared pairs) and its answer (the value, or the error; of a
step that it was done).  A history *violates* if one of its events conflicts with an
event of a history that is not longer, or if an undo raises in it.  A specimen is faulty
if a history violates, and `length` is the number of operations of a shortest one.

Histories are played in full up to `longest_of(specimen)` operations.  A right registry
must also pass `WALKS` random histories of `WALK_LENGTH` operations: a fault that only a
long history shows is then found, with its length unknown.
"""

import asyncio
import contextvars
import gc
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import permutations, product
from random import Random
from typing import Any, TypeAlias

from tests.zoo.realistic.specimen import Specimen

History: TypeAlias = tuple[int, ...]
Question: TypeAlias = tuple[Any, ...]
Answer: TypeAlias = tuple[str, str]
Events: TypeAlias = dict[Question, set[Answer]]

# Six operations for the small ones: 6 ** 6 histories take a second or two.
LONGEST = 6
MOST_HISTORIES = 50_000
SHORTEST_BOUND = 4
WALKS = 150
WALK_LENGTH = 40
SEED = 34

DONE: Answer = ("step", "done")


@dataclass(frozen=True)
class Truth:
    """The verdict of the oracle.

    `length` and `history` are of a shortest violating history; `length` is None if the
    registry is right, or if only a random walk violates.  `bound` is the length up to
    which every history was played, and `histories` their number.
    """

    faulty: bool
    length: int | None
    history: History | None
    bound: int
    histories: int
    events: Events = field(repr=False, compare=False)


class Impossible(Exception):
    """The operation cannot be performed at this state, by the declared relations."""


class UndoRaised(Exception):
    """An undo raised: the history ends, and violates."""


class Player:
    """Plays operations on one fresh registry."""

    def __init__(self, specimen: Specimen, loop: asyncio.AbstractEventLoop) -> None:
        interface = specimen.interface
        self.specimen = specimen
        self.steps, self.uses = interface.steps, interface.uses
        self.numbers = {each.text: number for number, each in enumerate(self.steps)}
        self.pairs = [
            (self.numbers[one], self.numbers[two]) for one, two in interface.ordered
        ]
        self.loop = loop
        self.registry = self.settled(specimen.create())
        # In the order in which the steps became active.
        self.undos: dict[int, Callable[[], Any]] = {}

    def active(self) -> tuple[Any, ...]:
        """The active steps, and which of each declared pair became active first."""
        orders = tuple(
            next(step for step in self.undos if step in pair)
            for pair in self.pairs
            if pair[0] in self.undos and pair[1] in self.undos
        )
        return (*sorted(self.undos), orders)

    def play(self, operation: int) -> tuple[Question, Answer] | None:
        """Perform one operation and return its event; a collection gives none."""
        question = (operation, self.active())
        if operation < len(self.steps):
            return question, self.toggled(operation)
        operation -= len(self.steps)
        if operation < len(self.uses):
            return question, self.answer(self.uses[operation][1])
        if operation == len(self.uses):
            return question, self.answer(self.specimen.interface.observe)
        gc.collect()
        return None

    def answer(self, function: Callable[[Any], Any]) -> Answer:
        """The value of a use or look as text, or its error."""
        try:
            value = self.settled(function(self.registry))
        except Exception as error:
            return type(error).__name__, str(error)
        assert isinstance(value, str | int | tuple | list | None), "its text tells all"
        return type(value).__name__, repr(value)

    def toggled(self, number: int) -> Answer:
        """Do a step, or undo it if it is active."""
        chosen = self.steps[number]
        if number in self.undos:
            dependants = [
                each for each in self.undos if chosen.text in self.steps[each].requires
            ]
            if chosen.lasting or dependants:
                raise Impossible
            try:
                self.settled(self.undos.pop(number)())
            except Exception as error:
                raise UndoRaised(f"{type(error).__name__}: {error}") from None
            return DONE
        if any(
            self.numbers[text] not in self.undos
            for text in (*chosen.requires, *chosen.after)
        ):
            raise Impossible
        try:
            self.undos[number] = self.undo_of(self.settled(chosen.do(self.registry)))
        except Exception as error:
            return type(error).__name__, str(error)
        return DONE

    def undo_of(self, result: Any) -> Callable[[], Any]:
        """The undo of a step: what it returned, or the rest of its generator."""
        if inspect.isgenerator(result):
            next(result)
            return lambda: next(result, None)
        if inspect.isasyncgen(result):
            self.settled(anext(result))
            return lambda: anext(result, None)
        if hasattr(result, "__enter__"):
            result.__enter__()
            return lambda: result.__exit__(None, None, None)
        return getattr(result, "close", result)  # type: ignore[no-any-return]  # undoes

    def settled(self, result: Any) -> Any:
        """The result itself, or the value of a coroutine."""
        if not inspect.isawaitable(result):
            return result

        async def wait() -> Any:
            return await result

        return self.loop.run_until_complete(wait())


@contextmanager
def quiet() -> Iterator[asyncio.AbstractEventLoop]:
    """Collect only where an operation does, and fast; yield an event loop."""
    gc.collect()
    gc.disable()
    gc.freeze()
    loop = asyncio.new_event_loop()
    try:
        yield loop
    finally:
        loop.close()
        gc.unfreeze()
        gc.enable()


def operations_of(specimen: Specimen) -> tuple[int, ...]:
    """All operations: steps, uses, the look, and collecting where it is one."""
    interface = specimen.interface
    return tuple(
        range(len(interface.steps) + len(interface.uses) + 1 + interface.collects)
    )


def longest_of(specimen: Specimen) -> int:
    """The length up to which all histories are played."""
    count = len(operations_of(specimen))
    return max(
        length
        for length in range(SHORTEST_BOUND, LONGEST + 1)
        if length == SHORTEST_BOUND or count**length <= MOST_HISTORIES
    )


def played(
    specimen: Specimen,
    loop: asyncio.AbstractEventLoop,
    history: Sequence[int],
    events: Events,
) -> bool:
    """Play a history and the look after it; return True if an event conflicts.

    The events are added to `events`.

    Raises:
        Impossible: the relations of the steps do not allow this history.
    """
    interface = specimen.interface
    look = len(interface.steps) + len(interface.uses)

    def run() -> bool:
        conflict = False
        player = Player(specimen, loop)
        for operation in (*history, look):
            try:
                event = player.play(operation)
            except UndoRaised:
                return True
            if event is not None:
                question, answer = event
                answers = events.setdefault(question, set())
                answers.add(answer)
                conflict = conflict or len(answers) > 1
        return conflict

    # A context variable that a history sets is unset in the next one.
    return contextvars.copy_context().run(run)


def truth(specimen: Specimen, chosen: Sequence[int] | None = None) -> Truth:
    """Decide about a specimen, over some of its operations or over all."""
    operations = tuple(chosen or operations_of(specimen))
    bound, count = longest_of(specimen), 0
    events: Events = {}
    with quiet() as loop:
        for length in range(bound + 1):
            for history in product(operations, repeat=length):
                try:
                    conflict = played(specimen, loop, history, events)
                except Impossible:
                    continue
                count += 1
                if conflict:
                    return Truth(True, length, history, length, count, events)
        random = Random(SEED)
        for _ in range(WALKS if chosen is None else 0):
            walk = contextvars.copy_context().run(_walk, specimen, loop, random)
            if played(specimen, loop, walk, events):
                return Truth(True, None, walk, bound, count, events)
    return Truth(False, None, None, bound, count, events)


def _walk(
    specimen: Specimen, loop: asyncio.AbstractEventLoop, random: Random
) -> History:
    """Draw operations at random, of those that the relations allow."""
    operations = operations_of(specimen)
    player = Player(specimen, loop)
    history: list[int] = []
    while len(history) < WALK_LENGTH:
        operation = random.choice(operations)
        try:
            player.play(operation)
        except Impossible:
            continue
        except UndoRaised:
            return (*history, operation)
        history.append(operation)
    return tuple(history)


def shows(specimen: Specimen, history: Sequence[int], events: Events) -> bool:
    """Return True if a history conflicts with another one, or an undo raises in it.

    The others are those that gave the `events`, and each order of doing steps that is
    followed by one operation.
    """
    own: Events = {}
    others = {question: set(answers) for question, answers in events.items()}
    numbers = range(len(specimen.interface.steps))
    with quiet() as loop:
        try:
            if played(specimen, loop, history, own):
                return True
        except Impossible:
            return False
        for size in range(len(numbers) + 1):
            for order in permutations(numbers, size):
                for operation in operations_of(specimen):
                    with suppress(Impossible):
                        played(specimen, loop, (*order, operation), others)
    return any(len(others[question] | own[question]) > 1 for question in own)
