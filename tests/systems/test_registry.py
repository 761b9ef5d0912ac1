import asyncio
import enum
import threading
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Iterator
from time import perf_counter
from typing import Any

import pytest

from everyorder.harness.base.errors import NotAScenario
from everyorder.harness.exploration.explore_scenario import explore
from everyorder.harness.scenario import Scenario, Step, step, use
from everyorder.harness.state import canonical
from everyorder.harness.systems.outcomes import ScenarioSkipped
from everyorder.harness.systems.registry import RegistrySystem
from tests.forking import needs_fork


def put(word: str, text: str = "") -> Step:
    def perform(words: set[str]) -> Any:
        if word in words:
            raise KeyError(word)
        words.add(word)
        return lambda: words.remove(word)

    return step(text or f'put("{word}")', perform)


def shown(words: set[str]) -> str:
    return ", ".join(sorted(words))


def scenario(**options: Any) -> Scenario:
    return Scenario(
        put("bee"),
        put("ant"),
        put("bee", 'put("bee") again'),
        uses=[use("count", len), use("first", lambda words: min(words))],
        **{"create": set, "observe": shown, **options},
    )


def started(*steps: Step, **options: Any) -> RegistrySystem:
    options = {"create": set, "observe": shown, **options}
    made = Scenario(*steps, **options) if steps else scenario(**options)
    system = RegistrySystem(made)
    system.reset()
    return system


def nothing_to_undo() -> None: ...


def test_doing_and_undoing() -> None:
    system = started()
    assert (system.steps, system.uses) == (3, 2)
    assert system.observe() == (("state", ""),)
    handles = [system.do(0), system.do(1)]
    assert system.observe() == (("state", "ant, bee"),)
    system.undo(0, handles[0])
    assert system.observe() == (("state", "ant"),)


def test_a_failure_is_type_and_text() -> None:
    system = started()
    handle = system.do(0)
    with pytest.raises(KeyError) as caught:
        system.do(2)
    assert system.failure(caught.value) == (("error", "KeyError"), ("text", "'bee'"))
    assert handle is not None


def test_uses_answer_and_an_exception_is_an_answer() -> None:
    system = started()
    assert system.use(0) == canonical(0)
    found = system.use(1)
    assert isinstance(found, tuple)
    assert found[0] == ("error", "ValueError")
    handle = system.do(0)
    assert (system.use(0), system.use(1)) == (canonical(1), "bee")
    assert handle is not None


def test_a_reset_makes_a_fresh_one_and_gives_again() -> None:
    made: list[set[str]] = []

    def create() -> set[str]:
        made.append(set())
        return made[-1]

    system = started(create=create, given=[put("cow")])
    assert system.observe() == (("state", "cow"),)
    handle = system.do(0)
    system.reset()
    assert system.observe() == (("state", "cow"),)
    assert made == [{"bee"}, {"cow"}]
    assert handle is not None


def test_what_is_given_outlives_the_steps() -> None:
    """It is ended last, and whatever is in its way then is no fault of anybody."""
    ended: list[str] = []

    def table(words: set[str]) -> Any:
        def undo() -> None:
            ended.append(shown(words))
            if words:
                raise RuntimeError("there are rows")

        return undo

    system = started(given=[step("table", table)])
    handle = system.do(0)
    system.reset()
    handle = system.do(1)
    system.undo(1, handle)
    system.close()
    assert ended == ["bee", ""]


def test_laws_are_the_scenarios_own() -> None:
    assert started().laws() == []
    system = started(check=lambda words: ["too few"] if len(words) < 1 else [])
    assert system.laws() == ("too few",)
    handle = system.do(0)
    assert system.laws() == ()
    assert handle is not None


@pytest.mark.parametrize(
    ("check", "told"),
    [
        (lambda words: pytest.fail("too few"), "too few"),
        (lambda words: words["a"], "TypeError: 'set' object is not subscriptable"),
    ],
)
def test_what_a_check_raises_is_a_broken_law(check: Any, told: str) -> None:
    assert started(check=check).laws() == (told,)


def test_an_assertion_of_a_check_is_a_broken_law() -> None:
    def check(words: set[str]) -> None:
        assert words, "nothing there"

    ((told),) = started(check=check).laws()
    assert isinstance(told, str)
    assert told.startswith("nothing there")


def test_what_observe_asserts_is_a_broken_law() -> None:
    def observe(words: set[str]) -> str:
        if "bee" in words:
            pytest.fail("a bee")
        return shown(words)

    system = started(observe=observe)
    assert (system.observe(), system.laws()) == ((("state", ""),), [])
    handle = system.do(0)
    assert system.observe() == (("error", "Failed"), ("text", "a bee"))
    assert system.laws() == ["observe: a bee"]
    assert system.laws() == []
    assert handle is not None


def test_a_look_that_fails_is_what_is_observed() -> None:
    """It may fail after one history alone, which is a fault of that history."""
    system = started(observe=min)
    assert system.observe() == (
        ("error", "ValueError"),
        ("text", "min() arg is an empty sequence"),
    )
    assert system.laws() == []
    handle = system.do(0)
    assert system.observe() == (("state", "bee"),)
    assert handle is not None


def test_without_observe_nothing_is_looked_at() -> None:
    system = started(observe=None)
    assert system.observe() == ()


def test_the_order_of_lines_that_does_not_count() -> None:
    system = started(observe=lambda words: "b\na\nc", unordered=True)
    assert system.observe() == (("state", "a\nb\nc"),)


def test_pytest_fail_in_a_step_is_a_failing_step() -> None:
    system = started(step("fail", lambda _: pytest.fail("not here")))
    with pytest.raises(Exception, match="not here") as caught:
        system.do(0)
    assert system.failure(caught.value) == (("error", "Failed"), ("text", "not here"))


def test_pytest_fail_in_a_use_is_an_answer() -> None:
    system = started(put("bee"), uses=[use("fail", lambda _: pytest.fail("no"))])
    assert system.use(0) == (("error", "Failed"), ("text", "no"))


@pytest.mark.parametrize(
    "ask", [lambda system: system.do(0), lambda system: system.use(0)]
)
def test_pytest_skip_skips_the_scenario(ask: Any) -> None:
    def skip(_: object) -> Any:
        pytest.skip("no database here")

    system = started(step("skip", skip), uses=[use("skip", skip)])
    with pytest.raises(ScenarioSkipped) as caught:
        ask(system)
    assert str(caught.value) == "no database here"


@pytest.mark.parametrize("isolation", [None, pytest.param("fork", marks=needs_fork)])
def test_a_skip_that_depends_on_history_is_an_outcome(isolation: Any) -> None:
    """Else it would hide what is wrong where it skips."""

    def second(words: set[str]) -> Callable[[], None]:
        if "first" in words:
            pytest.skip("not beside the first")
        words.add("second")
        return lambda: words.discard("second")

    report = explore(
        Scenario(
            put("first"),
            step("second", second),
            create=set,
            observe=lambda words: " ".join(sorted(words)),
            isolation=isolation,
        )
    )
    fields = (("error", "Skipped"), ("text", "not beside the first"))
    assert report.exploration.failures == {((0,), 1): fields}
    assert sorted(report.exploration.states) == [(), (0,), (0, 1), (1,)]


def test_who_ends_the_process_is_let_through() -> None:
    def leave(_: object) -> Any:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        started(step("leave", leave)).do(0)


def test_an_undo_that_may_refuse() -> None:
    refusals = [True]

    def undo(words: set[str]) -> None:
        if refusals.pop():
            raise RuntimeError("in use")
        words.remove("bee")

    add = step("put", lambda to: to.add("bee"), undo=undo, may_refuse=True)
    system = started(add)
    handle = system.do(0)
    with pytest.raises(RuntimeError) as caught:
        system.undo(0, handle)
    assert system.failure(caught.value) == (
        ("error", "RuntimeError"),
        ("text", "in use"),
    )
    assert system.observe() == (("state", "bee"),)
    refusals.append(False)
    system.undo(0, handle)
    assert system.observe() == (("state", ""),)


def test_a_step_that_stays() -> None:
    system = started(step("put", lambda to: to.add("bee"), undo=None, again=True))
    assert system.relations.lasting == system.relations.again == {0}
    for _ in range(2):
        assert system.do(0) is not None
        assert system.observe() == (("state", "bee"),)


def test_an_error_that_was_not_declared() -> None:
    """A declared LookupError does not excuse a typo."""

    def take(words: set[str]) -> Any:
        words.take("bee")  # type: ignore[attr-defined]  # the typo

    made = step("take", take, raises=LookupError)
    asked = use("find", take, raises=(LookupError, AttributeError))
    system = started(made, uses=[asked])
    assert system.relations.declared == {0, 1}
    with pytest.raises(AttributeError):
        system.do(0)
    system.use(0)
    assert system.relations.declared == {1}


class Channel:
    """A registry that can only be asked where its loop runs."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.names: list[str] = []

    async def join(self, name: str) -> None:
        assert self.loop == asyncio.get_running_loop()
        await asyncio.sleep(0)
        self.names.append(name)

    async def leave(self, name: str) -> None:
        assert self.loop == asyncio.get_running_loop()
        self.names.remove(name)


async def channel() -> Channel:
    return Channel()


async def joined(to: Channel) -> AsyncIterator[None]:
    await to.join("ann")
    yield
    await to.leave("ann")


async def names_of(of: Channel) -> str:
    await asyncio.sleep(0)
    return " ".join(sorted(of.names))


async def checked(of: Channel) -> str:
    return "too many" if len(of.names) > 2 else ""


def asynchronous() -> Scenario:
    return Scenario(
        step("ann", joined),
        step("bob", lambda to: to.join("bob"), undo=lambda to: to.leave("bob")),
        uses=[use("names", names_of)],
        create=channel,
        observe=names_of,
        check=checked,
    )


def test_everything_may_be_asynchronous() -> None:
    system = RegistrySystem(asynchronous())
    for _ in range(2):
        system.reset()
        handles = [system.do(1), system.do(0)]
        assert system.use(0) == "ann bob"
        system.undo(0, handles[1])
        assert system.observe() == (("state", "bob"),)
        assert system.laws() == ()
        system.undo(1, handles[0])
        assert system.observe() == (("state", ""),)
    assert system.caveats() == ()
    system.close()
    assert explore(asynchronous(), "walk:1").verdict == "holds"


def test_a_generator_runs_when_it_is_explored() -> None:
    """It was taken for its own handle, never ran, and was proven."""

    def add(words: set[str]) -> Iterator[None]:
        words.add("bee")
        yield
        words.discard("bee")

    report = explore(Scenario(step("add", add), create=set, observe=shown), "walk:1")
    assert report.exploration.states == {
        (): (("state", ""),),
        (0,): (("state", "bee"),),
    }


def test_a_reset_undoes_what_is_left_in_the_process() -> None:
    table: list[str] = []
    ended: list[list[str]] = []

    def reset(registry: list[str]) -> None:
        assert registry is table
        ended.append(table.copy())
        table.clear()

    def add(to: list[str]) -> Any:
        to.append("a")
        return lambda: to.remove("a")

    made = step("add", add)
    for own in (reset, lambda: reset(table)):
        ended.clear()
        system = started(made, create=lambda: table, observe=str, reset=own)
        system.do(0)
        system.reset()
        assert (ended, system.observe()) == ([["a"]], (("state", "[]"),))
        system.do(0)
        system.close()
        system.close()
        assert ended == [["a"], ["a"]]


def test_explored() -> None:
    report = explore(scenario(), "walk:1")
    assert report.verdict == "holds"
    assert [dict(seen)["state"] for seen in report.exploration.states.values()] == [  # type: ignore[call-overload]  # pairs of texts
        *("", "bee", "ant", "bee", "ant, bee", "ant, bee")
    ]


class Cached:
    """Sorts once, and forgets to forget when a word goes."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.kept: list[str] | None = None

    def put(self, word: str) -> Any:
        self.words.append(word)
        self.kept = None
        return lambda: self.words.remove(word)

    def listed(self) -> str:
        if self.kept is None:
            self.kept = sorted(self.words)
        return ", ".join(self.kept)


def test_a_stale_cache_is_found_and_its_variable_named() -> None:
    report = explore(
        Scenario(
            step("put(bee)", lambda to: to.put("bee")),
            step("put(ant)", lambda to: to.put("ant")),
            uses=[use("listed()", Cached.listed)],
            create=Cached,
            observe=Cached.listed,
        )
    )
    assert report.verdict == "order"
    paths = [path for each in report.exploration.violations for path in each.paths]
    assert any(path.startswith("registry.kept") for path in paths), paths


def test_a_fault_in_an_undo_handle_is_found_and_its_variable_named() -> None:
    """A registry's own fingerprint is the same whatever the handle holds."""

    def add(name: str) -> Step:
        def do(items: dict[str, int]) -> Any:
            before = items.copy()
            items[name] = 1

            def undo() -> None:
                items.clear()
                items.update(before)

            return undo

        return step(f"add({name})", do)

    report = explore(
        Scenario(add("a"), add("b"), create=dict, observe=lambda of: str(sorted(of))),
        "graph",
    )
    assert report.verdict == "order"
    paths = [path for each in report.exploration.violations for path in each.paths]
    assert any(path.startswith("undo of add(") for path in paths), paths


def sorted_in(name: str) -> Step:
    """Undone by the place of its day: `+b +a -b` takes out the other one."""

    def do(items: list[str]) -> Callable[[], str]:
        index = bisect_left(items, name)
        items.insert(index, name)
        return lambda: items.pop(index)

    return step(f"add({name})", do)


def appended(name: str) -> Step:
    """The same, where what is too far behind raises."""

    def do(items: list[str]) -> Callable[[], str]:
        index = len(items)
        items.append(name)
        return lambda: items.pop(index)

    return step(f"add({name})", do)


@pytest.mark.parametrize(
    ("add", "kind", "shortest", "paths"),
    [
        (
            sorted_in,
            "order",
            (1, 0, 1),
            (
                "registry[0]: 'a' / 'b'",
                "before the last operation: undo of add(b).<index>: 1 / 0",
            ),
        ),
        (appended, "undo", (0, 1, 0, 1), ("undo of add(b).<index>: 0 / 1",)),
    ],
)
def test_an_undo_by_the_place_of_its_day_is_refuted_and_its_variable_named(
    add: Callable[[str], Step],
    kind: str,
    shortest: tuple[int, ...],
    paths: tuple[str, ...],
) -> None:
    """It was proven for every number of steps."""
    made = Scenario(add("a"), add("b"), create=list, observe=lambda of: str(sorted(of)))
    for strategy in ("graph", "histories:4"):
        (violation,) = explore(made, strategy).exploration.violations
        assert (violation.kind, violation.shortest) == (kind, shortest)
        assert violation.proven_shortest
        assert violation.paths == paths


class Forgetting(Cached):
    """The same, and it forgets then, too."""

    def put(self, word: str) -> Any:
        undo = super().put(word)

        def forget() -> None:
            undo()
            self.kept = None

        return forget


def test_a_cache_that_every_change_forgets_is_proven() -> None:
    """What a use may change is no fault, and no reason not to look at it."""
    report = explore(
        Scenario(
            step("put(bee)", lambda to: to.put("bee")),
            step("put(ant)", lambda to: to.put("ant")),
            uses=[use("listed()", Forgetting.listed)],
            create=Forgetting,
            observe=lambda of: ", ".join(sorted(of.words)),
        ),
        "graph",
    )
    assert report.verdict == "proven"
    closure = report.exploration.closure
    assert closure is not None
    # A full cache and none, beside each arrangement of the words.
    assert (closure.states, closure.closed) == (10, True)


@pytest.mark.parametrize(
    ("seen", "found", "wanted"),
    [
        (None, "None", "text, by a `return`"),
        ([1], "list", "text: '\\n'.join(map(str, ...))"),
        ({1}, "set", "text: '\\n'.join(map(str, ...))"),
        (iter([1]), "list_iterator", "text: '\\n'.join(map(str, ...))"),
        (b"a", "bytes", "text: repr(...), or .decode() if it is one"),
        (
            {"a": 1},
            "dict",
            "text: '\\n'.join(f'{key}: {value}' for key, value in ...items())",
        ),
        (5, "int", "text: str(...)"),
    ],
)
def test_what_is_observed_is_text(seen: object, found: str, wanted: str) -> None:
    with pytest.raises(NotAScenario) as caught:
        started(observe=lambda _: seen).observe()
    assert str(caught.value) == (
        f"a scenario cannot use {found}, returned by observe; expected {wanted}."
    )


class Alike(str):
    """A text that says that it is equal to all."""

    def __eq__(self, other: object) -> bool:
        return True

    def __str__(self) -> str:
        return "alike"

    __hash__ = str.__hash__


class State(enum.StrEnum):
    ON = "on"


@pytest.mark.parametrize(
    ("told", "plain"), [(State.ON, "on"), (Alike("one\ntwo"), "one\ntwo")]
)
@pytest.mark.parametrize("unordered", [False, True])
def test_a_text_of_a_class_of_its_own_is_observed_as_plain_text(
    told: str, plain: str, unordered: bool
) -> None:
    """Its class decided what is equal, and could not cross to another process."""
    made = started(observe=lambda _: told, check=lambda _: told, unordered=unordered)
    assert repr(made.observe()) == repr((("state", plain),))
    laws = (*made.laws(), *started(check=lambda _: [told]).laws())
    assert (laws, {*map(type, laws)}) == ((plain, plain), {str})


def test_a_step_that_returns_nothing_is_no_failing_step() -> None:
    with pytest.raises(NotAScenario):
        explore(Scenario(step("put", lambda to: None), create=list, observe=str))


@pytest.mark.parametrize(("told", "found"), [(True, "bool"), (1, "int")])
def test_a_check_returns_a_list(told: Any, found: str) -> None:
    with pytest.raises(NotAScenario) as caught:
        started(check=lambda _: told).laws()
    assert str(caught.value) == (
        f"a scenario cannot use {found}, returned by check; expected a list of texts, "
        "one for each broken law, or an empty one."
    )


def test_a_check_that_tells_one_text() -> None:
    """It is one broken law, not one for each letter."""
    assert started(check=lambda _: "broken").laws() == ("broken",)


@pytest.mark.parametrize("told", [[], (), None, "", iter(())])
def test_a_check_that_tells_nothing(told: Any) -> None:
    assert started(check=lambda _: told).laws() == ()


def test_a_lock_of_a_registry_is_no_handle() -> None:
    """It can be entered, so it is, and left again to undo."""
    system = started(step("lock", lambda to: to), create=list, observe=str)
    with pytest.raises(NotAScenario, match="the registry itself"):
        system.do(0)
    lock = threading.Lock()
    system = started(
        step("lock", lambda _: lock), create=list, observe=lambda _: str(lock.locked())
    )
    handle = system.do(0)
    assert system.observe() == (("state", "True"),)
    system.undo(0, handle)
    assert system.observe() == (("state", "False"),)


@pytest.mark.parametrize(
    ("ignore", "remark"),
    [
        ((), "differs in every fresh system: registry['a'] (clock reading), which no "),
        (("registry['a']",), "registry['a'] is ignored"),
    ],
)
def test_a_time_that_is_kept_is_named(ignore: tuple[str, ...], remark: str) -> None:
    def add(times: dict[str, float]) -> Callable[[], object]:
        times["a"] = perf_counter()
        return lambda: times.pop("a")

    report = explore(
        Scenario(
            step("add", add),
            uses=[use("known", lambda times: "a" in times)],
            create=dict[str, float],
            ignore=ignore,
        )
    )
    assert report.verdict == "proven"
    texts = [each.text for each in report.exploration.caveats]
    assert any(each.startswith(remark) for each in texts)
