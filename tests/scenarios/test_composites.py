"""Composite kernels: one kernel for many keys, and what stands in front of it.

CompositeImplicitAutograd is differentiable through what it calls, so a kernel of a
backend keeps it away from that backend's autograd key; CompositeExplicitAutograd
leaves autograd to somebody else.
"""

from everyorder.harness.scenario import Scenario, call, define, impl, look_up
from tests.scenarios.kernels import (
    composed,
    composed_nested,
    cpu_with_gradient,
    everywhere,
    functional,
    on_cpu,
    on_fpga,
    on_lazy,
    on_nested,
    on_sparse,
    on_xla,
    other_with_gradient,
    with_gradient,
)

_blur = define("image::blur(Tensor x) -> Tensor")

# The five registrations with which upstream's own exhaustive test began.
founding_five = Scenario(
    define("image::blur(Tensor x) -> Tensor"),
    impl("image::blur", composed),
    impl("image::blur", on_cpu, "CPU"),
    impl("image::blur", with_gradient, "Autograd"),
    impl("image::blur", cpu_with_gradient, "AutogradCPU"),
)

# A composite alone fills Undefined, all backends and all autograd keys.
composite_alone = Scenario(
    _blur,
    impl("image::blur", composed),
    uses=[look_up("image::blur")],
)

# A CPU kernel takes CPU, and keeps the composite off AutogradCPU, and off nothing else.
cpu_and_composite = Scenario(
    _blur,
    impl("image::blur", on_cpu, "CPU"),
    impl("image::blur", composed),
    uses=[call("image::blur", "cpu")],
)

# With an Autograd kernel, it is that which AutogradCPU gets; the rest stays composite.
cpu_autograd_and_composite = Scenario(
    impl("image::blur", on_cpu, "CPU"),
    impl("image::blur", with_gradient, "Autograd"),
    impl("image::blur", composed),
    given=[_blur],
)

# A default backend kernel fills the backends; autograd keys keep their fallbacks.
cpu_and_default_backend = Scenario(
    _blur,
    impl("image::blur", on_cpu, "CPU"),
    impl("image::blur", everywhere, "CompositeExplicitAutograd"),
)

# CPU, default backend and Autograd: every autograd key runs the Autograd kernel.
cpu_autograd_and_default_backend = Scenario(
    impl("image::blur", on_cpu, "CPU"),
    impl("image::blur", with_gradient, "Autograd"),
    impl("image::blur", everywhere, "CompositeExplicitAutograd"),
    given=[_blur],
)

# Beside a default backend kernel the other composite is left with nothing, autograd
# and NestedTensor included; upstream forgets to take these if it came first.
two_composites = Scenario(
    _blur,
    impl("image::blur", composed, "CompositeImplicitAutograd"),
    impl("image::blur", everywhere, "CompositeExplicitAutograd"),
    uses=[call("image::blur", "cpu")],
)

# All of it at once: the explicit composite beats the implicit one everywhere.
cpu_autograd_and_two_composites = Scenario(
    impl("image::blur", on_cpu, "CPU"),
    impl("image::blur", with_gradient, "Autograd"),
    impl("image::blur", composed, "CompositeImplicitAutograd"),
    impl("image::blur", everywhere, "CompositeExplicitAutograd"),
    given=[_blur],
)

# The functional composite leaves out Sparse, XLA and Lazy; it is not counted as a
# backend kernel, so the implicit one keeps all autograd keys.
functional_composite = Scenario(
    _blur,
    impl("image::blur", functional, "CompositeExplicitAutogradNonFunctional"),
    impl("image::blur", composed),
)

# The three composites stand in one order, whatever the order they came in.
three_composites = Scenario(
    impl("image::blur", functional, "CompositeExplicitAutogradNonFunctional"),
    impl("image::blur", everywhere, "CompositeExplicitAutograd"),
    impl("image::blur", composed, "CompositeImplicitAutograd"),
    given=[_blur],
)

# Two backends and their autograd keys: each kernel guards its own and no other.
xla_and_lazy_guard_their_own = Scenario(
    impl("image::blur", on_xla, "XLA"),
    impl("image::blur", on_lazy, "Lazy"),
    impl("image::blur", composed),
    given=[_blur],
)

# FPGA shares AutogradOther with others: is its gradient the composite's?  Nobody
# knows, and a call that requires it is refused.
ambiguous_other = Scenario(
    _blur,
    impl("image::blur", on_fpga, "FPGA"),
    impl("image::blur", composed),
)

# A kernel of its own at AutogradOther settles the question.
ambiguity_settled = Scenario(
    impl("image::blur", on_fpga, "FPGA"),
    impl("image::blur", composed),
    impl("image::blur", other_with_gradient, "AutogradOther"),
    given=[_blur],
)

# The ambiguity comes before the default backend: CE does not take it away.
ambiguous_beside_default_backend = Scenario(
    impl("image::blur", on_fpga, "FPGA"),
    impl("image::blur", composed),
    impl("image::blur", everywhere, "CompositeExplicitAutograd"),
    given=[_blur],
)

# A sparse kernel makes AutogradOther ambiguous, but sparse tensors carry AutogradCPU:
# they get the composite.  Upstream's table is stale here in one of the two orders.
sparse_and_composite = Scenario(
    _blur,
    impl("image::blur", composed),
    impl("image::blur", on_sparse, "SparseCPU"),
    uses=[call("image::blur", "sparse")],
)

# Nested tensors have a composite of their own, which comes first for them.
nested_composite = Scenario(
    impl("image::blur", composed_nested, "CompositeImplicitAutogradNestedTensor"),
    impl("image::blur", composed, "CompositeImplicitAutograd"),
    impl("image::blur", on_nested, "NestedTensorCPU"),
    given=[_blur],
)

# A kernel for nested tensors guards AutogradNestedTensor, which is then missing.
nested_guard = Scenario(
    _blur,
    impl("image::blur", on_nested, "NestedTensorCPU"),
    impl("image::blur", composed),
)
