"""Overloads: operators of their own that share the first part of their name."""

from everyorder.harness.scenario import Scenario, call, define, impl, look_up, reserve
from tests.scenarios.kernels import composed, on_cpu, on_cuda, typed_number, typed_one

# Each overload has its own schema and its own kernels.
two_overloads = Scenario(
    define("math::power(Tensor x, Tensor y) -> Tensor"),
    define("math::power.number(Tensor x, int n) -> Tensor"),
    impl("math::power", composed),
    impl("math::power.number", on_cpu, "CPU"),
    probes=("cpu", "cuda"),
)

# An overload does not need the plain one, nor is it found under its name.
overload_only = Scenario(
    define("math::power.number(Tensor x, int n) -> Tensor"),
    impl("math::power.number", on_cpu, "CPU"),
    uses=[look_up("math::power", constant=True), look_up("math::power.number")],
)

# Signatures are compared within an overload, never across.
signatures_of_overloads = Scenario(
    impl("math::power", typed_one, "CPU"),
    impl("math::power.number", typed_number, "CPU"),
    define("math::power.number(Tensor x, int n) -> Tensor"),
    probes=("cpu",),
)

# A second definition of one overload is refused; the other overload is not touched.
overload_defined_twice = Scenario(
    define("math::power.number(Tensor x, int n) -> Tensor"),
    define("math::power.number(Tensor x, float n) -> Tensor"),
    define("math::power(Tensor x) -> Tensor"),
    probes=("cpu",),
)

# A reserved overload stays when the kernels of its sibling go.
siblings = Scenario(
    reserve("math::power.number"),
    impl("math::power", on_cuda, "CUDA"),
    define("math::power(Tensor x) -> Tensor"),
    uses=[call("math::power", "cuda"), call("math::power.number", "cuda")],
    probes=("cpu",),
)
