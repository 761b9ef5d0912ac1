"""Functions made of text: their lines in tracebacks, their names, their lifetimes."""

import ast
import gc
import inspect
import linecache
import re
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest

from everyorder.runtime import Tensor, jit, library, tensor
from everyorder.runtime.autograd import grad
from everyorder.runtime.base import codegen
from everyorder.runtime.base.codegen import block, is_generated, numbered, template
from everyorder.runtime.dispatch import Dispatcher, Library
from everyorder.runtime.operators import core
from everyorder.runtime.schema import parse_name, parse_schema
from everyorder.runtime.schema.defaults import stripping
from everyorder.runtime.script.executor import call as run_program
from everyorder.runtime.script.executor import executor
from everyorder.runtime.script.executor import fused_kernel as fusion
from everyorder.runtime.script.primitives.operator_calls import bound_call
from everyorder.runtime.torch_dispatch import TorchDispatchMode
from tests.counting import unmeasured
from tests.custom.functions import CALLS
from tests.forking import in_child, needs_fork
from tests.house import FILES, nodes_of

HERE = "runtime/base/codegen.py"
# `<what it is, and which>` of a frame.
FILE = re.compile(r"<(.*) [0-9a-f]{16}>")


class Planted(Exception):
    """What is raised below a function that was made of text."""


def raising(*arguments: Any, **named: Any) -> Any:
    raise Planted


def failing(x: Tensor) -> Tensor:
    raise Planted


def call_of_an_operator() -> None:
    with library.custom_op("mine::f", failing, mutates_args=()) as made:
        for _ in range(CALLS):
            with pytest.raises(Planted):
                made(tensor([1.0]))
        made(tensor([1.0]))


def a_write() -> None:
    def body(x: Tensor) -> None:
        raising()

    with library.custom_op("mine::f", body, mutates_args=("x",)) as made:
        made(tensor([1.0]))


def contexts_of_one_tensor() -> None:
    def body(x: Tensor) -> Tensor:
        return x * 2

    with library.custom_op("mine::f", body, mutates_args=()) as made:
        made.register_autograd(lambda ctx, g: g, setup_context=raising)
        made(tensor([1.0], requires_grad=True))


def contexts_of_any_arguments() -> None:
    def body(x: list[Tensor]) -> Tensor:
        return x[0] * 2

    with library.custom_op("mine::f", body, mutates_args=()) as made:
        made.register_autograd(lambda ctx, g: g, setup_context=raising)
        made([tensor([1.0], requires_grad=True)])


def a_second_backward() -> None:
    x = tensor([1.0], requires_grad=True)
    y = (x * x).sum()
    grad(y, (x,))
    grad(y, (x,))


class Raising(TorchDispatchMode):
    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        raise Planted


def a_mode() -> None:
    x = tensor([1.0])
    with Raising():
        x.exp()


def shapes_that_differ() -> None:
    for _ in range(CALLS):
        tensor([1.0]) + tensor([1.0])
    x, y = tensor([1.0, 2.0], requires_grad=True), tensor([1.0, 2.0, 3.0])
    x + y


def an_index() -> None:
    x = tensor([1.0, 2.0])
    for _ in range(CALLS):
        core.index_select(x, 0, tensor([1]))
    core.index_select(x, 0, tensor([2]))


def a_kernel_that_is_stripped() -> None:
    stripping(parse_schema("test::foo(int a, int b=1) -> int"), raising)(1, 2)


def a_bound_call() -> None:
    d = Dispatcher()
    with Library("test", dispatcher=d) as made:
        made.define("foo(int a) -> int", kernel=raising)
        entry = d.entry("test::foo")
        assert entry is not None
        reading = entry.definitions[0].reading
        bound_call(d, parse_name("test::foo"), reading).call(1)


def a_program() -> None:
    def program(x: list[int]) -> int:
        return x[5]

    with executor(text_after=0):
        run_program(jit.script(program).function, ([1],))


def a_loop() -> None:
    text = "def fused(a0, o0):\n    for i in range(o0.size):\n        o0[i] = f0(a0[i])"
    import numpy as np

    fusion.body_of(fusion.LoopText(text, (raising,), ""))(np.ones(2), np.ones(2))


CASES: dict[str, tuple[Callable[[], None], str, str]] = {
    "stub": (call_of_an_operator, "call of mine::f", "_result = _kernel(x)"),
    "custom operator": (
        call_of_an_operator,
        "custom operator",
        "result = function(a0)",
    ),
    "written": (a_write, "autograd kernel", "result = run(a0)"),
    "recorded": (
        contexts_of_one_tensor,
        "custom recording",
        "setup_context(ctx=context, inputs=(a0, ), output=result)",
    ),
    "recorded lists": (
        contexts_of_any_arguments,
        "custom recording",
        "setup_context(ctx=context, inputs=args[:1], output=result)",
    ),
    "asked": (
        contexts_of_any_arguments,
        "autograd kernel",
        "if (asked) and GRAD.enabled: return record(a0)",
    ),
    "graph": (shapes_that_differ, "autograd kernel", "result = run(a0, a1, a2)"),
    "sides": (shapes_that_differ, "two sides", "_result = _kernel(self, other, a0)"),
    "formula": (
        a_second_backward,
        "autograd plan",
        "raise BackwardRefused(code='GraphFreed', operator=operator)",
    ),
    "snapshot": (a_mode, "snapshot", "return run(a0)"),
    "mode": (
        a_mode,
        "handling of a call in Python",
        "result = handler.__torch_dispatch__(func, types, args, kwargs)",
    ),
    "saved": (an_index, "saved plans", "_run(_a0, _a2, _o0)"),
    "stripped": (
        a_kernel_that_is_stripped,
        "strip",
        "return _function(_0, _1, )",
    ),
    "bound": (a_bound_call, "bound call of test::foo", "_result = _kernel(_0)"),
    "program": (a_program, "program program", "v2 = v0[(5)]"),
    "loop": (a_loop, "fused kernel", "o0[i] = f0(a0[i])"),
}


def frames_of(call: Callable[[], Any]) -> list[tuple[str, str | None]]:
    """What is made of text in the traceback of a call that raises, with its lines."""
    with pytest.raises(Exception) as raised:  # noqa: PT011  # of any kind
        call()
    return [
        (match.group(1), frame.line)
        for frame in traceback.extract_tb(raised.value.__traceback__)
        if (match := FILE.fullmatch(frame.filename))
    ]


@pytest.mark.parametrize("case", CASES)
def test_a_traceback_shows_the_line(case: str) -> None:
    call, kind, line = CASES[case]
    assert (kind, line) in frames_of(call)


def calls_of(name: str, file: str) -> bool:
    """Whether a file calls a builtin function."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == name
        for node in nodes_of(file)
    )


def test_text_becomes_code_in_one_place() -> None:
    product = [file for file in FILES if file.startswith("runtime/")]
    assert {file for file in product if calls_of("exec", file)} == {
        HERE,
        # Drawn programs, each line as a user would write it.
        "runtime/strategies.py",
    }
    assert {file for file in product if calls_of("compile", file)} == {
        HERE,
        # What a program is read from is compiled to be refused, not to be run.
        "runtime/script/frontend/source.py",
    }


@dataclass
class Point:
    x: int


def test_methods_of_dataclasses_are_shown_too() -> None:
    @jit.script
    def program(a: int) -> bool:
        return Point(a) == Point(2)

    assert not program(1)


@template("test", "run, more", three=3)
def _summing(count: int) -> list[str]:
    given = numbered(count)
    body = block("if more:", [f"return run({given}) + three"])
    return [
        "doubled = more * 2",
        *block(f"def kernel({given}):", [*body, "return doubled"]),
    ]


def test_a_template_is_written_once_for_the_same_facts() -> None:
    one, other = _summing(2), _summing(3)
    assert _summing(2) is one
    assert one is not other
    kernel = one(max, 1)
    assert (kernel(1, 2), other(max, 0)(1, 2, 3)) == (5, 0)
    assert kernel.__code__ is one(min, 1).__code__
    assert (kernel.__name__, kernel.__qualname__) == ("kernel", "make.<locals>.kernel")
    assert is_generated(kernel.__code__, "test")
    assert not is_generated(kernel.__code__, "tes")
    assert inspect.getsource(kernel) == (
        "    def kernel(a0, a1):\n"
        "        if more:\n"
        "            return run(a0, a1) + three\n"
        "        return doubled\n"
    )


def made(value: object = 1, *, kind: str = "made") -> Any:
    return codegen.generated(
        kind, ["def f(a):", "    return a, value"], {"value": value}
    )


def test_lines_are_there_as_long_as_a_function_of_the_text() -> None:
    one, other = made(1), made(2)
    file = one.__code__.co_filename
    assert one.__code__ is other.__code__
    assert (one(0), other(0)) == ((0, 1), (0, 2))
    assert made(kind="another").__code__.co_filename != file
    assert linecache.getline(file, 2) == "    return a, value"
    linecache.checkcache(file)
    del one
    assert file in linecache.cache
    del other
    assert file not in linecache.cache


class WatchedLock:
    """A lock that sets an event before a thread waits for it."""

    def __init__(self, lock: Any, awaited: threading.Event) -> None:
        self._lock, self._awaited = lock, awaited

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self._awaited.set()
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def lines_after_a_race(at: int) -> list[str]:
    """Return the first line of a text, read repeatedly, after two threads raced.

    This thread releases the only function of the text. When it is at the line of
    `_forget` with the number `at`, the other thread generates the same text, until it
    has a function or waits for a lock. The line is read at each later line of `_forget`
    at which the other thread has its function, and at the end.
    """
    name, texts, functions = f"raced {at}", list[str](), list[Any]()
    file = (one := made(kind=name)).__code__.co_filename
    settled, numbers = threading.Event(), count()

    def make() -> None:
        functions.append(made(kind=name))
        settled.set()

    thread = threading.Thread(target=make)

    def look(frame: Any, event: str, argument: object) -> Any:
        if frame.f_code is not codegen._forget.__code__:
            return None
        if event == "line" and next(numbers) == at:
            thread.start()
            settled.wait()
        if functions:
            texts.append(linecache.getline(file, 1))
        return look

    before = sys.gettrace()
    with pytest.MonkeyPatch.context() as patched:
        lock = getattr(codegen, "_LINES", threading.RLock())
        patched.setattr(codegen, "_LINES", WatchedLock(lock, settled), raising=False)
        sys.settrace(look)
        try:
            del one
        finally:
            sys.settrace(before)
        if thread.ident is not None:
            thread.join()
            texts.append(linecache.getline(file, 1))
    functions.clear()
    assert file not in linecache.cache
    return texts


def test_lines_stay_where_another_thread_makes_the_text_while_it_is_forgotten() -> None:
    races = [lines_after_a_race(at) for at in range(20)]
    texts = [text for texts in races for text in texts]
    assert {*texts} == {"def f(a):\n"}
    assert [] not in races[:3], "the thread was started at each of these lines"
    assert races[-1] == [], "no line was left out"


def test_of_a_text_that_is_made_twice_at_once_one_is_kept() -> None:
    """Two threads that see none each make it: the lines stay with what is kept."""
    one = made()
    file = one.__code__.co_filename
    with pytest.MonkeyPatch.context() as patched:
        # What the other thread saw, when it looked.
        patched.setattr(codegen, "_TEXTS", Blind(codegen._TEXTS))
        other = made()
    assert other.__code__ is one.__code__
    del other
    gc.collect()
    assert linecache.getline(file, 1) == "def f(a):\n"
    del one
    assert file not in linecache.cache


def test_a_text_that_another_thread_has_just_registered_has_its_lines() -> None:
    """That thread was interrupted between the text and its lines."""
    one = made()
    file = one.__code__.co_filename
    linecache.cache.pop(file)
    other = made(2)
    assert linecache.getline(file, 1) == "def f(a):\n"
    del one, other


class Blind:
    """Texts that nobody finds by looking, and everybody by adding."""

    def __init__(self, texts: Any) -> None:
        self.get = lambda file: None
        self.setdefault = texts.setdefault


def test_the_function_is_the_one_that_the_text_defines() -> None:
    one = codegen.generated("test", ["def run(a0):", "    return a0"], {"run": print})
    assert one(3) == 3


def test_a_name_that_is_bound_and_assigned_is_a_collision() -> None:
    for lines in (
        ["def f(value):", "    return value"],
        ["def f():", "    value = 1", "    return value"],
        ["def f():", "    value = 1", "    return lambda: value"],
        ["def f():", "    return lambda value: value"],
    ):
        with pytest.raises(AssertionError, match="bound and assigned"):
            codegen.generated("test", lines, {"value": 1})


def test_names_are_found_in_the_namespace_of_the_function_alone() -> None:
    one = codegen.generated("test", ["def f():", "    return linecache"], {})
    with pytest.raises(NameError):
        one()
    assert "f" not in one.__globals__


def test_a_name_of_a_file_says_what_the_text_is_and_nothing_else() -> None:
    text = (
        "from tests.base.test_codegen import made; print(made().__code__.co_filename)"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", text],
            env=unmeasured(),
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for _ in range(2)
    }
    assert answers == {made().__code__.co_filename}


def test_threads_that_make_the_same_function_at_once() -> None:
    wrong: list[object] = []
    together = threading.Barrier(4)

    def making() -> None:
        together.wait()
        for number in range(200):
            one = made(number)
            line = linecache.getline(one.__code__.co_filename, 1)
            if one(0) != (0, number) or line != "def f(a):\n":
                wrong.append((number, line))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=making) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(before)
    assert not wrong
    gc.collect()
    assert not [file for file in linecache.cache if file.startswith("<made ")]


@needs_fork
def test_a_forked_child_makes_functions_and_shows_those_it_was_born_with() -> None:
    before = made(1)

    def works() -> bool:
        after = made(2, kind="child")
        files = [each.__code__.co_filename for each in (before, after)]
        shown = [linecache.getline(file, 2) for file in files]
        return after(0) == (0, 2) and shown == ["    return a, value"] * 2

    assert in_child(works)
