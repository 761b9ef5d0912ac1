"""`jit.script` of functions and classes, compilation units, the names of the face."""

# Modules give what `forward` gives: Any.
# mypy: disable-error-code="no-any-return, comparison-overlap, empty-body, arg-type"

import copy
import enum
import functools
import gc
import io
import pickle
import subprocess
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from everyorder import runtime
from everyorder.runtime import jit
from everyorder.runtime.errors import ModuleError, NotScriptable
from everyorder.runtime.script.ir import Graph, check
from everyorder.runtime.script.ir.program import SHARED_PROGRAM


def add(x: int, y: int = 2) -> int:
    """The sum."""
    return x + y


def plain(x, y):  # type: ignore[no-untyped-def]  # to be inferred
    return [x, y]


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Point(NamedTuple):
    x: int
    y: int


@dataclass
class Pair:
    left: int
    right: int


class Counter:
    def __init__(self, start: int) -> None:
        self.value = start

    def count(self, by: int) -> int:
        self.value += by
        return self.value


def dropped(number: int) -> list[Any]:
    """References to what was compiled, and is not needed any more."""

    def inner(x: int, by: int) -> int:
        return x + by

    def outer(x: int) -> int:
        return inner(x, 2)

    compiled = jit.script(outer)
    assert jit.script(outer) is compiled
    assert compiled(number) == number + 2
    kept = (inner, outer, compiled, compiled.function)
    return [weakref.ref(each) for each in kept]


def test_functions_that_are_dropped_are_gone() -> None:
    """With their graphs, and with what they called; their names are free again."""
    gc.collect()
    before = [*SHARED_PROGRAM.functions]
    gone = [each for number in range(10) for each in dropped(number)]
    assert len(SHARED_PROGRAM.functions) > len(before)
    gc.collect()
    assert [each() for each in gone] == [None] * 40
    assert [*SHARED_PROGRAM.functions] == before


def test_a_function_that_wraps_another_is_compiled_itself() -> None:
    compiled = jit.script(add)

    @functools.wraps(add)
    def more(x: int, y: int = 2) -> int:
        return x + y + 1

    vars(more).pop("__wrapped__")
    assert (jit.script(more)(1), compiled(1), jit.script(add)) == (4, 3, compiled)


@pytest.mark.spec("script 6.1", "from a function to its value")
def test_a_function() -> None:
    compiled = jit.script(add)
    assert isinstance(compiled, jit.ScriptFunction)
    assert (compiled(1), compiled(1, y=5)) == (3, 6)
    assert jit.script(add) is compiled
    assert jit.script(compiled) is compiled
    assert (compiled.__name__, compiled.__doc__) == ("add", "The sum.")
    assert compiled.__wrapped__ is add
    assert compiled.name == "add"
    assert compiled.qualified_name == "__torch__.tests.script.jit.test_script.add"
    assert str(compiled.schema) == "add(int x, int y=2) -> int"
    assert isinstance(compiled.graph, Graph)
    check(compiled.graph)
    assert (
        repr(compiled) == "ScriptFunction(__torch__.tests.script.jit.test_script.add)"
    )


def test_a_copy_is_the_function_and_a_pickle_is_refused() -> None:
    compiled = jit.script(add)
    assert copy.copy(compiled) is compiled
    assert copy.deepcopy([compiled])[0] is compiled
    with pytest.raises(NotScriptable) as caught:
        pickle.dumps(compiled)
    assert str(caught.value) == (
        "the compiled function `add` is not for scripts: a compiled function is not\n"
        "pickled.\n  to do: Use `jit.save` and `jit.load`."
    )


def test_a_function_calls_a_compiled_one() -> None:
    compiled = jit.script(add)

    def twice(x: int) -> int:
        return compiled(compiled(x))

    assert jit.script(twice)(1) == 5


def test_as_a_decorator() -> None:
    @jit.script
    def inner(x: int) -> int:
        return x * 3

    assert inner(2) == 6


def test_examples_say_types() -> None:
    compiled = jit.script(plain, example_inputs=[(1, None), (2, 3)])
    assert str(compiled.schema) == "plain(int x, int? y) -> int?[]"
    assert compiled(1, None) == [1, None]


def test_examples_of_a_module() -> None:
    class Net(runtime.Module):
        def forward(self, x):  # type: ignore[no-untyped-def]  # to be inferred
            return x + 1

        @jit.export
        def other(self, x):  # type: ignore[no-untyped-def]  # as above
            return x + "!"

    compiled = jit.script(Net(), example_inputs={"forward": [(1,)], "other": [("a",)]})
    assert (compiled(1), compiled.other("a")) == (2, "a!")


def test_examples_make_another_type() -> None:
    class Net(runtime.Module):
        def forward(self, x):  # type: ignore[no-untyped-def]  # to be inferred
            return x + 1

    one = jit.script(Net(), example_inputs=[(2,)])
    other = jit.script(Net(), example_inputs=[(0.5,)])
    plain = jit.script(Net())
    assert (one(3), other(3.5), plain(runtime.ones(1)).tolist()) == (4, 4.5, [2.0])
    again = jit.script(Net(), example_inputs=[(7,)])
    assert again.__script_type__ is one.__script_type__


def test_classes() -> None:
    assert jit.script(Counter) is Counter
    assert jit.script(Pair) is Pair
    assert jit.script(Colour) is Colour
    assert jit.script(Point) is Point

    def use(by: int) -> tuple[int, bool, int]:
        counter = Counter(3)
        counter.count(by)
        point = Point(counter.value, Pair(1, 2).right)
        return point.x, Colour.RED == Colour.BLUE, point.y

    assert jit.script(use)(4) == (7, False, 2)


@jit.interface
class Counts:
    def count(self, by: int) -> int:
        pass


def test_interfaces_and_functions_of_programs() -> None:
    assert jit.script(Counts) is Counts

    def use(what: Counts) -> int:
        return what.count(2)

    jit.script(Counter)
    compiled = jit.script(use)
    assert compiled(Counter(5)) == 7
    again = jit.script(compiled.function)
    assert (again is compiled, again(Counter(6))) == (False, 8)


def test_an_object_goes_in_and_out() -> None:
    jit.script(Counter)

    def step(counter: Counter) -> Counter:
        counter.count(2)
        return counter

    counter = Counter(1)
    assert jit.script(step)(counter) is counter
    assert counter.value == 3


@pytest.mark.spec("script 6.1", "from a text")
def test_a_unit() -> None:
    unit = jit.CompilationUnit("def f(x: int) -> int:\n    return x + 1\n")
    unit.define("def g(x: int) -> int:\n    return f(x) * 2\n")
    assert (unit.f(1), unit.g(1)) == (2, 4)
    assert [each.name for each in unit.functions] == ["f", "g"]
    assert unit.find_function("h") is None
    assert {"f", "g"} <= {*dir(unit)}
    other = jit.CompilationUnit("def f(x: int) -> int:\n    return x + 100\n")
    assert (unit.f(1), other.f(1)) == (2, 101)
    with pytest.raises(ModuleError) as caught:
        unit.ff  # noqa: B018  # it raises
    assert str(caught.value) == (
        "`CompilationUnit` has no function `ff`.\n  similar: f"
    )
    assert jit.CompilationUnit().functions == ()
    assert all("CompilationUnit" not in name for name in SHARED_PROGRAM.functions)


def test_a_function_that_is_defined_again_is_the_last_one() -> None:
    unit = jit.CompilationUnit("def f(x: int) -> int:\n    return x\n" * 2)
    unit.define("def f(x: int) -> int:\n    return x + 1\n")
    assert unit.f(1) == 2


class Numbered(runtime.Module):
    def __init__(self) -> None:
        super().__init__()
        self.count = 1

    def forward(self, x: int) -> int:
        return x + self.count


MISTAKES: dict[str, Callable[[], object]] = {
    "another type": lambda: jit.script(add)("a"),
    "nothing": lambda: jit.script(add)(),
    "too many": lambda: jit.script(add)(1, 2, 3),
    "another name": lambda: jit.script(add)(1, z=2),
    "another type for a module": lambda: jit.script(Numbered())("a"),
    "an attribute": lambda: setattr(jit.script(Numbered()), "count", "a"),
    "a method again": lambda: jit.script(Numbered()).define(
        "def forward(self, x: int) -> int:\n    return x\n"
    ),
    "no program": lambda: jit.CompilationUnit("def f(x:"),
    "a class of modules": lambda: jit.script(Numbered),
    "a module that trains": lambda: jit.freeze(jit.script(Numbered())),
    "a text to trace": lambda: jit.trace(add, "a"),
    "no archive": lambda: jit.load(io.BytesIO(b"a")),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_a_runtime_error_as_in_torch(name: str) -> None:
    with pytest.raises(RuntimeError):
        MISTAKES[name]()


def test_the_names() -> None:
    for name in jit.__all__:
        getattr(jit, name)
    assert jit.isinstance([1], list[int])
    assert not jit.isinstance([1], list[str])
    assert jit.annotate(int, 3) == 3
    assert jit.wait(jit.fork(add, 1)) == 3
    assert jit._wait(jit._fork(add, 1)) == 3
    assert jit._awaitable_wait(jit._awaitable(add, 1)) == 3
    assert jit._isinstance is jit.isinstance
    assert not jit.is_scripting()
    assert runtime.jit is jit


def loaded_by(program: str) -> set[str]:
    """The modules of ours that a program loads."""
    told = f"{program}\nimport sys\nprint([*sys.modules])"
    made = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, check=True
    )
    names: list[Any] = eval(made.stdout)
    return {name for name in names if name.startswith("everyorder.runtime")}


def test_nothing_of_scripts_loads_with_the_runtime() -> None:
    plain = loaded_by("from everyorder import runtime; runtime.ones(1)")
    beyond = (
        "everyorder.runtime.jit",
        "everyorder.runtime.script",
        "everyorder.runtime.nn",
    )
    assert not [name for name in plain if name.startswith(beyond)]
    face = loaded_by("from everyorder import runtime; runtime.jit")
    assert "everyorder.runtime.jit" in face
    later = (
        "everyorder.runtime.script.archive",
        "everyorder.runtime.script.tracing",
        "everyorder.runtime.rpc",
    )
    assert not [name for name in face if name.startswith(later)]
