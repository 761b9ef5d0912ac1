"""Steps and uses: the operations of a scenario, and how they depend on each other.

A step is prepared once for each fresh system and then performed any number of times.
`prepare(target, origin)` receives the system's registry and a name for the step ("step
2") and returns a function that performs it. That function returns an undo handle, which
only the engine owns and ends with `close()`. `harness.scenario.execution` lists the
results that the function of a step may return.

A scenario refers to steps by object or by text; `relations.py` turns texts into the
numbers that the engine uses.

Rules:
- a step may raise when it is performed: then nothing may have changed;
- the text is one runnable line; reports print it, digests are computed from it, and
  other steps refer to the step by it: unprintable characters are escaped;
- a use returns its answer and must not change the registrations, unless it ends steps;
- an operation that ends steps (`ends=`) ends all of them when it succeeds, and none if
  it raises; an ended step can be done again, and its undo handle is dropped.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from inspect import isasyncgenfunction, isgeneratorfunction
from types import EllipsisType, FunctionType
from typing import Any, Final, Literal, TypeAlias

from everyorder.harness.base.errors import NotAScenario
from everyorder.harness.scenario.execution import (
    Closable,
    Performance,
    Undo,
    current_loop,
)
from everyorder.harness.scenario.mistakes import (
    OF_REGISTRY,
    check_kind,
    check_takes,
    checks_calls,
    count_required,
    kind_of,
    value_text,
)

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

# Means all steps of the scenario, or all others, in `ends=`.
ALL: Final = "all"

# The steps that an operation ends, by their texts.
Ends: TypeAlias = tuple[str, ...] | Literal["all"]

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
    state; `named` are the functions and classes that the text names, if it is code.

    The other fields are as for `step`; `requires`, `after`, `excludes` and `ends` are
    texts of steps. Steps of one `symmetry` are declared to differ only in their
    parameter, which may appear in observations as one of the `parameter_texts`.
    """

    text: str
    prepare: Prepare
    operators: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    has_effects: bool = False
    owner: Owner = ""
    functions: tuple[Callable[..., Any], ...] = ()
    named: tuple[Callable[..., Any], ...] = ()
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
    ends: Ends = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", one_line(self.text))
        for name in ("requires", "after", "excludes"):
            texts = tuple(map(one_line, getattr(self, name)))
            object.__setattr__(self, name, texts)
        object.__setattr__(self, "ends", _escaped(self.ends))

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class UseStep:
    """A call or a look-up; `perform(target)` returns its answer.

    `raises`, `constant`, `unordered` and `ends` are as for `use`.
    """

    text: str
    perform: Use
    operators: tuple[str, ...] = ()
    owner: Owner = ""
    raises: tuple[type[BaseException], ...] = ()
    constant: bool = False
    unordered: bool = False
    ends: Ends = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", one_line(self.text))
        object.__setattr__(self, "ends", _escaped(self.ends))

    def __str__(self) -> str:
        return self.text


@checks_calls(
    "step('add(1)', lambda registry: registry.add(1), "
    "undo=lambda registry: registry.remove(1))"
)
def step(
    text: str,
    do: Callable[[Any], Any],
    *,
    undo: Undo = ...,
    raises: Raises = None,
    requires: str | Step | Iterable[str | Step] = (),
    after: str | Step | Iterable[str | Step] = (),
    excludes: str | Step | Iterable[str | Step] = (),
    ends: str | Step | Iterable[str | Step] = (),
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
        ends: steps that this one ends when it is done, as `replace` does; "all" means
            all others. They are not active any longer and can be done again; their
            undo is never called, also not when this step is undone. While a step
            requires one of them that it does not end, too, it is not played.
        again: True if a step that stays (`undo=None`) may be done again.
        may_refuse: True if its undo may raise; then the step stays active.
        constant: True if the step must not change anything.

    Raises:
        NotAScenario: options exclude each other, `do` or `undo` has the wrong
            parameters, or an argument is of another kind.
    """
    where = f"step({value_text(text)}, ...)"
    check_kind(f"the text of {where}", text, str, "a text of one line")
    check_takes(f"the function of {where}", do, (1,), OF_REGISTRY)
    if not isinstance(undo, EllipsisType | None):
        expected = "a function of the registry, or of it and of what the step returned"
        check_takes(f"the undo of {where}", undo, (1, 2), expected)
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
    _check_ends(where, ends, raises=raises, constant=constant)
    performance = Performance(text, do, undo, may_refuse=may_refuse)
    return Step(
        text,
        partial(_prepare, performance),
        owner="registry",
        functions=(do,) if isinstance(undo, EllipsisType | None) else (do, undo),
        lasting=undo is None,
        again=again,
        may_refuse=may_refuse,
        requires=_texts(f"requires= of {where}", requires),
        after=_texts(f"after= of {where}", after),
        excludes=_texts(f"excludes= of {where}", excludes),
        raises=_classes(f"raises= of {where}", raises),
        constant=constant,
        ends=_ends(f"ends= of {where}", ends),
    )


@checks_calls("*steps('add', [1, 2], Registry.add, undo=Registry.remove)")
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
    where = f"steps({value_text(name)}, ...)"
    check_kind(f"the name of {where}", name, str, "the name of a function")
    check_kind(f"the values of {where}", values, Iterable, "a list, one for each step")
    expected = "a function of the registry and of a value"
    check_takes(f"the function of {where}", do, (2,), expected)
    if isinstance(undo, EllipsisType | None):
        undo_of: Callable[[Any], Undo] = lambda _: undo  # noqa: E731  # one of two
    else:
        expected = "a function of the registry, a value, and what the step returned"
        check_takes(f"the undo of {where}", undo, (2, 3), expected)
        # A built-in method without a signature takes the value: `set.discard`.
        bind = _with_result if count_required(undo, 3) == 3 else _with
        undo_of = partial(partial, bind, undo)
    pairs = values.items() if isinstance(values, Mapping) else map(named_value, values)
    return [
        replace(
            step(
                f"{name}({text})",
                with_value(do, value),
                undo=undo_of(value),
                **options,
            ),
            symmetry=name if symmetric else "",
            parameter_texts=(text, value if type(value) is str else text),
        )
        for text, value in pairs
    ]


@checks_calls("use('find(1)', lambda registry: registry.find(1))")
def use(
    text: str,
    perform: Callable[[Any], Any],
    *,
    raises: Raises = None,
    constant: bool = False,
    unordered: bool = False,
    ends: str | Step | Iterable[str | Step] = (),
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
        ends: steps that it ends, by object or text, as `clear()` does; "all" means
            all steps. They are not active any longer and can be done again; their undo
            is never called. If it raises, it ends none. The steps of `given=` are not
            ended. While a step requires one of them that it does not end, too, it is
            not played.

    Raises:
        NotAScenario: `perform` has other parameters, or is a generator function; or
            options exclude each other.
    """
    where = f"use({value_text(text)}, ...)"
    check_kind(f"the text of {where}", text, str, "a text of one line")
    check_takes(f"the function of {where}", perform, (1,), OF_REGISTRY)
    if isgeneratorfunction(perform) or isasyncgenfunction(perform):
        raise NotAScenario(
            found=f"{where}, a generator function",
            wanted="a function that returns its answer, as a list of all",
        )
    _check_ends(where, ends, raises=raises)
    return UseStep(
        text,
        perform,
        raises=_classes(f"raises= of {where}", raises),
        constant=constant,
        unordered=unordered,
        ends=_ends(f"ends= of {where}", ends),
    )


def _prepare(performance: Performance, target: Any, origin: str) -> Perform:
    return partial(performance.perform, current_loop(), target)


def performance_of(step: Step) -> Performance | None:
    """Return the functions of a step that `step` made; None for any other."""
    prepare = step.prepare
    if not isinstance(prepare, partial) or prepare.func is not _prepare:
        return None
    (performance,) = prepare.args
    assert isinstance(performance, Performance), "the argument of `_prepare`"
    return performance


# A function, the arguments after the registry, and True if a result follows.
Call: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...], bool]


def call_of(function: Callable[..., Any]) -> Call | None:
    """Return the call of a function that `steps` or `spread` made, else None."""
    if not isinstance(function, partial) or function.func not in (_with, _with_result):
        return None
    inner, value = function.args
    if isinstance(inner, partial) and inner.func is _spread:
        return inner.args[0], value, False
    return inner, (value,), function.func is _with_result


def spread(function: Callable[..., Any]) -> Callable[[Any, tuple[Any, ...]], Any]:
    """Return a function of the registry and of a tuple: all other arguments."""
    return partial(_spread, function)


def _spread(function: Callable[..., Any], target: Any, values: tuple[Any, ...]) -> Any:
    return function(target, *values)


def _with(function: Callable[..., Any], value: Any, target: Any) -> Any:
    return function(target, value)


def with_value(function: Callable[..., Any], value: Any) -> Callable[[Any], Any]:
    """Return a function of the registry alone."""
    return partial(_with, function, value)


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


def _ends(where: str, references: str | Step | Iterable[str | Step]) -> Ends:
    if isinstance(references, str) and references == ALL:
        return ALL
    return _texts(where, references)


def _escaped(ends: Ends) -> Ends:
    return ends if isinstance(ends, str) else tuple(map(one_line, ends))


def _check_ends(
    where: str, ends: object, *, raises: Raises = None, constant: bool = False
) -> None:
    """Raise `NotAScenario` if an operation that ends steps cannot change anything."""
    if ends and (raises is not None or constant):
        option = "constant=True" if constant else "raises="
        raise NotAScenario(
            found=f"{where} with ends= and {option}",
            wanted="one of the two: what ends steps succeeds, and changes something",
        )


def _classes(where: str, raises: Raises) -> tuple[type[BaseException], ...]:
    if raises is None:
        return ()
    several: tuple[Any, ...] = raises if isinstance(raises, tuple) else (raises,)
    for each in several:
        if not (isinstance(each, type) and issubclass(each, BaseException)):
            raise NotAScenario(
                found=f"{value_text(each)} as {where}",
                wanted="a class of errors, as KeyError, or a tuple of them",
            )
    return several


def named_value(value: Any) -> tuple[str, Any]:
    """Return the text of a value, and the value."""
    if isinstance(value, type | FunctionType):
        return value.__name__, value
    text = repr(value)
    if " at 0x" in text:
        raise NotAScenario(
            found=f"{kind_of(value)} among the values: its text contains its address",
            wanted="values by text: {'json': value, ...}",
        )
    return text, value
