"""Whoever makes an error says which sentence it is, and all that the sentence tells."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from string import Formatter
from typing import Any

import everyorder.runtime.errors
from everyorder.coded_error import sentences
from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.errors.tensor import OperandError
from tests.house import FILES, nodes_of

KINDS: dict[str, Any] = {
    n: getattr(everyorder.runtime.errors, n) for n in everyorder.runtime.errors.__all__
}

# (code, field) of the rows that some places leave out, since nothing is known for them.
OPTIONAL = {
    ("NotSaveable", "hint"),
    ("NotScriptable", "hint"),
    ("UnfitValue", "near"),
    ("UnfitValue", "remedy"),
    ("UnknownCallable", "near"),
    ("UnknownCallable", "reason"),
}


def made() -> Iterator[tuple[str, Any, ast.Call]]:
    """Where errors are made in the product: the place, the class, the call."""
    for file in FILES:
        # Of other classes with such a name, the harness has its own.
        names = {
            each.asname or each.name
            for line in nodes_of(file)
            if isinstance(line, ast.ImportFrom)
            and str(line.module).startswith("everyorder.runtime.errors")
            for each in line.names
        }
        for node in nodes_of(file):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                name = node.func.id
                if name in names and name in KINDS:
                    yield f"{file}:{node.lineno}", KINDS[name], node


def fields(kind: Any) -> set[str]:
    """What a class and its bases declare."""
    return {
        name
        for each in kind.__mro__
        if issubclass(each, EveryorderError)
        for name in each.__annotations__
    } - {"words", "rows"}


def named(kind: Any, code: str) -> set[str]:
    """The fields of a sentence and of its rows, and those without a default.

    Those of an optional part may be left out.
    """
    sentence = sentences(kind.words).get(code)
    rows = (*kind.rows, *sentence.rows) if sentence else ()
    texts = [sentence.head if sentence else "", *map("".join, rows)]
    texts = [re.sub(r"\[\[.*?\]\]", "", text) for text in texts]
    paths = [path for text in texts for _, path, _, _ in Formatter().parse(text)]
    required = {name for name in fields(kind) if not hasattr(kind, name)}
    names = {path.partition("[")[0] for path in paths if path} & fields(kind) | required
    # The operator puts its own name there.
    return names - ({"operator"} if issubclass(kind, OperandError) else set())


def test_who_makes_an_error_names_its_sentence_and_its_fields() -> None:
    count = 0
    left_out: set[tuple[str, str]] = set()
    for place, kind, call in made():
        given = {each.arg: each.value for each in call.keywords if each.arg}
        code = given.pop("code", None)
        if code is None:
            own = "words" in vars(kind)
            assert kind.code in sentences(kind.words) or not own, place
            found = {kind.code}
        else:
            found = {e.value for e in ast.walk(code) if isinstance(e, ast.Constant)}
            assert found <= {*sentences(kind.words)}, (place, found)
        assert given.keys() <= fields(kind), place
        if all(each.arg for each in call.keywords):
            for each in found:
                missing = {(str(each), n) for n in named(kind, str(each)) - {*given}}
                assert missing <= OPTIONAL, (place, missing - OPTIONAL)
                left_out |= missing
        count += 1
    assert count > 400
    assert left_out == OPTIONAL


def test_a_field_of_a_row_is_needed_although_it_has_a_default() -> None:
    class Rowed(EveryorderError):
        head: str = ""
        row: str = ""
        label: str = ""
        other: str = ""

        words = """
        Rowed: {head}[[, {other}]]
          {label}: {row}
        Bare: nothing
        """

    assert named(Rowed, "Rowed") == {"head", "row", "label"}
    assert named(Rowed, "Bare") == set()


def test_every_sentence_tells_fields_or_properties_only() -> None:
    for kind in KINDS.values():
        for code, sentence in sentences(kind.words).items():
            for text in (sentence.head, *map("".join, sentence.rows)):
                for _, path, _, _ in Formatter().parse(text):
                    name = (path or "code").partition("[")[0]
                    assert name in fields(kind) or hasattr(kind, name), (code, name)


def test_a_look_that_was_interrupted_leaves_the_next_one_whole() -> None:
    """Threads look at once, and Ctrl-C comes at any time: all names, or none yet."""
    text = """
from everyorder.runtime import errors
whole = errors._load
def load(name):
    if name.endswith("rpc"):
        raise KeyboardInterrupt
    return whole(name)
errors.set_loader(load)
try:
    errors.RpcError
except KeyboardInterrupt:
    pass
errors.set_loader(whole)
print(errors.RpcError.__name__, len(errors.__all__))
"""
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [
        "RpcError",
        str(len(everyorder.runtime.errors.__all__)),
    ]


def test_who_looks_while_another_thread_loads_finds_it() -> None:
    text = """
import threading
from everyorder.runtime import errors
whole, looked, failed, threads = errors._load, threading.Event(), [], []
def look():
    try:
        errors.WorkerLost
    except AttributeError as error:
        failed.append(error)
    looked.set()
def load(name):
    if name.endswith("call"):  # the second area: some names are there
        threads.append(threading.Thread(target=look))
        threads[0].start()
        looked.wait(0.3)
    return whole(name)
errors.set_loader(load)
errors.RpcError
threads[0].join()
print(len(failed))
"""
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True
    )
    assert done.stdout == "0\n"
