"""Overriding: a second kernel for a key is allowed, warned of, refused on request."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from everyorder.harness.scenario import Scenario, call, define, impl, step
from everyorder.harness.scenario.step import Step
from everyorder.runtime.dispatch import Dispatcher, Kernel, KernelOverridden, Library
from tests.scenarios.asking import ask, asked, noting
from tests.scenarios.kernels import (
    best_on_cpu,
    better_on_cpu,
    composed,
    on_cpu,
    on_cuda,
    typed_one,
)

_SCHEMA = "sort(Tensor x) -> Tensor"
_sort = define(f"table::{_SCHEMA}")
NEWEST = "the newest kernel of a key is in force, older ones come back in turn"

# Whoever must not override is refused where a kernel is; whoever may, overrides it too.
first_or_not_at_all = Scenario(
    impl("table::sort", on_cpu, "CPU", allow_override=False),
    impl("table::sort", better_on_cpu, "CPU"),
    given=[_sort],
    uses=[call("table::sort", "cpu")],
)

# Of several keys one is taken: it goes to none of them, and names the newest there.
several_keys = Scenario(
    impl("table::sort", on_cpu, ["CPU", "CUDA"], allow_override=False),
    impl("table::sort", better_on_cpu, "CPU"),
    impl("table::sort", best_on_cpu, "CPU"),
    order_dependent=NEWEST,
    probes=("cpu",),
)

# A kernel at another key of the same operator, or at that key of another, is no matter.
other_keys_and_operators = Scenario(
    impl("table::sort", on_cpu, "CPU", allow_override=False),
    impl("table::sort", on_cuda, "CUDA", allow_override=False),
    impl("table::find", on_cpu, "CPU", allow_override=False),
    impl("table::sort", composed, allow_override=False),
    given=[_sort],
    probes=("cpu",),
)


@contextmanager
def _as_errors(target: Dispatcher) -> Iterator[None]:
    """Where the dispatcher warns, and the program takes warnings for errors."""
    before, target.warns_of_overrides = target.warns_of_overrides, True
    with warnings.catch_warnings():
        warnings.simplefilter("error", KernelOverridden)
        try:
            yield
        finally:
            target.warns_of_overrides = before


def _warned(
    text: str, kernel: Callable[..., Any], register: Callable[[Library, Kernel], Any]
) -> Step:
    """A registration of a kernel where warnings are errors."""

    def do(target: Dispatcher) -> Library:
        library = Library("table", "FRAGMENT", dispatcher=target, origin=text)
        with _as_errors(target):
            try:
                register(library, noting(target, kernel, text))
            except BaseException:
                library.close()
                raise
        return library

    return step(text, do)


# A warning that is an error registers nothing; of Meta kernels nobody is warned.
warnings_that_are_errors = Scenario(
    _warned("impl CPU", on_cpu, lambda to, run: to.impl("sort", run, "CPU")),
    _warned("impl two", on_cuda, lambda to, run: to.impl("sort", run, ["CUDA", "CPU"])),
    _warned("define", composed, lambda to, run: to.define(_SCHEMA, kernel=run)),
    impl("table::sort", typed_one),
    operators=["table::sort"],
    probes=("cpu",),
)

# What may not override is refused before anybody is warned.
refused_without_a_warning = Scenario(
    _warned(
        "impl",
        on_cpu,
        lambda to, run: to.impl("sort", run, "CPU", allow_override=False),
    ),
    impl("table::sort", on_cuda, "CPU"),
    operators=["table::sort"],
    probes=("cpu",),
)

_meta = _warned("impl Meta", on_cpu, lambda to, run: to.impl("sort", run, "Meta"))

# Meta kernels are overridden silently.
silent_for_meta = Scenario(
    _meta,
    impl("table::sort", on_cuda, "Meta"),
    operators=["table::sort"],
    order_dependent=NEWEST,
    probes=("meta",),
)


def _where(target: Dispatcher) -> list[str]:
    """What a warning says, and which file it points to."""
    library = Library("table", "FRAGMENT", dispatcher=target, origin="asked")
    target.warns_of_overrides = True
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            library.impl("sort", on_cpu, "CPU")
            library.define("merge(Tensor x) -> Tensor", kernel=composed)
            library.impl("merge", composed)
        return [
            f"{each.message} ({'here' if each.filename == __file__ else 'elsewhere'})"
            for each in caught
        ]
    finally:
        target.warns_of_overrides = False
        library.close()


# A warning points to whoever registers, and tells both kernels.
told_where = Scenario(
    impl("table::sort", on_cpu, "CPU"),
    impl("table::merge", composed),
    **asked(ask("impl(...), warned", _where)),
)
