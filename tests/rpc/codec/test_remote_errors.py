"""Remote errors: what of an exception arrives, in which class, with which text."""

import copy
import gc
import pickle
import sys
import textwrap
import traceback
import weakref
from abc import ABC
from collections.abc import Callable
from types import ModuleType
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everyorder import runtime
from everyorder.runtime.errors import (
    EveryorderError,
    FutureMisuse,
    LookupFailed,
    RemoteError,
    RpcError,
    RpcMisuse,
    RpcTimeout,
    Undecodable,
    WorkerLost,
)
from everyorder.runtime.errors.base import code_of
from everyorder.runtime.futures import Future
from everyorder.runtime.rpc.codec import pack_error, restricted, unpack_error
from everyorder.runtime.rpc.protocol.identities import WorkerInfo
from tests.rpc.codec.things import BEYOND, LOCK, THERE, as_received, there


def raised(error: BaseException) -> BaseException:
    """The exception with a frame of its own."""
    try:
        raise error
    except BaseException as caught:
        return caught


def here(
    error: BaseException, worker: WorkerInfo = THERE, *, trusted: bool = True
) -> RemoteError:
    """The exception, raised at a worker, as its caller gets it."""
    return unpack_error(as_received(pack_error(raised(error), worker)), trusted=trusted)


class Plain(Exception):
    pass


class Coded(Exception):
    code, rows, words, head = 404, 5, "w", "h"


class Within(Exception):
    def __init__(self, flag: bool, text: str) -> None:
        super().__init__(text)
        self.flag = flag


# Classes.


@pytest.mark.parametrize(
    "error",
    [
        ValueError("v"),
        TypeError("t"),
        KeyError("k"),
        RuntimeError("r"),
        Exception("e"),
        AssertionError(),
        ZeroDivisionError("z"),
        FileNotFoundError(2, "no such file", "name"),
        UnicodeDecodeError("utf-8", b"abc", 0, 1, "why"),
        ImportError("i", name="module", path="/path"),
        AttributeError("a", name="attribute"),
        NotImplementedError("n"),
        RecursionError("deep"),
        SyntaxError("s", ("file", 1, 2, "text")),
        TimeoutError("late"),
        Plain("p"),
        Within(True, "w"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_the_class_derives_from_its_own_and_from_runtime_error(
    error: Exception,
) -> None:
    """D15: arguments and attributes are those that it had."""
    found = here(error)
    assert isinstance(found, type(error))
    assert isinstance(found, RuntimeError)
    assert isinstance(found, RemoteError)
    assert type(found).__name__ == type(error).__name__
    assert found.args == error.args
    assert found.remote_text == str(error)
    assert str(found).startswith(f"{type(error).__name__}: {error}\nOn WorkerInfo(")
    for name in ("errno", "filename", "start", "object", "name", "path", "flag", "msg"):
        assert getattr(found, name, None) == getattr(error, name, None), name


def test_the_text_has_worker_and_frames() -> None:
    found = here(ValueError("bad"))
    head, worker, *frames = str(found).splitlines()
    assert (head, worker) == ("ValueError: bad", "On WorkerInfo(id=1, name=there):")
    assert frames[0] == "Traceback (most recent call last):"
    assert frames[1].endswith(", in raised")
    assert found.remote_traceback == "\n".join([worker, *frames])


def test_an_error_without_frames() -> None:
    found = unpack_error(pack_error(ValueError("bad"), THERE).payload)
    assert str(found) == "ValueError: bad\nOn WorkerInfo(id=1, name=there):\n"


def test_one_class_for_each_class() -> None:
    """Made once, and let go of with the last exception."""
    assert type(here(ValueError(1))) is type(here(ValueError(2)))

    module = ModuleType("values_short_lived")
    sys.modules[module.__name__] = module
    kind = type("Short", (Exception,), {"__module__": module.__name__})
    module.Short = kind  # type: ignore[attr-defined]  # made just now
    made = weakref.ref(type(here(kind())))
    gone = weakref.ref(kind)
    del sys.modules[module.__name__], module, kind
    gc.collect()
    assert made() is None
    assert gone() is None


@pytest.mark.parametrize(
    "error",
    [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), StopIteration(4)],
    ids=lambda error: type(error).__name__,
)
def test_what_would_end_the_caller_does_not(error: BaseException) -> None:
    """4.5: it is a RuntimeError by its name."""
    found = here(error)
    assert type(found) is RemoteError
    assert isinstance(found, RuntimeError)
    assert str(found).startswith(f"{type(error).__name__}: {error}\n")


def test_a_class_that_is_not_here() -> None:
    class Local(Exception):
        pass

    found = here(Local("x"))
    assert type(found) is RemoteError
    assert found.remote_type.endswith("<locals>.Local")
    away = type("Away", (Exception,), {"__module__": "no_such_module_here"})
    assert type(here(away("y"))) is RemoteError
    assert str(here(away("y"))).startswith("Away: y\n")


def test_of_errors_of_ours() -> None:
    """Fields and all: it can be caught as if it were raised here."""
    late = RpcTimeout(code="RpcTimeout", call="`f`", worker="w", milliseconds=3)
    found = here(late)
    assert isinstance(found, RpcTimeout)
    assert isinstance(found, TimeoutError)
    assert (found.worker, found.milliseconds) == ("w", 3)
    assert "RPC ran for more than set timeout (3 ms)" in str(found)
    assert isinstance(here(RpcError()), RpcError)
    assert isinstance(here(EveryorderError()), EveryorderError)


# Texts.


@settings(max_examples=60)
@given(st.text(st.characters(exclude_categories=())))
def test_texts_are_kept(text: str) -> None:
    """D16: of any characters, backslashes and halves of surrogate pairs too."""
    found = here(ValueError(text))
    assert found.remote_text == text
    assert found.args == (text,)
    assert str(found).startswith(f"ValueError: {text}\n")
    # A program that un-escapes what it shows gets what was said, if that is ASCII.
    if text.isascii() and "\\" not in text:
        head = f"ValueError: {found.remote_text}"
        assert head.encode().decode("unicode_escape") == head


def test_lines_stay_lines() -> None:
    """Nothing of an ordinary text is escaped."""
    text = "\nFirst line\n next line\n last line"
    head = str(here(ValueError(text))).partition("\nOn Worker")[0]
    assert head == f"ValueError: {text}"


# Hops.


def test_each_worker_once_the_nearest_first() -> None:
    """A calls B, which calls C."""
    at_b = here(ValueError("from C"), BEYOND)
    at_a = here(at_b, THERE)
    assert type(at_a) is type(at_b)
    assert at_a.remote_text == "from C"
    assert [who for who, _ in at_a.remote_hops] == [repr(THERE), repr(BEYOND)]
    text = str(at_a)
    assert text.startswith("ValueError: from C\nOn WorkerInfo(id=1, name=there):\n")
    assert [text.count(repr(each)) for each in (THERE, BEYOND)] == [1, 1]
    assert text.count("ValueError") == 1


def test_a_remote_error_raised_in_other_words() -> None:
    """The cause has its own hops; the new error has those that it passed."""

    def wrap() -> None:
        try:
            raise here(KeyError("from C"), BEYOND)
        except KeyError as error:
            raise ValueError("from B") from error

    with pytest.raises(ValueError, match="from B") as caught:
        wrap()
    found = here(caught.value, THERE)
    cause = found.__cause__
    assert isinstance(found, ValueError)
    assert isinstance(cause, KeyError)
    assert isinstance(cause, RemoteError)
    assert [who for who, _ in found.remote_hops] == [repr(THERE)]
    assert [who for who, _ in cause.remote_hops] == [repr(THERE), repr(BEYOND)]


# What belongs to an exception.


def test_causes_contexts_and_notes() -> None:
    def fail() -> None:
        try:
            raise KeyError("first")
        except KeyError:
            error = ValueError("second")
            error.add_note("a note")
            raise error  # noqa: B904  # with a context

    with pytest.raises(ValueError, match="second") as caught:
        fail()
    found = here(caught.value)
    assert found.__notes__ == ["a note"]
    assert isinstance(found.__context__, KeyError)
    assert found.__cause__ is None
    assert not found.__suppress_context__
    shown = "".join(traceback.format_exception(found))
    assert shown.index("KeyError: 'first'") < shown.index("ValueError: second")
    assert shown.endswith("a note\n")
    caught.value.__suppress_context__ = True
    assert here(caught.value).__suppress_context__


def test_causes_in_a_circle() -> None:
    one, two = ValueError("one"), KeyError("two")
    one.__cause__, two.__context__ = two, one
    found = here(one)
    assert isinstance(found.__cause__, KeyError)
    assert found.__cause__.__context__ is None


def test_long_chains_are_cut() -> None:
    last: BaseException = ValueError("0")
    for number in range(1, 200):
        error = ValueError(str(number))
        error.__cause__ = last
        last = error
    found: BaseException | None = here(last)
    count = 0
    while found is not None:
        found, count = found.__cause__, count + 1
    assert 10 < count < 100


def test_groups() -> None:
    """Members are remote errors; `except*` takes them apart."""
    inner: Exception = ExceptionGroup("inner", [KeyError("k")])
    found: Any = here(ExceptionGroup("outer (really)", [ValueError("v"), inner]))
    assert isinstance(found, ExceptionGroup)
    assert isinstance(found, RuntimeError)
    assert found.message == "outer (really)"
    first, second = found.exceptions
    assert isinstance(first, ValueError)
    assert isinstance(second, ExceptionGroup)
    seen: list[Any] = []
    try:
        raise found
    except* KeyError as part:
        seen += [part.exceptions[0]]
    except* ValueError as part:
        seen += [part]
    assert len(seen) == 2


def test_a_group_of_what_ends_processes() -> None:
    found = here(BaseExceptionGroup("g", [SystemExit(1), ValueError("v")]))
    assert isinstance(found, ExceptionGroup)
    assert [type(each) is RemoteError for each in found.exceptions] == [True, False]


# Hostile and broken.


class Wordless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class NotText(Exception):
    def __str__(self) -> str:
        return 3  # type: ignore[return-value]  # broken


class Subtle(str):
    pass


class SubtleText(Exception):
    def __str__(self) -> str:
        return Subtle("subtle")


class Unreducible(Exception):
    def __reduce__(self) -> Any:
        raise RuntimeError("never")


class Bomb(Exception):
    """Whoever makes one hears of it."""

    made: ClassVar[list[str]] = []

    def __new__(cls, *args: Any) -> "Bomb":
        cls.made.append("new")
        return super().__new__(cls, *args)

    def __init__(self, *args: Any) -> None:
        self.made.append("init")

    def __setattr__(self, name: str, value: Any) -> None:
        self.made.append(f"set {name}")
        super().__setattr__(name, value)


class Final(Exception):
    def __init_subclass__(cls) -> None:
        raise TypeError("final")


class Properties(Exception):
    @property
    def remote_text(self) -> str:
        """What it says."""
        return "mine"

    @property
    def args(self) -> Any:  # type: ignore[override]  # broken
        """No arguments."""
        raise RuntimeError("no arguments")


class Meta(type):
    def __hash__(cls) -> int:
        raise TypeError("no hash")


class Unhashable(Exception, metaclass=Meta):
    pass


def test_no_constructor_runs_at_the_caller() -> None:
    error = raised(Bomb(1))
    error.code = 5  # type: ignore[attr-defined]  # any attribute
    packed = pack_error(error, THERE)
    Bomb.made.clear()
    found = unpack_error(packed.payload)
    assert isinstance(found, Bomb)
    assert (found.args, vars(found)["code"]) == ((1,), 5)
    assert Bomb.made == []


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Wordless("x"), "(its text raises RuntimeError)"),
        (NotText("x"), "(its text raises TypeError)"),
        (SubtleText(), "subtle"),
        (Unreducible("x"), "x"),
        (Final("x"), "x"),
        (Unhashable("x"), "x"),
        (Within(LOCK, "lock"), "lock"),  # type: ignore[arg-type]  # whatever it is
        (ValueError(LOCK), str(ValueError(LOCK))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_errors_that_break(error: Exception, text: str) -> None:
    found = here(error)
    assert str(found).startswith(f"{type(error).__name__}: {text}\n")
    assert isinstance(found, RuntimeError)
    if not isinstance(error, Final | Unhashable):
        assert isinstance(found, type(error))


def test_attributes_with_names_of_ours() -> None:
    found = here(Properties("x"))
    assert isinstance(found, RuntimeError)
    assert "Properties" in str(found)


def test_arguments_that_cannot_travel() -> None:
    found = here(ValueError("a", LOCK))
    assert found.args == (found.remote_text,)
    assert not hasattr(here(Within(LOCK, "w")), "flag")  # type: ignore[arg-type]  # as above


class Traps:
    """Cannot be read."""

    def __reduce__(self) -> Any:
        return int, ("no number",)


def test_arguments_that_cannot_be_read() -> None:
    error = Within(Traps(), "w")  # type: ignore[arg-type]  # whatever it is
    found = here(error)
    assert isinstance(found, Within)
    assert not hasattr(found, "flag")
    assert here(ValueError(Traps())).args[0].startswith("<tests")


def test_notes_that_are_none() -> None:
    error = ValueError("x")
    error.__notes__ = 5  # type: ignore[assignment]  # broken
    assert not hasattr(here(error), "__notes__")
    error.__notes__ = ["a", 5]  # type: ignore[list-item]  # broken
    assert here(error).__notes__ == ["a"]


def test_packing_never_raises() -> None:
    deep: Any = 1
    for _ in range(99):
        deep = [deep]
    found = here(ValueError(deep))
    assert isinstance(found, RemoteError)
    assert found.remote_text.startswith("[[[")


# Trust.


def test_of_whom_is_not_trusted_nothing_is_loaded() -> None:
    """Classes of Python and of this package only; arguments as they are, or none."""
    found = here(ValueError("v", 3), trusted=False)
    assert isinstance(found, ValueError)
    assert found.args == ("v", 3)
    late = here(
        RpcTimeout(code="RpcTimeout", call="f", worker="w", milliseconds=1),
        trusted=False,
    )
    assert isinstance(late, RpcTimeout)
    assert type(here(Plain("p"), trusted=False)) is RemoteError
    assert here(ValueError(THERE, int), trusted=False).args[0].startswith("(WorkerInfo")
    record = ("no_such_module_here", "X", "text")
    assert (
        type(unpack_error(restricted.pack(record).payload, trusted=False))
        is RemoteError
    )
    assert "no_such_module_here" not in sys.modules


@pytest.mark.parametrize(
    "qualname", ["Exception.__class__", "exit", "int", "print", "x"]
)
def test_names_that_are_no_classes_of_exceptions(qualname: str) -> None:
    payload = restricted.pack(("builtins", qualname, "text")).payload
    assert type(unpack_error(payload)) is RemoteError


@pytest.mark.parametrize(
    "value",
    [None, 3, (), (1, 2, 3), ("a", "b", 3), ("a", "b", "c", 5), ("a", "b", "c", (1,))],
)
def test_what_is_no_error(value: Any) -> None:
    with pytest.raises(Undecodable):
        unpack_error(restricted.pack(value).payload)


def test_tensors_are_no_records() -> None:
    """One without elements may say that it has endlessly many rows."""
    endless = runtime.ones(0).expand(2**40, 0)
    for value in (
        endless,
        ("a", "b", "c", endless),
        ("a", "b", "c", (endless,)),
        ("a", "b", "c", (), endless),
        ("a", "b", "c", (), (), endless),
        ("a", "b", "c", (), (), (), endless),
        ("a", "b", "c", (), (), (), (endless,)),
        ("a", "b", "c", (), (), (), (), endless),
        ("a", "b", "c", (), (), (), (), None, None, False, endless),
    ):
        with pytest.raises(Undecodable):
            unpack_error(restricted.pack(value).payload, trusted=False)
    # As an argument it is taken for what it is.
    whole = ("builtins", "ValueError", "c", (), (), (endless, ("value", endless)))
    found = unpack_error(restricted.pack(whole).payload, trusted=False)
    assert found.args == ("c",)


PARTS = st.one_of(
    st.none(), st.text(), st.integers(), st.tuples(st.text(), st.text()), st.booleans()
)


@settings(max_examples=100)
@given(st.lists(st.one_of(PARTS, st.lists(PARTS).map(tuple)), max_size=11))
def test_any_record(parts: list[Any]) -> None:
    """An error, or that it is none: nothing else comes out."""
    record = ("builtins", "ValueError", "text", *parts)[:11]
    payload = restricted.pack(record).payload
    try:
        found = unpack_error(payload, trusted=False)
    except Undecodable:
        return
    assert isinstance(found, RemoteError)
    assert str(found).startswith("ValueError: text\n")


# Moved on.


def again(error: RemoteError) -> RemoteError:
    """Through ordinary pickle."""
    found: RemoteError = pickle.loads(pickle.dumps(error))
    return found


@pytest.mark.parametrize("move", [again, copy.copy, copy.deepcopy, there])
def test_remote_errors_can_be_pickled_again(move: Callable[[Any], Any]) -> None:
    error: Any = here(Within(True, "w"))
    error.add_note("note")
    error.__cause__ = here(KeyError("k"), BEYOND)
    found = move(error)
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert (found.flag, found.args, found.__notes__) == (True, ("w",), ["note"])
    assert str(found.__cause__) == str(error.__cause__)
    plain = move(here(SystemExit(3)))
    assert type(plain) is RemoteError
    assert str(plain).startswith("SystemExit: 3\n")


def test_an_uncaught_one_shows_all() -> None:
    shown = traceback.format_exception_only(here(ValueError("bad")))
    assert "".join(shown).startswith(
        textwrap.dedent(
            """\
            ValueError: ValueError: bad
            On WorkerInfo(id=1, name=there):
            Traceback (most recent call last):
            """
        )
    )


def test_errors_of_operators_and_programs_arrive() -> None:
    """As they are at home: fields, and the frames of the program as a note."""

    @runtime.jit.script
    def divided(x: int) -> int:
        return 1 // x

    with pytest.raises(Exception, match="zero") as caught:
        divided(0)
    found = here(caught.value)
    assert isinstance(found, type(caught.value))
    assert getattr(found, "__notes__", None) == getattr(caught.value, "__notes__", None)
    with pytest.raises(EveryorderError) as wrong:
        runtime.add(runtime.ones(2), "x")  # type: ignore[arg-type]  # wrong
    assert isinstance(here(wrong.value), type(wrong.value))


@pytest.mark.parametrize("trusted", [True, False])
def test_what_an_error_does_is_no_attribute(trusted: bool) -> None:
    """Whatever the names of attributes are, its text can be had."""
    error: Any = ValueError("v")
    error.render = error.with_traceback = "shadow"
    error.kept = "kept"
    found: Any = here(error, trusted=trusted)
    assert str(found).startswith("ValueError: v\n")
    assert found.kept == "kept"
    assert found.with_traceback(None) is found


def test_of_a_stranger_s_error_no_method_is_an_attribute() -> None:
    error: Any = ExceptionGroup("g", [ValueError("v")])
    error.split = error.kept = "shadow"
    found: Any = here(error, trusted=False)
    assert found.split(ValueError)[0] is not None
    assert found.kept == "shadow"


# Codes.


def test_what_a_class_of_somebody_calls_as_errors_of_ours_do_is_its_own() -> None:
    error: Any = here(Coded("x"))
    assert isinstance(error, Coded)
    assert (error.code, error.rows, error.words, error.head) == (404, 5, "w", "h")
    assert code_of(error) == "Coded"
    assert str(error).startswith("Coded: x") or "Coded: x" in str(error)


def test_an_error_of_ours_keeps_its_code() -> None:
    lost = WorkerLost(call="f", worker="w1", reason="it ended")
    assert here(lost).code == lost.code == code_of(here(lost))
    missing = KeyError("x")
    assert code_of(here(missing)) == "KeyError"
    future: Future[Any] = Future()
    future.set_exception(here(ValueError("x")))
    assert "the error ValueError" in repr(future)


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (LookupFailed(code="UnknownKey", name="x"), KeyError),
        (LookupFailed(code="UnknownOperator", operator="a::b"), AttributeError),
        (RpcMisuse(code="NoSuchMethod", kind="K", attribute="a"), AttributeError),
        (RpcMisuse(code="ExtraMissing", call="c", package="p"), ImportError),
        (RpcMisuse(code="UnknownWorker", worker="w", found="v"), RuntimeError),
    ],
)
def test_a_remote_error_is_of_the_builtin_classes_too(
    error: EveryorderError, builtin: type[Exception], trusted: bool
) -> None:
    found: Any = here(error, trusted=trusted)
    assert isinstance(found, builtin)
    assert isinstance(found, type(error))
    assert found.code == error.code
    for name, value in error.fields().items():
        assert getattr(found, name) == value
    again = pickle.loads(pickle.dumps(found))
    assert isinstance(again, type(error))


def test_a_code_that_is_no_text_gives_no_class() -> None:
    """A peer may send anything for a code."""
    error = LookupFailed(code="UnknownKey", name="x")
    error.code = ["UnknownKey"]  # type: ignore[assignment]  # on purpose
    found = here(error)
    assert isinstance(found, LookupFailed)
    assert not isinstance(found, KeyError)


class OfTheirs(Exception, ABC):
    """A class with a metaclass of its own."""


def test_a_class_with_a_metaclass_is_caught_by_its_class() -> None:
    assert isinstance(here(OfTheirs("x")), OfTheirs)


def test_a_code_that_cannot_be_read_leaves_the_class() -> None:
    error = raised(FutureMisuse(call="f", found="x", wanted="y"))
    error.code = LOCK  # type: ignore[attr-defined]  # whatever it is
    assert isinstance(here(error), FutureMisuse)
