"""Larger scenarios: eight to ten registrations, each set of which is a state.

The exhaustive test of upstream would take 26 thousand million steps for eight of them.
"""

import pytest

from everyorder.harness.scenario import (
    Scenario,
    define,
    fallback,
    impl,
    library,
    listen,
    reserve,
)
from tests.scenarios.kernels import (
    composed,
    cpu_with_gradient,
    everywhere,
    functional,
    no_cpu,
    on_cpu,
    on_cuda,
    on_fpga,
    on_meta,
    on_sparse,
    on_xla,
    other_with_gradient,
    typed_one,
    typed_two,
    with_gradient,
)

# `everyorder gate` explores them, too.
pytestmark = pytest.mark.slow

# Every kind of key at once, on one operator.
every_kind_of_key = Scenario(
    define("grid::step(Tensor x) -> Tensor"),
    impl("grid::step", on_cpu, "CPU"),
    impl("grid::step", on_sparse, "SparseCPU"),
    impl("grid::step", composed, "CompositeImplicitAutograd"),
    impl("grid::step", everywhere, "CompositeExplicitAutograd"),
    impl("grid::step", functional, "CompositeExplicitAutogradNonFunctional"),
    impl("grid::step", with_gradient, "Autograd"),
    impl("grid::step", cpu_with_gradient, "AutogradCPU"),
    impl("grid::step", other_with_gradient, "AutogradOther"),
    probes=("cpu", "sparse"),
)

# Every kind of registration at once, two of which exclude each other.
every_kind_of_registration = Scenario(
    library("grid", "DEF"),
    listen(),
    reserve("grid::step"),
    define("grid::step(Tensor x) -> Tensor"),
    fallback(no_cpu, "CPU"),
    impl("grid::step", typed_one, "CPU"),
    impl("grid::step", typed_two, "CUDA"),
    impl("grid::step", composed),
    probes=("cpu",),
)

# Ten registrations: a definition, the composites, Autograd and six backends.
ten_registrations = Scenario(
    define("grid::step(Tensor x) -> Tensor"),
    impl("grid::step", composed, "CompositeImplicitAutograd"),
    impl("grid::step", everywhere, "CompositeExplicitAutograd"),
    impl("grid::step", with_gradient, "Autograd"),
    impl("grid::step", on_cpu, "CPU"),
    impl("grid::step", on_cuda, "CUDA"),
    impl("grid::step", on_xla, "XLA"),
    impl("grid::step", on_meta, "Meta"),
    impl("grid::step", on_fpga, "FPGA"),
    impl("grid::step", on_sparse, "SparseCPU"),
    probes=("cpu",),
)
