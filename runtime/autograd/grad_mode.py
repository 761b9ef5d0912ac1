"""Modes: whether the current thread records, and what kind of tensors it makes.

True only here: the one flag that every recording kernel reads, `GRAD.enabled`, one for
each thread; a new thread starts with recording on.

| mode                | records | new tensors        | keys                           |
|---------------------|---------|--------------------|--------------------------------|
| (none), enable_grad | yes     | ordinary           | as they are                    |
| no_grad             | no      | ordinary           | as they are                    |
| inference_mode      | no      | tracked by nobody  | ADInplaceOrView not included,  |
|                     |         |                    | autograd keys excluded         |

Rules:
- every mode is a context manager and a decorator; as a decorator of a generator
  function it holds while the generator runs, not while it waits;
- an instance can be entered again, also inside of itself, by the thread that made it;
- leaving restores what was there before, whatever happened inside;
- what a mode remembers and what the thread has change together, with no call in
  between, so that neither a signal nor the end of recursion finds one without the other
  (one that CPython handles before the first instruction of `__exit__` finds the mode
  entered: the next one outside takes its change back);
- a mode is left by the thread that entered it, as the guards of `runtime.keys.local`;
- modes belong to threads and not to tasks: other coroutines run while one awaits, so
  nothing may be awaited inside of a mode, and coroutine functions are refused.
"""

import threading
from collections.abc import Callable, Generator
from functools import partial, wraps
from types import GeneratorType
from typing import Any, Self, TypeVar

from everyorder.runtime.base.hooks import RECORDS
from everyorder.runtime.errors.autograd import AutogradMisuse
from everyorder.runtime.keys import AUTOGRAD_KEYS, LOCAL, DispatchKey
from everyorder.runtime.keys.local import View, guard_error, view_of
from everyorder.runtime.tensors.keys import INFERRING, Presence, inference


class _Grad(threading.local):
    """Whether the thread records, and whether it notes what new views show.

    The second is off while the engine computes gradients that nobody differentiates:
    their views are many, and gone at once.
    """

    enabled: bool = True
    follows: bool = True


GRAD = _Grad()
RECORDS.set(lambda: GRAD.enabled)


class Excluding(dict[View, View]):
    """A thread's view of the keys -> the same with more keys excluded."""

    def __init__(self, bits: int) -> None:
        self._bits = bits

    def __missing__(self, view: View) -> View:
        found = self[view] = view_of(view.included, view.excluded | self._bits)
        return found


# What is decorated.
F = TypeVar("F", bound=Callable[..., Any])


class Mode:
    """A context manager that is a decorator too; leaves define how it is entered.

    Leaving raises `KeyMisuse`.
    """

    __slots__ = ("_entry",)

    def __init__(self) -> None:
        # The thread, what it had, and the entry before.
        self._entry: Any = None

    def __enter__(self) -> Self:
        """Change the thread."""
        raise NotImplementedError("every mode defines how it is entered")

    def __exit__(self, *_exception: object) -> None:
        """Change the thread back."""
        raise NotImplementedError("every mode defines how it is left")

    def _fresh(self) -> "Mode":
        """Another mode like this one, for one call of a decorated function."""
        return type(self)()

    def __call__(self, function: F) -> F:
        """The function, always run inside of this mode.

        Raises `AutogradMisuse` for a coroutine function.
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


def _driven(
    mode: Callable[[], Mode], generator: Generator[Any, Any, Any]
) -> Generator[Any, Any, Any]:
    """The generator, each of its steps inside of the mode."""
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
    """Whether the thread records."""

    __slots__ = ()

    _inside: bool

    def __enter__(self) -> Self:
        entry = GRAD.__dict__, GRAD.enabled, self._entry
        self._entry, GRAD.enabled = entry, self._inside
        return self

    def __exit__(self, *_exception: object) -> None:
        entry = self._entry
        if entry is None or entry[0] is not GRAD.__dict__:
            raise guard_error(self, entry)
        _, GRAD.enabled, self._entry = entry


class no_grad(_Records):  # noqa: N801  # used as a verb: `with no_grad():`
    """Nothing is recorded inside; its results do not require grad."""

    __slots__ = ()
    _inside = False


class enable_grad(_Records):  # noqa: N801  # used as a verb
    """Inside of `no_grad`, records again."""

    __slots__ = ()
    _inside = True


class set_grad_enabled(_Records):  # noqa: N801  # used as a verb
    """Records or not, as said: from the call on, or inside of `with`, or decorated."""

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
        """The function, always run so; the thread is as before the mode was made."""
        if self._before is not None:
            GRAD.enabled, self._before = self._before, None
        return super().__call__(function)


class inference_mode(Mode):  # noqa: N801  # used as a verb
    """No recording, and tensors made inside are not tracked at all.

    They can be read anywhere, but outside they cannot be written to or saved for a
    gradient.  `inference_mode(False)` inside of it is the ordinary world again.
    """

    __slots__ = ("_mode",)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self._mode = bool(mode)

    def _fresh(self) -> Mode:
        return inference_mode(self._mode)

    def __enter__(self) -> Self:
        view = LOCAL.view
        if self._mode:
            inside = view_of(view.included & ~_TRACKING, view.excluded | _AUTOGRAD)
        else:
            inside = view_of(view.included | _TRACKING, view.excluded & ~_AUTOGRAD)
        # Before the thread is in the mode: `INFERRING` is never empty while one is.
        presence = Presence(INFERRING) if self._mode else None
        keys = view, LOCAL.switched_in, LOCAL.switched_out
        saved = presence, keys, GRAD.enabled, inference.active
        self._entry, LOCAL.view = (GRAD.__dict__, saved, self._entry), inside
        GRAD.enabled, inference.active = not self._mode, self._mode
        return self

    def __exit__(self, *_exception: object) -> None:
        entry = self._entry
        if entry is None or entry[0] is not GRAD.__dict__:
            raise guard_error(self, entry)
        _, (_, keys, GRAD.enabled, inference.active), self._entry = entry
        LOCAL.view, LOCAL.switched_in, LOCAL.switched_out = keys


_AUTOGRAD = AUTOGRAD_KEYS.bits
_TRACKING = DispatchKey.ADInplaceOrView.bits


def is_grad_enabled() -> bool:
    """Whether the current thread records."""
    return GRAD.enabled


def is_inference_mode_enabled() -> bool:
    """Whether the current thread makes inference tensors."""
    return inference.active
