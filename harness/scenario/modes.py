"""Steps that enter modes, and the mode that says when it was asked.

True only here: a mode step enters a new mode and, undone, takes it out wherever it
stands, so that modes go in any order.  User modes stand in the order of entering, which
a scenario pins (`order_dependent=`); infra modes have a place each.

A mode belongs to the thread: it sees every dispatcher's calls that know of modes.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from harness.scenario.effects import effects_of
from harness.scenario.recorder import Recorder
from harness.scenario.step import Closable, Perform, Step
from runtime.python_dispatch import TorchDispatchMode, leave


class ProbeMode(TorchDispatchMode):
    """A mode that notes that it was asked, and then does what `handle` does.

    `label` names the step that entered it.
    """

    label: str = ""
    recorder: Recorder | None = None

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

    return Step(f"mode({name})", prepare, beside=True, owner="dispatcher")
