"""A small project for pytester: a registry, its scenarios, and whole outputs.

Scenarios are explored by one walk, which is fast, and says the same whatever "auto" may
choose one day.

True only here: what of an output differs from run to run (times, versions, folders) is
written as a placeholder; everything else is compared as it is, at 80 columns.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

TOY = """
from everyorder.harness.scenario import Scenario, step


def put(name):
    def do(registry):
        registry[name] = name
        return lambda: registry.pop(name)

    return step(f"put({name!r})", do)


def once(name):
    def do(registry):
        if registry:
            raise ValueError("it is taken")
        registry[name] = name
        return lambda: registry.pop(name)

    return step(f"once({name!r})", do)


def shown(registry):
    return "".join(f"{name}\\n" for name in sorted(registry)) or "nothing"


def newest(registry):
    return next(reversed(registry), "nothing")


def steps(*names):
    return [put(name) for name in names]
"""

PAIR = 'pair = Scenario(*steps("a", "b"), create=dict, observe=shown)\n'
LAST = (
    'last = Scenario(*steps("a", "b"), create=dict, observe=newest,\n'
    '    order_dependent="the newest wins")\n'
)
BROKEN = 'broken = Scenario(*steps("a", "b"), create=dict, observe=newest)\n'
FIRST = 'first = Scenario(once("a"), once("b"), create=dict, observe=shown)\n'
FIXTURE = """
def test_three(explore):
    report = explore(*steps("x", "y", "z"), create=dict, observe=shown)
    assert report.verdict == "holds"
"""

INI = """
[pytest]
testpaths = tests
addopts = --strict-markers --strict-config --import-mode=importlib
filterwarnings = error
pythonpath = .
everyorder_strategy = walk:1
"""

_VARYING = (
    # Above a minute it is told in hours, minutes and seconds besides.
    (r"in \d+\.\d\ds(?: \(\d+:\d\d:\d\d\))?", "in TIME"),
    (r"^platform .*$", "PLATFORM"),
    (r"^rootdir: .*$", "ROOTDIR"),
    (r"^plugins: .*\n", ""),
)


class Project:
    """A project below pytester's folder, and runs of pytest in it."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        self.write("pytest.ini", INI)
        self.write("toy.py", TOY)

    def write(self, name: str, text: str) -> None:
        """Write a file of the project."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def module(self, name: str, *parts: str) -> None:
        """Write a test module of these parts."""
        head = "from everyorder.harness.scenario import Scenario\nfrom toy import *\n\n"
        self.write(f"tests/{name}", head + "".join(parts))

    def run(self, *arguments: str, apart: bool = False) -> pytest.RunResult:
        """Run pytest here, `apart` in a process of its own."""
        given = ("-p", "everyorder", "-p", "no:cacheprovider", *arguments)
        if any(argument.startswith("-n") for argument in arguments):
            given = ("-p", "xdist", *given)
        if apart:
            return self.pytester.runpytest_subprocess(*given)
        return self.pytester.runpytest_inprocess(*given)

    def output(self, *arguments: str) -> str:
        """The whole output of a run, without what differs from run to run."""
        return whole(self.run(*arguments))

    def files(self) -> dict[str, str]:
        """The expect files and their texts."""
        folder = self.path / "expect"
        return {
            file.relative_to(folder).as_posix(): file.read_text()
            for file in sorted(folder.rglob("*"))
            if file.is_file()
        }


def whole(result: pytest.RunResult) -> str:
    """All of an output, without what differs from run to run."""
    text = result.stdout.str()
    for pattern, placeholder in _VARYING:
        text = re.sub(pattern, placeholder, text, flags=re.MULTILINE)
    return re.sub(r"=+ (.*TIME.*?) =+", r"= \1 =", text) + "\n"


def joined(result: pytest.RunResult) -> str:
    """Return an output as one line: sentences are wrapped."""
    return " ".join(result.stdout.str().split())
