"""Exceptions and values whose methods raise: each call ends, and the workers go on."""

import signal
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import pytest

from everyorder.runtime import rpc
from everyorder.runtime.errors.future import CallbackFailed
from everyorder.runtime.errors.rpc import RemoteError, Undecodable
from everyorder.runtime.futures import Future
from tests.rpc.worlds import SECONDS


class End(BaseException):
    """No `Exception`: as what ends a process."""


def end(*_: object) -> NoReturn:
    raise End


class NoText(Exception):
    __str__ = end


class NoPickle(Exception):
    __reduce__ = __reduce_ex__ = end


class NoAttributes(Exception):
    __getattribute__ = end


class WrongAttributes(Exception):
    def __getattribute__(self, name: str) -> Any:
        raise ValueError(name)


class Unsent:
    __reduce__ = __reduce_ex__ = end


class NoArguments(Exception):
    def __init__(self) -> None:
        super().__init__(Unsent())
        self.attribute = Unsent()


class NoTraceback(Exception):
    __traceback__ = property(end)


class NoNotes(Exception):
    __notes__ = property(end)


class NoClass(Exception):
    __class__ = property(end)


class NoCause(Exception):
    __cause__ = property(end)


class NoDict(Exception):
    __dict__ = property(end)


class NoFile(OSError):
    filename = property(end)


class NamelessClass(type):
    """Has no names while a call fails; pytest looks for them when it collects."""

    armed = False

    def __getattribute__(cls, name: str) -> Any:
        if NamelessClass.armed:
            raise End
        return super().__getattribute__(name)


class NoName(Exception, metaclass=NamelessClass):
    pass


HOSTILE = (
    *(NoText, NoPickle, NoAttributes, WrongAttributes, NoArguments, NoTraceback),
    *(NoNotes, NoClass, NoCause, NoDict, NoFile, NoName),
)


def fail(which: int) -> NoReturn:
    error = HOSTILE[which]()
    NamelessClass.armed = True
    raise error


class Bomb:
    """A value whose reading raises."""

    def __init__(self, kind: type[BaseException]) -> None:
        self.kind = kind

    def __reduce__(self) -> tuple[Any, ...]:
        return explode, (self.kind,)


def explode(kind: type[BaseException]) -> NoReturn:
    raise kind(5)


def bomb(kind: type[BaseException]) -> Bomb:
    return Bomb(kind)


class Carrier(Exception):
    pass


def raise_bomb(kind: type[BaseException]) -> NoReturn:
    raise Carrier(Bomb(kind))


ENDS = (SystemExit, GeneratorExit, End)
Asked = Callable[..., Any]


def sync(func: Asked, args: tuple[Any, ...]) -> Any:
    return rpc.rpc_sync("worker1", func, args, timeout=SECONDS)


def later(func: Asked, args: tuple[Any, ...]) -> Any:
    return rpc.rpc_async("worker1", func, args, timeout=SECONDS).wait()


def fetched(func: Asked, args: tuple[Any, ...]) -> Any:
    return rpc.remote("worker1", func, args).to_here(SECONDS)


WAYS = {"sync": sync, "async": later, "remote": fetched}
EACH_WAY = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@pytest.fixture(scope="module", autouse=True)
def _workers() -> Iterator[None]:
    with rpc.local_workers(2):
        yield
        assert rpc.rpc_sync("worker1", max, (1, 2)) == 2


@EACH_WAY
@pytest.mark.parametrize(
    "which", range(len(HOSTILE)), ids=[type.__repr__(each) for each in HOSTILE]
)
def test_an_exception_whose_methods_raise_ends_its_call(
    which: int, way: Callable[..., Any]
) -> None:
    try:
        with pytest.raises(RemoteError) as error:
            way(fail, (which,))
    finally:
        NamelessClass.armed = False
    assert error.value.remote_hops[0][0] == "WorkerInfo(id=1, name=worker1)"
    assert "in fail" in error.value.remote_traceback


@EACH_WAY
@pytest.mark.parametrize("kind", ENDS)
def test_what_ends_a_process_ends_the_call_that_reads_it(
    kind: type[BaseException], way: Callable[..., Any]
) -> None:
    with pytest.raises(Undecodable) as error:
        way(bomb, (kind,))
    assert kind.__name__ in error.value.reason
    with pytest.raises(RemoteError, match=f"{kind.__name__}"):
        way(max, (Bomb(kind), 1))
    with pytest.raises(RemoteError) as carried:
        way(raise_bomb, (kind,))
    assert carried.value.remote_type == "Carrier"


def read_under_signal(_: int) -> NoReturn:
    signal.raise_signal(signal.SIGUSR1)
    raise AssertionError("the handler raises")


class Interrupted:
    def __reduce__(self) -> tuple[Any, ...]:
        return read_under_signal, (1,)


def interrupted() -> Interrupted:
    return Interrupted()


def test_a_signal_handler_ends_the_program_also_while_an_answer_is_read() -> None:
    def leave(_number: int, _frame: object) -> NoReturn:
        raise SystemExit(7)

    before = signal.signal(signal.SIGUSR1, leave)
    try:
        with pytest.raises(SystemExit):
            rpc.rpc_sync("worker1", interrupted)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_callback_whose_error_has_no_text_completes_its_future() -> None:
    future: Future[int] = Future()

    def callback(_: Future[int]) -> NoReturn:
        raise NoText

    after = future.then(callback)
    future.set_result(1)
    with pytest.raises(CallbackFailed):
        after.wait(SECONDS)
