"""How the legs of `make test`, `make test-long` and both are run in less time.

A plugin of pytest, named by the root's `conftest.py`; nothing of what is asserted
changes by it.  The legs themselves are in the Makefile.

Rules:
- no garbage is looked for while tests are collected, nor later in what they loaded:
  all of it is kept;
- coverage, where it is measured, does not watch what plays the same lines thousands of
  times, which other tests of the folder reach, nor a compiler that is not ours;
- what is not watched is watched nowhere: not in its threads, nor in processes that it
  starts; and it comes last, since what is loaded or remembered runs once.
"""

import gc
import os
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pytest

# What plays the same lines thousands of times, through code that the tests beside it
# reach one by one: programs, texts, schedules and signals by chance, every world, what
# must stay flat; and what reads our sources, or runs other programs.
UNWATCHED = (
    "tests/custom/opcheck/test_core_operators.py::test_every_operator",
    "tests/errors/test_words.py::test_who_makes_an_error",
    "tests/injection/",
    "tests/torch_dispatch/test_policies.py::test_an_import_that_was_interrupted",
    "tests/torch_dispatch/test_state.py::test_memory_is_flat",
    "tests/rpc/exploring/",
    "tests/rpc/faults/",
    "tests/rpc/mutants/",
    "tests/rpc/script/test_absent.py",
    "tests/rpc/simulator/",
    "tests/schema/test_parser.py::test_law",
    "tests/schema/test_defaults.py::test_filling",
    "tests/schema/test_defaults.py::test_kernels_that_see_values",
    "tests/schema/test_defaults.py::test_nothing_that_was_stripped",
    "tests/schema/test_defaults.py::test_stripping",
    "tests/schema/test_common_types.py::test_a_common_type",
    "tests/script/archive/test_hostile.py::test_every_bit",
    "tests/script/archive/test_hostile.py::test_other_tables",
    "tests/script/archive/test_hostile.py::test_pieces",
    "tests/script/archive/test_recompile.py::test_a_text_that_says",
    "tests/script/archive/test_recompile.py::test_generated_programs",
    "tests/script/emission/test_generated.py::test_some",
    "tests/script/frontend/test_flow.py::test_what_the_frontend_says",
    "tests/script/fusion/test_kernel.py::test_",
    "tests/script/ir/test_checker.py::test_whatever_is_damaged",
    "tests/script/ir/test_graph.py::test_a_copy_prints_the_same",
    "tests/script/ir/test_text.py::test_damaged_texts",
    "tests/script/ir/test_text.py::test_what_is_printed",
    "tests/script/passes/test_programs.py::test_",
    "tests/script/executor/test_random.py::test_",
    "tests/test_architecture.py",
    "tests/base/test_locks.py::test_first_uses",
    "tests/tools/",
)

# In the environment, what coverage tells the processes that are started.
COVERED = "COVERAGE_PROCESS"


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


class Frozen:
    """What is loaded for all tests, and is not looked through for garbage.

    Once when they are collected, and again whenever a test has loaded a large library.
    """

    # Modules; Numba has about 800.
    LARGE = 300

    def __init__(self) -> None:
        self._modules = 0

    def pytest_collection_finish(self) -> None:
        """Freeze what is loaded by now."""
        gc.collect()
        gc.freeze()
        self._modules = len(sys.modules)

    def pytest_runtest_logfinish(self) -> None:
        """Freeze what a test has loaded."""
        if len(sys.modules) - self._modules > self.LARGE:
            self.pytest_collection_finish()


def pytest_configure(config: pytest.Config) -> None:
    """Keep the collector from what is loaded once for all."""
    config.pluginmanager.register(Frozen(), "everyorder's frozen modules")


def pytest_collection_finish() -> None:
    """Leave the compiler unwatched: its code is not ours, and it runs long."""
    if is_coverage(sys.gettrace()) and "numba" in sys.modules:
        from numba.core.dispatcher import Dispatcher

        kind: Any = Dispatcher
        kind.compile = unwatching(kind.compile)


def is_unwatched(item: pytest.Item) -> bool:
    """Whether coverage is not to watch a test."""
    marked = item.get_closest_marker("no_cover") is not None
    return marked or item.nodeid.startswith(UNWATCHED)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have what is watched come first, where coverage is measured."""
    if is_coverage(sys.gettrace()):
        items.sort(key=is_unwatched)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run a test that is not to be watched, unwatched."""
    if not is_unwatched(item):
        return (yield)
    with unwatched(), starting_unwatched():
        return (yield)


def is_coverage(trace: object) -> bool:
    """Whether a trace function is coverage's; a debugger's is let be."""
    # That of new threads is a method.
    kind = getattr(trace, "__func__", type(trace))
    return str(kind.__module__).partition(".")[0] == "coverage"


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


@contextmanager
def starting_unwatched() -> Iterator[None]:
    """Coverage watches no thread and no process that is started meanwhile."""
    told = {name: os.environ.pop(name) for name in [*os.environ] if COVERED in name}
    watching: Any = threading.gettrace()
    if is_coverage(watching):
        threading.settrace(None)
    try:
        yield
    finally:
        threading.settrace(watching)
        os.environ.update(told)


def unwatching(call: Callable[..., Any]) -> Callable[..., Any]:
    """The function, unwatched while it runs."""

    @wraps(call)
    def called(*arguments: Any, **keywords: Any) -> Any:
        with unwatched():
            return call(*arguments, **keywords)

    return called
