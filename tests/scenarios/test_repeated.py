"""What is done again is not worked out again: counted in calls of Python functions.

Speed is observed here as everything else is: at every set of registrations, by any
history, a repetition takes few calls.  The limits leave room for other versions of
Python; working anything out anew takes half as many again, or more.
"""

import gc
import sys
from collections.abc import Callable
from typing import Any

from everyorder.harness.scenario import Scenario, define, impl
from everyorder.harness.scenario.effects import probe_tensor
from everyorder.runtime.dispatch import Dispatcher, Library, fingerprint
from everyorder.runtime.dispatch.kernel_lookup import COLD, WARM
from everyorder.runtime.dispatch.transition import REMEMBERING
from tests.scenarios.asking import ask, asked, handle
from tests.scenarios.kernels import on_cpu

_X = probe_tensor("cpu")


def _calls_of(do: Callable[[], Any]) -> int:
    """How many Python functions are called by doing it."""
    count = 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    before, collects = sys.getprofile(), gc.isenabled()
    # What others left in cycles may be ended by functions, which are not counted.
    gc.disable()
    sys.setprofile(counted)
    try:
        do()
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return count


def _few(most: int, do: Callable[[], Any]) -> str:
    """Whether it takes few calls, now that it was done before."""
    do()
    # Not how many: that may depend on history where it is too many.
    return "few calls" if _calls_of(do) <= most else f"more than {most} calls"


def _implement(library: Library, *operators: str) -> None:
    for each in operators:
        library.impl(each, on_cpu, "CPU").close()


def _registering(target: Dispatcher) -> list[str]:
    with Library("text", "FRAGMENT", dispatcher=target, origin="again") as library:
        return [
            _few(55, lambda: library.define("again(Tensor x) -> Tensor").close()),
            _few(50, lambda: library.impl("again", on_cpu, "CPU").close()),
            # Two in turn: none is forgotten for the other one.
            _few(100, lambda: _implement(library, "again", "more")),
            _few(80, lambda: library.reserve("again").close()),
        ]


def _calling(target: Dispatcher) -> list[str]:
    op, count = handle(target, "text::split"), handle(target, "text::count")
    for _ in range(WARM):
        op(_X)
        count(_X)
    return [
        _few(8, lambda: op(_X)),
        _few(8, lambda: count(_X)),
        _few(45, lambda: op.call_boxed([_X])),
        _few(30, lambda: target.find_op("text::split")),
    ]


def _stubs(target: Dispatcher) -> list[str]:
    """Plain calls before an operator has its call stub, and its packet one."""
    fresh = Dispatcher(warns_of_overrides=False)
    fresh.state = target.state
    with Library("text", "FRAGMENT", dispatcher=fresh, origin="fresh") as library:
        library.define("warm(Tensor x) -> Tensor")
        library.impl("warm", on_cpu, "CPU")
        op = handle(fresh, "text::warm")
        packet = op.overloadpacket
        counts = []
        for called in (op, packet):
            count = 0
            while "Ref.call" in called.func.__qualname__ and count < 2 * COLD:
                called(_X)
                count += 1
            counts.append(f"{count} calls of {type(called).__name__}")
        return counts


def _reading(target: Dispatcher) -> str:
    """A state that was read once, with more operators than are read one by one."""
    fresh = Dispatcher(warns_of_overrides=False)
    with Library("text", "FRAGMENT", dispatcher=fresh, origin="fresh") as library:
        for number in range(2 * REMEMBERING):
            library.reserve(f"op{number}")
        return _few(12, lambda: fingerprint(fresh.state))


# Registering again, in the same words, and calling again, with the same keys.
few_calls = Scenario(
    define("text::split(Tensor x) -> Tensor"),
    impl("text::split", on_cpu, "CPU"),
    impl("text::again", on_cpu, "CUDA"),
    given=[define("text::count(Tensor x, int n=1) -> Tensor", kernel=on_cpu)],
    **asked(ask("again", _registering, _calling, _stubs, _reading)),
)
