# What is done with tensors gives Any.
# mypy: disable-error-code=no-any-return
"""`get_kernel`: spec 3.13.4."""

from typing import Any

import pytest

from runtime import DispatchKey, KeySet, Library, Tensor, linked, ops, tensor
from runtime.errors.call import MissingArgument, OperatorGone
from runtime.errors.key import UnknownKey
from runtime.errors.registration import NoKernelForKey, SchemaNotFound
from runtime.library import custom_op, get_kernel
from tests.custom.functions import double

X = tensor([1.0])
BOTH = X.keyset | KeySet([DispatchKey.CUDA])


def test_the_kernel_before_is_called_by_the_one_that_overrides() -> None:
    with custom_op("mine::f", double, mutates_args=()) as made:
        before = get_kernel("mine::f", "CPU")
        assert repr(before) == "<HeldKernel mine::f at CPU>"
        assert before.key is DispatchKey.CPU

        def over(keyset: KeySet, x: Tensor) -> Tensor:
            return before.call_boxed(keyset, x) + 1

        with Library("mine", "IMPL", "CPU") as library:
            library.impl("f", over)
            assert made(X).tolist() == [3.0]
            assert get_kernel(made, DispatchKey.CPU).call_boxed(
                X.keyset, X
            ).tolist() == [3.0]
        # It stays itself.
        made.register_kernel("cpu", lambda x: x * 5)
        assert before.call_boxed(X.keyset, X).tolist() == [2.0]


def test_it_works_as_long_as_the_operator_is_defined_by_whomever() -> None:
    made = custom_op("mine::f", double, mutates_args=())
    held = get_kernel("mine::f", "CPU")
    with custom_op("mine::f", lambda x: x * 5, mutates_args=(), schema=ONE):
        assert made.closed
        assert held.call_boxed(X.keyset, X).tolist() == [2.0]
    with pytest.raises(OperatorGone):
        held.call_boxed(X.keyset, X)


ONE = "(Tensor x) -> Tensor"


def test_the_keyset_is_cut_to_the_kernel_and_what_is_below() -> None:
    seen: list[KeySet] = []

    def note(keyset: KeySet, x: Tensor) -> Tensor:
        seen.append(keyset)
        return x * 2

    def passing(below: Any, keyset: KeySet) -> Any:
        seen.append(keyset)
        return below.run

    with Library("mine", "FRAGMENT") as library:
        library.define(f"f{ONE}")
        library.impl("f", note, "CPU")
        library.impl("f", linked(passing, "passing"), "ADInplaceOrView")
        get_kernel("mine::f", "CPU").call_boxed(BOTH, X)
        get_kernel("mine::f", "ADInplaceOrView").call_boxed(X.keyset, X)
    cpu, view = DispatchKey.CPU, DispatchKey.ADInplaceOrView
    assert seen == [KeySet([cpu]), KeySet([cpu, view]), KeySet([cpu])]


def test_what_there_is_no_kernel_for() -> None:
    with custom_op("mine::f", double, mutates_args=()):
        for key in ("Batched", "Autograd"):
            with pytest.raises(NoKernelForKey) as refused:
                get_kernel("mine::f", key)
            assert refused.value.key == key
        with pytest.raises(UnknownKey):
            get_kernel("mine::f", "GPU")
        held = get_kernel(ops.mine.f, "CPU")
        with pytest.raises(MissingArgument):
            held.call_boxed(X.keyset)
    with pytest.raises(SchemaNotFound):
        get_kernel("mine::f", "CPU")


def test_keywords_and_defaults() -> None:
    def scaled(x: Tensor, n: int = 3, *, m: int = 2) -> Any:
        return x * n * m

    schema = "(Tensor x, int n=3, *, int m=2) -> Tensor"
    with custom_op("mine::f", scaled, mutates_args=(), schema=schema):
        held = get_kernel("mine::f", "CPU")
        assert held.call_boxed(X.keyset, X).tolist() == [6.0]
        assert held.call_boxed(X.keyset, X, m=5, n=1).tolist() == [5.0]
