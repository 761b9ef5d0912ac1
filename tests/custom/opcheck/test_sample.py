"""Calls and copies of them: what they are called, what they share, when two are one."""

from typing import Any

import numpy as np
import pytest

from everyorder.runtime import from_numpy, ops, parse_schema, tensor
from everyorder.runtime.custom.opcheck.sample import (
    META,
    Copier,
    Sample,
    bytes_of,
    equal,
    first_paragraph,
    shared,
    shown_bytes,
)
from everyorder.runtime.keys import DispatchKey
from everyorder.runtime.tensors.generator import default_generator
from everyorder.runtime.tensors.tensor_impl import strided

core = ops.core


def sample_of(text: str, *values: object) -> Sample:
    return Sample(core.rand.default, parse_schema(text), (), "f(...)", values)


def test_the_names_of_arguments_and_results() -> None:
    x = tensor([1.0])
    text = "t::f(Tensor! x, Tensor[] ys, Dict(str, Tensor) d, ...) -> (Tensor y, int)"
    sample = sample_of(text, x, [x, x], {"k": x}, 3, (x,))
    parts = sample.arguments(sample.values)
    names = ["x", "ys[0]", "ys[1]", "d['k']", "value 4[0]"]
    assert [part.label for part in parts] == names
    assert [sample.is_written(part) for part in parts] == [True, *[False] * 4]
    assert sample.result_labels(3) == ["result `y`", "result 1", "result 2"]
    assert [part.label for part in sample.results([x, 1, [x]])] == [
        "result `y`",
        "result 2[0]",
    ]


def test_what_findings_say_of_it() -> None:
    sample = sample_of("t::f(Tensor x) -> Tensor")
    assert sample.about("test") == {
        "test": "test",
        "operator": "t::f",
        "call": "f(...)",
        "schema": "t::f(Tensor x) -> Tensor",
    }


def test_all_calls_draw_alike() -> None:
    sample = sample_of("t::f() -> ()")
    before = default_generator.get_state()
    values = core.rand.default.bind(([3],), {})
    ((one,), (two,)) = sample.run(values), sample.run(values)
    assert one.tolist() == two.tolist()
    assert default_generator.get_state() == before
    with pytest.raises(TypeError):
        sample.run([])
    assert default_generator.get_state() == before


def test_what_shares_a_storage_shares_its_copy() -> None:
    base = tensor([[1.0, 2.0], [3.0, 4.0]])
    view, again = base.t()[1], [base, None, "text"]
    one, (two, *rest) = Copier().values([view, again])
    assert (one.shape, one.strides, one.offset) == ((2,), (2,), 1)
    assert one.storage() is two.storage()
    assert one.storage() is not base.storage()
    assert rest == [None, "text"]
    core.fill_(two, 0)
    assert base.tolist() == [[1, 2], [3, 4]]


def test_apart() -> None:
    base = tensor([1.0, 2.0])
    one, two = Copier(apart=True).values([base, base[0:1]])
    assert one.storage() is not two.storage()


def test_one_tensor_is_copied_once() -> None:
    x = tensor([1.0], requires_grad=True)
    one, two = Copier().values([x, (x,)])
    assert two[0] is one
    assert not one.requires_grad


def test_tensors_that_stand_for_others() -> None:
    x, other = tensor([1.0]), tensor([2.0])
    found: Any = Copier(given={id(x): other}).value({"x": x})
    assert found["x"] is other


def test_without_elements() -> None:
    x = tensor([[1.0, 2.0]]).t()
    made = Copier(meta=True).tensor(x)
    assert (made.device, made.shape, made.strides) == (META, (2, 1), (1, 2))
    assert made.keyset.has(DispatchKey.Meta)
    assert not made.keyset.has(DispatchKey.CPU)


def test_what_can_be_changed_is_copied() -> None:
    given = [object(), {1, 2}]
    made: Any = Copier().value(given)
    assert made[1] == {1, 2}
    assert made[1] is not given[1]


def test_how_tensors_share() -> None:
    x = tensor([1.0, 2.0, 3.0])
    assert shared(x, x) == "they are one object"
    assert shared(x[0:1], x[1:2]) == "they are on one storage"
    assert shared(x, core.clone(x)) == ""
    array = np.zeros(4, np.float32)
    one, other, apart = (from_numpy(array[part]) for part in np.s_[:2, 1:3, 2:])
    assert shared(one, other) == "their memory overlaps"
    assert shared(one, apart) == ""
    meta = tensor([1.0], device="meta")
    assert shared(meta, tensor([1.0], device="meta")) == ""


def test_the_bytes_that_a_view_shows() -> None:
    x = tensor([1, 2, 3, 4], dtype="int16")
    layout = (2,), (2,), 1
    shown = shown_bytes(x, layout, 8)
    assert shown.tolist() == [False, False, True, True, False, False, True, True]
    held = bytes_of(x.storage())
    assert held is not None
    assert strided(held, x.dtype, *layout).tolist() == [2, 4]
    core.fill_(x, 0)
    assert strided(held, x.dtype, *layout).tolist() == [2, 4]


def test_there_are_no_bytes_on_meta() -> None:
    assert bytes_of(tensor([1.0], device="meta").storage()) is None


def test_what_has_no_elements_shows_nothing() -> None:
    x = tensor([], dtype="float32")
    assert not shown_bytes(x, ((0,), (1,), 5), 4).any()


NAN = float("nan")


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        (1, 1, True),
        (1, True, False),
        (1, 1.0, False),
        (NAN, NAN, True),
        (NAN, 1.0, False),
        ("a", "b", False),
        (object(), object(), True),
        (object(), [], False),
        (None, None, True),
    ],
)
def test_equal(one: Any, other: Any, found: bool) -> None:
    assert equal(one, other) is found


def test_an_error_up_to_its_first_empty_line() -> None:
    assert first_paragraph(ValueError("one\n  two\n\nthree")) == "one two"
