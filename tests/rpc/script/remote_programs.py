"""Programs that workers call of one another in these tests, compiled in each."""

# mypy: disable-error-code="no-any-return"
# Remote calls of Python give what they give.

from threading import Event
from typing import Any

from everyorder import runtime
from everyorder.runtime import Tensor, jit, rpc
from everyorder.runtime.futures import Future
from everyorder.runtime.rpc.api.profiling import record_function

# References -------------------------------------------------------------------------


@jit.script
def plus(x: Tensor) -> Tensor:
    return x + 1


@jit.script
def is_owner(r: rpc.RRef[Tensor]) -> bool:
    return r.is_owner()


@jit.script
def local_value(r: rpc.RRef[Tensor]) -> Tensor:
    return r.local_value()


@jit.script
def there_local_value(r: rpc.RRef[Tensor]) -> Tensor:
    return rpc.rpc_sync(r.owner(), local_value, (r,))


@jit.script
def confirmed(r: rpc.RRef[Tensor]) -> bool:
    return r.confirmed_by_owner()


@jit.script
def add_to(r: rpc.RRef[list[int]], by_value: bool) -> list[int]:
    # On its owner both are the very list.
    if by_value:
        r.local_value().append(4)
    else:
        r.to_here().append(5)
    return r.to_here()


@jit.script
def a_list() -> list[int]:
    return [1, 2, 3]


@jit.script
def appended(r: rpc.RRef[list[int]]) -> int:
    # Elsewhere it is a copy.
    r.to_here().append(6)
    return len(r.to_here())


@jit.script
def five() -> int:
    return 5


@jit.script
def of_myself(to: str) -> int:
    r = rpc.remote(to, five)
    return r.local_value()


@jit.script
def one_more(r: rpc.RRef[Tensor]) -> Tensor:
    return r.to_here() + 1


@jit.script
def itself(r: rpc.RRef[Tensor]) -> rpc.RRef[Tensor]:
    return r


@jit.script
def a_reference(to: str, x: Tensor) -> rpc.RRef[Tensor]:
    return rpc.remote(to, plus, (x,))


@jit.script
def twice_to_here(r: rpc.RRef[rpc.RRef[Tensor]]) -> Tensor:
    return r.to_here().to_here()


class Summing(runtime.Module):
    """A module with a list of references."""

    def __init__(self, rrefs: list[rpc.RRef[Tensor]]) -> None:
        super().__init__()
        self.rrefs = rrefs

    def forward(self) -> Tensor:
        result = runtime.zeros([2])
        for each in self.rrefs:
            result = result + each.to_here()
        return result


@jit.ignore
def python_takes(r: rpc.RRef[Tensor]) -> rpc.RRef[Tensor]:
    return rpc.RRef(r.to_here() + 1)


@jit.script
def through_python(r: rpc.RRef[Tensor]) -> Tensor:
    return python_takes(r).to_here()


@jit.script
class Pair:
    """A class of programs."""

    def __init__(self, a: int) -> None:
        self.a = a

    def total(self, b: int) -> int:
        return self.a + b


@jit.script
def pair_total(r: rpc.RRef[Pair], b: int) -> int:
    return r.local_value().total(b)


@jit.script
def there_pair_total(r: rpc.RRef[Pair], b: int) -> int:
    return rpc.rpc_sync(r.owner(), pair_total, (r, b))


def make_pair(a: int) -> rpc.RRef[Pair]:
    return rpc.RRef(Pair(a))


@jit.interface
class Adds:
    """What modules of these tests have."""

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[empty-body]  # an interface
        pass


jit.script(Adds)


class Adding(runtime.Module):
    """A module that adds."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n

    def forward(self, x: Tensor) -> Tensor:
        return x + self.n

    @jit.export
    def custom_func(self, x: Tensor, times: int) -> Tensor:
        return (x + self.n) * times


def make_module(n: int) -> rpc.RRef[Any]:
    return rpc.RRef(jit.script(Adding(n)), type_hint=Adds)


def give_module(n: int) -> Any:
    return jit.script(Adding(n))


@jit.script
def module_here(r: rpc.RRef[Adds], x: Tensor) -> Tensor:
    return r.local_value().forward(x) + r.to_here().forward(x)


@jit.script
def module_there(r: rpc.RRef[Adds], x: Tensor) -> Tensor:
    return rpc.rpc_sync(r.owner_name(), module_here, (r, x))


# Arguments --------------------------------------------------------------------------


@jit.script
def weighted(first: int, second: int, third: int = 3, fourth: int = 4) -> int:
    return first + second * third * fourth


@jit.script
def all_by_name(to: str, kwargs: dict[str, int], way: int) -> int:
    args = (1, 1)
    if way == 0:
        return rpc.rpc_async(to, weighted, args, kwargs).wait()
    if way == 1:
        return rpc.rpc_sync(to, weighted, args, kwargs)
    return rpc.remote(to, weighted, args, kwargs).to_here()


@jit.script
def nothing_by_name(to: str, way: int) -> int:
    args = (1, 1)
    if way == 0:
        return rpc.rpc_async(to, weighted, args).wait()
    if way == 1:
        return rpc.rpc_sync(to, weighted, args)
    return rpc.remote(to, weighted, args).to_here()


@jit.script
def nothing_at_all(to: str, way: int) -> int:
    if way == 0:
        return rpc.rpc_async(to, five).wait()
    if way == 1:
        return rpc.rpc_sync(to, five)
    return rpc.remote(to, five).to_here()


@jit.script
def mixed(
    a: Tensor, b: str, c: int, d: Tensor, e: str = "e", f: int = 6
) -> tuple[Tensor, str, int]:
    return a + d, b + e, c + f


@jit.script
def mixed_there(to: str, x: Tensor) -> tuple[Tensor, str, int]:
    kwargs: dict[str, Any] = {"e": "_e", "f": 3}
    return rpc.rpc_async(to, mixed, (x, "b", 2, x), kwargs).wait()


@jit.script
def unexpected(to: str) -> int:
    kwargs = {"fifth": 5}
    return rpc.rpc_async(to, weighted, (1, 1), kwargs).wait()


def only_here(x: int) -> int:
    """It is compiled where it is called from, when it is called."""
    return x


def calls_what_is_only_here(to: str) -> int:
    return rpc.rpc_sync(to, only_here, (1,))


def raises(x: int) -> int:
    if x > 0:
        raise ValueError("Expected error")
    return x


raises = jit.script(raises)


@jit.script
def calls_what_raises(to: str, way: int) -> int:
    if way == 0:
        return rpc.rpc_async(to, raises, (1,)).wait()
    if way == 1:
        return rpc.rpc_sync(to, raises, (1,))
    return rpc.remote(to, raises, (1,)).to_here()


@jit.script
def calls_by_name(to: str, name: str, x: int) -> Any:
    return rpc._rpc_sync_torchscript(to, name, (x,))


NOTED: list[list[float]] = []


@jit.ignore
def note(x: Tensor) -> None:
    NOTED.append(x.tolist())


@jit.script
def noted(x: Tensor) -> None:
    note(x)


def take_notes() -> list[list[float]]:
    """What `noted` was given here since it was last asked."""
    taken = NOTED[:]
    NOTED.clear()
    return taken


# Futures ----------------------------------------------------------------------------


@jit.script
def waits(future: Future[Tensor]) -> Tensor:
    return future.wait() + 1


@jit.script
def begins(to: str, x: Tensor) -> Future[Tensor]:
    return rpc.rpc_async(to, plus, (x,))


@jit.ignore
def python_future(to: str, x: Tensor) -> Future[Tensor]:
    return rpc.rpc_async(to, plus, (x,))


@jit.script
def waits_for_python(to: str, x: Tensor) -> Tensor:
    return python_future(to, x).wait()


def _forked(x: Tensor) -> Tensor:
    return x * 2


@jit.script
def forks(x: Tensor) -> Tensor:
    return jit.wait(jit.fork(_forked, x)) + jit.wait(jit.fork(_forked, x))


# Asynchronous execution -------------------------------------------------------------


@jit.script
def added(x: Tensor, y: Tensor) -> Tensor:
    return x + y


@rpc.functions.async_execution
@jit.script
def passes_on(to: str, x: Tensor, y: Tensor) -> Future[Tensor]:
    return rpc.rpc_async(to, added, (x, y))


@rpc.functions.async_execution
@jit.script
def no_future(x: Tensor) -> Tensor:
    return x


# Profiles ---------------------------------------------------------------------------


@jit.script
def scoped(to: str, x: Tensor) -> Tensor:
    with record_function("a scope"):
        first = rpc.rpc_async(to, plus, (x,))
        second = rpc.rpc_async(to, plus, (x,))
        return first.wait() + second.wait()


@jit.script
def scoped_there(x: Tensor) -> Tensor:
    with record_function("inside"):
        return x + 1


def _forked_plus(x: Tensor) -> Tensor:
    return x + 1


@jit.script
def forked_plus(x: Tensor) -> Future[Tensor]:
    return jit.fork(_forked_plus, x)


def _calls_plus(to: str, x: Tensor) -> Tensor:
    return rpc.rpc_sync(to, plus, (x,))


@jit.script
def forks_a_call(to: str, x: Tensor) -> Tensor:
    return jit.wait(jit.fork(_calls_plus, to, x))


# Held -------------------------------------------------------------------------------

LET_GO = Event()
# Nobody waits so long; a test that fails does not hang.
LONGEST = 60.0


@jit.ignore
def hold() -> int:
    LET_GO.wait(LONGEST)
    return 7


@jit.script
def held() -> int:
    """7, when `let_go` was called there."""
    return hold()


def let_go() -> None:
    LET_GO.set()


def keep() -> None:
    LET_GO.clear()


@jit.script
def held_there(to: str, timeout: float) -> int:
    return rpc.rpc_async(to, held, (), {}, timeout).wait()


@jit.script
def held_future(to: str, timeout: float) -> Future[int]:
    return rpc.rpc_async(to, held, (), {}, timeout)


@jit.script
def begins_held(to: str) -> Future[int]:
    return rpc.rpc_async(to, held)


@jit.script
def held_default(to: str) -> int:
    return rpc.rpc_sync(to, held)


@jit.script
def held_reference(to: str, timeout: float) -> rpc.RRef[int]:
    return rpc.remote(to, held, (), {}, timeout)


@jit.script
def fetched(r: rpc.RRef[int], timeout: float) -> int:
    return r.to_here(timeout)


@jit.script
def taken(r: rpc.RRef[int]) -> int:
    return 1


@jit.script
def sent_on(to: str, r: rpc.RRef[int]) -> int:
    return rpc.rpc_sync(to, taken, (r,))
