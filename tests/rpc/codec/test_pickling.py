"""Any value, written and read: what arrives, what is refused and by which words."""

import builtins
import collections
import functools
import pickle
import socket
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from everyorder import runtime
from everyorder.runtime.errors import RpcError, Undecodable, UnknownCallable, Unsendable
from everyorder.runtime.futures import Future, awaitable_nowait
from everyorder.runtime.jit import script
from everyorder.runtime.rpc.codec import (
    current_pickler,
    pack,
    register_reducer,
    unpack,
    use_pickler,
)
from everyorder.runtime.rpc.codec.payload import CURRENT
from everyorder.runtime.rpc.protocol.identities import WorkerInfo
from tests.coded import code, coded
from tests.rpc.codec.things import (
    LOCK,
    Known,
    Point,
    Reference,
    Slotted,
    as_received,
    double,
    there,
)

ROOT = ("function", "args", "kwargs")


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, -5, 2**200, 1.5, -0.0, 3j, "é\ud800", b"\x00", bytearray(b"x")),
        [1, [2, (3, {"a": {4}})]],
        {1: "a", (2, "b"): None, frozenset([3]): b"c"},
        Point(1, 2),
        collections.OrderedDict(a=1),
        WorkerInfo("w", 3),
        slice(1, 2),
        ValueError("text"),
        range(5),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_arrives(value: Any) -> None:
    """4.12: whatever can be pickled."""
    found = there(value)
    assert type(found) is type(value)
    if isinstance(value, ValueError):
        assert found.args == value.args
    else:
        assert found == value


@pytest.mark.parametrize(
    "function",
    [double, Point, Point.origin, Point(3, 4).norm, functools.partial(double, 4), len],
    ids=["function", "class", "classmethod", "method", "partial", "builtin"],
)
def test_what_a_module_has_travels_by_its_name(function: Callable[..., Any]) -> None:
    """4.12: functions, classes, methods of objects, what wraps them."""
    packed = pack(function)
    assert b"double" in bytes(packed.payload[0]) or function is not double
    found = unpack(as_received(packed))
    assert type(found) is type(function)
    if function in (double, Point, len):
        assert found is function
    elif not isinstance(function, functools.partial):
        assert found() in (25, Point(0, 0))


def test_what_no_module_has_travels_as_code() -> None:
    """Lambdas, functions within functions, and what they close over."""
    rate = 3

    def local(value: int) -> int:
        return value * rate

    class Within:
        def __init__(self) -> None:
            self.value = local(2)

    assert there(lambda x: x + 1)(2) == 3
    assert there(local)(5) == 15
    assert there((local, [local], {"f": local}))[2]["f"](1) == 3
    assert there(Within)().value == 6
    assert there(Within()).value == 6


def test_identity_within_a_message() -> None:
    """What is one object before is one after, and nothing is the sender's own."""
    inner = [1]
    loop: list[Any] = [inner, inner]
    loop.append(loop)
    found = there(loop)
    assert found[0] is found[1]
    assert found[0] is not inner
    assert found[2] is found
    assert unpack(pack(loop).payload)[0] is not inner


def test_small_messages_have_one_frame() -> None:
    values: list[Any] = [None, (double, (3,), {}), np.arange(4), runtime.ones(3)]
    for value in values:
        packed = pack(value)
        assert len(packed.payload) == 1
        assert packed.carries == []


def test_large_buffers_travel_beside_the_pickle_without_a_copy() -> None:
    array = np.arange(10_000)
    packed = pack([array, array[:100]])
    _, frame = packed.payload
    assert isinstance(frame, memoryview)
    assert frame.readonly
    assert frame.nbytes == array.nbytes
    assert np.shares_memory(np.frombuffer(frame, np.uint8), array)


@pytest.mark.parametrize("count", [4, 10_000], ids=["small", "large"])
@pytest.mark.parametrize("same", [False, True], ids=["socket", "same process"])
def test_arrays_arrive_writable_and_aligned(count: int, same: bool) -> None:
    """Also where the frames are the sender's own memory, which stays as it is."""
    sent = np.arange(count)
    packed = pack(sent)
    found = unpack(packed.payload if same else as_received(packed))
    assert found.flags.writeable
    assert found.flags.aligned
    found[:] = -1
    assert sent[1] == 1


def test_frames_that_lie_anywhere_are_copied() -> None:
    """A frame behind an odd number of bytes is a legal frame."""
    packed = pack((np.arange(10_000.0), runtime.zeros(5000)))
    frames = []
    for each in packed.payload:
        odd = bytearray(1 + len(memoryview(each)))
        odd[1:] = each
        frames.append(memoryview(odd)[1:])
    array, tensor = unpack(frames)
    assert array.flags.aligned
    assert array[9999] == 9999
    assert tensor.data_ptr() % 16 == 0


def test_writable_frames_are_used_as_they_are() -> None:
    frames = as_received(pack((np.zeros(10_000), runtime.zeros(5000))))
    array, tensor = unpack(frames)
    array[0], tensor.storage().array[0] = 7, 7
    assert np.frombuffer(frames[2], float)[0] == 7
    assert np.frombuffer(frames[1], np.float32)[0] == 7


# What is refused.


def generator() -> Any:
    yield 1


async def coroutine() -> None:
    """Never awaited."""


def refused_things() -> dict[str, Any]:
    never: Future[int] = Future()
    return {
        "future": never,
        "await": awaitable_nowait(3),
        "generator": generator(),
        "lock": LOCK,
        "reentrant lock": threading.RLock(),
        "thread": threading.Thread(),
        "frame": __import__("sys")._getframe(),
    }


NAMES = [*refused_things()]


@pytest.mark.parametrize("name", NAMES)
def test_what_cannot_travel_is_named_with_its_place(name: str) -> None:
    value = refused_things()[name]
    with pytest.raises(Unsendable, check=code("Unsendable")) as caught:
        pack((double, (1, {"x": [value]}), {}), root=ROOT)
    assert caught.value.path.startswith("args[1]['x'][0]")
    assert "cannot be pickled" in " ".join(str(caught.value).split())
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, RuntimeError)


def test_files_sockets_and_coroutines_are_refused() -> None:
    with (
        open(__file__) as file,
        pytest.raises(Unsendable, check=code("Unsendable"), match="TextIOWrapper"),
    ):
        pack(file)
    with (
        socket.socket() as made,
        pytest.raises(Unsendable, check=code("Unsendable"), match="socket"),
    ):
        pack([made])
    waiting = coroutine()
    with pytest.raises(Unsendable, check=code("Unsendable"), match="coroutine"):
        pack(waiting)
    waiting.close()


def test_the_text_of_a_refusal() -> None:
    with pytest.raises(Unsendable, check=code("Unsendable")) as caught:
        pack((double, (), {"lock": LOCK}), root=ROOT)
    assert str(caught.value) == (
        "`kwargs['lock']`, an object of `_thread.lock`, cannot be sent: it cannot "
        "be\n"
        "pickled.\n"
        "  reason: TypeError: cannot pickle '_thread.lock' object\n"
        "  to do:  send its parts, or a reference to it"
    )


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (LOCK, "value"),
        ([1, LOCK], "[1]"),
        ({"a": (0, LOCK)}, "['a'][1]"),
        ({LOCK: 1}, ".keys() (<unlocked _thread.lock object>)"),
        (SimpleNamespace(a=1, b=SimpleNamespace(c=LOCK)), ".b.c"),
        (Slotted([LOCK]), ".inner[0]"),
        (functools.partial(print, 1, [LOCK]), ".args[1][0]"),
        (functools.partial(double, value=LOCK), ".keywords['value']"),
        (SimpleNamespace(acquire=LOCK).__dict__.get, ".__self__['acquire']"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_paths(value: Any, path: str) -> None:
    with pytest.raises(Unsendable, check=code("Unsendable")) as caught:
        pack(value)
    assert caught.value.path == path


def test_paths_lead_into_what_a_function_closes_over() -> None:
    guard = LOCK

    def local() -> Any:
        return guard

    with pytest.raises(Unsendable, check=code("Unsendable")) as caught:
        pack((local, (), {}), root=ROOT)
    assert caught.value.path == "function.<locals>.guard"


def test_paths_do_not_go_round() -> None:
    loop: list[Any] = []
    loop += [loop, LOCK]
    with pytest.raises(Unsendable, check=code("Unsendable")) as caught:
        pack(loop)
    assert caught.value.path == "[1]"


def test_what_is_nested_too_deeply_is_refused() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(Unsendable, check=code("Unsendable"), match="excessively deep"):
        pack((double, (deep,), {}), root=ROOT)
    while deep:
        # Taken apart level by level: C's stack is short.
        (deep,) = deep


class Hostile:
    def __reduce__(self) -> Any:
        raise ValueError("not today")


class Wordless(Exception):
    def __str__(self) -> str:
        raise RuntimeError


class Worse:
    def __reduce__(self) -> Any:
        raise Wordless


def test_reducers_that_raise() -> None:
    with pytest.raises(
        Unsendable, check=code("Unsendable"), match="ValueError: not today"
    ) as caught:
        pack([Hostile()])
    assert isinstance(caught.value.__cause__, ValueError)
    with pytest.raises(
        Unsendable, check=code("Unsendable"), match="Wordless: it has no text"
    ):
        pack(Worse())


class Interrupting:
    def __reduce__(self) -> Any:
        raise KeyboardInterrupt


def test_an_interrupt_passes_and_leaves_the_thread_as_it_was() -> None:
    with pytest.raises(KeyboardInterrupt):
        pack(Interrupting())
    assert CURRENT.writer is None
    assert there([1]) == [1]


class Calls:
    """Sends something while it is being sent itself."""

    def __reduce__(self) -> Any:
        return there, (there([runtime.ones(2).tolist()])[0],)


def test_a_message_within_a_message() -> None:
    assert there([Calls(), runtime.ones(3)])[0] == [1.0, 1.0]


# What arrives broken.


def test_reading_garbage_is_an_error_of_ours() -> None:
    for payload in (
        [],
        [b""],
        [b"\x00"],
        [b"abc\x01"],
        [b"\x02"],
        [b"x" * 20 + b"\x02"],
    ):
        with pytest.raises(Undecodable):
            unpack(payload)
    whole = as_received(pack((np.arange(1000), runtime.ones(2000), Point(1, 2))))
    assert len(whole) == 3
    for cut in range(len(whole[0])):
        with pytest.raises(RpcError):
            unpack([whole[0][:cut], *whole[1:]])
    with pytest.raises(Undecodable):
        unpack(whole[:2])


def test_what_is_not_here_is_named() -> None:
    payload = [bytes(pack(double).payload[0]).replace(b"double", b"absent")]
    with pytest.raises(UnknownCallable, check=code("UnknownCallable")) as caught:
        unpack(payload)
    assert (caught.value.kind, caught.value.name) == ("name", "absent")
    assert "the RPC pickler does not serialize" in " ".join(str(caught.value).split())
    gone = [bytes(pack(double).payload[0]).replace(b"things", b"thingz")]
    with pytest.raises(UnknownCallable, check=code("UnknownCallable")) as caught:
        unpack(gone)
    assert caught.value.name == "tests.rpc.codec.thingz"


class Lazy:
    def __reduce__(self) -> Any:
        return getattr, (Point, "missing")


class Sets:
    def __setstate__(self, state: Any) -> None:
        raise AttributeError("no attribute 'x' on this")

    def __getstate__(self) -> Any:
        return 1


def test_what_raises_where_it_is_read() -> None:
    with pytest.raises(Undecodable, match="AttributeError") as caught:
        there(Sets())
    assert isinstance(caught.value.__cause__, AttributeError)
    with pytest.raises(
        (Undecodable, coded(UnknownCallable, "UnknownCallable")), match="missing"
    ):
        there(Lazy())


def test_pickles_are_not_read_of_whom_is_not_trusted() -> None:
    ran: list[int] = []

    class Trap:
        def __reduce__(self) -> Any:
            return builtins.exec, ("raise AssertionError('it ran')",)

    with pytest.raises(Undecodable, match="it ran"):
        there(Trap())
    with pytest.raises(UnknownCallable, check=code("OnlyRegistered")):
        unpack(pack(Trap()).payload, trusted=False)
    with pytest.raises(UnknownCallable, check=code("OnlyRegistered")):
        unpack(pack(runtime.ones(2)).payload, trusted=False)
    assert ran == []


# References.


def test_references_are_carried() -> None:
    """Of any depth; one object is one, and arrives as one."""
    known, one, two = Known(), Reference("one"), Reference("two")
    packed = pack({"a": [one, two], "b": (one,), "t": runtime.ones(2)}, known)
    assert packed.carries == ["fork of one", "fork of two"]
    receiving = Known()
    found = unpack(as_received(packed), receiving, packed.carries)
    assert receiving.received == packed.carries
    assert [each.to for each in found["a"]] == ["one", "two"]
    assert found["b"][0] is found["a"][0]


def test_references_that_code_closes_over_are_carried_once() -> None:
    """The value is written twice then; what counts is what is sent."""
    one = Reference("one")
    packed = pack(lambda: one, Known())
    assert packed.carries == ["fork of one"]
    found = unpack(as_received(packed), Known(), packed.carries)
    assert found().to == "one"


def test_a_reference_that_refuses_says_so_itself() -> None:
    class Dead(Known):
        def carry(self, reference: Any) -> Any:
            raise RpcError

    with pytest.raises(RpcError) as caught:
        pack((double, (Reference("x"),), {}), Dead(), root=ROOT)
    assert type(caught.value) is RpcError


def test_a_search_for_what_is_refused_carries_nothing() -> None:
    known = Known()
    with pytest.raises(Unsendable, check=code("Unsendable")) as caught:
        pack([Reference("a"), LOCK], known)
    assert caught.value.path == "[1]"
    assert set(known.carried) == {"a"}
    assert len(known.carried) == 2  # pickle's own try, and that by value


def test_a_message_carries_all_that_it_names() -> None:
    packed = pack([Reference("a")], Known())
    with pytest.raises(Undecodable, match="does not carry it"):
        unpack(packed.payload, Known(), [])


def test_no_one_reads_parts_of_messages_outside() -> None:
    """The functions that a pickle names work within `unpack` only."""
    data = bytes(pack([Reference("a")], Known()).payload[0])
    with pytest.raises(Undecodable, match="read outside"):
        pickle.loads(data)


# Reducers and picklers of one's own.


class Custom:
    def __init__(self, value: int) -> None:
        self.value = value


class Below(Custom):
    pass


def custom_again(value: int) -> Custom:
    return Custom(value + 100)


def test_a_reducer_of_a_class_the_first_one_stays() -> None:
    """4.12: of that class alone."""
    register_reducer(Custom, lambda each: (custom_again, (each.value,)))
    register_reducer(Custom, lambda each: (custom_again, (-each.value,)))
    assert there([Custom(1)])[0].value == 101
    assert there(Below(1)).value == 1
    # Ordinary pickle knows nothing of it.
    assert pickle.loads(pickle.dumps(Custom(1))).value == 1


class Reversing:
    """Writes texts backwards."""

    def serialize(self, obj: Any) -> tuple[bytes, list[Any]]:
        return obj.encode()[::-1], [b"beside"]

    def deserialize(self, binary_data: bytes, tensor_table: list[Any]) -> Any:
        return binary_data[::-1].decode(), [bytes(each) for each in tensor_table]


def test_another_pickler_for_a_block() -> None:
    mine = Reversing()
    before = pack("before").payload
    with use_pickler(mine):
        assert current_pickler() is mine
        payload = pack("within").payload
        assert bytes(payload[0])[:-1] == b"nihtiw"
        assert unpack(payload) == ("within", [b"beside"])
        # What pickle wrote is read by pickle.
        assert unpack(before) == "before"
        with use_pickler(Reversing()):
            assert current_pickler() is not mine
        assert current_pickler() is mine
    assert current_pickler() is None
    assert there("after") == "after"
    with pytest.raises(Undecodable, match="not in use here"):
        unpack(payload)


# Programs.


class Scaled(runtime.Module):
    def __init__(self, by: float) -> None:
        super().__init__()
        self.by = runtime.Parameter(runtime.tensor([by]))

    def forward(self, x: runtime.Tensor) -> runtime.Tensor:
        return x * self.by


def test_compiled_modules_travel_as_archives() -> None:
    module = script(Scaled(2.0))
    found = there(module)
    assert found(runtime.ones(2)).tolist() == [2.0, 2.0]
    assert found.by.requires_grad
    deep = there({"a": [module]})["a"][0]
    assert deep(runtime.ones(1)).tolist() == [2.0]


def test_modules_travel_with_their_parameters() -> None:
    module = Scaled(3.0)
    found = there(module)
    assert type(found) is Scaled
    assert type(found.by) is runtime.Parameter
    assert found.by.requires_grad
    assert found(runtime.ones(1)).tolist() == [3.0]
    assert found.by.storage() is not module.by.storage()


def test_methods_of_compiled_modules_do_not_travel() -> None:
    """3.10: a method is its module's, and that runs it."""
    module = script(Scaled(2.0))
    with pytest.raises(Unsendable, check=code("Unsendable"), match="pickle"):
        pack(module.forward)


@script
def incremented(x: int) -> int:
    return x + 1


def test_compiled_functions_travel_by_their_names() -> None:
    found = there([incremented])[0]
    assert found.function is incremented.function
    assert found(2) == 3
