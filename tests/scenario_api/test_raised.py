"""Errors of the user's code show type, message and line; a typo is called a typo."""

import linecache
from collections.abc import Callable
from inspect import getsourcelines
from pathlib import Path
from typing import Any

import pytest

from everyorder.harness import Scenario, explore, step, steps, use
from everyorder.harness.engine.protocol import ErrorOrigin
from everyorder.harness.report import render
from everyorder.harness.report.raised import typo_lines, vacuity_lines
from everyorder.harness.report.verdict import Report
from everyorder.harness.systems.origins import ErrorOrigins
from everyorder.harness.systems.registry import functions_of

HERE = Path(__file__).relative_to(Path.cwd())


class Names:
    """A registry of names; each class below has one fault."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.past: list[str] = []

    def add(self, name: str) -> Callable[[], None]:
        self.names.append(name)
        return lambda: self.remove(name)

    def remove(self, name: str) -> None:
        self.names.remove(name)
        self.past.append(name)

    def get(self) -> str:
        return " ".join(sorted(self.names))


class UndoRaises(Names):
    def remove(self, name: str) -> None:
        if self.past:
            raise LookupError(f"{name} is gone")  # the line
        super().remove(name)


class Wedges(Names):
    def add(self, name: str) -> Callable[[], None]:
        if self.past:
            self.names.append(name)
            raise ValueError(f"{name} was here")  # the line
        return super().add(name)


class UseRaises(Names):
    def get(self) -> str:
        if self.past:
            raise RuntimeError("stale")  # the line
        return super().get()


class ObserveRaises(UseRaises):
    pass


def line_of(owner: type, mark: str = "# the line") -> tuple[int, str]:
    lines, first = getsourcelines(owner)
    (at,) = (at for at, line in enumerate(lines) if mark in line)
    return first + at, lines[at].strip()


def scenario(create: type[Names], **options: Any) -> Scenario:
    return Scenario(
        *steps("add", "ab", create.add),
        create=create,
        name=create.__name__,
        **options,
    )


def texts(report: Report) -> list[str]:
    return [line.strip() for line in render(report, width=400).splitlines()]


@pytest.mark.parametrize(
    ("create", "operation", "error"),
    [
        (UndoRaises, "step_1.close()", "LookupError: a is gone"),
        (Wedges, "step_1 = add('a')", "ValueError: a was here"),
        (UseRaises, "get()", "RuntimeError: stale"),
        (ObserveRaises, "observe()", "RuntimeError: stale"),
    ],
)
def test_an_error_shows_type_message_and_line(
    create: type[Names], operation: str, error: str
) -> None:
    """Only type and text were printed, and of a wedged step nothing."""
    check_lines(create, operation, error)


def test_an_error_of_a_child_process_shows_its_line_too() -> None:
    check_lines(UseRaises, "get()", "RuntimeError: stale", isolation="fork")


def check_lines(
    create: type[Names], operation: str, error: str, **options: Any
) -> None:
    seen: dict[str, Any] = {"observe": lambda names: str(len(names.names))}
    if create is UseRaises:
        seen["uses"] = [use("get()", create.get)]
    if create is ObserveRaises:
        seen["observe"] = create.get
    report = explore(scenario(create, **seen, **options))
    number, source = line_of(UseRaises if create is ObserveRaises else create)
    lines = texts(report)
    assert lines.count(error) >= 1
    at = lines.index(error)
    assert lines[at - 1] == f"raised by {operation}:"
    assert lines[at + 1] == f"at {HERE}:{number}: {source}"
    assert not any("typing error" in line for line in lines)


def test_a_check_that_raises_shows_its_line() -> None:
    def check(names: Names) -> list[str]:
        if names.past:
            raise OSError("no disk")  # the check
        return []

    report = explore(scenario(Names, observe=Names.get, check=check))
    lines, first = getsourcelines(check)
    assert report.verdict == "law"
    assert f"at {HERE}:{first + 2}: {lines[2].strip()}" in texts(report)


def typo_in(**changes: Any) -> Scenario:
    operations = {
        "do": lambda names: names.add("b"),
        "perform": Names.get,
        "observe": Names.get,
    } | changes
    return Scenario(
        *steps("add", "a", Names.add),
        step("more", operations["do"]),
        uses=[use("get()", operations["perform"])],
        create=Names,
        observe=operations["observe"],
    )


TYPOS: list[tuple[str, str, str, Callable[[Any], Any]]] = [
    ("do", "more", "AttributeError", lambda names: names.ad("b")),
    ("do", "more", "NameError", lambda names: nams.add("b")),  # type: ignore[name-defined]  # noqa: F821  # a typo
    ("do", "more", "TypeError", lambda names: names.add("b", "c")),
    ("perform", "get()", "AttributeError", lambda names: names.gett()),
    ("observe", "what is observed", "AttributeError", lambda names: names.gett()),
]


@pytest.mark.parametrize(("where", "subject", "error", "function"), TYPOS)
def test_a_typing_error_is_called_one(
    where: str, subject: str, error: str, function: Callable[[Any], Any]
) -> None:
    """It was VACUOUS, with the advice to declare the error as meant."""
    report = explore(typo_in(**{where: function}))
    assert report.verdict == "typo"
    (line,) = typo_lines(report)
    assert line.startswith(f"{subject} raises {error} whatever is active: {error}: ")
    number = function.__code__.co_firstlineno
    source = Path(__file__).read_text().splitlines()[number - 1].strip()
    assert line.endswith(f", at {HERE}:{number}: {source}")
    assert not any(error in other for other in vacuity_lines(report))
    assert "a typing error in the scenario" in " ".join(texts(report))


class Strict(Names):
    """Refuses every name on purpose."""

    def add(self, name: str) -> Callable[[], None]:
        raise TypeError(f"not a name: {name}")  # on purpose


def test_a_refusal_by_a_type_error_is_vacuous_and_no_typo() -> None:
    report = explore(scenario(Strict, observe=Names.get))
    assert report.verdict == "vacuous"
    number, source = line_of(Strict, "# on purpose")
    assert vacuity_lines(report)[0] == (
        "add('a') raises TypeError whatever is active (TypeError: not a name: a, at "
        f"{HERE}:{number}: {source}); if that is meant, declare raises=TypeError"
    )


class Lazy(Names):
    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"no {name}")


def test_an_attribute_that_getattr_refuses_is_missing_where_it_is_written() -> None:
    report = explore(
        Scenario(
            *steps("add", "a", Lazy.add),
            step("more", lambda names: names.ad("b")),
            create=Lazy,
            observe=Lazy.get,
        )
    )
    assert report.verdict == "typo"


def test_an_error_in_an_undo_that_is_a_typing_error_says_so() -> None:
    typed = step("add('a')", lambda names: names.add("a"), undo=lambda n: n.remov("a"))
    report = explore(Scenario(typed, create=Names, observe=Names.get))
    assert report.exploration.violations[0].kind == "undo"
    assert "a typing error, as it seems" in texts(report)


def test_the_line_is_the_users_if_a_library_raises() -> None:
    """The innermost line of a library is of no use to its caller."""

    def do(names: Names) -> None:
        linecache.getlines(3)  # type: ignore[arg-type]  # it raises inside

    of = Scenario(step("do", do), create=Names, observe=Names.get)
    origins = ErrorOrigins(functions_of(of))
    with pytest.raises(AttributeError) as caught:
        do(Names())
    origin = origins.origin_of(caught.value)
    assert origin == ErrorOrigin(__file__, do.__code__.co_firstlineno + 1)


def test_an_exploration_does_not_fill_the_cache_of_source_lines() -> None:
    """That cache is state of the process, and a later scenario might read it."""
    before = set(linecache.cache)
    explore(typo_in(do=TYPOS[0][3]))
    assert set(linecache.cache) == before
