"""References in programs: as parameters, attributes, elements and results."""

# mypy: disable-error-code="no-any-return"
# Remote calls of Python give what they give.

from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Tensor, jit
from everyorder.runtime.errors.call import CallError
from everyorder.runtime.errors.script import RunningError
from everyorder.runtime.rpc.protocol.identities import WorkerInfo
from everyorder.runtime.schema.parser import parse_type
from everyorder.runtime.script.ir.program import (
    NotInferred,
    ignore,
    inferred_type,
    interface,
    unchecked_cast,
)
from tests.coded import code, coded
from tests.rpc.script.fakes import RRef, World

WrongArgumentType = coded(CallError, "WrongArgumentType")

X = runtime.tensor([1.0, 2.0])
pytestmark = pytest.mark.usefixtures("fake")


@pytest.mark.spec("rpc 3.7", "methods of references")
def test_what_a_reference_is_asked() -> None:
    """3.7: each method gives what the reference of Python's gives."""

    @jit.script
    def f(r: RRef[int]) -> tuple[int, int, bool, str, int, str, bool]:
        info = r.owner()
        return (
            *(r.to_here(), r.local_value(), r.is_owner(), info.name, info.id),
            *(r.owner_name(), r.confirmed_by_owner()),
        )

    made = RRef(7, "int", owner="w3")
    assert f(made) == (7, 7, True, "w3", 3, "w3", True)


@pytest.mark.spec("rpc 3.7", "timeouts")
@pytest.mark.spec("rpc 10", "D12 the default timeout")
def test_the_timeout_of_to_here() -> None:
    """D12: without one the reference has its own default; a number becomes a float."""

    @jit.script
    def f(r: RRef[int], seconds: float) -> int:
        r.to_here()
        r.to_here(seconds)
        r.to_here(timeout=seconds)  # type: ignore[call-arg]  # the class is a fake
        return r.to_here(3)

    made = RRef(7, "int")
    assert f(made, 2.5) == 7
    assert made.asked == [(), (2.5,), (2.5,), (3.0,)]


def test_parameters_elements_and_results() -> None:
    """3.7: in lists, tuples, dictionaries and in one another."""

    @jit.script
    def f(
        r: RRef[RRef[Tensor]], rs: list[RRef[int]], d: dict[str, RRef[int]]
    ) -> tuple[RRef[Tensor], list[RRef[int]], int]:
        total = d["a"].to_here()
        for each in rs:
            total += each.to_here()
        return r.to_here(), [rs[0], d["a"]], total + int(r.to_here().to_here().sum())

    inner = RRef(X, "Tensor")
    one, two = RRef(1, "int"), RRef(2, "int")
    outer = RRef(inner, "RRef(Tensor)")
    assert f(outer, [one, one], {"a": two}) == (inner, [one, two], 7)


def test_optional_references() -> None:
    @jit.script
    def f(r: RRef[int] | None) -> int:
        if r is not None:
            return r.to_here()
        return 0

    assert f(None) == 0
    assert f(RRef(3, "int")) == 3
    assert f(RRef(3)) == 3


@pytest.mark.spec("rpc 3.7", "which reference is of a type")
@pytest.mark.parametrize(
    ("known", "wanted", "fits"),
    [
        ("int", "int", True),
        ("int", "int?", True),
        ("str", "int", False),
        ("int[]", "int[]", True),
        ("int[]", "float[]", False),
        ("Tensor", "Tensor", True),
        ("RRef(int)", "RRef(int)", True),
        ("RRef(int)", "RRef(str)", False),
        ("", "int", True),
        ("PyObject", "int", True),
        ("__torch__.nobody.Knows", "int", True),
        ("what is this", "int", True),
    ],
)
def test_which_reference_is_one_of_a_type(known: str, wanted: str, fits: bool) -> None:
    """3.7: by the type that it has; one that has none is looked at when it comes."""

    from everyorder.runtime.schema.types import RRefType
    from everyorder.runtime.schema.values import MISMATCH
    from everyorder.runtime.script.executor import taker, test_of

    type_ = RRefType(parse_type(wanted, type_variables=False))
    made = RRef(3, known)
    assert test_of(type_)(made) is fits
    assert (taker(type_)(made) is made) is fits
    assert taker(type_)(3) is MISMATCH
    assert not test_of(type_)("a")


def test_a_reference_of_another_type_is_refused_at_the_boundary() -> None:
    @jit.script
    def f(r: RRef[int]) -> int:
        return r.to_here()

    for wrong in (RRef("a", "str"), 3, None):
        with pytest.raises(WrongArgumentType) as caught:
            f(wrong)
        assert caught.value.expected == "RRef(int)"
    with pytest.raises(RunningError, check=code("NotOfType")) as late:
        f(RRef("a"))
    assert (late.value.what, late.value.expected) == ("A reference", "int")


@pytest.mark.spec("script 6.4", "a reference of another process")
@pytest.mark.spec("rpc 0.7", "types of references by looking at them")
def test_types_of_references_by_looking_at_them() -> None:
    """6.4: tried, and told why where there is none."""
    assert str(inferred_type(RRef(1, "int"))) == "RRef(int)"
    assert str(inferred_type([RRef(1, "int"), RRef(2, "int")])) == "RRef(int)[]"
    assert str(inferred_type((RRef([1], "int[]"), 3))) == "(RRef(int[]), int)"
    assert str(inferred_type(WorkerInfo("w", 1))).endswith("dist_rpc.WorkerInfo")
    found = inferred_type(RRef(object(), "PyObject"))
    assert isinstance(found, NotInferred)
    assert found.reason == "the type of the value of a Python reference is unknown"


def test_calls_as_examples_type_parameters() -> None:
    def f(r, n):  # type: ignore[no-untyped-def]  # as people write them
        return r.to_here() + n

    made = jit.script(f, example_inputs=[(RRef(1, "int"), 2)])
    assert str(made.schema).startswith("f(RRef(int) r, int n)")
    assert made(RRef(5, "int"), 1) == 6


class Holding(runtime.Module):
    """A module that holds references."""

    def __init__(self, rrefs: list[RRef[Tensor]], one: RRef[int]) -> None:
        super().__init__()
        self.rrefs = rrefs
        self.one = one

    def forward(self) -> Tensor:
        result = runtime.zeros([2])
        for each in self.rrefs:
            result = result + each.to_here()
        return result * self.one.to_here()


def test_references_as_attributes_of_a_module() -> None:
    """3.10: a list of them, gone through."""
    rrefs = [RRef(X, "Tensor"), RRef(X, "Tensor")]
    made = jit.script(Holding(rrefs, RRef(2, "int")))
    assert made().tolist() == [4.0, 8.0]
    assert made.rrefs[0] is rrefs[0]


class Kept:
    """An object that keeps a reference."""

    def __init__(self, r: RRef[int]) -> None:
        self.r = r

    def value(self) -> int:
        return self.r.to_here()


def test_references_as_attributes_of_an_object() -> None:
    @jit.script
    def f(r: RRef[int]) -> int:
        return Kept(r).value()

    assert f(RRef(9, "int")) == 9


@pytest.mark.spec("rpc 3.7", "the owner's value itself")
def test_the_owners_value_is_written_to() -> None:
    """3.10: on its owner a reference gives the very list."""

    @jit.script
    def add(r: RRef[list[int]], to: str, x: int) -> list[int]:
        r.local_value().append(x)
        r.to_here().append(x + 1)
        return r.to_here()

    @jit.script
    def away(r: RRef[list[int]]) -> int:
        r.to_here().append(4)
        return len(r.to_here())

    mine = RRef([1, 2, 3], "int[]")
    assert add(mine, "w1", 4) == [1, 2, 3, 4, 5]
    assert mine.value == [1, 2, 3, 4, 5]
    theirs = RRef([1, 2, 3], "int[]", mine=False)
    assert away(theirs) == 3


@ignore
def of_python(r: RRef[Tensor]) -> RRef[Tensor]:
    """3.10: left to Python, with references in and out."""
    assert isinstance(r, RRef)
    return RRef(r.to_here() + 1, "Tensor")


def test_a_function_of_python_takes_and_gives_references() -> None:
    @jit.script
    def f(r: RRef[Tensor]) -> Tensor:
        return of_python(r).to_here()

    assert f(RRef(X, "Tensor")).tolist() == [2.0, 3.0]


@interface
class Doubles:
    def forward(self, x: Tensor) -> Tensor:  # type: ignore[empty-body]  # an interface
        pass


class Doubling(runtime.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


def test_a_module_is_seen_by_its_interface() -> None:
    """3.10: of a reference to a module, on its owner."""
    program: Any = jit.script(Doubles)
    assert program is Doubles

    @jit.script
    def f(r: RRef[Doubles], x: Tensor) -> Tensor:
        return r.local_value().forward(x) + r.to_here().forward(x)

    module = jit.script(Doubling())
    path = "__torch__.tests.rpc.script.test_references.Doubles"
    assert f(RRef(module, path), X).tolist() == [4.0, 8.0]
    assert f(RRef(module), X).tolist() == [4.0, 8.0]
    with pytest.raises(WrongArgumentType):
        f(RRef(X, "Tensor"), X)


def test_a_worker_is_one_of_a_program(fake: World) -> None:
    @jit.script
    def f(info: WorkerInfo, infos: list[WorkerInfo]) -> tuple[str, int, WorkerInfo]:
        return info.name, len(infos) + infos[0].id, info

    info = WorkerInfo("w4", 4)
    assert f(info, [info]) == ("w4", 5, info)
    with pytest.raises(WrongArgumentType):
        f("w4", [info])
    assert fake.calls == []


class Sly:
    """An object of Python's with methods of these names."""

    def to_here(self) -> int:
        raise AssertionError("nobody calls it")

    local_value = is_owner = owner_name = to_here
    name = "sly"


def test_a_cast_that_lies_is_found() -> None:
    """Nothing of an object is run that is no reference."""

    def here(x: Any) -> int:
        return unchecked_cast(RRef[int], x).to_here()

    def local(x: Any) -> int:
        return unchecked_cast(RRef[int], x).local_value()

    def mine(x: Any) -> bool:
        return unchecked_cast(RRef[int], x).is_owner()

    def name(x: Any) -> str:
        return unchecked_cast(WorkerInfo, x).name

    for f, wanted in ((here, 3), (local, 3), (mine, True)):
        made = jit.script(f)
        assert made(RRef(3, "int")) == wanted
        with pytest.raises(RunningError, check=code("NotOfType")) as caught:
            made(Sly())
        assert (caught.value.what, caught.value.expected) == ("A program", "RRef(int)")
    made = jit.script(name)
    assert made(WorkerInfo("w", 3)) == "w"
    with pytest.raises(RunningError, check=code("NotOfType"), match="WorkerInfo"):
        made(Sly())
