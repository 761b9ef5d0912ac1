"""Registrations that are refused: whoever comes second, and with nothing left behind.

A failing step is explored like any other: whatever is active it fails in the
same way, names the same partner, and the state after it is the state before.
"""

from everyorder.harness.scenario import Scenario, define, impl, look_up
from tests.scenarios.kernels import (
    composed,
    on_cpu,
    on_cuda,
    typed_count,
    typed_list,
    typed_number,
    typed_one,
    typed_one_anew,
    typed_optional,
    typed_pair,
    typed_two,
)

# A typed kernel that takes more than the schema has: refused in both orders.
number_of_arguments = Scenario(
    define("stats::mean(Tensor x) -> Tensor"),
    impl("stats::mean", typed_two, "CPU"),
    uses=[look_up("stats::mean")],
)

# A definition together with a kernel that does not fit it: both are refused, and
# nothing of the half that would have fitted stays.
definition_with_its_own_misfit = Scenario(
    define("stats::mean(Tensor x) -> Tensor", kernel=typed_two),
    impl("stats::mean", on_cpu, "CPU"),
    define("stats::mean(Tensor x) -> Tensor"),
    uses=[look_up("stats::mean")],
)

# Same number of arguments, another type.
type_of_an_argument = Scenario(
    define("stats::scale(Tensor x, float by) -> Tensor"),
    impl("stats::scale", typed_number, "CPU"),
    impl("stats::scale", on_cuda, "CUDA"),
)

# Same arguments, more results.
number_of_results = Scenario(
    define("stats::mean(Tensor x) -> Tensor"),
    impl("stats::mean", typed_pair),
    impl("stats::mean", on_cpu, "CPU"),
)

# Same arguments, another result.
type_of_a_result = Scenario(
    define("stats::mean(Tensor x) -> Tensor"),
    impl("stats::mean", typed_count, "CPU"),
)

# Optional is another type than what it is made of, and so is a list.
optional_and_list = Scenario(
    define("stats::pick(Tensor x, Tensor y) -> Tensor"),
    impl("stats::pick", typed_optional, "CPU"),
    define("stats::all(Tensor parts) -> Tensor"),
    impl("stats::all", typed_list, "CPU"),
    probes=("cpu",),
)

# A definition against two kernels that do not fit: the same one is named each time.
two_kernels_do_not_fit = Scenario(
    define("stats::mean(Tensor x) -> Tensor"),
    impl("stats::mean", typed_two, "CPU"),
    impl("stats::mean", typed_two, "CUDA"),
)

# The typed kernels of one operator have one signature; untyped ones do not care.
two_signatures = Scenario(
    impl("stats::mean", typed_one, "CPU"),
    impl("stats::mean", typed_two, "CUDA"),
    impl("stats::mean", composed),
)

# Two kernels with one signature shut the third one out as long as either is live.
signature_is_held_by_two = Scenario(
    impl("stats::mean", typed_one, "CPU"),
    impl("stats::mean", typed_one_anew, "CUDA"),
    impl("stats::mean", typed_two, "Meta"),
)

# A signature, a schema and a kernel that fits neither: the first conflict is the same.
schema_and_signature = Scenario(
    define("stats::mean(Tensor x) -> Tensor"),
    impl("stats::mean", typed_one, "CPU"),
    impl("stats::mean", typed_two, "CUDA"),
    impl("stats::mean", composed),
)

# One definition at a time, the same schema or not.
second_definition = Scenario(
    define("stats::mean(Tensor x) -> Tensor"),
    define("stats::mean(Tensor x, int axis) -> Tensor"),
    impl("stats::mean", on_cpu, "CPU"),
)

# Another alias analysis kind does not make the second definition acceptable.
second_definition_of_another_kind = Scenario(
    define("stats::mean(Tensor x) -> Tensor"),
    define("stats::mean(Tensor x) -> Tensor", "PURE_FUNCTION"),
    define("stats::mean(Tensor x) -> Tensor", "CONSERVATIVE"),
)

# A definition with a kernel comes whole or not at all.
definition_and_kernel_together = Scenario(
    define("stats::mean(Tensor x) -> Tensor", kernel=typed_one),
    impl("stats::mean", typed_two, "CPU"),
    impl("stats::mean", on_cuda, "CUDA"),
)

# A kernel for several keys comes to all of them or to none: Dense takes no kernel.
several_keys_all_or_none = Scenario(
    impl("stats::mean", on_cpu, ["CPU", "Dense"]),
    impl("stats::mean", composed),
    define("stats::mean(Tensor x) -> Tensor"),
)

# Keys that no kernel can be registered at, and keys that do not exist.
impossible_keys = Scenario(
    impl("stats::mean", on_cpu, "Sparse"),
    impl("stats::mean", on_cpu, "CPUU"),
    impl("stats::mean", on_cpu, "CPU"),
)

# Sixty-five arguments are one more than an operator may have.
too_many_arguments = Scenario(
    define(f"stats::wide({', '.join(f'int a{n}' for n in range(65))}) -> int"),
    impl("stats::wide", on_cpu, "CPU"),
    impl("stats::wide", composed),
)

# A pure function that writes to its argument, a tag that promises something else.
contradictions = Scenario(
    define("stats::zero_(Tensor(a!) x) -> Tensor(a!)", "PURE_FUNCTION"),
    define("stats::zero_(Tensor(a!) x) -> Tensor(a!)", tags=("out",)),
    define("stats::zero_(Tensor(a!) x) -> Tensor(a!)"),
)

# Two definitions, three typed kernels: whoever is there keeps out who does not fit.
every_kind_of_conflict = Scenario(
    define("stats::mean(Tensor x) -> Tensor"),
    define("stats::mean(Tensor x, Tensor y) -> Tensor"),
    impl("stats::mean", typed_one, "CPU"),
    impl("stats::mean", typed_two, "CUDA"),
    impl("stats::mean", composed, allow_override=False),
)
