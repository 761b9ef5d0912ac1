"""Definitions by name: the schema is told by the annotations of the kernel."""

from everyorder.harness.scenario import Scenario, call, define, impl, look_up
from tests.scenarios.kernels import (
    composed,
    on_cpu,
    typed_keyed,
    typed_list,
    typed_number,
    typed_one,
    typed_one_anew,
    typed_pair,
    typed_two,
)

# A name and a typed kernel make a definition; nothing is known of its aliasing.
name_and_kernel = Scenario(
    define("tree::fold", kernel=typed_two),
    impl("tree::fold", on_cpu, "CPU"),
    uses=[look_up("tree::fold")],
)

# An untyped kernel tells no schema.
nothing_to_infer = Scenario(
    define("tree::fold", kernel=composed),
    impl("tree::fold", on_cpu, "CPU"),
)

# The inferred schema is compared with other kernels like a written one.
inferred_against_kernel = Scenario(
    define("tree::fold", kernel=typed_two),
    impl("tree::fold", typed_one, "CPU"),
    impl("tree::fold", on_cpu, "CUDA"),
)

# An inferred and a written definition: one of them may be live.
inferred_against_written = Scenario(
    define("tree::leaf", kernel=typed_one),
    define("tree::leaf(Tensor x) -> Tensor"),
    impl("tree::leaf", typed_one_anew, "CPU"),
)

# Numbers, lists and several results are inferred, each for its operator.
kinds_of_types = Scenario(
    define("tree::nth", kernel=typed_number),
    define("tree::all", kernel=typed_list),
    define("tree::both", kernel=typed_pair),
    probes=("cpu",),
)

# A leading keyset is how the kernel is called, not an argument of the operator.
leading_keyset = Scenario(
    define("tree::leaf", kernel=typed_keyed),
    impl("tree::leaf", typed_one, "CPU"),
    uses=[call("tree::leaf", "cuda")],
)
