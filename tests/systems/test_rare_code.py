"""Code that runs only in a rare state, and reads a global of a third module.

The registry counts its questions there, and from the fifth one on its answer is wrong.
Only a registry with `rare` active steps calls it.
"""

import sys
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from unittest import mock

import pytest

from everyorder.harness import Budget, Report, Scenario, explore, steps, use
from everyorder.harness.engine.states import Search

FIRST = """
import sys
{imports}

class Registry:
    def __init__(self):
        self.items = {{}}
        {forget}

    def add(self, name):
        self.items[name] = name
        {forget}

        def undo():
            del self.items[name]
            {forget}

        return undo

def ask(registry):
    if len(registry.items) < {rare}:
        return "few"
    {call}

def names(registry):
    return " ".join(sorted(registry.items))
"""
SECOND = """
import {third}

def forget():
    {third}.COUNT = 0

def record():
    {third}.COUNT += 1
    return "wrong" if {third}.COUNT > 4 else "right"
"""
# The same without a change.
READING = """
import {third}

def forget():
    pass

def record():
    return "wrong" if {third}.COUNT > 4 else "right"
"""
THIRD = "COUNT = 0\n"

# How the first module reaches the second one: its imports, and the expression.
WAYS = {
    "an import": ("import {second}", "{second}"),
    "an import of a name": ("import importlib", "importlib.import_module('{second}')"),
    "a table of modules": ("", "sys.modules['{second}']"),
    "its text in parts": ("", "sys.modules['{begin}' + '{end}']"),
}


@contextmanager
def modules(sources: Mapping[str, str]) -> Iterator[types.ModuleType]:
    """Context: modules of these names, each of which may import those before it."""
    try:
        for name, source in sources.items():
            module = sys.modules[name] = types.ModuleType(name)
            package, _, short = name.rpartition(".")
            if package:
                setattr(sys.modules[package], short, module)
            exec(compile(source, f"<{name}>", "exec"), module.__dict__)
        yield module
    finally:
        for name in sources:
            sys.modules.pop(name, None)


def explored(way: str, *, package: str, rare: int, faulty: bool = True) -> Report:
    """Explore such a registry without the random walk, which ignores the scope."""
    third, second, first = (f"{package}{name}" for name in ("third", "second", "first"))
    imports, module = WAYS[way]
    parts = {"second": second, "begin": second[:4], "end": second[4:]}
    called = module.format(**parts)
    sources = {
        **({package[:-1]: ""} if package.endswith(".") else {}),
        third: THIRD,
        second: (SECOND if faulty else READING).format(third=third),
        first: FIRST.format(
            imports=imports.format(**parts),
            forget=f"{called}.forget()",
            call=f"return {called}.record()",
            rare=rare,
        ),
    }
    without = mock.patch.object(Search, "walk_at_random", return_value=None)
    with modules(sources) as made, without:
        scenario = Scenario(
            *steps("add", "abc", made.Registry.add),
            uses=[use("ask", made.ask)],
            create=made.Registry,
            observe=made.names,
        )
        return explore(scenario, budget=Budget(steps=20_000))


def is_plain(report: Report) -> bool:
    return report.verdict == "proven" and not report.assumes


@pytest.mark.parametrize("way", ["an import", "its text in parts"])
@pytest.mark.parametrize("rare", [1, 2])
def test_a_global_of_another_package_that_rare_code_reads_is_named(
    way: str, rare: int
) -> None:
    """It was read after the scope had been determined, and was left out."""
    report = explored(way, package="rare_", rare=rare)
    assert report.verdict == "holds"
    (caveat,) = report.exploration.caveats
    assert caveat.text == (
        "rare_third.COUNT changed outside of the followed state; name it in watch="
    )


@pytest.mark.slow
@pytest.mark.parametrize("way", ["an import of a name", "a table of modules"])
@pytest.mark.parametrize("package", ["rare_", "rare."])
def test_so_is_a_module_that_is_reached_by_its_name(way: str, package: str) -> None:
    report = explored(way, package=package, rare=2)
    assert report.verdict == "holds"
    (caveat,) = report.exploration.caveats
    assert caveat.text.startswith(f"{package}third.COUNT changed outside")


def test_a_global_of_the_same_package_that_rare_code_reads_is_state() -> None:
    report = explored("an import", package="rare.", rare=3)
    assert report.verdict == "order"
    (violation,) = report.exploration.violations
    assert len(violation.shown) == 8
    assert violation.paths == ("rare.third.COUNT: 0 / 4",)


@pytest.mark.parametrize("package", ["rare_", "rare."])
def test_a_global_that_rare_code_only_reads_is_no_obstacle(package: str) -> None:
    assert is_plain(explored("an import", package=package, rare=3, faulty=False))


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_global_that_is_read_with_all_steps_active_only_is_state(way: str) -> None:
    """Its change was undone before the next check, and the verdict was proven."""
    assert not is_plain(explored(way, package="rare_", rare=3))
