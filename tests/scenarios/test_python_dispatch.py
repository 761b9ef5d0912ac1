"""Classes with handlers, rules, and kernels at the key Python, in every order."""

from everyorder.harness.scenario import (
    ProbeSubclass,
    Scenario,
    call,
    define,
    fallback,
    handler,
    impl,
    install_fallbacks,
    mode,
    reserve,
    rule,
    use,
)
from everyorder.runtime.dispatch import Dispatcher, OperatorHandle, fallthrough
from everyorder.runtime.schema import parse_name
from tests.scenarios.handlers import (
    Outer,
    declines,
    fails,
    returns_text,
    ruled,
    ruled_out,
)
from tests.scenarios.kernels import (
    better_on_cpu,
    broken,
    composed,
    on_cpu,
    with_gradient,
)

_rank = define("graph::rank(Tensor x) -> Tensor")
_on_cpu = impl("graph::rank", on_cpu, "CPU")
_asked = install_fallbacks()
_few = ("cpu", "subclass")


class _Holder:
    """What the operator was called with: a handler that keeps what it was given."""

    def __init__(self) -> None:
        self.held: object = None


def _by_what_a_handler_held(dispatcher: Dispatcher) -> str:
    """A handler keeps `func`; the operator may be gone when it is called."""
    name = parse_name("graph::rank")
    holder = _Holder()

    class Holding(Outer):
        def handle(self, func, types, args, kwargs):  # type: ignore[no-untyped-def]  # as its base's
            holder.held = func
            return func(*args, **kwargs)

    with Holding():
        first = call("graph::rank").perform(dispatcher)
    func = holder.held or OperatorHandle(dispatcher, name)
    same = func is OperatorHandle(dispatcher, name)
    return f"{first}; {same}; {call('graph::rank', 'subclass').perform(dispatcher)}"


# A class is asked while there are fallbacks that ask it; else its tensors are nobody's.
a_class_and_its_fallbacks = Scenario(
    _rank,
    _on_cpu,
    _asked,
    impl("graph::rank", with_gradient, "Autograd"),
    probes=_few,
    uses=[call("graph::rank", "subclass")],
)

# Classes come and go; a tensor of one that is gone cannot be had.
classes_come_and_go = Scenario(
    handler("Tagged"),
    handler("Declining", declines),
    _on_cpu,
    given=[_rank, _asked],
    probes=("cpu", "handler:Tagged", "handler:Declining"),
    uses=[call("graph::rank", "handler:Tagged")],
)

# Handlers that raise, or return what is no tensor, leave the thread as it was.
handlers_that_fail = Scenario(
    handler("Failing", fails),
    handler("Wordy", returns_text),
    mode(Outer),
    given=[_rank, _on_cpu, _asked],
    probes=("handler:Failing", "handler:Wordy"),
)

# A kernel at Python stands before the fallback, one that falls through is passed by.
kernels_at_python = Scenario(
    impl("graph::rank", better_on_cpu, "Python"),
    _asked,
    _on_cpu,
    given=[_rank],
    probes=_few,
    uses=[call("graph::rank", "subclass")],
)
fallthrough_at_python = Scenario(
    impl("graph::rank", fallthrough, "Python"),
    _asked,
    mode(Outer),
    given=[_rank, _on_cpu],
    probes=_few,
)

# A fallback of another kind takes the place of the one that asks handlers.
fallbacks_at_python = Scenario(
    _asked,
    fallback(fallthrough, "Python"),
    _on_cpu,
    given=[_rank],
    probes=_few,
)

# A rule stands before the handler of exactly its class, and outlives the operator.
rules_and_handlers = Scenario(
    _rank,
    rule("graph::rank", ProbeSubclass, ruled),
    rule("graph::rank", Outer, ruled_out),
    mode(Outer),
    given=[_asked, _on_cpu],
    probes=_few,
    uses=[call("graph::rank", "subclass")],
)

# A rule needs no operator, and is none: it waits for the one that is defined.
rules_wait_for_their_operator = Scenario(
    _rank,
    _on_cpu,
    rule("graph::rank", ProbeSubclass, ruled),
    given=[_asked],
    probes=_few,
    uses=[call("graph::rank", "subclass")],
)

# There is one rule for an operator and a class: the second is refused.
one_rule_for_both = Scenario(
    rule("graph::rank", ProbeSubclass, ruled),
    rule("graph::rank", ProbeSubclass, ruled_out),
    given=[_rank, _asked, _on_cpu],
    probes=_few,
)

# An operator goes while a handler holds it; what it held is the operator of that name.
held_by_a_handler = Scenario(
    _rank,
    _on_cpu,
    reserve("graph::rank"),
    given=[_asked],
    probes=(),
    uses=[use("call by what a handler held", _by_what_a_handler_held)],
)

# What a handler calls may fail, have no kernel, or be made of other operators.
what_handlers_call = Scenario(
    impl("graph::rank", broken, "CPU"),
    impl("graph::rank", composed),
    mode(Outer),
    given=[_rank, _asked],
    probes=("cpu", "cpu below autograd", "meta", "subclass"),
)
