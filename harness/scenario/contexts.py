"""Steps of contexts: several interpreters beside one dispatcher.

True only here: how a step registers as a context.  What the main context registers
(`in_main`) stands for one kernel of each; another context (`context`) comes with its
copies and goes with them, as the runtime would refuse copies of nothing.

Rule: no context waits: whoever registers a copy before the main one has is refused at
once.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from harness.scenario.effects import Effects, effects_of
from harness.scenario.step import Closable, Perform, Step
from runtime.dispatch.library import Library
from runtime.python_dispatch import MAIN, Context


def in_main(step: Step) -> Step:
    """What `step` registers is registered by the main context's library."""

    def prepare(target: Any, origin: str) -> Perform:
        with effects_of(target).opening(MAIN.library):
            return step.prepare(target, origin)

    text = f"in_main({step.text})"
    return replace(step, text=text, prepare=prepare, beside=True)


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
    return Step(text, prepare, names, kernels, beside=True, owner="dispatcher")


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
