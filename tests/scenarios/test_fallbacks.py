"""Fallbacks: kernels for every operator that has none of its own for a key."""

from everyorder.harness.scenario import Scenario, call, define, fallback, impl
from everyorder.runtime.dispatch import fallthrough
from tests.scenarios.kernels import (
    composed,
    everywhere,
    no_cpu,
    no_cuda,
    on_cpu,
    on_cuda,
    pass_below_tracer,
    traced,
    watched,
    with_gradient,
)

_echo = define("audio::echo(Tensor x) -> Tensor")
_mix = define("audio::mix(Tensor x, Tensor y) -> Tensor")

# A fallback serves an operator whether it comes before or after the definition.
fallback_and_definition = Scenario(
    _echo,
    fallback(no_cpu, "CPU"),
    uses=[call("audio::echo", "cpu"), call("audio::echo", "cuda")],
)

# A kernel of the operator comes before the fallback, and the fallback comes back.
kernel_over_fallback = Scenario(
    _echo,
    fallback(no_cpu, "CPU"),
    impl("audio::echo", on_cpu, "CPU"),
    uses=[call("audio::echo", "cpu")],
)

# A composite comes before the fallback, too; so does a default backend kernel.
composites_over_fallback = Scenario(
    fallback(no_cpu, "CPU"),
    impl("audio::echo", composed),
    impl("audio::echo", everywhere, "CompositeExplicitAutograd"),
    given=[_echo],
)

# Fallback and kernel for different backends stand side by side.
fallback_beside_kernel = Scenario(
    _echo,
    fallback(no_cpu, "CPU"),
    impl("audio::echo", on_cuda, "CUDA"),
)

# One fallback, two operators: removing it takes it from both.
fallback_for_two_operators = Scenario(
    _echo,
    _mix,
    fallback(no_cpu, "CPU"),
    impl("audio::mix", on_cpu, "CPU"),
    probes=("cpu", "cuda"),
)

# A key has one fallback: the second one is refused, and leaves nothing behind.
one_fallback_a_key = Scenario(
    fallback(no_cpu, "CPU"),
    fallback(watched, "CPU"),
    fallback(no_cuda, "CUDA"),
    given=[_echo],
)

# A fallback at an alias is one for each of its keys, or for none: Meta is taken.
alias_all_or_none = Scenario(
    fallback(watched, "Meta"),
    fallback(no_cpu, "CompositeExplicitAutograd"),
    given=[_echo],
    uses=[call("audio::echo", "cpu")],
)

# The built-in fallback of an autograd key is live: there is no place for another.
built_in_is_taken = Scenario(
    fallback(with_gradient, "AutogradCPU"),
    impl("audio::echo", on_cpu, "CPU"),
    given=[_echo],
)

# A tracer for everything: it sees the call and passes it on below.
tracing_everything = Scenario(
    _echo,
    impl("audio::echo", on_cpu, "CPU"),
    fallback(pass_below_tracer, "Tracer", with_keyset=True),
    probes=("cpu", "CPU+Tracer"),
)

# A mode key falls through for all operators but the one with a kernel for it.
fallthrough_except_one = Scenario(
    fallback(fallthrough, "TESTING_ONLY_GenericMode"),
    impl("audio::echo", traced, "TESTING_ONLY_GenericMode"),
    impl("audio::echo", on_cpu, "CPU"),
    impl("audio::mix", on_cpu, "CPU"),
    given=[_echo, _mix],
    probes=("CPU+TESTING_ONLY_GenericMode",),
)

# Building blocks and the empty key have no fallback; asking for one changes nothing.
no_such_fallback = Scenario(
    fallback(no_cpu, "Dense"),
    fallback(no_cpu, "Undefined"),
    fallback(no_cpu, "CPU"),
    given=[_echo],
)
