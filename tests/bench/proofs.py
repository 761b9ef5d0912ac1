"""Proofs of registries that know nothing of this package: what they cost."""

import copy
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from everyorder.harness import Scenario, explore, step, use
from everyorder.harness.state import Heap, scope_of
from tests.bench.row import Row, apart, median_seconds, pairs, ratio, seconds

# A registry of this many plugins has some 500 objects.
PLUGINS = 100

# Zoo registries for the median: a class each, of the seeds that it is tested with.
ZOO_SEED = 1009


class Plugin:
    """What people register: a name, some options, and who needs it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.options = {"priority": len(name), "tags": [name, name.upper()]}


class Plugins:
    """A registry as one writes it: by name, and what was looked up remembered."""

    def __init__(self) -> None:
        self.plugins: dict[str, Plugin] = {}
        self.remembered: dict[str, Plugin | None] = {}

    def add(self, name: str) -> Callable[[], None]:
        self.plugins[name] = Plugin(name)
        self.forget()
        return partial(self.remove, name)

    def remove(self, name: str) -> None:
        del self.plugins[name]
        self.forget()

    def forget(self) -> None:
        self.remembered.clear()

    def find(self, name: str) -> str | None:
        if name not in self.remembered:
            self.remembered[name] = self.plugins.get(name)
        found = self.remembered[name]
        return None if found is None else found.name


class StalePlugins(Plugins):
    """The same, and what was looked up is not forgotten on removal."""

    def remove(self, name: str) -> None:
        del self.plugins[name]


def scenario(kind: type[Plugins], steps: int = 5, uses: int = 2) -> Scenario:
    names = "abcdefgh"[:steps]
    return Scenario(
        *(step(f"add({name!r})", _adding(name)) for name in names),
        uses=[use(f"find({name!r})", _finding(name)) for name in names[:uses]],
        create=kind,
        observe=lambda registry: ", ".join(sorted(registry.plugins)),
        name=kind.__name__,
    )


def _adding(name: str) -> Callable[[Any], Any]:
    return lambda registry: registry.add(name)


def _finding(name: str) -> Callable[[Any], Any]:
    return lambda registry: registry.find(name)


def canonical_state() -> Iterator[Row]:
    """The form of a registry of some hundred objects beside what copies it."""
    registry = Plugins()
    for number in range(PLUGINS):
        registry.add(f"plugin_{number}")
    heap = Heap(scope_of([registry]))
    form = partial(heap.form, {"registry": registry})
    objects = form().objects
    for what, other, target in (
        ("`copy.deepcopy`", partial(copy.deepcopy, registry), 1.0),
        ("`pickle.dumps`", partial(pickle.dumps, registry), None),
    ):
        measured = pairs(form, other, 31)
        figure = ratio(measured)
        each = median(one for one, _ in measured) / objects * 1e6
        yield Row(
            f"the complete state of a registry ({objects} objects), over {what}",
            f"{figure:.2f} ({each:.1f} µs an object)",
            "≤ 1" if target else "beside",
            None if target is None else figure <= target,
            "no target" if target is None else "",
        )


def proven() -> float:
    """How long a proof of five steps and two uses takes in this process, in seconds."""
    clean = scenario(Plugins)
    assert explore(clean).verdict == "proven", "it is clean"
    return median_seconds(lambda: explore(clean), 3)


def a_proof() -> Iterator[Row]:
    """Five steps and two uses proven, alone, and beside large libraries.

    What lies outside of the state is looked at as well.
    """
    took = proven()
    large = [name for name in ("numba", "torch") if find_spec(name) is not None]
    for name in large:
        import_module(name)
    yield Row(
        "a clean registry, five steps and two uses, proven",
        f"{took:.2f} s ({proven():.2f} s beside {' and '.join(large)})",
        "≤ 2 s",
        took <= 2,
    )


def zoo() -> Iterator[Row]:
    """The registries that tests judge verdicts by."""
    from tests.zoo.registries import CLASSES, entries
    from tests.zoo.verdicts import examine

    took, played = [], []
    for kind in CLASSES:
        for entry in entries(range(ZOO_SEED, ZOO_SEED + 1), kind):
            judgement = examine(entry)
            took.append(judgement.seconds)
            played.append(judgement.operations)
    yield Row(
        f"the zoo, {len(took)} registries of every class, to the verdict, median",
        f"{median(took):.2f} s, {median(played):.0f} operations",
        "beside",
        None,
        "no target",
    )


FILE = """
from everyorder.harness import Scenario, step


class Names(set):
    def put(self, name):
        self.add(name)
        return lambda: self.discard(name)


names = Scenario(
    step("put a", lambda names: names.put("a")),
    step("put b", lambda names: names.put("b")),
    step("put c", lambda names: names.put("c")),
    create=Names,
    observe=lambda names: " ".join(sorted(names)),
)
"""


def from_the_command_line() -> Iterator[Row]:
    """`everyorder run FILE`, three steps, over the import of pytest."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "test_names.py")
        file.write_text(FILE, encoding="utf-8")
        run = partial(subprocess.run, check=True, capture_output=True, cwd=folder)
        command = [sys.executable, "-m", "everyorder", "run", file.name]
        measured = pairs(
            lambda: run(command),
            lambda: run([sys.executable, "-c", "import pytest"]),
            9,
        )
    took = median(one - other for one, other in measured)
    yield Row(
        "`everyorder run FILE` to the verdict, three steps, less `import pytest`",
        f"{took:.2f} s",
        "≤ 0.4 s",
        took <= 0.4,
    )


class Machine(RuleBasedStateMachine):
    """The same question to Hypothesis: what is found is what is registered."""

    def __init__(self) -> None:
        super().__init__()
        self.registry = StalePlugins()
        self.undo: dict[str, Callable[[], None]] = {}

    def toggle(self, name: str) -> None:
        if name in self.undo:
            self.undo.pop(name)()
        else:
            self.undo[name] = self.registry.add(name)

    @rule()
    def a(self) -> None:
        self.toggle("a")

    @rule()
    def b(self) -> None:
        self.toggle("b")

    @rule()
    def c(self) -> None:
        self.toggle("c")

    @precondition(lambda self: True)
    @rule()
    def find(self) -> None:
        assert self.registry.find("a") == ("a" if "a" in self.undo else None)

    @invariant()
    def names(self) -> None:
        assert sorted(self.registry.plugins) == sorted(self.undo)


def beside_hypothesis() -> Iterator[Row]:
    """The time until a stale cache is found and made short."""
    stale = scenario(StalePlugins, 3, 1)
    quiet = settings(
        database=None,
        deadline=None,
        max_examples=1000,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )

    def hypothesis() -> None:
        try:
            run_state_machine_as_test(Machine, settings=quiet)
        except AssertionError:
            return
        raise AssertionError("the cache is stale, and it was not found")

    def ours() -> None:
        assert explore(stale).verdict == "order", "the cache is stale"

    first = seconds(hypothesis)
    # Its examples are drawn by chance: one search takes ten times as long as another.
    measured = pairs(ours, hypothesis, 21)
    yield Row(
        "a stale cache found and shortened, over a Hypothesis state machine",
        f"{ratio(measured):.2f} ({median(one for one, _ in measured):.2f} s, "
        f"Hypothesis {median(other for _, other in measured):.2f} s, its first run "
        f"{first:.2f} s)",
        "≤ 1",
        ratio(measured) <= 1,
        why="Hypothesis draws by chance, and was lucky in most of its searches",
    )


PROOF_ROWS = tuple(
    map(
        apart,
        (canonical_state, a_proof, zoo, from_the_command_line, beside_hypothesis),
    )
)
