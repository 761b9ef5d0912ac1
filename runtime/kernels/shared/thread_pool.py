"""A pool of Python threads for kernels that have released the interpreter lock.

Numba's own thread layers are not used: `workqueue` aborts the process when two Python
threads run parallel kernels, and `omp` kills a forked child.  Compiled kernels do not
hold the interpreter lock, so plain threads run them in parallel, from any number of
callers, and after a fork.

Rules:
- a job is a number of chunks that threads claim one by one, including the caller: no
  caller waits for a worker that has not started, so callers cannot block each other;
- work inside of a chunk is serial: a nested call does not spawn;
- the first exception of a chunk stops further claims, and the caller raises it;
- after a fork, the child starts with an empty pool and fresh locks.
"""

import os
import threading
from collections.abc import Callable
from contextvars import Context, copy_context
from operator import index
from queue import SimpleQueue

from everyorder.runtime.errors.tensor import WrongOption

Run = Callable[[int, int], object]

# Chunks per thread: two let a delayed thread leave work to the others; more only adds
# hand-overs of about 2 us each.
CHUNKS_PER_THREAD = 2

# Long chunks start at multiples of this many items: two threads never write to the same
# cache line (64 bytes), whatever the item size.
ALIGNMENT = 64

# More than the processors of any supported machine; each thread allocates memory, and a
# much larger number would be a mistake.
MOST_THREADS = 1024


class _Inside(threading.local):
    """True while this thread works on a chunk."""

    active = False


class _Job:
    """One call of `parallel_for`: the chunks to claim, and those that run."""

    def __init__(self, count: int, step: int, run: Run) -> None:
        self.count = count
        self.step = step
        self.run = run
        self.claimed = 0
        self.running = 0
        self.error: BaseException | None = None
        self.condition = threading.Condition()

    def claim(self) -> int | None:
        """Return the first item of a chunk that the caller has claimed, or None."""
        with self.condition:
            if self.claimed >= self.count or self.error is not None:
                return None
            begin = self.claimed
            self.claimed = begin + self.step
            self.running += 1
            return begin

    def work(self) -> None:
        """Run chunks until none is left; store an exception instead of raising it."""
        inside.active = True
        try:
            while (begin := self.claim()) is not None:
                error: BaseException | None = None
                try:
                    self.run(begin, min(begin + self.step, self.count))
                except BaseException as caught:  # raised in the caller by `finish`
                    error = caught
                with self.condition:
                    self.running -= 1
                    self.error = self.error or error
                    if not self.running:
                        self.condition.notify_all()
        finally:
            inside.active = False

    def finish(self) -> None:
        """Wait for the chunks of other threads; raise the exception of a chunk."""
        with self.condition:
            while self.running:
                self.condition.wait()
        if self.error is not None:
            try:
                raise self.error
            finally:
                self.error = None


class _Pool:
    """Worker threads, started on demand; one pool for the whole process."""

    def __init__(self) -> None:
        self.reset()
        self.threads = usable_cores()

    def reset(self) -> None:
        """Drop all workers, in a child process after a fork."""
        self.lock = threading.Lock()
        self.jobs: SimpleQueue[tuple[Context, _Job]] = SimpleQueue()
        self.workers = 0

    def offer(self, job: _Job, helpers: int) -> None:
        """Request help with the job from that many workers."""
        if self.workers < helpers:
            self._grow(helpers)
        for _ in range(helpers):
            self.jobs.put((copy_context(), job))

    def _grow(self, workers: int) -> None:
        with self.lock:
            while self.workers < workers:
                name = f"kernels-{self.workers}"
                threading.Thread(target=_serve, name=name, daemon=True).start()
                self.workers += 1


def usable_cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if _AFFINITY else os.cpu_count() or 1


def _serve() -> None:
    jobs = pool.jobs
    while True:
        context, job = jobs.get()
        context.run(job.work)
        del context, job  # an idle worker must not keep an array alive


# Only some systems report the processors that this process may use.
_AFFINITY = hasattr(os, "sched_getaffinity")
inside = _Inside()
pool = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.reset)


def parallel_for(count: int, grain: int, run: Run) -> None:
    """Call `run(lo, hi)` over chunks that together are `range(count)`.

    A thread receives at least `grain` items.  Below two grains, with one thread, or
    inside of a chunk, there is one call, `run(0, count)`.  The exception of a chunk is
    raised here, after the started chunks have ended.
    """
    if count < 2 * grain or inside.active or pool.threads == 1:
        if count > 0:
            run(0, count)
        return
    threads = min(pool.threads, count // max(grain, 1))
    step = -(-count // min(threads * CHUNKS_PER_THREAD, count))
    if step >= 16 * ALIGNMENT:
        step = -(-step // ALIGNMENT) * ALIGNMENT
    job = _Job(count, step, run)
    pool.offer(job, threads - 1)
    job.work()
    job.finish()


def get_num_threads() -> int:
    """Return the number of threads that a kernel may use, including the caller."""
    return pool.threads


def set_num_threads(threads: int) -> None:
    """Set the number of threads that kernels may use, including the caller.

    Raises:
        WrongOption: `threads` is not an integer from 1 to `MOST_THREADS`.
    """
    value = f"a {type(threads).__name__}"
    count = 0
    # True is an integer in Python, but not a number of threads.
    if not isinstance(threads, bool) and hasattr(threads, "__index__"):
        count = index(threads)
        value = str(count) if abs(count) < 2**63 else "a longer number"
    if not 1 <= count <= MOST_THREADS:
        raise WrongOption(
            operator="set_num_threads",
            argument="threads",
            found=value,
            fits=f"an integer from 1 to {MOST_THREADS}",
        )
    pool.threads = count
