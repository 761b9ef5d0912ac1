"""A pool of Python threads for kernels that have released the interpreter lock.

Numba's own thread layers are not used: `workqueue` aborts the process when two Python
threads run parallel kernels, and `omp` kills a forked child.  Compiled kernels hold no
interpreter lock, so plain threads run them side by side, from any number of callers,
and after a fork.

Rules:
- a job is a number of chunks that are claimed one by one, by the caller too: no caller
  ever waits for a worker that has not begun, so callers cannot block each other;
- work inside of a chunk is serial: a nested call does not spawn;
- the first exception of a chunk stops further claims and is raised by the caller;
- after a fork the child starts with an empty pool and fresh locks.
"""

import os
import threading
from collections.abc import Callable
from contextvars import Context, copy_context
from operator import index
from queue import SimpleQueue

from everyorder.runtime.errors.tensor import WrongOption

Run = Callable[[int, int], object]

# Chunks for each thread: two let a thread that was delayed leave work to the others;
# more only adds hand-overs of about 2 us each.
CHUNKS_PER_THREAD = 2

# Long chunks begin at multiples of this many items: a cache line (64 bytes) is never
# written by two threads, whatever the item size.
ALIGNMENT = 64

# More than any machine that this was made for has; each thread takes memory of its own,
# and a number far beyond would be a mistake.
MOST_THREADS = 1024


class _Inside(threading.local):
    """Whether this thread works on a chunk at present."""

    active = False


class _Job:
    """One call of `parallel_for`: chunks to claim, and who has finished."""

    def __init__(self, count: int, step: int, run: Run) -> None:
        self.count = count
        self.step = step
        self.run = run
        self.claimed = 0
        self.running = 0
        self.error: BaseException | None = None
        self.condition = threading.Condition()

    def claim(self) -> int | None:
        """The first item of a chunk that is now the caller's, or None."""
        with self.condition:
            if self.claimed >= self.count or self.error is not None:
                return None
            begin = self.claimed
            self.claimed = begin + self.step
            self.running += 1
            return begin

    def work(self) -> None:
        """Run chunks until none is left; an exception is kept, not raised."""
        inside.active = True
        try:
            while (begin := self.claim()) is not None:
                error: BaseException | None = None
                try:
                    self.run(begin, min(begin + self.step, self.count))
                except BaseException as caught:  # handed to the caller by `finish`
                    error = caught
                with self.condition:
                    self.running -= 1
                    self.error = self.error or error
                    if not self.running:
                        self.condition.notify_all()
        finally:
            inside.active = False

    def finish(self) -> None:
        """Wait for the chunks of others; raise what a chunk raised."""
        with self.condition:
            while self.running:
                self.condition.wait()
        if self.error is not None:
            try:
                raise self.error
            finally:
                self.error = None


class _Pool:
    """Worker threads, started when first needed; one for the whole process."""

    def __init__(self) -> None:
        self.reset()
        self.threads = len(os.sched_getaffinity(0)) if _AFFINITY else _processors()

    def reset(self) -> None:
        """Forget all workers: what a child process does after a fork."""
        self.lock = threading.Lock()
        self.jobs: SimpleQueue[tuple[Context, _Job]] = SimpleQueue()
        self.workers = 0

    def offer(self, job: _Job, helpers: int) -> None:
        """Ask that many workers to help with the job."""
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


def _processors() -> int:
    return os.cpu_count() or 1


def _serve() -> None:
    jobs = pool.jobs
    while True:
        context, job = jobs.get()
        context.run(job.work)
        del context, job  # a waiting worker keeps no array alive


# Only some systems can tell which processors this process may use.
_AFFINITY = hasattr(os, "sched_getaffinity")
inside = _Inside()
pool = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.reset)


def parallel_for(count: int, grain: int, run: Run) -> None:
    """Call `run(lo, hi)` over chunks that together are `range(count)`.

    Nothing smaller than `grain` items is given to a thread of its own; below two
    grains, with one thread, or inside of a chunk there is one call, `run(0, count)`.
    Whatever a chunk raises is raised here, after the chunks that had begun have ended.
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
    """How many threads a kernel may use, the caller's included."""
    return pool.threads


def set_num_threads(threads: int) -> None:
    """Let kernels use that many threads, the caller's included.

    Raises `WrongOption` for anything but an integer from 1 to `MOST_THREADS`.
    """
    found = f"a {type(threads).__name__}"
    count = 0
    # True is an integer for Python, but no number of threads.
    if not isinstance(threads, bool) and hasattr(threads, "__index__"):
        count = index(threads)
        found = str(count) if abs(count) < 2**63 else "a longer number"
    if not 1 <= count <= MOST_THREADS:
        raise WrongOption(
            operator="set_num_threads",
            argument="threads",
            found=found,
            fits=f"an integer from 1 to {MOST_THREADS}",
        )
    pool.threads = count
