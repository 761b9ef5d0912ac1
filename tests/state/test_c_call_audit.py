"""C functions called by operations are listed, and those that hide state are told."""

import _codecs
import _thread
import abc
import asyncio
import atexit
import codecs
import collections
import contextlib
import copy
import cProfile
import datetime
import enum
import fnmatch
import functools
import gc
import hashlib
import importlib
import importlib.util
import itertools
import json
import locale
import math
import operator
import os
import random
import re
import reprlib
import signal
import sqlite3
import sys
import threading
import time
import warnings
import weakref
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from everyorder.harness.engine.protocol import Caveat
from everyorder.harness.state.c_call_audit import CallAudit, pause_call_audit
from everyorder.harness.state.pure_functions import PURE


class Named:
    def __init__(self, name: str) -> None:
        self.name = name

    def __hash__(self) -> int:
        return hash((self.name, id(type(self))))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and self.name == other.name


class Hooked(abc.ABC):  # noqa: B024  # its hook is all that counts
    allowed: ClassVar[set[type]] = set()

    @classmethod
    def __subclasshook__(cls, kind: type) -> bool:
        return kind in cls.allowed


class Colour(enum.Enum):
    RED = 1


def _nothing(*_: object) -> None:
    return None


def _register_codec() -> None:
    _codecs.register(_nothing)
    _codecs.unregister(_nothing)


def _register_abc() -> None:
    class Base(abc.ABC):  # noqa: B024  # it is registered with
        pass

    Base.register(int)


def _at_exit() -> None:
    atexit.register(_nothing)
    atexit.unregister(_nothing)


def _environment() -> None:
    os.environ["EVERYORDER_TEST"] = "1"
    del os.environ["EVERYORDER_TEST"]


def _rename() -> None:
    draw = random.random
    draw()


def _thread_started() -> None:
    _thread.start_new_thread(_nothing, ("a",))


def _warn() -> None:
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("default")
        warnings.warn("planted", stacklevel=1)


def _quiet() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")


def _made_by(factory: Callable[[], Any]) -> None:
    collections.defaultdict[str, Any](factory)["a"]


def _class_made() -> None:
    class Mine(Named):
        pass


def _containers() -> None:
    [1].append(2)
    {"a": 1}.pop("a")
    {1}.add(2)
    (1,).index(1)
    collections.deque([1]).rotate()
    collections.OrderedDict(a=1).move_to_end("a")
    collections.Counter("aa").most_common()
    dict.fromkeys("ab")


def _remembered() -> None:
    @functools.lru_cache
    def remembered(x: int) -> int:
        return x

    remembered(1)
    remembered.cache_clear()


def _suppressed() -> None:
    with contextlib.suppress(KeyError):
        raise KeyError


def _scanned() -> None:
    pattern: Any = re.compile("a")  # typeshed leaves scanners out
    pattern.scanner("aa").match()


def _raised() -> None:
    try:
        raise ValueError("planted").with_traceback(None)
    except ValueError:
        sys.exc_info()


@dataclass
class Point:
    x: int


IMPURE: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "codecs": (_register_codec, ("_codecs.register", "_codecs.unregister")),
    "ABC": (_register_abc, ("_abc._abc_register",)),
    "hook": (
        lambda: isinstance(1, Hooked),
        ("_abc._abc_instancecheck", "_abc._abc_subclasscheck"),
    ),
    "random": (lambda: random.random(), ("Random.random",)),
    "random under a name": (_rename, ("Random.random",)),
    "random of an object": (
        lambda: random.Random(1).randint(1, 2),
        ("Random.getrandbits", "Random.seed"),
    ),
    "address": (lambda: id(Named), ("id",)),
    "hash": (lambda: hash("a"), ("hash",)),
    "clock": (lambda: time.time(), ("time.time",)),
    "date": (lambda: datetime.datetime.now(), ("datetime.now",)),
    "directory": (lambda: os.getcwd(), ("os.getcwd",)),
    "environment": (_environment, ("os.putenv", "os.unsetenv")),
    "exit": (_at_exit, ("atexit.register", "atexit.unregister")),
    "limit": (
        lambda: sys.setrecursionlimit(sys.getrecursionlimit()),
        ("sys.getrecursionlimit", "sys.setrecursionlimit"),
    ),
    "signal": (
        lambda: signal.signal(signal.SIGUSR1, signal.getsignal(signal.SIGUSR1)),
        ("_signal.getsignal", "_signal.signal"),
    ),
    "locale": (lambda: locale.setlocale(locale.LC_ALL), ("_locale.setlocale",)),
    "collector": (lambda: gc.collect(0), ("gc.collect",)),
    "thread": (_thread_started, ("_thread.start_new_thread",)),
    "warning": (_warn, ("_warnings.warn",)),
    "capacity": (lambda: [].__sizeof__(), ("list.__sizeof__",)),
    "references": (lambda: sys.getrefcount(None), ("sys.getrefcount",)),
    "print": (lambda: print(end=""), ("print",)),
    "file": (lambda: open(os.devnull).close(), ("TextIOWrapper.close", "io.open")),
    "database": (
        lambda: sqlite3.connect(":memory:").close(),
        ("Connection.close", "_sqlite3.connect"),
    ),
    "hash that goes on": (
        lambda: hashlib.blake2b().update(b"a"),
        ("blake2b.update",),
    ),
    "compression that goes on": (
        lambda: zlib.compressobj().compress(b"a"),
        ("Compress.compress",),
    ),
    "scanner": (_scanned, ("SRE_Scanner.match",)),
    "key function": (lambda: sorted([2, 1], key=id), ("id",)),
    "mapped": (lambda: list(map(time.ctime, ())), ("time.ctime",)),
    "asked for by name": (
        lambda: operator.methodcaller("ctime")(time),
        ("a function of time by a computed name", "operator.methodcaller"),
    ),
    "factory": (lambda: _made_by(time.time), ("time.time",)),
    "class method passed on": (
        lambda: _made_by(datetime.datetime.now),
        ("datetime.now",),
    ),
    "method of a subclass": (
        lambda: type("Mine", (random.Random,), {})(1).random(),
        ("Random.random", "Random.seed"),
    ),
}

PURE_OPERATIONS: dict[str, Callable[[], Any]] = {
    "containers": _containers,
    "subclass of a dict": lambda: collections.UserDict(a=1).pop("a"),
    "texts": lambda: b"a,b".decode().split(",")[0].upper().format(),
    "numbers": lambda: [math.sqrt(4), int.from_bytes(b"a", "big"), (0.5).hex()],
    "classes": lambda: [
        isinstance(1, int),
        issubclass(int, object),
        getattr(int, "re" + "al"),
    ],
    "ABC of the library": lambda: isinstance([], collections.abc.Sequence),
    "functools": lambda: functools.reduce(operator.add, [1, 2], 0),
    "memo": _remembered,
    "single dispatch": lambda: functools.singledispatch(_nothing)("a"),
    "getters": lambda: [
        sorted(["b"], key=operator.itemgetter(0)),
        operator.attrgetter("real")(len("a")),
    ],
    "itertools": lambda: list(itertools.chain.from_iterable([[1], [2]])),
    "patterns": lambda: re.compile("a+").fullmatch("aa").group(),  # type: ignore[union-attr]  # it matches
    "weak": lambda: [weakref.WeakSet([Named]), weakref.getweakrefs(Named)],
    "locks": lambda: [threading.Lock().acquire(), threading.RLock().acquire()],
    "copies": lambda: copy.deepcopy({"a": [Named("a")]}),
    "json": lambda: json.loads(json.dumps({"a": [1]})),
    "repr": lambda: reprlib.repr([1]),
    "hashable": lambda: {Named("a"): 1}[Named("a")],
    "enum": lambda: [Colour(1), len(Colour)],
    "dates": lambda: datetime.date(2020, 1, 1).isoformat(),
    "class statement": _class_made,
    "context manager": _suppressed,
    "exception": _raised,
    "dataclass": lambda: repr(Point(1)),
    "warnings filtered": _quiet,
}


def audited(operation: Callable[[], Any]) -> CallAudit:
    audit = CallAudit()
    with audit:
        operation()
    return audit


@pytest.mark.parametrize("operation", IMPURE)
def test_c_functions_that_hide_state_are_told(operation: str) -> None:
    function, names = IMPURE[operation]
    audit = audited(function)
    assert audit.impure_calls() == names
    assert audit.complete
    assert audit.caveats() == (Caveat("assumed", f"calls {', '.join(names)}"),)


def test_nothing_is_proven_of_what_is_decided_by_chance() -> None:
    audit = audited(lambda: [os.urandom(1), id(Named)])
    assert audit.caveats() == (
        Caveat("assumed", "calls id"),
        Caveat("outside", "calls os.urandom, which answers by chance"),
    )


@pytest.mark.parametrize("operation", PURE_OPERATIONS)
def test_pure_operations_are_not_told(operation: str) -> None:
    audit = audited(PURE_OPERATIONS[operation])
    assert audit.impure_calls() == ()
    assert audit.caveats() == ()
    assert audit.calls() != ()


def test_calls_are_named_by_the_class_that_defines_them() -> None:
    class Mine(dict[str, int]):
        pass

    audit = audited(
        lambda: [Mine().pop("a", 1), dict.fromkeys("a"), len(""), Mine.mro()]
    )
    assert audit.calls() == ("dict.fromkeys", "dict.pop", "len", "type.mro")


def test_an_import_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "planted_module.py").write_text("import time\nNOW = time.time()\n")
    monkeypatch.syspath_prepend(tmp_path)
    audit = audited(lambda: importlib.import_module("planted_module"))
    del sys.modules["planted_module"]
    assert audit.impure_calls() == ("__import__('planted_module')", "time.time")


def test_an_operation_that_is_a_c_function_itself_is_counted() -> None:
    audit = CallAudit()
    with audit:
        pass
    audit.count(time.time)
    audit.count(functools.partial(functools.partial(atexit.register, _nothing), 1))
    audit.count([].append)
    audit.count(_nothing)
    assert audit.calls() == ("atexit.register", "list.append", "time.time")
    assert audit.impure_calls() == ("atexit.register", "time.time")


def test_several_passes_add_up() -> None:
    audit = CallAudit()
    with audit:
        time.time()
    id(audit)
    with audit:
        sys.getrefcount(None)
    assert audit.impure_calls() == ("sys.getrefcount", "time.time")


def test_calls_of_the_harness_and_of_pytest_do_not_count() -> None:
    def operation() -> None:
        with pytest.raises(ValueError, match="planted"):
            raise ValueError("planted")
        CallAudit().caveats()

    assert audited(operation).impure_calls() == ()


def test_the_profiler_of_before_is_restored() -> None:
    assert sys.getprofile() is None
    audit = CallAudit()
    with audit:
        assert sys.getprofile() is not None
    assert sys.getprofile() is None
    with contextlib.suppress(ValueError), audit:
        raise ValueError
    assert sys.getprofile() is None


def test_a_profiler_that_is_there_is_left_alone() -> None:
    seen: list[str] = []

    def profiler(frame: object, event: str, arg: Any) -> None:
        seen.append(event)

    sys.setprofile(profiler)
    try:
        audit = audited(lambda: time.time())
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(None)
    assert "c_call" in seen
    assert not audit.complete
    assert audit.caveats() == (
        Caveat(
            "assumed",
            "C functions that hide state were not audited: a profiler is installed",
        ),
    )


def test_a_running_profile_of_the_library_goes_on() -> None:
    profile = cProfile.Profile()
    profile.enable()
    audit = audited(lambda: time.time())
    profile.disable()
    assert audit.complete is (sys.version_info >= (3, 12))
    names = [entry.code for entry in profile.getstats()]
    assert "<built-in method time.time>" in names


def test_what_the_harness_does_itself_is_not_listed() -> None:
    audit = CallAudit()
    with audit:
        with pause_call_audit():
            time.time()
        time.monotonic()
    assert audit.impure_calls() == ("time.monotonic",)
    assert audit.complete


def test_a_profiler_of_the_library_is_not_taken_off() -> None:
    """It is written in C: what `sys` tells of it cannot be installed again."""
    profile = cProfile.Profile()
    profile.enable()
    try:
        with pause_call_audit():
            hook: object = sys.getprofile()
            assert hook is profile
    finally:
        profile.disable()


def test_an_operation_that_profiles_by_itself_is_told() -> None:
    def profiler(frame: object, event: str, arg: Any) -> None: ...

    audit = CallAudit()
    with audit:
        sys.setprofile(profiler)
    found = sys.getprofile()
    sys.setprofile(None)
    assert found is profiler
    assert audit.caveats() == (
        Caveat(
            "assumed",
            "calls sys.setprofile; C functions that hide state were not audited: "
            "an operation replaced the profiler",
        ),
    )


def test_an_audit_of_nothing_is_told() -> None:
    assert CallAudit().caveats() == (
        Caveat(
            "assumed",
            "C functions that hide state were not audited: "
            "nothing was played under the audit",
        ),
    )


def test_nothing_is_kept_alive() -> None:
    class Box(list[int]):
        pass

    box = Box()
    watched = weakref.ref(box)
    audit = CallAudit()
    with audit:
        box.append(1)
        (lambda: time.time())()
    del box
    assert watched() is None
    assert audit.impure_calls() == ("time.time",)


def _everything_in(module: str) -> Iterator[str]:
    """The names that PURE could give to a module, as far as this interpreter has it."""
    yield "*"
    yield from vars(importlib.import_module(module))
    kinds: list[type[Any]] = [object]
    for kind in kinds:
        kinds += type.__subclasses__(kind)
        # By the descriptors of `type`: classes of other tests lie about themselves.
        of, names = (type.__dict__[each].__get__ for each in ("__module__", "__dict__"))
        if of(kind) == module:
            yield f"{kind.__qualname__}.*"
            yield from (f"{kind.__qualname__}.{name}" for name in names(kind))


@pytest.mark.parametrize("module", PURE)
def test_pure_names_exist(module: str) -> None:
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"this interpreter has no {module}")
    known = set(_everything_in(module))
    if module == "_sre" and sys.version_info < (3, 12):
        known.add("template")  # made by `re` itself until then
    assert [name for name in PURE[module].split() if name not in known] == []


_BRANCHES: dict[str, tuple[Callable[[bool], object], tuple[str, ...]]] = {
    "datetime.now": (
        lambda rare: datetime.datetime.now() if rare else 1,
        ("datetime.now",),
    ),
    "os.path.exists": (lambda rare: os.path.exists("x") if rare else 1, ("os.stat",)),
    "id": (lambda rare: id(rare) if rare else 1, ("id",)),
    "hash": (lambda rare: hash("x") if rare else 1, ("hash",)),
    "os.getenv": (lambda rare: os.getenv("X") if rare else 1, ("os.environ",)),
    "os.path.join": (lambda rare: os.path.join("x", "y") if rare else 1, ()),
    "copy.copy": (lambda rare: copy.copy("x") if rare else 1, ()),
    "re.compile": (lambda rare: re.compile("x") if rare else 1, ()),
    "json.dumps": (lambda rare: json.dumps("x") if rare else 1, ()),
    "math.sqrt": (lambda rare: math.sqrt(4) if rare else 1, ()),
}


@pytest.mark.parametrize("name", _BRANCHES)
def test_what_code_would_call_in_a_branch_that_was_not_taken_is_named(
    name: str,
) -> None:
    operation, expected = _BRANCHES[name]
    audit = CallAudit()
    with audit:
        operation(False)
    assert audit.impure_calls() == expected


def test_hits_of_a_cache_of_another_package_are_not_state() -> None:
    foreign, audit = functools.lru_cache(fnmatch.translate), CallAudit()
    own = functools.lru_cache(lambda: 1)
    with audit:
        own.cache_info()
    assert audit.impure_calls() == ()
    with audit:
        foreign.cache_info()
    assert audit.impure_calls() == ("_lru_cache_wrapper.cache_info",)


def test_hooks_of_the_program_are_told() -> None:
    """The interpreter calls them, and no name in the code of an operation does."""
    before, tracer = sys.get_asyncgen_hooks(), sys.gettrace()
    sys.set_asyncgen_hooks(firstiter=_nothing)
    try:
        audit = audited(_containers)
    finally:
        sys.set_asyncgen_hooks(*before)
    assert audit.impure_calls() == ("sys.set_asyncgen_hooks",)
    sys.settrace(_nothing)
    try:
        audit = audited(_containers)
    finally:
        sys.settrace(tracer)
    assert audit.impure_calls() == ("sys.settrace",)


def test_what_the_library_looks_up_and_audits_is_not_told() -> None:
    operation = codecs.getencoder
    audit = audited(lambda: [operation("ascii"), asyncio.run(asyncio.sleep(0))])
    assert not {"_codecs.lookup", "sys.audit"} & set(audit.impure_calls())
    assert "_codecs.lookup" in audit.calls()
    assert not [each for each in audit.impure_calls() if each.startswith("_asyncio.")]
