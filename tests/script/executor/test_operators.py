"""Operators of programs: what runs is what is registered now, or it raises."""

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime.dispatch.dispatcher import default_dispatcher
from everyorder.runtime.dispatch.library import Library
from everyorder.runtime.errors.call import KernelError, MissingKernel, OperatorGone
from everyorder.runtime.keys import DispatchKey, exclude_keys
from everyorder.runtime.schema.binding import returner
from everyorder.runtime.script.executor import call
from everyorder.runtime.script.primitives import ROWS
from tests.coded import code
from tests.script.executor.written import written
from tests.script.primitives.trial import canonical, sample_arguments

pytestmark = [
    pytest.mark.usefixtures("executed"),
    pytest.mark.filterwarnings(
        "ignore::everyorder.runtime.dispatch.library.KernelOverridden"
    ),
]

NAMESPACE = "run_test"
TENSOR = "twice(Tensor x, int n) -> Tensor"
NUMBER = "count(int n) -> int"


def use(kind: str = "twice") -> Any:
    """A function that uses an operator."""
    if kind == "twice":
        return written(
            "use(Tensor x, int n) -> Tensor",
            f"  %y : Tensor = {NAMESPACE}::twice(%x, %n)\n  return (%y)\n",
        )
    return written(
        "use(int n) -> int",
        f"  %y : int = {NAMESPACE}::count(%n)\n  return (%y)\n",
    )


@pytest.fixture(params=[0, 40], ids=["alone", "among others"])
def library(request: pytest.FixtureRequest) -> Iterator[Library]:
    """A library, its operator alone or one of a namespace of many."""
    with Library(NAMESPACE, "FRAGMENT") as made:
        for each in range(request.param):
            made.define(f"other_{each}() -> ()")
        yield made


def test_registered_run_removed_run_registered_again(library: Library) -> None:
    definition = library.define(NUMBER)
    kernel = library.impl("count", lambda n: n + 1, "CompositeImplicitAutograd")
    function = use("count")
    assert [call(function, (1,)) for _ in range(3)] == [2, 2, 2]
    kernel.close()
    with pytest.raises(MissingKernel):
        call(function, (1,))
    again = library.impl("count", lambda n: n + 10, "CompositeImplicitAutograd")
    assert call(function, (1,)) == 11
    newest = library.impl(
        "count", lambda n: n + 20, "CompositeImplicitAutograd", allow_override=True
    )
    assert call(function, (1,)) == 21
    newest.close()
    assert call(function, (1,)) == 11
    again.close()
    definition.close()
    with pytest.raises(OperatorGone, check=code("OperatorGone")):
        call(function, (1,))
    with library.define(NUMBER, kernel=lambda n: n):
        assert call(function, (1,)) == 1


def test_tensors_go_the_same_way(library: Library) -> None:
    library.define(TENSOR)
    function, x = use(), runtime.tensor([1.0, 2.0])
    for factor in (2, 3):
        with library.impl("twice", lambda x, n, f=factor: x * f, "CPU"):
            assert call(function, (x, 1)).tolist() == [factor, 2 * factor]
            assert call(function, (x, 1)).tolist() == [factor, 2 * factor]
        with pytest.raises(MissingKernel):
            call(function, (x, 1))


def test_an_operator_with_another_schema_is_refused(library: Library) -> None:
    with library.define(NUMBER, kernel=lambda n: n):
        function = use("count")
        assert call(function, (1,)) == 1
    with library.define("count(int n, int m=2) -> int", kernel=lambda n, m: n + m):
        with pytest.raises(OperatorGone, check=code("OperatorChanged")) as caught:
            call(function, (1,))
        assert caught.value.fields() == {
            "operator": f"{NAMESPACE}::count",
            "known": f"{NAMESPACE}::count(int n) -> int",
            "found": f"{NAMESPACE}::count(int n, int m=2) -> int",
        }
    with library.define(NUMBER, kernel=lambda n: -n):
        assert call(function, (1,)) == -1


def test_a_graph_that_never_ran_does_not_fit_another_schema(library: Library) -> None:
    with library.define(NUMBER, kernel=lambda n: n):
        function = use("count")
    with library.define("count(str n) -> int", kernel=len):
        with pytest.raises(OperatorGone, check=code("OperatorChanged")) as caught:
            call(function, (1,))
        assert caught.value.known == "(int) -> (int)"
    with pytest.raises(OperatorGone, check=code("OperatorGone")):
        call(function, (1,))


def test_changes_in_the_middle_of_a_run(library: Library) -> None:
    library.define(NUMBER)
    held: list[Any] = []

    def second(n: int) -> int:
        return n + 100

    def first(n: int) -> int:
        if not held:
            held.append(
                library.impl(
                    "count", second, "CompositeImplicitAutograd", allow_override=True
                )
            )
        return n + 1

    library.impl("count", first, "CompositeImplicitAutograd")
    loop = written(
        "loop(int n) -> int",
        f"""\
  %yes : bool = prim::Constant[value=True]()
  %zero : int = prim::Constant[value=0]()
  %c : int = prim::Loop(%n, %yes, %zero)
    block0(%i : int, %x : int):
      %y : int = {NAMESPACE}::count(%x)
      -> (%yes, %y)
  return (%c)
""",
    )
    assert call(loop, (3,)) == 201


def test_a_primitive_that_is_overridden_in_the_middle_of_a_run() -> None:
    held: list[Any] = []

    def override() -> None:
        library = Library("script", "IMPL")
        library.impl(
            "add.int", lambda a, b: 7, "CompositeImplicitAutograd", allow_override=True
        )
        held.append(library)

    add = written(
        "add(int n) -> (int, int)",
        """\
  %a : int = script::add.int(%n, %n)
  prim::PythonOp[name="override", object=object(0)]()
  %b : int = script::add.int(%n, %n)
  %r : (int, int) = prim::TupleConstruct(%a, %b)
  return (%r)
""",
        objects=[override],
    )
    # They are not one: nobody knows what happens in between.
    try:
        assert call(add, (1,)) in ((2, 7), (2, 2))
        assert call(add, (1,))[0] == 7
    finally:
        for each in held:
            each.close()
    held.clear()


def test_what_another_kernel_of_a_primitive_gives_is_looked_at() -> None:
    length = written(
        "length(int[] l) -> int", "  %n : int = script::len.t(%l)\n  return (%n)\n"
    )
    seen: list[Any] = []

    def wrong(given: Any) -> Any:
        seen.append(given)
        return "many"

    mine = [1, 2]
    with Library("script", "IMPL") as library:
        library.impl("len.t", wrong, "CompositeImplicitAutograd", allow_override=True)
        with pytest.raises(KernelError, check=code("WrongReturnType")):
            call(length, (mine,))
    assert seen == [[1, 2]]
    assert seen[0] is not mine
    assert call(length, (mine,)) == 2


def test_kernels_are_not_kept_alive(library: Library) -> None:
    class Kernel:
        """A kernel that can be looked for."""

        def __call__(self, n: Any) -> Any:
            return n + 1

    library.define(NUMBER)
    function, kernel = use("count"), Kernel()
    found = weakref.ref(kernel)
    with library.impl("count", kernel, "CompositeImplicitAutograd"):
        assert [call(function, (1,)) for _ in range(3)] == [2, 2, 2]
        del kernel
        assert found() is not None
    gc.collect()
    assert found() is None


def test_the_keys_of_the_thread_count(library: Library) -> None:
    library.define(TENSOR)
    library.impl("twice", lambda x, n: x, "CPU")
    library.impl("twice", lambda x, n: x + n, "AutogradCPU")
    function, x = use(), runtime.tensor([1.0])
    assert call(function, (x, 1)).tolist() == [2.0]
    with exclude_keys(DispatchKey.AutogradCPU):
        assert call(function, (x, 1)).tolist() == [1.0]
    assert call(function, (x, 1)).tolist() == [2.0]


def test_gradients_pass_through_programs() -> None:
    square = written(
        "square(Tensor x) -> Tensor",
        """\
  %y : Tensor = core::mul(%x, %x)
  %no : bool = prim::Constant[value=False]()
  %none : None = prim::Constant[value=None]()
  %z : Tensor = core::sum(%y, %none, %no, %none)
  return (%z)
""",
    )
    x = runtime.tensor([1.0, 3.0], requires_grad=True)
    call(square, (x,)).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 6.0]


def test_watchers_see_what_programs_call() -> None:
    program = written(
        "program(Tensor x, int n) -> (Tensor, int)",
        """\
  %y : Tensor = core::neg(%x)
  %m : int = script::add.int(%n, %n)
  %r : (Tensor, int) = prim::TupleConstruct(%y, %m)
  return (%r)
""",
    )
    call(program, (runtime.ones(1), 1))
    with default_dispatcher().trace() as lines:
        call(program, (runtime.ones(1), 1))
    told = [line.strip() for line in lines]
    assert any("core::neg" in line for line in told)
    assert any("script::add.int" in line for line in told)


def test_an_operator_on_numbers_in_place_of_tensors() -> None:
    mixed = written(
        "mixed(Tensor x, float f) -> Tensor",
        """\
  %one : int = prim::Constant[value=1]()
  %y : Tensor = core::add(%x, %f, %one)
  return (%y)
""",
    )
    assert call(mixed, (runtime.tensor([1.0]), 2.5)).tolist() == [3.5]


def test_operators_of_several_and_of_no_results(library: Library) -> None:
    seen: list[Any] = []
    library.define("pair(int[] n) -> (int, int[])", kernel=lambda n: (len(n), n))
    library.define(
        "note(Tensor? x, ScalarType t) -> ()", kernel=lambda x, t: seen.append(t)
    )
    program = written(
        "program(int[] n) -> (int, int[])",
        f"""\
  %a : int, %b : int[] = {NAMESPACE}::pair(%n)
  %none : None = prim::Constant[value=None]()
  %t : ScalarType = prim::Constant[value=6]()
  {NAMESPACE}::note(%none, %t)
  %r : (int, int[]) = prim::TupleConstruct(%a, %b)
  return (%r)
""",
    )
    mine = [1, 2]
    count, other = call(program, (mine,))
    assert (count, other) == (2, [1, 2])
    # What a kernel gets is its own.
    assert other is not mine
    assert seen == [runtime.float32]


def test_trusted_functions_give_what_the_schema_says(executed: str) -> None:
    if executed != "registers":
        pytest.skip("the same with every executor")
    checked = 0
    for row in ROWS:
        function = row.function
        for sample in row.samples:
            args, kwargs = sample_arguments(sample)
            try:
                result = function(*args, **kwargs)
            except Exception:
                continue
            found = canonical(result)
            assert canonical(returner(row.schema)(result)) == found, row.name
            assert type(returner(row.schema)(result)) is type(result), row.name
            checked += 1
    assert checked > 1000
