"""Contexts: several interpreters beside one dispatcher, opened and closed in any order.

The main context registers, another one brings its copies with it: it is refused where
there is nothing to copy, and its copies run again when what they copy is back.
"""

from everyorder.harness.scenario import (
    Scenario,
    call,
    context,
    define,
    handler,
    impl,
    in_main,
    install_fallbacks,
    mode,
    use,
)
from everyorder.runtime.dispatch import Dispatcher
from everyorder.runtime.torch_dispatch import current_context
from tests.scenarios.handlers import Outer
from tests.scenarios.kernels import (
    best_on_cpu,
    better_on_cpu,
    broken,
    composed,
    on_cpu,
)

_rank = define("graph::rank(Tensor x) -> Tensor")
_theirs = impl("graph::rank", better_on_cpu, "CPU")
_others = impl("graph::rank", best_on_cpu, "CPU")


def _current(dispatcher: Dispatcher) -> str:
    return current_context().name


# A copy runs in its context, the main one's kernel elsewhere, and nothing when closed.
copies_come_and_go = Scenario(
    _rank,
    in_main(impl("graph::rank", on_cpu, "CPU")),
    context("plugin", _theirs),
    probes=("cpu", "context:plugin"),
    uses=[
        call("graph::rank", "context:plugin"),
        use("current_context()", _current, constant=True),
    ],
)

# Two contexts with copies of one kernel know nothing of each other.
two_contexts = Scenario(
    in_main(impl("graph::rank", on_cpu, "CPU")),
    context("plugin", _theirs),
    context("other", _others),
    given=[_rank],
    probes=("cpu", "context:plugin", "context:other"),
)

# A context has no copy of what only a library registered, or of another key's kernel.
what_is_no_copy = Scenario(
    impl("graph::rank", on_cpu, "CPU"),
    in_main(impl("graph::rank", composed)),
    context("plugin", _theirs),
    given=[_rank],
    probes=("cpu", "cpu below autograd", "context:plugin"),
)

# A copy that raises leaves the thread in the context that it was in.
copies_that_fail = Scenario(
    in_main(impl("graph::rank", on_cpu, "CPU")),
    context("plugin", impl("graph::rank", broken, "CPU")),
    given=[_rank],
    probes=("cpu", "context:plugin"),
    uses=[use("current_context()", _current, constant=True)],
)

# A tensor is of the context that made its class, also when that is closed: a call with
# it is refused from then on, and a second context of the name is another one.
tensors_of_a_closed_context = Scenario(
    context("plugin"),
    handler("Theirs", context="plugin"),
    mode(Outer),
    given=[_rank, impl("graph::rank", on_cpu, "CPU"), install_fallbacks()],
    probes=("cpu", "handler:Theirs"),
    order_dependent="a tensor belongs to the context that was open when it was made",
)
