"""Modes: switch the recording of the current thread, and the kind of its new tensors.

Every recording kernel reads one flag, `GRAD.enabled`, of its thread; a new thread
starts with recording on.

| mode                | records | new tensors        | keys                           |
|---------------------|---------|--------------------|--------------------------------|
| (none), enable_grad | yes     | ordinary           | unchanged                      |
| no_grad             | no      | ordinary           | unchanged                      |
| inference_mode      | no      | not tracked        | ADInplaceOrView not included,  |
|                     |         |                    | autograd keys excluded         |

Rules:
- every mode is a context manager and a decorator; as a decorator of a generator
  function it is active while the generator runs, not while it waits;
- the thread that created an instance can enter it again, also inside of itself;
- leaving restores the previous state, also after an exception;
- the saved state of a mode and the state of the thread change together, with no call in
  between, so that neither a signal nor a RecursionError separates them; nor does a
  signal keep a mode from being left (`runtime.base.exits`);
- the thread that entered a mode must leave it, like the guards of `runtime.keys.local`;
- modes belong to threads and not to tasks: other coroutines run during an `await`, so
  code inside a mode must not await, and coroutine functions are refused.
"""

import threading
from collections.abc import Callable, Collection, Generator
from functools import partial, wraps
from types import CodeType, GeneratorType
from typing import Any, Self, TypeVar

from everyorder.runtime.base.exits import Exit
from everyorder.runtime.base.hooks import RECORDS
from everyorder.runtime.errors.autograd import AutogradMisuse
from everyorder.runtime.keys import AUTOGRAD_KEYS, LOCAL, DispatchKey
from everyorder.runtime.keys.local import View, guard_error, view_of
from everyorder.runtime.tensors.keys import INFERRING, Presence, inference


class _Grad(threading.local):
    """The flags of a thread: `enabled` (it records) and `follows` (it registers views).

    `run` is the innermost backward pass of the thread, or None.

    `follows` is off while the engine computes gradients that are not differentiated:
    their views are many and short-lived. It is on in the functions of users that the
    engine calls (`followed`): their views may outlive the pass.
    """

    enabled: bool = True
    follows: bool = True
    run: "BackwardRun | None" = None


class BackwardRun:
    """One backward pass: `nodes` are its roots, `needed` the nodes that it may run.

    `needed` is None if no inputs were requested. The functions of `ends` are called
    after the last node has run.
    """

    __slots__ = ("__weakref__", "ends", "needed", "nodes")

    def __init__(self, nodes: list[Any], needed: Collection[Any] | None) -> None:
        self.nodes = nodes
        self.needed = needed
        self.ends: list[Callable[[], object]] = []


GRAD = _Grad()
RECORDS.set(lambda: GRAD.enabled)


def followed(function: Callable[..., Any], *args: Any) -> Any:
    """Return `function(*args)`, run with the registration of views switched on."""
    before = GRAD.follows
    GRAD.follows = True
    try:
        return function(*args)
    finally:
        GRAD.follows = before


class Excluding(dict[View, View]):
    """A map from a thread's view of the keys to the same view with more keys
    excluded.
    """

    def __init__(self, bits: int) -> None:
        self._bits = bits

    def __missing__(self, view: View) -> View:
        narrowed = self[view] = view_of(view.included, view.excluded | self._bits)
        return narrowed


# The type of the decorated function.
F = TypeVar("F", bound=Callable[..., Any])


class Mode:
    """A context manager and decorator; subclasses define how the mode is entered.

    Leaving it in another thread, or without entering it, raises `KeyMisuse`.
    """

    __slots__ = ("_entry",)

    def __init__(self) -> None:
        # The thread, its previous state, and the previous entry.
        self._entry: Any = None

    def __enter__(self) -> Self:
        """Change the state of the thread."""
        raise NotImplementedError("every mode defines how it is entered")

    @Exit
    def __exit__(self) -> Generator[None, None, None]:
        """Restore the state of the thread."""
        raise NotImplementedError("every mode defines how it is left")

    @property
    def options(self) -> tuple[Any, ...]:
        """Return the arguments that create an equal mode."""
        return ()

    def _fresh(self) -> "Mode":
        """Return a copy of this mode, for one call of a decorated function."""
        return type(self)()

    def __call__(self, function: F) -> F:
        """Return `function` wrapped so that it always runs inside this mode.

        Raises:
            AutogradMisuse: `function` is a coroutine function.
        """
        from inspect import isasyncgenfunction, iscoroutinefunction

        if iscoroutinefunction(function) or isasyncgenfunction(function):
            raise AutogradMisuse(
                code="ModeMisuse", mode=type(self).__name__, function=function.__name__
            )

        @wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self._fresh():
                result = function(*args, **kwargs)
            if isinstance(result, GeneratorType):
                return _driven(self._fresh, result)
            return result

        return wrapped  # type: ignore[return-value]  # it has the signature of what it wraps


# The code of what `Mode.__call__` returns.
_WRAPPED = next(
    each
    for each in Mode.__call__.__code__.co_consts
    if isinstance(each, CodeType) and each.co_name == "wrapped"
)


def mode_of(function: Any) -> Mode | None:
    """Return the mode of a function that a mode decorates; None for any other.

    `function.__wrapped__` is the function without the mode.
    """
    code = getattr(function, "__code__", None)
    if code is not _WRAPPED:
        return None
    cells = dict(zip(code.co_freevars, function.__closure__, strict=True))
    mode: Mode = cells["self"].cell_contents
    return mode._fresh()


def _driven(
    mode: Callable[[], Mode], generator: Generator[Any, Any, Any]
) -> Generator[Any, Any, Any]:
    """Return a generator that runs each step of `generator` inside the mode."""
    step: Callable[[], Any] = partial(next, generator)
    while True:
        try:
            with mode():
                value = step()
        except StopIteration as stop:
            return stop.value
        try:
            sent = yield value
        except GeneratorExit:
            with mode():
                generator.close()
            raise
        except BaseException as error:
            step = partial(generator.throw, error)
        else:
            step = partial(generator.send, sent)


class _Records(Mode):
    """A mode that only switches recording."""

    __slots__ = ()

    _inside: bool

    def __enter__(self) -> Self:
        entry = GRAD.__dict__, GRAD.enabled, self._entry
        self._entry, GRAD.enabled = entry, self._inside
        return self

    @Exit
    def __exit__(self) -> Generator[None, None, None]:
        freed = False
        try:
            yield
        except GeneratorExit:
            freed = True
        finally:
            if not freed:
                entry = self._entry
                if entry is None or entry[0] is not GRAD.__dict__:
                    raise guard_error(self, entry)
                _, GRAD.enabled, self._entry = entry


class no_grad(_Records):  # noqa: N801  # used as a verb: `with no_grad():`
    """Disable recording inside the block; its results do not require grad."""

    __slots__ = ()
    _inside = False


class enable_grad(_Records):  # noqa: N801  # used as a verb
    """Enable recording again inside of `no_grad`."""

    __slots__ = ()
    _inside = True


class set_grad_enabled(_Records):  # noqa: N801  # used as a verb
    """Switch recording from the call on, inside of `with`, or as a decorator."""

    __slots__ = ("_before", "_inside")

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self._inside = bool(mode)
        self._before: bool | None
        self._before, GRAD.enabled = GRAD.enabled, self._inside

    def _fresh(self) -> Mode:
        return enable_grad() if self._inside else no_grad()

    def __enter__(self) -> Self:
        # What was there before the call; entered once more, what is there now.
        before = GRAD.enabled if self._before is None else self._before
        entry = GRAD.__dict__, before, self._entry
        self._before, self._entry, GRAD.enabled = None, entry, self._inside
        return self

    def __call__(self, function: F) -> F:
        """Wrap `function`; the thread returns to its state before the mode was
        created.
        """
        if self._before is not None:
            GRAD.enabled, self._before = self._before, None
        return super().__call__(function)


class inference_mode(Mode):  # noqa: N801  # used as a verb
    """Disable recording and tracking: tensors created inside are inference tensors.

    They can be read anywhere, but outside the block they cannot be written to or saved
    for a gradient. `inference_mode(False)` inside of it restores the ordinary behavior.
    """

    __slots__ = ("_mode",)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self._mode = bool(mode)

    @property
    def options(self) -> tuple[Any, ...]:
        """Return the arguments that create an equal mode."""
        return (self._mode,)

    def _fresh(self) -> Mode:
        return inference_mode(self._mode)

    def __enter__(self) -> Self:
        view = LOCAL.view
        if self._mode:
            inside = view_of(view.included & ~_TRACKING, view.excluded | _AUTOGRAD)
        else:
            inside = view_of(view.included | _TRACKING, view.excluded & ~_AUTOGRAD)
        # Before the thread enters the mode: `INFERRING` is not empty while a thread is
        # in it.
        presence = Presence(INFERRING) if self._mode else None
        keys = view, LOCAL.switched_in, LOCAL.switched_out
        saved = presence, keys, GRAD.enabled, inference.active
        self._entry, LOCAL.view = (GRAD.__dict__, saved, self._entry), inside
        GRAD.enabled, inference.active = not self._mode, self._mode
        return self

    @Exit
    def __exit__(self) -> Generator[None, None, None]:
        freed = False
        try:
            yield
        except GeneratorExit:
            freed = True
        finally:
            if not freed:
                entry = self._entry
                if entry is None or entry[0] is not GRAD.__dict__:
                    raise guard_error(self, entry)
                _, (_, keys, GRAD.enabled, inference.active), self._entry = entry
                LOCAL.view, LOCAL.switched_in, LOCAL.switched_out = keys


_AUTOGRAD = AUTOGRAD_KEYS.bits
_TRACKING = DispatchKey.ADInplaceOrView.bits


def is_grad_enabled() -> bool:
    """Return True if the current thread records."""
    return GRAD.enabled


def is_inference_mode_enabled() -> bool:
    """Return True if the current thread creates inference tensors."""
    return inference.active
