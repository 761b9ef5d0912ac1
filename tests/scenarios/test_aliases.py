"""Alias keys: names for sets of keys, each with its place in the precedence."""

from everyorder.harness.scenario import Scenario, call, define, impl
from tests.scenarios.kernels import (
    batched,
    composed,
    composed_nested,
    cpu_with_gradient,
    everywhere,
    functional,
    on_cpu,
    on_nested,
    on_sparse,
    on_xla,
    with_gradient,
)

_warp = define("image::warp(Tensor x) -> Tensor")

# A key of its own always comes before an alias that contains it.
key_before_alias = Scenario(
    impl("image::warp", everywhere, "CompositeExplicitAutograd"),
    impl("image::warp", on_cpu, "CPU"),
    impl("image::warp", on_xla, "XLA"),
    given=[_warp],
)

# The functional composite leaves XLA and Sparse to the explicit one.
functional_leaves_out = Scenario(
    impl("image::warp", functional, "CompositeExplicitAutogradNonFunctional"),
    impl("image::warp", everywhere, "CompositeExplicitAutograd"),
    impl("image::warp", on_sparse, "SparseCPU"),
    given=[_warp],
)

# Batching by decomposition fills one key, which has no part in the other aliases.
batching_by_decomposition = Scenario(
    _warp,
    impl("image::warp", batched, "FuncTorchBatchedDecomposition"),
    impl("image::warp", composed),
    probes=("cpu", "CPU+FuncTorchBatched"),
)

# A batching rule of its own comes before the decomposition.
batching_rule = Scenario(
    impl("image::warp", batched, "FuncTorchBatchedDecomposition"),
    impl("image::warp", composed, "FuncTorchBatched"),
    impl("image::warp", on_cpu, "CPU"),
    given=[_warp],
    probes=("CPU+FuncTorchBatched",),
)

# Nested tensors: the nested composite is in front of the implicit one, and behind a
# kernel of their own; no other tensor gets it.
nested_only = Scenario(
    impl("image::warp", composed_nested, "CompositeImplicitAutogradNestedTensor"),
    impl("image::warp", on_nested, "NestedTensorCUDA"),
    impl("image::warp", everywhere, "CompositeExplicitAutograd"),
    given=[_warp],
    probes=("cpu", "NestedTensorCPU", "NestedTensorCUDA"),
)

# One kernel at several keys, an alias among them, is one registration.
alias_and_key_together = Scenario(
    impl("image::warp", with_gradient, ["Autograd", "CPU"]),
    impl("image::warp", cpu_with_gradient, "AutogradCPU"),
    given=[_warp],
    uses=[call("image::warp", "cpu"), call("image::warp", "cuda")],
)
