"""The run beside a mutant of `runtime.rpc.protocol`: schedules, worlds and unit tests.

True only here: what is played, explored and called, by which name, and in which order.
All of it is what the ordinary run of the tests does, without pytest around it: a test
is called with each of its parameters.

| name                        | means                                              |
|-----------------------------|----------------------------------------------------|
| schedules/17                | the schedule of a seed, with its laws              |
| protocol/test_parts/test_x   | a test of that file                                |
| protocol/test_parts/test_x/2 | the same, with its third parameters                |
| exploring/test_sessions/... | worlds, explored with theirs                       |

Rules:
- a test that draws its own examples is no killer, as it may not draw the same again;
- nor is one that plants a fault of its own, which fails where it is not found; nor one
  that takes long;
- cheap ones come first: the unit tests, of them those of the mutated module before
  others, then schedules, then what explores.
"""

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from inspect import signature
from itertools import product
from typing import Any

import pytest

from tests.mutants.target import ROOT, SESSION
from tests.mutants.trial import Order, told_briefly

# The schedules of the ordinary run.
SCHEDULES = range(100)
SCHEDULE = "schedules"

FILES = (
    *sorted(
        f"protocol/{file.stem}"
        for file in (ROOT / "tests/rpc/protocol").glob("test_*.py")
    ),
    "simulator/test_simulator",
    "exploring/test_references",
    "exploring/test_sessions",
)
# What plants faults, and what plays the schedules itself.
LEFT_OUT = (
    "protocol/test_planted",
    "simulator/test_simulator/test_laws_hold",
    "exploring/test_references/test_a_planted_fault",
    "exploring/test_references/test_one_fault",
)
LATE = ("simulator/", "exploring/")
# Where a module's own tests are, if not in the file of its name.
OWN = {
    "ownership": "exploring/test_references",
    "packets": "protocol/test_parts",
    "reference_machine": "exploring/test_references",
}


class SessionRun:
    """Everything that is asked of sessions."""

    def begin(self, order: Order) -> None:
        """Import all of the package, and the tests that are asked for."""
        for file in sorted(SESSION.folder.glob("*.py")):
            import_module(f"{SESSION.package}.{file.stem}".removesuffix(".__init__"))
        whole = order.everything and not order.known
        asked = {_file(path) for path in order.first}
        for name in FILES:
            if whole or name in asked:
                _module(name)

    def paths(self, order: Order) -> Iterator[str]:
        """What is asked for, by name; what a name of before named may be gone."""
        first = [path for path in order.first if path not in order.without]
        yield from filter(_is_there, first)
        if order.everything:
            module = order.name.partition(":")[0]
            others = {*first, *order.without}
            yield from (path for path in everything(module) if path not in others)

    def fails(self, path: str) -> str:
        """How a part fails; "" where it passes."""
        try:
            _called(path)()
        except (Exception, pytest.fail.Exception) as error:
            return told_briefly(error)
        return ""


def everything(module: str = "") -> list[str]:
    """All parts of the run, those first that are near a module."""
    own = OWN.get(module, f"protocol/test_{module}")
    early = [file for file in FILES if file == own]
    early += [file for file in FILES if file != own and not file.startswith(LATE)]
    return [
        *(path for file in early for path in parts(file)),
        *(f"{SCHEDULE}/{seed}" for seed in SCHEDULES),
        *(path for file in FILES if file not in early for path in parts(file)),
    ]


def _file(path: str) -> str:
    """The file of a test."""
    return "/".join(path.split("/")[:2])


def parts(file: str) -> Iterator[str]:
    """The names of the tests of a file that can kill."""
    for name, test in vars(_module(file)).items():
        path = f"{file}/{name}"
        if not name.startswith("test_") or path.startswith(LEFT_OUT):
            continue
        if (
            _draws(test)
            or _is_long(test)
            or "monkeypatch" in signature(test).parameters
        ):
            continue
        count = len(_cases(test))
        yield from [path] if count == 1 else (f"{path}/{n}" for n in range(count))


def _is_there(path: str) -> bool:
    """Whether a name names something."""
    kind, _, rest = path.partition("/")
    if kind == SCHEDULE:
        return True
    file, name, *number = rest.split("/")
    if f"{kind}/{file}" not in FILES:
        return False
    test = vars(_module(f"{kind}/{file}")).get(name)
    return test is not None and int(number[0] if number else 0) < len(_cases(test))


def _called(path: str) -> Callable[[], object]:
    """What a name names."""
    kind, _, rest = path.partition("/")
    if kind == SCHEDULE:
        return lambda: _play(int(rest))
    file, name, *number = rest.split("/")
    test = vars(_module(f"{kind}/{file}"))[name]
    arguments = _cases(test)[int(number[0]) if number else 0]
    return lambda: test(**arguments)


def _play(seed: int) -> None:
    from tests.rpc.simulator.playing import broken
    from tests.rpc.simulator.schedule import drawn

    found = broken(drawn(seed))
    assert found is None, found


def _module(file: str) -> Any:
    return import_module("tests.rpc." + file.replace("/", "."))


def _draws(test: Any) -> bool:
    return hasattr(test, "is_hypothesis_test")


def _marks(test: Any) -> list[Any]:
    return getattr(test, "pytestmark", [])


def _is_long(test: Any) -> bool:
    return any(mark.name in ("slow", "nightly") for mark in _marks(test))


def _cases(test: Any) -> Sequence[dict[str, Any]]:
    """The arguments of each call of a test; one call where it has no parameters."""
    tables: list[list[dict[str, Any]]] = []
    for mark in _marks(test):
        if mark.name != "parametrize":
            continue
        names, values = mark.args
        if isinstance(names, str):
            names = [name.strip() for name in names.split(",")]
        if len(names) == 1:
            tables.append([{names[0]: value} for value in values])
        else:
            tables.append([dict(zip(names, each, strict=True)) for each in values])
    cases = [
        {k: v for part in row for k, v in part.items()} for row in product(*tables)
    ]
    assert {*cases[0]} == {*signature(test).parameters}, f"{test} needs no fixture"
    return cases
