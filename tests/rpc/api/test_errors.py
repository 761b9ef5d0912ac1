"""What goes wrong on another worker, as its caller gets it."""

import re
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import rpc
from everyorder.runtime.errors.call import NoMatchingOverload
from everyorder.runtime.errors.rpc import RemoteError
from tests.rpc.api import remote_functions as remote
from tests.rpc.api import scripted
from tests.rpc.api.bodies import OTHER, THIRD, in_world


def caught(func: Any, *args: Any) -> list[Exception]:
    """The errors of a call made in the three ways."""
    errors: list[Exception] = []
    ways: tuple[Any, ...] = (
        lambda: rpc.rpc_sync(OTHER, func, args),
        lambda: rpc.rpc_async(OTHER, func, args).wait(),
        lambda: rpc.remote(OTHER, func, args).to_here(),
    )
    for way in ways:
        with pytest.raises(Exception) as e:  # noqa: PT011  # asked by the caller
            way()
        assert isinstance(e.value, Exception)
        errors.append(e.value)
    return errors


@pytest.mark.spec("rpc 4.5", "class, text, frames")
@pytest.mark.spec("rpc 10", "D15 an error has its class and is a RuntimeError")
@in_world
def test_an_error_has_the_class_of_the_original_and_is_a_runtime_error() -> None:
    for kind in (ValueError, TypeError, AttributeError, OSError, remote.Coded):
        for error in caught(remote.raises, kind, "Expected error"):
            assert isinstance(error, kind)
            assert isinstance(error, RuntimeError)


@pytest.mark.spec("rpc 4.5", "class, text, frames")
@in_world
def test_its_text_says_where_it_was_raised_and_what_it_was() -> None:
    for error in caught(remote.raises, ValueError, "Expected error"):
        text = str(error)
        assert "On WorkerInfo(id=1, name=worker1):" in text
        assert text.startswith("ValueError: Expected error\n")
        # The frames of the other worker.
        assert re.search(r"remote_functions\.py.*in raises", text, re.DOTALL)


@pytest.mark.spec("rpc 8 errors", "an error without a text")
@in_world
def test_an_error_without_a_text() -> None:
    for error in caught(remote.raises_no_text):
        assert isinstance(error, ValueError)
        assert str(error).startswith("ValueError: \n")


@pytest.mark.spec("rpc 4.5", "un-escaping")
@pytest.mark.spec("rpc 8 errors", "texts of several lines")
@pytest.mark.spec("rpc 10", "D16 texts beyond ASCII")
@in_world
def test_texts_of_several_lines_and_other_letters_arrive_as_they_are() -> None:
    text = "first\nsecond\t'third' \"fourth\" \\n é ü 漢 🙂"
    for error in caught(remote.raises, ValueError, text):
        assert text in str(error)
        # Un-escaping it again changes nothing of plain text.
        plain = str(caught(remote.raises, ValueError, "a\nb")[0])
        assert plain.encode().decode("unicode_escape") == plain


@pytest.mark.spec("rpc 4.5", "KeyError")
@in_world
def test_a_key_error() -> None:
    for error in caught(remote.raises_key_error):
        assert isinstance(error, KeyError)
        assert "absent" in str(error)


@pytest.mark.spec("rpc 4.5", "classes that one text does not make")
@pytest.mark.spec("rpc 8 errors", "classes that cannot be built again")
@in_world
def test_an_error_that_cannot_be_built_again_is_told() -> None:
    for error in caught(remote.raises_two_texts):
        assert isinstance(error, RuntimeError)
        assert "TwoTexts" in str(error)
        assert "one" in str(error)
        assert "two" in str(error)


@pytest.mark.spec("rpc 4.5", "SystemExit and KeyboardInterrupt")
@in_world
def test_what_ends_a_program_ends_a_call_only() -> None:
    for kind in (SystemExit, KeyboardInterrupt):
        with pytest.raises(RuntimeError, match=kind.__name__):
            rpc.rpc_sync(OTHER, remote.leaves, (kind,))
    assert rpc.rpc_sync(OTHER, remote.worker_name) == OTHER


@pytest.mark.spec("rpc 4.5", "operators and compiled functions")
@pytest.mark.spec("rpc 8 errors", "operators")
@in_world
def test_an_operator_that_fails() -> None:
    x, y = runtime.ones(2), runtime.ones(3)
    for error in caught(runtime.add, x, y):
        assert isinstance(error, RuntimeError)
        assert "cannot combine shapes (2,) and (3,)" in str(error)


@pytest.mark.spec("rpc 3.8", "arguments of an operator that fit no overload")
@in_world
def test_an_operator_with_the_wrong_arguments_is_refused_at_the_caller() -> None:
    for call in (rpc.rpc_sync, rpc.rpc_async, rpc.remote):
        with pytest.raises(NoMatchingOverload, match="core::add") as e:
            call(OTHER, runtime.ops.core.add, ("a", "b"))
        # Raised here: it passed no worker.
        assert not isinstance(e.value, RemoteError)


@pytest.mark.spec("rpc 8 errors", "the wrong number of arguments")
@in_world
def test_the_wrong_number_of_arguments() -> None:
    for error in caught(remote.add, 1, 2, 3):
        assert isinstance(error, TypeError)
        assert "takes from 1 to 2 positional arguments but 3 were given" in str(error)


@pytest.mark.spec("rpc 4.5", "results that cannot be pickled")
@in_world
def test_a_result_that_cannot_be_pickled() -> None:
    with pytest.raises(RuntimeError, match="pickle"):
        rpc.rpc_sync(OTHER, remote.not_pickled)
    with pytest.raises(RuntimeError, match="pickle"):
        rpc.rpc_async(OTHER, remote.not_pickled).wait()
    # On its owner it is a value like any other.
    rref = rpc.remote(OTHER, remote.not_pickled)
    assert rpc.rpc_sync(OTHER, remote.is_owned, (rref,))
    with pytest.raises(RuntimeError, match="pickle"):
        rref.to_here()


@pytest.mark.spec("rpc 4.5", "a function that the callee lacks")
@pytest.mark.spec("rpc 8 errors", "functions that are not there")
@in_world
def test_a_function_that_the_other_worker_lacks() -> None:
    rpc.rpc_sync(OTHER, remote.without_gone)
    for error in caught(remote.gone_elsewhere):
        assert isinstance(error, RuntimeError)
        assert "gone_elsewhere" in str(error)
        words = " ".join(str(error).split())
        assert "the RPC pickler does not serialize the code" in words


@pytest.mark.spec("rpc 8 errors", "within calls")
@in_world
def test_an_error_of_a_call_within_a_call_names_both_workers() -> None:
    for error in caught(remote.raises_on, THIRD, "deep down"):
        assert isinstance(error, ValueError)
        assert "deep down" in str(error)
        assert "name=worker1" in str(error)
        assert "name=worker2" in str(error)


@pytest.mark.spec("rpc 4.5", "the same each time")
@pytest.mark.spec("rpc 8 futures", "waited twice")
@in_world
def test_a_future_gives_the_same_error_each_time() -> None:
    future = rpc.rpc_async(OTHER, remote.raises, (ValueError, "Expected error"))
    found: list[Exception] = []
    for _ in range(2):
        with pytest.raises(ValueError, match="Expected error") as e:
            future.wait()
        found.append(e.value)
    assert found[0] is found[1]


@pytest.mark.spec("rpc 4.5", "the same each time")
@in_world
def test_a_reference_whose_making_failed_tells_each_time() -> None:
    rref = rpc.remote(OTHER, remote.raises, (ValueError, "Expected error"))
    for _ in range(2):
        with pytest.raises(ValueError, match="Expected error"):
            rref.to_here()
    # The making itself was told and done.
    assert rref._get_future().wait() is None
    with pytest.raises(ValueError, match="Expected error"):
        rref._get_type()
    with pytest.raises(ValueError, match="Expected error"):
        rpc.rpc_sync(OTHER, remote.local, (rref,))


@pytest.mark.spec("rpc 8 errors", "within calls")
@in_world
def test_the_worker_is_as_before_after_any_error() -> None:
    for _ in range(20):
        caught(remote.raises, ValueError, "again")
    assert rpc.rpc_sync(OTHER, remote.add, (1, 1)) == 2


@pytest.mark.spec("rpc 4.5", "operators and compiled functions")
@in_world
def test_a_compiled_function_that_fails() -> None:
    for error in caught(scripted.failing, 1):
        assert isinstance(error, RuntimeError)
        assert "Expected error" in str(error)
        # Where it was in the program.
        said = "".join((str(error), *getattr(error, "__notes__", ())))
        assert 'raise ValueError("Expected error")' in said


@pytest.mark.spec("rpc 4.5", "operators and compiled functions")
@in_world
def test_a_compiled_function_with_the_wrong_arguments() -> None:
    from everyorder.runtime.errors.call import CallError

    for args, kwargs in (
        ((1, 2, 3), {}),
        (("text",), {}),
        ((), {}),
        ((runtime.ones(1),), {"q": 1}),
    ):
        for call in (rpc.rpc_sync, rpc.rpc_async, rpc.remote):
            # At the caller, before anything is sent.
            with pytest.raises(CallError, match="doubled_plus"):
                call(OTHER, scripted.doubled_plus, args, kwargs)
