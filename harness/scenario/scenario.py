"""Scenarios: the steps and uses whose every order is explored.

A scenario is data: `harness.systems` builds a running system from it, which
`harness.exploration` explores.

A scenario of the dispatcher lists registrations. A scenario of any other registry also
defines how a fresh one is created (`create`), and which observations of it must depend
on the active steps only (`observe`, `uses`).
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from types import ModuleType
from typing import Any, Literal, Never, TypeAlias

from everyorder.harness.base.errors import NotAScenario
from everyorder.harness.base.place import Place, place_of_call
from everyorder.harness.engine.protocol import Relations
from everyorder.harness.scenario.code import Code
from everyorder.harness.scenario.mistakes import (
    OF_REGISTRY,
    accepts,
    check_create,
    check_known,
    check_takes,
    name_of,
    required_names,
    value_text,
)
from everyorder.harness.scenario.normalisers import Normaliser, chain_of
from everyorder.harness.scenario.relations import declared_of, relations_of
from everyorder.harness.scenario.step import (
    ALL,
    Ends,
    Step,
    UseStep,
    one_line,
)

# With twelve hex digits, 10,000 scenarios collide with a probability of 2e-7.
DIGEST_BYTES = 6

# The options of a scenario that its code has unless they are empty.
_PRINTED = (
    *("order_dependent", "ordered", "probes", "create", "observe", "unordered"),
    *("check", "fingerprint", "ignore", "isolation", "reset"),
)

Isolation: TypeAlias = Literal["fork", "spawn"] | None


@dataclass(frozen=True, init=False, repr=False)
class Scenario:
    """Steps in any order, each at most once at a time, with uses in between.

    Args:
        steps: registrations that can be made, and mostly undone, in any order.
        uses: calls and look-ups, which may occur at any point; those that end no steps
            change nothing.
        given: steps that are done first and stay active longer than all others.
        order_dependent: a sentence, if observations may depend on the order of
            registration ("the newest kernel wins"); states are then distinguished by
            order, and it is a fault if no order makes a difference.
        ordered: pairs of steps, by object or text, whose order may show; all other
            orders still must not.
        operators: the operators to observe; if None, those of all steps, of `given`
            and of the uses.
        probes: the kinds of tensors with which every operator is called at every
            step; see `harness.scenario.effects`.
        create: creates a fresh registry; the dispatcher's own if None. Its parameters
            are fixtures of pytest, which pytest and the command line pass.
        observe: returns the text of a registry that must depend on the active steps
            only; for the dispatcher, additional text to compare. It may be omitted if
            there are uses.
        unordered: True if the order of the lines of `observe` does not count.
        check: the laws that a registry breaks, as texts.
        fingerprint: the whole state, as a function of the registry, or of the registry
            and of the undo handles by the text of their step; if it is omitted, the
            state is read from the objects themselves.
        watch: modules, by object or name, and other objects whose state belongs to
            the registry.
        ignore: paths of the state that do not affect anything (`registry._next_id`).
        isolation: "fork" or "spawn" for a separate process for each fresh registry,
            if a registry is global to the process.
        reset: removes the traces of a registry from the process; called with the
            registry, or without arguments, after its last use.
        expect: False to compare the observations with nothing; or their text, in the
            form of an expect file's sections, instead of a file. Begin with expect="":
            accepting writes the text in its place. None for an expect file.
        normalisers: functions from text to text that are applied to every observed
            text before it is compared with what is expected; see
            `harness.scenario.normalisers`.
        name: shown in reports; a module's scenarios are named after their variable.

    `create`, `observe` and `reset` may be coroutine functions, with `create` given.

    Raises:
        NotAScenario: an argument is not a step or use; or two steps describe their
            kernels alike (`debug=`) at one key, so that the proof could not
            distinguish which of them is live; or a registry's steps lack `create`.
    """

    steps: tuple[Step, ...]
    uses: tuple[UseStep, ...] = ()
    given: tuple[Step, ...] = ()
    order_dependent: str | None = None
    ordered: tuple[tuple[str, str], ...] = ()
    operators: tuple[str, ...] = ()
    probes: tuple[str, ...] | None = None
    create: Callable[..., Any] | None = None
    observe: Callable[[Any], Any] | None = None
    unordered: bool = False
    check: Callable[[Any], Any] | None = None
    fingerprint: Callable[..., Any] | None = None
    watch: tuple[tuple[str, Any], ...] = field(default=(), compare=False)
    ignore: tuple[str, ...] = ()
    isolation: Isolation = None
    reset: Callable[..., Any] | None = None
    expect: str | Literal[False] | None = field(default=None, compare=False)
    place: Place | None = field(default=None, compare=False)
    normalisers: tuple[Normaliser, ...] = field(default=(), compare=False)
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
        create: Callable[..., Any] | None = None,
        observe: Callable[[Any], Any] | None = None,
        unordered: bool = False,
        check: Callable[[Any], Any] | None = None,
        fingerprint: Callable[..., Any] | None = None,
        watch: Iterable[Any] | Mapping[str, Any] = (),
        ignore: Iterable[str] = (),
        isolation: Isolation = None,
        reset: Callable[..., Any] | None = None,
        expect: str | Literal[False] | None = None,
        normalisers: Iterable[Normaliser | Callable[[str], str]] = (),
        name: str = "",
        source: str = "",
        **unknown: Never,
    ) -> None:
        check_known("Scenario", Scenario.__init__, unknown)
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
                # Only scenarios with a dispatcher need the runtime.
                from everyorder.harness.scenario.effects import check_probe

                for each in probes:
                    check_probe(each)
            _check_no_ends((*given, *steps, *uses))
            _check_needs_create(
                watch=watch,
                ignore=ignore,
                isolation=isolation,
                reset=reset,
                unordered=unordered,
            )
        else:
            _check_texts("steps", steps)
            _check_texts("uses", uses)
            _check_functions(create, observe, check, fingerprint, reset)
            if observe is None and not uses:
                raise NotAScenario(
                    found="create without observe and without uses",
                    wanted="observe=..., a function from the registry to text, or "
                    "uses=[...]",
                )
        if order_dependent is not None and not isinstance(order_dependent, str):
            raise NotAScenario(
                found=f"{value_text(order_dependent)} as order_dependent=",
                wanted="a sentence that says why the order may show",
            )
        if isolation not in (None, "fork", "spawn"):
            raise NotAScenario(
                found=f"{value_text(isolation)} as isolation=",
                wanted="'fork', 'spawn' or None",
            )
        if expect is not None and expect is not False and not isinstance(expect, str):
            raise NotAScenario(
                found=f"{value_text(expect)} as expect=",
                wanted="a text, False (compared with nothing) or None (an expect file)",
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
            "expect": expect,
            "place": place_of_call() if isinstance(expect, str) else None,
            "normalisers": chain_of(normalisers),
            "name": name,
            "source": source,
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)
        object.__setattr__(self, "digest", _digest(self))
        # Unknown step names raise here.
        assert self.relations is not None

    def named(self, name: str, source: str = "") -> "Scenario":
        """Return a copy of the scenario with a name, defined in the file `source`.

        `source` is relative to the root, with forward slashes.
        """
        twin = copy(self)
        object.__setattr__(twin, "name", name)
        object.__setattr__(twin, "source", source)
        return twin

    def normalised_by(self, chain: tuple[Normaliser, ...]) -> "Scenario":
        """Return a copy of the scenario with a project's chain before its own."""
        twin = copy(self)
        object.__setattr__(twin, "normalisers", (*chain, *self.normalisers))
        return twin

    @property
    def fixtures(self) -> tuple[str, ...]:
        """Return the parameters of `create`: names of fixtures of pytest."""
        if self.create is None or accepts(self.create, 0):
            return ()
        return required_names(self.create)

    def created_by(self, create: Callable[[], Any]) -> "Scenario":
        """Return a copy of the scenario with another function that creates systems."""
        twin = copy(self)
        object.__setattr__(twin, "create", create)
        return twin

    def part(self, steps: Iterable[Step], uses: Iterable[UseStep]) -> "Scenario":
        """Return a scenario of some of the steps, those that they need, and some uses.

        The other steps are removed from their `excludes=`, `ends=` and `ordered=`.
        """
        initial = {each.text for each in self.given}
        part_steps, pairs = parts_of(steps, self.steps, initial, self.ordered)
        texts = {each.text for each in part_steps}
        part_uses = tuple(replace(e, ends=_present(e.ends, texts)) for e in uses)
        part = copy(self)
        del part.__dict__["relations"]
        default_operators = _operators(self.steps, self.uses, self.given, None)
        operators = self.operators
        if operators == tuple(default_operators):
            operators = tuple(_operators(part_steps, part_uses, self.given, None))
        values = {
            "steps": tuple(part_steps),
            "uses": part_uses,
            "ordered": tuple(pairs),
            "operators": operators,
        }
        for key, value in values.items():
            object.__setattr__(part, key, value)
        object.__setattr__(part, "digest", _digest(part))
        assert part.relations is not None, "a part of a scenario is one"
        return part

    def as_code(self) -> str:
        """Return Python code that builds the scenario: imports and an assignment.

        Raises:
            NotAScenario: a function has no name in a module, or a value no expression.
        """
        code = Code()
        return code.program(f"scenario = {self._expression(code)}")

    def __repr__(self) -> str:
        try:
            return self._expression(Code())
        except NotAScenario:
            operations = ", ".join(map(str, (*self.steps, *self.uses)))
            return f"<Scenario {self.name or 'without a name'}: {operations}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the `repr`: without it, IPython and Hypothesis print all fields."""
        printer.text(repr(self))

    def _expression(self, code: Code) -> str:
        options = {name: getattr(self, name) for name in _PRINTED}
        printed = {name: value for name, value in options.items() if value}
        if self.probes == ():
            printed["probes"] = ()
        if self.watch:
            printed["watch"] = dict(self.watch)
        if self.normalisers:
            printed["normalisers"] = self.normalisers
        default_operators = _operators(self.steps, self.uses, self.given, None)
        if self.operators != tuple(default_operators):
            printed["operators"] = self.operators
        return code.scenario(self.steps, self.uses, self.given, printed)

    @staticmethod
    def of_imports(*modules: str, **options: Any) -> Any:
        """Return a scenario of the orders of importing modules; see `of_imports`."""
        from everyorder.harness.tools.imports import of_imports

        return of_imports(*modules, **options)

    @property
    def path(self) -> str:
        """Return the source without `tests/` and suffix, then the name."""
        base = self.source.removesuffix(".py").removeprefix("tests/")
        return f"{base}/{self.name}" if base else self.name

    @cached_property
    def relations(self) -> Relations:
        """Return the relations of the steps, and the operations that are declared."""
        declared = declared_of(self.steps, self.uses)
        if self.create is not None and self.observe is None:
            # An empty observation never varies.
            declared |= {len(self.steps) + len(self.uses)}
        relations = relations_of(self.steps, self.given, self.ordered, self.uses)
        return replace(relations, declared=declared)


def _operators(
    steps: Sequence[Step],
    uses: Sequence[UseStep],
    initial: Sequence[Step],
    chosen: Sequence[str] | None,
) -> Sequence[str]:
    """Return the operators to observe, each once, in order of appearance."""
    if chosen is not None:
        return chosen
    operations: tuple[Step | UseStep, ...] = (*initial, *steps, *uses)
    return list(dict.fromkeys(n for each in operations for n in each.operators))


def _pairs(
    ordered: Iterable[tuple[str | Step, str | Step]], order_dependent: str | None
) -> tuple[tuple[str, str], ...]:
    """Return the pairs by text, each once."""
    pairs = []
    for pair in ordered:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise NotAScenario(
                found=f"{value_text(pair)} as a pair of ordered=",
                wanted="a list of pairs: [('a', 'b')]",
            )
        pairs.append((one_line(str(pair[0])), one_line(str(pair[1]))))
    if pairs and order_dependent is not None:
        raise NotAScenario(
            found="ordered= together with order_dependent=",
            wanted="one of the two: with order_dependent= all orders may show",
        )
    return tuple(dict.fromkeys(pairs))


def parts_of(
    steps: Iterable[Step],
    pool: Iterable[Step],
    always: Collection[str],
    ordered: Iterable[tuple[str | Step, str | Step]],
) -> tuple[list[Step], list[tuple[str, str]]]:
    """Return the steps with those of the pool that they need, and the pairs of them.

    The steps have the order of the pool, those that are not in it come last; they refer
    to absent steps no more.
    """
    pool_by_text = {each.text: each for each in pool}
    steps_by_text = {each.text: each for each in steps}
    waiting = list(steps_by_text.values())
    while waiting:
        each = waiting.pop()
        for text in (*each.requires, *each.after):
            if (
                text not in steps_by_text
                and text in pool_by_text
                and text not in always
            ):
                steps_by_text[text] = pool_by_text[text]
                waiting.append(pool_by_text[text])
    pool_texts = [*filter(steps_by_text.__contains__, pool_by_text)]
    texts = [*pool_texts, *(text for text in steps_by_text if text not in pool_by_text)]
    text_set = {*texts}
    fitting_steps = []
    for text in texts:
        each = steps_by_text[text]
        excludes = tuple(t for t in each.excludes if t in text_set or t in always)
        ends = _present(each.ends, text_set)
        fitting_steps.append(replace(each, excludes=excludes, ends=ends))
    pairs = [(one_line(str(one)), one_line(str(other))) for one, other in ordered]
    return fitting_steps, [pair for pair in pairs if text_set.issuperset(pair)]


def _present(ends: Ends, texts: Collection[str]) -> Ends:
    return ends if ends == ALL else tuple(text for text in ends if text in texts)


def _watched(watch: Iterable[Any] | Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return the watched objects, with the first component of their paths."""
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


def _check_operations(what: str, operations: Any, kind: type) -> None:
    if isinstance(operations, (Step, UseStep)):
        raise NotAScenario(
            found=f"{what}={operations.text}", wanted=f"a list, {what}=[...]"
        )
    for each in operations:
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
        maker = "use" if kind is UseStep else "step"
        if isinstance(each, list) and what == "steps":
            raise NotAScenario(
                found=f"a list among the {what}",
                wanted="each by itself: Scenario(*steps(...), ...)",
            )
        written = name_of(each) if callable(each) else value_text(each)
        raise NotAScenario(
            found=f"{written} among the {what}",
            wanted=f"{maker}('how it is called', the function)",
        )


def _check_texts(what: str, operations: Sequence[Step | UseStep]) -> None:
    """Raise `NotAScenario` if two steps, or two uses, share a text.

    Reports, relations and expect files identify an operation by its text.
    """
    texts: set[str] = set()
    for each in operations:
        if each.text in texts:
            raise NotAScenario(
                found=f"two {what} of the text {each.text!r}",
                wanted=f"a different text for each of the {what}",
            )
        texts.add(each.text)


def _check_functions(
    create: Callable[..., Any],
    observe: Callable[..., Any] | None,
    check: Callable[..., Any] | None,
    fingerprint: Callable[..., Any] | None,
    reset: Callable[..., Any] | None,
) -> None:
    """Raise `NotAScenario` if a function has unsuitable parameters."""
    check_create(create)
    one = "a function of the registry"
    if observe is not None:
        check_takes("observe", observe, (1,), OF_REGISTRY)
    if check is not None:
        check_takes("check", check, (1,), OF_REGISTRY)
    if fingerprint is not None:
        expected = f"{one}, or of the registry and of the undo handles"
        check_takes("fingerprint", fingerprint, (1, 2), expected)
    if reset is not None:
        check_takes("reset", reset, (0, 1), f"{one}, or one without parameters")


def _check_needs_create(**options: Any) -> None:
    """Refuse options that need a registry with `create`."""
    for name, value in options.items():
        if value:
            raise NotAScenario(
                found=f"{name}= without create",
                wanted="create=..., a function that makes a fresh registry",
            )


def _check_no_ends(operations: Iterable[Step | UseStep]) -> None:
    """Refuse operations that end steps of a dispatcher."""
    for each in operations:
        if each.ends:
            raise NotAScenario(
                found=f"ends= of {each.text!r} without create",
                wanted="create=...: a dispatcher ends registrations by their handles",
            )


def _check_owners(steps: Sequence[Step], uses: Sequence[UseStep]) -> None:
    """Refuse a scenario without `create` whose steps are all made by `step()`.

    A step or use of the dispatcher shows that the registry is a dispatcher.
    """
    if all(each.owner == "registry" for each in steps) and not any(
        each.owner == "dispatcher" or each.operators for each in uses
    ):
        raise NotAScenario(
            found=f"step({steps[0].text!r}, ...) without create",
            wanted="create=..., a function that makes a fresh registry, and "
            "observe=..., one from the registry to text",
        )


def _check_descriptions(steps: Sequence[Step]) -> None:
    descriptions: set[str] = set()
    for step in steps:
        for kernel in step.kernels:
            if kernel in descriptions:
                raise NotAScenario(
                    found=f"a second kernel described as {kernel!r}",
                    wanted="a different description (debug=) for each kernel of a key",
                )
        descriptions.update(step.kernels)


def _digest(scenario: Scenario) -> str:
    """Return a digest of the parts of the scenario, the same on every machine.

    Options that were added later are omitted from the digest of a scenario that does
    not use them, so its replay ids and expect files stay valid.
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
            *(f"excludes {text}" for text in sorted(each.excludes)),
            *_end_marks(each),
        ]
        parts += [f"{number} {mark}" for mark in marks]
    parts += [f"unordered {use.text}" for use in scenario.uses if use.unordered]
    parts += [f"{use.text} {mark}" for use in scenario.uses for mark in _end_marks(use)]
    if scenario.unordered:
        parts.append("unordered")
    # Half of a surrogate pair is not valid UTF-8; its escape is.
    text = "\n".join(parts).encode(errors="backslashreplace")
    return blake2b(text, digest_size=DIGEST_BYTES).hexdigest()


def _end_marks(operation: Step | UseStep) -> list[str]:
    """Return the parts of a digest for the steps that an operation ends."""
    if operation.ends == ALL:
        return ["ends all"]
    return [f"ends {text!r}" for text in sorted(operation.ends)]
