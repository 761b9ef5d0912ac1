import ast
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import everyorder
from everyorder.harness.base.errors import HarnessError, TrialEnded
from everyorder.harness.cli import command as exits
from everyorder.harness.tools.scaffold import scenario_text
from everyorder.harness.tools.scaffold.discovery import draft_of
from everyorder.harness.tools.scaffold.sandbox import Sandbox
from tests.cli.conftest import Project, unwrapped
from tests.forking import needs_fork
from tests.processes.samples import is_alive

CONFIGURATION = Path(__file__).parents[2] / "pyproject.toml"

REGISTRIES = """
from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from functools import singledispatch


class Plugins:
    def __init__(self):
        self._items = {}

    def add(self, name, plugin):
        if name in self._items:
            raise ValueError(name)
        self._items[name] = plugin

    def remove(self, name):
        del self._items[name]

    def get(self, name):
        return self._items.get(name)

    def names(self):
        return list(self._items)


class Stale(Plugins):
    def __init__(self):
        super().__init__()
        self._found = {}

    def get(self, name):
        if name not in self._found:
            self._found[name] = super().get(name)
        return self._found[name]


class Signal:
    def __init__(self, name: str = ""):
        self.name = name
        self._receivers = []

    def connect(self, receiver, sender=None):
        self._receivers.append(receiver)
        return receiver

    def disconnect(self, receiver, sender=None):
        self._receivers.remove(receiver)

    def send(self, *sender, **options):
        return [(each, each(*sender, **options)) for each in self._receivers]


class Subscription:
    def __init__(self, bus, callback):
        self.bus = bus
        self.callback = callback

    def cancel(self):
        self.bus.callbacks.remove(self.callback)


class Bus:
    def __init__(self):
        self.callbacks = []

    def subscribe(self, callback: Callable[..., object]) -> Subscription:
        self.callbacks.append(callback)
        return Subscription(self, callback)

    def publish(self, event: str):
        return [callback(event) for callback in self.callbacks]


class Undoing:
    def __init__(self):
        self._hooks = {}

    def register(self, key, hook):
        self._hooks[key] = hook

        def undo():
            del self._hooks[key]

        return undo

    def lookup(self, key):
        return self._hooks[key]


class Decorating:
    def __init__(self):
        self._functions = {}

    def register(self, name):
        def decorator(function):
            self._functions[name] = function
            return function

        return decorator

    def __getitem__(self, name):
        return self._functions[name]

    def __iter__(self):
        return iter(self._functions)


class Scopes:
    def __init__(self):
        self._values = []

    @contextmanager
    def override(self, value):
        self._values.append(value)
        try:
            yield value
        finally:
            self._values.remove(value)

    def is_overridden(self, value):
        return value in self._values


class Switch:
    def __init__(self):
        self._on = False

    def enable(self):
        self._on = True

    def disable(self):
        self._on = False

    def is_enabled(self):
        return self._on


class Stack:
    def __init__(self, limit: int):
        self._items = []
        self.limit = limit

    def push(self, item):
        self._items.append(item)

    def pop(self):
        return self._items.pop()

    def find(self):
        return list(self._items)


class Hidden:
    def __init__(self):
        self._kept = set()

    def add(self, name):
        self._kept.add(name)

    def discard(self, name):
        self._kept.discard(name)


class Rude:
    def __init__(self):
        self._items = []

    def add(self, item):
        while isinstance(item, str):
            pass
        if callable(item):
            import os

            os._exit(1)
        self._items.append(item)

    def remove(self, item):
        self._items.remove(item)

    def count(self):
        return len(self._items)


class Table(dict):
    pass


class Waiting:
    def __init__(self):
        self._names = []

    async def add(self, name):
        self._names.append(name)

    async def remove(self, name):
        self._names.remove(name)

    async def names(self):
        return sorted(self._names)


@singledispatch
def describe(value):
    return "something"


class Area:
    def width(self):
        return 1


class Impossible:
    def __init__(self, secret):
        raise PermissionError("no")


HOOKS = {}


def register(name, function):
    HOOKS[name] = function


def unregister(name):
    del HOOKS[name]


def lookup(name):
    return HOOKS[name]


switch = Switch()
"""

PLUGINS = '''\
"""Does the order of registering with registries:Plugins make a difference?

Begun by `everyorder write`, which tried what works. What it could not know
is marked TODO: decide it, and delete the mark.
"""

from everyorder import Scenario, step, use

import registries


class Thing:
    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


thing_a = Thing("thing_a")
thing_b = Thing("thing_b")
thing_c = Thing("thing_c")


def observe(registry: registries.Plugins) -> str:
    """Return the text that must depend on the active steps only."""
    # TODO: this follows the order of the steps; if it must not, delete sorted().
    return str(sorted(registry.names()))


# TODO: add a step that registers a name for the second time: which of the two should
# win?
plugins_in_any_order = Scenario(
    step(
        'registry.add("a", thing_a)',
        lambda registry: registry.add("a", thing_a),
        undo=lambda registry: registry.remove("a"),
    ),
    step(
        'registry.add("b", thing_b)',
        lambda registry: registry.add("b", thing_b),
        undo=lambda registry: registry.remove("b"),
    ),
    step(
        'registry.add("c", thing_c)',
        lambda registry: registry.add("c", thing_c),
        undo=lambda registry: registry.remove("c"),
    ),
    uses=[use('registry.get("a")', lambda registry: registry.get("a"))],
    create=registries.Plugins,
    observe=observe,
)
'''


@pytest.fixture
def registries(project: Project) -> Project:
    """A module with registries of many kinds."""
    project.write("registries.py", REGISTRIES)
    return project


def calls(text: str, name: str) -> list[list[str]]:
    """The arguments of every call of a function in a text, as source."""
    return [
        [ast.unparse(each) for each in (*node.args, *node.keywords)]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == name
    ]


def remarks(text: str) -> list[str]:
    """The TODO comments, each on one line."""
    lines = [line.strip().removeprefix("# ") for line in text.splitlines()]
    found: list[str] = []
    for line, next_line in zip(text.splitlines(), [*lines, ""], strict=False):
        if "# TODO: " in line:
            found.append(next_line)
        elif line.lstrip().startswith("# ") and found:
            found[-1] += f" {next_line}"
    return [each.removeprefix("TODO: ") for each in found]


def run(project: Project, target: str, strategy: str = "graph") -> tuple[str, str, str]:
    """What is written of a target, and the row and the text of exploring that."""
    project.write("pyproject.toml", "[tool.pytest.ini_options]\npythonpath = ['.']\n")
    result = project.run("write", target, "-o", "test_written.py", "--force")
    assert (result.exit_code, result.output) == (
        exits.OK,
        "written: test_written.py\nexplore it: everyorder run test_written.py\n",
    )
    text = (project.root / "test_written.py").read_text()
    checked(project, text)
    explored = project.text("run", "-v", "test_written.py", "--strategy", strategy)
    table = explored.partition("\n\n")[0].splitlines()
    [row, *_] = [line for line in table if line.startswith("  ") and line[2].isalpha()]
    return text, row, explored


def checked(project: Project, text: str) -> None:
    """That formatter and linter leave a text as it is, with our rules for tests."""
    project.write("test_checked.py", text)
    for command in (("format", "--check"), ("check", "--ignore", "D1,S")):
        options = ("--config", str(CONFIGURATION), "test_checked.py")
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, *options],
            text=True,
            capture_output=True,
            cwd=project.root,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_whole_text(registries: Project) -> None:
    result = registries.run("write", "registries:Plugins")
    assert (result.output, result.exit_code) == (PLUGINS, exits.OK)


def test_a_class_with_a_dict_is_proven(registries: Project) -> None:
    _, row, _ = run(registries, "registries:Plugins")
    assert " 3      8 " in row
    assert "proven" in row


def test_a_stale_cache_is_found_by_what_is_written(registries: Project) -> None:
    text, row, explored = run(registries, "registries:Stale")
    assert calls(text, "use") == [
        ["""'registry.get("a")'""", "lambda registry: registry.get('a')"]
    ]
    assert "ORDER" in row
    assert '`registry.get("a")` answers differently' in " ".join(explored.split())
    assert 'step_1 = registry.add("a", thing_a)\n' in explored


@pytest.mark.slow
def test_handlers_and_filters_of_a_logger(registries: Project) -> None:
    text, row, _ = run(registries, "logging:Logger", "walk:1")
    assert [each[0] for each in calls(text, "step")] == [
        "'registry.addFilter(filter_a)'",
        "'registry.addFilter(filter_b)'",
        "'registry.addHandler(handler_a)'",
        "'registry.addHandler(handler_b)'",
    ]
    assert "handler_b = logging.Handler(2)\n" in text
    assert 'create=lambda: logging.Logger("d")' in text
    assert "holds" in row


@pytest.mark.slow
def test_plugins_of_pluggy(registries: Project) -> None:
    text, row, _ = run(registries, "pluggy:PluginManager", "walk:0")
    assert [
        each[0] + each[2].removeprefix("undo=lambda registry: registry")
        for each in calls(text, "step")
    ] == [
        "'registry.register(thing_a)'.unregister(thing_a)",
        "'registry.register(thing_b)'.unregister(thing_b)",
        "'registry.set_blocked(\"a\")'.unblock('a')",
        "'registry.set_blocked(\"b\")'.unblock('b')",
    ]
    assert "FAILED" not in row
    assert "what it is made with is a guess; is it right?" in remarks(text)


def test_a_function_that_makes_a_registry(registries: Project) -> None:
    text, row, _ = run(registries, "functools:singledispatch", "walk:0")
    assert calls(text, "step") == [
        [
            f"'registry.register({kind})({function})'",
            f"lambda registry: registry.register({kind})({function})",
            "undo=None",
        ]
        for kind, function in (
            ("First", "first"),
            ("Second", "second"),
            ("Third", "third"),
        )
    ]
    assert "create=lambda: functools.singledispatch(fourth)," in text
    assert (
        "nothing was found that takes this back; undo=None says that it stays."
        in remarks(text)
    )
    assert "FAILED" not in row


def test_connecting_as_blinker_does(registries: Project) -> None:
    text, row, _ = run(registries, "registries:Signal")
    assert calls(text, "step")[0] == [
        "'registry.connect(first)'",
        "lambda registry: registry.connect(first)",
        "undo=lambda registry: registry.disconnect(first)",
    ]
    assert calls(text, "use")[0][2] == "unordered=True"
    assert (
        "this follows the order of the steps; if it must not, delete unordered=True."
        in remarks(text)
    )
    assert "proven" in row


def test_functions_of_a_module_in_processes_of_their_own(registries: Project) -> None:
    text, row, _ = run(registries, "registries", "walk:0")
    assert calls(text, "step")[0] == [
        "'registry.register(\"a\", first)'",
        "lambda registry: registry.register('a', first)",
        "undo=lambda registry: registry.unregister('a')",
    ]
    assert "    create=lambda: registries,\n" in text
    assert text.endswith('    isolation="fork",\n)\n')
    assert "FAILED" not in row


@pytest.mark.slow
def test_functions_of_codecs(registries: Project) -> None:
    text, row, _ = run(registries, "codecs", "walk:0")
    assert [each[0] for each in calls(text, "step")] == [
        "'registry.register_error(\"a\", first)'",
        "'registry.register_error(\"b\", second)'",
    ]
    assert "FAILED" not in row


def test_a_dict(registries: Project) -> None:
    text, row, _ = run(registries, "registries:Table")
    assert calls(text, "step")[0][2] == (
        "undo=lambda registry: registry.__delitem__('a')"
    )
    assert "proven" in row


@pytest.mark.parametrize(
    ("name", "undo"),
    [
        ("Bus", "undo=lambda registry, result: result.cancel()"),
        ("Switch", "undo=lambda registry: registry.disable()"),
        ("Hidden", "undo=lambda registry: registry.discard('a')"),
        ("Rude", "undo=lambda registry: registry.remove(thing_a)"),
        ("Undoing", None),
        ("Scopes", None),
        ("Decorating", "undo=None"),
    ],
)
def test_what_takes_back(registries: Project, name: str, undo: str | None) -> None:
    result = registries.run("write", f"registries:{name}")
    assert result.exit_code == exits.OK
    first = calls(result.output, "step")[0]
    assert first[2:] == ([] if undo is None else [undo])
    checked(registries, result.output)


@pytest.mark.parametrize("name", ["switch", "describe"])
def test_an_object_of_a_module(registries: Project, name: str) -> None:
    result = registries.run("write", f"registries:{name}")
    assert f"    create=lambda: registries.{name},\n" in result.output
    assert 'isolation="fork",' in result.output


@pytest.mark.slow
def test_what_is_awaited(registries: Project) -> None:
    text, row, _ = run(registries, "registries:Waiting")
    assert calls(text, "step")[0] == [
        "'registry.add(\"a\")'",
        "lambda registry: registry.add('a')",
        "undo=lambda registry: registry.remove('a')",
    ]
    assert "proven" in row


def test_an_undo_of_the_newest_is_told(registries: Project) -> None:
    text = registries.run("write", "registries:Stack").output
    assert remarks(text) == [
        "its undo removes the newest registration of any step; is that intended?",
        "this follows the order of the steps; if it must not, delete unordered=True.",
        "what it is made with is a guess; is it right?",
    ]
    assert "create=lambda: registries.Stack(4)," in text
    checked(registries, text)


def test_a_file_is_not_written_over(registries: Project) -> None:
    kept = registries.write("kept.py", "mine = 1\n")
    arguments = ("write", "registries:Switch", "-o", "kept.py")
    result = registries.run(*arguments)
    assert (result.output, result.exit_code) == (
        "Error: kept.py already exists; --force overwrites it.\n",
        exits.REFUSED,
    )
    assert kept.read_text() == "mine = 1\n"
    assert registries.run(*arguments, "--force").exit_code == exits.OK
    assert "switch_in_any_order" in kept.read_text()
    result = registries.run("write", "registries:Switch", "-o", "kept.py/in.py")
    assert (result.output, result.exit_code) == (
        "Error: kept.py/in.py cannot be written: File exists\n",
        exits.REFUSED,
    )


def test_nothing_is_left_where_it_is_called(registries: Project) -> None:
    registries.write(
        "leaving.py",
        "class Files:\n"
        "    def open(self, name):\n        open(name, 'w').close()\n"
        "    def close(self, name):\n        pass\n"
        "    def names(self):\n        import os\n        return os.listdir()\n",
    )
    before = sorted(registries.root.rglob("*"))
    registries.run("write", "leaving:Files")
    assert sorted(registries.root.rglob("*")) == before


PASSING = """
class Refused(Exception): ...


class Passing:
    def __init__(self):
        self._items = {}

    def add(self, name, item):
        self._items[name] = item

    def remove(self, name):
        del self._items[name]

    def find(self, name):
        return iter([self._items[name]] if name in self._items else [])

    def items(self):
        yield from self._items.items()

    async def fetch(self):
        for each in self._items:
            yield each
"""


def test_of_an_iterator_what_it_gives_is_compared(registries: Project) -> None:
    """No scenario takes an iterator, so that what was written was not explored."""
    registries.write("passing.py", PASSING)
    registries.run("write", "passing:Passing", "-o", "tests/test_passing.py")
    text = (registries.root / "tests/test_passing.py").read_text()
    asked = re.findall(r"use\(\s*['\"](.*)['\"],\s", text)
    assert asked == ['list(registry.find("a"))', "list(registry.items())"]
    assert registries.run("run", "tests/test_passing.py").exit_code == exits.OK


BY_ADDRESS = """
class Addresses:
    def __init__(self):
        self._things = {}

    def register(self, thing):
        self._things[str(id(thing))] = thing.name

    def unregister(self, thing):
        del self._things[str(id(thing))]

    def has(self, thing):
        return str(id(thing)) in self._things
"""


def test_an_undo_that_names_its_thing_by_its_address(registries: Project) -> None:
    """It was told to take back the newest: the things compared were others."""
    registries.write("by_address.py", BY_ADDRESS)
    text = registries.text("write", "by_address:Addresses")
    assert text.count("undo=lambda registry: registry.unregister(thing_") == 3
    assert "takes back the newest" not in text


MARKING = """
class Marking:
    def __init__(self):
        self._things = []

    def register(self, thing):
        self._things.append(thing)

    def unregister(self, thing):
        self._things.remove(thing)
        thing.dead = True

    def has(self, thing):
        return thing in self._things
"""


def test_an_undo_that_marks_its_thing(registries: Project) -> None:
    """It was told to take back the newest: what was compared had been marked."""
    registries.write("marking.py", MARKING)
    text = registries.text("write", "marking:Marking")
    assert text.count("undo=lambda registry: registry.unregister(") == 3
    assert "takes back the newest" not in text


ENDLESS = """
from itertools import count
from pathlib import Path


class Endless:
    def __init__(self):
        self._items = {}
        self.numbers = self.ids()

    def add(self, name, item):
        self._items[name] = item

    def remove(self, name):
        del self._items[name]

    def get(self, name):
        return self._items.get(name)

    def ids(self):
        for number in count():
            if number == 50_000:
                Path(__file__).with_name("read").touch()
                return
            yield number

    def find_all(self):
        yield from self._items
        yield from self.ids()

    def __iter__(self):
        return self.find_all()
"""


def test_of_an_endless_iterator_only_a_beginning_is_read(registries: Project) -> None:
    """Its list took memory until the trial was killed."""
    registries.write("endless.py", ENDLESS)
    text = registries.text("write", "endless:Endless")
    assert {ast.literal_eval(each[0])[:13] for each in calls(text, "use")} == {
        "registry.get("
    }
    assert not (registries.root / "read").exists()


def test_errors_are_no_registries(registries: Project) -> None:
    """All of them have `add_note`."""
    registries.write("passing.py", PASSING)
    result = registries.run("write", "passing")
    told = result.output.partition(" alone. ")[2]
    assert told == "These have such names: passing:Passing.\n"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            "registries:Plugin",
            "registries:Plugin: registries has no 'Plugin'; did you mean "
            "registries:Plugins?",
        ),
        (
            "registreis:Plugins",
            "registreis:Plugins: there is no module registreis; did you mean "
            "registries?",
        ),
        (
            "registries.Plugins",
            "registries.Plugins: there is no module registries.Plugins; did you mean "
            "registries:Plugins?",
        ),
        (
            "shutil",
            "shutil acts on files, processes or the network, so none of its "
            "functions is called on trial; write its scenario by hand.",
        ),
        (
            "registries:Impossible",
            'could not create registries:Impossible: tried ("d"), (fourth), '
            "(thing_d), and 7 more; the last attempt failed with: PermissionError: "
            "no. Name a function without parameters that creates one, as in "
            "package.module:make.",
        ),
        (
            "registries:Area",
            "registries:Area has nothing that registers. Looked for: add/remove, "
            "register/unregister, connect/disconnect, subscribe/unsubscribe, push/pop, "
            "install/uninstall, enter/exit, attach/detach, enable/disable, bind/unbind "
            "and 29 more; add, append, attach, bind, connect, declare, define, hook, "
            "include, insert, install, listen, mount, on, plug, push, register, route, "
            "setitem, subscribe alone. These have such names: registries:Plugins, "
            "registries:Stale, registries:Signal, registries:Bus, registries:Undoing, "
            "registries:Decorating, registries:Switch, registries:Stack.",
        ),
    ],
)
def test_mistakes(registries: Project, target: str, message: str) -> None:
    result = registries.run("write", target)
    assert (unwrapped(result), result.exit_code) == (
        f"Error: {message}",
        exits.REFUSED,
    )


@pytest.mark.parametrize(
    "command",
    [("write", "everyorder.registry:Plugins"), ("imports", "everyorder", "core")],
)
def test_a_package_that_has_the_name_of_ours(
    registries: Project, command: tuple[str, ...]
) -> None:
    """Ours was looked at, and told to have nothing of theirs, or to hold."""
    registries.write("core.py", "")
    registries.write("everyorder/registry.py", "class Plugins: ...\n")
    own = registries.write("everyorder/__init__.py", "")
    result = registries.run(*command)
    assert (unwrapped(result), result.exit_code) == (
        "Error: the name everyorder is taken: "
        f"{everyorder.__file__} is imported already, "
        f"so {own.resolve()} cannot be imported; rename yours.",
        exits.REFUSED,
    )


def test_a_module_that_ends_its_process(registries: Project) -> None:
    registries.write("ending.py", "import os\nos._exit(3)\n")
    result = registries.run("write", "ending:Registry")
    assert (unwrapped(result), result.exit_code) == (
        "Error: ending:Registry could not be tried: its process ended with exit code "
        "3. --timeout allows more time.",
        exits.REFUSED,
    )


def test_a_module_that_dies_of_a_signal(registries: Project) -> None:
    registries.write("dying.py", "import os\nos.kill(os.getpid(), 9)\n")
    result = registries.run("write", "dying:Registry")
    assert (unwrapped(result), result.exit_code) == (
        "Error: dying:Registry could not be tried: its process ended with signal 9, "
        "Killed. --timeout allows more time.",
        exits.REFUSED,
    )


# A trial that its time limit does not end; the process that tries it is killed.
STUBBORN = """
import os, signal, time
from everyorder.harness.tools.scaffold.sandbox import Sandbox

def trial():
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    print(os.getpid(), flush=True)
    time.sleep(600)

Sandbox("", frozenset(), (), time.monotonic() + 60, seconds=60.0).run("", trial)
"""


@needs_fork
def test_a_trial_ends_with_the_process_that_tries_it() -> None:
    root = str(Path(__file__).parents[2])
    process = subprocess.Popen(
        [sys.executable, "-c", STUBBORN],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": root},
    )
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    assert is_alive(pid)
    process.kill()
    process.wait()
    process.stdout.close()
    until = time.monotonic() + 10
    while is_alive(pid) and time.monotonic() < until:
        time.sleep(0.01)
    ended = not is_alive(pid)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    assert ended


@needs_fork
def test_a_trial_that_forks_answers_at_once() -> None:
    """The process that it leaves holds the pipe of the answer open, for an hour."""

    def forks() -> str:
        if not os.fork():
            time.sleep(3600)
        return "done"

    # A sandbox that waits for the pipe hangs here until the limit of all tests.
    sandbox = Sandbox("", frozenset(), (), math.inf, seconds=3600.0)
    assert sandbox.run("", forks) == "done"


def test_a_module_that_cannot_be_imported(registries: Project) -> None:
    registries.write("broken.py", "raise ValueError('never')\n")
    result = registries.run("write", "broken:Registry")
    assert (unwrapped(result), result.exit_code) == (
        "Error: broken:Registry: its module cannot be imported, ValueError: never. "
        "Name a class as in package.module:Class, or a module.",
        exits.REFUSED,
    )


def test_time_that_is_up_before_anything_was_tried(registries: Project) -> None:
    result = registries.run("write", "registries:Plugins", "--timeout", "0.0001")
    assert (unwrapped(result), result.exit_code) == (
        "Error: registries:Plugins could not be tried: time was up. --timeout allows "
        "more time.",
        exits.REFUSED,
    )


HANGING = """
from threading import Event


class Making:
    def __init__(self, what):
        while True:
            pass


class Adding:
    def add(self, thing):
        Event().wait()

    def remove(self, thing): ...


class Both:
    def __init__(self):
        self.things = []

    def add(self, thing):
        self.things.append(thing)

    def remove(self, thing):
        self.things.remove(thing)

    def connect(self, thing):
        Event().wait()

    def disconnect(self, thing): ...

    def find(self, thing):
        if thing in self.things:
            Event().wait()
"""


@pytest.mark.slow
def test_what_does_not_return_is_tried_twice(registries: Project) -> None:
    """Each of ten kinds of arguments was given two seconds."""
    registries.write("hanging.py", HANGING)

    def told_of(name: str) -> str:
        try:
            return scenario_text(f"hanging:{name}", path=registries.root)
        except HarnessError as error:
            return error.render()

    # Most of it is waiting, so they wait together.
    with ThreadPoolExecutor() as pool:
        making, adding, text = pool.map(told_of, ("Making", "Adding", "Both"))
    assert making == (
        'could not create hanging:Making: tried ("d"), (fourth); the last attempt '
        "failed with: nothing, it did not return in 4 s. Name a function without "
        "parameters that creates one, as in package.module:make."
    )
    assert adding.partition(" alone. ")[2] == (
        "These calls did not return: add (it did not return in 4 s). These have "
        "such names: hanging:Both."
    )
    assert [each[0] for each in calls(text, "step")] == [
        "'registry.add(\"a\")'",
        "'registry.add(\"b\")'",
        "'registry.add(\"c\")'",
    ]
    assert remarks(text)[1:3] == [
        "left out, because it did not return in 4 s: connect.",
        "did not return in 4 s, with some of the arguments tried: find.",
    ]


SLOW = """
import time


class Slow:
    def __init__(self):
        self.things = {}

    def register(self, thing):
        time.sleep(0.2)
        self.things[thing] = 1

    def unregister(self, thing):
        del self.things[thing]

    def get(self, thing):
        return self.things.get(thing)
"""


@pytest.mark.slow
def test_what_is_slow_does_not_hang(registries: Project) -> None:
    registries.write("slow.py", SLOW)
    text = registries.text("write", "slow:Slow", "--timeout", "120")
    assert "register(" in text
    assert "unregister(" in text
    assert not [each for each in remarks(text) if "not return" in each]


TWO = """
class Two:
    def __init__(self):
        self._on = self._open = False

    def enable(self):
        self._on = True

    def disable(self):
        self._on = False

    def is_enabled(self):
        return self._on

    def open(self):
        self._open = True

    def close(self):
        self._open = False

    def is_open(self):
        return self._open
"""


@pytest.mark.slow
def test_time_that_is_up_at_any_trial(
    registries: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It read as a registry that registers nothing, or as a step without an undo."""
    registries.write("two.py", TWO)
    monkeypatch.syspath_prepend(registries.root)
    whole = draft_of("two:Two", str(registries.root), 60.0)
    assert len(whole.steps) == 2
    trials = 0
    run = Sandbox.run

    def cut(bench: Sandbox, subject: str, trial: Any) -> Any:
        nonlocal trials
        if not trials:
            bench.until = 0.0
        trials -= 1
        return run(bench, subject, trial)

    monkeypatch.setattr(Sandbox, "run", cut)
    told = Counter[str]()
    for count in range(100):
        trials = count
        try:
            found = draft_of("two:Two", str(registries.root), 60.0)
        except TrialEnded as error:
            told[error.render()] += 1
            continue
        if trials >= 0:
            assert found == whole
            break
        assert set(found.steps) <= set(whole.steps)
        told.update(found.remarks)
    assert [*told] == [
        "two:Two could not be tried: time was up. --timeout allows more time.",
        "time was up before these were tried: open; --timeout gives more",
        "left out, because time was up before anything showed what it did: "
        "registry.open()",
        "time was up before all look-ups were tried; --timeout gives more",
    ]


ODD = """
import os


class Meta(type):
    def __dir__(cls):
        raise RuntimeError("dir")


class Weird(metaclass=Meta):
    def __init__(self):
        self.things = []

    def add(self, thing):
        self.things.append(thing)

    def remove(self, thing):
        self.things.remove(thing)


class Ending:
    def add(self, thing):
        os._exit(3)

    def remove(self, thing): ...


class Both(Weird):
    def connect(self, thing):
        os._exit(3)

    def disconnect(self, thing): ...
"""


def test_a_call_that_does_not_come_back_is_told(registries: Project) -> None:
    """It was told to be without effect; and the metaclass ended all of it."""
    registries.write("odd.py", ODD)
    result = registries.run("write", "odd:Ending")
    told = unwrapped(result).partition(" alone. ")[2]
    assert (told, result.exit_code) == (
        "These calls did not return: add. These have such names: odd:Weird, odd:Both.",
        exits.REFUSED,
    )
    text = registries.text("write", "odd:Both")
    assert "# TODO: left out, because no call of it came back: connect.\n" in text


def test_a_metaclass_that_tells_no_names(registries: Project) -> None:
    registries.write("odd.py", ODD)
    assert "registry.add(" in registries.text("write", "odd:Weird")
