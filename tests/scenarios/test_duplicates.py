"""Duplicates: several kernels for one key, of which the newest is in force.

That is the one fact of the dispatcher that depends on order by design; each scenario
pins it, and its states are told apart by the order of activation.
"""

from everyorder.harness.scenario import Scenario, call, define, impl
from everyorder.runtime.dispatch import fallthrough
from tests.scenarios.kernels import (
    best_on_cpu,
    better_on_cpu,
    composed,
    composed_anew,
    on_cpu,
    with_gradient,
)

_sort = define("table::sort(Tensor x) -> Tensor")
NEWEST = "the newest kernel of a key is in force, older ones come back in turn"

# Two kernels for all backends: the newer one is active, the older one is kept.
two_composites_of_one_key = Scenario(
    impl("table::sort", composed),
    impl("table::sort", composed_anew),
    given=[_sort],
    uses=[call("table::sort", "cpu")],
    order_dependent=NEWEST,
)

# Two kernels for CPU around a definition that comes and goes.
two_for_cpu = Scenario(
    _sort,
    impl("table::sort", on_cpu, "CPU"),
    impl("table::sort", better_on_cpu, "CPU"),
    order_dependent=NEWEST,
)

# Three of them: taking away the middle one leaves the others in place.
three_for_cpu = Scenario(
    impl("table::sort", on_cpu, "CPU"),
    impl("table::sort", better_on_cpu, "CPU"),
    impl("table::sort", best_on_cpu, "CPU"),
    given=[_sort],
    order_dependent=NEWEST,
)

# A fallthrough is a kernel like any other: newest, it uncovers the keys below.
fallthrough_over_kernel = Scenario(
    impl("table::sort", with_gradient, "AutogradCPU"),
    impl("table::sort", fallthrough, "AutogradCPU"),
    impl("table::sort", on_cpu, "CPU"),
    given=[_sort],
    order_dependent=NEWEST,
)

# The kernel that came with the definition counts as one of them.
kernel_of_the_definition = Scenario(
    define("table::sort(Tensor x) -> Tensor", kernel=composed),
    impl("table::sort", composed_anew),
    impl("table::sort", on_cpu, "CPU"),
    order_dependent=NEWEST,
)

# Undefined, as a key of a kernel, is the implicit composite.
undefined_is_composite = Scenario(
    impl("table::sort", composed, "Undefined"),
    impl("table::sort", composed_anew, "CompositeImplicitAutograd"),
    given=[_sort],
    order_dependent=NEWEST,
)

# Whoever forbids overriding is refused where a kernel is, and keeps nobody else away.
no_override = Scenario(
    impl("table::sort", on_cpu, "CPU", allow_override=False),
    impl("table::sort", better_on_cpu, "CPU", allow_override=False),
    given=[_sort],
)
