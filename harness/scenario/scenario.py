"""Scenarios: the steps and uses whose every order is explored.

True only here: what a scenario is made of and what names it.  It is data; exploring it
is `harness.explore`, making it a running system is `harness.systems`.

A scenario of the dispatcher lists registrations.  A scenario of any other registry
also says how a fresh one is made (`create`) and what of it must depend only on the set
of active steps (`observe`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from harness.errors import NotAScenario
from harness.scenario.probes import check_probe
from harness.scenario.step import Step, UseStep

# Twelve hex digits tell 10,000 scenarios apart with a chance of 2e-7 to collide.
DIGEST_BYTES = 6


@dataclass(frozen=True, init=False)
class Scenario:
    """Steps in any order, each at most once at a time, with uses in between.

    Args:
        steps: registrations that can be made and ended in any order.
        uses: calls and look-ups that may come anywhere between and change nothing.
        given: steps that are made first and never ended.
        order_dependent: a sentence, if what is observed is meant to depend on the
            order of registration ("the newest kernel wins"); states are then told
            apart by order, and it is a fault if no order makes a difference.
        operators: the operators that are observed; those of all steps, of what is
            given and of the uses if None.
        probes: the kinds of tensors that every operator is called with, at every
            step; see `harness.scenario.probes`.
        create: makes a fresh registry; the dispatcher's own if None.
        observe: what of a registry must depend on the active steps only, as text; of
            the dispatcher, what is to be looked at besides.
        check: the laws that a registry breaks, as texts.
        fingerprint: the whole state of a registry, if it can be had.
        name: shown in reports; a module's scenarios are named after their variable.

    Raises:
        NotAScenario: something else than steps and uses was given, or two steps that
            describe their kernels alike (`debug=`) at one key: the proof could not
            tell which of them is live; or steps of a registry without `create`.
    """

    steps: tuple[Step, ...]
    uses: tuple[UseStep, ...] = ()
    given: tuple[Step, ...] = ()
    order_dependent: str | None = None
    operators: tuple[str, ...] = ()
    probes: tuple[str, ...] | None = None
    create: Callable[[], Any] | None = None
    observe: Callable[[Any], str] | None = None
    check: Callable[[Any], Sequence[str]] | None = None
    fingerprint: Callable[[Any], Any] | None = None
    name: str = ""
    source: str = ""
    digest: str = field(default="", compare=False)

    def __init__(
        self,
        *steps: Step,
        uses: Sequence[UseStep] = (),
        given: Sequence[Step] = (),
        order_dependent: str | None = None,
        operators: Sequence[str] | None = None,
        probes: Sequence[str] | None = None,
        create: Callable[[], Any] | None = None,
        observe: Callable[[Any], str] | None = None,
        check: Callable[[Any], Sequence[str]] | None = None,
        fingerprint: Callable[[Any], Any] | None = None,
        name: str = "",
        source: str = "",
    ) -> None:
        if not steps:
            raise NotAScenario(found="no steps", wanted="one step at least")
        _check_letters("steps", steps, Step)
        _check_letters("uses", uses, UseStep)
        _check_letters("given", given, Step)
        _check_descriptions((*given, *steps))
        if create is None:
            if not operators:
                _check_owners((*given, *steps), uses)
            for each in probes or ():
                check_probe(each)
        elif observe is None:
            raise NotAScenario(
                found="create without observe",
                wanted="observe=..., a function from the registry to text",
            )
        values = {
            "steps": tuple(steps),
            "uses": tuple(uses),
            "given": tuple(given),
            "order_dependent": order_dependent,
            "operators": tuple(_operators(steps, uses, given, operators)),
            "probes": None if probes is None else tuple(probes),
            "create": create,
            "observe": observe,
            "check": check,
            "fingerprint": fingerprint,
            "name": name,
            "source": source,
            "digest": _digest(steps, uses, given, order_dependent),
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)

    def named(self, name: str, source: str = "") -> "Scenario":
        """The same scenario under a name, found in the file `source`.

        `source` is relative to the root, with forward slashes.
        """
        return Scenario(
            *self.steps,
            uses=self.uses,
            given=self.given,
            order_dependent=self.order_dependent,
            operators=self.operators,
            probes=self.probes,
            create=self.create,
            observe=self.observe,
            check=self.check,
            fingerprint=self.fingerprint,
            name=name,
            source=source,
        )

    @property
    def path(self) -> str:
        """Where the scenario is filed: its source without `tests/`, then its name."""
        base = self.source.removesuffix(".py").removeprefix("tests/")
        return f"{base}/{self.name}" if base else self.name


def _operators(
    steps: Sequence[Step],
    uses: Sequence[UseStep],
    given: Sequence[Step],
    chosen: Sequence[str] | None,
) -> Sequence[str]:
    """The operators to observe, each once, in order of appearance."""
    if chosen is not None:
        return chosen
    letters: tuple[Step | UseStep, ...] = (*given, *steps, *uses)
    return list(dict.fromkeys(n for each in letters for n in each.operators))


def _check_letters(what: str, given: Any, kind: type) -> None:
    if isinstance(given, (Step, UseStep)):
        raise NotAScenario(found=f"{what}={given.text}", wanted=f"a list, {what}=[...]")
    for each in given:
        if not isinstance(each, kind):
            raise NotAScenario(
                found=f"{type(each).__name__} among the {what}", wanted=kind.__name__
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


def _digest(
    steps: Sequence[Step],
    uses: Sequence[UseStep],
    given: Sequence[Step],
    order_dependent: str | None,
) -> str:
    """A name for what the scenario consists of, the same on every machine."""
    parts = [
        *(f"step {each.text}" for each in steps),
        *(f"use {each.text}" for each in uses),
        *(f"given {each.text}" for each in given),
        f"ordered {order_dependent is not None}",
    ]
    # Half of a surrogate pair is no UTF-8; its escape is.
    text = "\n".join(parts).encode(errors="backslashreplace")
    return blake2b(text, digest_size=DIGEST_BYTES).hexdigest()
