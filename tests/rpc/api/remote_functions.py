"""What workers run for one another in these tests, importable by all of them.

True only here: functions and classes by which a worker shows what it was given.  What
a function leaves behind lies in `KEPT`, in the process (or thread) that ran it.
"""

import functools
import threading
from collections.abc import Callable
from typing import Any

from everyorder import runtime
from everyorder.runtime import rpc
from everyorder.runtime.futures import Future

# What was left behind by calls, by names.
KEPT: dict[str, Any] = {}
# Opened by another call.
GATES: dict[str, threading.Event] = {}
SECONDS = 60


def gate(name: str) -> threading.Event:
    """The gate of a name, closed at first."""
    return GATES.setdefault(name, threading.Event())


def open_gate(name: str) -> None:
    gate(name).set()


def pass_gate(name: str, value: Any = None) -> Any:
    """The value, as soon as somebody opened the gate."""
    if not gate(name).wait(SECONDS):
        raise TimeoutError(f"nobody opened {name}")
    GATES.pop(name, None)
    return value


def keep(name: str, value: Any) -> None:
    KEPT[name] = value


def kept(name: str) -> Any:
    return KEPT.get(name)


def forget(name: str) -> None:
    KEPT.pop(name, None)


def nothing() -> None:
    """No result."""


def identity(value: Any) -> Any:
    return value


def add(x: Any, y: Any = 1) -> Any:
    return x + y


def subtract(x: Any, y: Any, *, times: int = 1) -> Any:
    return times * (x - y)


def worker_name() -> str:
    return rpc.get_worker_info().name


def append(values: list[Any], value: Any) -> list[Any]:
    values.append(value)
    return values


def write_one(values: Any) -> Any:
    values.add_(1)
    return values


def shape_and_strides(value: Any) -> tuple[list[int], list[int], bool]:
    return [*value.shape], [*value.stride()], value.requires_grad


def call_on(to: str, func: Callable[..., Any], *args: Any) -> Any:
    """The result of a call that this worker makes."""
    return rpc.rpc_sync(to, func, args)


def chain(names: list[str], value: int) -> int:
    """One more for each worker on the way."""
    if not names:
        return value
    return rpc.rpc_sync(names[0], chain, (names[1:], value + 1))


def raises(kind: type[Exception], text: str) -> None:
    raise kind(text)


def raises_no_text() -> None:
    raise ValueError


def raises_key_error() -> None:
    dict[str, int]()["absent"]


def leaves(kind: type[BaseException]) -> None:
    raise kind("out")


def raises_after_gate(name: str, text: str) -> None:
    pass_gate(name)
    raise ValueError(text)


def raises_on(to: str, text: str) -> None:
    rpc.rpc_sync(to, raises, (ValueError, text))


class TwoTexts(Exception):
    """An error that no single text makes."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first, second)
        self.second = second


class Coded(Exception):
    """An error of one text."""


def raises_two_texts() -> None:
    raise TwoTexts("one", "two")


def not_pickled() -> Any:
    """A result that cannot be sent."""
    return threading.Lock()


def a_future() -> Future[int]:
    """A result that is a future; not marked as such."""
    future: Future[int] = Future()
    future.set_result(1)
    return future


def gone_elsewhere() -> None:
    """Taken away on the workers that the tests call."""


def without_gone() -> None:
    """Have no function of that name here any more."""
    globals().pop("gone_elsewhere", None)


class Account:
    """An object with state, of which calls are made in all ways."""

    rate = 3

    def __init__(self, balance: int = 0) -> None:
        self.balance = balance
        self.owned = balance

    def pay(self, amount: int, *, times: int = 1) -> int:
        self.balance += amount * times
        return self.balance

    def slow(self, name: str) -> int:
        pass_gate(name)
        return self.balance

    def fail(self) -> None:
        raise ValueError("no account")

    @staticmethod
    def sum(x: int, y: int) -> int:
        return x + y

    @classmethod
    def rated(cls, amount: int) -> int:
        return cls.rate * amount

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Account) and other.balance == self.balance

    def __hash__(self) -> int:
        return hash(self.balance)


def slow_account(name: str) -> Account:
    """An account that takes its time to be made."""
    pass_gate(name)
    return Account(5)


def logged(func: Callable[..., Any]) -> Callable[..., Any]:
    """A wrapper that pickles by its name."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs) * 10

    return wrapper


@logged
def wrapped(x: int) -> int:
    return x + 1


# References ---------------------------------------------------------------------


def fetch(rref: "rpc.RRef[Any]") -> Any:
    return rref.to_here()


def fetch_all(rrefs: list["rpc.RRef[Any]"]) -> list[Any]:
    return [each.to_here() for each in rrefs]


def local(rref: "rpc.RRef[Any]") -> Any:
    return rref.local_value()


def confirmed(rref: "rpc.RRef[Any]") -> bool:
    return rref.confirmed_by_owner()


def is_owned(rref: "rpc.RRef[Any]") -> bool:
    return rref.is_owner()


def owner_name(rref: "rpc.RRef[Any]") -> str:
    return rref.owner_name()


def give_back(rref: "rpc.RRef[Any]") -> "rpc.RRef[Any]":
    return rref


def own(value: Any) -> "rpc.RRef[Any]":
    """A reference to a value of this worker."""
    return rpc.RRef(value)


def make_on(to: str, func: Callable[..., Any], *args: Any) -> "rpc.RRef[Any]":
    """A reference that this worker made on another one."""
    return rpc.remote(to, func, args)


def fetch_nested(rref: "rpc.RRef[Any]") -> Any:
    return rref.to_here().to_here()


def add_references(first: "rpc.RRef[Any]", second: "rpc.RRef[Any]") -> Any:
    return first.to_here() + second.to_here()


def forward(rref: "rpc.RRef[Any]", names: list[str]) -> Any:
    """The value, fetched by the last of several workers."""
    if not names:
        return rref.to_here()
    return rpc.rpc_sync(names[0], forward, (rref, names[1:]))


def pay_here(rref: "rpc.RRef[Account]", amount: int) -> int:
    return rref.local_value().pay(amount)


def keep_reference(name: str, rref: "rpc.RRef[Any]") -> None:
    KEPT[name] = rref


def fetch_kept(name: str) -> Any:
    return KEPT[name].to_here()


def owners() -> int:
    """How many values others may refer to here."""
    return int(rpc.get_debug_info()["num_owner_rrefs"])


def debug_info() -> dict[str, str]:
    return rpc.get_debug_info()


def tree(depth: int, names: list[str]) -> Any:
    """References within references: a tree whose leaves are numbers."""
    if depth == 0:
        return 1
    left, right = (
        rpc.remote(name, tree, (depth - 1, names)) for name in (names[0], names[-1])
    )
    return [left, right]


def leaves_of(value: Any) -> int:
    if isinstance(value, int):
        return value
    return sum(leaves_of(each.to_here()) for each in value)


# Asynchronous execution ---------------------------------------------------------


@rpc.functions.async_execution
def async_add(to: str, x: Any, y: Any) -> Future[Any]:
    return rpc.rpc_async(to, add, (x, y))


@rpc.functions.async_execution
def async_constructed(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    threading.Thread(target=future.set_result, args=(value,)).start()
    return future


@rpc.functions.async_execution
def async_chained(to: str, x: Any, y: Any, z: Any) -> Future[Any]:
    return rpc.rpc_async(to, add, (x, y)).then(lambda future: future.wait() + z)


@rpc.functions.async_execution
def async_chained_far(to: str, x: Any, steps: int) -> Future[Any]:
    future = rpc.rpc_async(to, add, (x, 1))
    for _ in range(steps):
        future = future.then(lambda before: before.wait() + 1)
    return future


@rpc.functions.async_execution
def async_nested(to: str, x: Any, y: Any) -> Future[Any]:
    return rpc.rpc_async(to, async_add, (to, x, y))


@rpc.functions.async_execution
def async_fanout(to: str, x: Any, count: int) -> Future[Any]:
    futures = [rpc.rpc_async(to, add, (x, number)) for number in range(count)]
    return runtime.futures.collect_all(futures).then(
        lambda every: sum(each.wait() for each in every.wait())
    )


@rpc.functions.async_execution
def async_raises() -> Future[Any]:
    raise RuntimeError("Expected error")


@rpc.functions.async_execution
def async_raises_later() -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(ValueError("told later"))
    return future


@rpc.functions.async_execution
def async_callback_raises(to: str) -> Future[Any]:
    def fail(future: Future[Any]) -> None:
        raise ValueError("in a callback")

    return rpc.rpc_async(to, add, (1, 1)).then(fail)


@rpc.functions.async_execution
def async_wrong() -> Any:
    return 1


PARKED: list[Future[Any]] = []


@rpc.functions.async_execution
def park() -> Future[Any]:
    """A future that `release` completes: no thread waits for it."""
    future: Future[Any] = Future()
    PARKED.append(future)
    return future


def parked() -> int:
    return len(PARKED)


def release(value: Any) -> int:
    """Complete what is parked, on the thread of this call."""
    count = len(PARKED)
    while PARKED:
        PARKED.pop().set_result((value, threading.get_ident()))
    return count


def thread() -> int:
    return threading.get_ident()


class AsyncAccount:
    """As `Account`, with methods whose results come later."""

    def __init__(self, balance: int = 0) -> None:
        self.balance = balance

    @staticmethod
    @rpc.functions.async_execution
    def static_add(to: str, x: int, y: int) -> Future[Any]:
        return rpc.rpc_async(to, add, (x, y)).then(lambda done: done.wait() + 100)

    @classmethod
    @rpc.functions.async_execution
    def class_add(cls, to: str, x: int, y: int) -> Future[Any]:
        name = len(cls.__name__)
        return rpc.rpc_async(to, add, (x, y)).then(lambda done: done.wait() + name)

    @rpc.functions.async_execution
    def bound_add(self, to: str, x: int) -> Future[Any]:
        return rpc.rpc_async(to, add, (x, self.balance))

    @rpc.functions.async_execution
    def fail(self) -> Future[Any]:
        raise ValueError("no account")
