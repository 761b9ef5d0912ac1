"""Modes: handlers of every operator that a thread calls, with or without tensors.

    with Logging() as mode:
        runtime.ones(2) + 1       # `mode` handles both operators

This module holds the stack of a thread's modes, its changes, and the keys that the
thread includes and excludes while a handler runs.

Rules:
- the stack belongs to the thread, not to tasks; the innermost mode is called first, and
  is off the stack meanwhile: its own calls are handled by the next mode, unless it
  enters itself again;
- the first entered mode includes the keys Python and PythonTLSSnapshot for the thread,
  the last one that is left restores the previous keys;
- an *infra* mode (`infra = "FAKE"`, ...) has one place, below all user modes: it is
  called after them, no matter when it was entered;
- an instance can be entered again inside of itself; it is left innermost first;
- every mode belongs to the context that was current when it was entered;
- the stack and the keys change together, with no call in between: neither a signal nor
  a RecursionError separates them, and leaving needs no more depth than entering; nor
  does a signal keep a mode from being left (`runtime.base.exits`);
- the end of a `with` block removes its mode from the stack, also if that is an error;
- while a handler runs, every key above Python is excluded, as the call has passed it;
  Python is not. The two views for this are cached on the view of the call.
"""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from inspect import getattr_static
from sys import exception
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from everyorder.runtime.base.exits import Exit
from everyorder.runtime.errors.torch_dispatch import HandlerError, ModeStackError
from everyorder.runtime.keys import LOCAL, exclude_keys
from everyorder.runtime.keys.keyset import KeySet
from everyorder.runtime.keys.local import View, view_of
from everyorder.runtime.tensors.keys import ABOVE, HANDLED, MODED, STATE, Presence

Given = TypeVar("Given")

# The places of infra modes, outermost first: a fake mode is called last.
INFRA = ("FAKE", "PROXY", "FUNCTIONAL")


class Entered(NamedTuple):
    """A mode on the stack: its context, and the bits that entering it included.

    `outside` is the thread's view of the keys before entering, `inside` the view after.
    """

    mode: "TorchDispatchMode"
    context: Any
    included: int
    outside: View
    inside: View
    presence: Presence


Stack = tuple[Entered, ...]


class TorchDispatchMode:
    """The base class of modes: a subclass defines the method `__torch_dispatch__`.

    `__torch_dispatch__(self, func, types, args=(), kwargs=None)` receives the operator,
    the classes of tensors that have handlers themselves, and the arguments without
    those at their defaults. It returns the operator's result, or NotImplemented to
    leave the call to these classes.

    Entering raises `HandlerError` and `ModeStackError`; leaving raises
    `ModeStackError`.
    """

    # The name of its place in `INFRA`, or None for a user mode.
    infra: ClassVar[str | None] = None

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        raise HandlerError(code="ModeWithoutHandler", handler=_handler(type(self)))

    def __enter__(self) -> Self:
        check_mode(type(self))
        STATE.stack, LOCAL.view = _entered(self)
        return self

    def _left_by_with(self) -> Generator[None, None, None]:
        freed, before = False, exception()
        try:
            yield
        except GeneratorExit:
            freed = True
        finally:
            if not freed:
                stack, left = STATE.stack, False
                if stack and stack[-1].mode is self:
                    rest, last = stack[:-1], stack[-1]
                    # The usual case of `_without`, inline to avoid a call.
                    if not last.included:
                        STATE.stack, left = rest, True
                    elif not rest and LOCAL.view is last.inside:
                        STATE.stack, LOCAL.view, left = rest, last.outside, True
                if not left:
                    try:
                        _leave(self, True, _interrupted_since(before))
                    except BaseException as error:
                        _leave_again(self, error)
                        raise

    def _left_by_call(self, *error: Any) -> None:
        # Without arguments, the caller may try again.
        try:
            _leave(self, bool(error), _interrupts(*error[:1]))
        except BaseException as interrupt:
            _leave_again(self, interrupt)
            raise

    __exit__ = Exit(_left_by_with, _left_by_call)


def check_mode(cls: type) -> None:
    """Check that the handler of a class of modes can be called on a mode.

    Raises:
        HandlerError: the class has no handler, or it is not a plain method.
    """
    handler = getattr_static(cls, "__torch_dispatch__", None)
    if isinstance(handler, (classmethod, staticmethod)):
        raise HandlerError(
            code="ClassHandler", handler=_handler(cls), found=type(handler).__name__
        )
    inherited = handler is vars(TorchDispatchMode)["__torch_dispatch__"]
    if inherited or not callable(handler):
        raise HandlerError(code="ModeWithoutHandler", handler=_handler(cls))


def _handler(cls: type) -> str:
    return f"{cls.__qualname__}.__torch_dispatch__"


def _entered(mode: TorchDispatchMode) -> tuple[Stack, View]:
    """Return the stack and the view of the keys with one more mode.

    Raises:
        ModeStackError: the place of an infra mode is occupied or unknown.
    """
    stack, view = STATE.stack, LOCAL.view
    added = HANDLED & ~view.included
    inside = view_of(view.included | added, view.excluded) if added else view
    entered = Entered(mode, STATE.context, added, view, inside, Presence(MODED))
    user = mode.infra is None
    return (*stack, entered) if user else _with_infra(stack, entered), inside


def _interrupts(kind: Any = None) -> bool:
    """Return True for a class of exceptions that interrupt, such as by Ctrl-C."""
    outside = isinstance(kind, type) and issubclass(kind, BaseException)
    return outside and not issubclass(kind, (Exception, GeneratorExit))


def _interrupted_since(before: BaseException | None) -> bool:
    """Return True if an interrupt is being handled that is not `before`."""
    now = exception()
    return now is not before and _interrupts(type(now))


def _leave_again(mode: TorchDispatchMode, error: BaseException) -> None:
    """Leave a mode that an interrupt kept entered, such as an infra mode."""
    entered = any(each.mode is mode for each in STATE.stack)
    if entered and _interrupts(type(error)):
        _leave(mode, True, True)


def _leave(mode: TorchDispatchMode, over: bool, interrupted: bool) -> None:
    """Leave a mode.

    `over` is True if there will be no other attempt to leave it: it is removed at any
    position. If the thread is `interrupted`, the modes that were entered later and are
    still on the stack are removed too: then this is not an error, and the interruption
    propagates.

    Raises:
        ModeStackError: the mode is not the innermost one, or not on the stack.
    """
    stack, view = STATE.stack, LOCAL.view
    if not stack and not interrupted:
        raise ModeStackError(code="EmptyModeStack", mode=mode_name(mode), stack=())
    places = [place for place, each in enumerate(stack) if each.mode is mode]
    last, infra = len(stack) - 1, mode.infra is not None
    fits = interrupted or (bool(places) and (infra or places[-1] == last))
    if places and (over or fits):
        rest, at = stack, places[-1]
        for place in range(last if interrupted and not infra else at, at - 1, -1):
            rest, view = _without(rest, place, view)
        STATE.stack, LOCAL.view = rest, view
    if not fits:
        raise ModeStackError(
            code="ModeNotInnermost", mode=mode_name(mode), stack=mode_names(stack)
        )


def leave(mode: TorchDispatchMode) -> None:
    """Leave a mode at any position of the stack, its innermost entry if it has several.

    For code that cannot leave modes in reverse order; other code uses `with`.

    Raises:
        ModeStackError: the mode is not on the stack.
    """
    stack = STATE.stack
    for at in reversed(range(len(stack))):
        if stack[at].mode is mode:
            STATE.stack, LOCAL.view = _without(stack, at, LOCAL.view)
            return
    if not stack:
        raise ModeStackError(code="EmptyModeStack", mode=mode_name(mode), stack=())
    raise ModeStackError(
        code="ModeNotEntered", mode=mode_name(mode), stack=mode_names(stack)
    )


def _without(stack: Stack, at: int, view: View) -> tuple[Stack, View]:
    """Return the stack and the view of the keys without the entry at a place."""
    rest = (*stack[:at], *stack[at + 1 :])
    included = stack[at].included
    if rest and included:
        # The included keys are needed as long as there is any other mode.
        heir = rest[min(at, len(rest) - 1)]
        heir_now = heir._replace(
            included=heir.included | included, outside=stack[at].outside
        )
        rest = tuple(heir_now if each is heir else each for each in rest)
    elif included:
        view = view_of(view.included & ~included, view.excluded)
    return rest, view


def _with_infra(stack: Stack, entered: Entered) -> Stack:
    mode = entered.mode
    places = {each.mode.infra: each for each in stack if each.mode.infra is not None}
    if mode.infra in places:
        raise ModeStackError(
            code="ModeSlotTaken",
            stack=mode_names(stack),
            mode=mode_name(mode),
            place=str(mode.infra),
            holder=mode_name(places[mode.infra].mode),
        )
    if mode.infra not in INFRA:
        raise ModeStackError(
            code="NoModeSlot",
            mode=mode_name(mode),
            place=str(mode.infra),
            known=INFRA,
            stack=mode_names(stack),
        )
    places[mode.infra] = entered
    users = [each for each in stack if each.mode.infra is None]
    return (*(places[each] for each in INFRA if each in places), *users)


def mode_name(mode: TorchDispatchMode) -> str:
    """Return the class name of a mode, for errors."""
    return type(mode).__name__


def same_modes(left: Stack, right: Stack) -> bool:
    """Return True if two stacks have the same modes in the same order."""
    return [id(each.mode) for each in left] == [id(each.mode) for each in right]


def mode_names(stack: Stack) -> tuple[str, ...]:
    """Return the class names of the modes of a stack."""
    return tuple(mode_name(each.mode) for each in stack)


def current_mode() -> TorchDispatchMode | None:
    """Return the innermost mode of the thread; None if none is entered."""
    stack = STATE.stack
    return stack[-1].mode if stack else None


def current_modes() -> tuple[TorchDispatchMode, ...]:
    """Return the modes of the thread, outermost first."""
    return tuple(each.mode for each in STATE.stack)


def mode_at(place: int) -> TorchDispatchMode:
    """Return the mode at a place of the stack, 0 for the outermost.

    Raises:
        ModeStackError: the stack is not that deep.
    """
    stack = STATE.stack
    if not -len(stack) <= place < len(stack):
        raise ModeStackError(code="NoModeAtPlace", place=place, stack=mode_names(stack))
    mode: TorchDispatchMode = stack[place].mode
    return mode


class _Aside(Generic[Given]):
    """A context manager that removes modes from the stack, and restores them on exit.

    It raises `ModeStackError` if another thread leaves it, as the garbage collector may
    do with a generator: the modes of that thread do not change.
    """

    __slots__ = ("_choose", "_saved")

    def __init__(self, choose: Callable[[Stack], tuple[Stack, Given]]) -> None:
        self._choose = choose
        self._saved: Any = None

    def __enter__(self) -> Given:
        stack, outside = STATE.stack, LOCAL.view
        rest, removed = self._choose(stack)
        inside = outside
        if stack and not rest:
            inside = view_of(outside.included & ~HANDLED, outside.excluded)
        self._saved = stack, outside, inside, STATE.thread, self._saved
        STATE.stack, LOCAL.view = rest, inside
        return removed

    @Exit
    def __exit__(self) -> Generator[None, None, None]:
        freed = False
        try:
            yield
        except GeneratorExit:
            freed = True
        finally:
            if not freed:
                stack, view, inside, thread, before = self._saved
                if STATE.thread is not thread:
                    raise ModeStackError(
                        code="PutAsideElsewhere", stack=mode_names(STATE.stack)
                    )
                now = LOCAL.view
                self._saved, STATE.stack, LOCAL.view = before, stack, view
                if now is not inside:
                    included = (now.included & ~HANDLED) | (view.included & HANDLED)
                    LOCAL.view = view_of(included, now.excluded)


def pop_mode_temporarily() -> AbstractContextManager[TorchDispatchMode]:
    """Remove the innermost mode from the stack inside a `with` block.

    Raises:
        ModeStackError: no mode is entered, or the block is left in another thread.
    """
    return _Aside(_but_the_innermost)


def disable_current_modes() -> AbstractContextManager[tuple[TorchDispatchMode, ...]]:
    """Remove all modes inside a `with` block, which receives them as a tuple."""
    return _Aside(_none)


def _but_the_innermost(stack: Stack) -> tuple[Stack, TorchDispatchMode]:
    if not stack:
        raise ModeStackError(code="EmptyModeStack", stack=())
    return stack[:-1], stack[-1].mode


def _none(stack: Stack) -> tuple[Stack, tuple[TorchDispatchMode, ...]]:
    return (), tuple(each.mode for each in stack)


def no_dispatch() -> exclude_keys:
    """Disable modes and handlers of classes inside a `with` block."""
    return exclude_keys(KeySet.from_bits(HANDLED))


class enable_reentrant_dispatch:  # noqa: N801  # used as a verb, in `with`
    """A context manager for handlers: restore the keys of the outermost call.

    Calls inside the block go through autograd again, and through all other keys. Only
    modes on the stack are called. Raises `HandlerError` outside of a handler, and also
    if it is left after the handler or in another thread.
    """

    __slots__ = ("_saved",)

    def __init__(self) -> None:
        self._saved: Any = None

    def __enter__(self) -> None:
        snapshot = STATE.snapshot
        if snapshot is None:
            raise HandlerError(
                code="OutsideOfHandler", call="enable_reentrant_dispatch()"
            )
        included = snapshot.included & ~HANDLED
        if STATE.stack:
            included |= HANDLED
        inside = view_of(included, snapshot.excluded)
        self._saved = LOCAL.view, STATE.thread, self._saved
        LOCAL.view = inside

    @Exit
    def __exit__(self) -> Generator[None, None, None]:
        freed = False
        try:
            yield
        except GeneratorExit:
            freed = True
        finally:
            if not freed:
                view, thread, before = self._saved
                if STATE.snapshot is None or STATE.thread is not thread:
                    raise HandlerError(
                        code="OutsideOfHandler", call="enable_reentrant_dispatch()"
                    )
                self._saved, LOCAL.view = before, view


def inside(view: View) -> View:
    """Return the view of a handler; cached as `view.handling`."""
    handling = view.handling
    if handling is None:
        handling = view.handling = view_of(view.included, view.excluded | ABOVE)
    return handling


def inside_last(view: View) -> View:
    """Return the view of the handler of the last mode; cached as
    `view.handling_last`.
    """
    handling = view.handling_last
    if handling is None:
        included = view.included & ~HANDLED
        handling = view.handling_last = view_of(included, view.excluded | ABOVE)
    return handling
