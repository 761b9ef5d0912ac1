"""Which packages are followed, and what functions read."""

import argparse
import collections
import contextlib
import dis
import email.message
import functools
import gc
import inspect
import json
import logging
import subprocess
import sys
import textwrap
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from everyorder.harness.state import FollowedScope, Heap, differences, scope_of
from everyorder.harness.state.code_value import read_code

HERE = __name__.partition(".")[0]
ROOT = Path(__file__).parent.parent.parent


class Registry(argparse.ArgumentParser):
    """A class of a class of the library."""


class Plain:
    """A class of its own."""

    def method(self) -> None: ...


def function() -> None: ...


def generate() -> Iterator[int]:
    yield 1


@contextlib.contextmanager
def manager() -> Iterator[int]:
    yield 1


@functools.lru_cache
def cached() -> None: ...


@pytest.mark.parametrize(
    ("thing", "packages"),
    [
        (Plain(), {HERE}),
        (Plain, {HERE}),
        (function, {HERE}),
        (Plain().method, {HERE}),
        (functools.partial(function), {HERE}),
        (functools.partial(print, Plain()), {HERE}),
        (staticmethod(function), {HERE}),
        (cached, {HERE}),
        (generate(), {HERE}),
        (manager, {HERE, "contextlib"}),
        ([Plain(), {"a": json.loads}], {HERE, "json"}),
        (Registry(), {HERE, "argparse"}),
        (logging.Manager(logging.RootLogger(1)), {"logging"}),
        (collections.UserDict(), {"collections"}),
        (email.message, {"email"}),
        ({}.pop, set()),
        (len, set()),
        (3, set()),
        ("text", set()),
        (None, set()),
        (functools.partial(len), set()),
    ],
    ids=lambda each: type(each).__name__,
)
def test_the_packages_of_a_thing(thing: Any, packages: set[str]) -> None:
    assert scope_of([thing]).packages - {"_collections_abc"} == packages


def test_the_ignored_paths_belong_to_the_scope() -> None:
    scope = scope_of([Plain()], ["registry._next_id", "*.hits"])
    assert scope == FollowedScope(frozenset({HERE}), ("registry._next_id", "*.hits"))
    assert scope_of([Plain()]) == FollowedScope(frozenset({HERE}))


def test_what_is_outside_is_a_name_only_where_the_name_yields_it() -> None:
    heap = Heap(FollowedScope(frozenset({HERE})))
    copy = types.FunctionType(json.loads.__code__, {"__name__": "json"}, "loads")
    copy.__module__ = "json"
    copy.__qualname__ = "loads"
    original = heap.form({"r": json.loads})
    assert original.objects == 1
    assert heap.form({"r": copy}).objects > 1
    fake = types.ModuleType("json")
    assert heap.form({"r": json}).objects == 1
    assert heap.form({"r": fake}) != heap.form({"r": json})
    assert heap.form({"r": json.JSONEncoder}).objects == 1
    made = type("JSONEncoder", (), {"__module__": "json.encoder"})
    assert heap.form({"r": made}).objects > 1


def test_a_function_put_in_place_of_another_is_not_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heap = Heap(FollowedScope(frozenset({HERE})))

    def replace(state: Any) -> Callable[[], Any]:
        @functools.wraps(json.loads)
        def loads() -> Any:
            return state

        return loads

    forms = set()
    for state in (1, 2):
        monkeypatch.setattr(json, "loads", replace(state))
        forms.add(heap.form({"r": json.loads}))
    assert len(forms) == 2


def nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from nested(constant)


GLOBALS = {
    "LOAD_GLOBAL",
    "STORE_GLOBAL",
    "DELETE_GLOBAL",
    "LOAD_NAME",
    "LOAD_FROM_DICT_OR_GLOBALS",
}


@pytest.mark.parametrize(
    "module", [argparse, inspect, typing, logging, dis, subprocess], ids=str
)
def test_the_byte_code_is_read_as_dis_reads_it(module: types.ModuleType) -> None:
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    top = compile(source, "module", "exec")
    found = 0
    for code in nested(top):
        names = {
            each.argval
            for inner in nested(code)
            for each in dis.get_instructions(inner)
            if each.opname in GLOBALS
        }
        imports = {
            each.argval
            for inner in nested(code)
            for each in dis.get_instructions(inner)
            if each.opname == "IMPORT_NAME"
        }
        reads = read_code(code).reads
        assert set(reads.names) == names
        assert {name for _, name, _ in reads.imports} == imports
        found += len(names)
    assert found > 100


def reads_of(source: str) -> Any:
    namespace: dict[str, Any] = {}
    exec(textwrap.dedent(source), namespace)
    return read_code(namespace["f"].__code__).reads


@pytest.mark.parametrize(
    ("source", "chains"),
    [
        ("def f(): return a.b.c", {("a", "b", "c")}),
        ("def f(): a.b.c()", {("a", "b", "c")}),
        ("def f(): a.b = 1", {("a",)}),
        ("def f(): return g(a)", {("a",), ("g",)}),
        ("def f(): return [a.b for _ in c.d]", {("a", "b"), ("c", "d")}),
        ("def f():\n class X:\n  y = a.b\n return X", {("a", "b"), ("__name__",)}),
    ],
)
def test_chains(source: str, chains: set[tuple[str, ...]]) -> None:
    assert set(reads_of(source).chains) == chains


@pytest.mark.parametrize(
    ("source", "imports"),
    [
        ("def f(): from a.b import c, d", {(0, "a.b", ("c", "d"))}),
        ("def f(): import a.b", {(0, "a.b", None)}),
        ("def f(): import a.b as c", {(0, "a.b", None)}),
        ("def f(): from .. import c", {(2, "", ("c",))}),
        ("def f(): from .b import c", {(1, "b", ("c",))}),
    ],
)
def test_imports(source: str, imports: set[Any]) -> None:
    assert set(reads_of(source).imports) == imports


@pytest.mark.parametrize(
    ("source", "whole"),
    [
        ("def f(): return globals()['a']", True),
        ("def f(): return eval('a')", True),
        ("def f(): return [exec('a') for _ in b]", True),
        ("def f(g): return g.__globals__['a']", True),
        ("def f(g): return g.eval()", False),
        ("def f(): return a", False),
    ],
)
def test_who_may_read_any_global(source: str, whole: bool) -> None:
    assert reads_of(source).whole is whole


def test_names_with_long_arguments() -> None:
    many = "".join(f" x{n} = g{n}.a{n}\n" for n in range(400))
    reads = reads_of(f"def f():\n{many}")
    assert set(reads.chains) == {(f"g{n}", f"a{n}") for n in range(400)}


def test_code_is_told_apart_by_all_that_it_is() -> None:
    def digest(source: str, name: str = "<a>") -> bytes:
        code = compile(source, name, "exec")
        return read_code(code).digest

    texts = ["x = 1", "x = True", "x = 1.0", "y = 1", "x = -0.0", "x = 0.0"]
    texts += ["x in {1, 2}", "x in {1, 3}", "lambda: 1", "lambda: 2", "\nx = 1"]
    assert len({digest(text) for text in texts}) == len(texts)
    assert digest("x = 1") == digest("x = 1")
    assert digest("x = 1") != digest("x = 1", "<b>")


def test_an_object_among_the_constants_is_state() -> None:
    held: list[int] = []
    code = function.__code__.replace(co_consts=(held,))
    made = types.FunctionType(code, {"__name__": __name__})
    heap = Heap(FollowedScope(frozenset({HERE})))
    before = heap.form({"r": made})
    held.append(1)
    assert heap.form({"r": made}) != before


PACKAGE = {
    "pack/__init__.py": "",
    "pack/state.py": "CACHE = {}\ncount = 0\nunread = 0\n",
    "pack/lazy.py": "def __getattr__(name):\n    return HIDDEN[name]\nHIDDEN = {}\n",
    "pack/user.py": """
        from pack import state, lazy
        import pack.state as alias
        import pack

        def attribute(): return state.count
        def deep(): return pack.state.count
        def aliased(): return alias.count
        def stored(): state.count = 1
        def passed(): return getattr(state, "un" + "read")
        def late():
            from pack.state import count
            return count
        def relative():
            from .state import count
            return count
        def whole():
            import pack.state
            return pack.state.unread
        def hooked(): return lazy.anything
    """,
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name, text in PACKAGE.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    import pack.user as user  # type: ignore[import-not-found]  # written above

    yield user
    for name in [each for each in sys.modules if each.partition(".")[0] == "pack"]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        ("attribute", "count"),
        ("deep", "count"),
        ("aliased", "count"),
        ("stored", "count"),
        ("passed", "unread"),
        ("late", "count"),
        ("relative", "count"),
        ("whole", "unread"),
    ],
)
def test_attributes_of_modules(package: Any, name: str, attribute: str) -> None:
    heap = Heap(FollowedScope(frozenset({"pack"})))
    roots = {"use": getattr(package, name)}
    before, portrait = heap.form(roots), heap.portrait(roots)
    setattr(package.state, attribute, None)
    assert heap.form(roots) != before
    assert differences(portrait, heap.portrait(roots)) == (
        f"pack.state.{attribute}: 0 / None",
    )
    # What is outside of the scope is a name.
    outside = Heap(FollowedScope(frozenset({"other"})))
    before = outside.form(roots)
    package.state.CACHE["a"] = 1
    assert outside.form(roots) == before


def test_what_nobody_reads_is_no_state(package: Any) -> None:
    heap = Heap(FollowedScope(frozenset({"pack"})))
    before = heap.form({"use": package.attribute})
    package.state.unread = 1
    package.state.CACHE["a"] = 1
    assert heap.form({"use": package.attribute}) == before


def test_the_hook_of_a_module_is_reached(package: Any) -> None:
    heap = Heap(FollowedScope(frozenset({"pack"})))
    before = heap.form({"use": package.hooked})
    package.lazy.HIDDEN["anything"] = 1
    assert heap.form({"use": package.hooked}) != before


def test_a_module_with_a_class_of_its_own_is_reached_whole(package: Any) -> None:
    class Lazy(types.ModuleType):
        table: typing.ClassVar[dict[str, Any]] = {}

        @property
        def extra(self) -> Any:
            return self.table

    heap = Heap(FollowedScope(frozenset({"pack", HERE})))
    package.state.__class__ = Lazy
    before = heap.form({"use": package.attribute})
    Lazy.table["a"] = 1
    assert heap.form({"use": package.attribute}) != before


def test_asking_for_its_packages_changes_nothing_of_a_function() -> None:
    """It was given a `__dict__`, and told to change where it was an undo."""

    def function() -> None: ...

    known = gc.get_referents(function)
    scope_of([function, types.MethodType(function, 1)])
    assert len(gc.get_referents(function)) == len(known)
