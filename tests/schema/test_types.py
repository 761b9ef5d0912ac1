"""Types: one object for each, text, normal forms, fake types, dispatch."""

import copy
import gc
import pickle
import threading
import tracemalloc
from collections.abc import Callable

import pytest

from everyorder.runtime.schema import types as t
from everyorder.runtime.schema.subtyping import optional
from everyorder.runtime.schema.types import (
    AwaitType,
    BoolType,
    ClassType,
    DictType,
    FloatType,
    FutureType,
    IntType,
    ListType,
    NoneType_,
    NumberType,
    OptionalType,
    RRefType,
    StrType,
    TensorType,
    TupleType,
    Type,
    TypeVariable,
    UnionType,
    fake,
    is_dispatch_type,
)

MADE: list[Callable[[], Type]] = [
    lambda: t.BaseType("Tensor"),
    lambda: ListType(TypeVariable("one")),
    lambda: OptionalType(ListType(TensorType)),
    lambda: TupleType((IntType, ListType(StrType))),
    lambda: DictType(StrType, TupleType(())),
    lambda: UnionType((FloatType, ListType(IntType))),
    lambda: FutureType(AwaitType(RRefType(IntType))),
    lambda: ClassType("a.B"),
]


@pytest.mark.parametrize("make", MADE)
def test_there_is_one_object_for_each_type(make: Callable[[], Type]) -> None:
    one = make()
    assert make() is one
    assert copy.copy(one) is copy.deepcopy(one) is one
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps((one, [one]), protocol)) == (one, [one])
        assert pickle.loads(pickle.dumps(one, protocol)) is one


def test_types_are_equal_and_hash_as_the_objects_that_they_are() -> None:
    types = [make() for make in MADE]
    assert len({*types, *(make() for make in MADE)}) == len(MADE)
    assert all(
        (a == b) == (i == j) for i, a in enumerate(types) for j, b in enumerate(types)
    )
    assert len({t.BaseType("a"), TypeVariable("a"), ClassType("a")}) == 3
    assert len({ListType(IntType), OptionalType(IntType)}) == 2
    assert t.BaseType(name="Tensor") is TensorType
    assert ListType(element=IntType) is ListType(IntType)


def test_a_type_is_kept_as_long_as_something_is_made_of_it() -> None:
    outer = ListType(ListType(TypeVariable("held")))
    inner = id(outer.element)
    gc.collect()
    assert id(ListType(TypeVariable("held"))) == inner
    assert ListType(ListType(TypeVariable("held"))) is outer


def test_threads_that_make_a_type_at_once_get_one_object() -> None:
    threads, rounds = 8, 200
    gate = threading.Barrier(threads)
    made: list[list[Type]] = [[] for _ in range(rounds)]

    def make() -> None:
        for index in range(rounds):
            gate.wait()
            made[index].append(TupleType((TypeVariable(f"at_once{index}"), IntType)))

    running = [threading.Thread(target=make) for _ in range(threads)]
    for each in running:
        each.start()
    for each in running:
        each.join()
    assert [(len(row), len(set(map(id, row)))) for row in made] == [(8, 1)] * rounds


def test_types_that_are_made_inside_of_finalizers_are_one_object_too() -> None:
    class Late:
        def __del__(self) -> None:
            made.append(ListType(TypeVariable("late")))

    made: list[Type] = []
    for _ in range(50):
        loop: list[object] = [Late()]
        loop.append(loop)
        del loop
        made.append(ListType(TypeVariable("late")))
        # It is young, unless it was looked for meanwhile.
        gc.collect(1)
    gc.collect()
    assert len(made) == 100
    assert len(set(map(id, made))) == 1


def test_types_that_nobody_uses_are_gone() -> None:
    def make_up(first: int) -> int:
        for index in range(first, first + 2000):
            words = TypeVariable(f"made_up{index}"), ClassType(f"made.Up{index}")
            optional(ListType(DictType(StrType, TupleType(words))))
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = make_up(0)
        # A type that stays takes 300 bytes, and these are ten thousand.
        assert make_up(2000) - before < 20_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (ListType(IntType), "int[]"),
        (OptionalType(ListType(TensorType)), "Tensor[]?"),
        (TupleType((IntType, StrType)), "(int, str)"),
        (TupleType(()), "()"),
        (DictType(StrType, TypeVariable("t")), "Dict(str, t)"),
        (UnionType((FloatType, IntType)), "Union(float, int)"),
        (FutureType(IntType), "Future(int)"),
        (AwaitType(IntType), "Await(int)"),
        (RRefType(IntType), "RRef(int)"),
        (ClassType("a.B"), "__torch__.torch.classes.a.B"),
        (NumberType, "Scalar"),
        (NoneType_, "NoneType"),
    ],
)
def test_text(written: Type, text: str) -> None:
    assert str(written) == text


def test_bases_are_read_under_their_text_or_three_other_words() -> None:
    others = {w: str(b) for w, b in t.NAMED_BASES.items() if w != str(b)}
    assert others == {
        "ConstQuantizerPtr": "int",
        "DeviceIndex": "int",
        "None": "NoneType",
    }
    assert len(t.NAMED_BASES) == 26


@pytest.mark.parametrize(
    ("real", "boxed"),
    [
        (t.SymIntType, IntType),
        (t.ScalarTypeType, IntType),
        (t.LayoutType, IntType),
        (t.MemoryFormatType, IntType),
        (OptionalType(ListType(t.SymIntType)), OptionalType(ListType(IntType))),
        (t.DeviceType, t.DeviceType),
        (t.SymBoolType, t.SymBoolType),
        (TupleType((t.SymIntType,)), TupleType((IntType,))),
        (
            TupleType((t.SymIntType,), ("x",), "P"),
            TupleType((IntType,), ("x",), "P"),
        ),
        (t.DictType(t.StrType, t.SymIntType), t.DictType(t.StrType, IntType)),
        (t.FutureType(t.ScalarTypeType), t.FutureType(IntType)),
        (ListType(TupleType((t.SymIntType,))), ListType(TupleType((IntType,)))),
        (BoolType, BoolType),
    ],
)
def test_fake(real: Type, boxed: Type) -> None:
    assert fake(real) == boxed


def test_the_type_of_an_optional_value_that_is_there() -> None:
    assert t.unwrap_optional(OptionalType(IntType)) == IntType
    assert t.unwrap_optional(ListType(IntType)) == ListType(IntType)


def test_only_four_types_dispatch() -> None:
    tensors = ListType(TensorType)
    maybe = OptionalType(TensorType)
    given = [TensorType, maybe, tensors, ListType(maybe)]
    assert list(map(is_dispatch_type, given)) == ["tensor", "tensor", "list", "list"]
    others = [OptionalType(tensors), TupleType((TensorType,)), t.AnyType]
    assert list(map(is_dispatch_type, [*others, t.GeneratorType])) == [None] * 4
