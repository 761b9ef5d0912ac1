"""Modes: who sees every operator that a thread calls, with or without tensors.

True only here: the stack of a thread's modes, and how it changes.

    with Logging() as mode:
        runtime.ones(2) + 1       # `mode` is asked about both operators

Rules:
- the stack belongs to the thread; the innermost mode is asked first, and is not on the
  stack while it is: what it calls goes to the next one, unless it enters itself again;
- the first mode that is entered includes the keys Python and PythonTLSSnapshot for the
  thread, the last one that is left takes back what that added;
- an *infra* mode (`infra = "FAKE"`, ...) has one place, below all user modes: it is
  asked after them, whenever it was entered;
- an instance can be entered again inside of itself; it is left innermost first;
- every mode is of the context that was current when it was entered;
- like all modes these belong to threads, not to tasks.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from inspect import getattr_static
from typing import Any, ClassVar, NamedTuple, Self

from runtime.errors.python_dispatch import (
    ClassHandler,
    EmptyModeStack,
    ModeNotInnermost,
    ModeSlotTaken,
    ModeStackError,
    NoHandler,
    OutsideOfHandler,
)
from runtime.keys import LOCAL, exclude_keys
from runtime.keys.keyset import KeySet
from runtime.tensors.handled import HANDLED, MODED, STATE

# The places of infra modes, outermost first: a fake mode is asked last of all.
INFRA = ("FAKE", "PROXY", "FUNCTIONAL")


class _Presence:
    """Lives as long as an entry of any stack, also of one that is put aside.

    A thread that ends with modes entered takes its stack with it.
    """

    __slots__ = ()

    def __init__(self) -> None:
        MODED.add(id(self))

    def __del__(self) -> None:
        MODED.discard(id(self))


class Entered(NamedTuple):
    """A mode on the stack: its context, and the bits that entering it included."""

    mode: "TorchDispatchMode"
    context: Any
    included: int
    presence: _Presence


class TorchDispatchMode:
    """The base of modes: a subclass defines `__torch_dispatch__`, a plain method.

    `__torch_dispatch__(self, func, types, args=(), kwargs=None)` gets the operator, the
    classes of tensors that have handlers themselves, and the arguments without those
    that are at their defaults.  It returns what the operator returns, or
    NotImplemented to leave the call to these classes.

    Entering raises `ClassHandler`, `ModeSlotTaken`, and `ModeStackError` where there is
    no handler, or no such place; leaving raises `ModeNotInnermost`.
    """

    # The name of its place in `INFRA`, if it has one.
    infra: ClassVar[str | None] = None

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        raise NoHandler(cls=type(self).__name__)

    def __enter__(self) -> Self:
        check_mode(type(self))
        push(self)
        return self

    def __exit__(self, *_exception: object) -> None:
        pop(self)


def check_mode(cls: type) -> None:
    """Whether the handler of a class of modes can be called on a mode.

    Raises `ClassHandler`, and `ModeStackError` where there is none.
    """
    handler = getattr_static(cls, "__torch_dispatch__", None)
    where = f"{cls.__qualname__}.__torch_dispatch__"
    if isinstance(handler, (classmethod, staticmethod)):
        raise ClassHandler(handler=where, found=type(handler).__name__)
    inherited = handler is vars(TorchDispatchMode)["__torch_dispatch__"]
    if inherited or not callable(handler):
        raise ModeStackError(
            problem=f"{cls.__name__} cannot be entered: it has no `__torch_dispatch__` "
            "that could be asked.",
            stack=names(STATE.stack),
            remedy="define `def __torch_dispatch__(self, func, types, args=(), "
            "kwargs=None)`",
        )


def push(mode: TorchDispatchMode) -> None:
    """Enter a mode.  Raises `ModeSlotTaken`, `ModeStackError`."""
    stack = STATE.stack
    added = HANDLED & ~LOCAL.included
    entered = Entered(mode, STATE.context, added, _Presence())
    user = mode.infra is None
    stack = (*stack, entered) if user else _with_infra(stack, entered)
    STATE.stack = stack
    LOCAL.included |= added


def pop(mode: TorchDispatchMode) -> None:
    """Leave a mode.  Raises `ModeNotInnermost`, `EmptyModeStack`."""
    stack = STATE.stack
    if not stack:
        raise EmptyModeStack(
            problem=f"{named(mode)} is left, and no mode is entered in this thread.",
            stack=(),
        )
    at = len(stack) - 1
    if mode.infra is not None:
        places = [i for i, each in enumerate(stack) if each.mode is mode]
        at = places[0] if places else at
    if stack[at].mode is not mode:
        raise ModeNotInnermost(
            problem=f"{named(mode)} is left, but {named(stack[-1].mode)} is the "
            "innermost mode.",
            stack=names(stack),
            remedy="leave modes in the reverse of the order they were entered in, in "
            "the thread that entered them",
        )
    _take_out(stack, at)


def leave(mode: TorchDispatchMode) -> None:
    """Leave a mode wherever it stands, its innermost entry if it has several.

    For who cannot leave in reverse: `with` is the usual way.  Raises `EmptyModeStack`,
    and `ModeNotInnermost` where the mode is not entered.
    """
    stack = STATE.stack
    for at in reversed(range(len(stack))):
        if stack[at].mode is mode:
            _take_out(stack, at)
            return
    problem = f"{named(mode)} is left, and it is not entered in this thread."
    if not stack:
        raise EmptyModeStack(problem=problem, stack=())
    raise ModeNotInnermost(
        problem=problem,
        stack=names(stack),
        remedy="leave it once for each time that it was entered",
    )


def _take_out(stack: tuple[Entered, ...], at: int) -> None:
    """Make the stack one without the entry at a place."""
    rest = (*stack[:at], *stack[at + 1 :])
    included = stack[at].included
    if rest and included:
        # What it brought is needed as long as there is any other.
        at = min(at, len(rest) - 1)
        rest = tuple(
            each._replace(included=each.included | included) if i == at else each
            for i, each in enumerate(rest)
        )
        included = 0
    STATE.stack = rest
    LOCAL.included &= ~included


def _with_infra(stack: tuple[Entered, ...], entered: Entered) -> tuple[Entered, ...]:
    mode = entered.mode
    places = {each.mode.infra: each for each in stack if each.mode.infra is not None}
    if mode.infra in places:
        raise ModeSlotTaken(
            problem=f"{named(mode)} is entered, but the place {mode.infra} is that of "
            f"{named(places[mode.infra].mode)}.",
            stack=names(stack),
            remedy="leave the other one first",
        )
    if mode.infra not in INFRA:
        raise ModeStackError(
            problem=f"{named(mode)} is entered, and there is no place {mode.infra} for "
            "infra modes.",
            stack=names(stack),
            remedy=f"let `infra` be None, {', '.join(INFRA[:-1])} or {INFRA[-1]}",
        )
    places[mode.infra] = entered
    users = [each for each in stack if each.mode.infra is None]
    return (*(places[each] for each in INFRA if each in places), *users)


def named(mode: TorchDispatchMode) -> str:
    """The class of a mode, as errors name it."""
    return type(mode).__name__


def alike(left: tuple[Entered, ...], right: tuple[Entered, ...]) -> bool:
    """Whether two stacks have the same modes in the same order."""
    return [id(each.mode) for each in left] == [id(each.mode) for each in right]


def names(stack: tuple[Entered, ...]) -> tuple[str, ...]:
    """The classes of the modes of a stack."""
    return tuple(named(each.mode) for each in stack)


def current_mode() -> TorchDispatchMode | None:
    """The innermost mode of the thread; None if none is entered."""
    stack = STATE.stack
    return stack[-1].mode if stack else None


def current_modes() -> tuple[TorchDispatchMode, ...]:
    """The modes of the thread, outermost first."""
    return tuple(each.mode for each in STATE.stack)


def mode_at(place: int) -> TorchDispatchMode:
    """The mode at a place of the stack, 0 the outermost.  Raises `EmptyModeStack`."""
    stack = STATE.stack
    if not -len(stack) <= place < len(stack):
        raise EmptyModeStack(
            problem=f"There is no mode at place {place} of {len(stack)}.",
            stack=names(stack),
        )
    found: TorchDispatchMode = stack[place].mode
    return found


@contextmanager
def pop_mode_temporarily() -> Iterator[TorchDispatchMode]:
    """Context: the innermost mode is not entered; on exit it is again.

    Raises `EmptyModeStack`.
    """
    stack = STATE.stack
    if not stack:
        raise EmptyModeStack(
            problem="The innermost mode was asked for, and no mode is entered.",
            stack=(),
        )
    with _only(stack[:-1]):
        yield stack[-1].mode


@contextmanager
def disable_current_modes() -> Iterator[tuple[TorchDispatchMode, ...]]:
    """Context: no mode is entered; on exit all are again.  Gives them."""
    if not STATE.stack:
        yield ()
        return
    modes = current_modes()
    with _only(()):
        yield modes


@contextmanager
def _only(stack: tuple[Entered, ...]) -> Iterator[None]:
    """Context: these are the modes, of those that there are."""
    before = STATE.stack
    taken = 0 if stack else HANDLED & LOCAL.included
    STATE.stack = stack
    LOCAL.included &= ~taken
    try:
        yield
    finally:
        STATE.stack = before
        LOCAL.included |= taken


def no_dispatch() -> exclude_keys:
    """Context: neither modes nor handlers of classes are asked."""
    return exclude_keys(KeySet.from_bits(HANDLED))


@contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Context, inside of a handler: the keys are those that the outermost call found.

    What is called inside goes through autograd again, and through everything else.
    Modes that are on the stack are asked, and no others.  Raises `OutsideOfHandler`.
    """
    snapshot = STATE.snapshot
    if snapshot is None:
        raise OutsideOfHandler(handler="enable_reentrant_dispatch()")
    view = LOCAL.view
    LOCAL.view = snapshot
    if STATE.stack:
        LOCAL.included |= HANDLED
    else:
        LOCAL.included &= ~HANDLED
    try:
        yield
    finally:
        LOCAL.view = view
