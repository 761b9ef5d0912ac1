import subprocess
import sys
from dataclasses import fields
from types import ModuleType
from typing import Any

import pytest

from everyorder.harness.base.errors import BadScenario, NotAScenario
from everyorder.harness.scenario import (
    Scenario,
    Step,
    call,
    define,
    impl,
    look_up,
    step,
    steps,
    together,
    use,
)
from everyorder.harness.scenario.mistakes import OF_REGISTRY
from tests.coded import code
from tests.scenarios.kernels import composed, on_cpu

ADD = define("a::add(Tensor x) -> Tensor")
CPU = impl("a::add", on_cpu, "CPU")
ANY = impl("a::add", composed)
PUT = step("put", lambda to: to.put())
TAKE = step("take", lambda to: to.take())


def shown_beside(one: object, other: object) -> str:
    return f"{one} {other}"


def test_fields_become_tuples() -> None:
    made = Scenario(ADD, CPU, uses=[call("a::add")], given=[ANY], probes=["cpu"])
    assert made.steps == (ADD, CPU)
    assert [each.text for each in made.uses] == ['call("a::add", "cpu")']
    assert made.given == (ANY,)
    assert made.probes == ("cpu",)


def test_operators_in_order_of_appearance() -> None:
    other = define("a::other(Tensor x) -> Tensor")
    made = Scenario(ADD, CPU, uses=[look_up("a::third"), call("a::add")], given=[other])
    assert made.operators == ("a::other", "a::add", "a::third")


@pytest.mark.parametrize(
    ("name", "source", "path"),
    [
        ("two", "tests/scenarios/test_a.py", "scenarios/test_a/two"),
        ("two", "checks/test_a.py", "checks/test_a/two"),
        ("two", "", "two"),
    ],
)
def test_path(name: str, source: str, path: str) -> None:
    assert Scenario(ADD).named(name, source).path == path


def test_naming_changes_nothing_else() -> None:
    made = Scenario(
        step("a", lambda _: None.__class__),
        uses=[call("a::add")],
        given=[ADD],
        order_dependent="newest wins",
        probes=["cpu"],
        create=list,
        observe=str,
        unordered=True,
        check=lambda _: (),
        fingerprint=str,
        watch=["sys"],
        ignore=["registry.hits"],
        isolation="fork",
        reset=lambda: None,
    )
    named = made.named("two", "tests/test_a.py")
    kept = {field.name for field in fields(Scenario)} - {"name", "source"}
    assert {k: getattr(named, k) for k in kept} == {k: getattr(made, k) for k in kept}
    assert (named.name, named.source) == ("two", "tests/test_a.py")
    assert (made.name, made.source) == ("", "")
    assert named.relations == made.relations


def test_digest_tells_what_the_scenario_consists_of() -> None:
    made = [
        Scenario(ADD, CPU),
        Scenario(CPU, ADD),
        Scenario(ADD, CPU, ANY),
        Scenario(ADD, given=[CPU]),
        Scenario(ADD, CPU, uses=[call("a::add")]),
        Scenario(ADD, CPU, order_dependent="newest wins"),
    ]
    digests = [each.digest for each in made]
    assert len(set(digests)) == len(made)
    assert {len(digest) for digest in digests} == {12}
    again = Scenario(
        define("a::add(Tensor x) -> Tensor"), impl("a::add", on_cpu, "CPU")
    )
    assert again.digest == digests[0]
    assert Scenario(ADD, CPU, order_dependent="in other words").digest == digests[5]


def test_digest_tells_what_an_operation_means() -> None:
    """What is new matters where it is used; what only explores does not."""

    def made(*more: Step, **options: Any) -> str:
        given = {"create": list, "observe": str, **options}
        return Scenario(PUT, *(more or (TAKE,)), **given).digest

    def take(**options: Any) -> Step:
        return step("take", lambda to: to.take(), **options)

    plain = made()
    meaning = [
        made(take(undo=None)),
        made(take(undo=None, again=True)),
        made(take(may_refuse=True)),
        made(take(requires="put")),
        made(take(after="put")),
        made(take(excludes="put")),
        made(ordered=[("take", PUT)]),
        made(unordered=True),
        made(uses=[use("count", len)]),
        made(uses=[use("count", len, unordered=True)]),
    ]
    assert len({plain, *meaning}) == 1 + len(meaning)
    assert made(ordered=[(PUT, "take")]) == made(ordered=[("take", "put")])
    # As it was when there was nothing of this.
    assert plain == "6d2129925059"
    for same in (
        made(take(raises=LookupError, constant=True)),
        made(watch=["sys"], ignore=["registry.hits"], isolation="fork"),
        made(reset=lambda: None, fingerprint=str),
    ):
        assert same == plain


def test_digest_is_the_same_in_every_process() -> None:
    program = (
        "from everyorder.harness.scenario import Scenario, define, reserve\n"
        "print(Scenario(define('a::b() -> ()'), reserve('a::b')).digest)"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in ("1", "2")
    }
    assert found == {"86aad9920854\n"}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            ((call("a::add"),), {}),
            'the use \'call("a::add", "cpu")\' among the steps; expected steps there, '
            "and uses=[...]",
        ),
        (
            ((), {}),
            "no steps; expected one step at least: Scenario(step(...), ...)",
        ),
        (
            ((ADD,), {"uses": [ADD]}),
            "the step 'define(\"a::add(Tensor x) -> Tensor\")' among the uses; "
            "expected uses: use(text, a function from the registry to an answer)",
        ),
        (
            ((ADD,), {"given": ["x"]}),
            "'x' among the given; expected step('how it is called', the function)",
        ),
        (
            ((len,), {"create": list, "observe": str}),
            "len among the steps; expected step('how it is called', the function)",
        ),
        (
            ((PUT,), {"create": list, "observe": str, "uses": [len]}),
            "len among the uses; expected use('how it is called', the function)",
        ),
        (
            (([ADD, CPU],), {}),
            "a list among the steps; expected each by itself: Scenario(*steps(...), "
            "...)",
        ),
        (
            ((ADD,), {"uses": call("a::add")}),
            'uses=call("a::add", "cpu"); expected a list, uses=[...]',
        ),
        (
            ((ADD,), {"create": list}),
            "create without observe and without uses; expected observe=..., a "
            "function from the registry to text, or uses=[...]",
        ),
        (
            ((PUT, PUT), {"create": list, "observe": str}),
            "two steps of the text 'put'; expected a different text for each of the "
            "steps",
        ),
        (
            (
                (PUT,),
                {"create": list, "uses": [use("size", len), use("size", len)]},
            ),
            "two uses of the text 'size'; expected a different text for each of the "
            "uses",
        ),
        (
            ((PUT,), {"create": list, "observe": str, "order_dependent": True}),
            "True as order_dependent=; expected a sentence that says why the order may "
            "show",
        ),
        (
            ((PUT,), {"create": "list", "observe": str}),
            "'list' as create; expected a function without parameters, or with "
            "fixtures of pytest",
        ),
        (
            ((PUT,), {"create": list, "observe": shown_beside}),
            "shown_beside(one: object, other: object) -> str as observe; expected "
            + OF_REGISTRY,
        ),
        (
            ((PUT,), {"create": list, "observe": str, "isolation": "thread"}),
            "'thread' as isolation=; expected 'fork', 'spawn' or None",
        ),
        (
            ((ADD,), {"watch": ["sys"]}),
            "watch= without create; expected create=..., a function that makes a "
            "fresh registry",
        ),
        (
            ((PUT,), {"create": list, "observe": str, "ordered": ("put", "take")}),
            "'put' as a pair of ordered=; expected a list of pairs: [('a', 'b')]",
        ),
        (
            (
                (PUT, TAKE),
                {
                    "create": list,
                    "observe": str,
                    "ordered": [(PUT, TAKE)],
                    "order_dependent": "the newest wins",
                },
            ),
            "ordered= together with order_dependent=; expected one of the two: with "
            "order_dependent= all orders may show",
        ),
    ],
)
def test_what_is_no_scenario(given: Any, text: str) -> None:
    steps, named = given
    with pytest.raises(NotAScenario) as caught:
        Scenario(*steps, **named)
    assert str(caught.value) == f"a scenario cannot use {text}."


def test_two_kernels_of_a_key_have_two_descriptions() -> None:
    """A fingerprint names kernels by them, so the proof would take one for another."""
    one = impl("a::b", on_cpu, "CPU", debug="mine")
    two = impl("a::b", composed, ("CUDA", "CPU"), debug="mine")
    Scenario(one, impl("a::b", composed, "CUDA", debug="mine"))
    with pytest.raises(NotAScenario) as caught:
        Scenario(together(two), given=[one])
    assert str(caught.value) == (
        "a scenario cannot use a second kernel described as 'CPU of a::b: mine'; "
        "expected a different description (debug=) for each kernel of a key."
    )


def test_tensors_of_no_kind_are_refused_where_they_are_written() -> None:
    with pytest.raises(BadScenario, check=code("UnknownProbe")) as caught:
        call("a::add", "cdua")
    assert caught.value.near == ("cuda",)
    assert str(caught.value) == (
        "there are no tensors of kind 'cdua'. Near: 'cuda'. Kinds: 'cpu', 'cpu below "
        "autograd', 'cuda', 'cuda below autograd', 'meta', 'sparse', 'mkldnn', "
        "'subclass'; or name keys, as 'CPU+Tracer'."
    )
    with pytest.raises(BadScenario, check=code("UnknownProbe")):
        Scenario(ADD, probes=["gpu"])
    assert call("a::add", "CPU+Tracer").text == 'call("a::add", "CPU+Tracer")'


def test_steps_of_a_registry_without_one() -> None:
    put = step("put", lambda to: to.put())
    for options in ({}, {"given": [put]}, {"observe": str}):
        with pytest.raises(NotAScenario) as caught:
            Scenario(put, **options)
        assert str(caught.value) == (
            "a scenario cannot use step('put', ...) without create; expected "
            "create=..., a function that makes a fresh registry, and observe=..., one "
            "from the registry to text."
        )
    # Beside steps of the dispatcher it may be one more.
    assert Scenario(ADD, put).steps == (ADD, put)
    assert Scenario(put, given=[ADD]).steps == (put,)


def test_a_text_with_half_a_surrogate_pair_has_a_digest() -> None:
    one, two = (
        Scenario(step(text, str), create=list, observe=str)
        for text in ("put \udcff", "put \udcfe")
    )
    assert len({one.digest, two.digest}) == 2


def test_observe_may_be_left_out_where_there_are_uses() -> None:
    made = Scenario(PUT, uses=[use("count", len)], create=list)
    # The look, which comes after steps and uses, is at nothing then.
    assert made.relations.declared == {2}


def test_what_is_watched_has_a_name() -> None:
    class Table:
        """A table."""

    def watched(watch: Any) -> tuple[tuple[str, Any], ...]:
        return Scenario(PUT, create=list, observe=str, watch=watch).watch

    table, module = Table(), ModuleType("tables")
    assert watched("tables") == (("tables", "tables"),)
    assert watched(module) == (("tables", module),)
    assert watched([module, "json", table, Table]) == (
        ("tables", module),
        ("json", "json"),
        ("watch[3]", table),
        (Table.__qualname__, Table),
    )
    assert watched({"table": table}) == (("table", table),)


def test_steps_with_a_parameter_are_a_list() -> None:
    made = Scenario(*steps("put", "ab", lambda to, _: to), create=list, observe=str)
    assert [each.text for each in made.steps] == ["put('a')", "put('b')"]
