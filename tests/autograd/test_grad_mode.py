"""Recording on and off, by thread, and inference mode."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from everyorder.runtime import tensor
from everyorder.runtime.autograd import (
    autocast,
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from everyorder.runtime.errors.autograd import AutogradMisuse, WriteRefused
from everyorder.runtime.errors.registration import KeyMisuse
from everyorder.runtime.keys import LOCAL, DispatchKey, KeySet
from everyorder.runtime.tensors.keys import INFERRING
from tests.coded import code, coded

InferenceTensorUsed = coded(WriteRefused, "InferenceTensorUsed")


def test_recording_is_on_at_first_in_every_thread() -> None:
    seen = []
    with no_grad():
        worker = threading.Thread(target=lambda: seen.append(is_grad_enabled()))
        worker.start()
        worker.join()
        seen.append(is_grad_enabled())
    assert seen == [True, False]


def test_no_grad_makes_leaves() -> None:
    x = tensor([1.0], requires_grad=True)
    with no_grad():
        y = x * 2
        with enable_grad():
            z = x * 2
    assert (y.requires_grad, y.is_leaf) == (False, True)
    assert (z.requires_grad, z.is_leaf) == (True, False)


def test_a_mode_ends_with_an_exception() -> None:
    with pytest.raises(KeyError), no_grad():
        raise KeyError
    assert is_grad_enabled()


def test_a_mode_nests_in_itself() -> None:
    mode = no_grad()
    with mode, mode:
        pass
    assert is_grad_enabled()


def test_decorated_functions_run_inside() -> None:
    @no_grad()
    def outer() -> tuple[bool, bool]:
        return is_grad_enabled(), inner()

    @enable_grad()
    def inner() -> bool:
        return is_grad_enabled()

    assert outer() == (False, True)
    assert outer.__name__ == "outer"
    assert is_grad_enabled()


def test_decorated_generators_hold_while_they_run() -> None:
    ended = []

    @no_grad()
    def steps() -> Iterator[bool]:
        try:
            yield is_grad_enabled()
            yield is_grad_enabled()
        finally:
            ended.append(is_grad_enabled())

    running = steps()
    assert next(running) is False
    assert is_grad_enabled()
    assert next(running) is False
    with pytest.raises(StopIteration):
        next(running)
    assert ended == [False]
    assert is_grad_enabled()


def test_a_decorated_generator_takes_what_is_sent_and_thrown() -> None:
    @no_grad()
    def echo() -> Iterator[object]:
        got: object = None
        while True:
            try:
                got = yield got
            except KeyError as error:
                got = error.args

    running: Any = echo()
    next(running)
    assert running.send(3) == 3
    assert running.throw(KeyError("a")) == ("a",)
    running.close()
    assert is_grad_enabled()


def test_set_grad_enabled_as_call_context_and_decorator() -> None:
    set_grad_enabled(False)
    assert not is_grad_enabled()
    set_grad_enabled(True)
    assert is_grad_enabled()
    with set_grad_enabled(False) as mode:
        assert not is_grad_enabled()
    assert is_grad_enabled()
    with mode:
        assert not is_grad_enabled()
    assert is_grad_enabled()

    @set_grad_enabled(False)
    def run() -> bool:
        return is_grad_enabled()

    assert is_grad_enabled()
    assert (run(), is_grad_enabled()) == (False, True)


def test_inference_mode_changes_the_keys_and_restores_them() -> None:
    before = LOCAL.view
    with inference_mode():
        assert is_inference_mode_enabled()
        assert not is_grad_enabled()
        assert KeySet.from_bits(LOCAL.included) == KeySet(DispatchKey.BackendSelect)
        assert DispatchKey.AutogradOther in KeySet.from_bits(LOCAL.excluded)
        with inference_mode(False):
            assert LOCAL.view is before
            assert is_grad_enabled()
            assert not is_inference_mode_enabled()
    assert LOCAL.view is before
    assert not is_inference_mode_enabled()


def test_inference_tensors_are_tracked_by_nobody() -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    with inference_mode():
        made = tensor([1.0, 2.0])
        result = x * 2
        view = x.view(2)
        made.add_(1)
    names = {key.name for key in made.keyset}
    assert names == {"CPU", "AutocastCPU"}
    assert (result.is_inference(), result.requires_grad) == (True, False)
    # The view of an ordinary tensor is ordinary, and shares its elements.
    assert (view.is_inference(), view.requires_grad) == (False, True)
    assert made.tolist() == [2, 3]


def test_inference_tensors_outside() -> None:
    with inference_mode():
        made = tensor([1.0, 2.0])
    assert made.view(2).is_inference()
    assert not (made + 1).is_inference()
    assert (made * 2).tolist() == [2, 4]
    with pytest.raises(InferenceTensorUsed) as modified:
        made.add_(1)
    assert modified.value.fields() == {
        "use": "modified",
        "operator": "core::add_",
        "shape": (2,),
    }
    assert made.tolist() == [1, 2]
    with pytest.raises(InferenceTensorUsed) as saved:
        made * tensor([1.0, 1.0], requires_grad=True)
    assert saved.value.use == "saved"
    with pytest.raises(InferenceTensorUsed) as asked:
        made.requires_grad_()
    assert str(asked.value) == (
        "A tensor of shape (2,) was made in inference_mode() and cannot require grad.\n"
        "  to do: use a clone() of it, made outside of inference_mode()"
    )
    assert not made.clone().is_inference()


def test_an_ordinary_tensor_keeps_its_version_in_inference_mode() -> None:
    x = tensor([1.0])
    with inference_mode():
        x.add_(1)
    assert x._version == 1


@pytest.mark.parametrize("mode", [no_grad, enable_grad, inference_mode])
def test_coroutines_are_refused(mode: type[no_grad]) -> None:
    async def later() -> None: ...

    with pytest.raises(AutogradMisuse, check=code("ModeMisuse")) as refused:
        mode()(later)
    assert refused.value.fields() == {"mode": mode.__name__, "function": "later"}


@pytest.mark.parametrize("mode", [inference_mode, lambda: autocast("cpu")])
def test_what_another_thread_ends_changes_nothing_there(mode: Any) -> None:
    """A generator that holds a mode, ended where it was not begun."""

    def holding() -> Iterator[None]:
        with mode():
            yield

    held = holding()
    thread = threading.Thread(target=next, args=(held,))
    thread.start()
    thread.join()
    before = (is_grad_enabled(), LOCAL.view)
    with pytest.raises(KeyMisuse, check=code("GuardLeftElsewhere")):
        held.close()  # type: ignore[attr-defined]  # a generator
    assert (is_grad_enabled(), LOCAL.view) == before
    # Nobody can end it any more where it was begun; it goes with who held it.
    del held, thread
    assert not INFERRING
