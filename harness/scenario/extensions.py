"""Steps of what extends a dispatcher: contexts, modes, handlers, custom operators.

*Contexts* are several interpreters beside one dispatcher.  What the main context
registers (`in_main`) stands for one kernel of each; another context (`context`) comes
with its copies and goes with them, as the runtime would refuse copies of nothing.  No
context waits: whoever registers a copy before the main one has is refused at once.

*Modes*: a step enters a new mode and, undone, takes it out wherever it stands, so that
modes go in any order.  User modes stand in the order of entering, which a scenario pins
(`order_dependent=`); infra modes have a place each.  A mode belongs to the thread: it
sees every dispatcher's calls that know of modes.

*Handlers*: the fallbacks at Python, classes of tensors, rules.  A dispatcher of one's
own knows nothing of dispatch to Python until `install_fallbacks`, as on the default
one.

*Custom operators* are closed with all that was added to them, so their additions are
part of their step (`adding=`); what is added to an operator of another kind has a
library of its own, and is a step of its own.  The runtime looks at their results, so
these steps are for real tensors: observe what they compute, and leave the probes out.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from types import CodeType
from typing import Any

from everyorder.harness.base.errors import NotAScenario
from everyorder.harness.scenario.effects import (
    Effects,
    Handle,
    ProbeSubclass,
    effects_of,
    unwrapped,
)
from everyorder.harness.scenario.recorder import LabelRecorder, recorded_kernel
from everyorder.harness.scenario.registrations import opener, operator_of
from everyorder.harness.scenario.step import Closable, Perform, Step
from everyorder.runtime import torch_dispatch
from everyorder.runtime.base.locks import load
from everyorder.runtime.dispatch.dispatcher import Dispatcher
from everyorder.runtime.dispatch.handle import OperatorHandle
from everyorder.runtime.dispatch.kernel import Kernel, kernel_of
from everyorder.runtime.dispatch.library import Library
from everyorder.runtime.dispatch.registration import Registration
from everyorder.runtime.dispatch.registration_record import RegistrationRecord
from everyorder.runtime.schema.parser import parse_name
from everyorder.runtime.torch_dispatch import MAIN, Context, TorchDispatchMode, leave


def in_main(step: Step) -> Step:
    """What `step` registers is registered by the main context's library."""

    def prepare(target: Any, origin: str) -> Perform:
        with effects_of(target).opening(MAIN.library):
            return step.prepare(target, origin)

    text = f"in_main({step.text})"
    return replace(step, text=text, prepare=prepare, has_effects=True)


def context(name: str, *copies: Step) -> Step:
    """A context of that name, with the copies that it registers; undone, it is closed.

    `"context:NAME"` is the kind of calls made in it.
    """

    def prepare(target: Any, origin: str) -> Perform:
        effects = effects_of(target)

        def perform() -> Closable:
            made = Context(name, timeout=0)
            try:
                held = _copied(effects, made.library, copies, target, origin)
            except BaseException:
                made.close()
                raise
            effects.contexts[name] = made

            def end() -> None:
                del effects.contexts[name]
                # What is still registered ends with its context.
                made.close()
                held.clear()
                # The tensors that were made in it keep it.
                if all(each._context is not made for each in effects.tensors.values()):
                    effects.recorder.watch(f"the context {name}", made)

            return effects.hold(end)

        return perform

    text = ", ".join([f'context("{name}"', *(each.text for each in copies)]) + ")"
    names = tuple(dict.fromkeys(op for each in copies for op in each.operators))
    kernels = tuple(f"{name}: {each}" for step in copies for each in step.kernels)
    return Step(text, prepare, names, kernels, has_effects=True, owner="dispatcher")


def _copied(
    effects: Effects,
    opens: Callable[..., Library],
    copies: tuple[Step, ...],
    target: Any,
    origin: str,
) -> list[object]:
    """The copies registered by libraries of a context; what keeps them."""
    held: list[object] = []
    with effects.opening(opens):
        for each in copies:
            perform = each.prepare(target, origin)
            held += [perform, perform()]
    return held


class ProbeMode(TorchDispatchMode):
    """A mode that notes that it was asked, and then does what `handle` does.

    `label` names the step that entered it.
    """

    label: str = ""
    recorder: LabelRecorder | None = None

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if self.recorder is not None:
            self.recorder.note(self.label)
        return self.handle(func, types, args, kwargs or {})

    def handle(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """What the mode does: calls the operator, for whoever comes next."""
        return func(*args, **kwargs)


def mode(make: Callable[[], TorchDispatchMode]) -> Step:
    """Enter `make()`, a class of modes or what makes one; undone, leave it.

    Entering raises as `with` does: an infra mode whose place is taken is refused.
    """
    name = make.__name__

    def prepare(target: Any, origin: str) -> Perform:
        effects = effects_of(target)
        label = f"{name} ({origin})"

        def perform() -> Closable:
            made = make()
            if isinstance(made, ProbeMode):
                made.label, made.recorder = label, effects.recorder
            effects.recorder.watch(label, made)
            made.__enter__()
            return effects.hold(partial(leave, made))

        return perform

    return Step(f"mode({name})", prepare, has_effects=True, owner="dispatcher")


class _Recording(Library):
    """A library whose fallbacks note that they ran."""

    __slots__ = ("recorder",)

    recorder: LabelRecorder

    def fallback(self, kernel: Any, dispatch_key: Any = None, **named: Any) -> Any:
        assert isinstance(kernel, Kernel), "dispatch to Python registers linked kernels"
        noting = recorded_kernel(kernel, self.origin, self.recorder)
        found: Registration = super().fallback(noting, dispatch_key, **named)
        return found


def install_fallbacks() -> Step:
    """`runtime.torch_dispatch.install_fallbacks`: from here on handlers are asked."""

    def prepare(target: Dispatcher, origin: str) -> Perform:
        def perform() -> Closable:
            library = _Recording("_", "IMPL", dispatcher=target, origin=origin)
            library.recorder = effects_of(target).recorder
            try:
                torch_dispatch.install_fallbacks(library)
            except BaseException:
                library.close()
                raise
            return library

        return perform

    return Step("install_fallbacks()", prepare, owner="dispatcher")


def handler(name: str, handle: Handle = unwrapped, *, context: str = "") -> Step:
    """A class of tensors with a handler: `handle(func, types, args, kwargs)`.

    Its tensors are the kind `"handler:NAME"` of calls and probes; undone, the class is
    gone.  With a `context`, of which the step must be active, they are made there.
    """
    text = f'handler("{name}"'
    text += "" if handle is unwrapped else f", {handle.__name__}"
    text += f', context="{context}")' if context else ")"

    def prepare(target: Any, origin: str) -> Perform:
        effects = effects_of(target)
        label = f"{name} ({origin})"

        def perform() -> Closable:
            if name in effects.tensors:
                raise NotAScenario(
                    found=f"a second handler called {name!r}", wanted="another name"
                )
            cls = type(name, (ProbeSubclass,), {"handle": staticmethod(handle)})
            with effects.inside(context):
                made = cls(label, effects.recorder)
            effects.recorder.watch(label, cls)
            effects.recorder.watch(f"a tensor of {label}", made)
            effects.tensors[name] = made
            return effects.hold(partial(effects.tensors.pop, name))

        return perform

    return Step(text, prepare, has_effects=True, owner="dispatcher")


def rule(op: str, cls: type, fn: Callable[..., Any]) -> Step:
    """`Library.rule`: `fn` handles `op` for modes or tensors of exactly `cls`."""
    namespace = parse_name(op).namespace
    if namespace is None:
        raise NotAScenario(
            found=f"operator {op!r} without a namespace",
            wanted=f"its full name, as in 'ns::{op}'",
        )

    def prepare(target: Dispatcher, origin: str) -> Perform:
        recorder = effects_of(target).recorder
        label = f"{fn.__name__} ({origin})"
        opened = opener(target)
        library = opened(namespace, "FRAGMENT", dispatcher=target, origin=origin)

        def perform() -> Closable:
            # Another function each time: what is undone must die.
            return library.rule(op, cls, recorder.recording(fn, label), debug=label)

        return perform

    text = f'rule("{op}", {cls.__name__}, {fn.__name__})'
    return Step(text, prepare, (op,), owner="dispatcher")


# What is called to add something: (the handle of the operator, its library).
Add = Callable[[OperatorHandle, Library], object]


class _CustomHandle:
    """The handle of a custom operator; ends it with all that was added to it."""

    __slots__ = ("__weakref__", "_made")

    def __init__(self, made: Any) -> None:
        self._made = made

    @property
    def tokens(self) -> tuple[RegistrationRecord, ...]:
        """What is live by it."""
        found: tuple[RegistrationRecord, ...] = self._made._library.tokens
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
        make = load("everyorder.runtime.custom").custom_op
        label = f"{fn.__name__} ({origin})"

        def perform() -> Closable:
            noting = wraps(fn)(recorder.recording(fn, label))
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
            return _CustomHandle(made)

        return perform

    return Step(text, prepare, (name,), has_effects=True, owner="dispatcher")


def _called_at(origin: str) -> CodeType:
    """A call whose place is its step: dumps are to hold no path and no line."""
    return compile("call(name, function)", origin, "eval")


def register_kernel(op: str, device_types: Any, fn: Callable[..., Any]) -> Step:
    """`runtime.library.register_kernel`."""

    def add(handle: OperatorHandle, library: Library, run: Any) -> None:
        load("everyorder.runtime.custom").register_kernel(
            handle, device_types, run, lib=library
        )

    return _added(f'register_kernel("{op}", {device_types!r}', op, fn, add)


def register_fake(op: str, fn: Callable[..., Any]) -> Step:
    """`runtime.library.register_fake`."""

    def add(handle: OperatorHandle, library: Library, run: Any) -> None:
        load("everyorder.runtime.custom").register_fake(handle, run, lib=library)

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
    register = load("everyorder.runtime.custom").register_autograd
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
                run: Any = recorded_kernel(kernel_of(fn, False), origin, recorder)
            else:
                run = recorder.recording(fn, label)
            try:
                add(OperatorHandle(target, name), library, run)
            except BaseException:
                library.close()
                raise
            return library

        return perform

    return Step(f"{text}, {fn.__name__})", prepare, (op,), owner="dispatcher")
