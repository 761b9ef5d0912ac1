"""Steps of dispatcher extensions: contexts, modes, handlers, custom operators.

*Contexts* are several interpreters that share one dispatcher. A registration of the
main context (`in_main`) represents one kernel of each context; another context
(`context`) opens together with its copies and closes together with them, because the
runtime refuses copies without an original. No context waits: a copy that is registered
before the main context's kernel is refused at once.

*Modes*: a step enters a new mode and, undone, removes it from any position of the
stack, so modes can be left in any order. User modes are stacked in the order of
entering, which a scenario declares (`order_dependent=`); infra modes have one slot
each. A mode belongs to the thread: it sees the calls of every dispatcher that supports
modes.

*Handlers*: the fallbacks at the Python keys, classes of tensors, rules. A user's own
dispatcher does not dispatch to Python before `install_fallbacks`; the default one calls
it, too.

*Custom operators* are closed together with everything that was added to them, so their
additions are part of their step (`adding=`). An addition to another kind of operator
has a separate library, and is a separate step. The runtime checks the results of custom
operators, so these steps need real tensors: observe the computed values, and leave the
probes out.
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
    """Return `step` with its registrations made by the main context's library."""

    def prepare(target: Any, origin: str) -> Perform:
        with effects_of(target).opening(MAIN.library):
            return step.prepare(target, origin)

    text = f"in_main({step.text})"
    return replace(step, text=text, prepare=prepare, has_effects=True)


def context(name: str, *copies: Step) -> Step:
    """Return a step that opens a context and its copies; undone, it closes the context.

    `"context:NAME"` is the kind of calls made in it.
    """

    def prepare(target: Any, origin: str) -> Perform:
        effects = effects_of(target)

        def perform() -> Closable:
            new_context = Context(name, timeout=0)
            try:
                resources = _copied(
                    effects, new_context.library, copies, target, origin
                )
            except BaseException:
                new_context.close()
                raise
            effects.contexts[name] = new_context

            def end() -> None:
                del effects.contexts[name]
                # Registrations that are still live end with their context.
                new_context.close()
                resources.clear()
                # Tensors that were created in the context keep it alive.
                if all(
                    each._context is not new_context
                    for each in effects.tensors.values()
                ):
                    effects.recorder.watch(f"the context {name}", new_context)

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
    """Register the copies by libraries of a context; return their owners."""
    resources: list[object] = []
    with effects.opening(opens):
        for each in copies:
            perform = each.prepare(target, origin)
            resources += [perform, perform()]
    return resources


class ProbeMode(TorchDispatchMode):
    """A mode that records each call it intercepts, and then calls `handle`.

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
        """Handle the call; the default passes it to the next mode or handler."""
        return func(*args, **kwargs)


def mode(make: Callable[[], TorchDispatchMode]) -> Step:
    """Return a step that enters the mode `make()`; undone, it leaves the mode.

    `make` is a class or factory of modes.

    Entering raises as `with` does: an infra mode whose slot is occupied is refused.
    """
    name = make.__name__

    def prepare(target: Any, origin: str) -> Perform:
        effects = effects_of(target)
        label = f"{name} ({origin})"

        def perform() -> Closable:
            entered_mode = make()
            if isinstance(entered_mode, ProbeMode):
                entered_mode.label, entered_mode.recorder = label, effects.recorder
            effects.recorder.watch(label, entered_mode)
            entered_mode.__enter__()
            return effects.hold(partial(leave, entered_mode))

        return perform

    return Step(f"mode({name})", prepare, has_effects=True, owner="dispatcher")


class _Recording(Library):
    """A library that records each run of its fallbacks."""

    __slots__ = ("recorder",)

    recorder: LabelRecorder

    def fallback(self, kernel: Any, dispatch_key: Any = None, **options: Any) -> Any:
        assert isinstance(kernel, Kernel), "install_fallbacks registers linked kernels"
        noting = recorded_kernel(kernel, self.origin, self.recorder)
        registration: Registration = super().fallback(noting, dispatch_key, **options)
        return registration


def install_fallbacks() -> Step:
    """Return a step that calls `runtime.torch_dispatch.install_fallbacks`.

    While it is active, handlers intercept calls.
    """

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
    """Return a step for a tensor class with a handler.

    The handler is called as `handle(func, types, args, kwargs)`.

    The tensors of the class are the kind `"handler:NAME"` of calls and probes; undone,
    the class no longer exists. With a `context`, whose step must be active, the tensors
    are created in that context.
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
                instance = cls(label, effects.recorder)
            effects.recorder.watch(label, cls)
            effects.recorder.watch(f"a tensor of {label}", instance)
            effects.tensors[name] = instance
            return effects.hold(partial(effects.tensors.pop, name))

        return perform

    return Step(text, prepare, has_effects=True, owner="dispatcher")


def rule(op: str, cls: type, fn: Callable[..., Any]) -> Step:
    """Return a step for `Library.rule`: `fn` handles `op` for instances of `cls`.

    `cls` is a class of modes or tensors; its subclasses are not handled.
    """
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
            # Register a new function each time: the law about memory expects it to die
            # on undo.
            return library.rule(op, cls, recorder.recording(fn, label), debug=label)

        return perform

    text = f'rule("{op}", {cls.__name__}, {fn.__name__})'
    return Step(text, prepare, (op,), owner="dispatcher")


# A function that adds to an operator: (the handle of the operator, its library).
Add = Callable[[OperatorHandle, Library], object]


class _CustomHandle:
    """The handle of a custom operator; closes it with all additions."""

    __slots__ = ("__weakref__", "_definition")

    def __init__(self, definition: Any) -> None:
        self._definition = definition

    @property
    def tokens(self) -> tuple[RegistrationRecord, ...]:
        """Return the live registration records of the operator."""
        records: tuple[RegistrationRecord, ...] = self._definition._library.tokens
        return records

    def close(self) -> None:
        self._definition.close()


def custom(
    name: str,
    fn: Callable[..., Any],
    *,
    mutates_args: Any = (),
    adding: Callable[[Any], object] | None = None,
    **options: Any,
) -> Step:
    """Return a step that calls `runtime.custom_op` and then `adding(definition)`."""
    written = "".join(f", {key}={value!r}" for key, value in options.items())
    addition = f", adding={adding.__name__}" if adding else ""
    arguments = f"mutates_args={mutates_args!r}{written}{addition}"
    text = f'custom("{name}", {fn.__name__}, {arguments})'

    def prepare(target: Any, origin: str) -> Perform:
        recorder = effects_of(target).recorder
        make = load("everyorder.runtime.custom").custom_op
        label = f"{fn.__name__} ({origin})"

        def perform() -> Closable:
            noting = wraps(fn)(recorder.recording(fn, label))
            call = partial(
                make, mutates_args=mutates_args, dispatcher=target, **options
            )
            definition = eval(  # noqa: S307  # its file name is the step
                _called_at(origin), {"call": call, "name": name, "function": noting}
            )
            recorder.watch(f"the operator {name}", definition)
            if adding is not None:
                try:
                    adding(definition)
                except BaseException:
                    definition.close()
                    raise
            return _CustomHandle(definition)

        return perform

    return Step(text, prepare, (name,), has_effects=True, owner="dispatcher")


def _called_at(origin: str) -> CodeType:
    """Return the code of a call whose file name is `origin`.

    Dumps must not contain paths and line numbers of this file.
    """
    return compile("call(name, function)", origin, "eval")


def register_kernel(op: str, device_types: Any, fn: Callable[..., Any]) -> Step:
    """Return a step for `runtime.library.register_kernel`."""

    def add(handle: OperatorHandle, library: Library, run: Any) -> None:
        load("everyorder.runtime.custom").register_kernel(
            handle, device_types, run, lib=library
        )

    return _added(f'register_kernel("{op}", {device_types!r}', op, fn, add)


def register_fake(op: str, fn: Callable[..., Any]) -> Step:
    """Return a step for `runtime.library.register_fake`."""

    def add(handle: OperatorHandle, library: Library, run: Any) -> None:
        load("everyorder.runtime.custom").register_fake(handle, run, lib=library)

    return _added(f'register_fake("{op}"', op, fn, add)


def register_autograd(
    op: str,
    backward: Callable[..., Any],
    setup_context: Callable[..., Any] | None = None,
) -> Step:
    """Return a step for `runtime.library.register_autograd`."""
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
    """Return a step with a separate library, which is opened when the step is done."""
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
