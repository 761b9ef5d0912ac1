"""Signatures: what `help()` says of functions and methods."""

import inspect

import pytest

import runtime
from runtime.operators import functions
from runtime.operators.calling import public
from runtime.tensors.tensor import METHODS


@pytest.mark.parametrize("name", functions.OPERATORS)
def test_every_function_has_a_signature_and_a_sentence(name: str) -> None:
    function = getattr(runtime, name)
    sentence, schema = function.__doc__.split("\n\n")
    assert sentence == public()[name].says
    assert schema.startswith(f"Schema: `core::{name}(")
    assert len(inspect.signature(function).parameters) > 0


def test_a_signature_is_the_schemas() -> None:
    assert str(inspect.signature(runtime.avg_pool2d)) == (
        "(self: 'Tensor', kernel_size: 'int[]', stride: 'int[]' = (), "
        "padding: 'int[]' = (0, 0), ceil_mode: 'bool' = False, "
        "count_include_pad: 'bool' = True, divisor_override: 'int?' = None) -> 'Tensor'"
    )
    assert str(inspect.signature(runtime.sum)) == (
        "(self: 'Tensor', dim: 'int[]?' = None, keepdim: 'bool' = False, *, "
        "dtype: 'ScalarType?' = None) -> 'Tensor'"
    )


def test_every_method_has_a_sentence() -> None:
    names = [name for name, each in public().items() if each.method]
    assert len(names) > 150
    texts = [METHODS[name].__doc__ or "" for name in names]
    assert [text for text in texts if "." not in text.partition("\n")[0]] == []
    assert (METHODS["add_"].__doc__ or "").startswith(
        "The sum of both sides, the right one times `alpha`, in place."
    )


def test_every_sentence_is_one() -> None:
    said = [each.says for each in public().values()]
    assert [text for text in said if not text.endswith(".") or len(text) > 80] == []
