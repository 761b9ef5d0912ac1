"""Independent parts are proven apart, and nothing that only looks independent is."""

import json
import sys
import weakref
from collections import defaultdict
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

import pytest

from everyorder.harness import Report, Scenario, explore, step, use
from everyorder.harness.engine import independence, parts

NAMES = ("a", "b", "c", "d", "e")


class Plugins:
    """A registry by name."""

    def __init__(self) -> None:
        self.plugins: dict[str, Any] = {}

    def add(self, name: str) -> Callable[[], object]:
        self.plugins[name] = self.value(name)
        return partial(self.remove, name)

    def value(self, name: str) -> Any:
        return name.upper()

    def remove(self, name: str) -> None:
        del self.plugins[name]

    def find(self, name: str) -> Hashable:
        return self.plugins.get(name)


def of(
    registry: Callable[[], Any], *names: str, finds: tuple[str, ...] = NAMES
) -> Scenario:
    return Scenario(
        *(step(f"add({each!r})", partial(_add, each)) for each in names or NAMES),
        uses=[use(f"find({each!r})", partial(_find, each)) for each in finds],
        create=registry,
        name="parts",
    )


def _add(name: str, registry: Any) -> Any:
    return registry.add(name)


def _find(name: str, registry: Any) -> Hashable:
    found: Hashable = registry.find(name)
    return found


def by_parts(scenario: Scenario) -> Report:
    return explore(scenario, "parts")


def refusal(report: Report) -> str:
    """Return why a search did not prove parts."""
    assert report.verdict in ("holds", "vacuous"), report.verdict
    reasons = [each for each in report.exploration.skipped if "parts: " in each]
    assert len(reasons) == 1, report.exploration.skipped
    return reasons[0].removeprefix("parts: ")


class Slotted(Plugins):
    """The same in a slot."""

    __slots__ = ("plugins",)


class Remembering(Plugins):
    """What was looked up is remembered by name, and forgotten by name."""

    def __init__(self) -> None:
        super().__init__()
        self.remembered: dict[str, Any] = {}

    def add(self, name: str) -> Callable[[], object]:
        self.remembered.pop(name, None)
        return super().add(name)

    def remove(self, name: str) -> None:
        super().remove(name)
        self.remembered.pop(name, None)

    def find(self, name: str) -> Hashable:
        if name not in self.remembered:
            self.remembered[name] = self.plugins.get(name)
        found: Hashable = self.remembered[name]
        return found


class Topics(Plugins):
    """Handlers by topic, two topics."""

    def __init__(self) -> None:
        self.handlers: defaultdict[str, list[str]] = defaultdict(list)

    def add(self, name: str) -> Callable[[], object]:
        topic = "a" if name in "abc" else "b"
        self.handlers[topic].append(name)
        return partial(self.handlers[topic].remove, name)

    def find(self, name: str) -> Hashable:
        return tuple(sorted(self.handlers.get(name, ())))


class Chosen(Plugins):
    """Names that are switched on, and a setup that nobody changes."""

    def __init__(self) -> None:
        self.on: set[str] = set()
        self.plugins = {"default": "none"}

    def add(self, name: str) -> Callable[[], object]:
        self.on.add(name)
        return partial(self.on.discard, name)

    def find(self, name: str) -> Hashable:
        return name in self.on, len(self.plugins)


@pytest.mark.parametrize("registry", [Plugins, Slotted, Remembering, Chosen])
def test_parts_are_proven(registry: type) -> None:
    scenario = of(registry, "a", "b", "c", finds=("a", "b", "c"))
    whole, apart = explore(scenario, "graph"), by_parts(scenario)
    assert whole.verdict == apart.verdict == "proven"
    assert apart.exploration.strategy == "parts"
    assert any("looks at the exact type of reg" in each for each in apart.assumes)


def test_a_dict_itself_is_a_registry() -> None:
    scenario = Scenario(
        *(step(f"put({x!r})", partial(_put, x), undo=partial(_drop, x)) for x in NAMES),
        uses=[use(f"get({x!r})", partial(_get, x)) for x in NAMES],
        create=dict,
        name="a dict",
    )
    assert by_parts(scenario).verdict == "proven"


def _put(name: str, registry: dict[str, int]) -> None:
    registry[name] = 1


def _get(name: str, registry: dict[str, int]) -> int | None:
    return registry.get(name)


def _drop(name: str, registry: dict[str, int]) -> None:
    del registry[name]


@pytest.mark.slow
def test_twenty_plugins_are_proven_by_default() -> None:
    names = [f"p{number}" for number in range(20)]
    report = explore(of(Plugins, *names, finds=("p0", "p7", "p19")))
    assert report.verdict == "proven"
    assert report.exploration.strategy == "graph+stale+histories:3+parts"


def test_topics_of_one_list_are_one_part() -> None:
    report = by_parts(of(Topics, finds=("a", "b")))
    assert report.verdict == "proven"
    assert (
        "parts: these are independent: steps 1 2 3; steps 4 5"
        in report.exploration.assumptions
    )


# Faults that show only while exactly two others are active: neither alone, nor with
# all others, nor in pairs.  Each counts the others in another way.
COUNTS: dict[str, Callable[[Any], int]] = {
    "len": lambda self: len(self.plugins),
    "loop": lambda self: sum(1 for _ in self.plugins),
    "values": lambda self: len([*self.plugins.values()]),
    "copy": lambda self: len(self.plugins.copy()),
    "merged": lambda self: len({**self.plugins}),
    "membership": lambda self: sum(each in self.plugins for each in NAMES),
    "gets": lambda self: sum(self.plugins.get(each) is not None for each in NAMES),
    "attributes": lambda self: len(vars(self)["plugins"]),
    "equality": lambda self: 2 if self.plugins == dict.fromkeys("bc", 1) else 0,
    "text": lambda self: str(self.plugins).count(":"),
    "by class": lambda self: type(self.plugins).__len__(self.plugins),
    "compiled": lambda self: json.dumps(self.plugins).count(":"),
    "unbound": lambda self: dict.__len__(self.plugins),
    "size": lambda self: sys.getsizeof(dict(self.plugins)) * 0 + len(self.plugins),
}


def has_fault(registry: Callable[[], Any]) -> bool:
    """Return True if the place of `a` in the order of three shows."""
    first, last = registry(), registry()
    # Handles that are kept, as by an exploration.
    handles = [first.add(name) for name in "abc"]
    handles += [last.add(name) for name in "bca"]
    answers = first.find("a"), last.find("a")
    handles.clear()
    return bool(answers[0] != answers[1])


class Counting(Plugins):
    """One more is `a` if two others are there."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way

    def value(self, name: str) -> Any:
        return 2 if name == "a" and COUNTS[self.way](self) == 2 else 1


@pytest.mark.parametrize("way", COUNTS)
def test_what_reads_the_others_is_not_proven(way: str) -> None:
    faulty = partial(Counting, way)
    assert has_fault(faulty)
    assert by_parts(of(faulty)).verdict != "proven"


class Counter(Plugins):
    """How many there are is counted outside of the dict."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def add(self, name: str) -> Callable[[], object]:
        self.count += 1
        return super().add(name)

    def remove(self, name: str) -> None:
        super().remove(name)
        self.count -= 1

    def value(self, name: str) -> Any:
        return 2 if name == "a" and self.count == 3 else 1


class Aliased(Plugins):
    """Another attribute is the same dict."""

    def __init__(self) -> None:
        super().__init__()
        self.same = self.plugins

    def value(self, name: str) -> Any:
        return 2 if name == "a" and len(self.same) == 2 else 1


class Viewed(Plugins):
    """A view of the dict is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.view = self.plugins.keys()

    def value(self, name: str) -> Any:
        return 2 if name == "a" and len(self.view) == 2 else 1


class Name:
    """A name that every registry makes anew."""

    def __init__(self, text: str) -> None:
        self.text = text


class ByObjects(Plugins):
    """Keys are objects of the registry, all of which share their places."""

    def __init__(self) -> None:
        super().__init__()
        self.names = tuple(map(Name, NAMES))
        self.found: dict[Name, int] = {}

    def add(self, name: str) -> Callable[[], object]:
        key = self.names[NAMES.index(name)]
        number = sum(each in self.found for each in self.names[1:4])
        self.found[key] = 2 if name == "a" and number == 2 else 1
        return partial(self.found.pop, key)

    def find(self, name: str) -> Hashable:
        return self.found.get(self.names[NAMES.index(name)])


class Nested(Plugins):
    """Values of one place are changed by way of another."""

    def __init__(self) -> None:
        super().__init__()
        self.plugins["all"] = []

    def add(self, name: str) -> Callable[[], object]:
        every = self.plugins["all"]
        every.append(name)
        every.sort()
        self.plugins[name] = 2 if name == "a" and len(every) == 3 else 1
        return partial(self.remove, name)

    def remove(self, name: str) -> None:
        self.plugins["all"].remove(name)
        super().remove(name)


class Finished(Plugins):
    """Who is alive shows by weak references."""

    def __init__(self) -> None:
        super().__init__()
        self.alive = weakref.WeakSet[Name]()

    def value(self, name: str) -> Any:
        made = Name("2" if name == "a" and len(self.alive) == 2 else "1")
        self.alive.add(made)
        return made

    def find(self, name: str) -> Hashable:
        found = self.plugins.get(name)
        return found.text if found else None


@pytest.mark.parametrize(
    "registry", [Counter, Aliased, Viewed, ByObjects, Nested, Finished]
)
def test_what_shows_elsewhere_is_not_proven(registry: type) -> None:
    assert has_fault(registry)
    assert by_parts(of(registry)).verdict != "proven"


class Logging(Plugins):
    """Right, but all steps write one entry."""

    def __init__(self) -> None:
        super().__init__()
        self.log = {"last": ""}

    def value(self, name: str) -> Any:
        self.log["last"] = ""
        return name


class Listed(Plugins):
    """Right, but names are in a list."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def add(self, name: str) -> Callable[[], object]:
        self.names.append(name)
        self.names.sort()
        return partial(self.names.remove, name)

    def find(self, name: str) -> Hashable:
        return name in self.names


class Fragile(Plugins):
    """Right, and treats other mappings than dicts in another way."""

    def find(self, name: str) -> Hashable:
        return super().find(name) if type(self.plugins) is dict else "no dict"


def listed(registry: Any) -> str:
    return ", ".join(sorted(registry.plugins))


def with_look(
    look: Callable[[Any], Any], registry: Callable[[], Any] = Plugins
) -> Scenario:
    scenario = of(registry)
    return Scenario(
        *scenario.steps,
        uses=scenario.uses,
        create=registry,
        observe=look,
        name="looked at",
    )


def test_a_look_that_only_reads_belongs_to_no_part() -> None:
    report = by_parts(with_look(listed))
    assert report.verdict == "proven"
    assert report.assumes[1] == (
        "the look changed nothing and broke no law at any state that was reached, so "
        "at no other, and the order of registry.plugins is not read there"
    )


def in_order(registry: Any) -> str:
    return ", ".join(registry.plugins)


def listed_and_noted(registry: Any) -> str:
    names = listed(registry)
    if len(names) == 7:  # three names
        registry.plugins["seen"] = "seen"
    return names


def listed_with_memo(registry: Any) -> str:
    return ", ".join(sorted(registry.remembered))


@pytest.mark.parametrize("look", [in_order, listed_and_noted])
def test_a_look_that_reads_an_order_or_writes_is_not_left_out(look: Any) -> None:
    assert by_parts(with_look(look)).verdict != "proven"


def test_a_look_at_a_memo_is_refuted() -> None:
    assert by_parts(with_look(listed_with_memo, Remembering)).verdict == "order"


SOME = ["d", "b", "e", "c"]


class Swallowing(Plugins):
    """A method of a real dict fails on others, and nobody hears of it."""

    def value(self, name: str) -> Any:
        try:
            return 2 if name == "a" and [*dict.keys(self.plugins)] == SOME else 1
        except TypeError:
            return 1


class Evaluating(Plugins):
    """Names of a rule are looked up in C."""

    def __init__(self) -> None:
        super().__init__()
        self.plugins["__builtins__"] = {}

    def value(self, name: str) -> Any:
        try:
            fits = name == "a" and eval("b and c and not 'd' in p", self.plugins)
        except (NameError, TypeError):
            fits = False
        return 2 if fits else 1


class Dumping(Plugins):
    """What is no dict is written in another way."""

    def value(self, name: str) -> Any:
        text = json.dumps(self.plugins, default=lambda _: "")
        return 2 if name == "a" and [*json.loads(text)] == SOME else 1


class Matching(Plugins):
    """A pattern reads several keys."""

    def value(self, name: str) -> Any:
        match self.plugins:
            case {"b": _, "c": _, **rest} if name == "a" and not rest:
                return 2
        return 1


class Unsure(LookupError):
    """An error whose text is made late."""

    def __init__(self, registry: Plugins) -> None:
        super().__init__()
        self.registry = registry

    def __str__(self) -> str:
        several = [*self.registry.plugins] == [*SOME, "a"]
        return "ambiguous" if several else "unknown"


class Doubting(Plugins):
    """The text of an error reads all names."""

    def find(self, name: str) -> Hashable:
        if name == "a" and "a" in self.plugins:
            raise Unsure(self)
        return super().find(name)


@pytest.mark.parametrize("registry", [Swallowing, Evaluating, Dumping, Matching])
def test_what_is_read_unseen_is_not_proven(registry: type) -> None:
    assert by_parts(of(registry)).verdict != "proven"


def test_what_the_text_of_an_error_reads_is_an_assumption() -> None:
    report = by_parts(of(Doubting))
    assert any(
        each.startswith("use 1 changed nothing")
        and each.endswith("the order of registry.plugins is not read there")
        for each in report.assumes
    )


class Ordered(Plugins):
    """Five names of one entry; an answer reads their order."""

    def __init__(self) -> None:
        self.names: dict[str, dict[str, int]] = {"t": {}, "u": {}}

    def names_with(self, name: str) -> dict[str, int]:
        return self.names["t" if name in "abcde" else "u"]

    def add(self, name: str) -> Callable[[], object]:
        self.names_with(name)[name] = 1
        return partial(self.names_with(name).pop, name)

    def find(self, name: str) -> Hashable:
        if name == "a" and [*self.names_with(name)] == ["d", "b", "e", "a", "c"]:
            return 2
        return self.names_with(name).get(name)


@pytest.mark.slow
def test_an_order_within_a_part_is_an_assumption() -> None:
    report = by_parts(of(Ordered, *"abcdefg", finds=(*"abcdefg",)))
    assert report.verdict == "proven"
    assert "the order of registry.names['t'] is never read" in report.assumes


def memo_or_count(registry: Any) -> Hashable:
    names = sorted(registry.plugins)
    rare = names == ["b", "c", "d"]
    return len(names), rare and registry.remembered.get("b") is None


@pytest.mark.slow
def test_no_reader_is_left_out_where_answers_are_remembered() -> None:
    scenario = of(Remembering)
    asking = Scenario(
        *scenario.steps,
        uses=[*scenario.uses, use("ask", memo_or_count)],
        create=Remembering,
        name="asking",
    )
    assert by_parts(asking).verdict != "proven"


class Both(Plugins):
    """Two sets that are compared by an answer of one part."""

    def __init__(self) -> None:
        super().__init__()
        self.on: set[str] = set()
        self.off: set[str] = set()

    def find(self, name: str) -> Hashable:
        return super().find(name), bool(self.on & self.off), self.on == self.off


def test_containers_with_records_work_together() -> None:
    assert by_parts(of(Both)).verdict == "proven"


def test_what_cannot_be_followed_is_said() -> None:
    scenario = of(Plugins)
    named = Scenario(
        *scenario.steps,
        uses=scenario.uses,
        create=Plugins,
        fingerprint=lambda registry: sorted(registry.plugins),
        name="named",
    )
    assert refusal(by_parts(named)).startswith("accesses cannot be followed with")


def few(registry: Any) -> list[str]:
    return [] if len(registry.plugins) < 9 else ["nine"]


def test_a_law_about_several_parts_joins_them() -> None:
    scenario = of(Plugins)
    lawful = Scenario(
        *scenario.steps, uses=scenario.uses, create=Plugins, check=few, name="lawful"
    )
    report = by_parts(lawful)
    assert refusal(report).endswith("check= share the keys of registry.plugins")


SHARED = Plugins()


def shared() -> Plugins:
    SHARED.plugins.clear()
    return SHARED


def test_a_registry_that_lasts_gets_its_containers_back() -> None:
    before = id(SHARED.plugins)
    assert by_parts(of(shared)).verdict in ("proven", "holds")
    assert type(SHARED.plugins) is dict
    assert id(SHARED.plugins) == before


@pytest.mark.parametrize(
    ("registry", "reason"),
    [
        (
            Logging,
            "all steps are one part: step 1 and step 2 share registry.log['last']",
        ),
        (Fragile, "operations work differently while accesses are recorded"),
        (Aliased, "no attribute of the registry is a dict or a set with one reference"),
    ],
)
def test_the_reason_is_said(registry: type, reason: str) -> None:
    assert refusal(by_parts(of(registry, *"abc", finds=("b", "c")))) == reason


def test_what_the_steps_share_is_said() -> None:
    lists = by_parts(of(Listed, *"abc", finds=("b", "c"))).exploration.skipped
    assert lists[0].startswith("groups: all steps are one group: all steps touch regi")
    one = refusal(by_parts(of(partial(Counting, "len"), finds=NAMES[1:])))
    assert one.startswith("all steps are one part: step 1 and ")
    assert one.endswith(" share the keys of registry.plugins")


# Each check is needed: without it, a faulty registry is called proven.


def test_planted_accesses_of_all_places_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = of(partial(Counting, "len"))
    monkeypatch.setattr(independence, "EVERY", object())
    monkeypatch.setattr(parts, "_disagreement", lambda *_: "")
    assert by_parts(scenario).verdict == "proven"


def test_planted_reads_of_other_places_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = of(partial(Counting, "gets"))
    monkeypatch.setattr(independence, "shared_places", lambda *_: frozenset())
    monkeypatch.setattr(parts, "_disagreement", lambda *_: "")
    assert by_parts(scenario).verdict == "proven"


def test_the_random_walk_finds_the_same_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = of(partial(Counting, "gets"))
    monkeypatch.setattr(independence, "shared_places", lambda *_: frozenset())
    assert by_parts(scenario).verdict != "proven"
