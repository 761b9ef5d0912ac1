"""Operators that cannot be run on clones of their arguments are found."""

from functools import partial
from itertools import count
from typing import Any

from everyorder.runtime import default_generator, ops, tensor
from everyorder.runtime.custom.opcheck import opcheck
from tests.custom.opcheck import planted
from tests.custom.opcheck.planted import Planted, found

core = ops.core
TEST = "test_functionalization"
says = partial(planted.says, test=TEST)
agrees = partial(found, test=TEST)


def first_two(values: Any = None) -> tuple[Any, Any, Any]:
    """A base, and two views of it that overlap."""
    base = tensor([1.0, 2.0, 3.0, 4.0])
    return base, base[:3], base[1:]


def test_operators_that_may_be_run_on_clones() -> None:
    _, x, y = first_two()
    assert agrees(core.add_.default, x, y) == {}
    assert agrees(core.neg.out, x, out=y) == {}
    assert agrees(core.neg.out, x, out=core.zeros([0])) == {}
    assert agrees(core.as_strided.default, y, [2], [2], 0) == {}
    assert agrees(core.cat.default, [x, y, x]) == {}


def test_a_write_that_is_read_through_another_argument(define: Planted) -> None:
    def read_again(x: Any, y: Any) -> Any:
        core.zero_(x)
        return core.add(y, 1)

    handle = define("f(Tensor(a!) x, Tensor y) -> Tensor", read_again)
    _, x, y = first_two()
    assert (
        says(handle, x, y)
        == """\
test_functionalization: `check::f` run on clones, which are then copied back,
differs from the call in place, in result 0.
  call:   check::f(<Tensor>, <Tensor>)
  schema: check::f(Tensor(a!) x, Tensor y) -> Tensor
  seen:   3.0 at (0,), in place 1.0
  to do:  let results depend on the elements and layouts of the arguments alone,
          and declare what is written"""
    )
    assert agrees(handle, x, tensor([1.0])) == {}


def test_a_write_that_is_not_declared(define: Planted) -> None:
    def other(x: Any, y: Any) -> Any:
        core.neg_(y)
        return core.neg_(x)

    handle = define("f(Tensor(a!) x, Tensor y) -> Tensor(a!)", other)
    assert (
        says(handle, tensor([1.0]), tensor([2.0]))
        == """\
test_functionalization: `check::f` run on clones, which are then copied back,
differs from the call in place, in argument `y`.
  call:   check::f(<Tensor>, <Tensor>)
  schema: check::f(Tensor(a!) x, Tensor y) -> Tensor(a!)
  seen:   2.0 at (0,), in place -2.0
  to do:  let results depend on the elements and layouts of the arguments alone,
          and declare what is written"""
    )


def test_a_kernel_that_asks_who_shares_memory(define: Planted) -> None:
    def picky(x: Any, y: Any) -> Any:
        if x.storage() is not y.storage():
            raise ValueError("strangers")
        return core.neg_(x)

    handle = define("f(Tensor(a!) x, Tensor y) -> Tensor(a!)", picky)
    _, x, y = first_two()
    assert (
        says(handle, x, y)
        == """\
test_functionalization: `check::f` run on clones, which are then copied back,
differs from the call in place, in its outcome.
  call:   check::f(<Tensor>, <Tensor>)
  schema: check::f(Tensor(a!) x, Tensor y) -> Tensor(a!)
  seen:   on clones it raised ValueError: strangers
  to do:  let results depend on the elements and layouts of the arguments alone,
          and declare what is written"""
    )


def test_a_result_of_another_form(define: Planted) -> None:
    def picky(x: Any, y: Any) -> Any:
        return [x + 1] if x.storage() is y.storage() else [x + 1, x + 2]

    handle = define("f(Tensor x, Tensor y) -> Tensor[]", picky)
    _, x, y = first_two()
    assert (
        says(handle, x, y)
        == """\
test_functionalization: `check::f` run on clones, which are then copied back,
differs from the call in place, in result 0.
  call:   check::f(<Tensor>, <Tensor>)
  schema: check::f(Tensor x, Tensor y) -> Tensor[]
  seen:   2 values, in place 1
  to do:  let results depend on the elements and layouts of the arguments alone,
          and declare what is written"""
    )


def test_a_result_of_another_shape(define: Planted) -> None:
    def picky(x: Any, y: Any) -> Any:
        return [x + 1] if x.storage() is y.storage() else [x.sum()]

    handle = define("f(Tensor x, Tensor y) -> Tensor[]", picky)
    _, x, y = first_two()
    assert (
        says(handle, x, y)
        == """\
test_functionalization: `check::f` run on clones, which are then copied back,
differs from the call in place, in result 0[0].
  call:   check::f(<Tensor>, <Tensor>)
  schema: check::f(Tensor x, Tensor y) -> Tensor[]
  seen:   shape (), in place (3,)
  to do:  let results depend on the elements and layouts of the arguments alone,
          and declare what is written"""
    )


def test_a_value(define: Planted) -> None:
    handle = define(
        "f(Tensor x, Tensor y) -> bool", lambda x, y: x.storage() is y.storage()
    )
    _, x, y = first_two()
    assert (
        says(handle, x, y)
        == """\
test_functionalization: `check::f` run on clones, which are then copied back,
differs from the call in place, in result 0.
  call:   check::f(<Tensor>, <Tensor>)
  schema: check::f(Tensor x, Tensor y) -> bool
  seen:   False, in place True
  to do:  let results depend on the elements and layouts of the arguments alone,
          and declare what is written"""
    )


def test_arguments_that_are_clones_of_one_object_stay_one(define: Planted) -> None:
    handle = define("f(Tensor x, Tensor y) -> bool", lambda x, y: x is y)
    x = tensor([1.0])
    assert agrees(handle, x, x) == {}


def test_two_answers_to_one_question(define: Planted) -> None:
    calls = count()
    handle = define("f(Tensor x) -> Tensor", lambda x: core.add(x, next(calls)))
    assert agrees(handle, tensor([1.0])) == {}


def test_a_tag_says_that_bits_differ(define: Planted) -> None:
    answers = iter([False, False, True])
    tags = ["nondeterministic_bitwise"]
    handle = define("f(Tensor x) -> bool", lambda x: next(answers), tags)
    assert agrees(handle, tensor([1.0])) == {}
    assert [*answers] == [False, False, True]


def test_random_numbers_are_the_same_ones() -> None:
    before = default_generator.get_state()
    assert agrees(core.native_dropout.default, core.zeros([40]) + 1, 0.5) == {}
    assert default_generator.get_state() == before


def test_tolerances(define: Planted) -> None:
    def picky(x: Any, y: Any) -> Any:
        return x + (0 if x.storage() is y.storage() else 0.25)

    handle = define("f(Tensor x, Tensor y) -> Tensor", picky)
    args = first_two()[1:]
    assert agrees(handle, *args) != {}
    report = opcheck(handle, args, test_utils=TEST, rtol=0.0, atol=0.5)
    assert report == {TEST: "SUCCESS"}
