"""Asking: uses that tell what a dispatcher says, as text.

True only here: how an answer is written.  A use asks several things, one a line, and
whatever is raised is an answer like any other, with the fields of the error.  What is
asked is asked in between and observed after each step (`asked`), so that every answer
is expected whatever is active, and at none of them by history.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from everyorder.harness.scenario import use
from everyorder.harness.scenario.effects import effects_of
from everyorder.harness.scenario.recorder import recorded_kernel
from everyorder.harness.scenario.step import UseStep
from everyorder.runtime.dispatch import Dispatcher, OperatorHandle
from everyorder.runtime.dispatch.kernel import Kernel, kernel_of
from everyorder.runtime.dispatch.kernel_lookup import WARM
from everyorder.runtime.errors import EveryorderError
from everyorder.runtime.schema import parse_name

# A question: what is to be written of the dispatcher, or what it raises.
Question = Callable[[Dispatcher], object]

# Fields that repeat the state, which is observed anyway.
LEFT_OUT = frozenset({"state", "table"})
# More parts than these are counted.
MANY = 20


def answer(question: Callable[[], object]) -> str:
    """What is said, or raised; a list one part a line."""
    try:
        found = question()
        return "\n".join(map(shown, found if isinstance(found, list) else [found]))
    except Exception as error:
        return raised(error)


def raised(error: Exception) -> str:
    """An error as an answer."""
    if not isinstance(error, EveryorderError):
        return f"raises {type(error).__name__}: {error}"
    fields = {k: v for k, v in error.fields().items() if k not in LEFT_OUT}
    return f"{error.code}({', '.join(map(shown, fields.values()))})"


def shown(value: object) -> str:
    """A value as text: parts one by one, of many only how many, no addresses."""
    if isinstance(value, (tuple, list)):
        if len(value) > MANY:
            return f"({len(value)} parts)"
        return f"({', '.join(map(shown, value))})"
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))


def often(question: Question) -> Question:
    """The same question, so often that calls get their stub; the different answers.

    What is refused is asked once: errors are no faster the second time.
    """

    def several(target: Dispatcher) -> str:
        answers = [shown(question(target)) for _ in range(WARM + 1)]
        return ", then ".join(dict.fromkeys(answers))

    return several


def ask(text: str, *questions: Question) -> UseStep:
    """A use that asks all of these, one answer a line."""

    def perform(target: Dispatcher) -> str:
        return "\n".join(answer(partial(each, target)) for each in questions)

    return use(text, perform)


def asked(*uses: UseStep, probes: tuple[str, ...] = ()) -> dict[str, Any]:
    """Parts of a scenario: the uses, observed as well; by default without probes."""

    def observe(target: Dispatcher) -> str:
        return "".join(f"{each.text}:\n{each.perform(target)}\n" for each in uses)

    return {"uses": uses, "observe": observe, "probes": probes}


def noting(target: Dispatcher, kernel: Callable[..., Any], origin: str) -> Kernel:
    """A kernel as steps register it: the system sees that it ran."""
    return recorded_kernel(
        kernel_of(kernel, False), origin, effects_of(target).recorder
    )


def handle(target: Dispatcher, name: str) -> OperatorHandle:
    """The operator of that name, whether it is registered or not."""
    return OperatorHandle(target, parse_name(name))
