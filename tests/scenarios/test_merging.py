"""The 2020 rule: a second, equal definition may leave the alias analysis kind out.

Under it an operator has several definitions at once, of which one is in force; which,
depends on what is live and on nothing else.
"""

from everyorder.harness.scenario import (
    Scenario,
    call,
    define,
    impl,
    listen,
    look_up,
    merges_alias_kinds,
)
from everyorder.runtime.schema import parse_schema
from tests.scenarios.kernels import composed, on_cpu, typed_one, typed_two

_TEXT = "store::fetch(Tensor x) -> Tensor"
_pure = define(_TEXT, "PURE_FUNCTION", debug="pure")
# Only a parsed schema leaves its kind unset.
_unset = define(parse_schema(_TEXT), debug="unset")

# The kind may be left out behind one that is set, and not the other way round; the one
# that is set is in force, and when it goes, the other one is.
kind_left_out = Scenario(
    _pure,
    _unset,
    impl("store::fetch", on_cpu, "CPU"),
    given=[merges_alias_kinds()],
    uses=[look_up("store::fetch"), call("store::fetch", "cpu")],
)

# Of equal ones the first by description is in force, whoever came first.
equal_definitions = Scenario(
    define(_TEXT, debug="early"),
    define(_TEXT, debug="late"),
    define(_TEXT, debug="middle"),
    given=[merges_alias_kinds()],
    probes=("cpu",),
)

# Two that leave the kind out, beside one that does not: they wait for it to go.
several_without_a_kind = Scenario(
    _pure,
    _unset,
    define(parse_schema(_TEXT), debug="another"),
    given=[merges_alias_kinds()],
    probes=("cpu",),
)

# Two kinds that are set do not merge, whichever came first.
kinds_in_conflict = Scenario(
    _pure,
    define(_TEXT, "CONSERVATIVE", debug="conservative"),
    define(_TEXT, debug="from the schema"),
    given=[merges_alias_kinds()],
    probes=("cpu",),
)

# Another schema is a second definition under any rule.
another_schema = Scenario(
    _pure,
    define("store::fetch(Tensor y) -> Tensor", debug="another name"),
    define(parse_schema("store::fetch(Tensor x, int n=1) -> Tensor"), debug="longer"),
    given=[merges_alias_kinds()],
    probes=("cpu",),
)

# A typed kernel has to fit each of them, as each may be in force one day.
kernels_fit_every_definition = Scenario(
    _pure,
    _unset,
    impl("store::fetch", typed_one, "CPU"),
    impl("store::fetch", typed_two, "CUDA"),
    given=[merges_alias_kinds()],
    probes=("cpu",),
)

# A kernel that came with a definition goes with it, although the operator stays.
definitions_with_kernels = Scenario(
    define(_TEXT, kernel=composed, debug="with a kernel"),
    define(_TEXT, debug="without"),
    given=[merges_alias_kinds()],
    uses=[call("store::fetch", "cpu")],
)

# Listeners are told of the first definition that comes and of the last that goes.
told_of_first_and_last = Scenario(
    _pure,
    define(_TEXT, "PURE_FUNCTION", debug="again"),
    _unset,
    listen(),
    given=[merges_alias_kinds()],
    probes=("cpu",),
)

# Without the rule the same definitions exclude each other.
without_the_rule = Scenario(_pure, _unset, probes=("cpu",))
