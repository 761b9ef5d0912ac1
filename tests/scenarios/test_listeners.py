"""Listeners: who hears of definitions, and what they know at every moment."""

from harness.scenario import Scenario, define, fallback, impl, listen, reserve
from tests.scenarios.kernels import composed, no_cpu, on_cpu, typed_two

_index = define("text::index(Tensor x) -> Tensor")

# A listener hears of definitions before and after it came; kernels are not news.
hears_of_definitions = Scenario(
    listen(),
    _index,
    impl("text::index", on_cpu, "CPU"),
)

# A definition that goes while a kernel stays is told of.
definition_goes_kernel_stays = Scenario(
    _index,
    define("text::count(Tensor x) -> Tensor"),
    given=[listen(), impl("text::index", composed)],
    probes=("cpu",),
)

# A definition that is refused is never told of.
hears_nothing_of_refusals = Scenario(
    listen(),
    _index,
    impl("text::index", typed_two, "CPU"),
)

# Reservations and fallbacks are not told of.
hears_of_nothing_else = Scenario(
    listen(),
    reserve("text::index"),
    fallback(no_cpu, "CPU"),
)

# Two listeners are told, and listed, in the order in which they came.
first_come_first_told = Scenario(
    listen(),
    listen(),
    _index,
    order_dependent="listeners are told in the order in which they came",
)
