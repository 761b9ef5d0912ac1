"""Uses: calls and look-ups between registrations; none may change anything.

Each is a step of its own here, so histories with and without it are compared: that is
what a cache which is not refreshed cannot hide from.
"""

from everyorder.harness.scenario import (
    Scenario,
    call,
    define,
    fallback,
    impl,
    look_up,
    use,
)
from everyorder.runtime.dispatch import Dispatcher, OperatorHandle, fallthrough
from everyorder.runtime.keys import DispatchKey, KeySet
from everyorder.runtime.schema import parse_name
from tests.scenarios.kernels import (
    broken,
    composed,
    no_cpu,
    on_cpu,
    on_cuda,
    with_gradient,
)

_rank = define("graph::rank(Tensor x) -> Tensor")


def _dangling(dispatcher: Dispatcher) -> str:
    return ", ".join(dispatcher.dangling_impls())


def _names(dispatcher: Dispatcher) -> str:
    return ", ".join(dispatcher.op_names())


def _at_cpu(dispatcher: Dispatcher) -> str:
    return ", ".join(dispatcher.registrations_for("CPU"))


def _at_a_key_that_is_none(dispatcher: Dispatcher) -> str:
    return ", ".join(dispatcher.registrations_for("CPUU"))


def _schema_or_raise(dispatcher: Dispatcher) -> str:
    return str(dispatcher.find_schema_or_raise("graph::rank"))


def _computed(dispatcher: Dispatcher) -> bool:
    found = dispatcher.find_op("graph::rank")
    return found is not None and found.has_computed_kernel("CUDA")


def _redispatch(dispatcher: Dispatcher) -> str:
    name = parse_name("graph::rank")
    handle = OperatorHandle(dispatcher, name)
    return str(handle.redispatch(KeySet([DispatchKey.CPU]), None))


# A call on one backend leaves nothing behind for the next registration.
calls_between = Scenario(
    _rank,
    impl("graph::rank", on_cpu, "CPU"),
    impl("graph::rank", composed),
    uses=[call("graph::rank", "cpu"), call("graph::rank", "cuda")],
)

# A call that failed for want of a kernel succeeds as soon as there is one.
call_before_kernel = Scenario(
    _rank,
    impl("graph::rank", on_cuda, "CUDA"),
    uses=[call("graph::rank", "cuda")],
)

# A fallback changes calls of operators that were called before it came.
call_before_fallback = Scenario(
    _rank,
    fallback(no_cpu, "CPU"),
    fallback(fallthrough, "Tracer"),
    uses=[call("graph::rank", "CPU+Tracer")],
)

# A kernel that raises is called again and again.
calls_that_raise = Scenario(
    _rank,
    impl("graph::rank", broken, "CPU"),
    uses=[call("graph::rank", "cpu below autograd")],
)

# The schema is looked up before it is there, and after it is gone.
look_up_of_the_schema = Scenario(
    _rank,
    impl("graph::rank", on_cpu, "CPU"),
    uses=[look_up("graph::rank"), use("find_schema_or_raise(...)", _schema_or_raise)],
)

# Operators with kernels and no definition are listed as dangling, the others not.
dangling = Scenario(
    _rank,
    impl("graph::rank", on_cpu, "CPU"),
    impl("graph::walk", composed),
    uses=[use("dangling_impls()", _dangling), use("op_names()", _names)],
    probes=("cpu",),
)

# Which operators have a kernel at a key; a key that does not exist is an error.
registrations_for_a_key = Scenario(
    _rank,
    impl("graph::rank", on_cpu, "CPU"),
    impl("graph::rank", composed),
    uses=[
        use('registrations_for("CPU")', _at_cpu),
        use('registrations_for("CPUU")', _at_a_key_that_is_none, constant=True),
    ],
)

# Asking whether a slot is filled warms nothing.
has_computed_kernel = Scenario(
    _rank,
    impl("graph::rank", with_gradient, "Autograd"),
    impl("graph::rank", composed),
    uses=[use('has_computed_kernel("CUDA")', _computed)],
)

# A redispatch takes the keyset as it is, whatever autograd has to say.
redispatch = Scenario(
    _rank,
    impl("graph::rank", on_cpu, "CPU"),
    impl("graph::rank", with_gradient, "Autograd"),
    uses=[use("redispatch(CPU)", _redispatch), call("graph::rank", "cpu")],
)
