"""How the legs of `make test` and `make test-long` are run in less time.

True only here: nothing of what is asserted.  A plugin of pytest, named by the root's
`conftest.py`, that knows which tests take longest and which gain nothing by being
watched.

Rules:
- no garbage is looked for while tests are collected: all of it is kept;
- what takes longest is begun first, by each process some of it: the last ones to be
  begun would be waited for by all others;
- coverage, where it is measured, does not watch what plays the same lines thousands of
  times, which other tests of the folder reach, nor a compiler that is not ours.
"""

import gc
import os
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import wraps
from itertools import islice
from typing import Any

import pytest

# Beginnings of the names of tests that take ten seconds or more, the longest first.
LONGEST = (
    "tests/torch/test_samples.py::test_samples",
    "tests/cuda/test_simulator.py::test_kernels_in_the_simulator[--thinned]",
    "tests/cuda/test_simulator.py::test_kernels_in_the_simulator[--thin]",
    "tests/script/emission/test_generated.py::test_more_programs",
    "tests/rpc/simulator/test_simulator.py::test_laws_hold_in_many_schedules",
    "tests/script/archive/test_meaning.py::test_many_generated_programs",
    "tests/injection/test_tensors.py::test_at_any_time",
    "tests/examples/test_parameter_server.py::test_one_command",
    "tests/rpc/exploring/test_sessions.py::test_every_world_of_more_faults",
    "tests/pairs/test_triples.py::test_no_order_matters_to_any_triple",
    "tests/rpc/agent/test_calls.py::test_a_hundred_thousand_calls",
    "tests/torch/test_differential.py::test_all_scenarios_and_schemas",
    "tests/injection/test_futures.py::test_at_any_time",
    "tests/pairs/test_pairs.py::test_no_order_matters_to_any_pair",
    "tests/typing/test_stub.py::test_mypy_knows_them",
    "tests/script/emission/test_generated.py::test_some_programs",
    "tests/script/passes/test_programs.py::test_",
    "tests/schema/test_parser.py::test_law",
)

# Programs, texts and schedules by chance, and chains that are compiled: thousands of
# them, through code that the tests beside them reach one by one.
UNWATCHED = (
    "tests/custom/opcheck/test_core_operators.py::test_every_operator",
    "tests/injection/test_dispatch.py::test_at_",
    "tests/injection/test_futures.py::test_at_",
    "tests/injection/test_tensors.py::test_at_",
    "tests/rpc/exploring/test_references.py::test_every_world",
    "tests/rpc/exploring/test_sessions.py::test_every_world",
    "tests/rpc/simulator/test_simulator.py::test_laws_hold",
    "tests/schema/test_parser.py::test_law",
    "tests/schema/test_strip.py::test_filling",
    "tests/schema/test_strip.py::test_kernels_that_see_values",
    "tests/schema/test_strip.py::test_nothing_that_was_stripped",
    "tests/schema/test_strip.py::test_stripping",
    "tests/schema/test_unify.py::test_a_common_type",
    "tests/script/archive/test_hostile.py::test_every_bit",
    "tests/script/archive/test_hostile.py::test_other_tables",
    "tests/script/archive/test_hostile.py::test_pieces",
    "tests/script/archive/test_meaning.py::test_a_text_that_says",
    "tests/script/archive/test_meaning.py::test_generated_programs",
    "tests/script/emission/test_generated.py::test_some",
    "tests/script/frontend/test_flow.py::test_what_the_frontend_says",
    "tests/script/fusion/test_kernel.py::test_",
    "tests/script/ir/test_checker.py::test_whatever_is_damaged",
    "tests/script/ir/test_copy.py::test_a_copy_prints_the_same",
    "tests/script/ir/test_text.py::test_damaged_texts",
    "tests/script/ir/test_text.py::test_what_is_printed",
    "tests/script/passes/test_programs.py::test_",
    "tests/script/running/test_random.py::test_",
)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without looking for garbage, a quarter of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        return (yield)
    finally:
        if enabled:
            gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, if there are processes to share it."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers > 1:
        items[:] = dealt(items, workers)


def pytest_collection_finish() -> None:
    """Leave the compiler unwatched: its code is not ours, and it runs long."""
    if is_coverage(sys.gettrace()) and "numba" in sys.modules:
        from numba.core.dispatcher import Dispatcher

        kind: Any = Dispatcher
        kind.compile = unwatching(kind.compile)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run a test that is not to be watched, unwatched."""
    if not item.nodeid.startswith(UNWATCHED):
        return (yield)
    with unwatched():
        return (yield)


def dealt(items: list[Any], workers: int) -> list[Any]:
    """The tests in the order in which all workers begin with what takes longest.

    The scheduler gives each worker as many as the next one, in their order, and later
    the last ones of one to another who has nothing left to do.
    """
    ranked = [(rank_of(item.nodeid), item) for item in items]
    long = [item for rank, item in sorted(ranked, key=_rank) if rank < len(LONGEST)]
    others = (item for rank, item in ranked if rank == len(LONGEST))
    found: list[Any] = []
    for worker in range(workers):
        many = (len(items) - len(found)) // (workers - worker)
        share = long[worker::workers]
        found += [*share, *islice(others, max(0, many - len(share)))]
    return found


def rank_of(name: str) -> int:
    """Where in `LONGEST` a test is, or behind its end."""
    for rank, beginning in enumerate(LONGEST):
        if name.startswith(beginning):
            return rank
    return len(LONGEST)


def _rank(ranked: tuple[int, Any]) -> int:
    return ranked[0]


def is_coverage(trace: object) -> bool:
    """Whether a trace function is coverage's; a debugger's is let be."""
    return type(trace).__module__.partition(".")[0] == "coverage"


@contextmanager
def unwatched() -> Iterator[None]:
    """Coverage does not watch this thread meanwhile."""
    watching = sys.gettrace()
    if not is_coverage(watching):
        yield
        return
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(watching)


def unwatching(call: Callable[..., Any]) -> Callable[..., Any]:
    """The function, unwatched while it runs."""

    @wraps(call)
    def called(*arguments: Any, **keywords: Any) -> Any:
        with unwatched():
            return call(*arguments, **keywords)

    return called
