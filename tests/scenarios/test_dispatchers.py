"""What a dispatcher tells of itself: names, kernels by key, fallbacks, dumps."""

from typing import Any

from everyorder.harness.scenario import (
    Scenario,
    define,
    fallback,
    impl,
    listen,
    reserve,
    rule,
)
from everyorder.harness.scenario.registrations import KnowingListener
from everyorder.runtime.dispatch import Dispatcher, fallthrough, fingerprint
from everyorder.runtime.dispatch.dispatcher import PASSED, release
from everyorder.runtime.dispatch.state import listed_keys, table_reading
from tests.scenarios.asking import ask, asked
from tests.scenarios.kernels import (
    composed,
    no_cpu,
    on_cpu,
    on_cuda,
    with_gradient,
)

_lists = ask(
    "op_names(), dangling_impls(), registrations_for(...)",
    lambda target: target.op_names(),
    lambda target: target.dangling_impls(),
    lambda target: target.registrations_for("CPU"),
    lambda target: target.registrations_for(),
    lambda target: target.registrations_for("Autograd"),
)

# The names of all operators, sorted: of definitions, kernels and mere reservations.
op_names = Scenario(
    define("store::keep(Tensor x) -> Tensor"),
    impl("store::fetch", on_cpu, "CPU"),
    reserve("audio::clip"),
    impl("store::keep.out", composed),
    **asked(_lists),
)


class Classified:
    """A class that may have a rule."""


def ruled(
    who: object, func: object, types: object, args: object, kwargs: object
) -> int:
    """A rule; nobody calls it here."""
    return 0


# A rule alone makes no operator: neither names nor look-ups know of it.
rules_make_no_operator = Scenario(
    rule("store::keep", Classified, ruled),
    define("store::keep(Tensor x) -> Tensor"),
    impl("store::fetch", on_cpu, "CPU"),
    **asked(
        _lists,
        ask(
            'find_op("store::keep"), ...',
            lambda target: target.find_op("store::keep"),
            lambda target: target.find_schema("store::keep"),
            lambda target: target.find_schema_or_raise("store::keep"),
            lambda target: target.dump_state("store::keep"),
        ),
    ),
)

# What is registered and what runs, as text: kernels by age, fallbacks, ambiguous slots.
texts = Scenario(
    define("store::keep(Tensor x) -> Tensor"),
    impl("store::keep", on_cpu, "CPU"),
    fallback(fallthrough, "Tracer"),
    given=[impl("store::keep", composed, "CompositeExplicitAutograd")],
    **asked(
        ask(
            'dump_state("store::keep"), dump_table("store::keep")',
            lambda target: target.dump_state("store::keep"),
            lambda target: target.dump_table("store::keep"),
        ),
    ),
)

# Nothing is found of an unknown name, and names that are near are told.
look_ups = Scenario(
    define("store::keep(Tensor x) -> Tensor"),
    define("store::keeps(Tensor x) -> Tensor"),
    impl("store::kept", on_cpu, "CPU"),
    **asked(
        ask(
            "find_schema_or_raise(...)",
            lambda target: target.find_schema_or_raise("store::keep"),
            lambda target: target.find_schema_or_raise("store::kept"),
            lambda target: target.find_schema_or_raise("store::kep"),
            lambda target: target.find_op("store::kept"),
            lambda target: target.find_op("no name"),
            lambda target: target.dump_state("store::kept"),
            lambda target: target.dump_table("store::kep"),
        )
    ),
)


def _keys(target: Dispatcher) -> str:
    entry = target.entry("store::keep")
    return (
        "nothing"
        if entry is None
        else ", ".join(listed_keys(table_reading(entry.table)))
    )


# The keys that a call can reach: of kernels, of composites, of fallbacks.
list_of_keys = Scenario(
    impl("store::keep", on_cuda, "CUDA"),
    impl("store::keep", with_gradient, "Autograd"),
    fallback(no_cpu, "CPU"),
    **asked(ask('list_keys("store::keep")', _keys)),
)


def _nobody_writes(target: Dispatcher) -> list[object]:
    """Between steps nobody writes and nobody is told, and anybody may begin."""
    with target.add_listener(KnowingListener(), "asked"):
        seen = [target._writer, target._telling, target._lock.locked()]
    return [*seen, target._writer, target._telling, len(target.state.subscriptions)]


# Whoever wrote is done when the call is over, with listeners and without.
nobody_writes = Scenario(
    define("store::keep(Tensor x) -> Tensor"),
    listen(),
    **asked(ask("add_listener(...)", _nobody_writes)),
)


def _released(target: Dispatcher) -> str:
    """What is left of the built-in fallbacks of a fresh dispatcher, one by one."""
    fresh = Dispatcher(warns_of_overrides=False)
    fresh.state = target.state
    counts = []
    for name in PASSED:
        release(fresh, name)
        release(fresh, name)
        counts.append(len(fresh.state.fallbacks.tokens))
    return f"{counts} of {len(Dispatcher().state.fallbacks.tokens)}"


# Built-in fallbacks can be taken off, once; those of others stay.
built_in_fallbacks = Scenario(
    fallback(no_cpu, "CPU"),
    fallback(fallthrough, "XLA"),
    define("store::keep(Tensor x) -> Tensor"),
    **asked(ask("release(...)", _released)),
)


def _fingerprinted(target: Dispatcher) -> list[object]:
    namespaces: Any = fingerprint(target.state)
    return [
        [namespace, [[*part[:2], len(part[2])] for part in parts]]
        for namespace, parts in namespaces[0]
    ]


# The complete state tells of each operator its name, definitions, keys with kernels.
fingerprints = Scenario(
    define("store::keep(Tensor x) -> Tensor"),
    impl("store::keep", on_cpu, "CPU"),
    reserve("audio::clip"),
    **asked(ask("fingerprint(...)", _fingerprinted)),
)
