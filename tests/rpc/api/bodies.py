"""Tests whose bodies run in a worker of a world of three.

True only here: how a test gets into a worker.  The world of a way to start processes is
one for all tests of a session; the body runs in `worker0`, and what it raises is raised
here, with the text that it had there.
"""

import gc
import importlib
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Event
from typing import Any

from everyorder.runtime import rpc
from tests.rpc.worlds import Process

NAMES = ("worker0", "worker1", "worker2")
OTHER, THIRD = NAMES[1:]

# A condition is looked at so often, and so many seconds lie between two looks.
LOOKS, PAUSE = 2000, 0.005


def until(condition: Callable[[], bool]) -> bool:
    """Wait for a condition: whether it came about."""
    nothing = Event()
    for _ in range(LOOKS):
        if condition():
            return True
        nothing.wait(PAUSE)
    return False


def kept_for_others() -> int:
    """How many values this worker keeps for others."""
    return int(rpc.get_debug_info()["num_owner_rrefs"])


def quiet() -> None:
    """Wait until nobody refers to anything: what earlier bodies left is gone."""
    on_all(NAMES, gc.collect)
    assert until(lambda: not any(on_all(NAMES, kept_for_others)))


def on_all(names: Iterable[str], func: Callable[..., Any], *args: Any) -> list[Any]:
    """What a function gives on several workers, which run it at the same time."""
    futures = [rpc.rpc_async(name, func, args) for name in names]
    return [each.wait() for each in futures]


def in_world(body: Callable[[], None]) -> Callable[..., None]:
    """A test whose body runs in `worker0`, in a world of forked and of spawned ones."""

    def test(world: Process) -> None:
        world.do(run_body, body.__module__, body.__name__)

    test.__name__ = body.__name__
    test.__qualname__ = body.__qualname__
    test.__module__ = body.__module__
    test.__doc__ = body.__doc__
    test.body = body  # type: ignore[attr-defined]
    return test


def run_body(module: str, name: str) -> None:
    """Run the body of a test in this process."""
    getattr(importlib.import_module(module), name).body()


@contextmanager
def workers(how: str) -> Iterator[Process]:
    """The first of three workers, all of them processes, until all shut down."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="rpc"))
        made = []
        for rank, name in enumerate(NAMES):
            address = f"ipc://{folder}/w"
            size = len(NAMES)
            each = Process(how, name, rank=rank, world_size=size, init_method=address)
            stack.callback(each.close)
            made.append(each)
        for each in made:
            each.answer()
        yield made[0]
        for each in made:
            each.ask(rpc.shutdown)
        for each in made:
            each.answer()
