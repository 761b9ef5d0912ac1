"""Trials of steps on fresh registries, and of their undos.

`create` finds the text that creates a registry; `step` finds the arguments with which a
function changes the state of the registry, and the call that undoes the change.

Names give candidates (`draft.py`), parameters give arguments (`target.py`), and each
combination is tried on fresh registries (`sandbox.py`) until one passes all checks;
otherwise the best one is used, with a remark.
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

# Number of combinations of arguments whose undo is tried.
MOST_KEPT = 3

NO_UNDO = "nothing was found that takes this back; undo=None says that it stays"
INCOMPLETE_UNDO = "its undo does not give back the state before; is it the right one?"
NEWEST_UNDONE = (
    "its undo removes the newest registration of any step; is that intended?"
)

# The subjects of the trials that create a registry, and that list its members.
CREATION = "create"
MEMBERS = "dir(registry)"

# The argument of a decorator that registers.
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
    """The effect of a step on a fresh registry; `ends` are its returned undos."""

    changed: bool = False
    second: bool = False
    decorates: bool = False
    ends: tuple[Undo, ...] = ()
    raised: str = ""


@dataclass(frozen=True, slots=True)
class WorkingSteps:
    """Steps that work, one for each slot, and their arguments."""

    name: str
    steps: tuple[StepDraft, ...]
    arguments: Arguments
    restored: bool
    changed: bool

    @property
    def rank(self) -> tuple[bool, bool, bool]:
        """Return a sort key: complete undos, then changes, then several variants."""
        return (not self.restored, not self.changed, len(self.steps) == 1)


@dataclass(frozen=True, slots=True)
class CandidateTrial:
    """The result of a candidate, if any; `is_hung` if none of its trials returned."""

    name: str
    steps: WorkingSteps | None
    is_hung: bool


def call_text(name: str, arguments: Arguments, slot: int = 0) -> str:
    """Return the call as source text."""
    texts = ", ".join(each.text(slot) for each in arguments)
    if name == "__exit__":
        texts = "None, None, None"
    if arguments and not arguments[0].keyword:
        first = arguments[0].text(slot)
        if name == "__getitem__":
            return f"registry[{first}]"
        if name == "__contains__":
            return f"{first} in registry"
    if name == "__call__":
        return f"registry({texts})"
    return f"registry.{name}({texts})"


def create(target: Target, sandbox: Sandbox) -> tuple[str, Arguments]:
    """Return the text that creates a registry, and the arguments in it.

    Raises:
        BadArgument: no combination of arguments works.
        TrialEnded: there was no time.
    """
    if target.kind in ("object", "module"):
        return target.text, ()
    tried, reason = [], "nothing"
    for arguments in combinations(target.value, target.value.__name__, target.module):
        texts = ", ".join(each.text(FOR_CREATE) for each in arguments)
        text = f"{target.text}({texts})"
        failure = sandbox.run(
            CREATION, partial(_creation_error, sandbox, text, arguments)
        )
        if failure == "":
            return text, arguments
        tried.append(f"({texts})")
        reason = failure or "nothing, it did not return"
        if sandbox.is_given_up(CREATION):
            reason = f"nothing, it {HANG_TEXT}"
            break
    excerpt = (*tried[:3], f"and {len(tried) - 3} more") if len(tried) > 3 else tried
    raise BadArgument(
        code="CannotCreate", name=target.name, tried=tuple(excerpt), reason=reason
    )


def _creation_error(sandbox: Sandbox, text: str, arguments: Arguments) -> str:
    try:
        names = sandbox.names(arguments, create=text)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "it made None" if names["registry"] is None else ""


def candidates(target: Target, sandbox: Sandbox) -> list[Candidate]:
    """Return the functions whose names may register, those with an undo first."""
    registry = sandbox.names()["registry"]
    names, _ = members(registry)
    pairs = {name: inverse_of(name, names) for name in names}
    undos = {undo for undo in pairs.values() if undo is not None}
    list_of_candidates = []
    for name in names:
        function = getattr(registry, name)
        undo = pairs[name]
        registers = is_registration(name) or is_scope(name) or _is_manager(function)
        if undo is None and (name in undos or not registers):
            continue
        parameters = required(getattr(registry, undo)) if undo is not None else []
        needed = None if parameters is None else tuple(each.name for each in parameters)
        arguments = combinations(function, name, target.module)
        list_of_candidates.append(Candidate(name, tuple(arguments), undo, needed))
    return sorted(list_of_candidates, key=lambda each: each.undo is None)


def _is_manager(function: Any) -> bool:
    """Return True if `contextlib.contextmanager` created the function."""
    inner = inspect.unwrap(function)
    return inner is not function and inspect.isgeneratorfunction(inner)


def step(candidate: Candidate, sandbox: Sandbox) -> CandidateTrial:
    """Return the candidate with its best steps.

    Raises:
        TrialEnded: there was no time for the trials.
    """
    effective: list[tuple[StepEffect, tuple[str, ...], Arguments]] = []
    ends = set[bool]()
    for arguments in candidate.arguments:
        texts = tuple(
            call_text(candidate.name, arguments, slot) for slot in range(SLOTS)
        )
        effect = sandbox.run(candidate.name, partial(_do, sandbox, texts, arguments))
        ends.add(effect is not None)
        if effect is not None and effect.decorates:
            texts = tuple(
                f"{t}({DECORATED_FUNCTION.text(s)})" for s, t in enumerate(texts)
            )
            arguments = (*arguments, DECORATED_FUNCTION)
            effect = sandbox.run(
                candidate.name, partial(_do, sandbox, texts, arguments)
            )
        if effect is not None and not effect.raised:
            effective.append((effect, tuple(dict.fromkeys(texts)), arguments))
        if sum(each.changed and each.second for each, _, _ in effective) == MOST_KEPT:
            break
    effective.sort(key=lambda each: (not each[0].changed, not each[0].second))
    best: WorkingSteps | None = None
    for effect, texts, arguments in effective[:MOST_KEPT]:
        steps = _working_steps(candidate, effect, texts, arguments, sandbox)
        if best is None or steps.rank < best.rank:
            best = steps
    return CandidateTrial(candidate.name, best, ends == {False})


def _do(sandbox: Sandbox, texts: tuple[str, ...], arguments: Arguments) -> StepEffect:
    names = sandbox.names(arguments)
    before = sandbox.state(names)
    try:
        result = evaluate(texts[0], names)
    except Exception as error:
        return StepEffect(raised=f"{type(error).__name__}: {error}")
    changed = sandbox.state(names) != before
    ends = tuple(_ends(result))
    if not changed and RETURNED in ends and hasattr(result, "__enter__"):
        return StepEffect(changed=True, second=True, ends=ends)
    if not changed and callable(result) and not isinstance(result, type):
        function = evaluate("lambda *args, **kwargs: None", names)
        try:
            result(function)
        except Exception:
            decorates = False
        else:
            decorates = sandbox.state(names) != before
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
    """Yield the undos of the object that a step returned."""
    if result is None or isinstance(result, type | str):
        return
    if callable(result) or hasattr(result, "__enter__"):
        yield RETURNED
    for name in CLOSING_METHODS:
        if callable(getattr(result, name, None)):
            yield RETURNED if name == "close" else f"result.{name}()"


def _working_steps(
    candidate: Candidate,
    effect: StepEffect,
    texts: tuple[str, ...],
    arguments: Arguments,
    sandbox: Sandbox,
) -> WorkingSteps:
    """Return the steps with the first undo that restores the state before."""
    best: tuple[Undo, ...] = (None,) * len(texts)
    remark = NO_UNDO
    for undos in _undos(candidate, effect, len(texts), arguments):
        trial = partial(_undo_effect, sandbox, texts, undos, arguments)
        undone = sandbox.run(undo_subject(candidate, undos[0]), trial)
        if undone is None or (not undone.restored and not candidate.undo):
            continue  # anything may have a close()
        if undone.restored and undone.is_selective:
            best, remark = undos, ""
            break
        if undone.restored and remark != NEWEST_UNDONE:
            best, remark = undos, NEWEST_UNDONE
        elif remark == NO_UNDO and "result" not in str(undos[0]):
            best, remark = undos, INCOMPLETE_UNDO
    drafts = tuple(map(StepDraft, texts, best, (remark,) * len(texts)))
    restored = remark in ("", NEWEST_UNDONE)
    return WorkingSteps(candidate.name, drafts, arguments, restored, effect.changed)


def undo_subject(candidate: Candidate, undo: Undo) -> str:
    """Return the function of an undo: of the registry, or of the returned object."""
    own = candidate.undo is not None and f"registry.{candidate.undo}(" in str(undo)
    return str(candidate.undo) if own else f"what {candidate.name} returned"


def _undos(
    candidate: Candidate, effect: StepEffect, count: int, arguments: Arguments
) -> Iterator[tuple[Undo, ...]]:
    """Yield the possible undos of a step, for each slot."""
    undo = candidate.undo
    if undo is not None:
        for undo_arguments in dict.fromkeys(
            _undo_arguments(candidate.needed, arguments)
        ):
            yield tuple(call_text(undo, undo_arguments, slot) for slot in range(count))
        if candidate.needed is None or len(candidate.needed) < 2:
            yield (f"registry.{undo}(result)",) * count
    for end in dict.fromkeys(effect.ends):
        yield (end,) * count


def _undo_arguments(
    needed: tuple[str, ...] | None, arguments: Arguments
) -> Iterator[Arguments]:
    """Yield the arguments of a step that its undo may need, likeliest first."""
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
    """The checks of an undo: it restores the state, and undoes only its own step."""

    restored: bool
    is_selective: bool


def _undo_effect(
    sandbox: Sandbox,
    texts: tuple[str, ...],
    undos: tuple[Undo, ...],
    arguments: Arguments,
) -> UndoEffect:
    """Return the effect of an undo; its exception is not caught."""
    names = sandbox.names(arguments)
    before = sandbox.state(names)
    perform_step(StepDraft(texts[0], undos[0]), names)()
    restored = sandbox.state(names) == before
    if len(texts) == 1 or not restored:
        return UndoEffect(restored, is_selective=True)
    # Some registries compare objects by address, some mark undone objects.
    is_selective = any(
        _is_selective(sandbox, texts, undos, arguments, fresh=fresh)
        for fresh in (False, True)
    )
    return UndoEffect(restored, is_selective)


def _is_selective(
    sandbox: Sandbox,
    texts: tuple[str, ...],
    undos: tuple[Undo, ...],
    arguments: Arguments,
    *,
    fresh: bool,
) -> bool:
    """Return True if undoing the first of two steps leaves the second intact.

    The second is undone before both are done, or with `fresh` both are done with other
    objects.
    """
    names = sandbox.names(arguments)
    try:
        if not fresh:
            perform_step(StepDraft(texts[0], undos[0]), names)()
        single = perform_step(StepDraft(texts[1], undos[1]), names)
        expected = sandbox.state(names)
        if fresh:
            names = sandbox.names(arguments)
        else:
            single()
        end = perform_step(StepDraft(texts[0], undos[0]), names)
        end_second = perform_step(StepDraft(texts[1], undos[1]), names)
        end()
        is_equal = sandbox.state(names) == expected
    except Exception:
        return False
    del single, end_second  # a context manager without references ends itself
    return is_equal
