"""Nothing that the collector knows of is left out of the form.

The traverse functions of C are an oracle that shares nothing with the readers: whatever
an object refers to by them is in the form as well, but for what is listed here with its
reason.
"""

import argparse
import asyncio
import builtins
import configparser
import contextlib
import functools
import gc
import logging
import mimetypes
import queue
import re
import sched
import threading
import types
import unittest
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from everyorder.harness.state import Heap, differences, scope_of
from everyorder.harness.state.decode import Records
from everyorder.harness.state.encode import HeapWalk
from everyorder.harness.state.heap import pause_collector

VALUES = frozenset(
    {str, int, float, bool, type(None), bytes, complex, types.EllipsisType}
)


def parser() -> Any:
    made = argparse.ArgumentParser(prog="x")
    made.add_argument("--number", type=int)
    made.add_subparsers().add_parser("sub")
    return made


def loggers() -> Any:
    manager = logging.Manager(logging.RootLogger(logging.WARNING))
    manager.getLogger("a.b").addFilter(logging.Filter("x"))
    return manager


def config() -> Any:
    made = configparser.ConfigParser()
    made["a"] = {"b": "1"}
    return made


def plugins() -> Any:
    import pluggy

    manager = pluggy.PluginManager("x")
    spec, impl = pluggy.HookspecMarker("x"), pluggy.HookimplMarker("x")

    class Spec:
        @spec
        def run(self, value: int) -> None: ...

    class Plugin:
        @impl
        def run(self, value: int) -> None: ...

    manager.add_hookspecs(Spec)
    manager.register(Plugin(), "plugin")
    return manager


def commands() -> Any:
    import click

    @click.group()
    def group() -> None: ...

    @group.command()
    @click.option("--x", type=int)
    def inner(x: int) -> None: ...

    return group


def generic() -> Any:
    @functools.singledispatch
    def shown(value: Any) -> str:
        return ""

    shown.register(int, lambda value: "int")
    shown(3)
    return shown


@contextlib.contextmanager
def manager() -> Iterator[list[int]]:
    yield [1]


def stack() -> Any:
    made = contextlib.ExitStack()
    made.callback(print, 1)
    made.enter_context(manager())
    return made


class Target:
    """Something to refer to weakly."""


def weakly() -> Any:
    targets = [Target(), Target()]
    values = weakref.WeakValueDictionary(enumerate(targets))
    return [targets, values, weakref.WeakSet(targets), weakref.ref(targets[0])]


def iterators() -> Any:
    held = [[1], [2]]
    made = [iter(held), map(held.append, held), zip(held, held, strict=True)]
    return [*made, enumerate(held), (each for each in held), reversed(held)]


SYSTEMS: dict[str, Callable[[], Any]] = {
    "argparse": parser,
    "asyncio": asyncio.Condition,
    "logging": loggers,
    "configparser": config,
    "pluggy": plugins,
    "click": commands,
    "singledispatch": generic,
    "exit stack": stack,
    "weak": weakly,
    "iterators": iterators,
    "mimetypes": mimetypes.MimeTypes,
    "scheduler": sched.scheduler,
    "loader": unittest.TestLoader,
    "queue": queue.Queue,
}


def told_otherwise(o: Any, referent: Any) -> bool:
    """Whether a referent is in the form without being one of its objects."""
    kind = type(o)
    if kind.__module__ == "_pytest.logging":  # it only hears what is logged
        return True
    if kind is types.FunctionType:
        # Globals are told one by one; cells, and what is empty, belong to the record.
        known = (o.__globals__, vars(builtins), o.__closure__)
        return any(referent is each for each in known) or referent in ({}, ())
    if issubclass(kind, type):
        # The dict and the tuples of a class belong to its record; the module is that
        # of C code.
        return type(referent) in (dict, tuple, types.ModuleType)
    if issubclass(kind, types.ModuleType):
        return referent is vars(o)
    if kind is re.Pattern:
        return True  # tables that follow from the pattern
    if kind is types.MethodWrapperType:
        return type(referent) is types.WrapperDescriptorType
    if kind is types.GeneratorType:
        # Made by looking at it; variables are in the form one by one.
        return type(referent) is types.FrameType or referent == {}
    if kind in (map, zip, enumerate):
        return type(referent) is tuple  # the tuple that `__reduce__` copies
    return kind is threading.local  # what other threads have


@pytest.mark.parametrize("name", SYSTEMS)
def test_whatever_an_object_refers_to_is_in_the_form(name: str) -> None:
    root = SYSTEMS[name]()
    walk = HeapWalk(scope_of([root, SYSTEMS[name]]))
    with pause_collector():
        walk.run({"root": root})
        records = Records(walk.out)
        records.read()
        left_out = [
            (type(o).__name__, records.path(number), type(each).__name__)
            for number, o in enumerate(walk.order)
            if records.nodes[number].kind not in ("named", "opaque", "written")
            for each in gc.get_referents(o)
            if type(each) not in VALUES and id(each) not in walk.seen
            if not told_otherwise(o, each)
        ]
    assert left_out == []
    assert len(walk.order) > 5


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_fresh_system_has_the_form_of_the_first(name: str) -> None:
    build = SYSTEMS[name]
    first = build()
    heap = Heap(scope_of([first, build]))
    before, portrait = heap.form({"root": first}), heap.portrait({"root": first})
    del first
    gc.collect()
    second = build()
    assert differences(portrait, heap.portrait({"root": second})) == ()
    assert heap.form({"root": second}) == before
    opaque = [each.text for each in heap.caveats() if each.kind == "opaque"]
    # The streams that logging writes to are those of the process.
    assert opaque == [] or name == "logging"
