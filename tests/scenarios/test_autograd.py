"""Autograd keys: the alias, the keys of single backends, and what guards them."""

from everyorder.harness.scenario import Scenario, call, define, impl
from everyorder.runtime.dispatch import fallthrough
from tests.scenarios.kernels import (
    composed,
    cpu_with_gradient,
    cuda_with_gradient,
    everywhere,
    on_cpu,
    on_cuda,
    on_fpga,
    on_hip,
    on_lazy,
    on_mkldnn,
    on_xla,
    other_with_gradient,
    with_gradient,
    xla_with_gradient,
)

_norm = define("signal::norm(Tensor x) -> Tensor")

# The alias fills every autograd key and no backend key.
autograd_alone = Scenario(
    _norm,
    impl("signal::norm", with_gradient, "Autograd"),
    uses=[call("signal::norm", "cpu")],
)

# A backend kernel and the alias: with gradients the alias, without them the backend.
cpu_and_autograd = Scenario(
    _norm,
    impl("signal::norm", on_cpu, "CPU"),
    impl("signal::norm", with_gradient, "Autograd"),
    uses=[call("signal::norm", "cpu"), call("signal::norm", "cpu below autograd")],
)

# The key of one backend comes before the alias.
cpu_over_alias = Scenario(
    _norm,
    impl("signal::norm", with_gradient, "Autograd"),
    impl("signal::norm", cpu_with_gradient, "AutogradCPU"),
)

# The composite comes before the alias wherever nothing guards the key.
composite_over_alias = Scenario(
    _norm,
    impl("signal::norm", with_gradient, "Autograd"),
    impl("signal::norm", composed),
)

# Five rules meet: direct kernels, guards, the composite and the alias.
guards_and_alias = Scenario(
    impl("signal::norm", on_cpu, "CPU"),
    impl("signal::norm", on_xla, "XLA"),
    impl("signal::norm", composed),
    impl("signal::norm", with_gradient, "Autograd"),
    impl("signal::norm", cpu_with_gradient, "AutogradCPU"),
    given=[_norm],
)

# A direct kernel at AutogradCPU beside CPU and the composite.
cpu_composite_and_autogradcpu = Scenario(
    impl("signal::norm", on_cpu, "CPU"),
    impl("signal::norm", composed),
    impl("signal::norm", cpu_with_gradient, "AutogradCPU"),
    given=[_norm],
)

# Falling through AutogradCPU on purpose: the call reaches CPU even with gradients.
autogradcpu_falls_through = Scenario(
    impl("signal::norm", on_cpu, "CPU"),
    impl("signal::norm", composed),
    impl("signal::norm", fallthrough, "AutogradCPU"),
    given=[_norm],
    uses=[call("signal::norm", "cpu")],
)

# Three backends and the composite: three guards, everything else composite.
three_guards = Scenario(
    impl("signal::norm", on_cpu, "CPU"),
    impl("signal::norm", on_xla, "XLA"),
    impl("signal::norm", on_lazy, "Lazy"),
    impl("signal::norm", composed),
    given=[_norm],
)

# The default backend guards every autograd key at once; a direct kernel is not moved.
default_backend_guards_all = Scenario(
    impl("signal::norm", on_cpu, "CPU"),
    impl("signal::norm", everywhere, "CompositeExplicitAutograd"),
    impl("signal::norm", cpu_with_gradient, "AutogradCPU"),
    impl("signal::norm", composed),
    given=[_norm],
)

# AutogradOther stands before several backends: any of them makes it ambiguous.
backends_of_autogradother = Scenario(
    impl("signal::norm", on_fpga, "FPGA"),
    impl("signal::norm", on_mkldnn, "MkldnnCPU"),
    impl("signal::norm", composed),
    given=[_norm],
)

# Its own kernel serves them all, and the alias stands back.
autogradother_of_its_own = Scenario(
    impl("signal::norm", on_mkldnn, "MkldnnCPU"),
    impl("signal::norm", other_with_gradient, "AutogradOther"),
    impl("signal::norm", with_gradient, "Autograd"),
    given=[_norm],
)

# Every backend guards its autograd key here; upstream forgets HIP, VE and MTIA.
hip_guards_too = Scenario(
    _norm,
    impl("signal::norm", on_hip, "HIP"),
    impl("signal::norm", composed),
    impl("signal::norm", with_gradient, "Autograd"),
)

# Autograd kernels of three backends and none for any backend itself.
gradients_without_backends = Scenario(
    impl("signal::norm", cpu_with_gradient, "AutogradCPU"),
    impl("signal::norm", cuda_with_gradient, "AutogradCUDA"),
    impl("signal::norm", xla_with_gradient, "AutogradXLA"),
    given=[_norm],
)

# One library fills a backend and its autograd key by one call with two keys.
two_keys_at_once = Scenario(
    _norm,
    impl("signal::norm", on_cuda, ["CUDA", "AutogradCUDA"]),
    impl("signal::norm", composed),
)
