"""Trials of steps on fresh registries, and of what undoes them.

`create` finds how a registry is made; `step` finds the arguments with which a function
changes the state of the registry, and the call that takes that back.

How it works: names give candidates (`draft.py`), parameters give arguments
(`target.py`), and each combination is tried on fresh registries (`bench.py`) until
one does all that it should; otherwise the best is kept, and remarked upon.
"""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from everyorder.harness.base.errors import BadArgument
from everyorder.harness.tools.scaffold.draft import (
    CLOSING_METHODS,
    RETURNED,
    StepDraft,
    Undo,
    inverse_of,
    is_registration,
    is_scope,
)
from everyorder.harness.tools.scaffold.sandbox import (
    HANG_TEXT,
    Sandbox,
    evaluate,
    perform_step,
)
from everyorder.harness.tools.scaffold.target import (
    FOR_CREATE,
    KINDS,
    SLOTS,
    Arguments,
    Target,
    TrialArgument,
    combinations,
    members,
    required,
)

# Combinations of arguments whose undo is looked for.
MOST_KEPT = 3

NO_UNDO = "nothing was found that takes this back; undo=None says that it stays"
INCOMPLETE_UNDO = "its undo does not give back the state before; is it the right one?"
NEWEST_UNDONE = (
    "its undo takes back the newest, whichever step that is of; is that meant?"
)

# The subjects of the trials that make a registry, and that list what it has.
CREATION = "create"
MEMBERS = "dir(registry)"

# What a decorator that registers is given.
DECORATED_FUNCTION = TrialArgument(KINDS["function"], "function")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A function that may register, one that may undo it, and that one's parameters."""

    name: str
    arguments: tuple[Arguments, ...]
    undo: str | None = None
    needed: tuple[str, ...] | None = ()


@dataclass(frozen=True, slots=True)
class StepEffect:
    """The effect of a step on a fresh registry; `ends` are the undos that it gave."""

    changed: bool = False
    second: bool = False
    decorates: bool = False
    ends: tuple[Undo, ...] = ()
    raised: str = ""


@dataclass(frozen=True, slots=True)
class WorkingSteps:
    """Steps that work, one for each slot, and the arguments that they are given."""

    name: str
    steps: tuple[StepDraft, ...]
    arguments: Arguments
    restored: bool
    changed: bool

    @property
    def rank(self) -> tuple[bool, bool, bool]:
        """Better first: what can be undone whole, changes anything, has variants."""
        return (not self.restored, not self.changed, len(self.steps) == 1)


@dataclass(frozen=True, slots=True)
class CandidateTrial:
    """The result of a candidate, if any; `is_hung` if no trial of it came back."""

    name: str
    steps: WorkingSteps | None
    is_hung: bool


def call_text(name: str, arguments: Arguments, slot: int = 0) -> str:
    """The call as source text."""
    given = ", ".join(each.text(slot) for each in arguments)
    if name == "__exit__":
        given = "None, None, None"
    if arguments and not arguments[0].keyword:
        first = arguments[0].text(slot)
        if name == "__getitem__":
            return f"registry[{first}]"
        if name == "__contains__":
            return f"{first} in registry"
    if name == "__call__":
        return f"registry({given})"
    return f"registry.{name}({given})"


def create(target: Target, bench: Sandbox) -> tuple[str, Arguments]:
    """The text that makes a registry, and the arguments in it.

    Raises `BadArgument`, and `TrialEnded` where there was no time.
    """
    if target.kind in ("object", "module"):
        return target.text, ()
    tried, reason = [], "nothing"
    for arguments in combinations(target.value, target.value.__name__, target.module):
        given = ", ".join(each.text(FOR_CREATE) for each in arguments)
        text = f"{target.text}({given})"
        said = bench.run(CREATION, partial(_creation_error, bench, text, arguments))
        if said == "":
            return text, arguments
        tried.append(f"({given})")
        reason = said or "nothing, it did not come back"
        if bench.is_given_up(CREATION):
            reason = f"nothing, it {HANG_TEXT}"
            break
    shown = (*tried[:3], f"and {len(tried) - 3} more") if len(tried) > 3 else tried
    raise BadArgument(
        code="CannotCreate", name=target.name, tried=tuple(shown), reason=reason
    )


def _creation_error(bench: Sandbox, text: str, arguments: Arguments) -> str:
    try:
        names = bench.names(arguments, create=text)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "it made None" if names["registry"] is None else ""


def candidates(target: Target, bench: Sandbox) -> list[Candidate]:
    """The functions that may register, by their names, those with an undo first."""
    registry = bench.names()["registry"]
    names, _ = members(registry)
    pairs = {name: inverse_of(name, names) for name in names}
    undos = {undo for undo in pairs.values() if undo is not None}
    found = []
    for name in names:
        function = getattr(registry, name)
        undo = pairs[name]
        alone = is_registration(name) or is_scope(name) or _is_manager(function)
        if undo is None and (name in undos or not alone):
            continue
        given = required(getattr(registry, undo)) if undo is not None else []
        needed = None if given is None else tuple(each.name for each in given)
        arguments = combinations(function, name, target.module)
        found.append(Candidate(name, tuple(arguments), undo, needed))
    return sorted(found, key=lambda each: each.undo is None)


def _is_manager(function: Any) -> bool:
    """Whether `contextlib.contextmanager` made it."""
    inner = inspect.unwrap(function)
    return inner is not function and inspect.isgeneratorfunction(inner)


def step(candidate: Candidate, bench: Sandbox) -> CandidateTrial:
    """The candidate with what works best.

    Raises `TrialEnded` where there was no time to find that out.
    """
    kept: list[tuple[StepEffect, tuple[str, ...], Arguments]] = []
    ends = set[bool]()
    for arguments in candidate.arguments:
        texts = tuple(
            call_text(candidate.name, arguments, slot) for slot in range(SLOTS)
        )
        did = bench.run(candidate.name, partial(_do, bench, texts, arguments))
        ends.add(did is not None)
        if did is not None and did.decorates:
            texts = tuple(
                f"{t}({DECORATED_FUNCTION.text(s)})" for s, t in enumerate(texts)
            )
            arguments = (*arguments, DECORATED_FUNCTION)
            did = bench.run(candidate.name, partial(_do, bench, texts, arguments))
        if did is not None and not did.raised:
            kept.append((did, tuple(dict.fromkeys(texts)), arguments))
        if sum(each.changed and each.second for each, _, _ in kept) == MOST_KEPT:
            break
    kept.sort(key=lambda each: (not each[0].changed, not each[0].second))
    best: WorkingSteps | None = None
    for did, texts, arguments in kept[:MOST_KEPT]:
        found = _working_steps(candidate, did, texts, arguments, bench)
        if best is None or found.rank < best.rank:
            best = found
    return CandidateTrial(candidate.name, best, ends == {False})


def _do(bench: Sandbox, texts: tuple[str, ...], arguments: Arguments) -> StepEffect:
    names = bench.names(arguments)
    before = bench.state(names)
    try:
        result = evaluate(texts[0], names)
    except Exception as error:
        return StepEffect(raised=f"{type(error).__name__}: {error}")
    changed = bench.state(names) != before
    ends = tuple(_ends(result))
    if not changed and RETURNED in ends and hasattr(result, "__enter__"):
        return StepEffect(changed=True, second=True, ends=ends)
    if not changed and callable(result) and not isinstance(result, type):
        given = evaluate("lambda *args, **kwargs: None", names)
        try:
            result(given)
        except Exception:
            decorates = False
        else:
            decorates = bench.state(names) != before
        if decorates:
            return StepEffect(decorates=True)
    second = False
    if texts[1] != texts[0]:
        try:
            evaluate(texts[1], names)
        except Exception:
            second = False
        else:
            second = True
    return StepEffect(changed, second, ends=ends)


def _ends(result: Any) -> Iterator[Undo]:
    """The undos of the object that a step returned."""
    if result is None or isinstance(result, type | str):
        return
    if callable(result) or hasattr(result, "__enter__"):
        yield RETURNED
    for name in CLOSING_METHODS:
        if callable(getattr(result, name, None)):
            yield RETURNED if name == "close" else f"result.{name}()"


def _working_steps(
    candidate: Candidate,
    did: StepEffect,
    texts: tuple[str, ...],
    arguments: Arguments,
    bench: Sandbox,
) -> WorkingSteps:
    """The steps with the first undo that gives back the state before."""
    best: tuple[Undo, ...] = (None,) * len(texts)
    remark = NO_UNDO
    for undos in _undos(candidate, did, len(texts), arguments):
        trial = partial(_undo_effect, bench, texts, undos, arguments)
        undone = bench.run(undo_subject(candidate, undos[0]), trial)
        if undone is None or (not undone.restored and not candidate.undo):
            continue  # anything may have a close()
        if undone.restored and undone.alone:
            best, remark = undos, ""
            break
        if undone.restored and remark != NEWEST_UNDONE:
            best, remark = undos, NEWEST_UNDONE
        elif remark == NO_UNDO and "result" not in str(undos[0]):
            best, remark = undos, INCOMPLETE_UNDO
    drafts = tuple(map(StepDraft, texts, best, (remark,) * len(texts)))
    restored = remark in ("", NEWEST_UNDONE)
    return WorkingSteps(candidate.name, drafts, arguments, restored, did.changed)


def undo_subject(candidate: Candidate, undo: Undo) -> str:
    """The function of an undo: of the registry, or of the returned object."""
    own = candidate.undo is not None and f"registry.{candidate.undo}(" in str(undo)
    return str(candidate.undo) if own else f"what {candidate.name} returned"


def _undos(
    candidate: Candidate, did: StepEffect, count: int, arguments: Arguments
) -> Iterator[tuple[Undo, ...]]:
    """The possible undos of a step, for each slot."""
    undo = candidate.undo
    if undo is not None:
        for given in dict.fromkeys(_undo_arguments(candidate.needed, arguments)):
            yield tuple(call_text(undo, given, slot) for slot in range(count))
        if candidate.needed is None or len(candidate.needed) < 2:
            yield (f"registry.{undo}(result)",) * count
    for end in dict.fromkeys(did.ends):
        yield (end,) * count


def _undo_arguments(
    needed: tuple[str, ...] | None, arguments: Arguments
) -> Iterator[Arguments]:
    """Which of a step's arguments its undo may want, likeliest first."""
    by_name = {each.parameter: each for each in arguments}
    if needed and all(name in by_name for name in needed):
        yield tuple(by_name[name] for name in needed)
    if needed is None or not needed:
        yield ()
    counts = range(1, len(arguments) + 1) if not needed else (len(needed),)
    for count in counts:
        if count <= len(arguments):
            yield arguments[:count]
    if needed is None or len(needed) < 2:
        yield from ((each,) for each in arguments)


@dataclass(frozen=True, slots=True)
class UndoEffect:
    """Whether an undo gives back the state before, and takes back its step alone."""

    restored: bool
    alone: bool


def _undo_effect(
    bench: Sandbox,
    texts: tuple[str, ...],
    undos: tuple[Undo, ...],
    arguments: Arguments,
) -> UndoEffect:
    """The effect of an undo; raises its exception."""
    names = bench.names(arguments)
    before = bench.state(names)
    perform_step(StepDraft(texts[0], undos[0]), names)()
    restored = bench.state(names) == before
    if len(texts) == 1 or not restored:
        return UndoEffect(restored, alone=True)
    # Some registries tell objects apart by their addresses, some mark what they undid.
    alone = any(
        _is_alone(bench, texts, undos, arguments, fresh=fresh)
        for fresh in (False, True)
    )
    return UndoEffect(restored, alone)


def _is_alone(
    bench: Sandbox,
    texts: tuple[str, ...],
    undos: tuple[Undo, ...],
    arguments: Arguments,
    *,
    fresh: bool,
) -> bool:
    """Whether undoing the first of two steps leaves what the second alone makes.

    The second is undone before both are done, or with `fresh` both are done with
    other objects.
    """
    names = bench.names(arguments)
    try:
        if not fresh:
            perform_step(StepDraft(texts[0], undos[0]), names)()
        single = perform_step(StepDraft(texts[1], undos[1]), names)
        expected = bench.state(names)
        if fresh:
            names = bench.names(arguments)
        else:
            single()
        end = perform_step(StepDraft(texts[0], undos[0]), names)
        held = perform_step(StepDraft(texts[1], undos[1]), names)
        end()
        alone = bench.state(names) == expected
    except Exception:
        return False
    del single, held  # a context manager that nobody holds ends itself
    return alone
