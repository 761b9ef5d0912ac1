"""Whose handlers are asked, in which order, and what the operator returns."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everyorder import runtime
from everyorder.runtime.errors.call import CallError
from everyorder.runtime.errors.torch_dispatch import HandlerError
from everyorder.runtime.schema.parser import parse_schema
from everyorder.runtime.torch_dispatch.torch_dispatch_call import collector, insert
from tests.coded import code
from tests.torch_dispatch.worlds import Ours, leaves


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


@pytest.mark.spec("dispatch 7.3", "the order of classes")
@pytest.mark.spec("dispatch 8.4", "test_subclass_priority")
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


@pytest.mark.spec("dispatch 7.3", "the order of classes")
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


@pytest.mark.spec(
    "dispatch 0.2", "all arguments are scanned, then the handlers are asked"
)
@pytest.mark.spec("dispatch 7.3", "who is overloaded: lists, not tuples or dicts")
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


@pytest.mark.spec("dispatch 7.3", "who is overloaded: lists, not tuples or dicts")
def test_where_tensors_are_not_looked_for() -> None:
    """7.3: in tuples, in dicts, in lists of lists; 9.2.6."""
    a = made(A)
    assert collected("f((Tensor, Tensor) x) -> ()", (a, a)) == []
    assert collected("f(Dict(str, Tensor) x) -> ()", {"k": a}) == []
    assert collected("f(Any x) -> ()", a) == []
    assert collected("f(Tensor[][] x) -> ()", [[a]]) == []


@pytest.mark.spec("dispatch 8.4", "test_index_put_where_only_index_is_subclass")
def test_only_the_list_has_a_subclass(world: Ours) -> None:
    """8.4 test_index_put_where_only_index_is_subclass: the list alone will do."""
    op = world.operator(
        "f(Tensor x, Tensor?[] at, Tensor v) -> Tensor", lambda *given: None
    )
    x = world.tensor(1.0)
    index = world.made(world.subclass("A", answer=lambda *given: x))
    assert op(x, [None, index], x) is x
    assert world.lines == ["A: f.default(Tensor, [None, A], Tensor) types=(A)"]


@pytest.mark.spec("dispatch 8.4", "test_index_put_where_only_index_is_subclass")
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


tensors: Any = runtime.Tensor
PLAIN = runtime.tensor([1.0])

# The part of a schema behind its name, what the handler returns, what is found.
REFUSED = (
    ("(Tensor x) -> Tensor", 3, "an int 3; `Tensor` belongs there"),
    (
        "(Tensor x) -> Tensor",
        [PLAIN],
        "a list of Tensor [tensor([1.])]; `Tensor` belongs there",
    ),
    (
        "(Tensor x) -> Tensor[]",
        [PLAIN, 3],
        "a list of Tensor and int [tensor([1.]), 3]; `Tensor[]` belongs there",
    ),
    (
        "(Tensor x) -> Tensor[]",
        PLAIN,
        "a Tensor tensor([1.]); `Tensor[]` belongs there",
    ),
    ("(Tensor x) -> (Tensor, int)", (PLAIN,), "1 value; the operator has 2"),
    ("(Tensor x) -> (Tensor, int)", [PLAIN, 1, 2], "3 values; the operator has 2"),
    (
        "(Tensor x) -> (Tensor, int)",
        (PLAIN, "s"),
        "a str 's' at position 1; `int` belongs there",
    ),
    (
        "(Tensor x) -> (Tensor, int)",
        3,
        "an int 3; a sequence of 2 values belongs there",
    ),
    ("(Tensor x) -> ()", PLAIN, "a Tensor tensor([1.]); None belongs there"),
    ("(Tensor x) -> int", 3.5, "a float 3.5; `int` belongs there"),
    ("(Tensor(a!) x) -> Tensor(a!)", 3, "an int 3; `Tensor` belongs there"),
)


@pytest.fixture
def answers(world: Ours) -> Any:
    """(schema, answer) -> what the operator gives for a tensor whose class answers."""

    def play(schema: str, answer: Any, *more: Any) -> Any:
        op = world.operator(f"f{schema}", lambda *given: None)
        x = world.made(world.subclass("A", answer=lambda *given: answer))
        return x, op(x, *more)

    return play


@pytest.mark.spec("dispatch 5.7", "no results: None", "one result")
@pytest.mark.spec("dispatch 5.7", "several results: their number")
@pytest.mark.spec("dispatch 5.7", "exceptions, and the thread restored")
@pytest.mark.spec("dispatch 8.4", "test_invalid_ret")
@pytest.mark.parametrize(("schema", "answer", "found"), REFUSED)
def test_what_does_not_fit(answers: Any, schema: str, answer: Any, found: str) -> None:
    """5.7: 8.4 test_invalid_ret; [D] the number of results is checked."""
    with pytest.raises(HandlerError, check=code("WrongHandlerResult")) as caught:
        answers(schema, answer)
    assert str(caught.value) == (
        "`A.__torch_dispatch__` handled `everyorder_worlds::f`, and its result is not\n"
        "what the operator returns.\n"
        f"  found:  {found}\n"
        f"  schema: everyorder_worlds::f{schema}"
    )
    assert isinstance(caught.value, TypeError)
    assert caught.value.__cause__ is None


@pytest.mark.spec("dispatch 5.7", "no results: None", "one result")
@pytest.mark.spec("dispatch 8.4", "test_list_ret")
@pytest.mark.parametrize(
    ("schema", "answer", "result"),
    [
        ("(Tensor x) -> Tensor[]", (PLAIN, PLAIN), [PLAIN, PLAIN]),
        ("(Tensor x) -> Tensor[]", [PLAIN], [PLAIN]),
        ("(Tensor x) -> (Tensor, int)", [PLAIN, 4], (PLAIN, 4)),
        ("(Tensor x) -> float", 3, 3.0),
        ("(Tensor x) -> int", True, 1),
        ("(Tensor x) -> ()", None, None),
        ("(Tensor x) -> Tensor", None, None),
        ("(Tensor x) -> ...", (PLAIN, "any"), (PLAIN, "any")),
    ],
)
def test_what_fits(answers: Any, schema: str, answer: Any, result: Any) -> None:
    """5.7: 8.4 test_list_ret: a list or a tuple; None is an undefined tensor."""
    _, found = answers(schema, answer)
    assert type(found) is type(result)
    if isinstance(result, (list, tuple)):
        assert len(found) == len(result)
        assert all(one is other for one, other in zip(found, result, strict=True))
    else:
        assert found == result


@pytest.mark.spec("dispatch 8.4", "test_none_wrapping")
def test_none_is_an_undefined_tensor(world: Ours) -> None:
    """8.4 test_none_wrapping: None passes as a result, and not as an argument."""
    op = world.operator("f(Tensor x) -> Tensor", lambda x: None)
    x = world.made(world.subclass("A", answer=lambda *given: None))
    assert op(x) is None
    relu: Any = runtime.ops.core.relu
    with pytest.raises(
        CallError,
        check=code("WrongArgumentType"),
        match="takes `Tensor`, but was given None",
    ):
        relu.default(op(x))


@pytest.mark.parametrize("call", [lambda x: x.unbind(), lambda x: x.split(1)])
def test_none_is_refused_in_a_list_of_views(world: Ours, call: Any) -> None:
    """As in torch: a list has tensors."""
    kind = world.subclass("A", answer=lambda *given: (None, None))
    x = tensors._make_wrapper_subclass(kind, (2,))
    with pytest.raises(HandlerError, check=code("WrongHandlerResult")):
        call(x)


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda x: x.neg(), None),
        (lambda x: x + x, None),
        (lambda x: runtime.cat([x, x]), None),
        (lambda x: x.t(), None),
        (lambda x: x[0], None),
        (lambda x: runtime.ops.core.topk(x, 1), (None, None)),
    ],
)
def test_none_where_a_gradient_is_recorded(
    world: Ours, requires_grad: bool, call: Any, expected: Any
) -> None:
    """8.4 test_none_wrapping: an undefined tensor has no history; views are none."""
    pairs = ("core.topk.default",)
    kind = world.subclass(
        "A", answer=lambda *given: (None, None) if str(given[2]) in pairs else None
    )
    x = tensors._make_wrapper_subclass(kind, (2,), requires_grad=requires_grad)
    found = call(x)
    assert (tuple(found) if isinstance(found, (list, tuple)) else found) == expected


def test_none_beside_what_has_a_gradient(world: Ours) -> None:
    """8.4 test_none_wrapping: a formula that needs it says so."""

    def answer(world: Any, who: Any, func: Any, *rest: Any) -> Any:
        result = leaves(world, who, func, *rest)
        return (result[0], None) if str(func) == "core.topk.default" else result

    x = tensors._make_subclass(
        world.subclass("A", answer=answer), runtime.tensor([1.0, 3.0]), True
    )
    topk: Any = runtime.ops.core.topk
    values, indices = topk(x, 1)
    assert (values.requires_grad, indices) == (True, None)
    with pytest.raises(HandlerError, check=code("UndefinedResult")) as caught:
        values.sum().backward()
    assert str(caught.value) == (
        "The gradient of `core::topk` is computed from its result `result1`, and a\n"
        "`__torch_dispatch__` returned None for that.\n"
        "  to do: return a tensor, or call the operator in no_grad()"
    )


@pytest.mark.spec("dispatch 7.12", "step 3: what is written to is the result")
@pytest.mark.spec("dispatch 8.4", "test_out")
@pytest.mark.parametrize("answer", [None, PLAIN])
def test_what_is_written_to_is_the_result(answers: Any, answer: Any) -> None:
    """7.12: 8.4 test_out: an in-place operator returns its very argument."""
    x, found = answers("(Tensor(a!) x) -> Tensor(a!)", answer)
    assert found is x


@pytest.mark.spec("dispatch 7.12", "step 3: what is written to is the result")
def test_several_that_are_written_to(answers: Any) -> None:
    """7.12: each result is its own argument, in the order of the results."""
    out = runtime.tensor([2.0])
    x, found = answers(
        "(Tensor(a!) x, Tensor(b!) y) -> (Tensor(b!), Tensor(a!))", [None, None], out
    )
    assert type(found) is tuple
    assert found[0] is out
    assert found[1] is x


def test_a_list_that_is_written_to(answers: Any) -> None:
    """7.12: also what is written to by list is the very list's."""
    first, second = runtime.tensor([2.0]), runtime.tensor([3.0])
    _, found = answers("(Tensor x, Tensor(a!)[] ys) -> Tensor", PLAIN, [first, second])
    assert found is PLAIN


@pytest.mark.spec("dispatch 8.4", "test_out")
def test_out_reaches_the_handler_by_name() -> None:
    """8.4 test_out: `out` is in kwargs, and is what comes back."""
    heard = []

    class A(runtime.Tensor):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            heard.append((str(func), len(args), [*kwargs]))
            return kwargs["out"]

    library = runtime.Library("everyorder_out", "DEF")
    library.define("g(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")
    x: Any = runtime.tensor([1.0]).as_subclass(A)
    out = runtime.tensor([0.0])
    op: Any = runtime.ops.everyorder_out.g
    assert op(x, out=out) is out
    assert heard == [("everyorder_out.g.default", 1, ["out"])]
    library.close()


@pytest.mark.parametrize(
    ("schema", "answer"),
    [
        ("(Tensor(a) x) -> Tensor(a)", PLAIN),
        ("(Tensor(a) x) -> Tensor(a)", None),
        ("(Tensor(a!) x) -> (Tensor(a!), Tensor)", (PLAIN, PLAIN)),
    ],
)
def test_what_may_be_another_tensor_is_the_handlers_own(
    answers: Any, schema: str, answer: Any
) -> None:
    """7.12: views, and results of which one is new: none becomes the argument."""
    _, found = answers(schema, answer)
    assert type(found) is type(answer)
    several = found if isinstance(found, tuple) else (found,)
    wanted = answer if isinstance(answer, tuple) else (answer,)
    assert all(one is other for one, other in zip(several, wanted, strict=True))


def test_views_of_wrappers_count_their_versions_together(world: Ours) -> None:
    """7.12: a wrapper that a handler made as a view is written to with its origin."""

    def wrapper() -> Any:
        return tensors._make_wrapper_subclass(cls, (2,))

    made: list[Any] = []
    cls: Any = world.subclass("A", answer=lambda *given: made[-1])
    op = world.operator("f(Tensor(a) x) -> Tensor(a)[]", lambda x: [x])
    x, one, other = wrapper(), wrapper(), wrapper()
    made.append([one, other, x, PLAIN])
    op(x)
    before = (x._version, one._version, other._version, PLAIN._version)
    one.storage().version = 5
    assert before == (0, 0, 0, PLAIN._version)
    assert (x._version, other._version) == (5, 5)
    assert PLAIN._version == before[-1]


def test_results_that_show_nothing_count_alone(world: Ours) -> None:
    """7.12: of several results those count together that the schema ties."""

    def wrapper() -> Any:
        return tensors._make_wrapper_subclass(cls, (2,))

    made: list[Any] = []
    cls: Any = world.subclass("A", answer=lambda *given: made[-1])
    op = world.operator(
        "f(Tensor(a) x, Tensor(b)? y=None) -> (Tensor, Tensor(b), Tensor(a))",
        lambda x, y: (x, x, x),
    )
    x, y, fresh, of_y, of_x = [wrapper() for _ in range(5)]
    made.append((fresh, of_y, of_x))
    op(x, y)
    fresh.storage().version, of_y.storage().version = 3, 4
    of_x.storage().version = 5
    assert (fresh._version, y._version, x._version) == (3, 4, 5)
    op(x)
