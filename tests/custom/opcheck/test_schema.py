"""What operators write to and share is found, and the schema that would be true."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from everyorder.runtime import Dispatcher, ops, parse_schema, tensor
from everyorder.runtime.custom.opcheck import opcheck
from everyorder.runtime.custom.opcheck.checks import Seen, corrected, may_share
from everyorder.runtime.tensors.construction import from_numpy, view_of
from tests.custom.opcheck import planted
from tests.custom.opcheck.planted import Planted, found

core = ops.core
says = partial(planted.says, test="test_schema")
NAN = float("nan")


def copy(x: Any) -> Any:
    return x.clone()


# Written, and not declared.


def raised(x: Any) -> Any:
    x.numpy()[...] += 1
    return x.clone()


def test_an_argument_that_is_written(define: Planted) -> None:
    handle = define("f(Tensor x) -> Tensor", raised)
    x = tensor([[1.0, 2.0], [3.0, 4.0]])
    assert (
        says(handle, x)
        == """\
test_schema: `check::f` wrote to argument `x`, which its schema does not
declare.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> Tensor
  seen:   element (0, 0) was 1.0 and is 2.0 (4 of 4 elements changed)
  right:  check::f(Tensor(a!) x) -> Tensor"""
    )
    assert x.tolist() == [[1, 2], [3, 4]]


def test_an_argument_that_is_written_and_returned(define: Planted) -> None:
    def add_one(x: Any) -> Any:
        return core.add_(x, 1)

    handle = define("f(Tensor x) -> Tensor", add_one)
    assert (
        says(handle, tensor([1.0]))
        == """\
test_schema: `check::f` wrote to argument `x`, which its schema does not
declare.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> Tensor
  seen:   element (0,) was 1.0 and is 2.0 (1 of 1 elements changed)
  right:  check::f(Tensor(a!) x) -> Tensor(a!)"""
    )


def test_a_nan_that_becomes_another(define: Planted) -> None:
    def other_nan(x: Any) -> None:
        x.numpy().view(np.uint32)[...] ^= 1

    handle = define("f(Tensor x) -> ()", other_nan)
    assert (
        says(handle, tensor([NAN]))
        == """\
test_schema: `check::f` wrote to argument `x`, which its schema does not
declare.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> ()
  seen:   element (0,) was nan and is nan, of other bits (1 of 1 elements
          changed)
  right:  check::f(Tensor(a!) x) -> ()"""
    )


def test_a_nan_that_stays(define: Planted) -> None:
    assert (
        found(define("f(Tensor x) -> Tensor", copy), tensor([NAN]), test="test_schema")
        == {}
    )


def test_an_argument_that_is_not_contiguous(define: Planted) -> None:
    def last(x: Any) -> Any:
        x.numpy()[-1, 0] = 9
        return x.clone()

    handle = define("f(Tensor x) -> Tensor", last)
    x = tensor([[1, 2, 3], [4, 5, 6]]).t()[1:]
    assert (
        says(handle, x)
        == """\
test_schema: `check::f` wrote to argument `x`, which its schema does not
declare.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> Tensor
  seen:   element (1, 0) was 3 and is 9 (1 of 4 elements changed)
  right:  check::f(Tensor(a!) x) -> Tensor"""
    )


def test_an_element_of_a_list(define: Planted) -> None:
    def second(xs: Any, y: Any) -> Any:
        xs[1].numpy()[0] = 7
        return y.clone()

    handle = define("f(Tensor[] xs, Tensor(a) y) -> Tensor", second)
    args = [tensor([1]), tensor([2, 3])], tensor([4])
    assert (
        says(handle, *args)
        == """\
test_schema: `check::f` wrote to argument `xs[1]`, which its schema does not
declare.
  call:   check::f([<Tensor>, <Tensor>], <Tensor>)
  schema: check::f(Tensor[] xs, Tensor(a) y) -> Tensor
  seen:   element (0,) was 2 and is 7 (1 of 2 elements changed)
  right:  check::f(Tensor(b!)[] xs, Tensor(a) y) -> Tensor"""
    )


def test_a_declared_write_does_not_excuse_the_rest_of_the_storage(
    define: Planted,
) -> None:
    def too_far(x: Any, y: Any) -> Any:
        x.storage().numpy()[...] = 0
        return x

    handle = define("f(Tensor(a!) x, Tensor y) -> Tensor(a!)", too_far)
    base = tensor([1, 2, 3, 4, 5])
    assert (
        says(handle, base[:3], base[2:])
        == """\
test_schema: `check::f` wrote to argument `y`, which its schema does not
declare.
  call:   check::f(<Tensor>, <Tensor>)
  schema: check::f(Tensor(a!) x, Tensor y) -> Tensor(a!)
  seen:   element (0,) was 3 and is 0 (3 of 3 elements changed)
  right:  check::f(Tensor(a!) x, Tensor(b!) y) -> Tensor(a!)"""
    )
    assert (
        says(handle, base[:3], tensor([1]))
        == """\
test_schema: `check::f` wrote to the storage of argument `x`, but not to an
element of an argument that it declares.
  call:   check::f(<Tensor>, <Tensor>)
  schema: check::f(Tensor(a!) x, Tensor y) -> Tensor(a!)
  seen:   2 bytes changed
  to do:  write to elements of the arguments only"""
    )


def test_an_overlap_with_what_is_declared_is_excused(define: Planted) -> None:
    def zero(x: Any, y: Any) -> Any:
        return core.zero_(x)

    handle = define("f(Tensor(a!) x, Tensor y) -> Tensor(a!)", zero)
    base = tensor([1, 2, 3, 4, 5])
    assert found(handle, base[:3], base[1:4], test="test_schema") == {}
    assert found(handle, base, base, test="test_schema") == {}


def test_a_version(define: Planted) -> None:
    def same_elements(x: Any) -> Any:
        core.mul_(x, 1)
        return x.clone()

    handle = define("f(Tensor x) -> Tensor", same_elements)
    assert (
        says(handle, tensor([1.0]))
        == """\
test_schema: `check::f` raised the version of argument `x`, which its schema
does not declare.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> Tensor
  seen:   version 0 before, 1 after
  right:  check::f(Tensor(a!) x) -> Tensor"""
    )


def test_metadata(define: Planted) -> None:
    def turned(x: Any) -> Any:
        result = x.clone()
        x._place, x._flat = (x.storage(), 0, (1, 2)), None
        x._shape = 3, 2
        return result

    def moved(x: Any) -> Any:
        x._place, x._flat = (core.clone(x).storage(), 0, (1,)), None
        return x.clone()

    handle = define("f(Tensor x) -> Tensor", turned)
    assert (
        says(handle, core.zeros([2, 3]))
        == """\
test_schema: `check::f` changed the shape of argument `x`, which its schema does
not declare.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> Tensor
  seen:   (2, 3) before, (3, 2) after
  right:  check::f(Tensor(a!) x) -> Tensor"""
    )
    handle = define("g(Tensor x) -> Tensor", moved)
    assert (
        says(handle, tensor([1.0]))
        == """\
test_schema: `check::g` changed the storage of argument `x`, which its schema
does not declare.
  call:   check::g(<Tensor>)
  schema: check::g(Tensor x) -> Tensor
  seen:   it is on another storage
  right:  check::g(Tensor(a!) x) -> Tensor"""
    )


def test_a_declared_write_is_allowed_and_not_required(define: Planted) -> None:
    def maybe(x: Any, doing: bool) -> Any:
        return core.neg_(x) if doing else x

    handle = define("f(Tensor(a!) x, bool doing) -> Tensor(a!)", maybe)
    assert found(handle, tensor([1.0]), True, test="test_schema") == {}
    assert found(handle, tensor([1.0]), False, test="test_schema") == {}


def test_a_tag_says_that_nothing_is_declared(define: Planted) -> None:
    def itself(x: Any) -> Any:
        return core.neg_(x)

    tags = ("maybe_aliasing_or_mutating",)
    handle = define("f(Tensor x) -> Tensor", itself, tags)
    assert found(handle, tensor([1.0]), test="test_schema") == {}


# Shared, and not declared.


def test_a_result_that_is_an_argument(define: Planted) -> None:
    handle = define("f(Tensor x, int n=3) -> Tensor y", lambda x, n: x)
    assert (
        says(handle, tensor([1.0]))
        == """\
test_schema: Result `y` of `check::f` shares memory with argument `x`, which its
schema does not declare.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x, int n=3) -> Tensor y
  seen:   it is the argument itself
  right:  check::f(Tensor(a) x, int n=3) -> Tensor(a) y
  or:     return a copy"""
    )


def test_a_result_that_is_a_view(define: Planted) -> None:
    handle = define("f(Tensor x, Tensor? y) -> Tensor[]", lambda x, y: [x + 1, y[1:]])
    assert (
        says(handle, tensor([1]), tensor([1, 2]))
        == """\
test_schema: Result 0[1] of `check::f` shares memory with argument `y`, which
its schema does not declare.
  call:   check::f(<Tensor>, <Tensor>)
  schema: check::f(Tensor x, Tensor? y) -> Tensor[]
  seen:   they are on one storage
  right:  check::f(Tensor x, Tensor(a)? y) -> Tensor(a)[]
  or:     return a copy"""
    )


def test_memory_that_is_shared_behind_the_storages(define: Planted) -> None:
    def half(x: Any) -> Any:
        return from_numpy(x.numpy()[1:])

    handle = define("f(Tensor x) -> Tensor", half)
    assert (
        says(handle, tensor([1, 2]))
        == """\
test_schema: Result 0 of `check::f` shares memory with argument `x`, which its
schema does not declare.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> Tensor
  seen:   their memory overlaps
  right:  check::f(Tensor(a) x) -> Tensor(a)
  or:     return a copy"""
    )


def test_an_alias_of_another_argument(define: Planted) -> None:
    handle = define("f(Tensor(a) x, Tensor y) -> Tensor(a)", lambda x, y: y[:1])
    assert (
        says(handle, tensor([1]), tensor([2, 3]))
        == """\
test_schema: Result 0 of `check::f` shares memory with argument `y`, which its
schema does not declare.
  call:     check::f(<Tensor>, <Tensor>)
  schema:   check::f(Tensor(a) x, Tensor y) -> Tensor(a)
  seen:     they are on one storage
  declared: it may share memory with `x`
  right:    check::f(Tensor x, Tensor(b) y) -> Tensor(b)
  or:       return a copy"""
    )


def test_an_alias_of_an_argument_without_elements(define: Planted) -> None:
    handle = define("f(Tensor x) -> Tensor", lambda x: x[1:])
    assert "they are on one storage" in says(handle, tensor([1.0]))


def test_a_surplus_argument_has_no_annotation(define: Planted) -> None:
    handle = define("f(Tensor x, ...) -> Tensor", lambda x, y: y)
    assert (
        says(handle, tensor([1.0]), tensor([2.0]))
        == """\
test_schema: Result 0 of `check::f` shares memory with argument `value 1`, which
its schema does not declare.
  call:   check::f(<Tensor>, <Tensor>)
  schema: check::f(Tensor x, ...) -> Tensor
  seen:   it is the argument itself
  or:     return a copy"""
    )


def test_arguments_that_share_memory_are_one_for_results(define: Planted) -> None:
    handle = define("f(Tensor x, Tensor(a) y) -> Tensor(a)", lambda x, y: y[:1])
    base = tensor([1, 2, 3])
    assert found(handle, base[:2], base[1:], test="test_schema") == {}


# What is said to be right, is.


@pytest.mark.parametrize(
    ("schema", "kernel"),
    [
        ("Tensor x, Tensor y) -> ()", lambda x, y: [core.neg_(y), None][1]),
        ("Tensor x, Tensor y) -> Tensor", lambda x, y: core.neg_(y)),
        ("Tensor x, Tensor y) -> (Tensor, Tensor)", lambda x, y: (core.neg_(y), x)),
        ("Tensor(a) x, Tensor y) -> Tensor(a)", lambda x, y: y[:1]),
        ("Tensor(a!) x, Tensor y) -> Tensor(a!)", lambda x, y: y),
        ("Tensor(a!) x, Tensor(b) y) -> Tensor(b)", lambda x, y: x),
        ("Tensor(a) x, Tensor(b) y) -> (Tensor(a), Tensor(b))", lambda x, y: (y, x)),
        ("Tensor x, Tensor y) -> Tensor[]", lambda x, y: [x, y]),
        ("Tensor x, Tensor? y) -> Tensor?", lambda x, y: y),
        ("Tensor(a) x, Tensor y) -> Tensor(a)[]", lambda x, y: [x.clone()]),
        ("Tensor x, Tensor y) -> (Tensor, Tensor)", lambda x, y: (x.clone(),) * 2),
    ],
)
def test_the_right_schema(define: Planted, schema: str, kernel: Any) -> None:
    args = tensor([1.0, 2.0]), tensor([3.0, 4.0])
    report = opcheck(define(f"f({schema}", kernel), args, raise_exception=False)
    error: Any = report["test_schema"]
    right = error.right.removeprefix("check::").replace("f(", "right(", 1)
    assert found(define(right, kernel), *args, test="test_schema") == {}


# Declared, and not shared.


def test_an_alias_that_never_comes_about(define: Planted) -> None:
    handle = define("f(Tensor(a) x, int n) -> (Tensor(a) y, Tensor)",
                    lambda x, n: (x + n, x * n))  # fmt: skip
    assert (
        says(handle, tensor([1.0]), 2)
        == """\
test_schema: Result `y` of `check::f` does not share memory with `x`, as its
schema declares.
  call:   check::f(<Tensor>, 2)
  schema: check::f(Tensor(a) x, int n) -> (Tensor(a) y, Tensor)
  seen:   a copy, of contiguous arguments and in every dtype too
  right:  check::f(Tensor x, int n) -> (Tensor y, Tensor)"""
    )


def test_an_alias_that_comes_about_elsewhere(define: Planted) -> None:
    def as_float(x: Any) -> Any:
        return x if x.dtype.name == "float32" and x.is_contiguous() else x.float()

    handle = define("f(Tensor(a) x) -> Tensor(a)", as_float)
    x = tensor([[1, 2, 3], [4, 5, 6]])
    assert found(handle, x.t(), test="test_schema") == {}


def test_a_written_argument_that_is_not_returned(define: Planted) -> None:
    def in_place(x: Any) -> Any:
        return core.neg_(x).clone()

    handle = define("f(Tensor(a!) x) -> Tensor(a!)", in_place)
    assert (
        says(handle, tensor([1.0]))
        == """\
test_schema: Result 0 of `check::f` does not share memory with `x`, as its
schema declares.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor(a!) x) -> Tensor(a!)
  seen:   another tensor was returned
  right:  check::f(Tensor(a!) x) -> Tensor"""
    )


def test_a_result_that_may_be_anything(define: Planted) -> None:
    handle = define("f(Tensor(a) x, Tensor y) -> Tensor(*)", lambda x, y: y)
    assert found(handle, tensor([1.0]), tensor([2.0]), test="test_schema") == {}


def test_none_and_nothing_share_no_memory(define: Planted) -> None:
    handle = define("f(Tensor(a)? x, Tensor(b) y) -> (Tensor(a)?, Tensor(b))",
                    lambda x, y: (x, y[:0]))  # fmt: skip
    assert found(handle, None, tensor([2.0]), test="test_schema") == {}


# Results.


def test_results_that_share_memory(define: Planted) -> None:
    def twice(x: Any) -> Any:
        y = x.clone()
        return y, y[:1]

    handle = define("f(Tensor x) -> (Tensor, Tensor)", twice)
    assert (
        says(handle, tensor([1, 2]))
        == """\
test_schema: Result 0 and result 1 of `check::f` share memory, which its schema
does not declare.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> (Tensor, Tensor)
  seen:   they are on one storage
  right:  check::f(Tensor x) -> (Tensor(a), Tensor(a))
  or:     return a copy"""
    )
    handle = define("g(Tensor x) -> (Tensor(a), Tensor(a))", twice)
    assert found(handle, tensor([1, 2]), test="test_schema") == {}


def test_elements_of_a_result_that_share_memory(define: Planted) -> None:
    handle = define("f(Tensor x) -> Tensor[]", lambda x: [*x.clone().split(1)])
    assert (
        says(handle, tensor([1, 2]))
        == """\
test_schema: Result 0[0] and result 0[1] of `check::f` share memory, which its
schema does not declare.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> Tensor[]
  seen:   they are on one storage
  right:  check::f(Tensor x) -> Tensor(a)[]
  or:     return a copy"""
    )


def test_results_that_no_schema_says(define: Planted) -> None:
    handle = define("f(Tensor x) -> ...", lambda x: (x, x, 1))
    assert found(handle, tensor([1, 2]), test="test_schema") == {}
    handle = define("g(Tensor x, ...) -> Tensor(*)", lambda x, y: y)
    assert found(handle, tensor([1]), tensor([2]), test="test_schema") == {}


def test_an_own_dispatcher() -> None:
    made = Planted(Dispatcher())
    with made.library:
        handle = made("f(Tensor x) -> Tensor", raised)
        assert (
            says(handle, tensor([[1.0]]))
            == """\
test_schema: `check::f` wrote to argument `x`, which its schema does not
declare.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> Tensor
  seen:   element (0, 0) was 1.0 and is 2.0 (1 of 1 elements changed)
  right:  check::f(Tensor(a!) x) -> Tensor"""
        )


def test_tensors_without_elements(define: Planted) -> None:
    handle = define(
        "f(Tensor x) -> Tensor", copy, Meta=lambda x: view_of(x, (1,), (1,), 0)
    )
    x = core.zeros([1], device="meta")
    assert "they are on one storage" in says(handle, x)


@pytest.mark.parametrize(
    ("line", "seen", "right"),
    [
        ("Tensor x) -> ()", Seen(written={0}), "Tensor(a!) x) -> ()"),
        ("Tensor(a) x) -> Tensor(a)", Seen(written={0}),
         "Tensor(a!) x) -> Tensor(a)"),
        ("Tensor(b) x, Tensor y) -> Tensor(b)", Seen(written={1}),
         "Tensor(b) x, Tensor(a!) y) -> Tensor(b)"),
        ("Tensor[]? xs) -> ()", Seen(written={0}), "Tensor(a!)[]? xs) -> ()"),
        ("Tensor x) -> Tensor", Seen(shares={0: {0}}), "Tensor(a) x) -> Tensor(a)"),
        ("Tensor x) -> Tensor", Seen(written={0}, shares={0: {0}}),
         "Tensor(a!) x) -> Tensor(a!)"),
        ("Tensor(a!) x) -> Tensor", Seen(shares={0: {0}}),
         "Tensor(a!) x) -> Tensor(a!)"),
        ("Tensor x, Tensor y) -> Tensor[]", Seen(shares={0: {0, 1}}),
         "Tensor(a) x, Tensor(b) y) -> Tensor(a|b)[]"),
        ("Tensor! x) -> Tensor", Seen(shares={0: {0}}),
         "Tensor(a!) x) -> Tensor(a!)"),
        ("Tensor(a) x, Tensor y) -> Tensor(a)", Seen(shares={0: {1}}),
         "Tensor x, Tensor(b) y) -> Tensor(b)"),
        ("Tensor(a) x) -> (Tensor(a), Tensor)", Seen(pairs={(0, 1)}),
         "Tensor(a) x) -> (Tensor(a|b), Tensor(b))"),
        ("Tensor x) -> Tensor[]", Seen(pairs={(0, 0)}), "Tensor x) -> Tensor(a)[]"),
        ("Tensor(a) x, Tensor(a) y) -> (Tensor(a), Tensor(a))", Seen(unshared={1}),
         "Tensor(a) x, Tensor(a) y) -> (Tensor(a), Tensor)"),
        ("Tensor(a!) x) -> Tensor(a!)", Seen(unshared={0}), "Tensor(a!) x) -> Tensor"),
        ("Tensor x, ...) -> Tensor", Seen(written={3}, shares={0: {4}}), None),
    ],
)  # fmt: skip
def test_corrections(line: str, seen: Seen, right: str | None) -> None:
    found = corrected(parse_schema(f"ns::f({line}"), seen)
    assert found == ("" if right is None else f"ns::f({right}")
    if right:
        assert str(parse_schema(found)) == found


def test_letters_do_not_run_out() -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    taken = ", ".join(f"Tensor({letter}) {letter}" for letter in letters)
    found = corrected(parse_schema(f"ns::f({taken}, Tensor z2) -> ()"), Seen({26}))
    assert found.endswith("Tensor(a0!) z2) -> ()")


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("Tensor(a) x) -> Tensor(a)", True),
        ("Tensor(a) x) -> Tensor(a)[]", True),
        ("Tensor(a -> *) x) -> Tensor(b)[]", True),
        ("Tensor x) -> Tensor(*)", True),
        ("Tensor(a -> b) x) -> Tensor(a)", False),
        ("Tensor(a) x) -> Tensor(b)", False),
        ("Tensor! x) -> Tensor", False),
        ("Tensor x) -> Tensor", False),
    ],
)
def test_what_may_share_memory(line: str, allowed: bool) -> None:
    schema = parse_schema(f"ns::f({line}")
    assert may_share(schema.arguments[0], schema.returns[0]) is allowed
