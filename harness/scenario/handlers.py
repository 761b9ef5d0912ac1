"""Steps of handlers: the fallbacks at Python, classes of tensors, rules.

True only here: what of dispatch to Python can come and go by itself.  A dispatcher of
one's own knows nothing of it until `install_fallbacks`, as on the default one.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from harness.errors import NotAScenario
from harness.scenario.effects import effects_of
from harness.scenario.recorder import Recorder, recorded
from harness.scenario.registrations import opener
from harness.scenario.step import Closable, Perform, Step
from harness.scenario.subclass import Handle, ProbeSubclass, unwrapped
from runtime import python_dispatch
from runtime.dispatch.dispatcher import Dispatcher
from runtime.dispatch.kernel import Kernel
from runtime.dispatch.library import Library
from runtime.dispatch.registration import Registration
from runtime.schema.parser import parse_name


class _Recording(Library):
    """A library whose fallbacks note that they ran."""

    __slots__ = ("recorder",)

    recorder: Recorder

    def fallback(self, kernel: Any, dispatch_key: Any = None, **named: Any) -> Any:
        assert isinstance(kernel, Kernel), "dispatch to Python registers linked kernels"
        noting = recorded(kernel, self.origin, self.recorder)
        found: Registration = super().fallback(noting, dispatch_key, **named)
        return found


def install_fallbacks() -> Step:
    """`runtime.python_dispatch.install_fallbacks`: from here on handlers are asked."""

    def prepare(target: Dispatcher, origin: str) -> Perform:
        def perform() -> Closable:
            library = _Recording("_", "IMPL", dispatcher=target, origin=origin)
            library.recorder = effects_of(target).recorder
            try:
                python_dispatch.install_fallbacks(library)
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

    return Step(text, prepare, beside=True, owner="dispatcher")


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
            return library.rule(op, cls, recorder.noting(fn, label), debug=label)

        return perform

    text = f'rule("{op}", {cls.__name__}, {fn.__name__})'
    return Step(text, prepare, (op,), owner="dispatcher")
