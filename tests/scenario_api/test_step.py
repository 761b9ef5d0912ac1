"""Steps and uses as they are written, and what they have to do with each other."""

from collections.abc import Callable
from typing import Any

import pytest

from everyorder import explore, harness
from everyorder.harness.base.errors import NotAScenario
from everyorder.harness.engine.protocol import Relations
from everyorder.harness.scenario import Scenario, Step, UseStep, step, steps, use
from everyorder.harness.scenario.mistakes import OF_REGISTRY


class Shelf:
    """A registry of the simplest kind."""

    def __init__(self) -> None:
        self.things: list[str] = []

    def put(self, thing: str) -> "Slip":
        self.things.append(thing)
        return Slip(self, thing)

    def take(self, thing: str) -> None:
        self.things.remove(thing)


class Slip:
    def __init__(self, shelf: Shelf, thing: str) -> None:
        self.shelf, self.thing = shelf, thing

    def close(self) -> None:
        self.shelf.things.remove(self.thing)


def performed(made: Step, shelf: Shelf) -> Any:
    return made.prepare(shelf, "step 1")()


def refused(make: Callable[[], object]) -> str:
    with pytest.raises(NotAScenario) as caught:
        make()
    return str(caught.value).removeprefix("a scenario cannot use ")


def test_step_that_returns_an_object_with_close() -> None:
    shelf = Shelf()
    made = step('put("jar")', lambda to: to.put("jar"))
    perform = made.prepare(shelf, "step 1")
    assert shelf.things == []
    handle = perform()
    assert isinstance(handle, Slip)
    assert shelf.things == ["jar"]
    handle.close()
    assert shelf.things == []


def test_step_that_returns_a_function() -> None:
    shelf = Shelf()

    def put(to: Shelf) -> Any:
        to.things.append("jar")
        return lambda: to.things.remove("jar")

    perform = step("put", put).prepare(shelf, "step 1")
    handle = perform()
    handle.close()
    assert shelf.things == []
    perform().close()
    assert shelf.things == []


def test_undo_of_the_registry_and_of_what_was_returned() -> None:
    shelf = Shelf()

    def put(to: Shelf) -> str:
        to.put("jar")
        return "jar"

    for undo in (lambda to, thing: to.take(thing), lambda to: to.take("jar")):
        handle = performed(step("put", put, undo=undo), shelf)
        assert shelf.things == ["jar"]
        handle.close()
        assert shelf.things == []


def test_a_step_that_stays() -> None:
    shelf = Shelf()
    made = step("put", lambda to: to.put("jar"), undo=None, again=True)
    assert (made.lasting, made.again) == (True, True)
    handle = performed(made, shelf)
    performed(made, shelf)
    assert shelf.things == ["jar", "jar"]
    with pytest.raises(AssertionError, match="never undone"):
        handle.close()


def test_steps_with_a_parameter() -> None:
    shelf = Shelf()
    one, other = steps("put", ["jar", "cup"], Shelf.put)
    assert (one.text, other.text) == ("put('jar')", "put('cup')")
    held = [performed(other, shelf), performed(one, shelf)]
    assert shelf.things == ["cup", "jar"]
    held[0].close()
    assert shelf.things == ["jar"]


def test_steps_with_a_parameter_and_an_undo() -> None:
    shelf = Shelf()
    ends: list[object] = []

    def take(to: Shelf, thing: str, slip: object) -> None:
        to.take(thing)
        ends.append(type(slip))

    for made in (
        *steps("put", {"jar": "a jar"}, Shelf.put, undo=Shelf.take),
        *steps("put", {"jar": "a jar"}, Shelf.put, undo=take),
    ):
        assert made.text == "put(jar)"
        handle = performed(made, shelf)
        assert shelf.things == ["a jar"]
        handle.close()
        assert shelf.things == []
    assert ends == [Slip]


def test_steps_have_the_options_of_a_step() -> None:
    (made,) = steps("put", "a", Shelf.put, undo=None, again=True, symmetric=True)
    assert (made.lasting, made.again, made.symmetry) == (True, True, "put")
    (alone,) = steps("put", [Shelf], Shelf.put, after="x", constant=True)
    assert (alone.text, alone.after, alone.constant) == ("put(Shelf)", ("x",), True)
    assert alone.symmetry == ""


def test_a_value_that_is_written_with_its_address() -> None:
    value = object()
    text = refused(lambda: steps("put", [value], Shelf.put))
    assert text == (
        "object among the values: its text contains its address; expected values by "
        "text: {'json': value, ...}."
    )


def test_relations_are_texts() -> None:
    table = step("table", lambda _: None)
    made = step("row", lambda _: None, requires=table, after=["a", table, "a"])
    assert (made.requires, made.after) == (("table",), ("a", "table"))


def test_declarations() -> None:
    made = step("put", lambda _: None, raises=LookupError, may_refuse=True)
    assert (made.raises, made.may_refuse) == ((LookupError,), True)
    asked = use("get", len, raises=(LookupError, ValueError), constant=True)
    assert asked.raises == (LookupError, ValueError)
    assert (asked.constant, asked.unordered) == (True, False)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"again": True},
            "step('put', ...) with again=True, which can be undone; expected "
            "undo=None, or a second step of another text.",
        ),
        (
            {"undo": None, "may_refuse": True},
            "step('put', ...) with may_refuse=True, which cannot be undone; expected "
            "undo=..., a function that may raise.",
        ),
        (
            {"undo": "take"},
            "'take' as the undo of step('put', ...); expected a function of the "
            "registry, "
            "or of it and of what the step returned.",
        ),
        (
            {"undo": lambda: None},
            "<lambda>() as the undo of step('put', ...); expected a function of the "
            "registry, or of it and of what the step returned.",
        ),
    ],
)
def test_options_that_do_not_go_together(options: Any, text: str) -> None:
    assert refused(lambda: step("put", lambda _: None, **options)) == text


def test_a_function_that_takes_no_registry() -> None:
    name = "test_a_function_that_takes_no_registry.<locals>.put"

    def put() -> None: ...

    assert refused(lambda: step("put", put)) == (  # type: ignore[arg-type]  # the mistake
        f"{name}() -> None as the function of step('put', ...); expected {OF_REGISTRY}."
    )
    assert refused(lambda: use("put", put)) == (  # type: ignore[arg-type]  # the mistake
        f"{name}() -> None as the function of use('put', ...); expected {OF_REGISTRY}."
    )
    assert refused(lambda: steps("put", "a", lambda _: None)) == (  # type: ignore[arg-type,misc]  # the mistake
        "test_a_function_that_takes_no_registry.<locals>.<lambda>.<locals>.<lambda>(_) "
        "as the function of steps('put', ...); expected a function of the registry and "
        "of a value."
    )


def test_a_generator_function_has_its_undo_already() -> None:
    def put(to: Shelf) -> Any:
        with to.put("jar"):  # type: ignore[attr-defined]  # it never runs
            yield

    assert refused(lambda: step("put", put, undo=Shelf.take)) == (
        "step('put', ...), a generator function, with undo=; expected one of the two: "
        "the code after the yield undoes the step."
    )


def test_a_use_that_yields() -> None:
    def things(of: Shelf) -> Any:
        yield from of.things

    assert refused(lambda: use("things", things)) == (
        "use('things', ...), a generator function; expected a function that returns "
        "its answer, as a list of all."
    )


def test_use_returns_its_answer() -> None:
    shelf = Shelf()
    shelf.put("jar")
    made = use("count", lambda of: len(of.things))
    assert made.perform(shelf) == 1
    assert made.operators == ()


def test_they_are_on_the_face_of_the_harness() -> None:
    assert (harness.step, harness.steps, harness.use) == (step, steps, use)


def test_texts() -> None:
    assert str(Step("put", lambda _, __: lambda: Slip(Shelf(), ""))) == "put"
    assert str(UseStep("count", lambda _: 0)) == "count"


class Ends:
    """What undoes nothing."""

    def close(self) -> None: ...


def test_a_text_stays_one_line() -> None:
    """A newline broke the listing of a history, and a tab its columns."""
    one = step("a\nb", lambda _: Ends())
    two = step("c\td\x1b\ud800 é 名", lambda _: Ends(), requires="a\nb", after=[one])
    assert (one.text, two.text) == (r"a\nb", r"c\td\x1b\ud800 é 名")
    assert (two.requires, two.after) == ((r"a\nb",), (r"a\nb",))
    assert use("x\ny", len).text == r"x\ny"
    assert type(step(type("Text", (str,), {})("a"), lambda _: Ends()).text) is str
    made = Scenario(one, two, create=list, observe=str, ordered=[("a\nb", two)])
    assert made.relations.requires == {1: {0}}
    assert made.relations.pairs == {(0, 1)}
    by_value = steps("add", ["a\n"], lambda registry, value: Ends())
    by_name = steps("add", {"a\n": 1}, lambda registry, value: Ends())
    assert [each.text for each in (*by_value, *by_name)] == [
        r"add('a\n')",
        r"add(a\n)",
    ]


def made(text: str, **options: Any) -> Step:
    return step(text, lambda _: lambda: None, **options)


def scenario(*steps: Step, **options: Any) -> Scenario:
    return Scenario(*steps, **{"create": list, "observe": str, **options})


TABLE = made("table")


def test_without_relations() -> None:
    assert scenario(TABLE, made("row")).relations == Relations()


def test_all_relations() -> None:
    found = scenario(
        made("row", requires=TABLE, may_refuse=True),
        TABLE,
        made("index", after=["table", "row"], undo=lambda _: None),
        step("view", lambda _: None, undo=None),
        step("log", lambda _: None, undo=None, again=True, raises=LookupError),
        uses=[use("count", len), use("version", len, constant=True)],
        ordered=[("index", TABLE), ("table", "row")],
    ).relations
    assert found == Relations(
        lasting=frozenset({3, 4}),
        again=frozenset({4}),
        requires={0: frozenset({1})},
        after={2: frozenset({0, 1})},
        refusable=frozenset({0}),
        pairs=frozenset({(1, 2), (0, 1)}),
        declared=frozenset({4, 6}),
    )


def test_steps_exclude_each_other_whichever_says_so() -> None:
    relations = scenario(
        made("dark", excludes="light"), made("light", excludes=["blue"]), made("blue")
    ).relations
    assert relations == Relations(
        excludes={0: frozenset({1}), 1: frozenset({0, 2}), 2: frozenset({1})}
    )


class Theme:
    """It breaks if two themes are active."""

    def __init__(self) -> None:
        self.active: list[str] = []

    def choose(self, name: str) -> Callable[[], None]:
        self.active.append(name)
        return lambda: self.active.remove(name)

    def colours(self) -> str:
        return self.active[0] if self.active else "none"


def test_what_excludes_each_other_is_never_active_together() -> None:
    def themes(**options: Any) -> Scenario:
        return Scenario(
            step("light", lambda theme: theme.choose("light")),
            step("dark", lambda theme: theme.choose("dark"), **options),
            create=Theme,
            observe=Theme.colours,
        )

    assert explore(themes()).verdict == "order"
    report = explore(themes(excludes="light"))
    assert report.verdict == "proven"
    assert set(report.exploration.states) == {(), (0,), (1,)}


def test_what_is_given_is_always_there() -> None:
    """It outlives the steps, so nothing follows from requiring it."""
    found = scenario(made("row", requires=TABLE, after="table"), given=[TABLE])
    assert found.relations == Relations()


@pytest.mark.parametrize(
    ("steps", "options", "text"),
    [
        (
            (TABLE, made("row", requires="tabel")),
            {},
            "'tabel' in requires= of 'row', which is not a step of the scenario; "
            "expected one of the steps, such as table",
        ),
        (
            (TABLE, made("row", after="index")),
            {},
            "'index' in after= of 'row', which is not a step of the scenario; expected "
            "one of the steps, such as table or row",
        ),
        (
            (TABLE,),
            {"ordered": [("table", "chair")]},
            "'chair' in ordered=, which is not a step of the scenario; expected one of "
            "the steps, such as table",
        ),
        (
            (TABLE,),
            {"ordered": [("table", TABLE)]},
            "ordered=[('table', 'table')]; expected pairs of two steps",
        ),
        (
            (TABLE, made("row", requires="index"), made("index", after="row")),
            {},
            "steps of which each waits for another ('row', 'index'); expected "
            "requires= and after= without a cycle",
        ),
        (
            (made("row", requires="row"),),
            {},
            "steps of which each waits for another ('row'); expected requires= and "
            "after= without a cycle",
        ),
        (
            (TABLE, made("row", requires="table", excludes="table")),
            {},
            "'row', which can never be done: 'table' excludes 'row', and both would be "
            "active; expected excludes= of steps that need not be active together",
        ),
        (
            (
                TABLE,
                made("chair", excludes="table"),
                made("row", after=[TABLE, "chair"]),
            ),
            {},
            "'row', which can never be done: 'table' excludes 'chair', and both would "
            "be active; expected excludes= of steps that need not be active together",
        ),
        (
            (made("row", excludes="row"),),
            {},
            "'row', which can never be done: 'row' excludes 'row', and both would be "
            "active; expected excludes= of steps that need not be active together",
        ),
        (
            (made("row", excludes=TABLE),),
            {"given": [TABLE]},
            "'row', which can never be done: 'row' excludes 'table', and both would be "
            "active; expected excludes= of steps that need not be active together",
        ),
    ],
)
def test_what_cannot_be(steps: Any, options: Any, text: str) -> None:
    with pytest.raises(NotAScenario) as caught:
        scenario(*steps, **options)
    assert str(caught.value) == f"a scenario cannot use {text}."


# What a type checker refuses.
NUMBER: Any = 3
NOTHING: Any = None


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: step(NUMBER, len),
            "3 as the text of step(3, ...); expected a text of one line",
        ),
        (
            lambda: use(NOTHING, len),
            "None as the text of use(None, ...); expected a text of one line",
        ),
        (
            lambda: steps(NUMBER, "ab", dict.get),
            "3 as the name of steps(3, ...); expected the name of a function",
        ),
        (
            lambda: steps("add", NUMBER, dict.get),
            "3 as the values of steps('add', ...); expected a list, one for each step",
        ),
        (
            lambda: step("a", len, requires=NUMBER),
            "3 as requires= of step('a', ...); expected a step, its text, or "
            "several of "
            "these",
        ),
        (
            lambda: step("a", len, excludes=NUMBER),
            "3 as excludes= of step('a', ...); expected a step, its text, or "
            "several of "
            "these",
        ),
    ],
)
def test_arguments_of_another_kind_are_named(make: Any, text: str) -> None:
    """They ended in the TypeError of a builtin function."""
    with pytest.raises(NotAScenario) as caught:
        make()
    assert str(caught.value) == f"a scenario cannot use {text}."


def test_a_built_in_method_undoes_a_step_of_a_value() -> None:
    """It has no signature, and was called with the result of the step, too."""
    scenario = Scenario(
        *steps("add", "ab", set.add, undo=set.discard),
        create=set[str],
        observe=lambda names: " ".join(sorted(names)),
    )
    assert explore(scenario).verdict == "proven"


@pytest.mark.parametrize("raises", ["KeyError", (KeyError, 3)])
def test_raises_takes_classes_of_errors(raises: Any) -> None:
    shown = raises[1] if isinstance(raises, tuple) else repr(raises)
    wanted = "a class of errors, as KeyError, or a tuple of them"
    for make, name in ((step, "step"), (use, "use")):
        with pytest.raises(NotAScenario) as caught:
            make("a", len, raises=raises)
        found = f"{shown} as raises= of {name}('a', ...)"
        assert str(caught.value) == f"a scenario cannot use {found}; expected {wanted}."


def test_a_call_that_does_not_fit_says_how_it_is_made() -> None:
    one: Any = step
    several: Any = steps
    asked: Any = use
    calls: tuple[tuple[Callable[[], object], str], ...] = (
        (lambda: one("a"), "step() is missing a required argument: 'do'; expected st"),
        (lambda: one("a", len, len), "step() was called with too many positional"),
        (lambda: one("a", len, undoo=len), "step() has no argument undoo=; expected u"),
        (lambda: several("a", "ab"), "steps() is missing a required argument: 'do'"),
        (lambda: asked(len), "use() is missing a required argument: 'perform'"),
    )
    for call, text in calls:
        with pytest.raises(NotAScenario) as caught:
            call()
        assert str(caught.value).startswith(text)


def test_values_are_cut_in_messages() -> None:
    long: Any = "x" * 500
    with pytest.raises(NotAScenario) as caught:
        step(long, long)
    assert len(str(caught.value)) < 300
