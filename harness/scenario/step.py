"""Steps and uses: the operations of a scenario, and how they depend on each other.

A step is prepared once for each fresh system and then performed any number of times.
`prepare(target, origin)` receives the system's registry and a name for the step ("step
2") and returns a function that performs it. That function returns an undo handle, which
only the engine owns and ends with `close()`. `harness.scenario.execution` lists the
results that the function of a step may return.

A scenario refers to steps by object or by text; the engine uses numbers, and
`Relations` holds numbers instead of names. A required step may also be one of
`Scenario.given`: such a step is always active, so the requirement is always met.

Rules:
- a step may raise when it is performed: then nothing may have changed;
- the text is one runnable line; reports print it, digests are computed from it, and
  other steps refer to the step by it: unprintable characters are escaped;
- a use returns its answer and must not change the registrations;
- an unknown step name is an error that lists the nearest names;
- steps that require each other can never be done; that is an error.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from inspect import isasyncgenfunction, isgeneratorfunction
from types import EllipsisType, FunctionType
from typing import Any, Literal, TypeAlias

from everyorder.harness.base.errors import NotAScenario
from everyorder.harness.engine.protocol import Relations, Symmetry
from everyorder.harness.engine.symmetry import occurs_in
from everyorder.harness.scenario.execution import (
    Closable,
    Performance,
    Undo,
    current_loop,
)
from everyorder.harness.scenario.mistakes import check_kind, check_takes, count_required

__all__ = [
    "Closable",
    "Perform",
    "Prepare",
    "Step",
    "Use",
    "UseStep",
    "step",
    "steps",
    "use",
]

Perform = Callable[[], Closable]
Prepare = Callable[[Any, str], Perform]
Use = Callable[[Any], Hashable]

# Owner of a step or use: the dispatcher, a registry with `create`, or unspecified.
Owner: TypeAlias = Literal["dispatcher", "registry", ""]

# The exceptions that a step or use declares.
Raises: TypeAlias = type[BaseException] | tuple[type[BaseException], ...] | None


def one_line(text: str) -> str:
    """Return the text with unprintable characters escaped, as in a `repr`."""
    text = str.__str__(text)
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode()
        for each in text
    )


@dataclass(frozen=True, slots=True)
class Step:
    """A registration that can be made and, mostly, undone.

    `operators` are the names of the affected operators, for the dispatcher; `kernels`
    describe the kernels of the step if the scenario describes them: key, operator,
    words. A step with `has_effects` does more than register in the dispatcher's state;
    see `harness.scenario.effects`. `owner` is the kind of registry that the step works
    on, if known. `functions` are the scenario's own functions, which are part of the
    state.

    The other fields are as for `step`; `requires`, `after` and `excludes` are texts of
    steps. Steps of one `symmetry` are declared to differ only in their parameter, which
    may appear in observations as one of the `parameter_texts`.
    """

    text: str
    prepare: Prepare
    operators: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    has_effects: bool = False
    owner: Owner = ""
    functions: tuple[Callable[..., Any], ...] = ()
    lasting: bool = False
    again: bool = False
    may_refuse: bool = False
    requires: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    raises: tuple[type[BaseException], ...] = ()
    constant: bool = False
    symmetry: str = ""
    parameter_texts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", one_line(self.text))
        for name in ("requires", "after", "excludes"):
            texts = tuple(map(one_line, getattr(self, name)))
            object.__setattr__(self, name, texts)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class UseStep:
    """A call or a look-up; `perform(target)` returns its answer.

    `raises`, `constant` and `unordered` are as for `use`.
    """

    text: str
    perform: Use
    operators: tuple[str, ...] = ()
    owner: Owner = ""
    raises: tuple[type[BaseException], ...] = ()
    constant: bool = False
    unordered: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", one_line(self.text))

    def __str__(self) -> str:
        return self.text


def step(
    text: str,
    do: Callable[[Any], Any],
    *,
    undo: Undo = ...,
    raises: Raises = None,
    requires: str | Step | Iterable[str | Step] = (),
    after: str | Step | Iterable[str | Step] = (),
    excludes: str | Step | Iterable[str | Step] = (),
    again: bool = False,
    may_refuse: bool = False,
    constant: bool = False,
) -> Step:
    """Return a step of any registry: `do(registry)` performs it and returns its undo.

    Args:
        text: one line, as one would write the step; each text is unique in a scenario.
            Unprintable characters are escaped, a newline as `\\n`.
        do: a function of the registry. It returns a function without parameters, an
            object with `close()`, or a context manager; or it is a generator function
            whose code after the `yield` undoes the step. All of these may be
            asynchronous; each fresh registry has one event loop.
        undo: the function that undoes the step if `do` does not return one: a function
            of the registry, or of the registry and the result of `do`, which is also
            passed to `*args`; an optional parameter keeps its default. None if the
            step cannot be undone: it stays active, as most registrations do.
        raises: errors that the step must raise at every state in which it is tried;
            without them, a step that always fails is a mistake of the scenario.
        requires: steps, by object or text, that must be active for this one to be
            done, and that cannot be undone while it is active.
        after: steps that must be active when this one is done, and may be undone later.
        excludes: steps that cannot be active together with this one: each is done only
            while the other is not active.
        again: True if a step that stays (`undo=None`) may be done again.
        may_refuse: True if its undo may raise; then the step stays active.
        constant: True if the step must not change anything.

    Raises:
        NotAScenario: options exclude each other, `do` or `undo` has the wrong
            parameters, or an argument is of another kind.
    """
    where = f"step({text!r}, ...)"
    check_kind(f"text of {where}", text, str, "a text of one line")
    check_takes(f"do of {where}", do, (1,), "a function of the registry")
    if not isinstance(undo, EllipsisType | None):
        expected = "a function of the registry, or of it and of what the step returned"
        check_takes(f"undo of {where}", undo, (1, 2), expected)
        if isgeneratorfunction(do) or isasyncgenfunction(do):
            raise NotAScenario(
                found=f"{where}, a generator function, with undo=",
                wanted="one of the two: the code after the yield undoes the step",
            )
    if again and undo is not None:
        raise NotAScenario(
            found=f"{where} with again=True, which can be undone",
            wanted="undo=None, or a second step of another text",
        )
    if may_refuse and undo is None:
        raise NotAScenario(
            found=f"{where} with may_refuse=True, which cannot be undone",
            wanted="undo=..., a function that may raise",
        )
    performance = Performance(text, do, undo, may_refuse=may_refuse)
    return Step(
        text,
        partial(_prepare, performance),
        owner="registry",
        functions=(do,) if isinstance(undo, EllipsisType | None) else (do, undo),
        lasting=undo is None,
        again=again,
        may_refuse=may_refuse,
        requires=_texts(f"requires of {where}", requires),
        after=_texts(f"after of {where}", after),
        excludes=_texts(f"excludes of {where}", excludes),
        raises=_classes(raises),
        constant=constant,
    )


def steps(
    name: str,
    values: Iterable[Any] | Mapping[str, Any],
    do: Callable[[Any, Any], Any],
    *,
    undo: Undo = ...,
    symmetric: bool = False,
    **options: Any,
) -> list[Step]:
    """Return steps that differ in a parameter: `steps("add", "ab", Registry.add)`.

    Args:
        name: the name of the function; the texts are `add('a')`, `add('b')`.
        values: the parameters, or a mapping from the text of each parameter to it.
        do: a function of the registry and of a value, otherwise as for `step`.
        undo: as for `step`, but a function of the registry and of the value, or of
            these and of the result of `do`.
        symmetric: True if the values are declared to be exchangeable. The declaration
            is checked; orders that differ only in the names of the values are then
            explored once, and the verdict lists this as an assumption.
        options: as for `step`.

    Raises:
        NotAScenario: as for `step`; or the text of a value changes with each run.
    """
    where = f"steps({name!r}, ...)"
    check_kind(f"name of {where}", name, str, "the name of a function")
    check_kind(f"values of {where}", values, Iterable, "values, one for each step")
    check_takes(f"do of {where}", do, (2,), "a function of the registry and of a value")
    if isinstance(undo, EllipsisType | None):
        ends: Callable[[Any], Undo] = lambda _: undo  # noqa: E731  # one of two
    else:
        expected = "a function of the registry, a value, and what the step returned"
        check_takes(f"undo of {where}", undo, (2, 3), expected)
        bind = _with_result if count_required(undo, 3) in (3, None) else _with
        ends = partial(partial, bind, undo)
    pairs = values.items() if isinstance(values, Mapping) else map(_named_value, values)
    return [
        replace(
            step(
                f"{name}({text})",
                partial(_with, do, value),
                undo=ends(value),
                **options,
            ),
            symmetry=name if symmetric else "",
            parameter_texts=(text, value if type(value) is str else text),
        )
        for text, value in pairs
    ]


def use(
    text: str,
    perform: Callable[[Any], Any],
    *,
    raises: Raises = None,
    constant: bool = False,
    unordered: bool = False,
) -> UseStep:
    """Return a use of any registry: `perform(registry)` returns an answer to compare.

    Answers are compared by type, value and order; an error is an answer, too.

    Args:
        text: one line, as one would write the use.
        perform: a function of the registry, which may be a coroutine function.
        raises: errors that the use must raise at every state.
        constant: True if the answer must be the same at every state.
        unordered: True if the order of the items of the answer does not count; the
            guarantee then says that the order was not compared.

    Raises:
        NotAScenario: `perform` has other parameters, or is a generator function.
    """
    where = f"use({text!r}, ...)"
    check_kind(f"text of {where}", text, str, "a text of one line")
    check_takes(f"perform of {where}", perform, (1,), "a function of the registry")
    if isgeneratorfunction(perform) or isasyncgenfunction(perform):
        raise NotAScenario(
            found=f"{where}, a generator function",
            wanted="a function that returns its answer, as a list of all",
        )
    return UseStep(
        text,
        perform,
        raises=_classes(raises),
        constant=constant,
        unordered=unordered,
    )


def _prepare(performance: Performance, target: Any, origin: str) -> Perform:
    return partial(performance.perform, current_loop(), target)


def _with(function: Callable[..., Any], value: Any, target: Any) -> Any:
    return function(target, value)


def _with_result(
    function: Callable[..., Any], value: Any, target: Any, result: Any
) -> Any:
    return function(target, value, result)


def _texts(
    where: str, references: str | Step | Iterable[str | Step]
) -> tuple[str, ...]:
    several = (references,) if isinstance(references, str | Step) else references
    check_kind(where, several, Iterable, "a step, its text, or several of these")
    return tuple(dict.fromkeys(str(each) for each in several))


def _classes(raises: Raises) -> tuple[type[BaseException], ...]:
    if raises is None:
        return ()
    return raises if isinstance(raises, tuple) else (raises,)


def _named_value(value: Any) -> tuple[str, Any]:
    """Return the text of a value, and the value."""
    if isinstance(value, type | FunctionType):
        return value.__name__, value
    text = repr(value)
    if " at 0x" in text:
        raise NotAScenario(
            found=f"the value {text}, whose text contains its address",
            wanted="values by text: {'json': value, ...}",
        )
    return text, value


def relations_of(
    steps: Sequence[Step], initial: Sequence[Step], ordered: Iterable[tuple[str, str]]
) -> Relations:
    """Return the relations of the steps; `ordered` are pairs of their texts.

    `initial` are the steps of `Scenario.given`, which are always active.

    Raises:
        NotAScenario: a step name is unknown, steps require each other, or a step can
            never be done because of another one.
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
    return Relations(
        lasting=_numbers(each.lasting for each in steps),
        again=_numbers(each.again for each in steps),
        requires={number: needs for number, needs in requires.items() if needs},
        after={number: needs for number, needs in after.items() if needs},
        excludes=excludes,
        refusable=_numbers(each.may_refuse for each in steps),
        pairs=frozenset(_pair(one, two, named) for one, two in ordered),
        symmetric=tuple(_symmetries(steps)),
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
