"""The shares of `make test`, `make test-long` and `make test-whole`: no test is missed.

Long tests are in both; they are deselected unless `-m` names their mark.  What `--thin`
leaves of the scenarios of the catalogue is the gate's, which `make test-long` runs.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
LONG = [f"tests/zoo/test_zoo.py::test_all[{n}]" for n in range(20)]
SCENARIOS = [f"tests/scenarios/test_aliases.py::orders_{n}" for n in range(40)]
MARKS = ("slow", "nightly")
SHARES = ("thin", "thinned", "both", "night")
NAMES = [
    *SCENARIOS,
    *(f"tests/kernels/test_binary.py::test_binary[{n}]" for n in range(200)),
    "tests/kernels/test_binary.py::test_alone",
    *(f"tests/schema/test_parser.py::test_text[{n}]" for n in range(90)),
    *(f"tests/schema/test_parser.py::TestMore::test_one[{n}]" for n in range(2)),
    *(f"tests/engine/test_groups.py::test_{n}" for n in range(80)),
]


def items() -> list[Any]:
    """Tests by these names."""
    return [
        SimpleNamespace(
            nodeid=name,
            get_closest_marker={
                "slow": name in LONG or None,
                "nightly": None,
            }.__getitem__,
            **({"scenario": None} if name in SCENARIOS else {}),
        )
        for name in [*NAMES, *LONG]
    ]


def shares(request: pytest.FixtureRequest) -> tuple[list[str], list[str], int]:
    """What `--thin` runs of NAMES, what `--thinned` runs, and how much was told of."""
    root = request.config.pluginmanager.get_plugin(str(ROOT / "conftest.py"))
    assert root is not None
    told: list[Any] = []
    found = []
    for share in ("thin", "thinned"):
        hook = SimpleNamespace(pytest_deselected=lambda items: told.extend(items))
        config = SimpleNamespace(getoption=share.__eq__, hook=hook)
        kept = items()
        root._thin(config, kept)
        assert [item.nodeid for item in kept[-len(LONG) :]] == LONG
        found.append([item.nodeid for item in kept[: -len(LONG)]])
    return found[0], found[1], len(told)


def test_each_test_is_in_one_share(request: pytest.FixtureRequest) -> None:
    thin, others, told = shares(request)
    gate = {*SCENARIOS}.difference(thin)
    assert sorted([*thin, *others, *gate]) == sorted(NAMES)
    assert told == len(NAMES) + len(gate)
    assert len(gate) in range(20, 36)
    assert len([name for name in thin if "kernels" in name]) in range(12, 30)
    assert len([name for name in thin if "test_text" in name]) in range(20, 45)
    assert len([name for name in thin if "engine" in name]) in range(12, 32)
    assert "tests/engine/test_groups.py::test_0" in thin


def test_both_shares_are_run_at_once_and_the_first_is_watched(
    request: pytest.FixtureRequest,
) -> None:
    thin, others, _ = shares(request)
    root = request.config.pluginmanager.get_plugin(str(ROOT / "conftest.py"))
    assert root is not None
    marked: list[tuple[str, str]] = []
    kept = items()
    for item in kept:
        item.add_marker = lambda mark, name=item.nodeid: marked.append((mark, name))
    told: list[Any] = []
    options = {"thin": False, "thinned": False, "both": True}
    hook = SimpleNamespace(pytest_deselected=lambda items: told.extend(items))
    root._thin(SimpleNamespace(getoption=options.__getitem__, hook=hook), kept)
    names = {item.nodeid for item in kept}
    few = names.intersection(SCENARIOS)
    assert few < {*thin}.intersection(SCENARIOS)
    assert names - few == {*thin, *others, *LONG}.difference(SCENARIOS)
    assert len(kept) == len(names)
    assert {item.nodeid for item in told} == {*SCENARIOS} - few
    assert {mark for mark, _ in marked} == {"no_cover"}
    unwatched = {name for _, name in marked}
    assert unwatched.difference(SCENARIOS) == {*others, *LONG}


def test_of_each_function_something_is_left(request: pytest.FixtureRequest) -> None:
    thin, _, _ = shares(request)
    # Of those that take longest, of each file.
    whole = r"\[.*|::orders.*|(?<=test_groups.py)::.*"
    functions = {re.sub(whole, "", name) for name in NAMES}
    assert {re.sub(whole, "", name) for name in thin} == functions


def test_a_plain_run_has_both(request: pytest.FixtureRequest) -> None:
    root = request.config.pluginmanager.get_plugin(str(ROOT / "conftest.py"))
    assert root is not None
    config = SimpleNamespace(getoption=lambda name: False)
    kept = items()
    root._thin(config, kept)
    assert [item.nodeid for item in kept] == [*NAMES, *LONG]


@pytest.mark.parametrize(
    ("expression", "deselected"),
    [
        ("", {"slow", "nightly", "both"}),
        ("slow", {"nightly", "both"}),
        ("slow or not slow", {"nightly", "both"}),
        ("nightly", {"slow"}),
    ],
)
def test_slow_tests_run_if_the_expression_names_their_mark(
    request: pytest.FixtureRequest, expression: str, deselected: set[str]
) -> None:
    """A test with both marks is a nightly one."""
    root = request.config.pluginmanager.get_plugin(str(ROOT / "conftest.py"))
    assert root is not None
    removed: list[str] = []
    marks = {"plain": (), "slow": ("slow",), "nightly": ("nightly",), "both": MARKS}
    kinds: list[Any] = [
        Item(name, lambda mark, of=of: mark if mark in of else None)
        for name, of in marks.items()
    ]
    options: dict[str, Any] = dict.fromkeys(SHARES, False)
    options |= {"markexpr": expression}
    hook = SimpleNamespace(
        pytest_deselected=lambda items: removed.extend(item.nodeid for item in items)
    )
    config = SimpleNamespace(getoption=options.__getitem__, hook=hook)
    root.pytest_collection_modifyitems(config, kinds)
    assert {*removed} == deselected
    assert len(removed) == len(deselected)
    assert {item.nodeid for item in kinds} == {*marks} - deselected


@dataclass(frozen=True, eq=False)
class Item:
    """The parts of a test that deselecting reads."""

    nodeid: str
    get_closest_marker: Any


def put_off(request: pytest.FixtureRequest, share: str) -> set[str]:
    """The tests that count as nightly with an option."""
    root = request.config.pluginmanager.get_plugin(str(ROOT / "conftest.py"))
    assert root is not None
    marked: list[str] = []
    kept = items()
    for item in kept:
        item.add_marker = lambda mark, name=item.nodeid: marked.append(name)
    root._put_off(SimpleNamespace(getoption=share.__eq__), kept)
    return {*marked}


def test_most_of_what_thin_leaves_is_run_at_night(
    request: pytest.FixtureRequest,
) -> None:
    night = put_off(request, "night")
    assert put_off(request, "both") == put_off(request, "thinned") == night
    assert put_off(request, "thin") == put_off(request, "") == set()
    thin, others, _ = shares(request)
    assert night < {*others, *LONG}
    assert not night.intersection(thin)
    assert not [name for name in night if "engine" in name]
    repeated = [name for name in others if "engine" not in name]
    assert len(night) in range(len(repeated) // 2, len(repeated))
