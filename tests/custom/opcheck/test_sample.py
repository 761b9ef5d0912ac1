"""What a call and its tensors are called."""

import pytest

from runtime import ops, parse_schema, tensor
from runtime.custom.opcheck.sample import Sample
from runtime.random import default_generator

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
