"""Fallthrough kernels: entries of the table that are never called but passed by."""

from everyorder.harness.scenario import Scenario, call, define, impl
from everyorder.runtime.dispatch import fallthrough
from tests.scenarios.kernels import composed, on_cpu, on_cuda, traced, with_gradient

_crop = define("image::crop(Tensor x) -> Tensor")

# Falling through a backend's own key leaves no key at all.
nothing_left = Scenario(
    _crop,
    impl("image::crop", fallthrough, "CPU"),
    impl("image::crop", on_cuda, "CUDA"),
    uses=[call("image::crop", "cpu"), call("image::crop", "cuda")],
)

# Falling through AutogradCUDA alone: the masks of CPU and CUDA differ from then on.
masks_of_backends_differ = Scenario(
    impl("image::crop", fallthrough, "AutogradCUDA"),
    impl("image::crop", with_gradient, "Autograd"),
    impl("image::crop", on_cpu, "CPU"),
    impl("image::crop", on_cuda, "CUDA"),
    given=[_crop],
)

# The alias falls through: every autograd key that nothing else fills is passed by.
whole_alias = Scenario(
    _crop,
    impl("image::crop", fallthrough, "Autograd"),
    impl("image::crop", on_cpu, "CPU"),
)

# A composite that falls through is passed by at every key that it fills, and what is
# left of the call then, no key at all, has nothing that could run either.
composite_falls_through = Scenario(
    _crop,
    impl("image::crop", fallthrough, "CompositeImplicitAutograd"),
    impl("image::crop", on_cpu, "CPU"),
)

# A key above the backends: falling through it gives way to what is below.
tracer_gives_way = Scenario(
    impl("image::crop", fallthrough, "Tracer"),
    impl("image::crop", traced, "Functionalize"),
    impl("image::crop", composed),
    given=[_crop],
    probes=("cpu", "CPU+Tracer", "CPU+Tracer+Functionalize"),
)

# ADInplaceOrView falls through by its fallback; a kernel of its own stops the call.
kernel_instead_of_fallthrough = Scenario(
    _crop,
    impl("image::crop", traced, "ADInplaceOrView"),
    impl("image::crop", on_cpu, "CPU"),
    uses=[call("image::crop", "cpu")],
)
