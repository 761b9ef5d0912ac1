"""Modes, handlers and rules that the scenarios register, named after what they do.

True only here: a handler does next to nothing; a scenario asks who is asked, and when.
Those that need the plain tensors behind others take `inner`, as the harness's own do.
"""

from typing import Any

from everyorder.harness.scenario import ProbeMode
from everyorder.harness.scenario.effects import unwrapped
from everyorder.runtime.keys import DispatchKey, include_keys
from everyorder.runtime.torch_dispatch import no_dispatch

passes_on = unwrapped


def declines(func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Leaves the call to whoever is asked next."""
    return NotImplemented


def fails(func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    with include_keys(DispatchKey.Tracer):
        raise ArithmeticError("this handler always fails")


def returns_text(func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    return "no tensor"


def ruled(who: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """A rule that does what a handler does."""
    return unwrapped(func, types, args, kwargs or {})


def ruled_out(who: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """A rule that hands on to the next one."""
    return NotImplemented


class Outer(ProbeMode):
    """Hands everything on."""


class Inner(ProbeMode):
    """Hands everything on."""


class Declining(ProbeMode):
    """Leaves calls to the classes of their tensors."""

    def handle(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return NotImplemented


class Failing(ProbeMode):
    """Raises, with keys included."""

    def handle(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return fails(func, types, args, kwargs)


class Reentering(ProbeMode):
    """Is asked again by what it calls, once."""

    again = False

    def handle(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if self.again:
            return func(*args, **kwargs)
        self.again = True
        try:
            with self:
                return func(*args, **kwargs)
        finally:
            self.again = False


class Hiding(ProbeMode):
    """Calls where neither modes nor classes are asked."""

    def handle(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        with no_dispatch():
            return func(*args, **kwargs)


class Leaking(ProbeMode):
    """Enters a mode and forgets to leave it: an error, and it is left all the same."""

    def handle(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        Outer().__enter__()
        return func(*args, **kwargs)


class Fake(ProbeMode):
    """Has the place of fake modes."""

    infra = "FAKE"


class Proxy(ProbeMode):
    """Has the place of tracing modes."""

    infra = "PROXY"


class OtherProxy(ProbeMode):
    """Wants the place of tracing modes."""

    infra = "PROXY"
