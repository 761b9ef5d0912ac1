"""What is called: kinds, checks at the caller, and how the callee finds it."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any
from weakref import ref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everyorder import runtime
from everyorder.runtime import Library, ops
from everyorder.runtime.base.registry import keys_of
from everyorder.runtime.errors import (
    CallError,
    NoMatchingOverload,
    OperatorGone,
    RpcMisuse,
    Undecodable,
    UnknownCallable,
    Unsendable,
)
from everyorder.runtime.jit import script
from everyorder.runtime.rpc.codec import (
    REGISTRY,
    FunctionRegistry,
    Invocation,
    call_of,
    named_functions,
    pack,
    pack_call,
    pack_result,
    register,
    registered,
    restricted,
    unpack,
    unpack_call,
)
from everyorder.runtime.rpc.codec.callables import NamedFunction, result_type
from everyorder.runtime.rpc.codec.compiled import script_function
from everyorder.runtime.rpc.codec.named_functions import MARK
from tests.coded import code
from tests.rpc.codec import programs
from tests.rpc.codec.things import (
    LOCK,
    Known,
    Point,
    Reference,
    Weight,
    as_received,
    double,
    there,
)

ONES = runtime.ones(2)


def sent(call: Invocation, *, registered_only: bool = False) -> Invocation:
    """The call as the callee gets it."""
    packed = pack_call(call, registered_only=registered_only)
    return unpack_call(as_received(packed), registered_only=registered_only)


def is_restricted(call: Invocation) -> bool:
    return pack_call(call).payload[0][-1] == 3


# Which kind.


@pytest.mark.parametrize(
    ("function", "args", "kind", "name"),
    [
        (ops.core.add, (ONES, 1), "operator", "core::add"),
        (ops.aten.add, (ONES, 1), "operator", "core::add"),
        (ops.core.add.default, (ONES, 1), "operator", "core::add"),
        (runtime.add, (ONES, 1), "operator", "core::add"),
        (runtime.nonzero, (ONES,), "Python function", "nonzero"),
        (programs.added, (1,), "function", "__torch__.tests.rpc.codec.programs.added"),
        (programs.greeted, ("x",), "registered function", None),
        (double, (1,), "Python function", "double"),
        (Point, (1, 2), "Python function", "Point"),
        (Point(3, 4).norm, (), "Python function", "Point.norm"),
        (len, ("x",), "Python function", "len"),
    ],
)
def test_kinds_and_names(
    function: Any, args: tuple[Any, ...], kind: str, name: str | None
) -> None:
    """3.8: operators, then compiled functions, then others; what a profiler shows."""
    call = call_of(function, args)
    name = name or "tests.rpc.codec.programs.greeted"
    assert (call.kind, call.name) == (kind, name)
    found = sent(call)
    assert (found.kind, found.name, found.kwargs) == (kind, name, {})
    assert is_restricted(call) is (kind != "Python function")
    value, own = found.run(), function(*args)
    if isinstance(own, runtime.Tensor):
        assert value.tolist() == own.tolist()
    else:
        assert value == own


def test_arguments_may_be_missing_or_a_list() -> None:
    """3.8: what is falsy is nothing."""
    nothing: list[Any] = [None, (), [], {}, 0]
    for args in nothing:
        for kwargs in nothing:
            call = call_of(Point.origin, args, kwargs)
            assert (call.args, call.kwargs) == ((), {})
    assert call_of(double, [3]).args == (3,)


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "text"),
    [
        (3, (), {}, "function should be callable"),
        (double, 5, {}, "`args` with an object of type int"),
        (double, "abc", {}, "`args` with an object of type str"),
        (double, (), [1], "`kwargs` with an object of type list"),
        (double, (), {1: 2}, "keywords must be strings"),
    ],
)
def test_what_is_no_call(function: Any, args: Any, kwargs: Any, text: str) -> None:
    with pytest.raises(RpcMisuse) as caught:
        call_of(function, args, kwargs)
    assert isinstance(caught.value, TypeError)
    assert text in " ".join(str(caught.value).split())


# Operators.


def test_overloads_are_chosen_where_the_call_is_made() -> None:
    out = runtime.zeros(2)
    call = call_of(ops.core.add, (ONES, ONES), {"out": out})
    assert call.name == "core::add.out"
    assert call.schema.startswith("core::add.out(Tensor self, Tensor other")
    found = sent(call)
    assert found.run() is found.kwargs["out"]
    assert found.kwargs["out"].tolist() == [2.0, 2.0]
    assert out.tolist() == [0.0, 0.0]


def test_functions_of_the_runtime_in_their_own_words() -> None:
    """As NumPy has them, and with `out=`."""
    call = call_of(runtime.sum, (runtime.ones(2, 3),), {"axis": 0, "out": None})
    assert (call.name, call.kwargs) == ("core::sum", {"dim": [0]})
    assert sent(call).run().tolist() == [2.0, 2.0, 2.0]
    assert call_of(runtime.add, (ONES, 1), {"out": ONES}).name == "core::add.out"


@pytest.mark.parametrize(
    ("function", "args", "kwargs"),
    [
        (ops.core.add, ("a", "b"), {}),
        (ops.core.add.default, (ONES,), {}),
        (runtime.add, (ONES, "b"), {}),
        (runtime.add, (ONES, 1), {"alhpa": 2}),
        (runtime.relu, ("x",), {"inplace": True}),
        (programs.added, ("a",), {}),
        (programs.added, (1, 2, 3), {}),
        (programs.added, (), {}),
        (programs.added, (1,), {"z": 1}),
        (programs.added, (1,), {"x": 1}),
    ],
)
def test_arguments_that_do_not_fit_are_the_callers_error(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """4.5: before anything is sent."""
    with pytest.raises((CallError, NoMatchingOverload)):
        call_of(function, args, kwargs)


@pytest.fixture
def demo() -> Iterator[Library]:
    with Library("values_demo") as library:
        yield library


def test_an_operator_is_the_same_one_there(demo: Library) -> None:
    """4.3: matched by its schema, exactly."""
    demo.define("twice(Tensor x) -> Tensor")
    demo.impl("twice", lambda x: x + x, "CompositeExplicitAutograd")
    call = call_of(ops.values_demo.twice, (ONES,))
    payload = pack_call(call).payload
    assert unpack_call(payload).run().tolist() == [2.0, 2.0]
    other = call._replace(schema="values_demo::twice(Tensor y) -> Tensor")
    with pytest.raises(OperatorGone, check=code("OperatorChanged")) as caught:
        unpack_call(pack_call(other).payload)
    assert caught.value.found == "values_demo::twice(Tensor x) -> Tensor"
    demo.close()
    with pytest.raises(UnknownCallable, check=code("UnknownCallable")) as missing:
        unpack_call(payload)
    assert (missing.value.kind, missing.value.name) == (
        "operator",
        "values_demo::twice",
    )


def test_the_text_of_an_operator_that_is_not_there() -> None:
    payload = restricted.pack((("operator", "core::ad", ""), (), {})).payload
    with pytest.raises(UnknownCallable, check=code("UnknownCallable")) as caught:
        unpack_call(payload)
    assert str(caught.value) == (
        "A worker attempted to get undefined operator core::ad.\n"
        "  near:  core::pad, core::add, core::rand\n"
        "  to do: load what defines it there too, in the same version"
    )


# Compiled functions.


def test_compiled_functions_by_name() -> None:
    call = call_of(programs.added, (1,), {"y": 5})
    assert b"programs.added" in bytes(pack_call(call).payload[0])
    assert sent(call).run() == 6
    by_name = call_of(NamedFunction(call.name), (1,))
    assert sent(by_name).run() == 3
    assert by_name.run() == 3


def test_an_undefined_function_is_named() -> None:
    """3.10: its last name, the prefix is the callee's business."""
    name = "__torch__.tests.rpc.codec.programs.nonexisting_script"
    with pytest.raises(UnknownCallable, check=code("UnknownCallable")) as caught:
        sent(call_of(NamedFunction(name)))
    assert "attempted to get undefined function nonexisting_script" in str(caught.value)
    with pytest.raises(
        UnknownCallable, check=code("UnknownCallable"), match="ModuleNotFoundError"
    ):
        script_function("__torch__.no_such_module.f")
    with pytest.raises(UnknownCallable, check=code("UnknownCallable")):
        script_function("f")


def test_functions_without_a_module_are_found_while_they_live() -> None:
    def local(x: int) -> int:
        return x * 3

    compiled = script(local)
    payload = pack_call(call_of(compiled, (2,))).payload
    assert unpack_call(payload).run() == 6


FETCH = """
import sys
from everyorder.runtime.rpc.codec import unpack_call
for line in sys.stdin:
    print(unpack_call([bytes.fromhex(line)]).run())
"""


def test_another_process_loads_the_module_of_a_name() -> None:
    """Of compiled, of registered and of other functions, and of operators."""
    calls = [
        call_of(programs.added, (40,)),
        call_of(programs.greeted, ("you",)),
        call_of(double, ("ab",)),
        call_of(ops.core.add, (ONES, 1)),
        call_of(lambda x: x - 1, (3,)),
    ]
    lines = [bytes(pack_call(each).payload[0]).hex() for each in calls]
    found = subprocess.run(
        [sys.executable, "-c", FETCH],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert found.stdout.splitlines() == [
        "42",
        "hello you",
        "abab",
        "tensor([2., 2.])",
        "2",
    ]


def test_types_of_results() -> None:
    """As schemas have them, where somebody knows."""

    def later(x: int) -> runtime.jit.Future[int]:
        return runtime.jit.fork(programs.added, x)

    compiled = script(later)

    def marked() -> None:
        """Stands for what `async_execution` makes."""

    marked.__dict__[MARK] = compiled
    for function, wanted in [
        (programs.added, "int"),
        (runtime.add, "Tensor"),
        (runtime.sort, ""),
        (ops.core.add.default, "Tensor"),
        (ops.core.add, ""),
        (double, ""),
        (compiled, "Future[int]"),
        (marked, "int"),
    ]:
        assert result_type(function).replace("(", "[").replace(")", "]") == wanted
    marked.__dict__[MARK] = double
    assert result_type(marked) == ""


# How calls travel.


def test_arguments_without_a_place_in_the_codec_are_pickled() -> None:
    call = call_of(programs.greeted, (Point(1, 2),))
    assert not is_restricted(call)
    assert sent(call).args == (Point(1, 2),)


def test_references_among_arguments() -> None:
    one = Reference("one")
    for function in (double, programs.greeted):
        packed = pack_call(call_of(function, (one,)), Known())
        assert packed.carries == ["fork of one"]
        found = unpack_call(packed.payload, Known(), packed.carries)
        assert found.args[0].to == "one"


def test_what_cannot_be_sent_is_named() -> None:
    for function in (double, programs.greeted):
        with pytest.raises(Unsendable, check=code("Unsendable")) as caught:
            pack_call(call_of(function, (1, [LOCK]), {"k": 1}))
        assert caught.value.path == "args[1][0]"


@pytest.mark.parametrize(
    "value",
    [
        None,
        (),
        ("f", (), {}),
        (("operator", "x"), (), {}),
        (("operator", 1, ""), (), {}),
        (("nothing", "x", ""), (), {}),
        (("function", "x", ""), [], {}),
        (("function", "x", ""), (), []),
        (("function", "x", ""), (), {1: 2}),
        (("function", "x", ""), ()),
        (("function", "x", ""), (), {}, True),
    ],
)
def test_what_is_no_call_is_not_called(value: Any) -> None:
    if value == ("f", (), {}):
        # A pickled function is whatever was sent.
        assert unpack_call(pack(value).payload).function == "f"
        value = (("f",), (), {})
    for write in (pack, restricted.pack):
        with pytest.raises(Undecodable):
            unpack_call(write(value).payload)


CALL = bytes(
    pack_call(call_of(programs.greeted, ("you", [ONES]), {"k": 1.5})).payload[0]
)


@settings(max_examples=200)
@given(st.integers(0, len(CALL) - 2), st.binary(max_size=4), st.integers(0, 4))
def test_any_change_of_a_call(at: int, change: bytes, gone: int) -> None:
    """A call of what is registered, or an error of ours: nothing else comes out."""
    payload = [CALL[:at] + change + CALL[at + gone : -1] + CALL[-1:]]
    try:
        found = unpack_call(payload, registered_only=True)
    except Undecodable:
        return
    except UnknownCallable as error:
        refused = error.code
    else:
        assert found.function is programs.greeted
        return
    assert refused in ("OnlyRegistered", "UnknownCallable")


def test_results() -> None:
    assert unpack(pack_result({"a": Point(1, 2)}).payload) == {"a": Point(1, 2)}
    plain = pack_result([1, ONES], registered_only=True)
    assert unpack(plain.payload, trusted=False)[0] == 1
    with pytest.raises(Unsendable, check=code("Unsendable")) as caught:
        pack_result([1, {LOCK}])
    assert caught.value.path == "result[1].pop() (<unlocked _thread.lock object>)"
    with pytest.raises(Unsendable, check=code("Unsendable")) as caught:
        pack_result((1, Point(1, 2)), registered_only=True)
    assert caught.value.path == "result[1]"


# Registered functions only.


def test_only_registered_functions() -> None:
    call = call_of(programs.greeted, ("you",))
    assert sent(call, registered_only=True).run() == "hello you"
    for function in (double, programs.added, ops.core.add):
        args = (ONES, 1) if function is ops.core.add else (1,)
        refused = call_of(function, args)
        with pytest.raises(UnknownCallable, check=code("OnlyRegistered")) as caught:
            pack_call(refused, registered_only=True)
        assert refused.name in str(caught.value)
        # Whoever sends it all the same.
        with pytest.raises(UnknownCallable, check=code("OnlyRegistered")):
            unpack_call(pack_call(refused).payload, registered_only=True)
    with pytest.raises(Unsendable, check=code("Unsendable")):
        pack_call(call_of(programs.greeted, (Point(1, 2),)), registered_only=True)


def test_the_text_of_a_refusal() -> None:
    payload = pack_call(call_of(programs.added, (1,))).payload
    with pytest.raises(UnknownCallable, check=code("OnlyRegistered")) as caught:
        unpack_call(payload, registered_only=True)
    assert str(caught.value) == (
        "The function `__torch__.tests.rpc.codec.programs.added` was refused: this "
        "worker\n"
        "accepts only registered functions.\n"
        "  to do: register a function there by `rpc.register`, and call it with "
        "numbers,\n"
        "         texts, tensors, references and containers of these"
    )


def test_only_registered_functions_load_no_module(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A name that could be that of a module is a name."""
    asked: list[str] = []
    monkeypatch.setattr(
        "everyorder.runtime.rpc.codec.compiled.import_module", asked.append
    )
    call = call_of(registered("no_such_module_at_all.f"))
    with pytest.raises(UnknownCallable, check=code("UnknownCallable")):
        sent(call, registered_only=True)
    assert asked == []
    with pytest.raises(UnknownCallable, check=code("UnknownCallable")):
        sent(call)
    assert asked == ["no_such_module_at_all"]


def test_operators_and_compiled_functions_can_be_registered() -> None:
    for function, args, value in [
        (ops.core.add, (ONES, 1), [2.0, 2.0]),
        (programs.scaled, (ONES,), [2.0, 2.0]),
    ]:
        with REGISTRY.add(function, "demo"):
            call = call_of(function, args)
            assert (call.kind, call.name) == ("registered function", "demo")
            assert sent(call, registered_only=True).run().tolist() == value


# Names.


def test_a_handle_takes_the_name_back() -> None:
    registry = FunctionRegistry()
    with registry.add(double) as handle:
        assert handle.name == "tests.rpc.codec.things.double"
        assert registry.names() == (handle.name,)
        assert registry.find(handle.name) is double
        assert registry.name_of(double) == handle.name
        assert handle(4) == 8
    handle.close()
    assert registry.names() == ()
    assert registry.name_of(double) is None
    with pytest.raises(UnknownCallable, check=code("UnknownCallable")):
        registry.find(handle.name)


def test_names_do_not_care_in_which_order_handles_go() -> None:
    """A name is free when all of its handles are closed."""
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        registry = FunctionRegistry()
        handles = [
            registry.add(double, "a"),
            registry.add(double, "a"),
            registry.add(double, "b"),
        ]
        open_handles = [*handles]
        for place in order:
            handles[place].close()
            handles[place].close()
            open_handles.remove(handles[place])
            names = {each.name for each in open_handles}
            assert registry.names() == tuple(sorted(names))
            assert registry.name_of(double) == min(names, default=None)


def test_a_closed_registration_does_not_keep_its_function() -> None:
    def function() -> None: ...

    registry = FunctionRegistry()
    handle = registry.add(function, "a")
    assert registry.name_of(function) == "a"
    alive = ref(function)
    handle.close()
    del function, handle
    assert alive() is None


def test_a_registration_that_is_closed_meanwhile_does_not_keep_its_function(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another thread closes it while `name_of` reads the rows."""

    def function() -> None: ...

    registry = FunctionRegistry()
    handles = [registry.add(function, "a")]

    def keys_of_rows(rows: Mapping[Any, Any]) -> frozenset[Any]:
        handles.pop().close()
        return keys_of(rows)

    monkeypatch.setattr(named_functions, "keys_of", keys_of_rows)
    assert registry.name_of(function) == "a"
    alive = ref(function)
    del function
    assert alive() is None


def test_a_name_stands_for_one_function() -> None:
    registry = FunctionRegistry()
    handle = registry.add(double, "a")
    with pytest.raises(RpcMisuse, match="is registered for another function"):
        registry.add(len, "a")
    handle.close()
    registry.add(len, "a").close()
    with pytest.raises(RpcMisuse, check=code("RpcMisuse")):
        registry.add(3)  # type: ignore[type-var]  # refused
    with pytest.raises(RpcMisuse, check=code("RpcMisuse")):
        registry.add(double, "")


FAILS_LATER = """\
from everyorder.runtime.rpc.codec import register
from everyorder.runtime.rpc.codec.pickling import register_reducer
from tests.rpc.codec.things import Weight

@register
def greet():
    return 1

@register("of user: count")
def count():
    return 1

register_reducer(Weight, lambda each: (Weight, (1,)))
"""


def test_a_mended_module_registers_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`register` and `register_reducer` return no handle that could be closed."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "user_functions.py"
    try:
        file.write_text(f"{FAILS_LATER}1 / 0\n")
        with pytest.raises(ZeroDivisionError):
            import_module("user_functions")
        assert REGISTRY.find("of user: count")() == 1
        file.write_text(f"# mended\n{FAILS_LATER.replace('1', '2')}")
        invalidate_caches()
        mended = import_module("user_functions")
        assert REGISTRY.find("user_functions.greet") is mended.greet
        assert REGISTRY.find("of user: count") is mended.count
        assert there(Weight(0)).value == 2
    finally:
        sys.modules.pop("user_functions", None)


def test_a_name_in_use_names_the_place_of_its_function() -> None:
    def first() -> None: ...

    def second() -> None: ...

    register("in use")(first)
    line = first.__code__.co_firstlineno + 4
    with pytest.raises(RpcMisuse) as caught:
        register("in use")(second)
    assert caught.value.found == (
        "the name `in use`, which is registered for another function at "
        f"{__file__}:{line}"
    )
    assert caught.value.wanted == "another name, or the function that has this name"


def test_the_decorator_leaves_the_function_as_it_is() -> None:
    def own(x: int) -> int:
        return x

    made: list[Callable[..., Any]] = [register(own), register()(own)]
    assert made == [own, own]
    assert register("values demo")(own) is own
    assert REGISTRY.find("values demo") is own
    assert call_of(own, (1,)).kind == "registered function"
    assert sent(call_of(registered("values demo"), (5,))).run() == 5
    assert registered("values demo")(5) == 5


def test_a_registered_function_is_no_longer_there() -> None:
    with REGISTRY.add(double, "for a while") as handle:
        payload = pack_call(call_of(handle, (2,))).payload
        assert unpack_call(payload).run() == 4
    with pytest.raises(UnknownCallable, check=code("UnknownCallable")) as caught:
        unpack_call(payload)
    assert str(caught.value) == (
        "A worker attempted to get undefined registered function for a while.\n"
        "  to do: register it there, by `rpc.register`"
    )
