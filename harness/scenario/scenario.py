"""Scenarios: the steps and uses whose every order is explored.

A scenario is data: `harness.systems` makes a running system of it, which
`harness.explore` explores.

A scenario of the dispatcher lists registrations.  A scenario of any other registry
also says how a fresh one is made (`create`), and which observations of it must depend
on the active steps only (`observe`, `uses`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from types import ModuleType
from typing import Any, Literal, TypeAlias

from everyorder.harness.base.errors import NotAScenario
from everyorder.harness.engine.protocol import Relations
from everyorder.harness.scenario.mistakes import check_takes, name_of
from everyorder.harness.scenario.step import (
    Step,
    UseStep,
    declared_of,
    one_line,
    relations_of,
)

# Twelve hex digits tell 10,000 scenarios apart with a chance of 2e-7 to collide.
DIGEST_BYTES = 6

Isolation: TypeAlias = Literal["fork", "spawn"] | None


@dataclass(frozen=True, init=False)
class Scenario:
    """Steps in any order, each at most once at a time, with uses in between.

    Args:
        steps: registrations that can be made, and mostly ended, in any order.
        uses: calls and look-ups that may come anywhere between and change nothing.
        given: steps that are made first and outlive all others.
        order_dependent: a sentence, if what is observed is meant to depend on the
            order of registration ("the newest kernel wins"); states are then told
            apart by order, and it is a fault if no order makes a difference.
        ordered: pairs of steps, by object or text, of which the order may show; all
            other orders still must not.
        operators: the operators that are observed; those of all steps, of what is
            given and of the uses if None.
        probes: the kinds of tensors that every operator is called with, at every
            step; see `harness.scenario.effects`.
        create: makes a fresh registry; the dispatcher's own if None.
        observe: what of a registry must depend on the active steps only, as text; of
            the dispatcher, what is to be looked at besides.  It may be left out where
            there are uses.
        unordered: whether the order of the lines of `observe` does not count.
        check: the laws that a registry breaks, as texts.
        fingerprint: the whole state, as a function of the registry, or of the registry
            and of the undo handles by the text of their step; if it is left out, the
            state is read from the objects themselves.
        watch: modules, by object or name, and other objects whose state belongs to
            the registry.
        ignore: paths of the state that nothing depends on (`registry._next_id`).
        isolation: "fork" or "spawn" for a process of its own for each fresh registry,
            where a registry is global to the process.
        reset: undoes what a registry left in the process; called with the registry,
            or without, when it is done with.
        name: shown in reports; a module's scenarios are named after their variable.

    `create`, `observe` and `reset` may be coroutine functions, with `create` given.

    Raises:
        NotAScenario: something else than steps and uses was given, or two steps that
            describe their kernels alike (`debug=`) at one key: the proof could not
            tell which of them is live; or steps of a registry without `create`.
    """

    steps: tuple[Step, ...]
    uses: tuple[UseStep, ...] = ()
    given: tuple[Step, ...] = ()
    order_dependent: str | None = None
    ordered: tuple[tuple[str, str], ...] = ()
    operators: tuple[str, ...] = ()
    probes: tuple[str, ...] | None = None
    create: Callable[[], Any] | None = None
    observe: Callable[[Any], Any] | None = None
    unordered: bool = False
    check: Callable[[Any], Any] | None = None
    fingerprint: Callable[..., Any] | None = None
    watch: tuple[tuple[str, Any], ...] = field(default=(), compare=False)
    ignore: tuple[str, ...] = ()
    isolation: Isolation = None
    reset: Callable[..., Any] | None = None
    name: str = ""
    source: str = ""
    digest: str = field(default="", compare=False)

    def __init__(
        self,
        *steps: Step,
        uses: Sequence[UseStep] = (),
        given: Sequence[Step] = (),
        order_dependent: str | None = None,
        ordered: Iterable[tuple[str | Step, str | Step]] = (),
        operators: Sequence[str] | None = None,
        probes: Sequence[str] | None = None,
        create: Callable[[], Any] | None = None,
        observe: Callable[[Any], Any] | None = None,
        unordered: bool = False,
        check: Callable[[Any], Any] | None = None,
        fingerprint: Callable[..., Any] | None = None,
        watch: Iterable[Any] | Mapping[str, Any] = (),
        ignore: Iterable[str] = (),
        isolation: Isolation = None,
        reset: Callable[..., Any] | None = None,
        name: str = "",
        source: str = "",
    ) -> None:
        if not steps:
            raise NotAScenario(
                found="no steps", wanted="one step at least: Scenario(step(...), ...)"
            )
        _check_operations("steps", steps, Step)
        _check_operations("uses", uses, UseStep)
        _check_operations("given", given, Step)
        _check_descriptions((*given, *steps))
        if create is None:
            if not operators:
                _check_owners((*given, *steps), uses)
            if probes:
                # Nobody but who asks about a dispatcher needs the runtime.
                from everyorder.harness.scenario.effects import check_probe

                for each in probes:
                    check_probe(each)
            _check_needs_create(
                watch=watch,
                ignore=ignore,
                isolation=isolation,
                reset=reset,
                unordered=unordered,
            )
        else:
            _check_texts(steps)
            _check_functions(create, observe, check, fingerprint, reset)
            if observe is None and not uses:
                raise NotAScenario(
                    found="create without observe and without uses",
                    wanted="observe=..., a function from the registry to text, or "
                    "uses=[...]",
                )
        if isolation not in (None, "fork", "spawn"):
            raise NotAScenario(
                found=f"isolation={isolation!r}", wanted="'fork', 'spawn' or None"
            )
        values = {
            "steps": tuple(steps),
            "uses": tuple(uses),
            "given": tuple(given),
            "order_dependent": order_dependent,
            "ordered": _pairs(ordered, order_dependent),
            "operators": tuple(_operators(steps, uses, given, operators)),
            "probes": None if probes is None else tuple(probes),
            "create": create,
            "observe": observe,
            "unordered": unordered,
            "check": check,
            "fingerprint": fingerprint,
            "watch": _watched(watch),
            "ignore": (ignore,) if isinstance(ignore, str) else tuple(ignore),
            "isolation": isolation,
            "reset": reset,
            "name": name,
            "source": source,
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)
        object.__setattr__(self, "digest", _digest(self))
        # Names of steps that are none are told at once.
        assert self.relations is not None

    def named(self, name: str, source: str = "") -> "Scenario":
        """The same scenario under a name, found in the file `source`.

        `source` is relative to the root, with forward slashes.
        """
        twin = copy(self)
        object.__setattr__(twin, "name", name)
        object.__setattr__(twin, "source", source)
        return twin

    @staticmethod
    def of_imports(*modules: str, **options: Any) -> Any:
        """Return a scenario of the orders of importing modules; see `of_imports`."""
        from everyorder.harness.tools.imports import of_imports

        return of_imports(*modules, **options)

    @property
    def path(self) -> str:
        """Where the scenario is filed: its source without `tests/`, then its name."""
        base = self.source.removesuffix(".py").removeprefix("tests/")
        return f"{base}/{self.name}" if base else self.name

    @cached_property
    def relations(self) -> Relations:
        """What the steps have to do with each other, and what is declared of them."""
        declared = declared_of(self.steps, self.uses)
        if self.create is not None and self.observe is None:
            # A look at nothing never varies.
            declared |= {len(self.steps) + len(self.uses)}
        found = relations_of(self.steps, self.given, self.ordered)
        return replace(found, declared=declared)


def _operators(
    steps: Sequence[Step],
    uses: Sequence[UseStep],
    given: Sequence[Step],
    chosen: Sequence[str] | None,
) -> Sequence[str]:
    """The operators to observe, each once, in order of appearance."""
    if chosen is not None:
        return chosen
    operations: tuple[Step | UseStep, ...] = (*given, *steps, *uses)
    return list(dict.fromkeys(n for each in operations for n in each.operators))


def _pairs(
    ordered: Iterable[tuple[str | Step, str | Step]], order_dependent: str | None
) -> tuple[tuple[str, str], ...]:
    """The pairs by text, each once."""
    pairs = []
    for pair in ordered:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise NotAScenario(
                found=f"{pair!r} in ordered=", wanted="a list of pairs: [('a', 'b')]"
            )
        pairs.append((one_line(str(pair[0])), one_line(str(pair[1]))))
    if pairs and order_dependent is not None:
        raise NotAScenario(
            found="ordered= beside order_dependent=",
            wanted="one of both: with order_dependent= all orders may show",
        )
    return tuple(dict.fromkeys(pairs))


def _watched(watch: Iterable[Any] | Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """What is watched, by the name that paths begin with."""
    if isinstance(watch, Mapping):
        return tuple(watch.items())
    if isinstance(watch, str | ModuleType):
        watch = (watch,)
    named = []
    for number, each in enumerate(watch, 1):
        if isinstance(each, str):
            name = each
        elif isinstance(each, ModuleType):
            name = each.__name__
        else:
            name = str(getattr(each, "__qualname__", f"watch[{number}]"))
        named.append((name, each))
    return tuple(named)


def _check_operations(what: str, given: Any, kind: type) -> None:
    if isinstance(given, (Step, UseStep)):
        raise NotAScenario(found=f"{what}={given.text}", wanted=f"a list, {what}=[...]")
    for each in given:
        if isinstance(each, kind):
            continue
        if isinstance(each, Step):
            raise NotAScenario(
                found=f"the step {each.text!r} among the {what}",
                wanted="uses: use(text, a function from the registry to an answer)",
            )
        if isinstance(each, UseStep):
            raise NotAScenario(
                found=f"the use {each.text!r} among the {what}",
                wanted="steps there, and uses=[...]",
            )
        if isinstance(each, list | tuple):
            raise NotAScenario(
                found=f"{type(each).__name__} among the {what}",
                wanted="each by itself: Scenario(*steps(...), ...)",
            )
        if callable(each):
            maker = "use" if kind is UseStep else "step"
            raise NotAScenario(
                found=f"{name_of(each)} among the {what}",
                wanted=f"{maker}('how it is called', the function)",
            )
        raise NotAScenario(
            found=f"{type(each).__name__} among the {what}", wanted=kind.__name__
        )


def _check_texts(steps: Sequence[Step]) -> None:
    """Reports, relations and expect files know a step by its text."""
    known: set[str] = set()
    for each in steps:
        if each.text in known:
            raise NotAScenario(
                found=f"two steps of the text {each.text!r}",
                wanted="a text of its own for each step",
            )
        known.add(each.text)


def _check_functions(
    create: Callable[..., Any],
    observe: Callable[..., Any] | None,
    check: Callable[..., Any] | None,
    fingerprint: Callable[..., Any] | None,
    reset: Callable[..., Any] | None,
) -> None:
    """Raises `NotAScenario` where a function takes something else than it gets."""
    check_takes("create", create, (0,), "a function without parameters")
    one = "a function of the registry"
    if observe is not None:
        check_takes("observe", observe, (1,), one)
    if check is not None:
        check_takes("check", check, (1,), one)
    if fingerprint is not None:
        wanted = f"{one}, or of the registry and of the undo handles"
        check_takes("fingerprint", fingerprint, (1, 2), wanted)
    if reset is not None:
        check_takes("reset", reset, (0, 1), f"{one}, or one without parameters")


def _check_needs_create(**options: Any) -> None:
    """Refuse options that only a registry with `create` has."""
    for name, value in options.items():
        if value:
            raise NotAScenario(
                found=f"{name}= without create",
                wanted="create=..., a function that makes a fresh registry",
            )


def _check_owners(steps: Sequence[Step], uses: Sequence[UseStep]) -> None:
    """Where a step or a use is the dispatcher's, `step()` may be meant; else not."""
    if all(each.owner == "registry" for each in steps) and not any(
        each.owner == "dispatcher" or each.operators for each in uses
    ):
        raise NotAScenario(
            found=f"step({steps[0].text!r}, ...) without create",
            wanted="create=..., a function that makes a fresh registry, and "
            "observe=..., one from the registry to text",
        )


def _check_descriptions(steps: Sequence[Step]) -> None:
    known: set[str] = set()
    for step in steps:
        for kernel in step.kernels:
            if kernel in known:
                raise NotAScenario(
                    found=f"a second kernel described as {kernel!r}",
                    wanted="a description (debug=) of its own for each kernel of a key",
                )
        known.update(step.kernels)


def _digest(scenario: Scenario) -> str:
    """A name for what the scenario consists of, the same on every machine.

    What was added later is left out where a scenario has none of it: its replay ids
    and expect files stay.
    """
    parts = [
        *(f"step {each.text}" for each in scenario.steps),
        *(f"use {each.text}" for each in scenario.uses),
        *(f"given {each.text}" for each in scenario.given),
        f"ordered {scenario.order_dependent is not None}",
        *(f"pair {' | '.join(pair)}" for pair in sorted(map(sorted, scenario.ordered))),
    ]
    for number, each in enumerate(scenario.steps):
        marks = [
            *(["lasting"] if each.lasting else []),
            *(["again"] if each.again else []),
            *(["may refuse"] if each.may_refuse else []),
            *(f"requires {text}" for text in sorted(each.requires)),
            *(f"after {text}" for text in sorted(each.after)),
        ]
        parts += [f"{number} {mark}" for mark in marks]
    parts += [f"unordered {use.text}" for use in scenario.uses if use.unordered]
    if scenario.unordered:
        parts.append("unordered")
    # Half of a surrogate pair is no UTF-8; its escape is.
    text = "\n".join(parts).encode(errors="backslashreplace")
    return blake2b(text, digest_size=DIGEST_BYTES).hexdigest()
