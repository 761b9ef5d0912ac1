"""Laws, their violations, and "sometimes": properties that a run should show.

A law is one function with a name and a sentence; it reads a frozen subject and lists
the faults in it.  It never raises and never repairs: a subject that cannot be read is
reported like any other fault.

Rules:
- a law function returns findings `(where, expected, found)`, texts only, so that a
  stored violation keeps no kernel alive;
- the name of a law is the name of its function, its sentence the first line of the
  docstring;
- `scope` is its subject: a state, a step (before and after) or a whole run; a law of a
  state may read one operator at a time (`per_operator`), else one part of the state
  (`about`).

A law can hold because nothing happened.  So there are properties that a run should
show: a "sometimes" is true of some state of a good run, not of all.  The caller joins
the sightings of its states and asks at the end which are missing.  Most sightings
belong to one operator and are cached on its entry, so that unchanged operators cost a
look-up.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from everyorder.runtime.dispatch.state import DispatcherState, OperatorEntry

Scope: TypeAlias = Literal["state", "step", "run"]

Finding: TypeAlias = tuple[str, str, str]
"""The place, the expected content, the actual content."""

# Names of places in a violation: more would push the rest off the line.
NAMED_PLACES = 4


@dataclass(frozen=True, slots=True)
class Violation:
    """One law broken at one place."""

    law: str
    where: str
    expected: str
    found: str

    def __str__(self) -> str:
        return (
            f"{self.law} at {self.where}: expected {self.expected}, found {self.found}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """One law; `find` is its function, `check` returns its violations.

    `about` names its subjects: the part of a state, the changes of a step, thread or
    memory of a run.
    """

    name: str
    sentence: str
    scope: Scope
    find: Callable[[Any], list[Finding]]
    per_operator: bool = False
    about: tuple[str, ...] = ()

    def check(self, subject: Any) -> list[Violation]:
        """Return the violations of this law in `subject`; never raise."""
        try:
            findings = self.find(subject)
        except Exception as error:
            findings = [
                ("the whole subject", "something readable", type(error).__name__)
            ]
        return [Violation(self.name, *finding) for finding in findings]


def law(
    scope: Scope, *about: str, per_operator: bool = False
) -> Callable[[Callable[[Any], list[Finding]]], Law]:
    """Decorate a function that lists findings, and return its law."""

    def make(function: Callable[[Any], list[Finding]]) -> Law:
        assert function.__doc__, "the sentence of a law is its docstring"
        sentence = function.__doc__.strip().partition("\n")[0]
        return Law(function.__name__, sentence, scope, function, per_operator, about)

    return make


def group_findings(
    operator: object, differences: Iterable[tuple[str, str, str]]
) -> list[Finding]:
    """Return findings of one operator; group places with equal differences."""
    places: dict[tuple[str, str], list[str]] = {}
    for place, *difference in differences:
        places.setdefault((difference[0], difference[1]), []).append(place)
    return [
        (f"{operator} at {_named(names)}", *difference)
        for difference, names in places.items()
    ]


def _named(names: list[str]) -> str:
    listed = ", ".join(names[:NAMED_PLACES])
    left = len(names) - NAMED_PLACES
    return listed if left <= 0 else f"{listed} and {left} more"


Sees: TypeAlias = Callable[[Any], bool]


@dataclass(frozen=True, slots=True, eq=False)
class Sometimes:
    """One property to be seen, in an operator or in a whole state."""

    name: str
    sentence: str
    sees: Sees
    per_operator: bool = True


def _drawn(provenance: str) -> Callable[[OperatorEntry], bool]:
    """Return a predicate: a slot of the live table has this provenance."""

    def sees(entry: OperatorEntry) -> bool:
        return any(line.provenance == provenance for line in entry.table.recipe.lines)

    return sees


def _falls_through(entry: OperatorEntry) -> bool:
    table = entry.table
    return bool(table.recipe.rest & table.fallbacks.through) or any(
        token is not None and token.kernel.function is None for token in table.kernels
    )


def _is_typed(entry: OperatorEntry) -> bool:
    return any(
        token.kernel.facts.signature is not None
        for tokens in entry.implementations.values()
        for token in tokens
    )


SOMETIMES = (
    Sometimes(
        "a_direct_kernel",
        "A slot runs the kernel of its own key.",
        _drawn("kernel"),
    ),
    Sometimes(
        "a_default_backend_kernel",
        "A slot runs the kernel of an explicit composite.",
        _drawn("default backend kernel"),
    ),
    Sometimes(
        "a_nested_kernel",
        "A slot runs the kernel for nested tensors.",
        _drawn("nested kernel"),
    ),
    Sometimes(
        "an_ambiguous_slot",
        "AutogradOther refuses to choose between a backend's kernel and an alias's.",
        _drawn("ambiguous autogradother"),
    ),
    Sometimes(
        "a_math_kernel",
        "A slot runs the kernel of the implicit composite.",
        _drawn("math kernel"),
    ),
    Sometimes(
        "an_autograd_kernel",
        "A slot runs the kernel of the Autograd alias.",
        _drawn("autograd kernel"),
    ),
    Sometimes(
        "a_batched_kernel",
        "A slot runs the kernel of the batching alias.",
        _drawn("batched kernel"),
    ),
    Sometimes(
        "a_fallback",
        "A slot runs a fallback.",
        lambda entry: bool(entry.table.recipe.rest & entry.table.fallbacks.present),
    ),
    Sometimes(
        "a_missing_slot",
        "A slot is empty.",
        lambda entry: bool(entry.table.recipe.rest & ~entry.table.fallbacks.present),
    ),
    Sometimes("a_fallthrough", "A slot falls through.", _falls_through),
    Sometimes(
        "masks_that_differ",
        "A slot falls through for one backend and not for another.",
        lambda entry: entry.table.masks.per_backend,
    ),
    Sometimes(
        "an_inactive_kernel",
        "A key has two kernels, one of them inactive.",
        lambda entry: any(len(each) > 1 for each in entry.implementations.values()),
    ),
    Sometimes(
        "a_dangling_kernel",
        "An operator has a kernel and no schema.",
        lambda entry: bool(entry.implementations) and not entry.definitions,
    ),
    Sometimes(
        "a_bare_definition",
        "An operator has a schema and no kernel.",
        lambda entry: bool(entry.definitions) and not entry.implementations,
    ),
    Sometimes(
        "a_reservation", "A name is reserved.", lambda entry: bool(entry.reservations)
    ),
    Sometimes(
        "a_rule", "A class has a rule for an operator.", lambda entry: bool(entry.rules)
    ),
    Sometimes(
        "rules_alone",
        "A name has rules and nothing else.",
        lambda entry: bool(entry.rules) and not entry.total,
    ),
    Sometimes("a_typed_kernel", "A kernel has a signature.", _is_typed),
    Sometimes(
        "no_operator",
        "Nothing is registered for any operator.",
        lambda state: not state.namespaces,
        per_operator=False,
    ),
    Sometimes(
        "several_operators",
        "The state has two operators or more.",
        lambda state: sum(map(len, state.namespaces.values())) > 1,
        per_operator=False,
    ),
    Sometimes(
        "a_claim",
        "A DEF library is live.",
        lambda state: bool(state.claims),
        per_operator=False,
    ),
    Sometimes(
        "a_listener",
        "A listener is subscribed.",
        lambda state: bool(state.subscriptions),
        per_operator=False,
    ),
)

_PER_OPERATOR = tuple(each for each in SOMETIMES if each.per_operator)
_PER_STATE = tuple(each for each in SOMETIMES if not each.per_operator)


def sightings(state: DispatcherState) -> frozenset[str]:
    """Return the names of all properties that this state shows."""
    names = {each.name for each in _PER_STATE if each.sees(state)}
    for operators in state.namespaces.values():
        for entry in operators.values():
            sighted = entry.memo.get("sightings")
            if sighted is None:
                sighted = frozenset(e.name for e in _PER_OPERATOR if e.sees(entry))
                entry.memo["sightings"] = sighted
            names |= sighted
    return frozenset(names)


def never_seen(
    seen: Iterable[str], wanted: Iterable[str] | None = None
) -> list[Violation]:
    """Return one violation for each of `wanted` (None: all) that is not in `seen`."""
    sighted = set(seen)
    names = None if wanted is None else set(wanted)
    return [
        Violation(each.name, "the whole run", each.sentence, "never seen")
        for each in SOMETIMES
        if (names is None or each.name in names) and each.name not in sighted
    ]
