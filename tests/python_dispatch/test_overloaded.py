"""Whose handlers are asked, and in which order."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import runtime
from runtime.python_dispatch.handling import collector, insert
from runtime.schema.parser import parse_schema
from tests.python_dispatch.worlds import Ours


def handler(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    return NotImplemented


class A(runtime.Tensor):
    __torch_dispatch__ = classmethod(handler)


class B(A):
    pass


class B2(A):
    pass


class C(B):
    pass


class D(runtime.Tensor):
    __torch_dispatch__ = classmethod(handler)


class Plain(runtime.Tensor):
    pass


KINDS = (A, B, B2, C, D)


def made(cls: Any) -> Any:
    return runtime.tensor([1.0]).as_subclass(cls)


def order(*kinds: type) -> list[str]:
    found: list[Any] = []
    for kind in kinds:
        insert(found, made(kind))
    return [type(each).__name__ for each in found]


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ((A, B), "B A"),
        ((A, D, B), "B A D"),
        ((D, A, B2, B), "D B2 B A"),
        ((A, A), "A"),
        ((C, B, A), "C B A"),
        ((A, B, C), "C B A"),
        ((B, A, C), "C B A"),
        ((D, A), "D A"),
        ((A, B2, C, D, B), "B2 C B A D"),
    ],
)
def test_the_order(kinds: tuple[type, ...], expected: str) -> None:
    """7.3: 8.4 test_subclass_priority; the first cases were seen in torch."""
    assert order(*kinds) == expected.split()


@given(st.lists(st.sampled_from(KINDS), max_size=7))
def test_the_laws_of_the_order(kinds: list[type]) -> None:
    """7.3: one of each class; none behind a class that it derives from."""
    found: list[Any] = []
    for kind in kinds:
        insert(found, made(kind))
    classes = [type(each) for each in found]
    assert set(classes) == set(kinds)
    assert len(classes) == len(set(classes))
    for place, above in enumerate(classes):
        assert not any(issubclass(later, above) for later in classes[place + 1 :])


def test_the_first_one_of_a_class_is_asked() -> None:
    """7.3: who is exactly of that class is skipped."""
    first, second = made(A), made(A)
    found: list[Any] = []
    insert(found, first)
    insert(found, second)
    assert len(found) == 1
    assert found[0] is first


def collected(schema: str, *arguments: Any) -> list[int]:
    found = collector(parse_schema(schema))(arguments)
    return [id(each) for each in found]


def test_where_tensors_are_looked_for() -> None:
    """7.3: in schema order, in any list; None is skipped, so are plain tensors."""
    a, b2, d, plain = made(A), made(B2), made(D), made(Plain)
    one = "f(Tensor x, Tensor? y, int n, Tensor z) -> ()"
    assert collected(one, d, None, 3, a) == [id(d), id(a)]
    assert collected(one, plain, plain, 3, runtime.tensor(1.0)) == []
    assert collected(one, a, b2, 3, plain) == [id(b2), id(a)]
    several = "f(Tensor?[] xs, Tensor[]? ys, int[] ns, Tensor x) -> ()"
    assert collected(several, [None, d], [a], [1, 2], b2) == [id(d), id(b2), id(a)]
    assert collected(several, [], None, [1], plain) == []
    assert collected("f(Any[] xs) -> ()", [1, "a", a, None]) == [id(a)]


def test_where_tensors_are_not_looked_for() -> None:
    """7.3: in tuples, in dicts, in lists of lists; 9.2.6."""
    a = made(A)
    assert collected("f((Tensor, Tensor) x) -> ()", (a, a)) == []
    assert collected("f(Dict(str, Tensor) x) -> ()", {"k": a}) == []
    assert collected("f(Any x) -> ()", a) == []
    assert collected("f(Tensor[][] x) -> ()", [[a]]) == []


def test_only_the_list_has_a_subclass(world: Ours) -> None:
    """8.4 test_index_put_where_only_index_is_subclass: the list alone will do."""
    op = world.operator(
        "f(Tensor x, Tensor?[] at, Tensor v) -> Tensor", lambda *given: None
    )
    x = world.tensor(1.0)
    index = world.made(world.subclass("A", answer=lambda *given: x))
    assert op(x, [None, index], x) is x
    assert world.lines == ["A: f.default(Tensor, [None, A], Tensor) types=(A)"]


def test_indexing_where_only_the_index_is_a_subclass() -> None:
    """8.4 test_index_put_where_only_index_is_subclass: the operator of `core`."""
    heard = []

    class Index(runtime.Tensor):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            heard.append((str(func), types))
            return runtime.Tensor.__torch_dispatch__(func, types, args, kwargs)

    x: Any = runtime.tensor([1.0, 2.0])
    index = runtime.tensor([1]).as_subclass(Index)
    runtime.ops.core.index_put(x, [index], runtime.tensor([3.0]))
    assert heard == [("core.index_put.default", (Index,))]
