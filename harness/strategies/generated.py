"""Steps, uses and scenarios that Hypothesis draws, and that shrink.

A scenario shrinks to few steps, few uses and no relations, in this order; the arguments
of its calls shrink as their own strategies say.

Rules:
- a generated scenario is valid: a mistake in the arguments is an error, and is not
  hidden by drawing another scenario;
- a step brings the steps that it needs, and forgets those that it excludes or ends and
  that are not in the scenario.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, Literal, TypeAlias

from hypothesis import strategies as st

from everyorder.harness.base.errors import NotAScenario
from everyorder.harness.scenario.scenario import Scenario, parts_of
from everyorder.harness.scenario.step import (
    Step,
    UseStep,
    named_value,
    spread,
    steps,
    use,
    with_value,
)

Pairs: TypeAlias = Sequence[tuple[str | Step, str | Step]]
Relation: TypeAlias = Literal["requires", "after", "excludes"]
RELATIONS: tuple[Relation, ...] = ("requires", "after", "excludes")


def calls(
    name: str,
    do: Callable[..., Any],
    *values: st.SearchStrategy[Any],
    **options: Any,
) -> st.SearchStrategy[Step]:
    """Return a strategy for steps that call a registration function.

    Args:
        name: the name of the function; the texts are `add('a')`, `add('a', 1)`.
        do: a function of the registry and of the drawn values, otherwise as for `step`.
        values: a strategy for each argument.
        options: as for `step`; an `undo=` function gets the registry and the values,
            and with one value it may also take the result of `do`.

    Raises:
        NotAScenario: an argument is wrong; some are noticed when a step is drawn.
    """
    if not values:
        raise NotAScenario(
            found=f"calls({name!r}, ...) without strategies",
            wanted="one for each argument, or step(...) for a call without arguments",
        )
    if len(values) > 1:
        undo = options.get("undo")
        if callable(undo):
            options["undo"] = spread(undo)

    def drawn(arguments: tuple[Any, ...]) -> Step:
        if len(arguments) == 1:
            (text, value), called = named_value(arguments[0]), do
        else:
            text = ", ".join(named_value(each)[0] for each in arguments)
            value, called = arguments, spread(do)
        return steps(name, {text: value}, called, **options)[0]

    return st.tuples(*values).map(drawn)


def questions(
    name: str,
    perform: Callable[..., Any],
    *values: st.SearchStrategy[Any],
    **options: Any,
) -> st.SearchStrategy[UseStep]:
    """Return a strategy for uses that call a look-up.

    Args:
        name: the name of the function; the texts are `find('a')`.
        perform: a function of the registry and of the drawn values, otherwise as for
            `use`.
        values: a strategy for each argument.
        options: as for `use`.
    """

    def drawn(arguments: tuple[Any, ...]) -> UseStep:
        text = ", ".join(named_value(each)[0] for each in arguments)
        value = arguments[0] if len(arguments) == 1 else arguments
        called = perform if len(arguments) == 1 else spread(perform)
        return use(f"{name}({text})", with_value(called, value), **options)

    return st.tuples(*values).map(drawn)


@st.composite
def scenarios(
    draw: st.DrawFn,
    /,
    steps: Sequence[Step | st.SearchStrategy[Step]],
    uses: Sequence[UseStep | st.SearchStrategy[UseStep]] = (),
    *,
    max_steps: int = 3,
    max_uses: int = 2,
    relations: Sequence[Relation] = (),
    ordered: Callable[[Step, Step], bool]
    | Sequence[tuple[str | Step, str | Step]] = (),
    **options: Any,
) -> Scenario:
    """Return a strategy for scenarios of some of these steps and uses.

    Args:
        draw: passed by Hypothesis.
        steps: steps, and strategies for steps; a step brings those that it needs.
        uses: uses, and strategies for uses.
        max_steps: the limit of the drawn steps.
        max_uses: the limit of the drawn uses.
        relations: the relations to draw between the steps, in addition to their own:
            "requires", "after" and "excludes".
        ordered: the pairs of steps whose order may show, as for `Scenario`; those of
            absent steps do not count. Or a function: True for two such steps.
        options: as for `Scenario`: `create=`, `observe=`, ...

    Raises:
        NotAScenario: the arguments are not those of a scenario.
    """
    drawn_steps = draw(_several(steps, 1, max_steps))
    fewest = int("create" in options and options.get("observe") is None)
    drawn_uses = draw(_several(uses, fewest, max(fewest, max_uses))) if uses else []
    initial = {each.text for each in options.get("given", ())}
    pool = [each for each in steps if isinstance(each, Step)]
    pairs = () if callable(ordered) else ordered
    part_steps, ordered_pairs = parts_of(drawn_steps, pool, initial, pairs)
    if callable(ordered):
        ordered_pairs = [
            (one.text, other.text)
            for one, other in combinations(part_steps, 2)
            if ordered(one, other)
        ]
    options = {**options, "ordered": ordered_pairs}
    scenario = Scenario(*part_steps, uses=drawn_uses, **options)
    kinds = [each for each in RELATIONS if each in relations]
    for later in range(len(part_steps) if kinds else 0):
        for earlier in range(later):
            kind = draw(st.sampled_from((None, *kinds)))
            if kind is not None:
                scenario = _related(scenario, drawn_uses, options, kind, earlier, later)
    return scenario


def _several(kinds: Sequence[Any], least: int, most: int) -> st.SearchStrategy[Any]:
    either = [
        each if isinstance(each, st.SearchStrategy) else st.just(each) for each in kinds
    ]
    return st.lists(
        st.one_of(either),
        min_size=least,
        max_size=most,
        unique_by=lambda each: each.text,
    )


def _related(
    scenario: Scenario,
    uses: Sequence[UseStep],
    options: Mapping[str, Any],
    kind: Relation,
    earlier: int,
    later: int,
) -> Scenario:
    """Return the scenario with another relation, or as it is if that is impossible."""
    steps = [*scenario.steps]
    texts = dict.fromkeys((*getattr(steps[later], kind), steps[earlier].text))
    new_fields: dict[str, Any] = {kind: tuple(texts)}
    steps[later] = replace(steps[later], **new_fields)
    try:
        return Scenario(*steps, uses=uses, **options)
    except NotAScenario:  # the steps could not be done, or not be active, together
        return scenario


@st.composite
def scenarios_within(
    draw: st.DrawFn, /, whole: Scenario, *, max_steps: int = 3, max_uses: int = 2
) -> Scenario:
    """Return a strategy for the scenarios that have some steps and uses of another one.

    Args:
        draw: passed by Hypothesis.
        whole: the scenario with all steps and uses.
        max_steps: the limit of the drawn steps, without those that they need.
        max_uses: the limit of the drawn uses.
    """
    steps = draw(_several(whole.steps, 1, max_steps))
    least = int(whole.create is not None and whole.observe is None)
    uses = draw(_several(whole.uses, least, max(least, max_uses))) if whole.uses else []
    return whole.part(steps, uses)
