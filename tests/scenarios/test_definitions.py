"""What a definition is: schema, alias kind, tags; with and without kernels."""

from everyorder.harness.scenario import Scenario, call, define, impl, look_up
from tests.scenarios.kernels import (
    answer,
    composed,
    first_of,
    on_cpu,
    on_cuda,
    pair,
    stacked,
    typed_one,
)

# A definition without kernels is found, and a call says that there is no kernel.
definition_only = Scenario(
    define("shape::flip(Tensor x) -> Tensor"),
    uses=[look_up("shape::flip"), call("shape::flip", "cpu")],
)

# Kernels without a definition: not found by schema, and no call is possible.
kernels_only = Scenario(
    impl("shape::flip", on_cpu, "CPU"),
    impl("shape::flip", composed),
    uses=[look_up("shape::flip", constant=True), call("shape::flip", "cpu")],
)

# The smallest pair: what is defined first and what is implemented first is the same.
definition_and_kernel = Scenario(
    define("shape::flip(Tensor x) -> Tensor"),
    impl("shape::flip", composed),
    uses=[call("shape::flip", "cpu")],
)

# A kernel given to `define` comes and goes with the definition.
definition_with_its_kernel = Scenario(
    define("shape::flip(Tensor x) -> Tensor", kernel=composed),
    impl("shape::flip", on_cpu, "CPU"),
    uses=[call("shape::flip", "cuda")],
)

# Typed, untyped and stack kernels stand side by side on one operator.
kernels_of_every_convention = Scenario(
    define("shape::flip(Tensor x) -> Tensor"),
    impl("shape::flip", typed_one, "CPU"),
    impl("shape::flip", on_cuda, "CUDA"),
    impl("shape::flip", stacked, "Meta"),
)

# The alias analysis kind is part of the dump: a pure function.
pure_function = Scenario(
    define("shape::area(Tensor x) -> Tensor", "PURE_FUNCTION"),
    impl("shape::area", on_cpu, "CPU"),
)

# The alias analysis kind is part of the dump: nothing is known of the operator.
conservative = Scenario(
    define("shape::area(Tensor x) -> Tensor", "CONSERVATIVE"),
    impl("shape::area", on_cpu, "CPU"),
)

# An operator that writes to its argument, with the tag that promises it.
in_place = Scenario(
    define("shape::flip_(Tensor(a!) x) -> Tensor(a!)", tags=("inplace",)),
    impl("shape::flip_", on_cpu, "CPU"),
    uses=[call("shape::flip_", "cpu")],
)

# Without tensor arguments a call goes to the Undefined slot, which the composite fills.
without_tensors = Scenario(
    define("shape::sides(int corners) -> int"),
    impl("shape::sides", answer),
    impl("shape::sides", on_cpu, "CPU"),
    uses=[call("shape::sides", "cpu")],
)

# A list of tensors dispatches by its elements.
list_of_tensors = Scenario(
    define("shape::join(Tensor[] parts, int axis=0) -> Tensor"),
    impl("shape::join", first_of, "CPU"),
    impl("shape::join", first_of, "CUDA"),
)

# Several results, and defaults that the kernel never sees.
several_results = Scenario(
    define("shape::cut(Tensor x, int at=1, *, bool copy=False) -> (Tensor, Tensor)"),
    impl("shape::cut", pair, "CPU"),
    impl("shape::cut", pair),
)

# Two operators of one namespace have nothing to do with each other.
two_operators = Scenario(
    define("shape::flip(Tensor x) -> Tensor"),
    define("shape::turn(Tensor x) -> Tensor"),
    impl("shape::flip", on_cpu, "CPU"),
    impl("shape::turn", composed),
    probes=("cpu", "cuda"),
)
