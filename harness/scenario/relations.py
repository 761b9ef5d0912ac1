"""What the steps of a scenario have to do with each other, by number.

True only here: names of steps become numbers.  A scenario names steps by object or by
text; the engine counts.  What is required may also be given (`Scenario.given`): that is
always active, so nothing follows from it.

Rules:
- a name that no step has is told, with the nearest ones;
- steps that require each other could never be done, and are told.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches

from harness.engine.protocol import Relations, Symmetry
from harness.engine.symmetry import stands_in
from harness.errors import NotAScenario
from harness.scenario.step import Step, UseStep


def relations_of(
    steps: Sequence[Step], given: Sequence[Step], ordered: Iterable[tuple[str, str]]
) -> Relations:
    """The relations of the steps, `ordered` being pairs of their texts.

    Raises:
        NotAScenario: a step is named that is not there, or steps require each other.
    """
    numbers = {each.text: number for number, each in enumerate(steps)}
    always = {each.text for each in given}

    def named(text: str, where: str) -> int:
        if text not in numbers:
            near = get_close_matches(text, numbers, n=3, cutoff=0.5) or list(numbers)
            raise NotAScenario(
                found=f"{text!r} in {where}, which is no step of it",
                wanted=f"one of its steps, such as {' or '.join(near[:3])}",
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
    _check_possible(steps, requires, after)
    return Relations(
        lasting=_numbers(each.lasting for each in steps),
        again=_numbers(each.again for each in steps),
        requires={number: needs for number, needs in requires.items() if needs},
        after={number: needs for number, needs in after.items() if needs},
        refusable=_numbers(each.may_refuse for each in steps),
        pairs=frozenset(_pair(one, two, named) for one, two in ordered),
        symmetric=tuple(_symmetries(steps)),
    )


def _symmetries(steps: Sequence[Step]) -> Iterator[Symmetry]:
    """The classes of steps that are told to be exchangeable.

    Raises `NotAScenario` where nobody could tell two parameters apart in what is seen.
    """
    classes: dict[str, dict[int, tuple[str, ...]]] = {}
    for number, each in enumerate(steps):
        if each.symmetry:
            classes.setdefault(each.symmetry, {})[number] = each.writings
    for name, members in classes.items():
        if len(members) < 2:
            continue
        for number, writings in members.items():
            others = [
                text for each in members if each != number for text in members[each]
            ]
            if any(stands_in(text, other) for text in writings for other in others):
                raise NotAScenario(
                    found=f"{steps[number].text} with symmetric=True, whose parameter "
                    "stands in that of another step",
                    wanted="parameters that can be told apart in what is seen",
                )
        yield Symmetry(name, members)


def declared_of(steps: Sequence[Step], uses: Sequence[UseStep]) -> frozenset[int]:
    """The operations that are meant never to vary, or always to raise."""
    operations: tuple[Step | UseStep, ...] = (*steps, *uses)
    return _numbers(each.constant or bool(each.raises) for each in operations)


def _numbers(which: Iterable[bool]) -> frozenset[int]:
    return frozenset(number for number, chosen in enumerate(which) if chosen)


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
    """Raises `NotAScenario` unless each step can be done at some time.

    As in a topological order: what needs nothing but what is there can be done.
    """
    there: set[int] = set()
    left = set(range(len(steps)))
    while found := {each for each in left if requires[each] | after[each] <= there}:
        there |= found
        left -= found
    if left:
        texts = ", ".join(repr(steps[each].text) for each in sorted(left))
        raise NotAScenario(
            found=f"steps of which each waits for another ({texts})",
            wanted="requires= and after= without a circle",
        )
