"""Programs about classes: what handlers are called with, and in which order.

True only here: each program runs in any world (`tests.torch_dispatch.worlds`) and
leaves its lines there.  Its docstring names the rows that it plays.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.torch_dispatch.worlds import World, leaves

Program = Callable[[World], None]


def unary(world: World) -> Any:
    return world.operator("f(Tensor x) -> Tensor", lambda x: world.tensor(2.0))


def many(world: World) -> Any:
    return world.operator(
        "many(Tensor? a=None, Tensor? b=None, Tensor? c=None, Tensor? d=None) "
        "-> Tensor",
        lambda *tensors: world.tensor(2.0),
    )


@pytest.mark.spec("dispatch 7.3", "the order of classes", "`types`, for every handler")
@pytest.mark.spec("dispatch 8.4", "test_subclass_priority")
def order_of_classes(world: World) -> None:
    """7.3: one tensor of a class; a class before the first one that it derives from.

    8.4 test_subclass_priority.
    """
    many_ = many(world)
    a = world.subclass("A")
    d = world.subclass("D")
    b, b2 = world.subclass("B", a), world.subclass("B2", a)
    for classes in ((a, b), (a, d, b), (d, a, b2, b), (a, a), (b, d), (d, b)):
        tensors = [world.made(each) for each in classes]
        world.note(" ".join(each.__name__ for each in classes))
        world.raises(partial(many_, *tensors), TypeError)


@pytest.mark.spec(
    "dispatch 0.2", "all arguments are scanned, then the handlers are asked"
)
@pytest.mark.spec("dispatch 7.3", "who is overloaded: lists, not tuples or dicts")
@pytest.mark.spec("dispatch 8.4", "test_optional_tensor_list")
def lists(world: World) -> None:
    """7.3: elements of lists stand where the list does.

    8.4 test_optional_tensor_list, test_index_put_where_only_index_is_subclass.
    """
    op = world.operator(
        "listed(Tensor? x, Tensor?[] xs, Tensor[] ys) -> Tensor",
        lambda *given: world.tensor(2.0),
    )
    a, b, c = world.subclass("A"), world.subclass("B"), world.subclass("C")
    plain = world.tensor(1.0)
    one, other, third = world.made(a), world.made(b), world.made(c)
    calls: tuple[tuple[Any, ...], ...] = (
        (third, [None, other, plain], [one]),
        (plain, [None, one], [other]),
        (None, [one, other, one], []),
        (None, [plain], []),
    )
    for given in calls:
        world.note("call")
        world.raises(partial(op, *given), TypeError)


@pytest.mark.spec("dispatch 7.3", "the innermost mode, then the classes")
def first_who_answers(world: World) -> None:
    """7.3: the first that is not NotImplemented is the result."""
    op = many(world)
    a, b = world.subclass("A"), world.subclass("B", answer=leaves)
    c = world.subclass("C", answer=leaves)
    result = op(*(world.made(each) for each in (a, b, c)))
    world.note(type(result).__name__)


@pytest.mark.spec("dispatch 7.3", "`func` is the overload")
@pytest.mark.spec("dispatch 7.4", "6: kernels and modes get the same")
def functions(world: World) -> None:
    """7.3: `func` is the overload itself; kwargs is a dict, also an empty one.

    7.4.6: the same for classes and modes.
    """
    op = unary(world)

    def tells(
        world: World, who: Any, func: Any, types: Any, args: Any, kwargs: Any
    ) -> Any:
        world.note(f"{func is op} {func} {func.overloadpacket}")
        world.note(str(func._schema))
        world.note(f"{type(types).__name__} {type(args).__name__} {kwargs}")
        return leaves(world, who, func, types, args, kwargs)

    op(world.made(world.subclass("A", answer=tells)))
    with world.mode("M", tells):
        op(world.tensor(1.0))


@pytest.mark.spec("dispatch 0.2", "arguments equal to their defaults are removed")
@pytest.mark.spec("dispatch 0.2", "so that a new default breaks no handler")
@pytest.mark.spec(
    "dispatch 0.2", "keyword-only arguments are in kwargs, unless at their defaults"
)
@pytest.mark.spec("dispatch 7.4", "1: positional arguments from the end")
@pytest.mark.spec("dispatch 7.4", "2: keyword-only ones each by itself")
@pytest.mark.spec("dispatch 7.4", "3: by name becomes positional")
@pytest.mark.spec("dispatch 7.4", "4: when a value is its default")
@pytest.mark.spec("dispatch 7.4", "5: values of their real types")
@pytest.mark.spec("dispatch 9.2", "8 which values are equal to a default")
@pytest.mark.spec("dispatch 8.4", "test_kwarg_only")
@pytest.mark.spec("dispatch 8.4", "test_kwarg_only_and_positional_default")
@pytest.mark.spec("dispatch 8.4", "test_produce_real_type")
def defaults(world: World) -> None:
    """7.4: what equals its default is not there, and the rest has its real type.

    8.4 test_kwarg_only, test_kwarg_only_and_positional_default,
    test_produce_real_type.
    """
    op = world.operator(
        "g(Tensor x, int a=1, Scalar b=1, float c=1., bool d=False, int[2] e=1, "
        'str s="z", *, int n=2, Scalar m=1, Tensor? t=None, ScalarType? dt=None, '
        "Layout? lay=None, MemoryFormat? mem=None, Device? dev=None, bool q=True) "
        "-> Tensor",
        lambda *args, **kwargs: world.tensor(2.0),
    )
    x = world.made(world.subclass("A", answer=leaves))
    nan = float("nan")
    for args, kwargs in (
        ((), {}),
        ((1,), {}),
        ((1, 5), {}),
        ((5, 1), {}),
        ((5, 1, 1.0, False, 1, "y"), {}),
        ((), {"b": 1.0}),
        ((), {"b": True}),
        ((), {"b": 1}),
        ((), {"a": False}),
        ((), {"c": 1}),
        ((), {"c": nan}),
        ((), {"e": 1}),
        ((), {"e": [1, 1]}),
        ((), {"e": (1, 1)}),
        ((), {"e": [1, 2]}),
        ((), {"s": "z"}),
        ((), {"s": "w"}),
        ((), {"n": 2, "q": True}),
        ((), {"q": False}),
        ((), {"n": 3}),
        ((), {"m": 1.0}),
        ((), {"m": 1 + 0j}),
        ((), {"t": None}),
        ((), {"t": world.tensor(1.0)}),
        ((), {"t": x}),
        ((), {"dt": world.value("float64")}),
        ((), {"dt": None}),
        ((), {"lay": world.value("strided"), "mem": world.value("contiguous_format")}),
        ((), {"dev": world.value("cpu"), "n": 4}),
        ((3,), {"q": False, "n": 5, "b": 7}),
    ):
        op(x, *args, **kwargs)
    op(d=True, x=x)


@pytest.mark.spec("dispatch 7.4", "4: when a value is its default")
@pytest.mark.spec("dispatch 9.2", "8 which values are equal to a default")
def zeros(world: World) -> None:
    """7.4.4, 9.2.8: floats are equal by number; NaN is equal to nothing."""
    op = world.operator(
        "z(Tensor x, float a=0., *, float b=0., bool c=False, int i=0) -> Tensor",
        lambda *args, **kwargs: world.tensor(2.0),
    )
    x = world.made(world.subclass("A", answer=leaves))
    op(x, -0.0, b=-0.0)
    op(x, float("nan"), b=float("nan"))
    op(x, c=False, i=False)
    op(x, 0, i=0)


@pytest.mark.spec("dispatch 7.8", "Python and all above excluded, and stay so")
@pytest.mark.spec("dispatch 8.4", "test_dispatch_super_call")
@pytest.mark.spec("dispatch 8.4", "test_dispatch_super_call_list_arg")
def super_calls(world: World) -> None:
    """7.8: 8.4 test_dispatch_super_call, test_dispatch_super_call_list_arg."""
    op = many(world)
    given: list[Any] = []

    def asks_super(
        world: World, who: Any, func: Any, types: Any, args: Any, kwargs: Any
    ) -> Any:
        turn = given[-1]
        return super(a, who).__torch_dispatch__(func, types, turn(args), kwargs)

    a = world.subclass("A", answer=asks_super)
    x = world.made(a)
    for turn in (tuple, list):
        given.append(turn)
        world.note(type(op(x, x)).__name__)
    given.append(set)
    world.raises(lambda: op(x), TypeError)
    given.append(dict.fromkeys)
    world.raises(lambda: op(x), TypeError)


@pytest.mark.spec("dispatch 5.7", "several results: their number")
@pytest.mark.spec("dispatch 8.4", "test_list_ret", "test_invalid_ret")
def results(world: World) -> None:
    """5.7: 8.4 test_list_ret, test_invalid_ret."""
    answers: list[Any] = []

    def answers_next(
        world: World, who: Any, func: Any, types: Any, args: Any, kwargs: Any
    ) -> Any:
        return answers[-1]

    x = world.made(world.subclass("A", answer=answers_next))

    def plays(schema: str, *values: Any) -> None:
        op = world.operator(schema, lambda *given: None)
        for value in values:
            answers.append(value)
            try:
                found = op(x)
            except (RuntimeError, TypeError):
                world.note("refused")
            else:
                kinds = [type(each).__name__ for each in found or ()]
                world.note(f"{type(found).__name__} {kinds}")

    plain = world.tensor(1.0)
    plays("several(Tensor x) -> Tensor[]", [plain], (plain, plain), "ab", 3, [plain, 3])
    plays("nothing(Tensor x) -> ()", None, plain)
    plays("two(Tensor x) -> (Tensor, Tensor)", (plain, plain), [plain, plain], plain)


PROGRAMS: tuple[Program, ...] = (
    order_of_classes,
    lists,
    first_who_answers,
    functions,
    defaults,
    zeros,
    super_calls,
    results,
)
