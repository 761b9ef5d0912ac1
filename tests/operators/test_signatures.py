"""Signatures: what `help()` says of functions and methods."""

import inspect

import pytest

import runtime
from runtime.operators import functions, methods
from runtime.operators.signatures import SENTENCES
from runtime.tensors.methods import METHODS


@pytest.mark.parametrize("name", functions.OPERATORS)
def test_every_function_has_a_signature_and_a_sentence(name: str) -> None:
    function = getattr(runtime, name)
    sentence, schema = function.__doc__.split("\n\n")
    assert sentence == SENTENCES[name]
    assert schema.startswith(f"Schema: `core::{name}(")
    assert len(inspect.signature(function).parameters) > 0


def test_a_signature_is_the_schemas() -> None:
    assert str(inspect.signature(runtime.conv2d)) == (
        "(input: 'Tensor', weight: 'Tensor', bias: 'Tensor?' = None, "
        "stride: 'int[]' = (1, 1), padding: 'int[]' = (0, 0), "
        "dilation: 'int[]' = (1, 1), groups: 'int' = 1) -> 'Tensor'"
    )
    assert str(inspect.signature(runtime.sum)) == (
        "(self: 'Tensor', dim: 'int[]?' = None, keepdim: 'bool' = False, *, "
        "dtype: 'ScalarType?' = None) -> 'Tensor'"
    )


def test_every_method_has_a_sentence() -> None:
    names = (*methods.UNARY, *methods.TESTS, *methods.GENERAL, *methods.LISTED)
    texts = [METHODS[name].__doc__ or "" for name in names]
    assert [text for text in texts if text.find("\n\nSchema: `") < 4] == []
    assert (METHODS["add_"].__doc__ or "").startswith(
        "The sum of both sides, the right one times `alpha`, in place."
    )


def test_every_sentence_is_one_and_used() -> None:
    used = {*functions.OPERATORS, *(name.removesuffix("_") for name in METHODS)}
    assert {*SENTENCES} <= {*used, "where"}
    assert all(text.endswith(".") and len(text) < 80 for text in SENTENCES.values())
