"""Registries that fill something of their process at the first use.

`LAZY` are right: what they fill is a function of its inputs.  `LEAKING` are not: what
the first performances leave behind shows in later answers, and most of them look like
`LAZY` in a process in which every operation was performed before.  `DEEP` leave
something only at a state that short histories do not reach.

Each entry is a function that builds a new class, so that each call is a first use.
"""

import functools
import sys
import types
import typing
import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from everyorder.harness import Scenario, steps, use
from everyorder.harness.scenario.step import UseStep


class Base:
    """A right registry."""

    def __init__(self) -> None:
        self.items: dict[str, int] = {}

    def add(self, name: str) -> Callable[[], object]:
        self.items[name] = 1
        return lambda: self.items.pop(name)

    def get(self, name: str) -> Any:
        return self.items.get(name)


Build = Callable[[], Scenario]

LAZY: dict[str, Build] = {}
LEAKING: dict[str, Build] = {}
DEEP: dict[str, Build] = {}
DEEP_LEAKING: dict[str, Build] = {}


def scenario(
    create: Callable[[], Any],
    *,
    names: str = "ab",
    uses: Sequence[UseStep] = (),
    **others: Any,
) -> Scenario:
    """Return the scenario of `add` with some names, and of `get`."""
    others.setdefault("observe", lambda registry: " ".join(sorted(registry.items)))
    return Scenario(
        *steps("add", names, lambda registry, name: registry.add(name)),
        uses=[*uses] or [use("get('a')", lambda registry: registry.get("a"))],
        create=create,
        **others,
    )


def entry(table: dict[str, Build]) -> Callable[[Build], Build]:
    """Return a decorator that adds a function to a table, by its name."""

    def add(build: Build) -> Build:
        table[build.__name__] = build
        return build

    return add


@entry(LAZY)
def settings_in_a_class_attribute() -> Scenario:
    class Registry(Base):
        settings: ClassVar[dict[str, int] | None] = None

        def get(self, name: str) -> Any:
            if Registry.settings is None:
                Registry.settings = {"depth": 1}
            return self.items.get(name), Registry.settings["depth"]

    return scenario(Registry)


@entry(LAZY)
def a_flag_on_the_class() -> Scenario:
    class Registry(Base):
        def get(self, name: str) -> Any:
            if "__resolved__" not in vars(Registry):
                Registry.__resolved__ = True  # type: ignore[attr-defined]  # set lazily
            return super().get(name)

    return scenario(Registry)


@entry(LAZY)
def a_function_with_lru_cache() -> Scenario:
    @functools.cache
    def normal(name: str) -> str:
        return name.lower()

    class Registry(Base):
        def add(self, name: str) -> Callable[[], object]:
            return super().add(normal(name))

    return scenario(Registry)


@entry(LAZY)
def a_memo_in_a_default() -> Scenario:
    def doubled(name: str, memo: dict[str, str] = {}) -> str:  # noqa: B006  # a memo
        return memo.setdefault(name, name * 2)

    class Registry(Base):
        def get(self, name: str) -> Any:
            return super().get(name), doubled(name)

    return scenario(Registry)


@entry(LAZY)
def a_memo_in_a_closure() -> Scenario:
    memo: dict[str, str] = {}

    def get(registry: Base) -> Any:
        return registry.get("a"), memo.setdefault("a", "A")

    return scenario(Base, uses=[use("get('a')", get)])


@entry(LAZY)
def a_rebound_variable_of_a_closure() -> Scenario:
    settings: dict[str, int] | None = None

    def get(registry: Base) -> Any:
        nonlocal settings
        if settings is None:
            settings = {"depth": 1}
        return registry.get("a"), settings["depth"]

    return scenario(Base, uses=[use("get('a')", get)])


@entry(LAZY)
def a_cached_property_of_a_shared_object() -> Scenario:
    class Spec:
        @functools.cached_property
        def signature(self) -> tuple[str, ...]:
            return ("name",)

    class Registry(Base):
        spec = Spec()

        def add(self, name: str) -> Callable[[], object]:
            assert self.spec.signature == ("name",)
            return super().add(name)

    return scenario(Registry)


@entry(LAZY)
def plugins_that_are_loaded_once() -> Scenario:
    class Plugins:
        loaded: ClassVar[dict[str, int] | None] = None

        @classmethod
        def load(cls) -> dict[str, int]:
            if cls.loaded is None:
                cls.loaded = {"json": 1, "yaml": 2}
            return cls.loaded

    class Registry(Base):
        def get(self, name: str) -> Any:
            return super().get(name), sorted(Plugins.load())

    return scenario(Registry)


@entry(LAZY)
def annotations_that_are_resolved_once() -> Scenario:
    class Item:
        size: "int"

    def resolved(kind: Any) -> Any:
        if getattr(kind, "__attrs_types_resolved__", None) is not kind:
            kind.hints = typing.get_type_hints(kind)
            kind.__attrs_types_resolved__ = kind
        return kind

    class Registry(Base):
        def add(self, name: str) -> Callable[[], object]:
            resolved(Item)
            return super().add(name)

    return scenario(Registry)


@entry(LAZY)
def a_table_by_type() -> Scenario:
    class Registry(Base):
        table: ClassVar[dict[type, str]] = {}

        def add(self, name: str) -> Callable[[], object]:
            Registry.table.setdefault(type(name), "text")
            return super().add(name)

    return scenario(Registry)


@entry(LAZY)
def a_descriptor_that_fills_itself() -> Scenario:
    class Lazy:
        value: list[int] | None = None

        def __get__(self, instance: object, owner: type) -> list[int]:
            if self.value is None:
                self.value = [1, 2]
            return self.value

    class Registry(Base):
        depths = Lazy()

        def get(self, name: str) -> Any:
            return super().get(name), tuple(self.depths)

    return scenario(Registry)


@entry(LAZY)
def an_attribute_of_a_function() -> Scenario:
    def pattern() -> Any:
        if not hasattr(pattern, "made"):
            pattern.made = "a+"  # type: ignore[attr-defined]  # set lazily
        return pattern.made  # type: ignore[attr-defined]  # set above

    class Registry(Base):
        def get(self, name: str) -> Any:
            return super().get(name), pattern()

    return scenario(Registry)


@entry(LAZY)
def an_attribute_of_a_module() -> Scenario:
    tables: Any = types.ModuleType("tables_of_a_test")

    class Registry(Base):
        def get(self, name: str) -> Any:
            if not hasattr(tables, "depths"):
                tables.depths = (1, 2)
            return super().get(name), tables.depths

    return scenario(Registry)


@entry(LAZY)
def a_memo_by_weak_keys() -> Scenario:
    class Kind:
        pass

    memo: weakref.WeakKeyDictionary[type, str] = weakref.WeakKeyDictionary()

    class Registry(Base):
        def get(self, name: str) -> Any:
            if Kind not in memo:
                memo[Kind] = "kind"
            return super().get(name), memo[Kind]

    return scenario(Registry)


@entry(LAZY)
def a_memo_in_what_looks() -> Scenario:
    lines: dict[tuple[str, ...], str] = {}

    def observe(registry: Base) -> str:
        names = tuple(sorted(registry.items))
        return lines.setdefault(names, " ".join(names))

    return scenario(Base, observe=observe)


@entry(LAZY)
def what_only_an_undo_fills() -> Scenario:
    class Registry(Base):
        ended: ClassVar[str | None] = None

        def add(self, name: str) -> Callable[[], object]:
            undo = super().add(name)

            def ending() -> None:
                if Registry.ended is None:
                    Registry.ended = "ready"
                undo()

            return ending

    return scenario(Registry)


@entry(LAZY)
def the_text_of_a_refusal() -> Scenario:
    class Registry(Base):
        refusal: ClassVar[str | None] = None

        def get(self, name: str) -> Any:
            if name not in self.items:
                if Registry.refusal is None:
                    Registry.refusal = "no such name"
                raise LookupError(Registry.refusal)
            return super().get(name)

    return scenario(Registry)


@entry(LAZY)
def what_is_filled_at_the_second_call() -> Scenario:
    class Registry(Base):
        calls: ClassVar[list[str]] = []

        def get(self, name: str) -> Any:
            if len(Registry.calls) < 3:
                Registry.calls.append(name)
            return super().get(name)

    return scenario(Registry)


@entry(LEAKING)
def a_name_that_a_middle_set_fills() -> Scenario:
    """The first process keeps one name; few sets, none of them short, keep another."""

    class Registry(Base):
        kept: ClassVar[str | None] = None

        def is_middle(self) -> bool:
            names = self.items.keys()
            return len(names) > 2 and "e" in names and not names & {"a", "i"}

        def get(self, name: str) -> Any:
            fills = self.is_middle() or self.items.keys() == {*"abc"}
            if fills and Registry.kept is None:
                Registry.kept = max(self.items)
            return Registry.kept if fills else self.items.get(name)

    uses = [use(f"get('{each}')", _getting(each)) for each in "ab"]
    return scenario(Registry, names="abcdefghi", uses=uses)


def _getting(name: str) -> Callable[[Any], Any]:
    return lambda registry: registry.get(name)


@entry(DEEP)
def a_memo_by_the_active_names() -> Scenario:
    class Registry(Base):
        lines: ClassVar[dict[tuple[str, ...], str]] = {}

        def get(self, name: str) -> Any:
            names = tuple(sorted(self.items))
            return Registry.lines.setdefault(names, " ".join(names))

    return scenario(Registry, names="abc")


@entry(DEEP)
def a_memo_by_the_order() -> Scenario:
    class Registry(Base):
        lines: ClassVar[dict[tuple[str, ...], str]] = {}

        def get(self, name: str) -> Any:
            names = tuple(self.items)
            return Registry.lines.setdefault(names, " ".join(sorted(names)))

    return scenario(Registry, names="abc")


@entry(LEAKING)
def a_list_on_the_class() -> Scenario:
    class Registry:
        items: ClassVar[list[str]] = []

        def add(self, name: str) -> Callable[[], object]:
            self.items.append(name)
            return lambda: self.items.remove(name)

        def get(self, name: str) -> Any:
            return name in self.items

    return scenario(Registry)


@entry(LEAKING)
def a_log_on_the_class() -> Scenario:
    class Registry(Base):
        log: ClassVar[list[str]] = []

        def add(self, name: str) -> Callable[[], object]:
            Registry.log.append(name)
            return super().add(name)

    return scenario(Registry)


@entry(LEAKING)
def the_names_that_ever_were() -> Scenario:
    class Registry(Base):
        ever: ClassVar[set[str]] = set()

        def add(self, name: str) -> Callable[[], object]:
            Registry.ever.add(name)
            return super().add(name)

        def get(self, name: str) -> Any:
            return name in Registry.ever

    return scenario(Registry)


@entry(LEAKING)
def the_first_name_wins() -> Scenario:
    class Registry(Base):
        first: ClassVar[str | None] = None

        def add(self, name: str) -> Callable[[], object]:
            if Registry.first is None:
                Registry.first = name
            return super().add(name)

        def get(self, name: str) -> Any:
            return Registry.first if self.items else None

    return scenario(Registry)


@entry(LEAKING)
def a_warning_that_is_shown_once() -> Scenario:
    class Registry(Base):
        warned: ClassVar[bool] = False

        def get(self, name: str) -> Any:
            first, Registry.warned = not Registry.warned, True
            return "deprecated" if first else super().get(name)

    return scenario(Registry)


@entry(LEAKING)
def defaults_that_are_captured() -> Scenario:
    class Registry(Base):
        defaults: ClassVar[tuple[str, ...] | None] = None

        def get(self, name: str) -> Any:
            if Registry.defaults is None:
                Registry.defaults = tuple(sorted(self.items))
            return Registry.defaults, super().get(name)

    return scenario(Registry)


@entry(LEAKING)
def a_memo_of_an_answer() -> Scenario:
    class Registry(Base):
        memo: ClassVar[dict[str, Any]] = {}

        def get(self, name: str) -> Any:
            return Registry.memo.setdefault(name, super().get(name)), len(self.items)

    return scenario(Registry)


@entry(LEAKING)
def a_flag_for_two_names() -> Scenario:
    class Registry(Base):
        crowded: ClassVar[bool] = False

        def add(self, name: str) -> Callable[[], object]:
            undo = super().add(name)
            Registry.crowded |= len(self.items) == 2
            return undo

        def get(self, name: str) -> Any:
            return Registry.crowded, super().get(name)

    return scenario(Registry)


@entry(LEAKING)
def an_lru_cache_that_equal_registries_share() -> Scenario:
    class Registry(Base):
        def __hash__(self) -> int:
            return 1

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Registry)

        @functools.lru_cache  # noqa: B019  # the fault
        def get(self, name: str) -> Any:
            return super().get(name)

    return scenario(Registry)


@entry(LEAKING)
def a_setting_of_another_module() -> Scenario:
    other: Any = types.ModuleType("settings_of_another_package")
    other.strict = None
    name_of_it = other.__name__
    sys.modules[name_of_it] = other

    class Registry(Base):
        def add(self, name: str) -> Callable[[], object]:
            module: Any = sys.modules[name_of_it]
            if module.strict is None:
                module.strict = name
            return super().add(name)

        def get(self, name: str) -> Any:
            module: Any = sys.modules[name_of_it]
            return module.strict if self.items else super().get(name)

    return scenario(Registry)


@entry(DEEP_LEAKING)
def a_flag_for_a_pair_that_is_not_rehearsed() -> Scenario:
    class Registry(Base):
        met: ClassVar[bool] = False

        def add(self, name: str) -> Callable[[], object]:
            undo = super().add(name)
            Registry.met |= set(self.items) == {"a", "c"}
            return undo

        def get(self, name: str) -> Any:
            return Registry.met, super().get(name)

    return scenario(Registry, names="abcd")


@entry(DEEP_LEAKING)
def a_flag_for_one_order_of_three() -> Scenario:
    class Registry(Base):
        met: ClassVar[bool] = False

        def add(self, name: str) -> Callable[[], object]:
            undo = super().add(name)
            Registry.met |= [*self.items] == ["b", "a", "c"]
            return undo

        def get(self, name: str) -> Any:
            return Registry.met, super().get(name)

    return scenario(Registry, names="abc")
