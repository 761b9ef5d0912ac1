"""The pool: every item once, whoever does it; errors, nesting, forks."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from everyorder.runtime.errors.tensor import WrongOption
from everyorder.runtime.kernels.shared.thread_pool import (
    _Job,
    get_num_threads,
    parallel_for,
    pool,
    set_num_threads,
)
from tests.coded import code
from tests.forking import in_child, needs_fork


@pytest.fixture(autouse=True)
def four_threads() -> Iterator[None]:
    before = get_num_threads()
    set_num_threads(4)
    yield
    set_num_threads(before)


def _chunks(count: int, grain: int) -> list[tuple[int, int]]:
    seen: list[tuple[int, int]] = []
    parallel_for(count, grain, lambda lo, hi: seen.append((lo, hi)))
    return sorted(seen)


def _covers(chunks: list[tuple[int, int]], count: int) -> bool:
    ends = [0, *(hi for _, hi in chunks)]
    return [lo for lo, _ in chunks] == ends[:-1] and ends[-1] == count


@pytest.mark.parametrize("count", [2, 7, 8, 9, 1000, 123_457])
def test_chunks_cover_every_item_once(count: int) -> None:
    chunks = _chunks(count, 1)
    assert _covers(chunks, count)
    assert 2 <= len(chunks) <= 8


def test_long_chunks_begin_at_cache_lines() -> None:
    chunks = _chunks(100_001, 1)
    assert len(chunks) == 8
    assert all(lo % 64 == 0 for lo, _ in chunks)


@pytest.mark.parametrize(("count", "grain"), [(1, 1), (9, 5), (1000, 501)])
def test_too_little_work_is_one_call(count: int, grain: int) -> None:
    assert _chunks(count, grain) == [(0, count)]


def test_no_work_is_no_call() -> None:
    assert _chunks(0, 1) == []


def test_one_thread_is_one_call() -> None:
    set_num_threads(1)
    assert _chunks(1000, 1) == [(0, 1000)]


def test_several_threads_take_part() -> None:
    together = threading.Barrier(2, timeout=30)
    names: set[str] = set()

    def run(lo: int, hi: int) -> None:
        if len(names) < 2:
            names.add(threading.current_thread().name)
            if lo < 2:
                together.wait()

    set_num_threads(2)
    # Four chunks, of which the first two wait for each other.
    parallel_for(4, 1, run)
    assert len(names) == 2


def test_work_inside_of_a_chunk_is_serial() -> None:
    inner: list[tuple[int, int]] = []

    def run(lo: int, hi: int) -> None:
        parallel_for(1000, 1, lambda a, b: inner.append((a, b)))

    parallel_for(4, 1, run)
    assert inner == [(0, 1000)] * 4
    assert len(_chunks(1000, 1)) == 8


def test_an_error_reaches_the_caller_and_stops_the_rest() -> None:
    begun = []

    def run(lo: int, hi: int) -> None:
        begun.append(lo)
        raise LookupError(lo)

    set_num_threads(2)
    with pytest.raises(LookupError):
        parallel_for(4, 1, run)
    assert len(begun) <= 2
    assert _covers(_chunks(1000, 1), 1000)


def test_a_job_without_chunks_left_does_nothing() -> None:
    job = _Job(0, 1, lambda lo, hi: pytest.fail("there is no chunk"))
    job.work()
    job.finish()


def test_callers_at_once_each_get_their_own_work_done() -> None:
    totals = [0] * 8

    def call(at: int) -> None:
        parts: list[int] = []
        for _ in range(50):
            parallel_for(1000, 1, lambda lo, hi: parts.append(hi - lo))
        totals[at] = sum(parts)

    threads = [threading.Thread(target=call, args=(at,)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert totals == [50_000] * 8


def test_numpy_settings_of_the_caller_hold_in_every_thread() -> None:
    import numpy as np

    settings: list[object] = []
    with np.errstate(over="ignore", divide="raise"):
        parallel_for(4, 1, lambda lo, hi: settings.append(np.geterr()))
        expected = np.geterr()
    assert settings == [expected] * 4


def test_workers_are_kept_and_grow() -> None:
    _chunks(1000, 1)
    assert pool.workers >= 3
    set_num_threads(pool.workers + 2)
    _chunks(1000, 1)
    assert pool.workers == get_num_threads() - 1


@pytest.mark.parametrize(
    ("threads", "found"),
    [
        (0, "0"),
        (-1, "-1"),
        (1025, "1025"),
        (2**64, "a longer number"),
        (2.5, "a float"),
        (True, "a bool"),
        ("2", "a str"),
        (None, "a NoneType"),
    ],
)
def test_what_is_no_number_of_threads_is_refused(threads: Any, found: str) -> None:
    with pytest.raises(WrongOption, check=code("WrongOption")) as caught:
        set_num_threads(threads)
    error = caught.value
    assert (error.operator, error.argument) == ("set_num_threads", "threads")
    assert (error.found, error.fits) == (found, "an integer from 1 to 1024")
    assert get_num_threads() == 4


def test_other_integers_are_numbers_of_threads() -> None:
    import numpy as np

    threads: Any = np.int64(3)
    set_num_threads(threads)
    assert get_num_threads() == 3
    assert type(get_num_threads()) is int
    set_num_threads(1024)
    assert get_num_threads() == 1024


@needs_fork
def test_a_forked_child_has_a_pool_of_its_own() -> None:
    _chunks(1000, 1)

    def check() -> bool:
        chunks = _chunks(1000, 1)
        return _covers(chunks, 1000) and pool.workers == 3

    assert in_child(check)
