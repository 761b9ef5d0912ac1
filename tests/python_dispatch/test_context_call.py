"""Which context a call is of: that of its tensors, and of no two."""

import gc
from typing import Any

import pytest

import runtime
from runtime import ops
from runtime.errors.call import page
from runtime.errors.context import MixedContexts
from runtime.keys import DispatchKey, KeySet
from runtime.python_dispatch import MAIN, Context
from runtime.python_dispatch.context_library import OTHERS, context_of
from tests.python_dispatch.test_context import Listening, Wrapping, contexts, wrapped
from tests.python_dispatch.thread_state import Look

core: Any = ops.core


class Other(Wrapping):
    """A wrapper of another class."""


def mixed(operator: str, first: str, second: str) -> str:
    return page(
        f"`{operator}` was called with what belongs to the context `{first}` and to "
        f"`{second}`: neither can handle both.",
        ("to do", "unwrap the tensors of one, and wrap them in the other"),
    )


def test_tensors_of_two_contexts_meet_in_no_call() -> None:
    with contexts("a", "b") as (a, b):
        x, y, z = wrapped(a), wrapped(b, Other), wrapped(MAIN)
        before = Look()
        for one, other, first, second in (
            # The class below the other one would be asked first.
            (x, y, "b", "a"),
            (y, x, "b", "a"),
            (x, z, "a", "main"),
        ):
            with pytest.raises(MixedContexts) as caught:
                core.mul(one, other)
            assert str(caught.value) == mixed("core.mul.default", first, second)
            assert caught.value.fields() == {
                "context": first,
                "operator": "core.mul.default",
                "other": second,
            }
        assert before.unchanged()


def test_nor_do_those_of_one_class() -> None:
    """The handler of a class is asked once, so the second is no overloaded argument."""
    with contexts("a", "b") as (a, b):
        x, y = wrapped(a), wrapped(b)
        with pytest.raises(MixedContexts) as caught:
            core.mul(x, y)
        assert str(caught.value) == mixed("core.mul.default", "a", "b")
        plain = runtime.tensor(1.0)
        with pytest.raises(MixedContexts) as caught:
            core.cat([plain, x, y, x])
        assert str(caught.value) == mixed("core.cat.default", "a", "b")


def test_nor_a_mode_and_the_tensors_of_another_context() -> None:
    with contexts("a", "b") as (a, b):
        x = wrapped(a)
        with b:
            mode = Listening().__enter__()
        with pytest.raises(MixedContexts) as caught:
            core.neg(x)
        mode.__exit__()
        assert str(caught.value) == mixed("core.neg.default", "b", "a")
        assert mode.seen == []


def test_tensors_of_two_contexts_may_lie_in_one_another() -> None:
    with contexts("a", "b") as (a, b):
        x = wrapped(a)
        with b:
            y = Other(x)
        found = core.mul(y, 3)
        assert found._context is b
        assert found.inner._context is a
        assert found.inner.inner.item() == 6.0


def test_the_first_tensor_counts_and_then_the_thread() -> None:
    with contexts("a", "b") as (a, b):
        x, plain = wrapped(a), runtime.tensor(1.0)
        by_hand = plain.with_keyset(KeySet([DispatchKey.CPU, DispatchKey.Python]))
        for arguments, expected in (
            ((plain, x), a),
            (([None, plain], (x,)), a),
            ((x, x, 3, "text"), a),
            ((plain, by_hand, None), b),
            ((), b),
        ):
            with b:
                assert context_of(arguments, lambda: "t.f") is expected


def known() -> list[str]:
    gc.collect()
    found = [reference() for reference in tuple(OTHERS)]
    return [each.name for each in found if each is not None]


def test_other_contexts_are_known_as_long_as_anything_is_of_them() -> None:
    context = Context("known")
    x = wrapped(context)
    context.close()
    del context
    assert known().count("known") == 1
    del x
    assert known().count("known") == 0
    assert MAIN.name not in known()
