"""Kernels: what a callable tells about itself, without being kept alive by it."""

import functools
import gc
import weakref
from typing import Any

import pytest

from everyorder.runtime.dispatch.kernel import (
    Kernel,
    boxed,
    describe,
    facts_of,
    fallthrough,
    kernel_of,
    named_not_supported,
    untyped_kernel_of,
)
from everyorder.runtime.errors.registration import LibraryMisuse
from everyorder.runtime.keys import KeySet
from everyorder.runtime.keys import keyset as keyset_module
from everyorder.runtime.tensors import Tensor
from tests.coded import code
from tests.dispatch.samples import says, t_t


def named(keys: KeySet, x: Tensor, *, n: int, m: float) -> tuple[int, Tensor]:
    return n, x


def any_of_it(*args: Any, **kwargs: Any) -> Any: ...


def keyset_first(keyset: KeySet, x):  # type: ignore[no-untyped-def]  # as people write
    ...


def partly(x: Tensor, y) -> Tensor:  # type: ignore[no-untyped-def]  # that is the mistake
    return x


class Method:
    def method(self, x: int) -> int:
        return x

    def __call__(self, x: Tensor) -> Tensor:
        return x


def test_a_typed_function() -> None:
    kernel = kernel_of(t_t, False)
    facts = kernel.facts
    assert kernel.function is t_t
    assert (facts.kind, facts.name, str(facts.inferred), facts.signature) == (
        "typed",
        "t_t",
        "(Tensor _0) -> Tensor _0",
        "(Tensor _0) -> Tensor _0",
    )
    assert (facts.leading_keyset, facts.keyword_only) == (False, ())
    assert facts.suffix == " :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]"
    assert not kernel.with_keyset


def test_a_leading_keyset_and_keyword_only_parameters() -> None:
    kernel = kernel_of(named, False)
    assert str(kernel.facts.inferred) == (
        "(Tensor _0, int _1, float _2) -> (int _0, Tensor _1)"
    )
    assert kernel.facts.keyword_only == ("n", "m")
    assert kernel.with_keyset


def test_an_untyped_function() -> None:
    kernel = kernel_of(says(1), True)
    assert (kernel.facts.kind, kernel.facts.name) == ("python", "lambda")
    assert kernel.facts.suffix == " :: (none) [ boxed ]"
    assert kernel.facts.inferred is None
    assert kernel.with_keyset


def test_the_annotations_of_a_fallback_tell_nothing() -> None:
    kernel = untyped_kernel_of(named, False)
    assert (kernel.facts.kind, kernel.facts.name) == ("python", "named")
    assert (kernel.facts.inferred, kernel.with_keyset) == (None, False)


def test_half_an_annotation_is_none() -> None:
    """As people write them: what is said of one argument holds for no other."""
    assert kernel_of(partly, False).facts.kind == "python"
    assert kernel_of(any_of_it, False).facts.kind == "python"
    assert kernel_of(keyset_first, False).with_keyset


def test_kernels_as_they_are() -> None:
    assert kernel_of(fallthrough, True) is fallthrough
    assert (fallthrough.function, fallthrough.facts.kind) == (None, "through")
    assert fallthrough.facts.suffix == " :: (none) [ fallthrough boxed ]"
    stack = boxed(says(1))
    assert (stack.facts.kind, stack.facts.name) == ("stack", "lambda")
    assert boxed(says(1), "mine").facts.name == "mine"
    assert named_not_supported.facts.name == "named tensors are not supported"


def test_descriptions_are_free_of_addresses_and_scopes() -> None:
    assert describe(named) == "named"
    assert describe(says(1)) == "lambda"
    assert describe(Method()) == "Method"
    assert describe(Method().method) == "method"
    assert describe(functools.partial(named)) == "partial"
    assert describe(len) == "len"


class Unhashable:
    __hash__ = None  # type: ignore[assignment]  # that is the point

    def __call__(self, x: int) -> int:
        return x


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: Method().method, "typed"),
        (Method, "typed"),
        (Unhashable, "typed"),
        (lambda: functools.partial(t_t), "typed"),
        (lambda: max, "python"),
    ],
)
def test_any_callable_is_a_kernel(make: Any, kind: str) -> None:
    assert kernel_of(make(), False).facts.kind == kind


def test_what_is_remembered_of_a_function_is_one_object() -> None:
    facts = kernel_of(t_t, False).facts
    assert facts is kernel_of(t_t, True).facts
    assert facts.inferred is not None
    assert facts_of(t_t) is not facts_of(t_t)


@pytest.mark.parametrize("make", [Method, lambda: says(1), Unhashable])
def test_nothing_remembered_keeps_a_callable_alive(make: Any) -> None:
    gc.disable()
    try:
        kernel = make()
        dead = weakref.ref(kernel)
        kernel_of(kernel, False)
        del kernel
        assert dead() is None
    finally:
        gc.enable()


def test_kernels_are_values_without_equality() -> None:
    assert kernel_of(t_t, False) != kernel_of(t_t, False)
    with pytest.raises(AttributeError):
        kernel_of(t_t, False).with_keyset = True  # type: ignore[misc]  # that is the mistake
    assert isinstance(boxed(says(1)), Kernel)


def test_a_leading_keyset_may_be_spelled_with_its_module() -> None:
    def kernel(keys: "keyset_module.KeySet", x: Tensor) -> Tensor:
        return x

    facts = kernel_of(kernel, False).facts
    assert (str(facts.inferred), facts.leading_keyset) == (
        "(Tensor _0) -> Tensor _0",
        True,
    )


def test_callables_that_are_equal_are_not_one() -> None:
    class Equal:
        def __init__(self, name: str) -> None:
            self.__name__ = name

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Equal)

        def __hash__(self) -> int:
            return 1

        def __call__(self, x: Tensor) -> Tensor:
            return x

    kernels = [Equal("first"), Equal("second")]
    assert [kernel_of(k, False).facts.name for k in kernels] == ["first", "second"]


def test_what_cannot_be_called_is_no_boxed_kernel() -> None:
    with pytest.raises(LibraryMisuse, check=code("NotAKernel")) as caught:
        boxed(5)  # type: ignore[arg-type]  # that is the mistake
    assert caught.value.fields() == {"call": "boxed(...)", "found": "int"}
