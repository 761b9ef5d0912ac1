"""Typed kernels: several on one key, of one signature, and others that do not fit.

A signature is that of whatever typed kernel is live, never of the first that came.
"""

from everyorder.harness.scenario import Scenario, call, define, impl
from tests.scenarios.kernels import (
    better_on_cpu,
    keyed,
    on_cpu,
    typed_keyed,
    typed_named,
    typed_named_twice,
    typed_number,
    typed_one,
    typed_one_anew,
    typed_two,
)

_sort = define("table::sort(Tensor x) -> Tensor")
NEWEST = "the newest kernel of a key is in force, older ones come back in turn"

# Two of one signature on one key: either is enough to keep another signature out.
stacked_on_a_key = Scenario(
    impl("table::sort", typed_one, "CPU"),
    impl("table::sort", typed_one_anew, "CPU"),
    impl("table::sort", typed_two, "CPU"),
    given=[_sort],
    order_dependent=NEWEST,
)

# The same before there is a schema: what does not fit is found when it comes.
stacked_before_the_schema = Scenario(
    impl("table::sort", typed_two, "CPU"),
    impl("table::sort", typed_two, "CPU"),
    define("table::sort(Tensor x) -> Tensor"),
    order_dependent=NEWEST,
)

# A typed kernel under an untyped one still counts: what is inactive has a signature.
under_an_untyped_one = Scenario(
    impl("table::sort", typed_one, "CPU"),
    impl("table::sort", on_cpu, "CPU"),
    impl("table::sort", typed_two, "CUDA"),
    given=[_sort],
    order_dependent=NEWEST,
)

# Of several that do not fit, the first by key and by description is named.
who_is_named = Scenario(
    impl("table::sort", typed_two, "Meta", debug="third"),
    impl("table::sort", typed_two, "CPU", debug="first"),
    impl("table::sort", typed_two, "CPU", debug="another"),
    _sort,
    impl("table::sort", typed_one, "CUDA"),
    order_dependent=NEWEST,
    probes=("cpu",),
)

# A keyset that comes first is no argument, so it is no part of a signature.
with_and_without_a_keyset = Scenario(
    impl("table::sort", typed_keyed, "CPU"),
    impl("table::sort", typed_one, "CPU"),
    impl("table::sort", keyed, "CUDA", with_keyset=True),
    given=[_sort],
    order_dependent=NEWEST,
    uses=[call("table::sort", "cpu")],
)

# A keyword-only parameter has to fit the argument of its name, wherever that stands.
named_parameters = Scenario(
    define("table::take(Tensor x, *, int n=1) -> Tensor"),
    define("table::take(Tensor x, *, float n=1) -> Tensor"),
    impl("table::take", typed_named, "CPU"),
    impl("table::take", typed_number, "CUDA"),
    probes=("cpu",),
)

# Two of them, in another order than the schema's: matched by name, both ways.
named_in_another_order = Scenario(
    define("table::take(Tensor x, *, float m=1, int n=1) -> Tensor"),
    define("table::take(Tensor x, *, int m=1, float n=1) -> Tensor"),
    impl("table::take", typed_named_twice, "CPU"),
    impl("table::take", better_on_cpu, "CUDA"),
    probes=("cpu",),
)

# An inferred schema has no names: the last arguments are the named ones.
named_and_inferred = Scenario(
    define("table::take", kernel=typed_named),
    impl("table::take", typed_number, "CPU"),
    impl("table::take", typed_one, "CUDA"),
    probes=("cpu",),
)
