"""Steps of custom operators, and of what is added to operators by name.

True only here: who owns what.  A custom operator is closed with all that was added to
it, so its additions are part of its step (`adding=`); what is added to an operator of
another kind has a library of its own, and is a step of its own.

Rule: the runtime looks at the results of custom operators, so these steps are for real
tensors: observe what they compute, and leave the probes out.
"""

from collections.abc import Callable
from functools import partial, wraps
from types import CodeType
from typing import Any

from harness.scenario.effects import effects_of
from harness.scenario.recorder import recorded
from harness.scenario.registrations import operator_of
from harness.scenario.step import Closable, Perform, Step
from runtime.dispatch.handle import OperatorHandle
from runtime.dispatch.kernel import kernel_of
from runtime.dispatch.library import Library
from runtime.dispatch.token import Token
from runtime.locks import load

# What is called to add something: (the handle of the operator, its library).
Add = Callable[[OperatorHandle, Library], object]


class _Custom:
    """The handle of a custom operator; ends it with all that was added to it."""

    __slots__ = ("__weakref__", "_made")

    def __init__(self, made: Any) -> None:
        self._made = made

    @property
    def tokens(self) -> tuple[Token, ...]:
        """What is live by it."""
        found: tuple[Token, ...] = self._made._library.tokens
        return found

    def close(self) -> None:
        self._made.close()


def custom(
    name: str,
    fn: Callable[..., Any],
    *,
    mutates_args: Any = (),
    adding: Callable[[Any], object] | None = None,
    **options: Any,
) -> Step:
    """`runtime.custom_op(name, fn, ...)`, and `adding(definition)` if that is given."""
    named = "".join(f", {key}={value!r}" for key, value in options.items())
    added = f", adding={adding.__name__}" if adding else ""
    text = (
        f'custom("{name}", {fn.__name__}, mutates_args={mutates_args!r}{named}{added})'
    )

    def prepare(target: Any, origin: str) -> Perform:
        recorder = effects_of(target).recorder
        make = load("runtime.custom").custom_op
        label = f"{fn.__name__} ({origin})"

        def perform() -> Closable:
            noting = wraps(fn)(recorder.noting(fn, label))
            call = partial(
                make, mutates_args=mutates_args, dispatcher=target, **options
            )
            made = eval(  # noqa: S307  # one call, of which dumps show the place
                _called_at(origin), {"call": call, "name": name, "function": noting}
            )
            recorder.watch(f"the operator {name}", made)
            if adding is not None:
                try:
                    adding(made)
                except BaseException:
                    made.close()
                    raise
            return _Custom(made)

        return perform

    return Step(text, prepare, (name,), beside=True, owner="dispatcher")


def _called_at(origin: str) -> CodeType:
    """A call whose place is its step: dumps are to hold no path and no line."""
    return compile("call(name, function)", origin, "eval")


def register_kernel(op: str, device_types: Any, fn: Callable[..., Any]) -> Step:
    """`runtime.library.register_kernel`."""

    def add(handle: OperatorHandle, library: Library, run: Any) -> None:
        load("runtime.custom").register_kernel(handle, device_types, run, lib=library)

    return _added(f'register_kernel("{op}", {device_types!r}', op, fn, add)


def register_fake(op: str, fn: Callable[..., Any]) -> Step:
    """`runtime.library.register_fake`."""

    def add(handle: OperatorHandle, library: Library, run: Any) -> None:
        load("runtime.custom").register_fake(handle, run, lib=library)

    return _added(f'register_fake("{op}"', op, fn, add)


def register_autograd(
    op: str,
    backward: Callable[..., Any],
    setup_context: Callable[..., Any] | None = None,
) -> Step:
    """`runtime.library.register_autograd`."""
    register = partial(_autograd, setup_context)
    text = f'register_autograd("{op}"'
    return _added(text, op, backward, register, kernel=False)


def _autograd(
    setup_context: Callable[..., Any] | None,
    handle: OperatorHandle,
    library: Library,
    backward: Any,
) -> None:
    register = load("runtime.custom").register_autograd
    register(handle, backward, setup_context=setup_context, lib=library)


def _added(
    text: str,
    op: str,
    fn: Callable[..., Any],
    add: Callable[[OperatorHandle, Library, Any], None],
    *,
    kernel: bool = True,
) -> Step:
    """A step in a library of its own, opened when it is done."""
    name = operator_of(op)

    def prepare(target: Any, origin: str) -> Perform:
        recorder = effects_of(target).recorder
        label = f"{fn.__name__} ({origin})"

        def perform() -> Closable:
            namespace = name.namespace or ""
            library = Library(namespace, "FRAGMENT", dispatcher=target, origin=origin)
            if kernel:
                run: Any = recorded(kernel_of(fn, False), origin, recorder)
            else:
                run = recorder.noting(fn, label)
            try:
                add(OperatorHandle(target, name), library, run)
            except BaseException:
                library.close()
                raise
            return library

        return perform

    return Step(f"{text}, {fn.__name__})", prepare, (op,), owner="dispatcher")
