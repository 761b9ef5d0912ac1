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
from itertools import cycle, islice
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
from tests.bench.row import (
    Row,
    apart,
    beside_fixed_work,
    limited,
    median_seconds,
    pairs,
    processor_seconds,
    ratio,
    seconds,
)

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


class PlainPlugins(Plugins):
    """The same, and nothing is remembered."""

    def find(self, name: str) -> str | None:
        plugin = self.plugins.get(name)
        return None if plugin is None else plugin.name


class Words:
    """A plain dict of words."""

    def __init__(self) -> None:
        self.plugins: dict[str, str] = {}

    def add(self, name: str) -> Callable[[], object]:
        self.plugins[name] = name.upper()
        return partial(self.plugins.pop, name)

    def find(self, name: str) -> str | None:
        return self.plugins.get(name)


class Bus:
    """Handlers of topics; the sorted handlers of a topic are remembered."""

    def __init__(self) -> None:
        self.handlers: dict[str, list[str]] = {}
        self.remembered: dict[str, tuple[str, ...]] = {}

    def on(self, topic: str, handler: str) -> Callable[[], None]:
        self.handlers.setdefault(topic, []).append(handler)
        self.remembered.clear()
        return partial(self.off, topic, handler)

    def off(self, topic: str, handler: str) -> None:
        self.handlers[topic].remove(handler)
        if not self.handlers[topic]:
            del self.handlers[topic]
        self.remembered.clear()

    def emit(self, topic: str) -> tuple[str, ...]:
        if topic not in self.remembered:
            self.remembered[topic] = tuple(sorted(self.handlers.get(topic, ())))
        return self.remembered[topic]


def bus(handlers: int) -> Scenario:
    """The scenario of a bus of three topics."""
    topics = [*islice(cycle("abc"), handlers)]
    return Scenario(
        *(
            step(f"on({topic!r}, {number})", partial(_listen, topic, f"h{number}"))
            for number, topic in enumerate(topics)
        ),
        uses=[use(f"emit({topic!r})", partial(_emit, topic)) for topic in "abc"],
        create=Bus,
        name="bus",
    )


def _listen(topic: str, handler: str, registry: Any) -> Any:
    return registry.on(topic, handler)


def _emit(topic: str, registry: Any) -> Any:
    return registry.emit(topic)


def scenario(
    kind: type[Plugins] | type[Words], steps: int = 5, uses: int = 2
) -> Scenario:
    names = "abcdefghijklmnopqrstuvwxyz"[:steps]
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
    took, slow = beside_fixed_work(proven)
    large = [name for name in ("numba", "torch") if find_spec(name) is not None]
    for name in large:
        import_module(name)
    beside = f" ({proven():.2f} s beside {' and '.join(large)})" if large else ""
    what = "a clean registry, five steps and two uses, proven"
    yield limited(what, took, 2, slow, note=beside)


def many_steps() -> Iterator[Row]:
    """Registries without a cache, and one with a cache, of more and more steps."""
    for kind, count, most in (
        (Words, 8, 3),
        (Words, 10, 15),
        (Words, 12, 60),
        (PlainPlugins, 8, 3),
        (PlainPlugins, 10, 15),
        (Words, 20, 120),
    ):
        prove_it = partial(prove, scenario(kind, count, 3))
        took, slow = beside_fixed_work(partial(processor_seconds, prove_it))
        values = "words" if kind is Words else "objects with options"
        what = f"a plain dict of {values}, {count} steps and three look-ups, proven"
        yield limited(what, took, most, slow)
    took, slow = beside_fixed_work(partial(processor_seconds, partial(prove, bus(6))))
    what = "a bus with a cache, three topics, six handlers, proven"
    yield limited(what, took, 60, slow)


def prove(clean: Scenario) -> None:
    """Explore what is clean."""
    report = explore(clean)
    assert report.verdict == "proven", report.exploration.skipped


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
        measured, slow = beside_fixed_work(
            lambda: pairs(
                lambda: run(command),
                lambda: run([sys.executable, "-c", "import pytest"]),
                9,
            )
        )
    took = median(one - other for one, other in measured)
    what = "`everyorder run FILE` to the verdict, three steps, less `import pytest`"
    yield limited(what, took, 0.4, slow)


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
        (
            canonical_state,
            a_proof,
            many_steps,
            zoo,
            from_the_command_line,
            beside_hypothesis,
        ),
    )
)
