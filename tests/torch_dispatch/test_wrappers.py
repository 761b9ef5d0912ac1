"""Classes of tensors: which there are, wrappers taken apart, what results share."""

from collections.abc import Callable
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Tensor, default_dispatcher
from everyorder.runtime.errors.call import CallError
from everyorder.runtime.errors.torch_dispatch import HandlerError, SubclassError
from everyorder.runtime.schema import parse_schema
from everyorder.runtime.torch_dispatch import no_dispatch
from everyorder.runtime.torch_dispatch.wrappers import (
    check_class,
    correctable_aliases,
    flatten,
    is_traceable_wrapper_subclass,
    is_traceable_wrapper_subclass_type,
    return_and_correct_aliasing,
    unflatten,
)
from tests.coded import code
from tests.torch_dispatch.kinds import Boxed, Counted, asked, boxed, core, counted


class Bare(Tensor):
    """Without a handler."""


class Static(Tensor):
    """With a handler that needs no class."""

    @staticmethod
    def __torch_dispatch__(*args: Any) -> Any:
        raise NotImplementedError


class Plain(Tensor):
    """With a handler that would be given a class for itself."""

    def __torch_dispatch__(self, *args: Any) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize("cls", [Bare, Static])
def test_subclasses_will_do(cls: type) -> None:
    check_class(cls, "making")


@pytest.mark.parametrize(
    ("given", "found"),
    [(Tensor, "the class Tensor"), (int, "the class int"), (3, "an int")],
)
def test_nothing_else_will(given: Any, found: str) -> None:
    with pytest.raises(SubclassError, check=code("NotATensorClass")) as refused:
        check_class(given, "making")
    assert str(refused.value) == (
        f"`making` takes a subclass of Tensor as `cls`, and was given {found}."
    )


def test_a_handler_is_no_plain_method() -> None:
    with pytest.raises(HandlerError, check=code("PlainHandler")) as refused:
        check_class(Plain, "making")
    assert refused.value.fields() == {"handler": "Plain.__torch_dispatch__"}


class Pair(Boxed):
    """Has two tensors and a word."""

    other: Tensor
    word: str

    def __new__(cls, inner: Tensor, other: Tensor, word: str = "") -> Any:
        made = super().__new__(cls, inner)
        made.other = other
        made.word = word
        return made

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        return ["inner", "other"], self.word

    @classmethod
    def __tensor_unflatten__(
        cls, tensors: dict[str, Tensor], context: Any, size: Any, strides: Any
    ) -> Any:
        made: Tensor = cls(tensors["inner"], tensors["other"], context)
        return made


@pytest.mark.spec("dispatch 7.12", "the protocol")
def test_who_has_the_protocol() -> None:
    """7.12: "Tensor subclass with both"; 8.4 test_standard_is_not_subclass."""

    class Half(Tensor):
        def __tensor_flatten__(self) -> Any:
            return [], None

    plain = runtime.tensor([1.0])
    assert is_traceable_wrapper_subclass(boxed(1.0)) is True
    for other in (plain, counted(1.0), plain.as_subclass(Half), 3, Boxed, None):
        assert is_traceable_wrapper_subclass(other) is False
    assert is_traceable_wrapper_subclass_type(Boxed) is True
    for kind in (Tensor, Counted, Half, int):
        assert is_traceable_wrapper_subclass_type(kind) is False


def test_nested_wrappers_come_apart_and_together() -> None:
    """7.12: `__tensor_flatten__` and `__tensor_unflatten__`, all the way down."""
    leaves = [runtime.tensor([float(n)]) for n in range(4)]
    whole = Pair(Boxed(leaves[0]), Pair(leaves[1], Boxed(Boxed(leaves[2])), "b"), "a")
    tensors, plan = flatten(whole)
    assert [each is leaf for each, leaf in zip(tensors, leaves, strict=False)] == [
        *(True, True, True)
    ]
    assert (plan.cls, plan.names, plan.context, plan.count) == (
        Pair,
        ("inner", "other"),
        "a",
        3,
    )
    made: Any = unflatten([leaves[3], *leaves[:2]], plan)
    kind: type = type(made)
    assert kind is Pair
    assert (made.word, made.other.word) == ("a", "b")
    assert made.inner.inner is leaves[3]
    assert made.other.other.inner.inner is leaves[1]
    assert flatten(made).plan == plan
    assert flatten(Pair(leaves[0], leaves[1], "c")).plan != plan


def test_nobody_is_asked() -> None:
    whole = Boxed(boxed(1.0))
    assert asked(lambda: unflatten(*flatten(whole))) == []


def test_what_the_protocol_is_given() -> None:
    """7.12: `unflatten(dict, context, outer_size, outer_strides)`."""
    seen: list[Any] = []

    class Seeing(Boxed):
        @classmethod
        def __tensor_unflatten__(
            cls, tensors: dict[str, Tensor], context: Any, size: Any, strides: Any
        ) -> Any:
            seen.append((tensors, context, size, strides))
            return cls(tensors["inner"])

    turned = runtime.zeros(2, 3).t()
    tensors, plan = flatten(Seeing(turned))
    unflatten(tensors, plan)
    assert seen == [({"inner": turned}, None, (3, 2), (1, 3))]


def test_a_class_without_the_protocol() -> None:
    with pytest.raises(SubclassError, check=code("NotAWrapper")) as caught:
        flatten(runtime.tensor([1.0]))
    assert str(caught.value) == (
        "A `Tensor` cannot be flattened: it has no `__tensor_flatten__` and no\n"
        "`__tensor_unflatten__`.\n"
        "  to do: define `__tensor_flatten__(self)`, which returns the names of its\n"
        "         tensors and a context, and the static method\n"
        "         `__tensor_unflatten__(tensors, context, size, strides)`"
    )
    with pytest.raises(SubclassError, check=code("NotAWrapper")):
        flatten("text")  # type: ignore[arg-type]  # that is the fault


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        (None, "a NoneType"),
        (("inner", None, None), "a tuple of 3"),
        (("inner", None), "a str for the names"),
        (([3], None), "a int for the name of an attribute"),
        (
            (["outer"], None),
            "the name 'outer', which is not an attribute with a tensor",
        ),
        ((["word"], None), "the name 'word', which is not an attribute with a tensor"),
        ((["me"], None), "the name 'me', which is itself"),
    ],
)
def test_wrong_parts(parts: Any, found: str) -> None:
    class Wrong(Boxed):
        word = "word"

        @property
        def me(self) -> Any:
            return self

        def __tensor_flatten__(self) -> Any:
            return parts

    with pytest.raises(SubclassError, check=code("WrongParts")) as caught:
        flatten(Wrong(runtime.tensor([1.0])))
    assert (caught.value.cls, caught.value.found) == ("Wrong", found)


@pytest.mark.parametrize(
    ("whole", "expected", "found"),
    [
        (None, "a `Wrong`", "a `NoneType`"),
        (boxed(1.0), "a `Wrong`", "a `Boxed`"),
        ("longer", "one of shape (1,)", "one of shape (2,)"),
    ],
)
def test_a_wrong_whole(whole: Any, expected: str, found: str) -> None:
    class Wrong(Boxed):
        @classmethod
        def __tensor_unflatten__(
            cls, tensors: Any, context: Any, size: Any, strides: Any
        ) -> Any:
            return Wrong(runtime.ones(2)) if whole == "longer" else whole

    with pytest.raises(SubclassError, check=code("WrongWhole")) as caught:
        unflatten(*flatten(Wrong(runtime.tensor([1.0]))))
    assert str(caught.value).replace("\n", " ") == (
        f"`Wrong.__tensor_unflatten__(...)` returned {found}; expected {expected}, "
        "as was flattened."
    )


def test_another_number_of_tensors() -> None:
    tensors, plan = flatten(Pair(runtime.ones(1), boxed(1.0)))
    with pytest.raises(SubclassError, check=code("WrongTensorCount")) as caught:
        unflatten(tensors[:1], plan)
    assert str(caught.value) == "A `Pair` consists of 2 tensors, but got 1."


SPACE = "aliasing_test"


class Correct(Boxed):
    """Wraps, and corrects what it returns."""

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        out = super().__torch_dispatch__(func, types, args, kwargs)
        return return_and_correct_aliasing(func, args, kwargs, out)


def correct(*numbers: float) -> Any:
    return Correct(runtime.tensor([*numbers]))


@pytest.fixture
def library() -> Any:
    with runtime.Library(SPACE, "DEF") as made:
        yield made


def defined(library: Any, schema: str, kernel: Callable[..., Any], *tags: str) -> Any:
    library.define(schema, tags=tags)
    name = schema.partition("(")[0]
    library.impl(name, kernel, "CompositeExplicitAutograd")
    return default_dispatcher().find_op(f"{SPACE}::{name}")


def test_without_it_a_view_has_a_storage_of_its_own() -> None:
    """7.12: "a wrapper's view output does not share the wrapper's storage"."""
    made = boxed(1.0, 2.0)
    assert made[0:1].storage() is not made.storage()
    assert made.add_(1) is made
    out = boxed(0.0, 0.0)
    assert core.add(made, made, out=out) is out


@pytest.mark.spec("dispatch 7.12", "step 1: storages")
def test_a_view_gets_the_storage_and_keeps_its_shape() -> None:
    """7.12 step 1: "force return's storage ... without touching sizes/strides"."""
    made = correct(1.0, 2.0, 3.0)
    view = made[1:3]
    assert view.storage() is made.storage()
    assert (type(view), view.shape, view.strides, view.offset) == (
        Correct,
        (2,),
        (1,),
        1,
    )
    view.add_(1)
    assert (made.inner.tolist(), made._version) == ([1.0, 3.0, 4.0], 1)


def test_every_piece_of_a_list_gets_it() -> None:
    """7.12 step 1: the sets of list elements count."""
    made = correct(1.0, 2.0, 3.0)
    pieces = core.split(made, 2)
    assert [each.storage() is made.storage() for each in pieces] == [True, True]
    assert [each.inner.tolist() for each in pieces] == [[1.0, 2.0], [3.0]]


def test_several_views(library: Any) -> None:
    """7.12 step 1: each (argument, result) by its own set."""
    op = defined(
        library,
        "both(Tensor(a) x, Tensor(b) y, int n) -> (Tensor(b), int, Tensor(a))",
        lambda x, y, n: (core.alias(y), n, core.alias(x)),
    )
    x, y = correct(1.0), correct(2.0)
    first, number, second = op(x, y, n=3)
    assert (
        first.storage() is y.storage(),
        number,
        second.storage() is x.storage(),
    ) == (
        True,
        3,
        True,
    )


def test_types_must_match() -> None:
    """7.12 step 1: "types must match when either is a traceable wrapper"."""

    class Other(Boxed):
        pass

    made, func = boxed(1.0), core.alias.default
    with pytest.raises(HandlerError, check=code("WrapperOfAnotherClass")) as caught:
        return_and_correct_aliasing(func, (made,), {}, Other(runtime.ones(1)))
    assert str(caught.value) == (
        "A result of `core.alias.default` aliases `self`, which is a `Boxed`, and "
        "is a\n"
        "`Other`: only wrappers of one class can share a storage.\n"
        "  to do: wrap the result in a `Boxed`"
    )
    with pytest.raises(HandlerError, check=code("WrapperOfAnotherClass")):
        return_and_correct_aliasing(func, (runtime.ones(1),), {}, made)
    plain, out = runtime.ones(2), runtime.zeros(2)
    assert return_and_correct_aliasing(func, (plain,), None, out) is out
    assert out.storage() is plain.storage()
    # What is no tensor shares nothing.
    assert return_and_correct_aliasing(func, [], {"self": made}, None) is None


def test_an_operator_that_changes_a_shape_in_place(library: Any) -> None:
    """7.12 step 2: run again on the wrapper, "with dispatch off"."""
    calls: list[str] = []

    def flip_(self: Tensor) -> Tensor:
        calls.append(type(self).__name__)
        _, offset, strides = self._place or (None, 0, self.strides)
        self._shape = self._shape[::-1]
        self._place = self.storage(), offset, strides[::-1]
        self._flat = None
        return self

    op = defined(library, "flip_(Tensor(a!) self) -> Tensor(a!)", flip_, "inplace_view")
    made = Correct(runtime.tensor([[1.0, 2.0]]))
    assert op(made) is made
    assert calls == ["Tensor", "Correct"]
    assert (made.shape, made.inner.shape) == ((2, 1), (2, 1))
    # By keyword, too.
    assert op(self=made) is made
    assert made.shape == (1, 2)


def test_set_is_one_of_them() -> None:
    """7.12 step 2, of an operator of `core`."""
    made, other = correct(1.0), correct(2.0, 3.0)
    assert made.set_(other) is made
    assert (made.shape, made.inner.tolist()) == ((2,), [2.0, 3.0])
    assert made.storage() is other.storage()


def test_one_changed_argument_can_be_followed(library: Any) -> None:
    """7.12 step 2: "exactly one mutated argument allowed"."""
    op = defined(
        library,
        "swap_(Tensor(a!) x, Tensor(b!) y) -> (Tensor(a!), Tensor(b!))",
        lambda x, y: (x, y),
        "inplace_view",
    )
    with pytest.raises(HandlerError, check=code("UnsupportedAliases")) as caught:
        op(correct(1.0), correct(2.0))
    assert str(caught.value) == (
        "The results of `aliasing_test::swap_` cannot be corrected: it changes the "
        "shape\nof 2 arguments; one can be followed.\n"
        "  schema: aliasing_test::swap_(Tensor(a!) x, Tensor(b!) y) -> (Tensor(a!),\n"
        "          Tensor(b!))\n"
        "  to do:  let the handler itself return what its schema says"
    )


def test_written_results_are_the_arguments(library: Any) -> None:
    """7.12 step 3: "one -> the object, several -> same container type"."""
    op = defined(
        library,
        "two_(Tensor(a!) x, *, Tensor(b!) y) -> (Tensor(b!), Tensor(a!))",
        lambda x, y: (y, x),
    )
    x, y, other = correct(1.0), correct(2.0), correct(3.0)
    first, second = op(x, y=y)
    assert first is y
    assert second is x
    for kind in (list, tuple):
        found = return_and_correct_aliasing(op, (x,), {"y": y}, kind([other, other]))
        assert type(found) is kind
        assert [each is exact for each, exact in zip(found, (y, x), strict=True)] == [
            True,
            True,
        ]
    add_ = core.add_.default
    assert return_and_correct_aliasing(add_, (), {"self": x, "other": y}, other) is x


def test_mixed_results_are_unsupported() -> None:
    """7.12 step 3: "mixed write/non-write returns -> Unsupported schema"."""
    schema = parse_schema("aliasing_test::mixed(Tensor(a!) x) -> (Tensor(a!), Tensor)")
    with pytest.raises(HandlerError, check=code("UnsupportedAliases")) as caught:
        correctable_aliases(schema)
    assert str(caught.value) == (
        "The results of `aliasing_test::mixed` cannot be corrected: some results are\n"
        "arguments that were written to, and some are not.\n"
        "  schema: aliasing_test::mixed(Tensor(a!) x) -> (Tensor(a!), Tensor)\n"
        "  to do:  let the handler itself return what its schema says"
    )


def test_operators_without_aliases_return_what_comes() -> None:
    """7.12: nothing to do, and nothing is asked of the arguments."""
    out = object()
    assert return_and_correct_aliasing(core.add.default, ("nonsense",), {}, out) is out


def test_what_is_not_what_the_operator_returns(library: Any) -> None:
    op = defined(
        library,
        "pair(Tensor(a) x) -> (Tensor(a), Tensor)",
        lambda x: (core.alias(x), core.clone(x)),
    )
    one = correct(1.0)
    for out, found in ((one, "a Correct"), ((one,), "1 of them")):
        with pytest.raises(HandlerError, check=code("WrongResultCount")) as caught:
            return_and_correct_aliasing(op, (one,), {}, out)
        assert str(caught.value).replace("\n", " ") == (
            "`aliasing_test.pair.default` returns 2 values, but the result to "
            f"correct is {found}."
        )
    with pytest.raises(CallError):
        return_and_correct_aliasing(op, (), {}, (one, one))


def test_a_new_schema_is_read_anew() -> None:
    """What was worked out belongs to the schema, not to the name."""
    made, out = correct(1.0), correct(2.0)
    kept = []
    schemas = ("f(Tensor(a) x) -> Tensor(a)", "f(Tensor x) -> Tensor")
    for schema, shares in zip(schemas, (True, False), strict=True):
        with runtime.Library(SPACE, "DEF") as library:
            op = defined(library, schema, core.alias)
            kept.append(op)
            found = return_and_correct_aliasing(op, (made,), {}, correct(2.0))
            assert (found.storage() is made.storage()) is shares
    assert kept[0] is kept[1]
    assert out.storage() is not made.storage()


def test_gradients_go_through_a_corrected_view() -> None:
    """7.12: the storage that is shared is the wrapper's, its history is autograd's."""
    made: Any = Correct(runtime.tensor([1.0, 2.0]), requires_grad=True)
    (made[0:1] * 3).backward(correct(1.0))
    assert made.grad.inner.tolist() == [3.0, 0.0]
    with no_dispatch():
        assert made[0:1].storage() is made.storage()
