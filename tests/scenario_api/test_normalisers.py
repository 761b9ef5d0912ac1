"""Chains of functions that make texts fit to be compared with what is expected."""

import re
from typing import Any

import pytest

from everyorder.harness import Normaliser, explore, normaliser
from everyorder.harness.base.errors import NotAScenario
from everyorder.harness.expectations import compare, document_of, explain, parse, render
from everyorder.harness.scenario import Scenario, step


@normaliser(version=2)
def mask_ids(text: str) -> str:
    return re.sub(r"id=\d+", "id=N", text)


def shout(text: str) -> str:
    return text.upper()


def add(name: str) -> Any:
    def do(registry: list[str]) -> Any:
        registry.append(name)
        return lambda: registry.remove(name)

    return step(f"add({name!r})", do)


def refuse(registry: list[str]) -> None:
    if registry:
        raise ValueError("id=7 is taken")


def scenario(observe: Any, *normalisers: Any) -> Scenario:
    return Scenario(
        add("a"), create=list, observe=observe, normalisers=normalisers, name="s"
    )


def with_ids(registry: list[str]) -> str:
    return "".join(f"{name} id={len(registry)}\n" for name in registry) or "nothing"


def test_a_chain_is_applied_in_its_order() -> None:
    report = explore(scenario(with_ids, mask_ids, shout))
    document = document_of(report)
    assert [body for _, body in document.entries] == [
        (("state", "NOTHING"),),
        (("state", "A ID=N\n"),),
    ]
    assert document.normalisers == ("mask_ids, version 2", "shout, version 1")
    text = render(document)
    head = "normalisers:\n  1  mask_ids, version 2\n  2  shout, version 1\nentries: "
    assert head in text
    assert parse(text) == document


def test_an_order_that_makes_a_difference_is_not_hidden() -> None:
    report = explore(
        Scenario(
            add("a"),
            add("b"),
            create=list,
            observe=lambda registry: f"id={registry}",
            normalisers=[lambda text: ""],
        )
    )
    assert report.verdict == "order"


def test_the_error_of_a_failing_step_is_normalised() -> None:
    report = explore(
        Scenario(
            add("a"),
            step("refuse", refuse, undo=None, raises=ValueError),
            create=list,
            observe=str,
            normalisers=[mask_ids],
        )
    )
    [text] = {
        text
        for key, body in document_of(report).entries
        if key.fails is not None and isinstance(body, tuple)
        for _, text in body
        if "taken" in text
    }
    assert text == "id=N is taken"


def test_another_chain_is_named_as_the_cause() -> None:
    old = document_of(explore(scenario(with_ids, Normaliser("mask", 1, str))))
    new = document_of(explore(scenario(with_ids, Normaliser("mask", 2, mask_ids))))
    comparison = compare(old, new)
    assert comparison.cause == (
        "the normalisers have changed, from mask, version 1 to mask, version 2"
    )
    assert not comparison.divisible
    explained = explain(comparison, "FILE", "COMMAND")
    assert " ".join(explained.split()).startswith(
        "FILE: not as expected: 1 changed of 2 entries, first {1} cause: the "
        "normalisers have changed, from mask, version 1 to mask, version 2; the "
        "registry may be as before "
    )
    without = document_of(explore(scenario(with_ids)))
    assert compare(old, without).cause.endswith("from mask, version 1 to none")
    assert compare(old, old).cause == ""


@pytest.mark.parametrize(
    ("normalisers", "text"),
    [
        ([1], "1 among the normalisers; expected a function of one text"),
        ("ab", "normalisers='ab'; expected a list, normalisers=[...]"),
        (mask_ids, "expected a list, normalisers=[...]"),
        ([lambda: ""], "expected a function of one text"),
    ],
)
def test_what_is_not_a_chain(normalisers: Any, text: str) -> None:
    with pytest.raises(NotAScenario) as caught:
        Scenario(add("a"), create=list, observe=str, normalisers=normalisers)
    assert text in str(caught.value)


@pytest.mark.parametrize("version", [0, -1, True, "2"])
def test_a_version_is_a_number(version: Any) -> None:
    with pytest.raises(NotAScenario, match="@normaliser"):
        normaliser(version)


def test_a_normaliser_that_returns_nothing() -> None:
    broken: Any = lambda text: None  # noqa: E731 - its name is part of the message
    with pytest.raises(NotAScenario) as caught:
        explore(scenario(with_ids, broken))
    assert "NoneType, returned by the normaliser" in str(caught.value)
    assert str(caught.value).endswith("expected a text.")
