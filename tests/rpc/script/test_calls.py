"""Calls of programs when they run: what is sent, and what is refused before."""

# mypy: disable-error-code="no-any-return"
# Remote calls of Python give what they give.

from typing import Any, Optional

import pytest

from everyorder import runtime
from everyorder.runtime import Tensor, jit
from everyorder.runtime import rpc as real
from everyorder.runtime.errors.rpc import NotInitialized, RpcMisuse
from everyorder.runtime.errors.script import RunningError
from everyorder.runtime.rpc.protocol.identities import WorkerInfo
from everyorder.runtime.script.ir.program import fork
from tests.coded import code
from tests.rpc.script import fakes as rpc
from tests.rpc.script.fakes import World
from tests.script.emission.scripts import script

X = runtime.tensor([1.0, 2.0])
PATH = "__torch__.tests.rpc.script.test_calls"
W2 = WorkerInfo("w2", 2)


@jit.script
def two(x: int, y: float, *, by: int) -> float:
    return x * y * by


@jit.script
def filled(x: int, xs: list[int] = (1, 2), y: Optional[str] = None) -> int:  # type: ignore[assignment]  # noqa: UP045  # as programs write it
    return x + len(xs)


@pytest.mark.spec("rpc 0.4", "a kind, a form, what runs")
@pytest.mark.spec("rpc 3.6", "defaults")
def test_what_is_sent(fake: World) -> None:
    """3.6: arguments by place, then what has a default; a timeout, or none."""

    @jit.script
    def f(to: str, info: WorkerInfo, kwargs: dict[str, Any]) -> None:
        rpc.rpc_async(to, filled, (1,), kwargs)
        rpc.rpc_sync(info, filled, (1,), {}, 2.5)
        rpc.remote(to, two, (1, 2), {"by": 3})

    f("w1", W2, {"y": "a"})
    assert fake.calls == [
        ("async", "w1", f"{PATH}.filled", (1, [1, 2], "a"), {}, -1.0),
        ("sync", W2, f"{PATH}.filled", (1, [1, 2], None), {}, 2.5),
        ("remote", "w1", f"{PATH}.two", (1, 2.0), {"by": 3}, -1.0),
    ]


def any_kwargs(to: str, kwargs: dict[str, Any]) -> int:
    return rpc.rpc_sync(to, filled, (1,), kwargs)


def any_worker(to: Any) -> int:
    return rpc.rpc_sync(to, filled, (1,))


def any_arguments(to: str, args: Any) -> Any:
    name = "__torch__.tests.rpc.script.test_calls.two"
    return rpc._rpc_sync_torchscript(to, name, (1, args), {"by": 1})


TAKES = "filled(int x, int[] xs=[1, 2], str? y=None) -> int"
UNFIT = {
    "unknown": (
        {"z": 1},
        "z",
        f"Unknown keyword argument 'z' of `filled`.\n  it takes: {TAKES}",
    ),
    "by place and by name": (
        {"x": 1},
        "x",
        "Argument 'x' is given both by place and by name.\n  it takes: " + TAKES,
    ),
    "of another type": (
        {"y": 1},
        "y",
        "Argument 'y' takes str?, and is an object of type int: 1.\n  it takes: "
        + TAKES,
    ),
    "in a list, of another type": (
        {"xs": ["a"]},
        "xs",
        "Argument 'xs' takes int[], and is an object of type list: ['a'].\n"
        "  it takes: " + TAKES,
    ),
}


@pytest.mark.spec("rpc 3.6", "arguments by name")
@pytest.mark.spec("rpc 10", "D9 arguments by name are looked at before")
@pytest.mark.parametrize("case", UNFIT)
def test_arguments_by_name_are_held_against_the_schema(case: str, fake: World) -> None:
    """3.6, D9: at the caller, before anything is sent."""
    kwargs, argument, words = UNFIT[case]
    with pytest.raises(RpcMisuse, check=code("UnfitArguments")) as caught:
        script(any_kwargs)("w1", kwargs)
    assert isinstance(caught.value, RuntimeError)
    assert caught.value.argument == argument
    assert caught.value.render() == words
    assert fake.calls == []


@pytest.mark.spec("rpc 3.6", "arguments by name")
def test_arguments_of_a_function_that_is_known_by_its_name(fake: World) -> None:
    assert script(any_arguments)("w1", 2.0) == 2.0
    fake.calls.clear()
    faults = {
        any_arguments: "Argument 'y' takes float, and is an object of type str: 'a'",
        by_name_0: "`filled` is missing value for argument 'x'",
        by_name_4: "`filled` takes at most 3 argument(s) by place, and 4 are given",
    }
    for f, fault in faults.items():
        with pytest.raises(RpcMisuse, check=code("UnfitArguments")) as caught:
            script(f)(*("w1", "a")[: 1 + (f is any_arguments)])
        assert caught.value.fault == fault
    assert fake.calls == []


def by_name_0(to: str) -> None:
    rpc._remote_torchscript(to, "__torch__.tests.rpc.script.test_calls.filled")


def by_name_4(to: str) -> None:
    name, none = "__torch__.tests.rpc.script.test_calls.filled", None
    rpc._remote_torchscript(to, name, (1, [1], none, 4))


@pytest.mark.spec("rpc 3.6", "the worker")
@pytest.mark.parametrize("to", [1, None, X, 2.0, ("w1",)])
def test_a_worker_is_a_name_or_an_info(to: Any, fake: World) -> None:
    """3.6: a number is neither, though Python's own calls take one."""
    with pytest.raises(RpcMisuse) as caught:
        script(any_worker)(to)
    assert caught.value.call == "rpc_sync"
    assert caught.value.wanted == "the name of a worker, or its WorkerInfo"
    assert fake.calls == []
    assert script(any_worker)("w1") == script(any_worker)(W2) == 3


def test_what_nobody_knows_here_is_the_other_workers_affair(fake: World) -> None:
    """Document 000: a name, and a tuple of what is sent as it is."""

    @jit.script
    def f(to: str, name: str, x: Tensor) -> Any:
        return rpc._rpc_sync_torchscript(to, name, (x,), {"z": 2}, 1.0)

    fake.there = {"__torch__.there": lambda x, z: x * z}
    assert f("w1", "__torch__.there", X).tolist() == [2.0, 4.0]
    assert fake.calls == [("sync", "w1", "__torch__.there", (X,), {"z": 2}, 1.0)]


def test_a_reference_by_name_is_of_any_type_until_it_is_looked_at(fake: World) -> None:
    def made(to: str) -> rpc.RRef[Any]:
        return rpc._remote_torchscript(to, "__torch__.there")

    def taken(r: rpc.RRef[int]) -> int:
        return r.to_here()

    fake.there = {"__torch__.there": lambda: 3}
    assert script(taken)(script(made)("w1")) == 3
    fake.there = {"__torch__.there": lambda: "a"}
    with pytest.raises(RunningError, check=code("NotOfType")):
        script(taken)(script(made)("w1"))


def test_results_are_held_against_their_types(fake: World) -> None:
    """Another worker's function of this name may be another one."""

    @jit.script
    def direct(to: str) -> int:
        return rpc.rpc_sync(to, filled, (1,))

    @jit.script
    def later(to: str) -> int:
        return rpc.rpc_async(to, filled, (1,)).wait()

    @jit.script
    def kept(to: str) -> int:
        return rpc.remote(to, filled, (1,)).to_here()

    fake.there = {f"{PATH}.filled": lambda *args: "a"}
    for f in (direct, later, kept):
        with pytest.raises(RunningError, check=code("NotOfType")) as caught:
            f("w1")
        assert (caught.value.expected, caught.value.value) == ("int", "'a'")
    fake.there = {f"{PATH}.filled": lambda *args: 4}
    assert [f("w1") for f in (direct, later, kept)] == [4, 4, 4]


@pytest.mark.spec("rpc 3.6", "errors of the other worker")
def test_errors_come_as_they_are_with_the_frames_of_the_caller(fake: World) -> None:
    """3.6: the program that asked, then what the other one says."""

    @jit.script
    def f(to: str) -> int:
        return rpc.rpc_sync(to, filled, (1,))

    @jit.script
    def g(to: str) -> int:
        return rpc.rpc_async(to, filled, (1,)).wait()

    class Odd(RuntimeError):
        pass

    def fail(*args: Any) -> int:
        raise Odd("Expected error")

    fake.there = {f"{PATH}.filled": fail}
    for each in (f, g):
        with pytest.raises(Odd, match="Expected error") as caught:
            each("w1")
        (note,) = caught.value.__notes__
        assert "rpc.rpc_" in note
        assert "in f" in note or "in g" in note


@pytest.mark.spec("rpc 3.6", "no worker here")
def test_without_a_worker() -> None:
    """3.6: the program that asked, and what comes before."""

    @jit.script
    def f(to: str) -> int:
        return real.rpc_sync(to, filled, (1,))

    with pytest.raises(NotInitialized, match="RPC has not been initialized") as caught:
        f("w1")
    assert caught.value.call == "rpc_sync"
    assert "in f" in caught.value.__notes__[0]


def test_calls_of_forked_tasks(fake: World) -> None:
    def called(to: str, n: int) -> int:
        return rpc.rpc_sync(to, filled, (n,))

    @jit.script
    def f(to: str) -> int:
        futures = [fork(called, to, 1), fork(called, to, 2)]
        return futures[0].wait() + futures[1].wait()

    assert f("w1") == 3 + 4
    assert len(fake.calls) == 2
    assert sorted(call[3][0] for call in fake.calls) == [1, 2]
