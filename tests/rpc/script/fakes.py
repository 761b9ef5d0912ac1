"""A surface in this process: what programs call is noted, and run by its name here.

`World` is what the tests of compiling have instead of workers: one owner of all, which
gives copies to others by pretending.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from everyorder.runtime import rpc
from everyorder.runtime.futures import Future
from everyorder.runtime.rpc.protocol.identities import WorkerInfo
from everyorder.runtime.rpc.script import Surface, plug_in, plug_in_workers
from everyorder.runtime.script.executor import call
from everyorder.runtime.script.ir.program import SHARED_PROGRAM

T = TypeVar("T")


def rpc_async(*args: Any, **kwargs: Any) -> Any:
    """A name that programs know."""
    raise AssertionError("programs have their own")


def rpc_sync(*args: Any, **kwargs: Any) -> Any:
    """A name that programs know."""
    raise AssertionError("programs have their own")


def remote(*args: Any, **kwargs: Any) -> Any:
    """A name that programs know."""
    raise AssertionError("programs have their own")


def _rpc_async_torchscript(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("programs have their own")


def _rpc_sync_torchscript(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("programs have their own")


def _remote_torchscript(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("programs have their own")


class RRef(Generic[T]):
    """A reference to a value in this process; `mine` says whether it is the owner's."""

    def __init__(
        self, value: T, of: str = "", mine: bool = True, owner: str = "w0"
    ) -> None:
        self.value = value
        self.type = of
        self.mine = mine
        self.info = WorkerInfo(owner, int(owner[1:]))
        self.asked: list[tuple[float, ...]] = []

    def to_here(self, *timeout: float) -> T:
        self.asked.append(timeout)
        return self.value if self.mine else deepcopy(self.value)

    def local_value(self) -> T:
        if not self.mine:
            raise RuntimeError("it is not here")
        return self.value

    def is_owner(self) -> bool:
        return self.mine

    def owner(self) -> WorkerInfo:
        return self.info

    def owner_name(self) -> str:
        return self.info.name

    def confirmed_by_owner(self) -> bool:
        return True


@dataclass
class World:
    """What was called: mode, worker, name, arguments by place and name, timeout."""

    calls: list[tuple[Any, ...]] = field(default_factory=list)
    # Functions of "other workers" by their names; without, those of this process.
    there: dict[str, Any] | None = None

    def call(
        self,
        mode: str,
        to: Any,
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        timeout: float,
        of: str,
    ) -> Any:
        """Run the function, and give a future, the value, or a reference."""
        self.calls.append((mode, to, name, args, kwargs, timeout))
        future: Future[Any] = Future()
        try:
            if self.there is not None:
                value = self.there[name](*args, **kwargs)
            else:
                value = call(SHARED_PROGRAM.functions[name], args, kwargs)
        except Exception as error:
            if mode != "async":
                raise
            future.set_exception(error)
            return future
        if mode == "remote":
            return RRef(value, of)
        if mode == "sync":
            return value
        future.set_result(value)
        return future

    @contextmanager
    def plugged(self) -> Iterator["World"]:
        """Programs have this world as their remote calls, and no worker's."""
        WORLDS.append(self)
        try:
            with unplugged(), plug_in(self.surface()):
                yield self
        finally:
            WORLDS.remove(self)

    def surface(self) -> Surface:
        """The names of this module, and this world."""
        return Surface(
            rpc_async,
            rpc_sync,
            remote,
            _rpc_async_torchscript,
            _rpc_sync_torchscript,
            _remote_torchscript,
            RRef,
            lambda rref: rref.type,
            # What was compiled in a world before this one calls in this one.
            lambda *given: (WORLDS[-1] if WORLDS else self).call(*given),
        )


# The worlds that are plugged, the outermost first.
WORLDS: list[World] = []


@contextmanager
def unplugged() -> Iterator[None]:
    """Programs have no remote calls."""
    rpc._PROGRAMS.close()
    try:
        yield
    finally:
        rpc._PROGRAMS = plug_in_workers()
