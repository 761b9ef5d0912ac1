"""The relations of the steps of a scenario, from texts to numbers.

A scenario refers to steps by object or by text; the engine uses numbers, and
`Relations` holds numbers instead of names. A required step may also be one of
`Scenario.given`: such a step is always active, so the requirement is always met, and no
operation ends it.

Rules:
- an unknown step name is an error that lists the nearest names;
- steps that require each other can never be done; that is an error, and so is a step
  that ends or excludes what must be active when it is done, or afterwards.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches

from everyorder.harness.base.errors import NotAScenario
from everyorder.harness.engine.protocol import Relations, Symmetry
from everyorder.harness.engine.symmetry import occurs_in
from everyorder.harness.scenario.step import ALL, Step, UseStep


def relations_of(
    steps: Sequence[Step],
    initial: Sequence[Step],
    ordered: Iterable[tuple[str, str]],
    uses: Sequence[UseStep] = (),
) -> Relations:
    """Return the relations of the steps; `ordered` are pairs of their texts.

    `initial` are the steps of `Scenario.given`, which are always active.

    Raises:
        NotAScenario: a step name is unknown, steps require each other, a step can never
            be done because of another one, or an operation cannot end a step.
    """
    numbers = {each.text: number for number, each in enumerate(steps)}
    always = {each.text for each in initial}

    def named(text: str, where: str) -> int:
        if text not in numbers:
            near = get_close_matches(text, numbers, n=3, cutoff=0.5) or list(numbers)
            raise NotAScenario(
                found=f"{text!r} in {where}, which is not a step of the scenario",
                wanted=f"one of the steps, such as {' or '.join(near[:3])}",
            )
        return numbers[text]

    def all_named(texts: Iterable[str], where: str) -> frozenset[int]:
        return frozenset(named(text, where) for text in texts if text not in always)

    requires = {
        number: all_named(each.requires, f"requires= of {each.text!r}")
        for number, each in enumerate(steps)
    }
    after = {
        number: all_named(each.after, f"after= of {each.text!r}")
        for number, each in enumerate(steps)
    }
    excludes = _both_ways(
        {
            number: all_named(each.excludes, f"excludes= of {each.text!r}")
            for number, each in enumerate(steps)
        }
    )
    _check_possible(steps, requires, after)
    _check_together(steps, requires, after, excludes, always)
    ends: dict[int, frozenset[int]] = {}
    operations: tuple[Step | UseStep, ...] = (*steps, *uses)
    for number, operation in enumerate(operations):
        where = f"ends= of {operation.text!r}"
        if operation.ends == ALL:
            if ALL in numbers:
                raise NotAScenario(
                    found=f"{where}: 'all', which is also the text of a step",
                    wanted="another text for that step, or ends=['all'] for it alone",
                )
            ended = frozenset(range(len(steps))) - {number}
            ended -= excludes.get(number, frozenset())
        else:
            _check_not_given(where, operation.ends, always)
            ended = all_named(operation.ends, where)
        if ended:
            ends[number] = ended
    _check_endings(steps, requires, after, excludes, ends)
    return Relations(
        lasting=_numbers(each.lasting for each in steps),
        again=_numbers(each.again for each in steps),
        requires={number: needs for number, needs in requires.items() if needs},
        after={number: needs for number, needs in after.items() if needs},
        excludes=excludes,
        refusable=_numbers(each.may_refuse for each in steps),
        pairs=frozenset(_pair(one, two, named) for one, two in ordered),
        symmetric=tuple(_symmetries(steps)),
        ends=ends,
    )


def _symmetries(steps: Sequence[Step]) -> Iterator[Symmetry]:
    """Yield the classes of steps that are declared to be exchangeable.

    Raises:
        NotAScenario: the text of one parameter occurs in that of another, so that
            observations could not distinguish the two.
    """
    classes: dict[str, dict[int, tuple[str, ...]]] = {}
    for number, each in enumerate(steps):
        if each.symmetry:
            classes.setdefault(each.symmetry, {})[number] = each.parameter_texts
    for name, members in classes.items():
        if len(members) < 2:
            continue
        for number, texts in members.items():
            others = [
                text for each in members if each != number for text in members[each]
            ]
            if any(occurs_in(text, other) for text in texts for other in others):
                raise NotAScenario(
                    found=f"{steps[number].text} with symmetric=True, whose parameter "
                    "occurs in that of another step",
                    wanted="parameters that observations can distinguish",
                )
        yield Symmetry(name, members)


def declared_of(steps: Sequence[Step], uses: Sequence[UseStep]) -> frozenset[int]:
    """Return the operations that are declared never to vary, or always to raise."""
    operations: tuple[Step | UseStep, ...] = (*steps, *uses)
    return _numbers(each.constant or bool(each.raises) for each in operations)


def _numbers(flags: Iterable[bool]) -> frozenset[int]:
    return frozenset(number for number, chosen in enumerate(flags) if chosen)


def _pair(one: str, other: str, named: Callable[[str, str], int]) -> tuple[int, int]:
    first, second = named(one, "ordered="), named(other, "ordered=")
    if first == second:
        raise NotAScenario(
            found=f"ordered=[({one!r}, {other!r})]", wanted="pairs of two steps"
        )
    return min(first, second), max(first, second)


def _check_possible(
    steps: Sequence[Step],
    requires: Mapping[int, frozenset[int]],
    after: Mapping[int, frozenset[int]],
) -> None:
    """Raise `NotAScenario` unless each step can be done at some time.

    As in a topological sort: a step can be done once all steps that it needs are done.
    """
    reachable: set[int] = set()
    left = set(range(len(steps)))
    while ready := {each for each in left if requires[each] | after[each] <= reachable}:
        reachable |= ready
        left -= ready
    if left:
        texts = ", ".join(repr(steps[each].text) for each in sorted(left))
        raise NotAScenario(
            found=f"steps of which each waits for another ({texts})",
            wanted="requires= and after= without a cycle",
        )


def _both_ways(excludes: Mapping[int, frozenset[int]]) -> Mapping[int, frozenset[int]]:
    """Return the relation with each pair in both directions, without empty sets."""
    pairs = {(one, other) for one, others in excludes.items() for other in others}
    pairs |= {(other, one) for one, other in pairs}
    firsts = sorted({one for one, _ in pairs})
    return {
        each: frozenset(two for one, two in pairs if one == each) for each in firsts
    }


def _check_together(
    steps: Sequence[Step],
    requires: Mapping[int, frozenset[int]],
    after: Mapping[int, frozenset[int]],
    excludes: Mapping[int, frozenset[int]],
    always: Iterable[str],
) -> None:
    """Raise `NotAScenario` if a step excludes what is active whenever it is done."""
    for number, each in enumerate(steps):
        together = {number} | after[number]
        while more := {n for one in together for n in requires[one]} - together:
            together |= more
        for one in sorted(together):
            rivals = {steps[n].text for n in excludes.get(one, frozenset()) & together}
            rivals |= {*steps[one].excludes} & {*always}
            if rivals:
                rival = min(rivals)
                raise NotAScenario(
                    found=f"{each.text!r}, which can never be done: "
                    f"{steps[one].text!r} excludes {rival!r}, and both would be active",
                    wanted="excludes= of steps that need not be active together",
                )


def _check_not_given(where: str, texts: Iterable[str], always: Iterable[str]) -> None:
    """Raise `NotAScenario` if a step of `given=` should be ended."""
    for text in texts:
        if text in always:
            raise NotAScenario(
                found=f"{text!r} in {where}, which is in given= and always active",
                wanted="steps of the scenario, which can be ended",
            )


def _check_endings(
    steps: Sequence[Step],
    requires: Mapping[int, frozenset[int]],
    after: Mapping[int, frozenset[int]],
    excludes: Mapping[int, frozenset[int]],
    ends: Mapping[int, frozenset[int]],
) -> None:
    """Raise `NotAScenario` if a step ends itself, or what cannot end at that time."""
    for number, each in enumerate(steps):
        ended = ends.get(number, frozenset())
        if number in ended:
            raise NotAScenario(
                found=f"{each.text!r}, which ends itself",
                wanted="ends= of other steps; 'all' means all others",
            )
        for rival in sorted(ended & excludes.get(number, frozenset())):
            text = steps[rival].text
            raise NotAScenario(
                found=f"{each.text!r}, which excludes {text!r} and ends it",
                wanted="one of the two: what it excludes is not active when it is done",
            )
        together = {number} | after[number]
        while more := {n for one in together for n in requires[one]} - together:
            together |= more
        for one in sorted(together - ended):
            for lost in sorted(ended & requires[one]):
                if one == number:
                    raise NotAScenario(
                        found=f"{each.text!r}, which ends {steps[lost].text!r} and "
                        "requires it",
                        wanted="ends= of steps that it does not require",
                    )
                raise NotAScenario(
                    found=f"{each.text!r}, which can never be done: it ends "
                    f"{steps[lost].text!r}, which {steps[one].text!r} requires",
                    wanted="ends= of both",
                )
